"""The report of a dataset audit: copies, contradictions, leaks, samples that tell nothing, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.audit.gate_audit_report import share_text
from deemster.audit.sample_subset import SampleSubset
from deemster.errors import plural
from deemster.text.number_format import format_percent
from deemster.text.text_sections import DataText, MetricName, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.audit.dataset_health import DatasetAudit, SampleHistory, SimilarSamples

_MOST_ROWS = 20
_SUBSET_TITLE = ("A part that keeps the gate's power",)


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
        _subset(audit),
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


def _subset(audit: DatasetAudit) -> TextSection:
    """The part of the samples that would do for most runs, or why there is none."""
    subset = audit.subset
    if subset is None or subset.power.caught is None:
        return TextSection(_SUBSET_TITLE, [(SentenceText(f"None. {audit.subset_reason}"),)])

    power = subset.power
    caught = share_text(subset.power.caught)
    most = power.max_newly_failing
    alarm = f"It alarms where more than {most} of them newly fail (`gate.baseline.max_newly_failing: {most}`)."
    lines: list[TextLine] = [
        (f"{subset.samples} of {plural(subset.of, 'sample')} ({format_percent(subset.share)}). {alarm}",),
        (f"It catches {caught} of the planted regressions that the gate fails on all samples.",),
    ]

    if not power.is_enough:
        needed = "No part of up to 90 % of the samples surely catches 95 %."
        if subset.enough_share is not None:
            needed = f"It takes {format_percent(subset.enough_share)} of the samples to surely catch 95 %."
        lines.append((needed,))

    alarms = f"{share_text(power.false_alarms)}; with all samples {share_text(power.false_alarms_whole)}"
    lines.append((f"False alarms where nothing changed: {alarms}. After an alarm, run all samples.",))
    lines += [(SentenceText(line),) for line in _losses(subset)]

    rows: list[TextLine] = [(kind.where, str(kind.planted), str(kind.whole), str(kind.kept)) for kind in power.kinds]
    head = ("regressions break", "planted", "all samples fail", "of these, the part catches")
    return TextSection(_SUBSET_TITLE, lines, TextTable(head, rows))


def _losses(subset: SampleSubset) -> Iterator[str]:
    """What a user of the part must know."""
    if not subset.is_held_out:
        yield "It is measured on the executions that it was chosen by: what it catches is told too high."
    caught = subset.power.caught
    if caught is not None:
        yield f"What is lost: {format_percent(1 - caught.rate)} of these regressions give no alarm."
    if subset.certifiable is not None and subset.certifiable_whole is not None:
        margins = f"{subset.certifiable:.4f} at best, all samples {subset.certifiable_whole:.4f}"
        yield f"A run without an alarm certifies no margin; the part could certify {margins}."
        yield "The pass-rate of the part is not that of the dataset."


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
