"""The reproductions of the audit of November 2026 that tried what was ordered, and the test of each."""

from __future__ import annotations

from typing import Any

import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from tests.reproductions.held_by import missing_tests

GUIDES = (
    "test_code_of_every_row_gives_what_the_page_says",
    "test_deliberate_difference_follows_specification",
)
HELD = {
    "000 ordinal-distance: a positional list gives a bare TypeError": (
        "test_metric_that_cannot_be_made_is_answered_with_what_works",
    ),
    "000 aggregation: cohort tables lack the mean": ("test_cohort_tables_have_the_mean_beside_the_pass_rate",),
    "001 metric contract: a name() method, a class object, module.Class": (
        "test_metric_that_cannot_be_made_is_answered_with_what_works",
        "test_path_with_a_dot_is_answered_with_the_spelling_that_works",
    ),
    "001 resolver: an instance cannot be bound under an alias": (
        "test_code_of_every_row_gives_what_the_page_says",
        "test_instance_is_bound_under_an_alias",
    ),
    "001 metrics catalog needs an extra": (
        "test_catalog_is_the_same_without_any_extra_and_names_those_that_metrics_need",
    ),
    "001 expected_output that is a number": ("test_number_is_compared_as_text",),
    "001 regex with other PCRE delimiters": (
        "test_delimiters_of_pcre_are_read",
        "test_unknown_modifier_is_an_error",
    ),
    "002 polarity and threshold as class attributes": (
        "test_class_attributes_of_a_metric_count_for_the_marks_it_returns",
    ),
    "004 ordinal options whose values neither rise nor fall": (
        "test_values_that_neither_rise_nor_fall_are_taken_as_listed_with_a_warning",
    ),
    "004 score_pearson: p of three pairs": ("test_pearson_of_three_pairs_has_a_p_value",),
    "004 bias.ci of equal scores": GUIDES,
    "004 bootstrap=percentile of a perfect judge": (
        "test_plain_percentiles_of_a_perfect_judge_are_those_of_other_tools",
    ),
    "004 rmse_ci of one scored item": ("test_percentile_interval_of_one_item_is_its_value",),
    "004 na_kappa pools criteria without an NA option": ("test_na_kappa_pools_criteria_with_an_na_option",),
    "004 model_dump, model_dump_json": GUIDES,
    "004 Fleiss and alpha with NA votes, ordinal and nominal": GUIDES,
    "004 Spearman and Kendall of places": GUIDES,
    "004 n_options": GUIDES,
    "004 spurious NA column": ("test_abstention_that_nobody_gave_is_no_class",),
    "004 criterion with two NA options": (
        "test_abstention_that_was_voted_is_kept_where_there_are_two",
        "test_panel_keeps_the_na_option_that_was_voted_where_another_judge_failed",
    ),
    "004 confusion_matrix without a pair": ("test_confusion_matrix_without_a_pair_is_of_zeros",),
    "also seen: the dead link": ("test_every_link_between_documents_has_target",),
    "also seen: contradicting warnings of a single item": ("test_warnings_of_a_single_item_agree",),
    "also seen: equal rubrics under different keys": ("test_equal_rubrics_under_several_keys_are_one_rubric",),
    "also seen: 0.49999999999 is shown as 0.5 and not passed": ("test_score_that_is_shown_as_a_half_passes",),
}
BINARY = {"name": "right", "requirement": "It is right."}
SCALE = {
    "name": "grade",
    "requirement": "How good?",
    "options": [{"label": str(place), "value": place / 4} for place in range(5)],
}
WITH_NA = {**SCALE, "options": [*SCALE["options"], {"label": "NA", "na": True}]}
TWO_NA = {
    "name": "kind",
    "requirement": "Which?",
    "scale_type": "nominal",
    "options": [
        {"label": "x", "value": 0},
        {"label": "y", "value": 1},
        {"label": "NA1", "na": True},
        {"label": "NA2", "na": True},
    ],
}


class Named:
    """A metric as another tool has it: its name is a method."""

    def name(self) -> str:
        return "named"

    def score(self, _sample: dm.Sample, _output: dm.Output) -> dm.MetricScore:
        return dm.MetricScore(1.0)


class Almost:
    """A metric whose score is half but for rounding."""

    name = "almost"

    def score(self, _sample: dm.Sample, _output: dm.Output) -> dm.MetricScore:
        return dm.MetricScore(0.49999999999)


def report_of(metric: Any, expected: str, output: str) -> dm.Report:
    """The report of one sample with a tag."""
    sample = dm.Sample("one", {"question": "Which?"}, expected, {"tags": ["policy"]})
    return dm.evaluate([sample], target=lambda _input: output, metrics=[metric])


def score(metric: Any, expected: str, output: str) -> float | None:
    return next(iter(report_of(metric, expected, output).metrics.values())).mean


