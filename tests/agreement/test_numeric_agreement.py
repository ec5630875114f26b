"""Numeric criteria: agreement of numbers against pingouin, scipy and direct computation, intervals, and the answer."""

from __future__ import annotations

import math
import random
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deemster.agreement import (
    BootstrapSettings,
    MetricsResult,
    NumericCriterionMetrics,
    compare_judges,
    compute_metrics,
)
from deemster.datasets import RubricDataset, Votes, with_ground_truth
from deemster.errors import InputError
from deemster.text.markdown_layout import render_markdown
from tests.agreement.make_votes import FACTS, votes_value
from tests.builders.arguments import agreement_arguments

GRADE = {"name": "grade", "requirement": "How good is it?", "minimum": 1, "maximum": 5}
TONE = {
    "name": "tone",
    "requirement": "Which tone?",
    "scale_type": "nominal",
    "options": [{"label": "warm"}, {"label": "cold"}],
}


def clip(number):
    return min(5.0, max(1.0, number))


def table(seed, *, documents=12, systems=6, noise=0.5, shift=0.2):
    """A table as of SummEval: every system answers every document; people's mean and two judges grade each answer."""
    rng = random.Random(seed)
    rows = []
    for document in range(documents):
        hard = rng.gauss(0, 0.4)
        for system in range(systems):
            truth = round(clip(rng.gauss(2.2 + 0.3 * system + hard, 0.6)) * 3) / 3
            judges = [clip(round(2 * (truth + shift + rng.gauss(0, noise))) / 2) for _ in range(2)]
            rows.append((f"d{document}", f"s{system}", truth, *judges))
    return pd.DataFrame(rows, columns=["document", "system", "truth", "a", "b"])


def votes_of(frame, *, more=(), **changes):
    items = [
        {
            "id": f"{row.document}-{row.system}",
            "metadata": {"document": row.document, "system": row.system},
            "ground_truth": [row.truth, *more],
            "votes": {"a": [row.a, *more], "b": [row.b, *more]},
        }
        for row in frame.itertuples()
    ]
    criteria = changes.pop("criteria", (GRADE,))
    return Votes.parse(votes_value(items, criteria=criteria, judges="ab", **changes))


def numeric(votes, **options):
    result = compute_metrics(votes, **agreement_arguments(**{"replicates": 50, **options}))
    return next(part for part in result.per_criterion if isinstance(part, NumericCriterionMetrics))


