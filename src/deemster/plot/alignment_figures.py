"""Draws an alignment: the reliability curve of a judge's probabilities, and the confusion matrix of a criterion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deemster.alignment import MetricsResult
from deemster.alignment.result_models import NumericCriterionMetrics
from deemster.errors import InputError, did_you_mean, visible
from deemster.plot._notebook_figure import INK, label, open_axes, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def reliability_curve(result: MetricsResult, *, judge: str | None = None, ax: Axes | None = None) -> Figure:
    """Draw how often stated probabilities come true: on the diagonal they mean what they say.

    Args:
        result: The result of alignment.
        judge: The judge; otherwise all judges that state probabilities.
        ax: The axes to draw on; a figure of its own unless given.

    Raises:
        InputError: It is no such result, no judge states probabilities, or this judge states none.
        MissingExtraError: matplotlib is not installed.
    """
    if not isinstance(result, MetricsResult):
        raise refuse(result, "a result of alignment")
    known = result.calibration or ()
    parts = [part for part in known if judge is None or part.judge_id == judge]
    if not known:
        raise InputError("There is nothing to draw: no judge states a probability on a labelled cell.")
    if not parts:
        names = [part.judge_id for part in known if part.judge_id is not None]
        name = visible(str(judge), limit=60)
        raise InputError(f"No judge {name!r} states probabilities. {did_you_mean(str(judge), names)}")
    figure, axes = open_axes(ax, width=5.0, height=5.0)
    axes.plot((0, 1), (0, 1), color="0.6", linewidth=1)
    for part in parts:
        points = [
            (each.mean_probability, each.observed_share, each.ci)
            for each in part.curve
            if each.mean_probability is not None and each.observed_share is not None
        ]
        (line,) = axes.plot(
            [stated for stated, _, _ in points],
            [seen for _, seen, _ in points],
            marker="o",
            label=f"{label(part.judge_id or 'all judges')}, {part.scale} ({part.n_samples:,})",
        )
        for stated, _, ci in points:
            if ci is not None:
                axes.plot((stated, stated), (ci.lower, ci.upper), color=line.get_color(), linewidth=1)
    axes.set_xlabel("stated probability")
    axes.set_ylabel("share that came true")
    axes.set_title("Reliability curve")
    axes.legend()
    return figure


def confusion_matrix(result: MetricsResult, criterion: str, *, ax: Axes | None = None) -> Figure:
    """Draw how often each true label got each verdict, shaded by the share of its row.

    Args:
        result: The result of alignment.
        criterion: The name of the criterion.
        ax: The axes to draw on; a figure of its own unless given.

    Raises:
        InputError: It is no such result, there is no such criterion, or it has no confusion matrix.
        MissingExtraError: matplotlib is not installed.
    """
    if not isinstance(result, MetricsResult):
        raise refuse(result, "a result of alignment")
    known = {part.name: part for part in result.per_criterion}
    if criterion not in known:
        name = visible(str(criterion), limit=60)
        raise InputError(f"There is no criterion {name!r}. {did_you_mean(str(criterion), known)}")
    part = known[criterion]
    matrix = None if isinstance(part, NumericCriterionMetrics) else part.confusion_matrix
    if matrix is None:
        raise InputError(f"The criterion {visible(criterion, limit=60)!r} has no confusion matrix.")
    size = 1.6 + 0.8 * matrix.n_classes
    figure, axes = open_axes(ax, width=size + 0.6, height=size)
    totals = [sum(row) for row in matrix.matrix]
    shares = [
        [count / total if total else 0.0 for count in row] for row, total in zip(matrix.matrix, totals, strict=True)
    ]
    axes.imshow(shares, vmin=0.0, vmax=1.0, cmap="Blues")
    for row, counts in enumerate(matrix.matrix):
        for column, count in enumerate(counts):
            colour = "white" if shares[row][column] > 0.6 else INK
            axes.text(column, row, f"{count:,}", ha="center", va="center", color=colour)
    names = [label(name) for name in matrix.labels]
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("verdict")
    axes.set_ylabel("truth")
    axes.set_title(f"{label(criterion)} ({matrix.total:,} pairs)")
    return figure
