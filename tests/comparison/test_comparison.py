import json
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

import deemster as dm
from deemster.comparison import report_without_text
from deemster.comparison.without_text import comparison_without_text
from deemster.errors import ReportError
from deemster.gate import GateCheck, GateDecision
from deemster.report.report_entries import PrivacyEntry
from tests.report.comparisons import compared, evaluated, helpdesk, hostile
from tests.report.runs import CANARIES, METRICS, answers, quotes_of, samples

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "deemster.comparison.v1.json").read_text(encoding="utf-8"))
CHECK = GateCheck(
    name="baseline.margin", observed=-0.1, low=-0.2, high=0.0, required=0.05, status="fail", because="it fell"
)


@pytest.mark.parametrize("make", [helpdesk, hostile])
def test_comparison_fits_its_schema_and_comes_back_from_its_file(make, tmp_path):
    comparison = make()
    file = tmp_path / "comparison.json"
    comparison.save(file)
    jsonschema_rs.validator_for(SCHEMA).validate(json.loads(file.read_text(encoding="utf-8")))
    loaded = dm.comparison.load_comparison(file)
    assert loaded.to_json() == comparison.to_json()
    assert loaded.verdict == comparison.verdict


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": "deemster.report.v1"}, "has the schema_version `deemster.comparison.v1`"),
        ({"macro_f1": 3}, "does not have the shape"),
        ({"examples": [{}]}, "does not have the shape"),
        ({"privacy": {"level": "none", "removed": []}}, "`privacy` names a level"),
    ],
)
def test_file_that_is_no_comparison_is_refused(change, message, tmp_path):
    file = tmp_path / "comparison.json"
    file.write_text(json.dumps({**json.loads(helpdesk().to_json()), **change}), encoding="utf-8")
    with pytest.raises(ReportError, match=message):
        dm.comparison.load_comparison(file)


def test_file_that_misses_a_part_is_refused(tmp_path):
    value = json.loads(helpdesk().to_json())
    del value["changes"]
    file = tmp_path / "comparison.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(ReportError, match="missing: `changes`"):
        dm.comparison.load_comparison(file)


def test_file_of_an_earlier_version_keeps_its_test_under_its_own_name(tmp_path):
    """Earlier versions wrote the p of the sign-flip test beside intervals, which it contradicted."""
    value = json.loads(helpdesk().to_json())
    numbers = [value["macro_f1"], value["pass_rate"], *(cohort["macro_f1"] for cohort in value["cohorts"])]
    numbers += [number for metric in value["metrics"].values() for number in (metric["pass_rate"], metric["mean"])]
    numbers += [cohort["pass_rate"] for cohort in value["cohorts"]]
    numbers += [number for cohort in value["cohorts"] for number in cohort["metrics"].values()]
    for number in numbers:
        number["p_value"] = number.pop("sign_flip_p")
    file = tmp_path / "comparison.json"
    file.write_text(json.dumps(value), encoding="utf-8")

    loaded = dm.comparison.load_comparison(file)
    assert (loaded.macro_f1.p_value, loaded.macro_f1.sign_flip_p) == (None, helpdesk().macro_f1.sign_flip_p)
    assert (
        loaded.metrics["exact-match"].pass_rate.sign_flip_p == helpdesk().metrics["exact-match"].pass_rate.sign_flip_p
    )


def test_save_chooses_the_format_by_the_extension(tmp_path):
    for suffix in (".json", ".md", ".html", ".xml"):
        helpdesk().save(tmp_path / f"c{suffix}")
    assert (tmp_path / "c.md").read_text(encoding="utf-8") == helpdesk().to_markdown()
    assert (tmp_path / "c.html").read_text(encoding="utf-8") == helpdesk().to_html()
    with pytest.raises(ReportError, match="The ending of the name says no format"):
        helpdesk().save(tmp_path / "c.csv")


def test_dataframes_have_a_row_for_each_number_and_each_changed_sample():
    numbers, changed = helpdesk().to_dataframe(), helpdesk().to_dataframe("samples")
    overall = numbers[numbers.cohort.isna() & numbers.metric.isna()]
    assert overall.number.tolist() == ["macro_f1", "pass_rate"]
    assert overall.difference.tolist() == [helpdesk().macro_f1.difference, helpdesk().pass_rate.difference]
    assert set(numbers.cohort.dropna()) == {"refunds", "shipping"}
    assert changed.status.tolist()[:2] == ["newly_failing", "newly_failing"]
    by_id = changed.set_index("sample_id")
    assert by_id.loc["shipping-01", "exact-match_baseline"] == 1.0
    assert by_id.loc["shipping-01", "exact-match_candidate"] == 0.0
    with pytest.raises(ReportError, match="no table 'sample'"):
        helpdesk().to_dataframe("sample")


