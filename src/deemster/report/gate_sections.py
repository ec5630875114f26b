"""What reports say of a gate: its decision in a sentence, and the table of its checks."""

from __future__ import annotations

from deemster.datasets import SelectedPart
from deemster.gate import GateCheck, GateDecision
from deemster.stats import Interval
from deemster.text.number_format import format_change_interval, format_interval, format_number, supported_places
from deemster.text.text_sections import DataText, SentenceText, TextSection, table_of

# The rules of a gate whose numbers are counts.
_DECIMALS = 4
_COUNTED = ("max_unscored", "max_newly_failing", "max_removed", "max_critical_successes")


def gate_verdict(gate: GateDecision, part: SelectedPart | None) -> str:
    """The gate's decision in one sentence.

    Args:
        gate: The decision.
        part: The part of the dataset that it judged; None for the whole.
    """
    if not gate.checks:
        return "This suite has no gate."

    words = {"pass": "passed", "fail": "failed", "inconclusive": "inconclusive", "skipped": "skipped"}
    counts = {word: sum(check.status == status for check in gate.checks) for status, word in words.items()}
    counted = ", ".join(f"{count} {word}" for word, count in counts.items() if count)

    of_failed = part is not None and part.is_of_failed
    if not gate.is_decided:
        return f"Gate not decided{': the whole suite decides it' if of_failed else ''} ({counted})."
    if of_failed:
        return f"Gate: {gate.decision} ({counted}), for what failed before; the whole suite decides the rest."

    judged = "" if part is None else f", for a part of the dataset: {part.samples:,} of {part.of:,} samples"
    return f"Gate: {gate.decision} ({counted}){judged}."


def gate_section(gate: GateDecision, part: SelectedPart | None) -> TextSection:
    """The table of a gate's checks.

    Args:
        gate: The decision.
        part: The part of the dataset that it judged; None for the whole.
    """
    # The headline tells the decision.
    if not gate.checks:
        return TextSection(("Gate",), [(gate_verdict(gate, part),)], key="gate")

    table = table_of(
        gate.checks,
        [
            ("status", lambda check: check.status),
            ("check", lambda check: DataText(check.name)),
            ("observed", format_observed),
            ("95% interval", _check_interval),
            ("required", lambda check: f"{check.required:.4g}"),
            ("because", lambda check: SentenceText(check.because)),
        ],
        spare=("95% interval", "required", "because"),
    )
    return TextSection(("Gate",), table=table, key="gate")


def format_observed(check: GateCheck) -> str:
    """The number that a check looked at; a count has no decimals.

    Args:
        check: The check.
    """
    number = check.observed
    is_count = check.name.rpartition(".")[2] in _COUNTED and number is not None and number == int(number)
    return f"{number:,.0f}" if is_count else format_number(number)


def format_against_bound(check: GateCheck) -> str:
    """What a check looked at, its interval where it has one, and the bound.

    Args:
        check: The check.
    """
    if check.low is None or check.high is None:
        return f"{format_observed(check)}, required {check.required:.4g}"

    places = supported_places((check.low, check.high))
    while places < _DECIMALS and check.observed is not None and _is_near(check.observed, check.required, places):
        places += 1
    number, low, high = (format_number(end, places=places) for end in (check.observed, check.low, check.high))
    return f"{number} (interval {low} to {high}), required {check.required:.4g}"


def _is_near(observed: float, required: float, places: int) -> bool:
    """Whether so many decimals hardly tell a number from its bound."""
    return 0 < abs(observed - required) < 10.0**-places


def _check_interval(check: GateCheck) -> str:
    if check.low is None or check.high is None:
        return "n/a"
    interval = Interval(check.low, check.high)
    return format_interval(interval) if check.low >= 0 else format_change_interval(interval)
