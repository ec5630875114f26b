"""The report of a gate audit: false alarms, power against drops, the margin it certifies, the rules that alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.text.number_format import format_percent
from deemster.text.text_sections import DataText, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.audit.gate_error_rates import GateAudit, SimulatedShare


def gate_audit_sections(audit: GateAudit) -> list[TextSection]:
    """What a gate audit says to people, in order."""
    parts = [_overview(audit), _drops(audit)]
    if audit.rules:
        parts.append(_rules(audit))
    if audit.left_out:
        rows: list[TextLine] = [(DataText(name), reason) for name, reason in audit.left_out.items()]
        parts.append(TextSection(("Rules that were not tried",), table=TextTable(("rule", "why"), rows)))
    return parts


def _overview(audit: GateAudit) -> TextSection:
    level = f"{100 * audit.confidence:.4g}%"
    source = "as stated"
    if audit.noise == "measured":
        source = f"measured on {plural(audit.executions, 'execution')} of each in {plural(len(audit.runs), 'run')}"
    flips = "" if audit.flip_rate is None else f"; {format_percent(audit.flip_rate)} of them flip from run to run"
    found = audit.unchanged
    failed, unclear, passed = map(share_text, (found.failed, found.inconclusive, found.passed))
    rates = f"{format_percent(audit.pass_rate)} pass every metric{flips} ({source})."
    error = f"in brackets, the {level} interval of the simulation's own error."
    alarms = f"the gate fails {failed}, is inconclusive {unclear}, passes {passed}."
    lines: list[TextLine] = [
        (f"{plural(audit.samples, 'sample')} of ", DataText(audit.dataset), f", {rates}"),
        (f"{plural(audit.draws, 'comparison')} simulated for each number; {error}",),
        (f"False alarms: where nothing changed, {alarms}",),
        (_margin(audit),),
    ]
    if audit.rules and audit.rules[0].failed.count:
        first = audit.rules[0]
        lines.append(("The rule that alarms most: ", DataText(first.name), f", {share_text(first.failed)}."))
    lines += [("Note: ", SentenceText(note)) for note in audit.notes]
    return TextSection(("Audit of the gate of ", DataText(audit.suite)), lines)


def _margin(audit: GateAudit) -> str:
    found = audit.margin
    if found.value is None or found.low is None or found.high is None:
        return f"Margin that it can certify: none. {found.reason}"
    reach = "" if found.margin is None else f" Its own margin is {found.margin:.4g}."
    certified = f"{found.value:.4f} ({found.low:.4f} to {found.high:.4f})"
    often = f"{format_percent(found.power)} of the time where nothing changed"
    return f"Margin that it certifies {often}: {certified}.{reach}"


def _drops(audit: GateAudit) -> TextSection:
    rows: list[TextLine] = []
    for each in audit.drops:
        where = ("all samples" if each.cohort is None else DataText(each.cohort), str(each.samples))
        drop = f"{100 * each.drop:.4g} point{'' if each.drop == 0.01 else 's'}"
        if each.outcomes is None:
            rows.append((drop, *where, "n/a", "n/a", "n/a"))
        else:
            found = each.outcomes
            rows.append((drop, *where, *map(share_text, (found.failed, found.inconclusive, found.passed))))
    lines: list[TextLine] = [
        ("The pass-rate falls because some samples break: no metric passes them any more. What passes is missed.",)
    ]
    reasons = dict.fromkeys(each.reason for each in audit.drops if each.reason is not None)
    after: list[TextLine] = [(SentenceText(reason),) for reason in reasons]
    head = ("drop", "in", "samples", "fails", "inconclusive", "passes (missed)")
    return TextSection(("What the gate says of a drop",), lines, TextTable(head, rows, ("samples",)), after=after)


def _rules(audit: GateAudit) -> TextSection:
    rows: list[TextLine] = [
        (DataText(rule.name), share_text(rule.failed), str(rule.alone), share_text(rule.inconclusive))
        for rule in audit.rules
    ]
    head = ("rule", "fails", "alone", "inconclusive")
    return TextSection(("Rules that alarm although nothing changed",), table=TextTable(head, rows))


def share_text(share: SimulatedShare) -> str:
    """A share of simulated comparisons, with its interval."""
    return f"{format_percent(share.rate)} ({100 * share.low:.1f} to {100 * share.high:.1f})"
