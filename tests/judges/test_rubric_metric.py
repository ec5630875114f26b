"""A rubric as a metric of a run: marks, parts, identity, gates and reports."""

from __future__ import annotations

import json

import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.judges import metric_catalog as catalog
from deemster.judges.judge_panel import Judge
from deemster.judges.rubric_metric import RubricMetric
from deemster.models import FakeChat, ModelFailure
from deemster.records import MetricScore, NoAnswer, Output, Sample, Unscored
from tests.builders.arguments import arguments
from tests.judges.make_grader import DEPTH, FACTS, FLUFF, RUBRIC, reply, says, subject
from tests.judges.play import answered
from tests.report.runs import CLOCK

GOOD = {"facts": "MET", "fluff": "UNMET", "depth": "fair", "tone": "warm"}
SAMPLE = Sample("s1", {"question": "Which city?"}, "Paris")


def metric(**options):
    return RubricMetric(**{"rubric": RUBRIC, "judges": ["a"], **options})


def marked(verdicts, *, sample=SAMPLE, output="Paris.", **options):
    answer = verdicts if callable(verdicts) else says(verdicts)
    return answered(metric(**options).script(sample, Output(output)), answer)


def test_rubric_metric_maps_output_question_and_expected_output():
    seen = []

    def answer(ask):
        seen.append(ask.messages[1].content)
        return reply(ask, GOOD[subject(ask)])

    marked(answer, output="<thinking>Rome?</thinking>Lyon it is.")
    assert all("Lyon it is." in text and "Which city?" in text and "\nParis\n" in text for text in seen)
    assert not any("Rome?" in text for text in seen)
    seen.clear()
    marked(answer, sample=Sample("s1", {"city": 1}))
    assert all('"city"' in text and "Paris" in text for text in seen)


def test_score_equals_rubric_score():
    mark, _ = marked(GOOD)
    # S = 10 + 0.5 * 6 + 2 of P = 18.
    assert mark.score == pytest.approx(15 / 18)
    assert mark.details["raw_score"] == 15
    assert mark.details["criteria"]["depth"] == {
        "verdict": "fair",
        "value": 0.5,
        "agreement": 1.0,
        "abstained": False,
        "failed": False,
    }
    assert [vote["judge"] for vote in mark.details["votes"]] == ["a"] * 4
    assert mark.details["votes"][0]["reason"] == "Because."


def test_reasons_are_details_declared_as_quotes():
    mark, _ = marked(GOOD)
    assert "Because." not in json.dumps({key: mark.details[key] for key in mark.details if key not in metric().quotes})


@pytest.mark.parametrize(
    ("cause", "expected"), [("model_failed", "model_failed"), ("rate_limited", "rate_limited"), ("not_run", "not_run")]
)
def test_mark_without_verdict_has_cause_of_failures(cause, expected):
    mark, _ = marked(lambda _: NoAnswer(cause=cause, message="Gone."))
    assert isinstance(mark, Unscored)
    assert (mark.cause, "Gone." in mark.message) == (expected, True)


def test_unasked_criterion_leaves_no_score_and_failed_one_abstains():
    lost = marked({**GOOD, "depth": NoAnswer(cause="not_run", message="The budget is spent.")})[0]
    assert (lost.cause, lost.message) == ("not_run", "depth: The budget is spent.")
    failed = marked({**GOOD, "depth": NoAnswer(cause="model_failed", message="No.")})[0]
    assert failed.score == 1.0
    assert failed.details["criteria"]["depth"]["failed"]


def test_all_judges_abstaining_leaves_no_score():
    mark, _ = marked(dict.fromkeys(GOOD, "CANNOT_ASSESS"), rubric={"criteria": [FACTS, FLUFF]})
    assert mark.cause == "no_quorum"


def test_non_text_output_is_unscored():
    mark, rounds = marked(GOOD, output="\ud800")
    assert (mark.cause, rounds) == ("bad_output", [])


# options


def test_rubric_path_is_relative_to_suite(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(RUBRIC))
    made = catalog.resolve({"rubric": {"file": "r.json", "judges": ["a", "b"], "name": "essay"}}, search=tmp_path)
    assert made.loaded_rubric == dm.Rubric.load(RUBRIC)
    assert (made.name, made.roles, made.parts) == ("essay", ("a", "b"), ("facts", "fluff", "depth", "tone"))
    assert catalog.parse_metric(str(made)) == made
    assert catalog.card(made).parts == made.parts


