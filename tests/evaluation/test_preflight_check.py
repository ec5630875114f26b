"""The look at the samples before a run: every metric sees every sample before anything is called."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.engine.run_plan import Plan
from deemster.errors import ConfigurationError, Issue
from deemster.evaluation.preflight_check import SampleIssues, check_samples
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.gate.read_gate import read_gate
from deemster.targets.saved_outputs import SavedOutputs


class Checking:
    """A custom metric with a check of samples."""

    name = "checking"

    def __init__(self, check):
        self.check = check

    def score(self, sample, output):
        return 1.0


def plan(*metrics, samples=None):
    rows = samples or [dm.Sample("a", {}, "x"), dm.Sample("b", {}, "y")]
    return Plan(dm.Dataset(rows, name="d"), SavedOutputs({row.id: "x" for row in rows}), metrics)


def warnings_before(*metrics, samples=None, strict=False):
    return check_samples(Evaluation(plan(*metrics, samples=samples), strict=strict)).warnings


def test_every_sample_is_tagged_by_its_position():
    tags = {"a": ["long"], "b": [], "c": ["long", "old"]}
    rows = [dm.Sample(name, {}, "x", {"tags": given}) for name, given in tags.items()]
    found = check_samples(Evaluation(plan(dm.metrics.ExactMatch(), samples=rows))).table.cohorts
    assert [(tag, list(positions)) for tag, positions in found] == [("long", [0, 2]), ("old", [2]), (None, [1])]


def test_order_of_the_samples_changes_the_digest():
    rows = [dm.Sample("a", {}, "x"), dm.Sample("b", {}, "y")]
    there, back = (
        check_samples(Evaluation(plan(dm.metrics.ExactMatch(), samples=each))).order for each in (rows, rows[::-1])
    )
    assert there != back


def test_malformed_samples_of_every_metric_are_listed_at_once():
    first, second = (Checking(lambda sample: [Issue(f"{sample.id} is wrong.")]) for _ in range(2))
    with pytest.raises(ConfigurationError) as caught:
        warnings_before(first, second)
    assert [(fault.sample, fault.message) for fault in caught.value.issues] == [
        ("a", "checking, checking: a is wrong."),
        ("b", "checking, checking: b is wrong."),
    ]


def test_absent_value_is_one_warning_with_count_and_first_sample():
    metric = Checking(lambda sample: [Issue("No label.", warning=True)] if sample.id == "a" else [])
    assert warnings_before(metric) == ("checking: 1 of 2 samples will be unscored, first `a`: No label.",)


def test_metric_that_can_score_no_sample_is_refused_before_the_run():
    metric = Checking(lambda sample: [Issue("No label.", warning=True)])
    with pytest.raises(ConfigurationError, match=r"checking can score none of the 2 samples: No label\."):
        warnings_before(metric)


def test_strict_makes_absent_value_an_error():
    metric = Checking(lambda sample: [Issue("No label.", warning=True)])
    with pytest.raises(ConfigurationError, match="sample `b`: checking: No label"):
        warnings_before(metric, strict=True)


def test_failing_check_is_error_without_traceback():
    def check(sample):
        raise KeyError(sample.id)

    with pytest.raises(ConfigurationError, match="sample `a`: checking: its check failed with KeyError: 'a'"):
        warnings_before(Checking(check))


@pytest.mark.parametrize("found", [7, ["text"], "text", True])
def test_check_with_invalid_result_is_error_without_traceback(found):
    with pytest.raises(ConfigurationError, match="sample `a`: checking: its check"):
        warnings_before(Checking(lambda sample: found))


@pytest.mark.parametrize("found", [None, [], (), iter(())])
def test_check_without_issues_may_return_any_empty_value(found):
    assert warnings_before(Checking(lambda sample: found)) == ()


def test_hidden_characters_of_an_id_are_shown_in_a_warning():
    rows = [dm.Sample("a\u202eb", {}), dm.Sample("b", {}, "x")]
    assert "`a\\u202eb`" in warnings_before(dm.metrics.ExactMatch(), samples=rows)[0]


@pytest.mark.parametrize(
    ("key", "warned"), [("tag", True), ("Tags", True), ("tasg", True), ("tags", False), ("owner", False)]
)
def test_misspelt_metadata_key_is_warning(key, warned):
    rows = [dm.Sample("a", {}, "x", {key: "v"})]
    assert bool(warnings_before(dm.metrics.ExactMatch(), samples=rows)) is warned


def test_varied_is_set_only_with_repetitions():
    once = plan(dm.metrics.ExactMatch())
    assert once.varied is None
    assert once._replace(repetitions=2).varied == "scoring"


@pytest.mark.parametrize(
    ("gate", "warned"),
    [
        (
            {"metrics": {"exact-match": {"min_pass_rate": 0.9, "on": "lower"}}},
            "and 20 perfect samples would reach 0.8389",
        ),
        ({"metrics": {"exact-match": {"min_pass_rate": 0.83, "on": "lower"}}}, None),
        ({"metrics": {"exact-match": {"min_pass_rate": 0.9}}}, None),
        ({"metrics": {"exact-match": {"min_mean": 0.9, "on": "lower"}}}, "20 perfect samples would reach 0.8066"),
        ({"min_macro_f1": 0.9, "on": "lower"}, "`min_macro_f1` holds the lower end of the interval to 0.9"),
        ({"cohorts": {"*": {"min_pass_rate": 0.8, "on": "lower"}}}, "perfect samples of the cohort `even` would reach"),
        ({"cohorts": {"*": {"min_pass_rate": 0.8, "on": "lower", "min_samples": 11}}}, None),
    ],
)
def test_rule_that_so_few_samples_cannot_reach_is_named(gate, warned):
    rows = [dm.Sample(str(n), {}, "x", {"tags": ["odd" if n % 2 else "even"]}) for n in range(20)]
    found = check_samples(Evaluation(plan(dm.metrics.ExactMatch(), samples=rows), gate=read_gate(gate))).warnings
    assert [warned in text for text in found[:1]] == ([] if warned is None else [True]), found
    assert all(text.startswith("The gate can never pass: ") for text in found)


def test_fault_that_concerns_several_is_listed_once_with_all_of_them():
    issues, sample = SampleIssues(), dm.Sample("a", {})
    issues.refuse("golden.yml")
    for name in ("first", "second"):
        issues.add(sample, "it is wrong.", name)
    with pytest.raises(ConfigurationError) as caught:
        issues.refuse("golden.yml")
    assert [str(issue) for issue in caught.value.issues] == ["golden.yml: sample `a`: first, second: it is wrong."]


def test_sample_without_the_cluster_of_its_gate_is_refused():
    gate = read_gate({"baseline": {"compare": "previous", "margin": 0.1, "cluster": "document"}})
    rows = [dm.Sample("a", {}, "x", {"document": "d"}), dm.Sample("b", {}, "y")]
    with pytest.raises(ConfigurationError, match=r"sample `b`: cluster: it has no `metadata\.document`"):
        check_samples(Evaluation(plan(dm.metrics.ExactMatch(), samples=rows), gate=gate))
