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

_MOST = 20
_SUBSET_TITLE = ("A part that keeps the gate's power",)


def dataset_audit_sections(audit: DatasetAudit) -> list[TextSection]:
    """What a dataset audit says to people, in order."""
    contradictions = [pair for pair in audit.similar if not pair.same_expected]
    copies = [pair for pair in audit.similar if pair.same_expected]
    parts = [_overview(audit, contradictions, copies)]
    if contradictions:
        parts.append(_pairs("Contradictions: alike inputs, other expected outputs", contradictions))
    if copies:
        parts.append(_pairs("Copies: alike inputs, the same expected output", copies))
    if audit.leaks:
        parts.append(
            _listed(
                "Leaks: the input holds the expected output", ("sample",), [(DataText(name),) for name in audit.leaks]
            )
        )
    weak = [item for item in audit.items if item.is_flaky or (item.discrimination or 0.0) < 0]
    if weak:
        parts.append(_items(audit, weak))
    if audit.disputed:
        rows: list[TextLine] = [
            (
                DataText(one.id),
                MetricName(one.metric),
                str(one.people_pass),
                str(one.people_fail),
                str(one.against_mark),
            )
            for one in audit.disputed
        ]
        head = ("sample", "metric", "people pass", "people fail", "against the mark")
        parts.append(_listed("Samples that people and metrics dispute", head, rows))
    if audit.small_cohorts:
        parts.append(_cohorts(audit))
    parts.append(_subset(audit))
    if audit.label_next:
        rows = [(DataText(one.id), SentenceText(one.because)) for one in audit.label_next]
        parts.append(_listed("Look at these samples next", ("sample", "because"), rows))
    return parts


def _overview(
    audit: DatasetAudit, contradictions: Sequence[SimilarSamples], copies: Sequence[SimilarSamples]
) -> TextSection:
    copied = "1 copy" if len(copies) == 1 else f"{len(copies)} copies"
    found = f"{copied}, {plural(len(contradictions), 'contradiction')}, {plural(len(audit.leaks), 'leak')}."
    lines: list[TextLine] = [
        (f"{plural(audit.samples, 'sample')} of ", DataText(audit.source), f": {found}"),
    ]
    if audit.items:
        told = (
            f"{len(audit.always_pass)} always pass, {len(audit.always_fail)} never pass, {len(audit.flaky)} are flaky."
        )
        base = f"{plural(audit.executions, 'execution')} of each sample in {plural(len(audit.runs), 'stored run')}"
        lines.append((f"{base}: {told}",))
    lines += [("Note: ", SentenceText(note)) for note in audit.notes]
    return TextSection(("Audit of the dataset ", DataText(audit.dataset)), lines)


def _pairs(title: str, pairs: Sequence[SimilarSamples]) -> TextSection:
    rows: list[TextLine] = [
        (DataText(pair.first), DataText(pair.second), pair.kind, f"{pair.similarity:.3f}") for pair in pairs
    ]
    return _listed(title, ("sample", "and", "inputs", "similarity"), rows)


def _items(audit: DatasetAudit, items: Sequence[SampleHistory]) -> TextSection:
    rows: list[TextLine] = [
        (DataText(item.id), f"{item.passed}/{item.n}", f"{item.low:.2f} to {item.high:.2f}", _discrimination(item))
        for item in sorted(items, key=lambda each: (each.discrimination or 0.0, each.id))
    ]
    head = ("sample", "passes", f"{100 * audit.confidence:.4g}% interval", "discrimination")
    return _listed("Flaky samples, and samples that pass where the others fail", head, rows)


def _discrimination(item: SampleHistory) -> str:
    if item.discrimination is None:
        return f"n/a ({item.reason})"
    if item.discrimination_low is None or item.discrimination_high is None:
        return f"{item.discrimination:.2f}"
    return f"{item.discrimination:.2f} ({item.discrimination_low:.2f} to {item.discrimination_high:.2f})"


def _cohorts(audit: DatasetAudit) -> TextSection:
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
    return TextSection(("Cohorts too small to gate",), lines, TextTable(head, rows))


def _subset(audit: DatasetAudit) -> TextSection:
    found = audit.subset
    if found is None or found.power.caught is None:
        return TextSection(_SUBSET_TITLE, [(SentenceText(f"None. {audit.subset_reason}"),)])
    power, caught = found.power, found.power.caught
    most = power.max_newly_failing
    alarm = f"It alarms where more than {most} of them newly fail (`gate.baseline.max_newly_failing: {most}`)."
    lines: list[TextLine] = [
        (f"{found.samples} of {plural(found.of, 'sample')} ({format_percent(found.share)}). {alarm}",),
        (f"It catches {share_text(caught)} of the planted regressions that the gate fails on all samples.",),
    ]
    if not power.is_enough:
        needed = "No part of up to 90 % of the samples surely catches 95 %."
        if found.enough_share is not None:
            needed = f"It takes {format_percent(found.enough_share)} of the samples to surely catch 95 %."
        lines.append((needed,))
    alarms = f"{share_text(power.false_alarms)}; with all samples {share_text(power.false_alarms_whole)}"
    lines.append((f"False alarms where nothing changed: {alarms}. After an alarm, run all samples.",))
    lines += [(SentenceText(line),) for line in _losses(found)]
    rows: list[TextLine] = [(kind.where, str(kind.planted), str(kind.whole), str(kind.kept)) for kind in power.kinds]
    head = ("regressions break", "planted", "all samples fail", "of these, the part catches")
    return TextSection(_SUBSET_TITLE, lines, TextTable(head, rows))


def _losses(found: SampleSubset) -> Iterator[str]:
    """What a user of the part must know."""
    if not found.is_held_out:
        yield "It is measured on the executions that it was chosen by: what it catches is told too high."
    caught = found.power.caught
    if caught is not None:
        yield f"What is lost: {format_percent(1 - caught.rate)} of these regressions give no alarm."
    if found.certifiable is not None and found.certifiable_whole is not None:
        margins = f"{found.certifiable:.4f} at best, all samples {found.certifiable_whole:.4f}"
        yield f"A run without an alarm certifies no margin; the part could certify {margins}."
        yield "The pass-rate of the part is not that of the dataset."


def _listed(title: str, head: TextLine, rows: Sequence[TextLine]) -> TextSection:
    left = len(rows) - _MOST
    after: list[TextLine] = [(f"{left} more are in the JSON file.",)] if left > 0 else []
    return TextSection((title,), table=TextTable(head, rows[:_MOST]), after=after)
