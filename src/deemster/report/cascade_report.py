"""The report of a cascade calibration: the threshold to choose, and what each threshold costs."""

from __future__ import annotations

import msgspec

from deemster.alignment.cascade_calibration import CascadeCalibration, CascadePoint
from deemster.alignment.number_format import format_percent
from deemster.errors import plural
from deemster.report.text_sections import DataText, TextLine, TextSection, TextTable
from deemster.stats.confidence_interval import ConfidenceInterval

# Rows of the table; of more thresholds evenly many are shown, and always the best and the chosen one.
_ROWS = 21


def cascade_sections(result: CascadeCalibration) -> list[TextSection]:
    """What a calibration says to people, in order."""
    return [TextSection(("Cascade",), _lines(result)), _table(result)]


def cascade_json(result: CascadeCalibration) -> bytes:
    """A calibration as JSON."""
    fields = {key: getattr(result, key) for key in result.__struct_fields__}
    value = {"schema_version": "deemster.cascade.v1", **fields, "choice": result.choice, "pays": result.pays}
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2) + b"\n"


def _lines(result: CascadeCalibration) -> list[TextLine]:
    choice = result.choice
    strong: list[str] = []
    for judge in result.strong:
        strong += [", " if strong else "", DataText(judge)]
    basis = f"{plural(result.n_items, 'item')}, {plural(result.n_cells, 'verdict')} with a truth"
    promised = (
        f"Promised: an accuracy of {format_percent(result.expected_accuracy)} ({_shares(choice.accuracy_ci)}), "
        f"a cost of {_cost(choice.cost_per_item)} per item ({_costs(choice.cost_ci)}), "
        f"{format_percent(choice.escalation_share)} escalated ({_shares(choice.escalation_ci)}), {_span(result)}."
    )
    seen = (
        f"On these items the accuracy is {format_percent(choice.accuracy)}; choosing on them overstates it by about "
        f"{result.optimism:.4f}. The {result.confidence:.0%} intervals hold at all thresholds at once: "
        f"{result.factor:.2f} standard errors."
    )
    alone = f" {format_percent(result.cheap_only)} for {_cost(result.cheap_cost)} per item, the strong panel "
    alone += f"{format_percent(result.strong_only)} for {_cost(result.strong_cost)}."
    lines: list[TextLine] = [
        ("First ", DataText(result.cheap), ", then ", *strong, f": {basis}."),
        (_advice(result),),
        (promised,),
        (seen,),
        ("Alone: ", DataText(result.cheap), alone),
    ]
    if result.n_forced:
        why = "the cheap judge abstained, failed or did not say how sure it is"
        lines.append((f"{plural(result.n_forced, 'verdict')} always escalate: {why}.",))
    if result.n_left_out:
        lines.append((f"{plural(result.n_left_out, 'labelled verdict')} left out: one side was not asked.",))
    return lines


def _advice(result: CascadeCalibration) -> str:
    within = f"within {format_percent(result.tolerance)} of the best accuracy"
    if result.choice.threshold is None:
        return f"No threshold is {within} but asking the strong panel always: leave the cheap judge out."
    if not result.pays:
        return f"The cascade does not pay: the cheapest threshold {within} costs no less than the strong panel alone."
    return f"Escalate below a confidence of {result.choice.threshold:.4g}: the cheapest threshold {within}."


def _span(result: CascadeCalibration) -> str:
    return "in the long run" if result.fresh_items is None else f"on {plural(result.fresh_items, 'fresh item')}"


def _table(result: CascadeCalibration) -> TextSection:
    many = len(result.points)
    places = set(range(many))
    if many > _ROWS:
        places = {round(step * (many - 1) / (_ROWS - 1)) for step in range(_ROWS)} | {result.best, result.chosen}
    rows = [_row(result, place) for place in sorted(places)]
    head = ("threshold", "accuracy", "interval", "cost per item", "interval of cost", "escalated", "")
    lines: list[TextLine] = [("The cheap judge's verdict stands where its confidence reaches the threshold.",)]
    return TextSection(("Thresholds",), lines, TextTable(head, rows, ("interval of cost",)))


def _row(result: CascadeCalibration, place: int) -> TextLine:
    point: CascadePoint = result.points[place]
    marks = ["chosen"] * (place == result.chosen) + ["best"] * (place == result.best)
    return (
        "always escalate" if point.threshold is None else f"{point.threshold:.4g}",
        format_percent(point.accuracy),
        _shares(point.accuracy_ci),
        _cost(point.cost_per_item),
        _costs(point.cost_ci),
        format_percent(point.escalation_share),
        ", ".join(marks),
    )


def _shares(ci: ConfidenceInterval) -> str:
    return f"{format_percent(ci.lower)} to {format_percent(ci.upper)}"


def _costs(ci: ConfidenceInterval) -> str:
    return f"{_cost(ci.lower)} to {_cost(ci.upper)}"


def _cost(value: float) -> str:
    return f"{value:.4g}"
