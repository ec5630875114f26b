from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement import BootstrapResult, ConfidenceInterval, ConfusionMatrix, MetricsResult
from deemster.agreement.metrics_result import SCHEMA
from deemster.errors import ReportError
from tests.agreement import make_results as results

SCHEMAS = Path(__file__).parents[2] / "schemas"

finite = st.floats(allow_nan=False, allow_infinity=False)
number = st.none() | finite
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
counts = st.integers(0, 10**9)
intervals = st.builds(ConfidenceInterval, lower=finite, upper=finite, confidence=finite, method=words)
resampled = st.builds(
    BootstrapResult,
    estimate=number,
    ci=st.none() | intervals,
    standard_error=number,
    n_bootstrap=counts,
    bootstrap_distribution=st.none() | st.lists(finite, max_size=3).map(tuple),
)
every = st.none() | st.dictionaries(words, resampled, max_size=3)


@st.composite
def matrices(draw):
    labels = draw(st.lists(words, max_size=3))
    row = st.lists(counts, min_size=len(labels), max_size=len(labels)).map(tuple)
    return ConfusionMatrix(matrix=tuple(draw(row) for _ in labels), labels=tuple(labels))


criteria = st.builds(results.binary, words, counts, accuracy=number, kappa=number, intervals=every) | st.builds(
    results.nominal, words, counts, confusion_matrix=st.none() | matrices(), is_degenerate=st.booleans()
)


@given(
    st.builds(
        results.full_result,
        criterion_accuracy=number,
        mean_kappa_by_kind=st.dictionaries(words, number, max_size=3),
        per_criterion=st.lists(criteria, max_size=3).map(tuple),
        per_judge=st.none() | st.dictionaries(words, st.builds(results.judge, words, intervals=every), max_size=3),
        n_items=counts,
        cannot_assess_mode=st.sampled_from(["exclude", "as_unmet", "as_category"]),
        warnings=st.lists(words, max_size=3).map(tuple),
        intervals=every,
    )
)
def test_written_result_reads_back_equal(result):
    assert msgspec.json.decode(result.to_json(), type=MetricsResult) == result


@pytest.mark.parametrize("result", [results.full_result(), results.empty_result()], ids=["full", "empty"])
def test_file_round_trips_and_creates_folders(result, tmp_path):
    path = tmp_path / "new" / "folder" / "metrics.json"
    result.save(path)
    assert MetricsResult.from_file(path) == result
    assert [entry.name for entry in path.parent.iterdir()] == ["metrics.json"]


def test_order_of_judges_changes_no_byte():
    judges = results.judges()
    turned = dict(reversed(judges.items()))
    assert results.full_result(per_judge=judges).to_json() == results.full_result(per_judge=turned).to_json()


def test_file_names_its_version_first():
    assert results.full_result().to_json().startswith('{\n  "schema_version": "deemster.alignment.v1",\n')


def changed(path, change):
    value = json.loads(results.full_result().to_json())
    change(value)
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return path


def complaint(path):
    with pytest.raises(ReportError) as caught:
        MetricsResult.from_file(path)
    return str(caught.value).replace(f"{path}", "FILE")


def line_with(path, text):
    return next(place for place, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_every_unknown_and_missing_key_is_listed_with_its_line(tmp_path):
    def spoil(value):
        del value["n_items"], value["bias"]
        value["mean_kapa"] = 1

    path = changed(tmp_path / "a.json", spoil)
    assert complaint(path) == (
        "FILE:1: `bias` is missing.\n"
        "FILE:1: `n_items` is missing.\n"
        f"FILE:{line_with(path, 'mean_kapa')}: `mean_kapa` is no key of a result of agreement. "
        "Did you mean `mean_kappa`?"
    )


def test_wrong_value_deep_inside_is_named_with_its_line(tmp_path):
    def spoil(value):
        value["per_criterion"][2]["spearman"]["coefficient"] = "high"

    path = changed(tmp_path / "a.json", spoil)
    line = line_with(path, '"coefficient": "high"')
    assert complaint(path) == f"FILE:{line}: per_criterion[2].spearman.coefficient must be a number, not text."


def test_confusion_matrix_that_is_not_square_is_refused(tmp_path):
    def spoil(value):
        value["per_criterion"][0]["confusion_matrix"]["matrix"] = [[1, 2]]

    assert "a row and a column for each of its 2 labels" in complaint(changed(tmp_path / "a.json", spoil))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "FILE: A result of agreement is a map, not a list."),
        ("{}", f"FILE: A result of agreement has the schema_version `{SCHEMA}`, and this file has none."),
        (
            '{"schema_version": "deemster.report.v1"}',
            f"FILE: A result of agreement has the schema_version `{SCHEMA}`, not 'deemster.report.v1'.",
        ),
        ("", "FILE: The file is empty."),
    ],
)
def test_file_of_other_kind_is_error(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    assert complaint(path) == message


def test_missing_file_is_error(tmp_path):
    assert complaint(tmp_path / "none.json") == "FILE: There is no such file."


def test_nan_in_file_is_error(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(results.full_result().to_json().replace("0.7994", "NaN", 1), encoding="utf-8")
    assert "NaN" in complaint(path)


def test_unwritable_path_is_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ReportError, match="cannot be written"):
        results.full_result().save(tmp_path / "taken" / "a.json")


@pytest.mark.parametrize("result", [results.full_result(), results.empty_result()], ids=["full", "empty"])
def test_written_file_fits_json_schema(result):
    schema = json.loads((SCHEMAS / f"{SCHEMA}.json").read_text(encoding="utf-8"))
    jsonschema_rs.validator_for(schema).validate(json.loads(result.to_json()))


def test_name_that_is_no_text_is_error_with_the_file(tmp_path):
    result = results.empty_result(warnings=("odd: \ud800",))
    with pytest.raises(ReportError, match=r"a\.json: This cannot be written: a text holds a lone surrogate"):
        result.save(tmp_path / "a.json")


def test_result_is_saved_in_every_form_and_in_no_other(tmp_path):
    for name in ("a.json", "a.md", "a.html"):
        results.full_result().save(tmp_path / name)
        assert (tmp_path / name).stat().st_size
    with pytest.raises(ReportError, match=r"Known are `.json`, `.md`, `.html`"):
        results.full_result().save(tmp_path / "a.csv")


def test_file_of_an_earlier_version_reads_back_with_its_names_of_abstentions(tmp_path):
    def age(value):
        for part, prefix in (("na_stats", "na_"), ("cannot_assess_stats", "ca_")):
            value[part] = {name if name == "intervals" else prefix + name: one for name, one in value[part].items()}
            value[part]["intervals"] = {f"{prefix}kappa": value["intervals"]["mean_kappa"]}

    found = MetricsResult.from_file(changed(tmp_path / "a.json", age))
    expected = results.full_result()
    for part in ("na_stats", "cannot_assess_stats"):
        intervals = {"kappa": expected.intervals["mean_kappa"]}
        assert getattr(found, part) == msgspec.structs.replace(getattr(expected, part), intervals=intervals)
