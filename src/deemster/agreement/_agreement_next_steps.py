"""What to do next about a judge: what would make the answer to "can it be trusted?" a better one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.agreement.result_models import AnyCriterion
from deemster.agreement.trust_verdict import (
    ENOUGH_CLUSTERS,
    ENOUGH_ITEMS,
    MODERATE,
    SUBSTANTIAL,
    concordance_interval,
    count_units,
    criterion_kappa,
    kappa_interval,
    rare_classes,
    undefined_criteria,
    weak_criteria,
)
from deemster.errors import plural
from deemster.text.number_format import format_number
from deemster.text.text_sections import DataText, TextLine, TextSection

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

# How many criteria are named where not all are.
FEW_CRITERIA = 3


def next_steps_section(result: MetricsResult) -> TextSection:
    """What would make the answer a better one."""
    return TextSection(("What to do next",), [("- ", *step) for step in _next_steps(result)], key="next-steps")


def _next_steps(result: MetricsResult) -> Iterator[TextLine]:
    """First the criteria, then the labels, then the judge."""
    found = result.verdict
    codes = {text.partition(":")[0] for text in (*found.reasons, *found.notes)}
    if count_units(result) < ENOUGH_ITEMS:
        codes.add("few-items")
    yield from (step for code, step in _label_steps(result).items() if code in codes)
    weak, bias = weak_criteria(result), result.bias
    if "weak-criteria" in codes:
        repair = "`deemster rubric check` finds unclear wording, `deemster rubric improve` tries other wordings."
        yield "Do not use the judge on ", *name_criteria(weak), f", or reword: {repair}"
    if "bias" in codes and bias.mean_bias is not None:
        place = "above" if bias.mean_bias > 0 else "below"
        yield (f"Do not compare its scores with people's: they lie {format_number(abs(bias.mean_bias))} {place}.",)
    if codes & {"low-kappa", "moderate"}:
        yield (_settling_step(result),)
    if found.answer == "yes":
        yield ("Use the judge. Check it again when its model, its prompt or what it judges changes.",)


def _label_steps(result: MetricsResult) -> dict[str, TextLine]:
    """By the code of a reason or note, what to do about criteria and labels."""
    human, cover = result.human, result.coverage_stats
    among = None if human is None else human.pairwise_kappa
    tied = 0 if human is None else len(human.disputed)
    left_out = 0 if cover is None else cover.n_total - cover.n_covered
    return {
        "few-items": (f"Label at least {ENOUGH_ITEMS} items; there are {count_units(result):,}.",),
        "unreliable-question": (
            f"Make the criteria clearer: two people agree only with a kappa of {format_number(among)}. ",
            "Word them more sharply, give examples, and label again.",
        ),
        "disputed": (f"Let someone decide the {plural(tied, 'cell')} on which annotators are tied.",),
        "no-kappa": ("Label items of several classes: with one class alone, agreement cannot be told from chance.",),
        "no-interval": ("Label more items, and compute with intervals: nothing says yet how sure the kappa is.",),
        "few-clusters": (f"Label items of at least {ENOUGH_CLUSTERS} clusters.",),
        "undefined-criteria": (
            "Label items of every class on ",
            *name_criteria(undefined_criteria(result)),
            ": without a kappa nothing is known there.",
        ),
        "rare-class": (
            "Label more items of the rarest class: there are ",
            *(DataText(piece) if at in (1, 3) else piece for at, piece in enumerate(rare_classes(result))),
            ".",
        ),
        "not-random": (
            "Label outputs that are drawn at random: the queue `random` of `deemster view --annotator YOUR_NAME`, ",
            "or write a sheet with `deemster labels sheet RUN`. Labels of the queue `efficient` are weighted by ",
            "`deemster agreement RUN --labels viewer`.",
        ),
        "one-way": ("Do not use it as a gate before its wording, its threshold or its model errs less on that side.",),
        "coverage": (f"Find out why {plural(left_out, 'labelled pair')} cannot be compared.",),
    }


def _settling_step(result: MetricsResult) -> str:
    """Whether more labels could give a better answer, going by the upper end of the interval."""
    known = [ends for ends in (kappa_interval(result), concordance_interval(result)) if ends is not None]
    upper = min(known).high
    needed = MODERATE if result.verdict.answer == "not yet" else SUBSTANTIAL
    if upper >= needed:
        return f"Label more items: the interval reaches {format_number(upper)}, so more labels may settle it."
    better = "reword the weakest criteria, or ask a better model"
    return f"More labels will not help: the whole interval lies below {needed}. Instead, {better}."


def name_criteria(criteria: Sequence[AnyCriterion]) -> Iterator[str]:
    """The names of the first criteria with their kappas, and how many more there are."""
    for place, part in enumerate(criteria[:FEW_CRITERIA]):
        kappa = criterion_kappa(part)
        yield ", " if place else ""
        yield DataText(part.name)
        yield "" if kappa is None else f" ({format_number(kappa)})"
    if len(criteria) > FEW_CRITERIA:
        yield f" and {len(criteria) - FEW_CRITERIA} more"