def test_identity_depends_on_content_and_settings_not_path(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "r.json").write_text(json.dumps(RUBRIC))
    one, two = (catalog.resolve({"rubric": {"file": "r.json"}}, search=tmp_path / folder) for folder in ("one", "two"))
    assert str(one) != str(two)
    assert catalog.identity(one) == catalog.identity(two)
    (tmp_path / "two" / "r.json").write_text(json.dumps({"criteria": [FACTS]}))
    changed = catalog.resolve({"rubric": {"file": "r.json"}}, search=tmp_path / "two")
    others = [
        metric(),
        metric(judges=["b"]),
        metric(repeats=2),
        metric(system_prompt="Be strict."),
        metric(rubric={"criteria": [FACTS]}),
        metric(judges=["a", "b"]),
        metric(judges=["a", "b"], cascade={"unsure_below": 0.7}),
    ]
    identities = [catalog.identity(each) for each in (one, changed, *others)]
    assert len(set(identities)) == len(identities)


def test_judges_are_roles_or_maps_or_judges():
    assert metric(judges="a") == metric(judges=["a"])
    assert metric(judges=[{"model": "a"}]).grader.judges == (Judge("a", "a"),)
    weighty = metric(judges=[Judge("x", "a", 2.0), "b"])
    assert weighty == metric(judges=[{"id": "x", "model": "a", "weight": 2.0}, "b"])
    assert weighty.grader.judges[0].weight == 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rubric": None}, "needs either `file`"),
        ({"file": "r.yaml"}, "needs either `file`"),
        ({"normalize": False}, "a score of a run lies in [0, 1]"),
        ({"rubric": {"criteria": []}}, "criteria"),
        ({"judges": []}, "needs at least one judge"),
        ({"judges": [{"model": "a", "wieght": 2}]}, "Did you mean `weight`?"),
        ({"judges": [{"id": "a"}]}, "judges[0]: `model` is missing"),
        ({"judges": 3}, "judges must be a list of roles, not a number"),
        ({"calls": "per_itm"}, "Did you mean `per_item`?"),
        ({"length_penalty": {"free_budgt": 1}}, "Did you mean `free_budget`?"),
        ({"cascade": {"unsure_below": 0.5}}, "`cascade` needs two judges"),
        ({"judges": ["a", "b"], "cascade": {"unsure": 0.5}}, "Did you mean `unsure_below`?"),
        ({"judges": ["a", "b"], "cascade": {"unsure_below": 2}}, "from 0 to 1"),
        ({"few_shot": {"n": 2}}, "few_shot: `train` is missing"),
        ({"few_shot": {"train": "none.json"}}, "none.json"),
        ({"rubric": {"criteria": [{**FACTS, "check": {"metric": "regx"}}]}}, "Did you mean `regex`?"),
    ],
)
def test_invalid_options_are_error(options, message):
    with pytest.raises(ConfigurationError) as error:
        metric(**options)
    assert message in str(error.value)


def test_missing_rubric_file_is_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.yaml"):
        RubricMetric(file=str(tmp_path / "none.yaml"))


# runs


def samples(count):
    return [
        {"id": f"s{at}", "input": {"question": "Q?"}, "expected_output": "x", "metadata": {"tags": ["t"]}}
        for at in range(count)
    ]


def ran(count=6, *, answer=None, rubric=None, **options):
    def said(ask):
        text = ask.messages[1].content
        if "Text 0." in text and subject(ask) == "facts":
            return reply(ask, "UNMET")
        if "Text 1." in text and subject(ask) == "facts":
            return reply(ask, "CANNOT_ASSESS")
        if "Text 2." in text and subject(ask) == "facts":
            return ModelFailure("refused", "No.")
        return reply(ask, GOOD[subject(ask)])

    names = set(options.pop("judges", ["a"]))
    return dm.evaluate(
        samples(count),
        outputs={f"s{at}": f"Text {at}." for at in range(count)},
        metrics=[RubricMetric(rubric=rubric or {"criteria": [FACTS, DEPTH]}, judges=sorted(names), name="essay")],
        models={name: FakeChat(answer or said) for name in names},
        **arguments(clock=CLOCK, **options),
    )


