"""The sections about single judges: their agreement, their scores and their votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.agreement._agreement_tables import (
    Column,
    format_ends,
    interval_column,
    interval_plots,
    percent_column,
    table_of,
)
from deemster.agreement.agreement_sentences import has_scores
from deemster.agreement.panel_worth import PanelMember, PanelWorth
from deemster.agreement.result_models import (
    JudgeMetrics,
    interval_of,
)
from deemster.errors import plural
from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.text.number_format import format_number, format_percent
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

# A panel that is at most so much worse without a judge loses nothing that anyone would notice.
NO_LOSS = 0.01
# So many pairs of judges whose errors go together are named.
MOST_PAIRS = 5
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


def panel_section(panel: PanelWorth) -> TextSection:
    """What the panel is worth against people's labels, and what each judge adds."""
    lines: list[TextLine] = [*_panel_lines(panel), *map(_member_line, panel.members), *_shared_error_lines(panel)]
    return TextSection(("What the panel is worth",), lines, key="panel")


def _panel_lines(panel: PanelWorth) -> Iterator[TextLine]:
    worth = "how many independent votes they are worth is unknown, as one of them errs always alike"
    if panel.effective_votes is not None:
        ends = "" if panel.ci is None else f" ({panel.ci.lower:.1f} to {panel.ci.upper:.1f})"
        worth = f"they are worth {panel.effective_votes:.1f}{ends} independent votes"
    voted = f"{plural(len(panel.members), 'judge')} voted on {plural(panel.n_samples, 'labelled cell')}"
    yield (f"{voted}: {worth}.",)

    verdict = _by_sign(panel.gain_ci, above="errs less than", below="errs more than", otherwise="may err as much as")
    yield (
        f"The panel errs on {format_percent(panel.error)}; it {verdict} its best single judge, ",
        DataText(panel.best_judge),
        f"{_points(panel.gain_ci)}.",
    )


def _member_line(member: PanelMember) -> TextLine:
    """What dropping a judge loses and saves; "nothing" only where the interval leaves no more than a point."""
    ends = member.loss_ci
    is_narrow = ends is not None and max(-ends.lower, ends.upper) <= NO_LOSS
    size = f"{100 * abs(member.loss or 0.0):.1f} points"
    unclear = "loses nothing" if is_narrow else "may lose or gain"
    loses = _by_sign(ends, above=f"loses {size}", below=f"gains {size}", otherwise=unclear)
    saves = "" if member.cost_share is None else f" and saves {format_percent(member.cost_share)} of the cost"
    error = format_percent(member.error)
    return "Dropping ", DataText(member.judge_id), f" (errs on {error}) {loses}{_points(ends)}{saves}."


def _by_sign(ci: ConfidenceInterval | None, *, above: str, below: str, otherwise: str) -> str:
    """What is said of a difference whose interval lies above 0, or below it, or neither."""
    if ci is None or ci.lower <= 0 <= ci.upper:
        return otherwise
    return above if ci.lower > 0 else below


def _points(ci: ConfidenceInterval | None) -> str:
    return "" if ci is None else f" ({100 * ci.lower:+.1f} to {100 * ci.upper:+.1f} points)"


def _shared_error_lines(panel: PanelWorth) -> Iterator[TextLine]:
    """The pairs of judges whose errors go together beyond chance."""
    shared = [pair for pair in panel.pairs if pair.ci is not None and pair.ci.lower > 0]
    for pair in shared[:MOST_PAIRS]:
        numbers = f": correlation {format_number(pair.correlation)} ({format_ends(pair.ci)})."
        yield "The errors of ", DataText(pair.judge_a), " and ", DataText(pair.judge_b), f" go together{numbers}"
    if len(shared) > MOST_PAIRS:
        yield (f"So do those of {plural(len(shared) - MOST_PAIRS, 'further pair')}.",)


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
