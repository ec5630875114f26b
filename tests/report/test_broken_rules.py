"""A rule that fails says which samples broke it, the worst first."""

from __future__ import annotations

import pytest

import deemster as dm


def check(gate, *, outputs=None, metrics=("exact-match", "token-f1"), **options):
    """The one check of a gate over six samples, of which three do not match."""
    answers = {"a": "30 days", "b": "30 day", "c": "no idea", "d": "30 days", "e": "30 days", "f": "about 30 days"}
    samples = [
        {
            "id": name,
            "input": {"q": name},
            "expected_output": "30 days",
            "metadata": {"tags": ["odd" if name in "ace" else "even"]},
        }
        for name in answers
    ]
    report = dm.evaluate(samples, outputs=outputs or answers, metrics=list(metrics), gate=gate, **options)
    (only,) = report.gate.checks
    return only


@pytest.mark.parametrize(
    ("gate", "named"),
    [
        ({"min_macro_f1": 0.99}, "samples `c`, `b` and `f` did not pass"),
        ({"min_pass_rate": 0.99}, "samples `c`, `b` and `f` did not pass"),
        ({"metrics": {"token-f1": {"min_pass_rate": 0.99}}}, "sample `c` did not pass"),
        ({"metrics": {"exact-match": {"min_mean": 0.99}}}, "samples `b`, `c` and `f` did not pass"),
        ({"cohorts": {"even": {"min_pass_rate": 0.99}}}, "samples `b` and `f` did not pass"),
    ],
)
def test_broken_bound_names_the_samples_that_it_is_about(gate, named):
    found = check(gate)
    assert (found.status, found.because) == ("fail", f"the estimate is below the bound; {named}")


def test_one_sample_whose_id_is_a_number_is_no_count():
    samples = [{"id": str(number), "input": {}, "expected_output": "30 days"} for number in (5, 6)]
    outputs = {"5": "30 days", "6": "none"}
    report = dm.evaluate(samples, outputs=outputs, metrics=["exact-match"], gate={"min_pass_rate": 0.9})
    assert report.gate.checks[0].because == "the estimate is below the bound; sample `6` did not pass"


def test_rule_that_holds_names_no_sample():
    assert check({"min_macro_f1": 0.1}).because == "the estimate reaches the bound"


def test_more_samples_than_fit_are_counted():
    outputs = dict.fromkeys("abcdef", "no")
    assert check({"min_macro_f1": 0.5}, outputs=outputs).because.endswith("; a, b, c, d and 2 more did not pass")


def test_sample_that_passes_sometimes_stands_behind_one_that_never_does():
    outputs = {name: ["30 days", "30 days"] for name in "abcdef"} | {"a": ["no", "30 days"], "f": ["day", "30 day"]}
    found = check({"min_pass_rate": 0.99}, outputs=outputs, metrics=["exact-match"], repetitions=2)
    assert found.because.endswith("; samples `f` and `a` did not pass")


def test_samples_without_a_score_are_named():
    outputs = {name: {"output": "30 days"} for name in "abcdef"} | {"d": {"error": "down"}}
    found = check({"max_unscored": 0}, outputs=outputs)
    assert found.because.endswith("; sample `d` could not be scored")
