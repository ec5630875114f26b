"""Some samples of a run as a list: whether each passed, its scores and its tags, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from deemster.datasets.only_expression import LATEST, Only, condition_text
from deemster.datasets.sample_selection import Selection, select_positions
from deemster.errors import ConfigurationError, plural
from deemster.records import Sample
from deemster.report.failing_samples import executed_samples, mean_score
from deemster.results import SampleEntry
from deemster.text.number_format import format_number
from deemster.text.text_sections import DataText, MetricName, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.report.report_document import Report

_NONE = "-"


def find_samples(report: Report, samples: Iterable[Sample], only: Only) -> list[SampleEntry]:
    """The samples of a report that are wanted, worst first.

    Args:
        report: The report.
        samples: Its samples in order, with the input and metadata that are kept.
        only: Which of them are wanted; what failed, failed in this run.

    Raises:
        ConfigurationError: What failed in another run is wanted.
        DatasetError: No sample has what is asked for; the nearest is named.
    """
    if set(only.failed) - {LATEST}:
        raise ConfigurationError(
            "`--only failed` are the samples that failed in the run that is shown: leave out `:RUN`."
        )

    selection = Selection(tags=only.tags, ids=only.ids, where=only.where)
    positions = frozenset(select_positions(samples, selection, file=None))
    answered = _answered(report) if only.answered else positions
    found = [
        (_rate(sample), mean_score(report, sample), position, sample)
        for position, sample in enumerate(report.samples)
        if position in positions and position in answered and not (only.failed and _passed(sample))
    ]
    return [sample for *_, sample in sorted(found, key=itemgetter(0, 1, 2))]


def list_section(report: Report, samples: Sequence[SampleEntry], only: Only, *, most: int | None) -> TextSection:
    """Samples as a table.

    Args:
        report: The report that they are of.
        samples: The samples.
        only: What was wanted.
        most: How many are listed; None for all.
    """
    passed = sum(map(_passed, samples))
    line = (f"{len(samples):,} of {plural(report.totals.samples, 'sample')}, ", DataText(condition_text(only)))
    rows = [_row(report, sample) for sample in samples[:most]]
    rest = len(samples) - len(rows)

    table = TextTable(("sample", "passed", *map(MetricName, report.metric_order), "tags"), rows, spare=("tags",))

    return TextSection(
        ("Samples, worst first",),
        [(*line, f": {passed:,} passed.")],
        table if rows else None,
        after=[(f"... and {rest:,} more: `--full`.",)] if rest else [],
        key="samples",
        is_short=True,
    )


def _answered(report: Report) -> frozenset[int]:
    """The positions of samples that have an output."""
    return frozenset(
        executed.position
        for executed in executed_samples(report)
        if any(execution.output is not None for execution in executed.executions)
    )


def _passed(sample: SampleEntry) -> bool:
    return sample.pass_rate is not None and sample.passed == sample.repetitions


def _rate(sample: SampleEntry) -> float:
    """The pass rate; samples that no metric applies to come last."""
    return 2.0 if sample.pass_rate is None else sample.pass_rate


def _row(report: Report, sample: SampleEntry) -> TextLine:
    tags = ", ".join(sample.tags)
    return (DataText(sample.id), _describe_passed(sample), *_scores(report, sample), DataText(tags))


def _describe_passed(sample: SampleEntry) -> str:
    if sample.pass_rate is None:
        return _NONE
    if sample.repetitions > 1:
        return f"{sample.passed} of {sample.repetitions}"
    return "yes" if sample.passed else "no"


def _scores(report: Report, sample: SampleEntry) -> Iterator[str]:
    for name in report.metric_order:
        mean = sample.metrics[name].mean
        if name in sample.not_applicable:
            yield _NONE
        else:
            yield "unscored" if mean is None else format_number(mean, places=2)