def test_report_shows_each_criterion():
    report = ran()
    facts, depth = (report.metrics["essay"].criteria[name] for name in ("facts", "depth"))
    assert (facts.n, facts.n_judged, facts.n_abstained, facts.n_failed) == (6, 4, 1, 1)
    assert facts.mean == 0.75
    assert facts.mean_interval.low < 0.75 < facts.mean_interval.high
    assert (depth.n_judged, depth.mean, depth.mean_agreement) == (6, 0.5, 1.0)
    assert "## Criteria" in report.to_markdown()
    row = next(line for line in report.to_markdown().splitlines() if "<code>facts</code>" in line)
    assert "0.7500" in row
    assert json.loads(report.to_json())["metrics"]["essay"]["criteria"]["depth"]["mean"] == 0.5


def test_agreement_is_the_mean_over_the_votes_of_a_panel():
    def split(ask):
        return reply(ask, {"a": "MET", "b": "MET", "c": "UNMET"}[ask.role])

    facts = ran(judges=["a", "b", "c"], answer=split, rubric={"criteria": [FACTS]}).metrics["essay"].criteria["facts"]
    assert (facts.mean, facts.mean_agreement) == (1.0, pytest.approx(2 / 3))


def test_other_metrics_have_no_criteria():
    report = dm.evaluate(
        samples(2), outputs={"s0": "x", "s1": "y"}, metrics=["exact-match"], settings=dm.EvaluationSettings(clock=CLOCK)
    )
    assert report.metrics["exact-match"].criteria is None
    assert "## Criteria" not in report.to_markdown()
    assert json.loads(report.to_json())["metrics"]["exact-match"]["criteria"] is None


def test_gate_bounds_metric_and_criterion():
    rules = {"metrics": {"essay": {"min_mean": 0.5}, "essay/facts": {"min_mean": 0.8}, "essay/depth": {"max_mean": 1}}}
    gate = ran(gate=rules).gate
    assert [(check.name, check.status) for check in gate.checks] == [
        ("metrics.essay.min_mean", "pass"),
        ("metrics.essay/facts.min_mean", "fail"),
        ("metrics.essay/depth.max_mean", "pass"),
    ]
    assert gate.checks[1].observed == 0.75


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"metrics": {"essay/fact": {"min_mean": 0.8}}}, "Did you mean `essay/facts`?"),
        ({"metrics": {"essay/facts": {"min_pass_rate": 0.8}}}, "has no pass-rate"),
        ({"cohorts": {"t": {"metrics": {"essay/facts": {"min_mean": 0.8}}}}}, "of the whole run"),
    ],
)
def test_rule_about_unknown_criterion_is_error_before_any_request(rules, message):
    def never(_):
        raise AssertionError("It was asked.")

    with pytest.raises(ConfigurationError) as error:
        ran(gate=rules, answer=never)
    assert message in str(error.value)


def test_user_metric_may_declare_criteria_too():
    class Parted:
        name = "parted"
        parts = ("one", "two")

        def score(self, sample, output):
            return MetricScore(1.0, {"criteria": {"one": {"value": 0.25}, "three": {"value": 1}, "two": "odd"}})

    report = dm.evaluate(
        samples(2), outputs={"s0": "x", "s1": "y"}, metrics=[Parted()], settings=dm.EvaluationSettings(clock=CLOCK)
    )
    one, two = (report.metrics["parted"].criteria[name] for name in ("one", "two"))
    assert (one.n, one.mean, one.mean_agreement) == (2, 0.25, None)
    assert (two.n, two.mean) == (0, None)


def test_order_of_marks_changes_no_digit():
    def tallied(order):
        from deemster.records import Execution
        from deemster.results.mark_table import MarkTable
        from deemster.results.run_summary import summarize_run

        card = catalog.card(metric())
        tally = MarkTable([card], samples=3, repetitions=2)
        values = [0.1, 0.7, 0.3, 1.0, 0.2, 0.9]
        executions = [
            Execution(
                place // 2,
                f"s{place // 2}",
                place % 2,
                Output("x"),
                (MetricScore(0.5, {"criteria": {"depth": {"value": values[place], "agreement": values[place]}}}),),
            )
            for place in order
        ]
        for execution in executions:
            tally.add([execution])
        return summarize_run(tally).metrics["rubric"].criteria

    assert tallied(range(6)) == tallied([3, 0, 5, 1, 4, 2])
