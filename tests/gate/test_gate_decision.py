import pytest

from deemster.errors import ConfigurationError
from deemster.gate import Allowance, check_gate_names, decide_gate, read_allowance, read_gate
from deemster.gate.gate_decision import check_names
from deemster.records import Execution, MetricScore, Output, Usage
from deemster.results.mark_table import MarkTable
from deemster.results.run_summary import summarize_run
from tests.builders.marks import mark
from tests.results.make_runs_of_marks import cards

NAMES = {"m0": "m0", "m1": "m1", "first": "m0"}


class Suite:
    """Knows the place of every value."""

    def where(self, path):
        return "suite.yml#" + "/".join(map(str, path[1:]))


def gate_of(section):
    return read_gate(section, document=Suite())


def summary_of(rows, tags=None, usage=None):
    tally = MarkTable(cards(len(rows[0])), samples=len(rows), repetitions=1)
    for position in range(len(rows)):
        tally.tag(position, (tags or {}).get(position, ()))
    answer = Output("x", usage=usage)
    tally.add([Execution(at, f"s{at}", 0, answer, tuple(map(mark, row))) for at, row in enumerate(rows)])
    return summarize_run(tally)


def statuses(section, summary):
    decision = decide_gate(gate_of(section), summary, metrics=NAMES)
    return decision.decision, {check.name: check.status for check in decision.checks}


ROWS = [[1.0, 1.0], [1.0, 0.0], [1.0, 0.4], [0.0, 1.0]]


def test_gate_without_rules_passes_with_no_check():
    decision = decide_gate(gate_of({}), summary_of(ROWS), metrics=NAMES)
    assert (decision.decision, decision.checks) == ("pass", ())


def test_each_absolute_rule_yields_a_check():
    section = {
        "min_macro_f1": 0.6,
        "min_pass_rate": 0.5,
        "metrics": {"m0": {"min_pass_rate": 0.75}, "m1": {"min_mean": 0.7}},
        "max_unscored": 0,
    }
    assert statuses(section, summary_of(ROWS)) == (
        "fail",
        {
            "min_macro_f1": "pass",
            "min_pass_rate": "fail",
            "metrics.m0.min_pass_rate": "pass",
            "metrics.m1.min_mean": "fail",
            "max_unscored": "pass",
        },
    )


def test_value_equal_to_bound_passes():
    assert statuses({"min_macro_f1": 0.625}, summary_of(ROWS))[0] == "pass"


def test_value_that_equals_bound_as_a_fraction_passes():
    half = 0.3 / (0.1 + 0.2 + 0.3)
    assert half < 0.5
    rows = [[half, half]] * 3
    assert statuses({"metrics": {"m0": {"min_mean": 0.5}}}, summary_of(rows))[0] == "pass"
    assert statuses({"metrics": {"m0": {"min_mean": 0.5 + 1e-9}}}, summary_of(rows))[0] == "fail"


def test_on_lower_compares_the_lower_end_of_the_interval():
    summary = summary_of(ROWS)
    assert statuses({"metrics": {"m0": {"min_pass_rate": 0.7}}}, summary)[0] == "pass"
    decision = decide_gate(gate_of({"metrics": {"m0": {"min_pass_rate": 0.7, "on": "lower"}}}), summary, metrics=NAMES)
    (check,) = decision.checks
    assert check.status == "fail"
    assert check.observed == 0.75
    assert check.low < 0.7 < check.high


def test_metric_may_be_named_by_its_spec():
    assert statuses({"metrics": {"first": {"min_pass_rate": 0.7}}}, summary_of(ROWS))[0] == "pass"


def test_mean_without_scores_fails():
    decision = decide_gate(gate_of({"metrics": {"m1": {"min_mean": 0.1}}}), summary_of([[1.0, None]]), metrics=NAMES)
    assert decision.decision == "fail"
    assert decision.checks[0].observed is None
    assert "scored nothing" in decision.checks[0].because


def test_small_cohort_is_reported_not_gated():
    tags = {0: ("a",), 1: ("a",), 2: ("b",), 3: ("b",)}
    section = {"cohorts": {"a": {"min_pass_rate": 0.9}, "*": {"min_samples": 3}}}
    assert statuses(section, summary_of(ROWS, tags)) == ("pass", {"cohorts.a.min_pass_rate": "skipped"})