def metrics_of(
    criteria: list[dict], items: list[tuple[list, dict[str, list]]], method: str = "smoothed", **options: Any
) -> dm.agreement.MetricsResult:
    """What the votes of judges on items, each with its true labels, come to."""
    rows = [{"id": f"q{place}", "ground_truth": truth, "votes": votes} for place, (truth, votes) in enumerate(items)]
    judges = [{"id": judge} for judge in items[0][1]]
    votes = {"schema_version": "deemster.votes.v1", "rubric": {"criteria": criteria}, "judges": judges, "items": rows}
    return dm.compute_metrics(dm.Votes.parse(votes), bootstrap=dm.agreement.BootstrapSettings(method, 50), **options)


@pytest.mark.parametrize("reproduction", HELD)
def test_reproduction_is_held_by_tests_that_exist(reproduction):
    assert missing_tests(HELD[reproduction]) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: dm.metrics.OrdinalDistance(["low", "high"]), r"write OrdinalDistance\(scale=\.\.\.\)"),
        (lambda: report_of(Named(), "a", "b"), "`name` is a method: make it an attribute"),
        (lambda: report_of(Almost, "a", "b"), r"is a class; give an instance, such as `Almost\(\)`"),
    ],
    ids=["positional option", "name is a method", "class object"],
)
def test_metric_that_cannot_be_made_is_answered_with_what_works(make, said):
    with pytest.raises(ConfigurationError, match=said):
        make()


def test_path_with_a_dot_is_answered_with_the_spelling_that_works():
    with pytest.raises(ConfigurationError, match="has a colon before its name: `aggs:Tone`"):
        dm.judges.parse_metric("aggs.Tone")


def test_instance_is_bound_under_an_alias():
    assert list(report_of({"mine": Almost()}, "a", "b").metrics) == ["mine"]


def test_cohort_tables_have_the_mean_beside_the_pass_rate():
    report = report_of("rouge-l", "a b", "a c")
    assert report.cohorts["policy"].metrics["rouge-l"].mean == 0.5
    for text in (report.to_markdown(), report.to_html()):
        assert "rouge-l mean" in text


@pytest.mark.parametrize("pattern", ["#refund#i", "~refund~i", "{refund}i", "@refund@i", "!refund!i", "%refund%i"])
def test_delimiters_of_pcre_are_read(pattern):
    assert score("regex", pattern, "A Refund") == 1.0
    assert score("regex", pattern, "A fee") == 0.0


@pytest.mark.parametrize("pattern", ["/refund/q", "#refund#q"])
def test_unknown_modifier_is_an_error(pattern):
    with pytest.raises(ConfigurationError, match="has the flag `q`, which RE2 does not know"):
        score("regex", pattern, "A Refund")


def test_pearson_of_three_pairs_has_a_p_value():
    pearson = metrics_of([SCALE], [(["2"], {"a": ["2"]}), (["0"], {"a": ["2"]}), (["4"], {"a": ["4"]})]).score_pearson
    assert (pearson.n_samples, pearson.p_value) == (3, pytest.approx(1 / 3))


def test_percentile_interval_of_one_item_is_its_value():
    metrics = metrics_of([SCALE], [(["2"], {"a": ["4"]})], method="percentile")
    assert (metrics.score_rmse, metrics.bootstrap.rmse_ci) == (0.5, (0.5, 0.5))


def test_na_kappa_pools_criteria_with_an_na_option():
    items = [(["MET", "NA"], {"a": ["MET", "2"]}), (["UNMET", "2"], {"a": ["MET", "NA"]})]
    items.append((["UNMET", "NA"], {"a": ["MET", "NA"]}))
    # By hand, of the second criterion alone: 1 of 3 agree, and 5 of 9 would by chance.
    assert metrics_of([BINARY, WITH_NA], items).na_stats.kappa == pytest.approx((1 / 3 - 5 / 9) / (4 / 9))


def test_panel_keeps_the_na_option_that_was_voted_where_another_judge_failed():
    failed = {"failure": "infrastructure"}
    items = [(["NA2"], {"a": ["NA2"], "b": [failed]}), (["x"], {"a": ["x"], "b": ["x"]})]
    assert metrics_of([TWO_NA], items, na_mode="as_category").per_criterion[0].exact_accuracy == 1.0


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
def test_confusion_matrix_without_a_pair_is_of_zeros(kind):
    criterion = {**SCALE, "scale_type": kind}
    items = [(["0", "MET"], {"a": ["CANNOT_ASSESS", "MET"]})]
    matrix = metrics_of([criterion, BINARY], items).per_criterion[0].confusion_matrix
    assert matrix.matrix == ((0,) * 5,) * 5


def test_warnings_of_a_single_item_agree():
    metrics = metrics_of([SCALE], [(["2"], {"a": ["4"]})])
    assert any(warning.startswith("one-item: ") for warning in metrics.warnings)
    assert metrics.bootstrap.accuracy_ci is not None
    assert not any("no interval" in warning for warning in metrics.warnings)


def test_score_that_is_shown_as_a_half_passes():
    report = report_of(Almost(), "a", "b")
    almost = report.metrics["almost"]
    assert (almost.pass_rate, [bar.low for bar in report.histograms["almost"] if bar.count]) == (1.0, [0.5])
