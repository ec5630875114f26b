"""The report of a dataset audit: copies, contradictions, leaks, samples that tell nothing, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.text.text_sections import DataText, MetricName, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.audit.dataset_health import DatasetAudit, SampleHistory, SimilarSamples

_MOST_ROWS = 20


def dataset_audit_sections(audit: DatasetAudit) -> list[TextSection]:
    """What a dataset audit says to people, in order."""
    return [
        _overview(audit),
        *_contradictions(audit),
        *_copies(audit),
        *_leaks(audit),
        *_weak_samples(audit),
        *_disputed_samples(audit),
        *_small_cohorts(audit),
        *_label_next(audit),
    ]


def _overview(audit: DatasetAudit) -> TextSection:
    n_copies = sum(pair.same_expected for pair in audit.similar)
    copies = "1 copy" if n_copies == 1 else f"{n_copies} copies"
    contradictions = plural(len(audit.similar) - n_copies, "contradiction")
    counts = f"{copies}, {contradictions}, {plural(len(audit.leaks), 'leak')}."
    lines: list[TextLine] = [
        (f"{plural(audit.samples, 'sample')} of ", DataText(audit.source), f": {counts}"),
    ]

    if audit.items:
        executions = (
            f"{plural(audit.executions, 'execution')} of each sample in {plural(len(audit.runs), 'stored run')}"
        )
        outcomes = (
            f"{len(audit.always_pass)} always pass, {len(audit.always_fail)} never pass, {len(audit.flaky)} are flaky."
        )
        lines.append((f"{executions}: {outcomes}",))

    lines += [("Note: ", SentenceText(note)) for note in audit.notes]
    return TextSection(("Audit of the dataset ", DataText(audit.dataset)), lines)


def _contradictions(audit: DatasetAudit) -> Iterator[TextSection]:
    pairs = [pair for pair in audit.similar if not pair.same_expected]
    yield from _similar_samples("Contradictions: alike inputs, other expected outputs", pairs)


def _copies(audit: DatasetAudit) -> Iterator[TextSection]:
    pairs = [pair for pair in audit.similar if pair.same_expected]
    yield from _similar_samples("Copies: alike inputs, the same expected output", pairs)


def _similar_samples(title: str, pairs: Sequence[SimilarSamples]) -> Iterator[TextSection]:
    rows: list[TextLine] = [
        (DataText(pair.first), DataText(pair.second), pair.kind, f"{pair.similarity:.3f}") for pair in pairs
    ]
    yield from _listed(title, ("sample", "and", "inputs", "similarity"), rows)


def _leaks(audit: DatasetAudit) -> Iterator[TextSection]:
    rows: list[TextLine] = [(DataText(name),) for name in audit.leaks]
    yield from _listed("Leaks: the input holds the expected output", ("sample",), rows)


def _weak_samples(audit: DatasetAudit) -> Iterator[TextSection]:
    """Samples that say little of a run: they fall either way, or pass in the runs in which the others fail."""
    weak = [item for item in audit.items if item.is_flaky or _discrimination_or_chance(item) < 0]
    rows: list[TextLine] = [
        (DataText(item.id), f"{item.passed}/{item.n}", f"{item.low:.2f} to {item.high:.2f}", _discrimination(item))
        for item in sorted(weak, key=lambda item: (_discrimination_or_chance(item), item.id))
    ]
    head = ("sample", "passes", f"{100 * audit.confidence:.4g}% interval", "discrimination")
    yield from _listed("Flaky samples, and samples that pass where the others fail", head, rows)


def _discrimination_or_chance(item: SampleHistory) -> float:
    """The discrimination of a sample; 0, which is that of chance, where it has none."""
    return item.discrimination or 0.0


def _discrimination(item: SampleHistory) -> str:
    if item.discrimination is None:
        return f"n/a ({item.reason})"
    if item.discrimination_low is None or item.discrimination_high is None:
        return f"{item.discrimination:.2f}"
    return f"{item.discrimination:.2f} ({item.discrimination_low:.2f} to {item.discrimination_high:.2f})"


def _disputed_samples(audit: DatasetAudit) -> Iterator[TextSection]:
    rows: list[TextLine] = [
        (
            DataText(dispute.id),
            MetricName(dispute.metric),
            str(dispute.people_pass),
            str(dispute.people_fail),
            str(dispute.against_mark),
        )
        for dispute in audit.disputed
    ]
    head = ("sample", "metric", "people pass", "people fail", "against the mark")
    yield from _listed("Samples that people and metrics dispute", head, rows)


def _small_cohorts(audit: DatasetAudit) -> Iterator[TextSection]:
    if not audit.small_cohorts:
        return

    rows: list[TextLine] = [
        (
            DataText(cohort.cohort),
            str(cohort.samples),
            "n/a" if cohort.certifiable is None else f"{cohort.certifiable:.4f}",
            "n/a" if cohort.needed is None else str(cohort.needed - cohort.samples),
        )
        for cohort in audit.small_cohorts
    ]
    lines: list[TextLine] = [(f"These cohorts cannot certify a margin of {audit.margin:.4g}, even if nothing flips.",)]
    head = ("cohort", "samples", "certifies", "write so many more")
    yield TextSection(("Cohorts too small to gate",), lines, TextTable(head, rows))


def _label_next(audit: DatasetAudit) -> Iterator[TextSection]:
    rows: list[TextLine] = [(DataText(sample.id), SentenceText(sample.because)) for sample in audit.label_next]
    yield from _listed("Look at these samples next", ("sample", "because"), rows)


def _listed(title: str, head: TextLine, rows: Sequence[TextLine]) -> Iterator[TextSection]:
    """A section with a table of the first rows; none where there is no row."""
    if not rows:
        return

    n_hidden = len(rows) - _MOST_ROWS
    after: list[TextLine] = [(f"{n_hidden} more are in the JSON file.",)] if n_hidden > 0 else []
    yield TextSection((title,), table=TextTable(head, rows[:_MOST_ROWS]), after=after)
