"""What a result of agreement comes to in words: the answer, why, what it rests on, the ceiling, bias."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.agreement._agreement_tables import format_span
from deemster.agreement.trust_verdict import (
    concordance_interval,
    count_units,
    error_rates,
    kappa_interval,
    rare_classes,
)
from deemster.errors import plural
from deemster.stats.interpretation import interpret_effect_size, interpret_kappa
from deemster.stats.systematic_bias import SIGNIFICANCE
from deemster.text.escaping import LIMIT
from deemster.text.number_format import count_criteria, format_number, format_percent, state_p_value
from deemster.text.text_sections import DataText, TextLine

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

# How many pieces of a warning are shown.
_LONGEST = 5
_ANSWERS = {
    "yes": "Yes, as far as these labels show.",
    "with care": "With care.",
    "not yet": "Not yet.",
    None: "These labels give no answer.",
}


def has_scores(result: MetricsResult) -> bool:
    """Whether items could have a score: not where all criteria are nominal and none of their options has a value."""
    only_choices = result.n_samples > 0 and result.n_nominal_criteria == result.n_criteria
    told = result.bias.n_samples > 0 or any(warning.startswith("no-scores:") for warning in result.warnings)
    return told or not only_choices


def count_kinds(result: MetricsResult) -> list[str]:
    """The kinds of criteria with their counts, such as `2 binary`."""
    counts = {
        "binary": result.n_binary_criteria,
        "ordinal": result.n_ordinal_criteria,
        "nominal": result.n_nominal_criteria,
        "numeric": result.n_numeric_criteria,
    }
    return [f"{count:,} {kind}" for kind, count in counts.items() if count]


def answer_lines(result: MetricsResult) -> Iterator[TextLine]:
    """Whether the judge can be trusted, and why."""
    yield (f"Can this judge be trusted? {_ANSWERS[result.verdict.answer]}",)
    yield ("Why: ", *_why(result), ".")
    if result.n_judges > 1:
        asks = "`--judge NAME` asks about one of them, `--per-judge` lists each"
        yield (f"This is about the joint verdict of {result.n_judges:,} judges, the panel; {asks}.",)


def error_rate_lines(result: MetricsResult) -> Iterator[TextLine]:
    """Which way the judge errs, where that speaks for more than these items."""
    if result.sampling != "chosen" and (rates := error_rates(result)) is not None:
        yield (rates,)


def warning_lines(result: MetricsResult) -> Iterator[TextLine]:
    """The warnings of a result, a line each."""
    for warning in result.warnings:
        yield ("Warning: ", *_pieces(warning))


def _pieces(text: str) -> Iterator[str]:
    """A long text in pieces that no renderer cuts, up to a limit."""
    for place, piece in enumerate(textwrap.wrap(text, LIMIT)[:_LONGEST]):
        yield " " if place else ""
        yield DataText(piece)


def note_sentence(note: str) -> str:
    """A note of the verdict without its code, as a sentence."""
    text = note.partition(": ")[2]
    return text[:1].upper() + text[1:]


def verdict_reason(result: MetricsResult) -> str:
    """What the answer rests on, as half a sentence."""
    found = result.verdict
    if found.answer == "yes":
        what = "mean kappa" if found.floor == (kappa_interval(result) or (None,))[0] else "mean concordance"
        return f"the interval of {what} begins at {format_number(found.floor)}, and nothing speaks against it"
    return "; ".join(reason.partition(": ")[2] for reason in found.reasons)


def _why(result: MetricsResult) -> Iterator[str]:
    """What the answer rests on, where names of classes and criteria are data."""
    if not result.verdict.reasons:
        yield verdict_reason(result)
    for place, reason in enumerate(result.verdict.reasons):
        yield "; " if place else ""
        code, _, words = reason.partition(": ")
        pieces = rare_classes(result) if code == "rare-class" else (words,)
        yield from (DataText(piece) if number in (1, 3) else piece for number, piece in enumerate(pieces))


def findings(result: MetricsResult) -> Iterator[str]:
    """What the numbers come to, in words."""
    yield state_basis(result)
    yield from state_agreement(result)
    if result.human is not None and result.human.ceiling_kappa is not None:
        yield state_ceiling(result)
    if has_scores(result) and result.sampling != "chosen":
        yield _bias(result)
    cover = result.coverage_stats
    if cover is not None and cover.n_total:
        causes = [
            f"{plural(count, 'pair')} {why}"
            for count, why in (
                (cover.n_errored, "because of errors"),
                (cover.n_disputed, "because annotators are tied"),
            )
            if count
        ]
        out = cover.n_total - cover.n_covered
        lost = f"; {out:,} are left out{''.join(f', {cause}' for cause in causes)}" if out else ""
        covered = f"{cover.n_covered:,} of {cover.n_total:,} labelled pairs"
        yield f"Coverage is {format_percent(cover.coverage)}: {covered}{lost}."
        if cover.judge_abstain_rate or cover.gt_abstain_rate:
            judge, people = format_percent(cover.judge_abstain_rate), format_percent(cover.gt_abstain_rate)
            yield f"Of the labelled pairs the judge abstains on {judge}, people on {people}."


def _unit(result: MetricsResult) -> str:
    return "item" if result.bootstrap is None else result.bootstrap.unit


def state_basis(result: MetricsResult) -> str:
    """What the numbers rest on."""
    mix = count_kinds(result)
    by_kind = f" ({', '.join(mix)})" if len(mix) > 1 else ""
    judges = plural(result.n_judges, "judge")
    items = plural(result.n_items, "item")
    units = count_units(result)
    if units < result.n_items and _unit(result) == "sample":
        items = f"{plural(units, 'sample')}, {plural(result.n_items, 'output')}"
    elif units < result.n_items:
        items = f"{items} in {plural(units, 'cluster')}"
    basis = f"{items}, {count_criteria(result.n_criteria)}{by_kind}, {judges}"
    return f"The numbers rest on {plural(result.n_samples, 'pair')} of truth and verdict: {basis}."


def state_agreement(result: MetricsResult) -> Iterator[str]:
    """How far verdicts and numbers agree."""
    if result.sampling == "chosen":
        share = format_percent(result.criterion_accuracy)
        yield f"On these outputs alone, the judge agrees with people on {share}; that says nothing about the run."
        return
    ends, kappa = kappa_interval(result), result.mean_kappa
    if result.n_numeric_criteria and result.mean_concordance is not None:
        between = format_span(concordance_interval(result))
        yield f"Numbers agree with a mean concordance of {format_number(result.mean_concordance)}, interval {between}."
    if result.n_numeric_criteria and result.n_numeric_criteria == result.n_criteria:
        pass
    elif kappa is None:
        yield "Agreement beyond chance is undefined: no criterion has a kappa."
    elif ends is None:
        number = f"mean kappa {format_number(kappa)}"
        yield f"Agreement beyond chance is {kappa_in_words(kappa)}: {number}, without an interval."
    else:
        low, high = (kappa_in_words(end) for end in ends)
        reach = f"all of it {low}" if low == high else f"from {low} to {high}"
        yield (
            f"Agreement beyond chance is {kappa_in_words(kappa)}: mean kappa {format_number(kappa)}, "
            f"interval {format_span(ends)}, {reach}."
        )


def state_ceiling(result: MetricsResult) -> str:
    """What people reach, which a judge is not expected to pass."""
    human, subject = result.human, "panel" if result.n_judges > 1 else "judge"
    others, what = measure_of_people(result)
    if human is None or human.ceiling_kappa is None:
        return f"The ceiling is unknown: no person can be compared with the {others} of others."
    share = format_percent(human.n_cells / human.n_labelled_cells if human.n_labelled_cells else None)
    return (
        f"The ceiling: a person compared with the {others} of the others reaches a {what} of "
        f"{format_number(human.ceiling_kappa)}, the {subject} {format_number(human.panel.mean_kappa)}. "
        f"This rests on the {share} of the labelled cells that two people or more labelled."
    )


def measure_of_people(result: MetricsResult) -> tuple[str, str]:
    """What a person is compared with, and the number for it: numbers have a mean and a concordance."""
    if not result.n_numeric_criteria:
        return "consensus", "kappa"
    if result.n_numeric_criteria == result.n_criteria:
        return "mean", "concordance"
    return "consensus", "kappa (of numbers: concordance with the mean)"


def _bias(result: MetricsResult) -> str:
    bias = result.bias
    if bias.mean_bias is None:
        return "There is no pair of scores, so nothing is known about bias."
    place = {"positive": "above", "negative": "below"}.get(bias.direction)
    if place is None:
        difference = format_number(bias.mean_bias)
        return f"The judge's scores lie where people's do: mean difference {difference}, n {bias.n_samples:,}."
    size = "" if bias.effect_size is None else f", {interpret_effect_size(bias.effect_size)} effect"
    shown = "not tested" if bias.p_value is None else state_p_value(bias.p_value)
    doubt = ""
    if bias.p_value is not None and not bias.is_significant:
        few = ", but too few items differ to be sure" if bias.p_value < SIGNIFICANCE else ""
        doubt = f"{few}, so that it may be chance"
    return (
        f"The judge's scores lie {format_number(abs(bias.mean_bias))} {place} people's on average "
        f"({shown}{size}, n {bias.n_samples:,}){doubt}."
    )


def kappa_in_words(kappa: float) -> str:
    """What a kappa means, in a word or two."""
    return interpret_kappa(kappa).removesuffix(" (worse than chance)")