@pytest.mark.parametrize("seed", range(4))
def test_icc_and_alpha_are_those_of_pingouin(seed):
    pingouin = pytest.importorskip("pingouin")
    frame = table(seed)
    frame["final"] = frame[["a", "b"]].mean(axis=1)
    found = numeric(votes_of(frame))
    frame["item"] = frame.document + frame.system
    for raters, own in ((["truth", "final"], found.icc), (["a", "b"], found.judge_icc)):
        long = frame.melt(id_vars="item", value_vars=raters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = pingouin.intraclass_corr(long, targets="item", raters="variable", ratings="value")
        ours = [own.icc_1_1, own.icc_2_1, own.icc_3_1, own.icc_1_k, own.icc_2_k, own.icc_3_k]
        assert ours == pytest.approx(expected["ICC"].tolist(), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_errors_and_correlations_are_computed_directly(seed):
    frame = table(seed)
    x, t = frame[["a", "b"]].mean(axis=1).to_numpy(), frame.truth.to_numpy()
    found = numeric(votes_of(frame))
    apart = x - t
    assert found.n_samples == len(frame)
    assert (found.rmse, found.mae) == pytest.approx((math.sqrt((apart**2).mean()), np.abs(apart).mean()), abs=1e-12)
    assert found.bias.mean_bias == pytest.approx(apart.mean(), abs=1e-12)
    assert found.bias.p_value == pytest.approx(stats.ttest_1samp(apart, 0).pvalue, rel=1e-6)
    spread = stats.norm.ppf(0.975) * apart.std(ddof=1)
    limits = (apart.mean() - spread, apart.mean() + spread)
    assert (found.limits.lower, found.limits.upper) == pytest.approx(limits, abs=1e-9)
    lin = 2 * np.cov(x, t, ddof=0)[0, 1] / (x.var() + t.var() + (x.mean() - t.mean()) ** 2)
    assert found.concordance == pytest.approx(lin, abs=1e-12)
    assert found.pearson.coefficient == pytest.approx(stats.pearsonr(x, t).statistic, abs=1e-12)
    assert found.spearman.coefficient == pytest.approx(stats.spearmanr(x, t).statistic, abs=1e-12)
    assert found.kendall.coefficient == pytest.approx(stats.kendalltau(x, t).statistic, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_levels_are_those_of_a_direct_computation(seed):
    frame = table(seed, noise=1.0)
    frame["final"] = frame[["a", "b"]].mean(axis=1)
    found = numeric(votes_of(frame), group="document", system="system")
    functions = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    by_system = frame.groupby("system")[["final", "truth"]].mean()
    for name, function in functions.items():
        inside = [function(part.final, part.truth).statistic for _, part in frame.groupby("document")]
        assert getattr(found.sample_level, name) == pytest.approx(np.mean(inside), abs=1e-9)
        assert getattr(found.system_level, name) == pytest.approx(
            function(by_system.final, by_system.truth).statistic, abs=1e-9
        )
    assert (found.sample_level.key, found.sample_level.n_groups) == ("document", 12)
    assert (found.system_level.key, found.system_level.n_groups) == ("system", 6)
    assert {"sample_level.spearman", "system_level.pearson"} <= found.intervals.keys()


def test_groups_without_a_correlation_are_left_out_and_missing_keys_are_no_group():
    frame = table(3, documents=4)
    frame.loc[frame.document == "d0", "truth"] = 3.0
    value = votes_of(frame).to_dict()
    for item in value["items"]:
        if item["id"].startswith("d1-"):
            del item["metadata"]["document"]
    found = numeric(Votes.parse(value), group="document")
    assert found.sample_level.n_groups == 2
    assert found.system_level is None
    with pytest.raises(InputError, match="No item's metadata has `doc` to group by"):
        compute_metrics(Votes.parse(value), group="doc")


def test_more_items_than_are_ranked_in_replicates_give_nearly_the_same_intervals():
    few, many = table(5, documents=80), table(5, documents=100)
    one, other = (numeric(votes_of(frame), replicates=400).intervals["spearman"] for frame in (few, many))
    # Imagined items move no expansion.
    assert other.ci.width == pytest.approx(one.ci.width, rel=0.4)


def test_intervals_hold_their_estimates_and_have_a_width_even_without_any_error():
    frame = table(1, noise=0.0, shift=0.0)
    frame["a"] = frame["b"] = frame["truth"]
    found = numeric(votes_of(frame), replicates=300)
    assert (found.concordance, found.rmse) == (pytest.approx(1.0), 0.0)
    assert found.intervals["concordance"].ci.lower < 0.999
    assert found.intervals["rmse"].ci.upper > 0.01
    for result in numeric(votes_of(table(2)), replicates=300, group="document", system="system").intervals.values():
        assert result.ci.lower <= result.estimate <= result.ci.upper


def test_concordance_interval_holds_its_level():
    covered = runs = 0
    truth = None
    for seed in range(40):
        frame = table(seed + 100, documents=5, noise=0.6, shift=0.0)
        if truth is None:
            whole = table(999, documents=800, noise=0.6, shift=0.0)
            truth = numeric(votes_of(whole), replicates=1).concordance
        ci = numeric(votes_of(frame), replicates=200).intervals["concordance"].ci
        covered += ci.lower <= truth <= ci.upper
        runs += 1
    assert covered / runs >= 0.88


def test_numbers_and_verdicts_stand_side_by_side():
    frame = table(4)
    both = votes_of(frame, more=("MET",), criteria=(GRADE, FACTS))
    alone, mixed = numeric(votes_of(frame)), compute_metrics(both, bootstrap=BootstrapSettings(replicates=50))
    first, second = mixed.per_criterion
    assert (first.index, second.index, second.accuracy) == (0, 1, 1.0)
    assert first.concordance == alone.concordance
    assert (mixed.n_numeric_criteria, mixed.n_criteria, mixed.criterion_accuracy) == (1, 2, 1.0)
    assert mixed.mean_concordance == pytest.approx(first.concordance)
    assert mixed.coverage_stats.n_total == 2 * len(frame)


def test_abstentions_lower_coverage_or_count_as_the_worst_end():
    frame = table(4, documents=5)
    value = votes_of(frame).to_dict()
    for item in value["items"][:6]:
        item["votes"] = {"a": ["CANNOT_ASSESS"], "b": ["CANNOT_ASSESS"]}
    votes = Votes.parse(value)
    found = numeric(votes)
    assert (found.n_samples, found.coverage_stats.coverage) == (24, 0.8)
    worst = numeric(votes, na_mode="as_unmet")
    assert (worst.n_samples, worst.coverage_stats) == (30, None)
    assert worst.bias.mean_bias < found.bias.mean_bias
    with pytest.raises(InputError, match="does not fit the numeric criterion `grade`"):
        compute_metrics(votes, na_mode="as_category")


def people_of(frame, seed, spread=0.3):
    rng = random.Random(seed)
    value = votes_of(frame).to_dict()
    for item in value["items"]:
        truth = item.pop("ground_truth")[0]
        item["annotations"] = {name: [round(clip(truth + rng.gauss(0, spread)), 2)] for name in "xyz"}
    return Votes.parse(value)


def test_annotators_have_interval_alpha_and_the_annotator_test():
    krippendorff = pytest.importorskip("krippendorff")
    votes = people_of(table(8), 1)
    result = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=50))
    labels = np.stack([labels.numbers[0] for labels in votes.blocks[0].annotations.values()])
    expected = krippendorff.alpha(labels, level_of_measurement="interval")
    assert result.human.per_criterion[0].krippendorff_alpha == pytest.approx(expected, abs=1e-9)
    assert result.human.annotator_tests["grade"].n == 3
    assert any(note.startswith("annotator-test") for note in result.verdict.notes)


def test_answer_follows_the_lower_end_of_concordance():
    answers = {}
    for noise in (0.1, 0.75, 2.5):
        result = compute_metrics(votes_of(table(2, documents=20, noise=noise, shift=0.0)))
        floor = result.intervals["mean_concordance"].ci.lower
        assert result.verdict.floor == floor
        expected = "yes" if floor >= 0.61 else "with care" if floor >= 0.41 else "not yet"
        answers[noise] = result.verdict.answer
        assert answers[noise] == expected or (expected, answers[noise]) == ("yes", "with care")
    assert answers[0.1] == "yes"
    assert answers[2.5] == "not yet"
    without = compute_metrics(votes_of(table(2)), bootstrap=BootstrapSettings(replicates=0)).verdict
    assert (without.answer, without.reasons) == (None, ("no-interval: mean concordance has no interval",))


def test_lower_of_kappa_and_concordance_decides():
    frame = table(2, documents=20, noise=0.1, shift=0.0)
    value = votes_of(frame, more=("MET",), criteria=(GRADE, FACTS)).to_dict()
    rng = random.Random(1)
    for item in value["items"]:
        item["ground_truth"][1] = rng.choice(["MET", "UNMET"])
        for cells in item["votes"].values():
            cells[1] = rng.choice(["MET", "UNMET"])
    result = compute_metrics(Votes.parse(value))
    assert result.verdict.floor == result.intervals["mean_kappa"].ci.lower
    assert result.verdict.answer == "not yet"


def test_result_is_written_read_and_rendered(tmp_path):
    result = compute_metrics(
        votes_of(table(2)),
        bootstrap=BootstrapSettings(replicates=50),
        per_judge=True,
        group="document",
        system="system",
    )
    result.save(tmp_path / "r.json")
    assert MetricsResult.from_file(tmp_path / "r.json") == result
    row = result.to_dataframe().set_index("level").loc["criterion"]
    found = result.per_criterion[0]
    assert (row.concordance, row.icc_2_1, row.lower_limit) == (found.concordance, found.icc.icc_2_1, found.limits.lower)
    assert (row.sample_kendall, row.system_pearson) == (found.sample_level.kendall, found.system_level.pearson)
    assert row.concordance_low == found.intervals["concordance"].ci.lower
    summary, page = result.summary(), render_markdown(result.sections())
    assert "\nNumeric criteria\n" in summary
    assert "\nCorrelations of numbers\n" in summary
    assert "## Numeric criteria" in page
    assert "## Correlations of numbers" in page


def test_judges_are_compared_by_score_where_all_is_numeric():
    found = compare_judges(votes_of(table(2)), None, "a", "b", bootstrap=BootstrapSettings(replicates=50, seed=1))
    assert found.per_criterion == ()
    assert found.accuracy.a is None
    assert found.score_rmse.a is not None


def test_dataset_labels_are_the_truth_of_numbers():
    frame = table(2, documents=3)
    votes = votes_of(frame)
    items = [
        {"id": name, "submission": "s", "ground_truth": [truth]} for name, truth in zip(votes.ids, frame.a, strict=True)
    ]
    labels = RubricDataset(items, rubric={"criteria": [GRADE]})
    assert numeric(with_ground_truth(votes, labels)).bias.mean_bias == pytest.approx(((frame.b - frame.a) / 2).mean())


def test_nominal_criterion_without_values_prints_neither_bias_nor_rmse():
    items = [
        {"id": f"q{at}", "ground_truth": [said], "votes": {"a": [said if at % 5 else "cold"]}}
        for at, said in enumerate(["warm", "cold"] * 20)
    ]
    result = compute_metrics(
        Votes.parse(votes_value(items, criteria=(TONE,), judges="a")),
        bootstrap=BootstrapSettings(replicates=50),
        per_judge=True,
    )
    assert result.per_criterion[0].kappa is not None
    assert (result.score_rmse, result.bias.mean_bias, result.bias.n_samples) == (None, None, 0)
    page = render_markdown(result.sections())
    for text in (result.summary(), page):
        assert "RMSE" not in text
        assert "bias" not in text.lower().replace("a significant bias of medium", "")
    assert not [warning for warning in result.warnings if warning.startswith("no-scores")]
