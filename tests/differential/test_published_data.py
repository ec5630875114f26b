"""Judge validation on published data: our numbers against published tables, and against other code where none exists.

`tests/fixtures/published` holds the data: where they come from, their licences, and what was left out.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import krippendorff
import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn.metrics import accuracy_score, cohen_kappa_score, precision_recall_fscore_support

import deemster as dm
from deemster.agreement import annotator_tests

DATA = Path(__file__).parent.parent / "fixtures" / "published"
DIMENSIONS = ("coherence", "consistency", "fluency", "relevance")
EXPERTS = ("expert1", "expert2", "expert3")
WORKERS = ("worker1", "worker2", "worker3", "worker4", "worker5")


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def criterion(labels: Sequence[str], kind: str) -> dict[str, object]:
    options = [{"label": label, "value": place / (len(labels) - 1)} for place, label in enumerate(labels)]
    return {"name": "answer", "requirement": "Which answer?", "weight": 1, "scale_type": kind, "options": options}


def votes(items: list[dict[str, object]], judges: list[str], labels: Sequence[str], kind: str = "nominal") -> dm.Votes:
    """Votes on one criterion."""
    return dm.Votes.parse(
        {
            "schema_version": "deemster.votes.v1",
            "rubric": {"criteria": [criterion(labels, kind)]},
            "judges": [{"id": judge} for judge in judges],
            "items": items,
        }
    )


# LLMBar and MT-Bench: every pair of answers was shown twice, the second time in the other order.


def swapped_rows(folder: str, name: str) -> list[dict[str, str]]:
    return [row for row in rows(f"{folder}/verdicts.csv") if row["id"].rpartition("-")[0] == name]


PUBLISHED = [(folder, row) for folder in ("llmbar", "mt_bench") for row in rows(f"{folder}/statistics.csv")]
TITLES = [f"{table['set']}-{table['judge']}" for _, table in PUBLISHED]


@pytest.mark.parametrize(("folder", "table"), PUBLISHED, ids=TITLES)
def test_accuracies_of_swapped_pairs_are_those_of_the_published_table(folder, table):
    orders = (table["judge"], f"{table['judge']} swapped")
    chosen = swapped_rows(folder, table["set"])
    items = [
        {
            "id": row["id"],
            "ground_truth": [row["label"]],
            "votes": {order: [row[order] or {"failure": "parse"}] for order in orders},
        }
        for row in chosen
    ]
    found = votes(items, list(orders), "12")
    result = dm.compute_metrics(found, per_judge=True, bootstrap=dm.agreement.BootstrapSettings(replicates=50))
    right = [judge.criterion_accuracy * judge.n_samples for judge in result.per_judge.values()]
    assert right == pytest.approx([int(table["correct"]), int(table["correct_swapped"])])
    compared = dm.agreement.compare_judges(
        found, None, *orders, bootstrap=dm.agreement.BootstrapSettings(replicates=50)
    ).per_criterion[0]
    both = compared.accuracy_a * compared.n_samples - compared.only_a_right
    assert both == pytest.approx(int(table["correct_both"]))


@pytest.mark.parametrize(("folder", "table"), PUBLISHED, ids=TITLES)
def test_agreement_of_both_orders_is_that_of_the_published_table(folder, table):
    orders = (table["judge"], f"{table['judge']} swapped")
    first, second = ([row[order] for row in swapped_rows(folder, table["set"])] for order in orders)
    assert sum(a == b for a, b in zip(first, second, strict=True)) == int(table["equal"])
    kappa = dm.stats.cohen_kappa(first, second)
    # The table's formula knows two answers; a reply that could not be read is neither.
    if "" not in {*first, *second}:
        assert kappa.observed * kappa.n == pytest.approx(int(table["equal"]))
        assert kappa.value == pytest.approx(float(table["kappa_agreement"]), abs=1e-12)


@pytest.mark.parametrize(("folder", "table"), PUBLISHED, ids=TITLES)
def test_consistency_over_both_orders_is_that_of_the_published_table(folder, table):
    # A winner is named by its place in the data set; in the second order the first answer is shown second.
    place = ({"1": "first", "2": "second"}, {"1": "second", "2": "first"})
    judge, chosen = table["judge"], swapped_rows(folder, table["set"])
    items = [
        {
            "id": f"{row['id']} {order}",
            "metadata": {"pair": row["id"]},
            "ground_truth": [place[order][row["label"]]],
            "votes": {judge: [place[order].get(row[column], {"failure": "parse"})]},
        }
        for row in chosen
        for order, column in enumerate((judge, f"{judge} swapped"))
    ]
    found = votes(items, [judge], ("first", "second"))
    (bias,) = dm.compute_metrics(
        found, pair="pair", bootstrap=dm.agreement.BootstrapSettings(replicates=50)
    ).position_bias
    answers = [(row[judge], row[f"{judge} swapped"]) for row in chosen if row[judge] and row[f"{judge} swapped"]]
    assert bias.n_pairs == len(answers)
    assert bias.consistency * bias.n_pairs == pytest.approx(sum(a == b for a, b in answers))
    assert (bias.favours_first, bias.favours_second) == (answers.count(("1", "2")), answers.count(("2", "1")))
    if len(answers) == len(chosen):
        assert bias.consistency * bias.n_pairs == pytest.approx(int(table["equal"]))


# PandaLM: three annotators and two judges say which of two answers is better, or 0 for neither.

ANNOTATORS = ("annotator1", "annotator2", "annotator3")


def panda_votes(*, unreadable: str | None = None) -> dm.Votes:
    said = {"Tie": "0", "garbage": unreadable}
    judges = ("gpt-3.5-turbo", "pandalm-7b")
    items = [
        {
            "id": row["id"],
            "annotations": {name: [row[name]] for name in ANNOTATORS},
            "votes": {name: [said.get(row[name], row[name]) or {"failure": "parse"}] for name in judges},
        }
        for row in rows("pandalm/labels.csv")
    ]
    return votes(items, list(judges), "012")


def test_kappas_of_annotators_are_those_of_the_published_table():
    labels = {name: [row[name] for row in rows("pandalm/labels.csv")] for name in ANNOTATORS}
    kappas = [round(dm.stats.cohen_kappa(labels[a], labels[b]).value, 2) for a, b in combinations(ANNOTATORS, 2)]
    assert kappas == [0.85, 0.88, 0.86]


def test_consensus_of_annotators_has_the_published_distribution():
    result = dm.compute_metrics(
        panda_votes(), bootstrap=dm.agreement.BootstrapSettings(replicates=50), judges=["pandalm-7b"]
    )
    assert [option.support_true for option in result.per_criterion[0].per_option] == [105, 422, 472]
    assert result.human.disputed == ()


@pytest.mark.parametrize("judge", ["gpt-3.5-turbo", "pandalm-7b"])
def test_accuracy_and_macro_scores_of_judges_equal_another_implementation(judge):
    # A reply that could not be read counts as a tie here, so that every pair of answers counts.
    table = rows("pandalm/labels.csv")
    said = [{"Tie": "0", "garbage": "0"}.get(row[judge], row[judge]) for row in table]
    truth = [Counter(row[name] for name in ANNOTATORS).most_common(1)[0][0] for row in table]
    expected = precision_recall_fscore_support(truth, said, average="macro")[:3]
    result = dm.compute_metrics(
        panda_votes(unreadable="0"), judges=[judge], bootstrap=dm.agreement.BootstrapSettings(replicates=50)
    )
    options = result.per_criterion[0].per_option
    macro = [fmean(getattr(option, name) for option in options) for name in ("precision", "recall", "f1")]
    assert result.criterion_accuracy == pytest.approx(accuracy_score(truth, said), abs=1e-12)
    assert macro == pytest.approx(expected, abs=1e-12)


def test_unreadable_reply_is_left_out_and_counted():
    result = dm.compute_metrics(
        panda_votes(), judges=["gpt-3.5-turbo"], bootstrap=dm.agreement.BootstrapSettings(replicates=50)
    )
    assert (result.n_samples, result.coverage_stats.n_errored) == (974, 25)
    assert result.coverage_stats.coverage == 974 / 999


def alternative_annotator_loop(judge: list[str | None], people: dict[str, list[str]], *, epsilon: float, q: float):
    """The winning rate and the advantage probability, by the words of Calderon, Reichart, Dror (2025)."""
    p_values, advantages = [], []
    for left_out, own in people.items():
        others = [labels for name, labels in people.items() if name != left_out]
        judge_wins, person_wins = [], []
        for place, said in enumerate(judge):
            if said is None:
                continue
            mine, theirs = (fmean(label == labels[place] for labels in others) for label in (said, own[place]))
            judge_wins.append(mine >= theirs)
            person_wins.append(theirs >= mine)
        differences = np.subtract(person_wins, judge_wins, dtype=float)
        p_values.append(scipy_stats.ttest_1samp(differences, epsilon, alternative="less").pvalue)
        advantages.append(fmean(judge_wins))
    m = len(p_values)
    limit = q / sum(1 / rank for rank in range(1, m + 1))
    ranks = [rank for rank, p_value in enumerate(sorted(p_values), 1) if p_value <= rank / m * limit]
    return max(ranks, default=0) / m, fmean(advantages)


@pytest.mark.parametrize("judge", ["gpt-3.5-turbo", "pandalm-7b"])
@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3])
def test_alternative_annotator_test_equals_a_loop_over_the_labels(judge, epsilon):
    table = rows("pandalm/labels.csv")
    said = [{"Tie": "0", "garbage": None}.get(row[judge], row[judge]) for row in table]
    people = {name: [row[name] for row in table] for name in ANNOTATORS}
    found = annotator_tests(panda_votes(), judge=judge, epsilon=epsilon)["answer"]
    expected = alternative_annotator_loop(said, people, epsilon=epsilon, q=0.05)
    assert (found.value, found.advantage) == pytest.approx(expected, abs=1e-12)


def test_some_judge_passes_the_test_and_some_judge_fails_it():
    found = [
        annotator_tests(panda_votes(), judge="gpt-3.5-turbo", epsilon=epsilon)["answer"].passes
        for epsilon in (0.1, 0.3)
    ]
    assert found == [False, True]


# SummEval: twelve systems summarise a hundred documents; three experts and five crowd workers rate every summary.


def summary_votes(dimension: str, judge: str, people: tuple[str, ...]) -> dm.Votes:
    """A crowd worker as the judge; items of one document are a cluster."""
    place = DIMENSIONS.index(dimension)
    items = [
        {
            "id": f"{int(row['document']):03d} {row['system']}",
            "metadata": {"document": row["document"]},
            "annotations": {name: [row[name][place]] for name in people},
            "votes": {judge: [row[judge][place]]},
        }
        for row in rows("summeval/labels.csv")
    ]
    return votes(items, [judge], "12345", "ordinal")


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_alpha_of_experts_equals_another_implementation(dimension):
    place = DIMENSIONS.index(dimension)
    data = [[int(row[name][place]) for row in rows("summeval/labels.csv")] for name in EXPERTS]
    alpha = krippendorff.alpha(data, level_of_measurement="ordinal", value_domain=[1, 2, 3, 4, 5])
    result = dm.compute_metrics(
        summary_votes(dimension, "worker1", EXPERTS), bootstrap=dm.agreement.BootstrapSettings(replicates=50)
    )
    assert result.human.per_criterion[0].krippendorff_alpha == pytest.approx(alpha, abs=1e-12)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("judge", WORKERS)
def test_bias_of_clustered_summaries_is_the_t_test_of_document_means(dimension, judge):
    # All documents have twelve summaries, and then the cluster-robust test is this one.
    place = DIMENSIONS.index(dimension)
    differences: dict[str, list[float]] = {}
    for row in rows("summeval/labels.csv"):
        differences.setdefault(row["document"], []).append((int(row[judge][place]) - int(row["expert1"][place])) / 4)
    means = [fmean(each) for each in differences.values()]
    expected = scipy_stats.ttest_1samp(means, 0)
    found = summary_votes(dimension, judge, ("expert1",))
    bias = dm.compute_metrics(found, cluster="document", bootstrap=dm.agreement.BootstrapSettings(replicates=50)).bias
    assert (bias.mean_bias, bias.p_value) == pytest.approx((fmean(means), expected.pvalue), rel=1e-9)
    interval = expected.confidence_interval()
    assert (bias.ci.lower, bias.ci.upper) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert bias.is_significant == (not bias.ci.lower <= 0 <= bias.ci.upper)


def weighted_kappa(pairs: list[tuple[str, str]]) -> float:
    return cohen_kappa_score(*zip(*pairs, strict=True), weights="quadratic", labels=list("12345"))


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_error_of_kappa_over_documents_is_that_of_a_jackknife(dimension):
    place = DIMENSIONS.index(dimension)
    by_document: dict[str, list[tuple[str, str]]] = {}
    for row in rows("summeval/labels.csv"):
        by_document.setdefault(row["document"], []).append((row["expert1"][place], row["worker1"][place]))
    every = [pair for pairs in by_document.values() for pair in pairs]
    without = [
        weighted_kappa([pair for name, pairs in by_document.items() for pair in pairs if name != left_out])
        for left_out in by_document
    ]
    error = stdev(without) * (len(without) - 1) / math.sqrt(len(without))
    found = summary_votes(dimension, "worker1", ("expert1",))
    clustered = dm.compute_metrics(
        found, cluster="document", bootstrap=dm.agreement.BootstrapSettings(replicates=1000)
    ).intervals["mean_kappa"]
    assert clustered.estimate == pytest.approx(weighted_kappa(every), abs=1e-12)
    assert clustered.standard_error == pytest.approx(error, rel=0.15)
    assert clustered.ci.lower < clustered.estimate < clustered.ci.upper


def test_clusters_widen_the_intervals_of_kappa():
    ratios = []
    for dimension in DIMENSIONS:
        found = summary_votes(dimension, "worker1", ("expert1",))
        plain, clustered = (
            dm.compute_metrics(found, cluster=key, bootstrap=dm.agreement.BootstrapSettings(replicates=500))
            .intervals["mean_kappa"]
            .ci.width
            for key in (None, "document")
        )
        ratios.append(clustered / plain)
    assert fmean(ratios) > 1.1


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_numeric_ratings_correlate_by_level_as_computed_directly(dimension):
    """Mean rating of the crowd against that of the experts, by document (sample), over all, and by system."""
    place = DIMENSIONS.index(dimension)
    criterion = {"name": dimension, "requirement": f"How {dimension}?", "minimum": 1, "maximum": 5}
    table: list[tuple[str, str, float, float]] = []
    items = []
    for row in rows("summeval/labels.csv"):
        crowd, experts = ([int(row[name][place]) for name in names] for names in (WORKERS, EXPERTS))
        table.append((row["document"], row["system"], fmean(crowd), fmean(experts)))
        items.append(
            {
                "id": f"{row['document']} {row['system']}",
                "metadata": {"document": row["document"], "system": row["system"]},
                "annotations": {name: [int(row[name][place])] for name in EXPERTS},
                "votes": {name: [int(row[name][place])] for name in WORKERS},
            }
        )
    file = {"schema_version": "deemster.votes.v1", "rubric": {"criteria": [criterion]}, "items": items}
    cast = dm.Votes.parse(file | {"judges": [{"id": name} for name in WORKERS]})
    result = dm.compute_metrics(
        cast,
        group="document",
        system="system",
        cluster="document",
        bootstrap=dm.agreement.BootstrapSettings(replicates=20),
    )
    (found,) = result.per_criterion

    def by(key: int) -> list[tuple[list[float], list[float]]]:
        groups: dict[str, list[tuple[float, float]]] = {}
        for row in table:
            groups.setdefault(str(row[key]), []).append(row[2:])
        return [tuple(map(list, zip(*pairs, strict=True))) for pairs in groups.values()]  # type: ignore[misc]

    documents = [pair for pair in by(0) if len(set(pair[0])) > 1 and len(set(pair[1])) > 1]
    systems = [(fmean(crowd), fmean(experts)) for crowd, experts in by(1)]
    for name, function in (("pearson", "pearsonr"), ("spearman", "spearmanr"), ("kendall", "kendalltau")):
        correlate = getattr(scipy_stats, function)
        inside = fmean(correlate(*pair).statistic for pair in documents)
        assert getattr(found.sample_level, name) == pytest.approx(inside, abs=1e-9)
        assert getattr(found.system_level, name) == pytest.approx(correlate(*zip(*systems)).statistic, abs=1e-9)  # noqa: B905
        every = correlate([row[2] for row in table], [row[3] for row in table]).statistic
        assert getattr(found, name).coefficient == pytest.approx(every, abs=1e-9)
    assert (found.sample_level.n_groups, found.system_level.n_groups) == (len(documents), 12)


def test_extracts_are_whole():
    assert [len(rows(f"{name}.csv")) for name in ("pandalm/labels", "llmbar/verdicts", "mt_bench/verdicts")] == [
        999,
        419,
        200,
    ]
    assert set(Counter(row["document"] for row in rows("summeval/labels.csv")).values()) == {12}
