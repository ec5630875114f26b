"""The sections about single judges: their agreement, their scores and their votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.agreement._agreement_tables import Column, interval_column, interval_plots, percent_column, table_of
from deemster.agreement.agreement_sentences import has_scores
from deemster.agreement.result_models import (
    JudgeMetrics,
    interval_of,
)
from deemster.text.text_sections import DataText, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

_SCORES_OF_JUDGES: tuple[Column, ...] = (
    ("judge", "judge_id"),
    ("MAE", "score_mae"),
    ("Spearman", "score_spearman.coefficient"),
    ("Kendall", "score_kendall.coefficient"),
    ("Pearson", "score_pearson.coefficient"),
)


def judges_section(result: MetricsResult) -> TextSection:
    """Each judge against the truth."""
    judges = _judges_by_name(result)
    columns: list[Column] = [
        ("judge", "judge_id"),
        ("n", "n_samples"),
        ("accuracy", percent_column("criterion_accuracy")),
        ("mean kappa", "mean_kappa"),
        *[("interval", interval_column("mean_kappa"))] * any(judge.intervals for judge in judges),
        ("phi", "phi"),
        *[("RMSE", "score_rmse"), ("bias", "bias.mean_bias")] * has_scores(result),
        ("failed", "n_failed"),
        ("abstained", "n_abstained"),
    ]
    plots = interval_plots(
        "mean kappa", [(judge.mean_kappa, interval_of(judge.intervals, "mean_kappa")) for judge in judges]
    )
    table = table_of(judges, columns, spare=("phi", "abstained", "failed"), plots=plots)
    return TextSection(("Judges",), table=table if judges else None, key="judges")


def _judges_by_name(result: MetricsResult) -> list[JudgeMetrics]:
    return [judge for _, judge in sorted((result.per_judge or {}).items())]


def judge_vote_sections(result: MetricsResult) -> Iterator[TextSection]:
    """How the scores and the binary votes of each judge lie to the truth."""
    judges = _judges_by_name(result)
    if has_scores(result):
        yield TextSection(("Scores of each judge",), table=table_of(judges, _SCORES_OF_JUDGES), key="judge-scores")

    matrices = {judge.judge_id: judge.confusion_matrix for judge in judges if judge.confusion_matrix is not None}
    if matrices:
        votes = [
            (DataText(name), truth, *(f"{count:,}" for count in counts))
            for name, matrix in matrices.items()
            for truth, counts in zip(matrix.labels, matrix.matrix, strict=True)
        ]
        labels = next(iter(matrices.values())).labels
        table = TextTable(("judge", "truth", *labels), votes)
        yield TextSection(("Binary votes of each judge",), [("A row for each true label.",)], table, key="judge-votes")
