"""The report of an audit of metrics: which planted defects they notice, and which the gate lets through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.text.number_format import format_percent
from deemster.text.text_sections import DataText, MetricName, ShadedNumber, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.audit.mutation_score import DefectAudit, KillRate, MetricAudit

_MOST_FAULTS = 20


def metric_audit_sections(audit: MetricAudit) -> list[TextSection]:
    """What an audit of metrics says to people, in order."""
    parts = [_overview(audit)]
    if audit.faults:
        parts.append(_faults(audit))
    planted = {name: defect for name, defect in audit.defects.items() if defect.planted}
    if planted:
        parts += [_kills(audit, planted), _matrix(audit, planted)]
        if len({cohort for defect in planted.values() for cohort in defect.cohorts}) > 1:
            parts.append(_cohorts(planted))
    if audit.gate_checks or audit.gate_unmet:
        parts.append(_gate(audit, planted))
    return parts


def _overview(audit: MetricAudit) -> TextSection:
    goods = plural(audit.samples, "good output")
    score = f"{audit.score.killed} of {audit.score.n} planted outputs no longer pass a metric that they passed before"
    lines: list[TextLine] = [
        (f"Defects planted in {goods} of ", DataText(audit.dataset), " (", DataText(audit.source), ")."),
        (f"Mutation score: {format_percent(audit.score.rate)} ({_ends(audit.score)}; {score}).",)
        if audit.score.n
        else (
            "Mutation score: n/a. Nothing is known: no output with a defect passed a metric before and has a score.",
        ),
    ]
    if audit.left_out:
        lines.append((f"{plural(audit.left_out, 'sample')} left out: without an output, or not drawn.",))
    if audit.stopped is not None:
        lines.append(("The audit is incomplete: ", DataText(audit.stopped), "."))
    lines.append((f"Reference check: {_reference_words(audit)}.",))
    return TextSection(("Audit of the metrics of ", DataText(audit.suite)), lines)


def _reference_words(audit: MetricAudit) -> str:
    pairs = audit.references.n
    if not audit.faults:
        return f"every good output passes every metric ({plural(pairs, 'pair')} of output and metric)"
    low = sum(fault.score is not None for fault in audit.faults)
    without = len(audit.faults) - low
    found = [f"{low} with a score that is too low"] * bool(low) + [f"{without} without a score"] * bool(without)
    return f"of {plural(pairs, 'pair')} of good output and metric, {' and '.join(found)}"


def _faults(audit: MetricAudit) -> TextSection:
    rows: list[TextLine] = [
        (DataText(fault.id), MetricName(fault.metric),
         f"unscored ({fault.cause})" if fault.score is None else f"{fault.score:.4f}")
        for fault in audit.faults[:_MOST_FAULTS]
    ]  # fmt: skip
    left = len(audit.faults) - len(rows)
    after: list[TextLine] = [(f"{left} more are in the JSON file.",)] if left > 0 else []
    lines: list[TextLine] = [("They count for no defect of that metric.",)]
    if audit.is_of_expected_outputs:
        lines = [
            ("An expected output that scores too low shows a broken sample or a broken metric.",),
            ("One without a score lacks what the metric reads (outputs of a run may have it), or its judge failed.",),
        ]
    return TextSection(
        ("Good outputs that do not pass",), lines, TextTable(("sample", "metric", "score"), rows), after=after
    )


def _kills(audit: MetricAudit, planted: dict[str, DefectAudit]) -> TextSection:
    rows: list[TextLine] = [
        (name, defect.what, str(defect.planted), f"{defect.suite.killed}/{defect.suite.n}",
         format_percent(defect.suite.rate), _ends(defect.suite))
        for name, defect in planted.items()
    ]  # fmt: skip
    head = ("defect", "what is wrong", "planted", "killed", "rate", f"{100 * audit.confidence:.4g}% interval")
    after: list[TextLine] = []
    if missing := [name for name, defect in audit.defects.items() if not defect.planted]:
        after.append((f"Not applicable to any sample: {', '.join(missing)}.",))
    if survivors := [name for name, defect in planted.items() if defect.suite.n and not defect.suite.killed]:
        after.append((f"No metric notices: {', '.join(survivors)}.",))
    return TextSection(
        ("Defects that the suite notices",), table=TextTable(head, rows, ("what is wrong",)), after=after
    )


def _matrix(audit: MetricAudit, planted: dict[str, DefectAudit]) -> TextSection:
    rows: list[TextLine] = [
        (name, *(_cell(defect.metrics[metric]) for metric in audit.metrics)) for name, defect in planted.items()
    ]
    head = ("defect", *map(MetricName, audit.metrics))
    lines: list[TextLine] = [("Killed outputs of those that passed the metric before, with the interval of the rate.",)]
    return TextSection(("Defects by metric",), lines, TextTable(head, rows))


def _cohorts(planted: dict[str, DefectAudit]) -> TextSection:
    names = list(dict.fromkeys(cohort for defect in planted.values() for cohort in defect.cohorts))
    rows: list[TextLine] = [
        (name, *(_cell(defect.cohorts[cohort]) if cohort in defect.cohorts else "n/a" for cohort in names))
        for name, defect in planted.items()
    ]
    return TextSection(("Defects by cohort",), table=TextTable(("defect", *map(DataText, names)), rows))


def _gate(audit: MetricAudit, planted: dict[str, DefectAudit]) -> TextSection:
    lines: list[TextLine] = []
    tried = {name: defect.gate for name, defect in planted.items() if defect.gate}
    if audit.gate_unmet:
        names = ", ".join(audit.gate_unmet)
        so = "so the gate is tried without them" if tried else "so the gate was not tried"
        lines.append((f"The good outputs do not pass these checks, {so}: ", DataText(names), "."))
    if not tried:
        return TextSection(("The gate",), lines)
    lines.append(("How often the gate passes, where so many of the outputs that can have the defect have it.",))
    shares = [each.share for each in next(iter(tried.values()))]
    rows: list[TextLine] = [
        (name, *(_passes(each.passed, each.draws, each.low, each.high) for each in found))
        for name, found in tried.items()
    ]
    head = ("defect", *(f"{format_percent(share)} of outputs" for share in shares))
    return TextSection(("What the gate lets through",), lines, TextTable(head, rows))


def _passes(passed: int, draws: int, low: float, high: float) -> str:
    if draws == 1:
        return "passes" if passed else "fails"
    return f"{format_percent(passed / draws)} ({100 * low:.1f} to {100 * high:.1f})"


def _cell(rate: KillRate) -> str:
    if not rate.n:
        return "n/a"
    return ShadedNumber(f"{rate.killed}/{rate.n} ({_ends(rate)})", rate.rate, is_rate=True)


def _ends(rate: KillRate) -> str:
    return "n/a" if rate.low is None or rate.high is None else f"{100 * rate.low:.0f} to {100 * rate.high:.0f} %"
