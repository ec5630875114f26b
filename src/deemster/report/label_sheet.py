"""The sheet that people fill in with labels: samples of a run drawn at random, without the verdicts of its judges."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deemster.errors import ReportError, did_you_mean
from deemster.report._escaping import escape_csv_cell
from deemster.results import SampleEntry

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


def draw_samples(report: Report, n: int, *, seed: int = 0, stratify: bool = False) -> list[DrawnSample]:
    """Draw samples at random, in the order of the report.

    Args:
        report: The run.
        n: How many; all samples where there are fewer.
        seed: The seed of the draw.
        stratify: Whether the samples are divided into four groups by their mean score, and each gives an equal part.
    """
    samples = list(report.samples)
    groups = [samples]
    if stratify:
        ranked = sorted(samples, key=lambda sample: -1.0 if sample.score_mean is None else sample.score_mean)
        ends = [len(ranked) * part // _STRATA for part in range(_STRATA + 1)]
        groups = [ranked[low:high] for low, high in itertools.pairwise(ends) if high > low]
    chance = random.Random(seed)  # noqa: S311 - a draw of samples, not a secret
    drawn: dict[str, DrawnSample] = {}
    left = min(n, len(samples))
    for number, group in enumerate(groups, start=1):
        size = min(len(group), -(-left // (len(groups) - number + 1)))
        left -= size
        for sample in chance.sample(group, size):
            drawn[sample.id] = DrawnSample(sample, number, size / len(group))
    return [drawn[sample.id] for sample in samples if sample.id in drawn]


def label_sheet(report: Report, drawn: Sequence[DrawnSample], *, metrics: Sequence[str] = ()) -> str:
    """The sheet as CSV, with a line for each sample and metric, and `annotator` and `verdict` left blank.

    It begins with a byte order mark, so that Excel reads it as UTF-8.

    Args:
        report: The run, with its inputs.
        drawn: The samples.
        metrics: What people judge; every metric of the run where none is named.

    Raises:
        ReportError: The run has no such metric.
    """
    for name in metrics:
        if name not in report.metric_order:
            raise ReportError(f"The run has no metric `{name}`. {did_you_mean(name, report.metric_order)}")
    wanted = {each.sample.id for each in drawn}
    outputs: Mapping[str, str | None] = {
        execution.id: execution.output
        for execution in report.executions
        if execution.repetition == 0 and execution.id in wanted
    }
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([*COLUMNS, *DRAW_COLUMNS])
    for sample, stratum, probability in drawn:
        texts = (_text(sample.input), _text(sample.expected_output), outputs.get(sample.id) or "")
        for metric in metrics or report.metric_order:
            cells = (sample.id, metric, "", "", *texts)
            writer.writerow([*map(escape_csv_cell, cells), stratum, f"{probability:.6g}"])
    return "\ufeff" + file.getvalue()


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    plain = dict(value) if isinstance(value, Mapping) else value
    if isinstance(plain, dict) and len(plain) == 1 and isinstance(only := next(iter(plain.values())), str):
        return only
    return json.dumps(plain, ensure_ascii=False, default=str)