def test_notebook_shows_verdict_numbers_and_broken_samples():
    shown = helpdesk()._repr_html_()
    assert shown.startswith("<div>\n<h2>2 samples broke (<code>refunds-00</code> and ")
    assert "<code>shipping-01</code>" in shown
    assert "Effects and resolution" not in shown


def test_repr_is_the_verdict():
    assert repr(helpdesk()).endswith(f"{helpdesk().verdict}>")


def junit(comparison, name):
    return ET.fromstring(b"".join(comparison.forms()[name]()))


def counted(suite):
    kinds = [child.tag for case in suite for child in case]
    return {kind: kinds.count(kind) for kind in ("failure", "error", "skipped")}


@pytest.mark.parametrize("name", ["junit", "junit-samples"])
def test_junit_counts_what_it_lists(name):
    comparison = msgspec.structs.replace(
        helpdesk(), gate=GateDecision(decision="fail", mode="two-way", checks=(CHECK,))
    )
    for suite in junit(comparison, name):
        assert int(suite.get("tests")) == len(suite)
        assert {kind: int(suite.get(f"{kind}s" if kind != "skipped" else kind)) for kind in counted(suite)} == counted(
            suite
        )


def test_samples_do_not_turn_junit_red_unless_asked():
    gate, changed = junit(helpdesk(), "junit")
    assert counted(gate)["failure"] == counted(changed)["failure"] == 0
    assert [case.get("name") for case in changed if case.get("classname") == "newly_failing"] == [
        "refunds-00",
        "shipping-01",
    ]
    _, changed = junit(helpdesk(), "junit-samples")
    assert counted(changed)["failure"] == 2


def test_failed_check_turns_junit_red():
    decided = msgspec.structs.replace(helpdesk(), gate=GateDecision(decision="fail", mode="two-way", checks=(CHECK,)))
    gate, _ = junit(decided, "junit")
    assert gate.get("failures") == "1"
    assert [case.get("name") for case in gate if len(case)] == ["baseline.margin"]


def secret_comparison(store):
    """Two runs with secrets everywhere; every sample is answered otherwise, so that it is shown."""
    right = [{**entry, "outputs": [CANARIES["expected"]] * 2} if "outputs" in entry else entry for entry in answers()]
    dataset = dm.Dataset(samples(), name="support")
    for given in (right, answers()):
        dm.evaluate(dataset, outputs=dm.targets.SavedOutputs(given), metrics=METRICS, storage=store)
    return dm.compare("previous", "latest", store=store)


def test_comparison_without_text_holds_no_text_and_no_hash(tmp_path):
    comparison = secret_comparison(tmp_path / "runs.db")
    shown = comparison.to_json()
    assert [name for name, secret in CANARIES.items() if secret not in shown] == ["metadata", "target error"]
    safe = comparison_without_text(comparison, quotes=quotes_of)
    for name, render in safe.forms().items():
        text = b"".join(render()).decode()
        assert [secret for secret in CANARIES.values() if secret in text] == [], name
    assert {change.row_hash for change in safe.changes} <= {None}
    for run in (safe.baseline, safe.candidate):
        assert (run.fingerprint, run.label, run.target) == (None, None, None)


def test_comparison_of_a_report_at_an_earlier_level_says_what_was_left_out():
    before, after = evaluated({"a": "right", "b": "wrong"}), evaluated({"a": "wrong", "b": "right"})
    redacted = msgspec.structs.replace(after, privacy=PrivacyEntry("outputs", ("executions.output", "messages")))
    comparison = dm.compare(before, redacted)
    assert comparison.privacy.level == "outputs"
    assert "Left out: answers and messages. Ids, tags and scores stay." in comparison.to_markdown()


def test_report_without_text_cannot_be_compared_and_says_so():
    before, after = evaluated({"a": "right", "b": "wrong"}), evaluated({"a": "wrong", "b": "right"})
    with pytest.raises(dm.errors.ReportError, match="`--without-text`: it has no hashes"):
        dm.compare(before, report_without_text(after, quotes=lambda _: None))


def test_equal_runs_are_compared_to_the_same_bytes():
    first = compared({"a": "right"}, {"a": "wrong"})
    again = compared({"a": "right"}, {"a": "wrong"})
    ids = {first.baseline.id: "B", first.candidate.id: "C", again.baseline.id: "B", again.candidate.id: "C"}
    texts = [first.to_json(), again.to_json()]
    for old, new in ids.items():
        texts = [text.replace(old, new) for text in texts]
    assert texts[0] == texts[1]
