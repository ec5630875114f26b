"""The report of an audit of a judge: what it reacts to although it must not, and what that moves in the pass-rate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.agreement.estimate import Estimate
from deemster.audit.mutation_score import EXPECTED
from deemster.errors import plural
from deemster.judges.bias_probes import ORDER
from deemster.text.number_format import format_p_value, format_percent
from deemster.text.text_sections import DataText, MetricName, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.audit.judge_bias import JudgeAudit, ProbeResult


def judge_audit_sections(audit: JudgeAudit) -> list[TextSection]:
    """What an audit of a judge says to people, in order."""
    return [_overview(audit), *(_metric(name, probes, audit) for name, probes in audit.metrics.items())]


def _overview(audit: JudgeAudit) -> TextSection:
    model = () if audit.model is None else (" (", DataText(audit.model), ")")
    count = plural(audit.samples, "sample")
    lines: list[TextLine] = [
        (
            f"Pairs that differ in one thing, from {count} of ",
            DataText(audit.dataset),
            " (",
            DataText(audit.source),
            ").",
        )
    ]
    lines += _flags(audit) if audit.flags else [("Nothing is known." if audit.is_empty else "No bias is flagged.",)]
    if audit.samples < audit.fewest_samples:
        told = f"With {count} no bias can be flagged, however strong; it takes at least {audit.fewest_samples}."
        lines.append((told,))
    if audit.stopped is not None:
        lines.append(("The audit is incomplete: ", DataText(audit.stopped), "."))
    return TextSection(("Audit of the judge ", DataText(audit.role), *model), lines)


def _flags(audit: JudgeAudit) -> Iterator[TextLine]:
    for metric, name in audit.flags:
        one = audit.metrics[metric][name]
        moves = ((_good(audit), one.right_move), ("wrong", one.wrong_move))
        told = [f"the pass-rate of {base} answers by {_points(move)}" for base, move in moves if move and move.value]
        moved = f" It moves {' and '.join(told)}." if told else ""
        yield ("Flag: ", MetricName(metric), f": {name} ({one.what}): the judge {_direction(name, one)}.{moved}")


def _metric(name: str, probes: dict[str, ProbeResult], audit: JudgeAudit) -> TextSection:
    rows: list[TextLine] = [
        (probe, str(one.pairs), _flips(one.flips), _change(one.shift),
         _points(one.right_move), _points(one.wrong_move),
         # What a judge must notice is tested the other way round; that p stands below, beside its own share.
         format_p_value(one.adjusted_p) if one.noticed is None else "",
         "flag" if one.is_flagged else "")
        for probe, one in probes.items()
    ]  # fmt: skip
    head = ("probe", "pairs", "verdict flips", "score", f"{_good(audit)} answers", "wrong answers", "p", "")
    after: list[TextLine] = [
        (
            f"{probe}: the judge scores {format_percent(one.noticed.value)} of the changed answers lower ",
            f"({_ends(one.noticed)}); ",
            f"that it misses more than it may: p {format_p_value(one.adjusted_p)}.",
        )
        for probe, one in probes.items()
        if one.noticed is not None and one.pairs
    ]
    if empty := [probe for probe, one in probes.items() if not one.pairs and not one.unscored]:
        after.append((f"Not applicable to any sample: {', '.join(empty)}.",))
    if lost := sum(one.unscored for one in probes.values()):
        after.append((f"{plural(lost, 'pair')} left out: the judge gave no score.",))
    level = f"{100 * audit.confidence:.4g}%"
    lines: list[TextLine] = [
        (f"How the thing moves the verdict, the score, and the pass-rate of {_good(audit)} and of wrong answers.",),
        (f"In brackets {level} intervals; p is corrected for all probes (Holm).",),
    ]
    return TextSection((MetricName(name),), lines, TextTable(head, rows, ("pairs", "score")), after=after)


def _good(audit: JudgeAudit) -> str:
    """How the answers are called that are not planted to be wrong."""
    return "right" if audit.source == EXPECTED else "your"


def _flips(estimate: Estimate) -> str:
    return "n/a" if estimate.value is None else f"{format_percent(estimate.value)} ({_ends(estimate)})"


def _ends(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "n/a"
    return f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}"


def _change(estimate: Estimate) -> str:
    return "n/a" if estimate.value is None else f"{estimate.value:+.2f}"


def _points(estimate: Estimate | None) -> str:
    if estimate is None or estimate.value is None or estimate.low is None or estimate.high is None:
        return "n/a"
    return f"{estimate.value:+.2f} ({estimate.low:+.2f} to {estimate.high:+.2f})"


def _direction(name: str, one: ProbeResult) -> str:
    """In a few words, what a judge does that has this flag."""
    if name == ORDER:
        return f"prefers the {'first' if (one.shift.value or 0) > 0 else 'last'} place"
    if one.noticed is not None:
        return "does not notice it"
    return "prefers it" if (one.shift.value or 0) > 0 else "marks it down"
