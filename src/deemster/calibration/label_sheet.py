"""The sheet that people fill in with labels: samples of a run drawn at random, without the verdicts of its judges."""

from __future__ import annotations

import csv
import io
import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deemster.errors import ReportError, did_you_mean
from deemster.report.failing_samples import quoted_text
from deemster.results import SampleEntry
from deemster.text.escaping import escape_csv_cell

if TYPE_CHECKING:
    from deemster.report.report_document import Report

COLUMNS = ("id", "metric", "annotator", "verdict", "input", "expected_output", "output")
# How the draw was made, for estimates that weight by it.
DRAW_COLUMNS = ("stratum", "inclusion_probability")
_STRATA = 4


class DrawnSample(NamedTuple):
    """A sample of the draw.

    Attributes:
        sample: The sample.
        stratum: Its stratum, from 1; 1 for all where the draw has none.
        probability: How probable it was that this sample is drawn.
    """

    sample: SampleEntry
    stratum: int
    probability: float


def draw_samples(
    report: Report, n: int, *, seed: int = 0, stratify: bool = False, balance: str | None = None
) -> list[DrawnSample]:
    """Draw samples at random, of those that have an output, in the order of the report.

    Args:
        report: The run.
        n: How many; all samples where there are fewer.
        seed: The seed of the draw.
        stratify: Whether the samples are divided into four groups by their mean score, and each gives an equal part.
        balance: The metric whose failed samples and whose passed ones give an equal part each; None for none.

    Raises:
        ReportError: The run has no such metric.
    """
    samples = answered_samples(report)
    groups: list[Sequence[int]] = [range(len(samples))]
    if balance is not None:
        groups = [group for group in _by_verdict(report, samples, balance) if group]
    elif stratify:
        means = [sample.score_mean for sample in samples]
        ranked = sorted(groups[0], key=lambda place: -1.0 if (mean := means[place]) is None else mean)
        ends = [len(ranked) * part // _STRATA for part in range(_STRATA + 1)]
        groups = [ranked[low:high] for low, high in itertools.pairwise(ends) if high > low]
    drawn = draw_places(groups, n, seed=seed)
    return [DrawnSample(samples[place], *drawn[place]) for place in sorted(drawn)]


def answered_samples(report: Report) -> list[SampleEntry]:
    """The samples that have an output where people look: in the first repetition."""
    answered = {entry.id for entry in report.executions if entry.repetition == 0 and entry.output is not None}
    return [sample for sample in report.samples if sample.id in answered]


def draw_places(groups: Sequence[Sequence[int]], n: int, *, seed: int) -> dict[int, tuple[int, float]]:
    """Draw places of samples at random, in random order: each with its stratum and its inclusion probability.

    Args:
        groups: The places of each stratum. Each gives an equal part.
        n: How many; all places where there are fewer.
        seed: The seed of the draw.
    """
    chance = random.Random(seed)  # noqa: S311 - a draw of samples, not a secret
    drawn: dict[int, tuple[int, float]] = {}
    left = min(n, sum(map(len, groups)))
    for number, group in enumerate(groups, start=1):
        size = min(len(group), -(-left // (len(groups) - number + 1)))
        left -= size
        for place in chance.sample(group, size):
            drawn[place] = (number, size / len(group))
    return drawn


def _by_verdict(report: Report, samples: Sequence[SampleEntry], metric: str) -> tuple[list[int], list[int]]:
    """The places of samples that a metric does not pass, and of those it passes, in the repetition that people see."""
    _check_metric(report, metric)
    passed = {
        execution.id
        for execution in report.executions
        if execution.repetition == 0 and getattr(execution.marks.get(metric), "success", False)
    }
    places = range(len(samples))
    is_passed = [sample.id in passed for sample in samples]
    return [place for place in places if not is_passed[place]], [place for place in places if is_passed[place]]


def _check_metric(report: Report, name: str) -> None:
    if name not in report.metric_order:
        raise ReportError(f"The run has no metric `{name}`. {did_you_mean(name, report.metric_order)}")


def label_sheet(report: Report, drawn: Sequence[DrawnSample], *, metrics: Sequence[str] = ()) -> str:
    """The sheet as CSV, with a line for each sample and metric, and `annotator` and `verdict` left blank.

    Args:
        report: The run, with its inputs.
        drawn: The samples.
        metrics: What people judge; every metric of the run where none is named.

    Raises:
        ReportError: The run has no such metric.
    """
    for name in metrics:
        _check_metric(report, name)
    wanted = {each.sample.id for each in drawn}
    outputs: Mapping[str, str | None] = {
        execution.id: execution.output
        for execution in report.executions
        if execution.repetition == 0 and execution.id in wanted
    }
    lines: list[Sequence[str | float | None]] = []
    for sample, stratum, probability in drawn:
        texts = (_text(sample.input), _text(sample.expected_output), outputs.get(sample.id) or "")
        names = metrics or report.metric_order
        lines += [(sample.id, metric, "", "", *texts, stratum, probability) for metric in names]
    return sheet_text((*COLUMNS, *DRAW_COLUMNS), lines)


def sheet_text(header: Sequence[str], lines: Iterable[Sequence[str | float | None]]) -> str:
    """Lines as CSV for a spreadsheet: it begins with a byte order mark, so that Excel reads it as UTF-8.

    Args:
        header: The names of the columns.
        lines: The cells of each line. Texts are escaped, so that none is a formula; None is blank.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(header)
    for line in lines:
        writer.writerow([_cell_text(cell) for cell in line])
    return "\ufeff" + file.getvalue()


def _cell_text(cell: str | float | None) -> str:
    if isinstance(cell, str):
        return escape_csv_cell(cell)
    return "" if cell is None else f"{cell:.6g}"


def _text(value: Any) -> str:
    return "" if value is None else quoted_text(value)