def test_cohort_of_exactly_min_samples_is_gated():
    tags = {0: ("a",), 1: ("a",), 2: ("b",), 3: ("b",)}
    section = {"cohorts": {"a": {"min_pass_rate": 0.9}, "*": {"min_samples": 2}}}
    assert statuses(section, summary_of(ROWS, tags)) == ("fail", {"cohorts.a.min_pass_rate": "fail"})


def test_star_rule_applies_to_cohorts_without_own_rule():
    tags = {0: ("a",), 1: ("a",), 2: ("b",)}
    section = {"cohorts": {"*": {"min_macro_f1": 0.6}, "b": {"min_macro_f1": 0.5}}}
    assert statuses(section, summary_of(ROWS, tags)) == (
        "fail",
        {
            "cohorts.a.min_macro_f1": "pass",
            "cohorts.(untagged).min_macro_f1": "fail",
            "cohorts.b.min_macro_f1": "pass",
        },
    )


def test_rule_of_untagged_samples_leaves_tag_of_that_name_alone():
    tags = {0: ("(untagged)",), 1: ("a",), 2: ("a",)}
    section = {"cohorts": {"(untagged)": {"min_macro_f1": 0.9}, '"(untagged)"': {"min_macro_f1": 0.1}}}
    assert statuses(section, summary_of(ROWS, tags)) == (
        "fail",
        {'cohorts."(untagged)".min_macro_f1': "pass", "cohorts.(untagged).min_macro_f1": "fail"},
    )


def test_rule_may_bound_metric_of_cohort():
    section = {"cohorts": {"a": {"metrics": {"m1": {"min_mean": 0.9}}}}}
    assert statuses(section, summary_of(ROWS, {0: ("a",), 1: ("a",)})) == (
        "fail",
        {"cohorts.a.metrics.m1.min_mean": "fail"},
    )


def test_cost_with_unpriced_calls_is_inconclusive():
    summary = summary_of(ROWS, usage=Usage(calls=1))
    assert statuses({"budget": {"max_cost_usd": 5}}, summary)[1] == {"budget.max_cost_usd": "inconclusive"}
    assert statuses({"budget": {"max_cost_usd": 5}}, summary)[0] == "pass"
    assert statuses({"budget": {"max_cost_usd": 5}, "decision": "three-way"}, summary)[0] == "inconclusive"


def test_cost_and_latency_above_budget_fail():
    summary = summary_of(ROWS, usage=Usage(calls=1, cost_usd=0.5, latency_ms=2500))
    assert statuses({"budget": {"max_cost_usd": 2, "max_p95_latency_s": 2}}, summary) == (
        "fail",
        {"budget.max_cost_usd": "pass", "budget.max_p95_latency_s": "fail"},
    )


@pytest.mark.parametrize(
    ("text", "expected"), [(3, (3, False)), ("3", (3, False)), ("2%", (0.02, True)), ("2.5 %", (0.025, True))]
)
def test_allowance_is_a_count_or_a_share(text, expected):
    assert read_allowance(text) == Allowance(*expected)


@pytest.mark.parametrize("bad", [-1, "-1", "x", 1.5, True, None, "200%", "%"])
def test_invalid_allowance_is_error(bad):
    with pytest.raises(ConfigurationError, match="allowance"):
        read_allowance(bad)


def test_share_counts_all_marks():
    assert not Allowance(0.02, share=True).exceeded(2, 100)
    assert Allowance(0.02, share=True).exceeded(3, 100)
    assert Allowance(0, share=False).exceeded(1, 100)


@pytest.mark.parametrize(("share", "unscored", "marks"), [("5.6%", 7, 125), ("11.2%", 14, 125), ("0.1%", 1, 1000)])
def test_unscored_share_equal_to_allowance_passes(share, unscored, marks):
    assert not read_allowance(share).exceeded(unscored, marks)
    assert read_allowance(share).exceeded(unscored + 1, marks)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"min_macro": 0.5}, "gate: `min_macro` is no key of the gate. Did you mean `min_macro_f1`?"),
        ({"min_macro_f1": 1.5}, "gate.min_macro_f1 must be a number from 0 to 1, not 1.5."),
        ({"min_macro_f1": True}, "gate.min_macro_f1 must be a number from 0 to 1, not a boolean."),
        ({"metrics": ["m0"]}, "gate.metrics must be a map, not a list."),
        (
            {"metrics": {"m0": {"min_men": 1}}},
            "gate.metrics.m0: `min_men` is no key of the rules of a metric. Did you mean `min_mean`?",
        ),
        (
            {"metrics": {"m0": {"min_mean": 0.5, "on": "high"}}},
            "gate.metrics.m0.on must be one of `corrected`, `corrected-lower`, `lower`, `point`, not `high`.",
        ),
        (
            {"cohorts": {"a": {"min_samples": 1.5}}},
            "gate.cohorts.a.min_samples must be a whole number of at least 0, not 1.5.",
        ),
        ({"decision": "maybe"}, "gate.decision must be `three-way` or `two-way`, not `maybe`."),
        ({"budget": {"max_cost_usd": -1}}, "gate.budget.max_cost_usd must be a number of at least 0, not -1."),
        ([], "gate must be a map, not a list."),
        (None, "gate must be a map, not null."),
    ],
)
def test_invalid_rule_is_error(section, message):
    with pytest.raises(ConfigurationError) as raised:
        gate_of(section)
    assert [fault.message for fault in raised.value.issues] == [message]


