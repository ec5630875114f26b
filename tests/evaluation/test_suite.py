"""Suite files: their values, and the lines of their issues."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets import Dataset
from deemster.engine.model_access import ModelCalls
from deemster.errors import ConfigurationError
from deemster.evaluation.evaluation_settings import EvaluationSettings
from deemster.evaluation.resolve_evaluation import SuiteOverrides, resolve_evaluation
from deemster.evaluation.suite import CONCURRENCY, SEED, SuiteFile, load_suite
from deemster.records import Sample
from deemster.targets.python_target import as_target

GOOD = "dataset: golden.yml\ntarget: { python: 'app:answer' }\nmetrics: [exact-match]\n"


def suite(tmp_path, text, name="triage.yml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_suite(path)


def faults(tmp_path, text):
    with pytest.raises(ConfigurationError) as caught:
        suite(tmp_path, text)
    return [(fault.where.rpartition("/")[2], fault.message) for fault in caught.value.issues]


def test_minimal_suite_gets_defaults(tmp_path):
    read = suite(tmp_path, GOOD)
    assert (read.name, read.seed, read.concurrency, read.repetitions) == ("triage", SEED, CONCURRENCY, None)
    assert read.dataset == str(tmp_path / "golden.yml")
    assert read.target[:2] == ("python", "app:answer")
    assert read.metrics == ["exact-match"]


def test_full_suite_is_read_unchanged(tmp_path):
    text = (
        "schema_version: deemster.suite.v1\nname: n\ndescription: d\nrepetitions: 3\nseed: 7\n"
        "limits: { concurrency: 2 }\ngate: { min_macro_f1: 0.5 }\n"
    )
    read = suite(tmp_path, text + GOOD.replace("python: 'app:answer'", "outputs: a.jsonl"))
    assert (read.name, read.repetitions, read.seed, read.concurrency) == ("n", 3, 7, 2)
    assert read.target[:2] == ("outputs", str(tmp_path / "a.jsonl"))
    assert read.gate == {"min_macro_f1": 0.5}


def test_suite_may_be_json(tmp_path):
    assert suite(tmp_path, '{"dataset": "g.yml", "metrics": ["contains"]}', "s.json").target is None


def test_all_issues_are_listed_with_lines(tmp_path):
    assert faults(tmp_path, "metrics: []\nseed: x\nrepetitions: 0\ndatset: g\n") == [
        ("triage.yml:1", "`dataset` is missing."),
        ("triage.yml:1", "`metrics` is a list of at least one metric."),
        ("triage.yml:2", "seed must be a whole number of at least 0, not text."),
        ("triage.yml:3", "repetitions must be a whole number of at least 1, not 0."),
        ("triage.yml:4", "`datset` is no key of a suite. Did you mean `dataset`?"),
    ]


def test_other_issues_do_not_hide_missing_target(tmp_path):
    assert faults(tmp_path, "datset: g\ndataset: g.yml\ntarget: {}\nmetrics: [contains]\n") == [
        ("triage.yml:1", "`datset` is no key of a suite. Did you mean `dataset`?"),
        (
            "triage.yml:3",
            "target: A target has one of `python`, `chat`, `http`, `command`, `outputs`; this one gives none.",
        ),
    ]


@pytest.mark.parametrize(
    ("section", "kind"), [("null", "null"), ("[]", "a list"), ("''", "text"), ("0", "a number"), ("false", "a boolean")]
)
def test_empty_gate_that_is_no_map_is_refused(tmp_path, section, kind):
    samples = Dataset([Sample("a", {"question": "Capital of France?"}, "Paris")], name="one")
    given = SuiteOverrides(dataset=samples, target=as_target(lambda _: "Paris"))
    assert resolve_evaluation(suite(tmp_path, GOOD + "gate: {}\n"), given).gate.rules == ()
    with pytest.raises(ConfigurationError, match=f"triage.yml:4: gate must be a map, not {kind}"):
        resolve_evaluation(suite(tmp_path, f"{GOOD}gate: {section}\n"), given)


def test_long_value_is_shortened_in_message(tmp_path):
    ((_, message),) = faults(tmp_path, GOOD + f"seed: {'x' * 5000}\n")
    assert len(message) < 200


def test_environment_variables_are_expanded_in_target(tmp_path, monkeypatch):
    monkeypatch.setenv("DEEMSTER_TEST_PLACE", "saved")
    monkeypatch.delenv("DEEMSTER_TEST_NONE", raising=False)
    text = GOOD.replace("python: 'app:answer'", "outputs: '${DEEMSTER_TEST_PLACE}/${DEEMSTER_TEST_NONE:-a}.jsonl'")
    assert suite(tmp_path, text).target[:2] == ("outputs", str(tmp_path / "saved/a.jsonl"))


def test_unset_variable_is_error_without_values(tmp_path, monkeypatch):
    monkeypatch.delenv("DEEMSTER_TEST_NONE", raising=False)
    ((where, message),) = faults(tmp_path, GOOD.replace("app:answer", "${DEEMSTER_TEST_NONE}"))
    assert where == "triage.yml:2"
    assert "The environment has no variable `DEEMSTER_TEST_NONE`" in message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["schema_version", "name", "dataset", "target", "metrics", "repetitions", "seed", "limits"])


@given(st.dictionaries(KEYS | st.text(max_size=9), JSON, max_size=6) | JSON)
def test_any_suite_content_is_read_or_error_with_lines(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("suite") / "s.json"
    path.write_text(json.dumps(value))
    found = []
    try:
        load_suite(path)
    except ConfigurationError as error:
        found = [fault.where.startswith(str(path)) for fault in error.issues] or [False]
    assert all(found)


def test_group_adds_metrics_and_aggregator(tmp_path):
    file = tmp_path / "suite.yml"
    file.write_text("dataset: d.yml\ngroup: query-transformation\nmetrics: [exact-match]\n")
    suite = load_suite(file)
    assert [next(iter(entry)) if not isinstance(entry, str) else entry for entry in suite.metrics] == [
        "exact-match",
        "query-completeness",
        "query-groundedness",
        "query-redundancy",
    ]
    assert suite.aggregator["kind"] == "weighted"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group: generatoin\n", "suite.yml:2: No group is called `generatoin`. Did you mean `generation`?"),
        (
            "group: generation\naggregator: min\n",
            "suite.yml:2: The group `generation` has an aggregator of its own; leave `aggregator` out.",
        ),
        ("group: 7\n", "suite.yml:2: group must be text, not a number. Quote it."),
    ],
)
def test_unusable_group_is_error_with_line(folder, text, message):
    Path("suite.yml").write_text(f"dataset: d.yml\n{text}")
    with pytest.raises(ConfigurationError) as caught:
        load_suite("suite.yml")
    assert str(caught.value) == message


def test_numbers_of_a_call_replace_those_of_the_suite_and_of_its_target(tmp_path):
    text = "dataset: g.yml\nmetrics: [contains]\nrepetitions: 2\nlimits: { timeout_s: 60 }\n"
    declared = suite(tmp_path, text + "target: { http: { url: 'http://127.0.0.1:9/', concurrency: 2 } }\n")
    called = declared.with_numbers(repetitions=3, concurrency=8, timeout_s=5.0)

    assert declared.with_numbers() == declared
    assert (called.repetitions, called.concurrency, called.timeout_s) == (3, 8, 5.0)
    assert called.target.settings["concurrency"] == 8
    # Saved outputs are read, however many calls may be under way.
    saved = suite(tmp_path, text + "target: { outputs: answers.yml }\n")
    assert saved.with_numbers(concurrency=8).target == saved.target


def test_keys_of_a_suite_and_a_call_fill_the_same_settings(tmp_path):
    text = GOOD + "strict: true\ndelta: 0.1\ncalibration: labels.json\nkeep_prompts: all\n"
    called = suite(tmp_path, text).called_with(ModelCalls(cache="answers.jsonl", offline=True)).with_settings(confirm=4)

    path = str(tmp_path / "labels.json")
    assert called.settings == EvaluationSettings(strict=True, delta=0.1, calibration=path, confirm=4)
    assert called.calls == ModelCalls(cache="answers.jsonl", offline=True, keep_prompts="all")


# For every key of a suite, a value other than its default.
OTHER_VALUES = {
    "dataset": "other.yml",
    "metrics": ["contains"],
    "name": "other",
    "target": {"outputs": "answers.jsonl"},
    "repetitions": 3,
    "seed": 7,
    "limits": {"timeout_s": 60},
    "strict": True,
    "cluster": "topic",
    "delta": 0.1,
    "junit": "samples",
    "keep_prompts": "all",
    "durable": True,
    "on": "local-cluster",
    "gate": {"min_macro_f1": 0.5},
    "aggregator": "min",
    "group": "generation",
    "models": {"judge": {"model": "other"}},
    "calibration": "labels.json",
    "attack": {"seed": 3},
    "prompts": {"short": "{{input.q}}"},
    "variants": {"python": ["app:a", "app:b"]},
}
# They are for people and for editors: the document has them, and nothing else reads them.
NOT_READ = ("schema_version", "description")


@pytest.mark.parametrize("key", [key for key in SuiteFile.__struct_fields__ if key not in NOT_READ])
def test_every_key_changes_the_suite_that_is_loaded(tmp_path, key):
    assert key in OTHER_VALUES, f"add `{key}` with a value other than its default to OTHER_VALUES"
    said = {"dataset": "golden.yml", "metrics": ["exact-match"]}
    usual = suite(tmp_path, json.dumps(said))
    changed = suite(tmp_path, json.dumps({**said, key: OTHER_VALUES[key]}))

    assert suite(tmp_path, json.dumps(said))._replace(document=usual.document) == usual
    assert changed._replace(document=usual.document) != usual, (
        f"`{key}` is read and ignored: add a field of this name to `EvaluationSettings`, or pass it in `load_suite`"
    )


def test_evaluation_holds_the_settings_of_its_suite(tmp_path):
    samples = Dataset([Sample("a", {"question": "Capital of France?"}, "Paris")], name="one")
    call = SuiteOverrides(dataset=samples, target=as_target(lambda _: "Paris"))
    evaluation = resolve_evaluation(suite(tmp_path, f"{GOOD}delta: 0.1\nstrict: true\n"), call)
    assert (evaluation.delta, evaluation.strict) == (0.1, True)
