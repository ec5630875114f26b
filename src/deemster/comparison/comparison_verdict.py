"""What a comparison says first: what became of samples, and what that means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.text.number_format import format_change, format_change_interval, format_number, format_percent
from deemster.text.text_sections import DataText, MetricName, TextLine, join_parts

if TYPE_CHECKING:
    from deemster.comparison.comparison import Comparison
    from deemster.comparison.judge_change import JudgeChange
    from deemster.results.compared_numbers import Difference

# So many samples are named, by so many characters, so that the sentence stays a line.
_MOST_NAMED = 4
_MOST_NAME_CHARS = 60
# How an answer about two judges is coloured.
_KINDS = {
    "interchangeable": "pass",
    "linked": "pass",
    "not-comparable": "fail",
    "not-enough-data": "inconclusive",
}
_NOTHING = "Nothing can be compared: no metric is the same in both runs."


def comparison_verdict(comparison: Comparison) -> str:
    """What became of samples, then what it means: the first thing a reader wants to know."""
    meaning = describe_change(comparison)
    return "".join((*describe_samples(comparison), " ", meaning)) if meaning else _NOTHING


def describe_samples(comparison: Comparison) -> TextLine:
    """How many samples broke and how many were fixed, and the first of them by their ids, in one sentence."""
    if comparison.judge_change is not None:
        return _describe_answer(comparison, comparison.judge_change)
    if not describe_change(comparison):
        return (_NOTHING,)

    broke = comparison.statuses.get("newly_failing", 0)
    fixed = comparison.statuses.get("newly_passing", 0)
    broken, mended = _names(comparison, "newly_failing", broke), _names(comparison, "newly_passing", fixed)
    was_fixed = "was" if fixed == 1 else "were"

    if broke and fixed:
        return (f"{plural(broke, 'sample')} broke", *broken, f", and {fixed:,} {was_fixed} fixed", *mended, ".")
    if broke:
        return (f"{plural(broke, 'sample')} broke", *broken, ", none was fixed.")
    if fixed:
        return (f"{plural(fixed, 'sample')} {was_fixed} fixed", *mended, ", none broke.")

    lost = comparison.statuses.get("unscored_now", 0)
    if lost:
        has = "has" if lost == 1 else "have"
        return (f"No sample broke; {lost:,} {has} no score now", *_names(comparison, "unscored_now", lost), ".")
    return ("No sample broke, and none was fixed.",)


def _describe_answer(comparison: Comparison, change: JudgeChange) -> TextLine:
    """What the numbers of the old judge are worth, and what to do."""
    metric = change.metrics[change.deciding]
    if change.answer == "interchangeable":
        return ("Interchangeable: old numbers stand beside those of the new judge.",)
    if change.answer == "linked":
        old = metric.exchange.old_mark
        place = "" if old is None else f" in place of {format_mark(old)}"
        return (
            "Linked: for ",
            MetricName(change.deciding),
            f" use threshold {format_mark(metric.exchange.mark)}{place}.",
        )
    if change.answer == "not-comparable":
        if comparison.candidate.part is not None:
            return ("Not comparable: let the new judge judge all outputs, and make that the new baseline.",)
        return ("Not comparable: start a new baseline: `deemster baseline ", DataText(comparison.candidate.id), "`.")
    judged = f"{plural(metric.outputs, 'output')} {'was' if metric.outputs == 1 else 'were'} judged by both"
    more = "judge more outputs" if metric.needed is None else f"judge about {metric.needed:,} outputs"
    return (f"Not enough data: {more}; {judged}.",)


def format_mark(mark: float | None) -> str:
    """A pass mark with two decimals, or as many as it has.

    >>> format_mark(0.7), format_mark(0.618)
    ('0.70', '0.618')
    """
    return "n/a" if mark is None else max(f"{mark:.2f}", f"{mark:.4g}", key=len)


def change_cells(number: Difference, *, places: int = 4) -> TextLine:
    """A number before and now, its change, and the interval of that, as cells of a table."""
    return (
        format_number(number.baseline, places=places),
        format_number(number.candidate, places=places),
        format_change(number.difference, places=places),
        format_change_interval(number.interval, places=places),
    )


def _names(comparison: Comparison, status: str, count: int) -> TextLine:
    """The first samples of a status, in brackets."""
    every = (DataText(example.id) for example in comparison.examples if example.status == status)
    ids = list(islice(every, _MOST_NAMED))
    while len(ids) > 1 and sum(map(len, ids)) > _MOST_NAME_CHARS:
        ids.pop()
    if not ids:
        return ()

    return (" (", *join_parts([(name,) for name in ids], more=count - len(ids)), ")")


def describe_change(comparison: Comparison) -> str:
    """What the mean pass-rate did, and whether that can be chance, in one sentence; nothing where none is compared.

    Where the judge changed, it is why the answer is as it is.
    """
    if (change := comparison.judge_change) is not None:
        because = change.metrics[change.deciding].because
        return f"{because[0].upper()}{because[1:]}."
    macro, margin = comparison.macro_f1, comparison.margin
    if macro.difference is None or macro.interval is None:
        return ""

    before, now = format_percent(macro.baseline), format_percent(macro.candidate)
    moved = f"The mean pass-rate {'fell' if macro.difference < 0 else 'rose'} from {before} to {now}"
    if not macro.difference:
        moved = f"The mean pass-rate stayed at {now}"

    low, high = (format_points(end, unit=False, sign=True) for end in macro.interval)
    samples = plural(comparison.samples.paired, "sample")
    found = f"the {format_level(comparison)} interval of the change, from {samples}, is {low} to {high} points"
    if margin is not None:
        return f"{moved}; {found}. {_against_margin(comparison, margin)}"
    if not macro.difference:
        return f"{moved}; {found}."
    if macro.interval.leaves_out_zero:
        return f"{moved}, by more than chance explains: {found}."
    return f"{moved}, which may be chance: {found}.{_describe_pass_rate(comparison)}"


def _describe_pass_rate(comparison: Comparison) -> str:
    """That the share that passes every metric changed, where the mean pass-rate does not show it."""
    rate = comparison.pass_rate
    if rate.difference is None or rate.interval is None or not rate.interval.leaves_out_zero:
        return ""

    moved = "fell" if rate.difference < 0 else "rose"
    low, high = sorted(abs(end) for end in rate.interval)
    span = f"{format_points(low, unit=False)} to {format_points(high)}"
    return f" But the share of outputs that pass every metric {moved} by {span}, by more than chance explains."


def _against_margin(comparison: Comparison, margin: float) -> str:
    drop = f"more than the {format_points(margin)} allowed"
    statuses = margin_statuses(comparison, margin)
    if "fail" in statuses:
        return f"The drop is {drop}{_share_of_rates(statuses, 'fail')}."
    if "inconclusive" in statuses:
        return f"A drop of {drop} is neither shown nor ruled out{_share_of_rates(statuses, 'inconclusive')}."
    return f"A drop of {drop} is ruled out."


def comparison_kind(comparison: Comparison) -> str:
    """How a comparison came out: `pass`, `fail` or `inconclusive`; what the gate decided where one was asked."""
    macro, margin = comparison.macro_f1, comparison.margin
    if comparison.gate is not None and comparison.gate.checks:
        return comparison.gate.decision
    if comparison.judge_change is not None:
        return _KINDS[comparison.judge_change.answer]
    if macro.difference is None or macro.interval is None:
        return "inconclusive"
    if margin is not None:
        statuses = margin_statuses(comparison, margin)
        return next((status for status in ("fail", "inconclusive") if status in statuses), "pass")
    return "fail" if macro.interval.high < 0 else "pass" if macro.interval.low > 0 else "inconclusive"


def margin_statuses(comparison: Comparison, margin: float) -> list[str]:
    """What the checks of the margin say, of every pass-rate; of the mean pass-rate where no gate decided."""
    if comparison.gate is not None:
        return [check.status for check in comparison.gate.checks if check.name.startswith("baseline.margin.")]
    macro = comparison.macro_f1
    if macro.lower_bound is not None and macro.lower_bound > -margin:
        return ["pass"]
    is_worse = macro.p_beyond is not None and macro.p_beyond < 1 - comparison.confidence
    return ["fail" if is_worse else "inconclusive"]


def _share_of_rates(statuses: Sequence[str], status: str) -> str:
    """Of how many pass-rates a verdict speaks: a gate holds several of them to the margin.

    >>> _share_of_rates(["fail"], "fail"), _share_of_rates(["fail", "pass"], "fail")
    ('', ' in 1 of 2 pass-rates')
    """
    count = statuses.count(status)
    if len(statuses) == 1:
        return ""
    return f" in all {count} pass-rates" if count == len(statuses) else f" in {count} of {len(statuses)} pass-rates"


def format_points(share: float | None, *, unit: bool = True, sign: bool = False) -> str:
    """A share in percentage points.

    >>> format_points(0.036), format_points(-0.012, unit=False, sign=True), format_points(0.0001), format_points(0.01)
    ('3.6 points', '-1.2', '0.01 points', '1.0 points')
    """
    if share is None:
        return "n/a"
    places = ".1f" if not share or abs(share) >= 0.0005 else ".1g"
    number = f"{100 * share:{'+' if sign and share else ''}{places}}"
    return f"{number} points" if unit else number


def format_level(comparison: Comparison) -> str:
    """The level of the intervals, such as `95%`."""
    return f"{100 * comparison.confidence:.4g}%"