def test_rules_about_unknown_metrics_and_cohorts_are_errors_before_anything_runs():
    gate = gate_of(
        {"metrics": {"m9": {"min_mean": 0.5}}, "cohorts": {"polcy": {"min_pass_rate": 0.5, "min_samples": 2}}}
    )
    with pytest.raises(ConfigurationError) as raised:
        check_gate_names(gate, metrics=NAMES, cohorts=["policy", None])
    text = str(raised.value)
    assert "the metric `m9`" in text
    assert "the cohort `polcy`, which the dataset does not have. Did you mean `policy`?" in text


def test_latency_of_only_some_answers_is_inconclusive():
    tally = MarkTable(cards(1), samples=2, repetitions=1)
    for position in range(2):
        tally.tag(position, ())
    answers = (Output("x", usage=Usage(latency_ms=5)), Output("x"))
    tally.add([Execution(at, f"s{at}", 0, answer, (MetricScore(1.0),)) for at, answer in enumerate(answers)])
    decision = decide_gate(gate_of({"budget": {"max_p95_latency_s": 1}}), summarize_run(tally), metrics=NAMES)
    assert [(check.status, check.because) for check in decision.checks] == [
        ("inconclusive", "only 1 of 2 answers have a latency")
    ]


def test_cost_of_only_some_answers_is_lower_bound():
    tally = MarkTable(cards(1), samples=2, repetitions=1)
    for position in range(2):
        tally.tag(position, ())
    answers = (Output("x", usage=Usage(cost_usd=0.001)), Output("x"))
    tally.add([Execution(at, f"s{at}", 0, answer, (MetricScore(1.0),)) for at, answer in enumerate(answers)])
    decision = decide_gate(gate_of({"budget": {"max_cost_usd": 1}}), summarize_run(tally), metrics=NAMES)
    assert [(check.status, check.because) for check in decision.checks] == [
        ("inconclusive", "1 answer without usage, so the cost is a floor")
    ]


def test_on_lower_at_root_applies_to_run_bounds():
    summary = summary_of(ROWS)
    assert statuses({"min_macro_f1": 0.6}, summary)[0] == "pass"
    assert statuses({"min_macro_f1": 0.6, "on": "lower"}, summary)[0] == "fail"


def test_rules_about_metrics_that_were_left_out_are_skipped():
    gate = gate_of({"metrics": {"m9": {"min_mean": 0.5}}})._replace(idle=frozenset({"m9"}))
    check_gate_names(gate, metrics=NAMES, cohorts=[None])
    decision = decide_gate(gate, summary_of(ROWS), metrics=NAMES)
    assert [(check.name, check.status, check.observed) for check in decision.checks] == [
        ("metrics.m9.min_mean", "skipped", None)
    ]


def test_names_of_checks_are_known_before_the_run():
    section = {
        "min_macro_f1": 0.6,
        "metrics": {"m0": {"min_mean": 0.5}},
        "cohorts": {"*": {"min_pass_rate": 0.5, "metrics": {"m1": {"min_mean": 0.1}}}, "b": {"min_pass_rate": 0.1}},
    }
    summary = summary_of(ROWS, tags={0: ("a",), 1: ("b",), 2: ("a", "b")})
    cohorts = [None if cohort.label == "(untagged)" else cohort.label for cohort in summary.cohorts]
    made = [check.name for check in decide_gate(gate_of(section), summary, metrics=NAMES).checks]
    assert check_names(gate_of(section), cohorts) == made
    assert check_names(gate_of({**section, "baseline": {"margin": 0.1}}), cohorts) == [*made, "baseline"]
