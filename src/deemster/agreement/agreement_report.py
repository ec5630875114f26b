"""The report of judge agreement: whether a judge can be trusted, and the numbers behind it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from deemster.agreement._agreement_next_steps import FEW_CRITERIA, next_steps_section
from deemster.agreement.result_models import (
    AnyCriterion,
    BootstrapResult,
    CorrectedMeans,
    CriterionMetrics,
    HumanAgreement,
    JudgeMetrics,
    NumericCriterionMetrics,
    PositionBias,
    ScoreLimits,
    SliceMetrics,
    bootstrap_at,
    interval_of,
    value_at,
)
from deemster.agreement.trust_verdict import (
    ENOUGH_CLUSTERS,
    ENOUGH_ITEMS,
    ENOUGH_LABELS,
    FULL_ENOUGH,
    MODERATE,
    MOST_DISPUTED,
    MOST_ONE_WAY,
    SUBSTANTIAL,
    concordance_interval,
    count_units,
    criterion_interval,
    criterion_kappa,
    error_rates,
    fewest_labels,
    kappa_interval,
    rare_classes,
)
from deemster.errors import plural
from deemster.stats.alternative_annotator_test import AlternativeAnnotator
from deemster.stats.confidence_interval import ConfidenceInterval, Interval, interval_ends
from deemster.stats.interpretation import interpret_effect_size, interpret_kappa
from deemster.stats.systematic_bias import SIGNIFICANCE
from deemster.text.escaping import LIMIT
from deemster.text.number_format import count_criteria, format_number, format_percent, state_p_value
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns, scale_around_zero, scale_up_to_one
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

# Of a class with fewer labels, the number is shown beside kappa.
_FEW_LABELS = 5
_PHI_NOTE = (
    "For two classes phi, Matthews' coefficient, Pearson, Spearman and Kendall are the same number, so none of "
    "them confirms another. Kappa minus phi shows only how far the judge's rate of MET has drifted from people's."
)
_FLEISS_NOTE = (
    "Ordinal alpha counts how far apart two grades lie, Fleiss' kappa only whether they are equal. They answer "
    "different questions and need not be close."
)
_ALPHA_NOTE = (
    "Without an order of the labels alpha is Fleiss' kappa with a correction for few votes, "
    "alpha = K + (1 - K) / (N R) for N items and R judges. It is one statistic, so Fleiss' kappa is left out."
)
# A column of a table: the field that it shows, or how a cell of it is written.
Column: TypeAlias = tuple[str, str | Callable[[Any], str]]


def _percent(field: str) -> Callable[[Any], str]:
    """A column of shares as percentages."""
    return lambda part: format_percent(value_at(part, field))


def _interval(name: str) -> Callable[[Any], str]:
    """A column of the intervals of a number."""
    return lambda part: _between(interval_of(part.intervals, name))


def _count_of_errors(name: str) -> Callable[[CriterionMetrics], str]:
    """A column of one cell of the confusion matrices, which only a table of MET against UNMET has."""

    def count(part: CriterionMetrics) -> str:
        matrix = part.confusion_matrix
        return _shown(None if matrix is None or matrix.labels != ("MET", "UNMET") else getattr(matrix, name))

    return count


# What is told of criteria of one kind, beside what is told of all.
_COLUMNS_OF_KIND: dict[str, tuple[Column, ...]] = {
    "binary": (
        ("criterion", "name"),
        ("precision", "precision"),
        ("recall", "recall"),
        ("F1", "f1"),
        ("phi", "phi"),
        ("false MET", _count_of_errors("fp")),
        ("missed MET", _count_of_errors("fn")),
        ("FPR", "fpr"),
        ("FNR", "fnr"),
    ),
    "ordinal": (
        ("criterion", "name"),
        ("at most one off", "adjacent_accuracy"),
        ("Spearman", "spearman.coefficient"),
        ("RMSE", "rmse"),
        ("Fleiss' kappa", "fleiss_kappa"),
    ),
}
_KINDS: tuple[Column, ...] = (
    ("kind", lambda part: part.scale_type),
    ("n", "n_points"),
    ("accuracy", _percent("exact_accuracy")),
    ("kappa", "kappa"),
    ("RMSE", "value_rmse"),
    ("Spearman", "value_spearman"),
)
_POSITION_BIAS: tuple[Column, ...] = (
    ("criterion", "criterion"),
    ("judge", lambda part: "final" if part.judge_id is None else DataText(part.judge_id)),
    ("pairs", "n_pairs"),
    ("consistent", _percent("consistency")),
    ("interval", "consistency_ci"),
    ("first place", "favours_first"),
    ("second place", "favours_second"),
    ("p", lambda part: "n/a" if part.p_value is None else state_p_value(part.p_value)),
)
_CONSISTENCY: tuple[Column, ...] = (
    ("judge", "judge_id"),
    ("cells", "n_cells"),
    ("repeats", "n_repeats"),
    ("all equal", _percent("stable_share")),
    ("equal pairs", _percent("pairwise_agreement")),
    ("alpha", "krippendorff_alpha"),
)
_PROBABILITIES: tuple[Column, ...] = (
    ("judge", lambda part: "all judges" if part.judge_id is None else DataText(part.judge_id)),
    ("kind", lambda part: part.scale),
    ("n", "n_samples"),
    ("Brier", "brier"),
    ("calibration error", "calibration_error"),
)
_ITEMS: tuple[Column, ...] = (
    ("item", "id"),
    ("dispute", "dispute"),
    ("difficulty", "difficulty"),
    ("votes", "n_votes"),
)
_NUMERIC: tuple[Column, ...] = (
    ("criterion", "name"),
    ("n", "n_samples"),
    ("ICC(2,1)", "icc.icc_2_1"),
    ("interval", _interval("icc.icc_2_1")),
    ("bias", "bias.mean_bias"),
    ("interval", _interval("bias")),
    ("RMSE", "rmse"),
    ("MAE", "mae"),
    ("limits of agreement", lambda part: _span(_limits(part.limits))),
)
_SCORES_OF_JUDGES: tuple[Column, ...] = (
    ("judge", "judge_id"),
    ("MAE", "score_mae"),
    ("Spearman", "score_spearman.coefficient"),
    ("Kendall", "score_kendall.coefficient"),
    ("Pearson", "score_pearson.coefficient"),
)


def _table(
    parts: Iterable[Any], columns: Sequence[Column], *, spare: TextLine = (), plots: Sequence[PlotColumn] = ()
) -> TextTable:
    """A row for each part of a result."""
    rows = [tuple(_cell(part, column) for _, column in columns) for part in parts]
    return TextTable(tuple(name for name, _ in columns), rows, spare, plots)


def _cell(part: Any, column: str | Callable[[Any], str]) -> str:
    return column(part) if callable(column) else _shown(value_at(part, column))


def _shown(value: str | float | ConfidenceInterval | None) -> str:
    """A field of a result as the text of a cell."""
    if isinstance(value, str):
        return DataText(value)
    if isinstance(value, ConfidenceInterval):
        return _between(value)
    return f"{value:,}" if isinstance(value, int) else format_number(value)


def _extras(result: MetricsResult) -> list[TextSection]:
    """The sections of what a result says beyond agreement."""
    parts: list[TextSection] = []
    if result.pooled_by_scale:
        kinds = _table(result.pooled_by_scale, _KINDS)
        parts.append(TextSection(("Pooled by kind",), table=kinds, key="kinds"))
    if result.slices:
        parts.append(_slices(result.slices))
    if result.human is not None:
        parts.append(_people(result.human, result))
        if result.human.annotator_tests:
            parts.append(_annotator_tests(result.human.annotator_tests))
    if result.position_bias:
        parts.append(_position_bias(result.position_bias))
    if result.consistency:
        judges = _table(result.consistency, _CONSISTENCY)
        parts.append(TextSection(("Does a judge repeat itself?",), table=judges, key="consistency"))
    if result.calibration:
        stated = _table(result.calibration, _PROBABILITIES)
        parts.append(TextSection(("Do probabilities mean what they say?",), table=stated, key="probabilities"))
    if result.corrected is not None:
        parts.append(_corrected(result.corrected))
    if result.items:
        order = "The most disputed first, then the hardest."
        parts.append(TextSection(("Items to look at",), [(order,)], _table(result.items, _ITEMS), key="items"))
    return parts


def _slices(slices: tuple[SliceMetrics, ...]) -> TextSection:
    ends = [interval_of(part.intervals, "kappa_difference") for part in slices]
    resampled = any(interval is not None for interval in ends)
    columns: list[Column] = [
        ("slice", "tag"),
        ("items", "n_items"),
        ("pairs", "n_samples"),
        ("accuracy", _percent("criterion_accuracy")),
        ("mean kappa", "mean_kappa"),
        ("minus the rest", lambda part: _signed(part.kappa_difference)),
        *[("interval", _interval("kappa_difference"))] * resampled,
        ("RMSE", "score_rmse"),
        ("bias", "bias"),
    ]

    cells = [
        IntervalCell(part.kappa_difference, interval_ends(interval))
        for part, interval in zip(slices, ends, strict=True)
    ]
    scale = scale_around_zero(end for cell in cells for end in cell.ends or (cell.value,))
    beside = "interval" if resampled else "minus the rest"
    plots = drawn_columns(PlotColumn("kappa minus the rest", cells, beside, scale))
    return TextSection(("Slices",), table=_table(slices, columns, spare=("pairs", "bias"), plots=plots), key="slices")


def _people(human: HumanAgreement, result: MetricsResult) -> TextSection:
    several = result.n_judges > 1
    subject, what = "panel" if several else "judge", _measure_of_people(result)[1]
    together = [("panel", human.panel)]
    if not several:
        # A panel of one is that judge, unless verdicts were recorded or checked otherwise.
        together = [("final", human.panel)] if _differs(human) else []
    people = [("person", part) for part in human.annotators]
    judges = [("judge", part) for part in human.judges]
    rows = [
        (
            kind,
            DataText(part.name) if kind != "final" else "verdicts",
            f"{part.n_samples:,}",
            format_percent(part.accuracy),
            format_number(part.mean_kappa),
        )
        for kind, part in (*people, *together, *judges)
    ]
    many = f"{plural(human.n_annotators, 'annotator')}, {plural(human.n_items, 'item')} with two or more"
    ceiling = f"a {what} of {format_number(human.ceiling_kappa)}"
    if human.ceiling_accuracy is not None:
        ceiling += f" and an accuracy of {format_percent(human.ceiling_accuracy)}"
    lines: list[TextLine] = [(f"{many}; alpha among them {format_number(human.krippendorff_alpha)}.",)]
    if human.pairwise_kappa is not None:
        lines += [
            (f"Two people's labels of one cell agree with a kappa of {format_number(human.pairwise_kappa)}.",),
            (f"A person's label and the {subject}'s verdict agree with {format_number(human.panel_pairwise_kappa)}.",),
        ]
    lines.append(
        (f"The ceiling is {ceiling}; the {subject}'s gap is {_signed(human.kappa_gap)} in {what.split()[0]}.",)
    )
    if human.disputed:
        lines.append((f"People are tied on {plural(len(human.disputed), 'cell')}; someone must decide:",))
        shown = human.disputed[:_MOST_DISPUTED_SHOWN]
        lines.extend((DataText(cell.item), ", ", DataText(cell.criterion)) for cell in shown)
        if len(human.disputed) > _MOST_DISPUTED_SHOWN:
            lines.append((f"and {len(human.disputed) - _MOST_DISPUTED_SHOWN:,} more, in the JSON file.",))
    head = ("who", "name", "n", "accuracy", "mean kappa")
    return TextSection(("Judges and people against the other people",), lines, TextTable(head, rows), key="people")


def _differs(human: HumanAgreement) -> bool:
    """Whether the final verdicts are others than those of a single judge."""
    final = human.panel
    return any(
        (part.accuracy, part.mean_kappa, part.n_samples) != (final.accuracy, final.mean_kappa, final.n_samples)
        for part in human.judges
    )


def _annotator_tests(tests: Mapping[str, AlternativeAnnotator]) -> TextSection:
    first = next(iter(tests.values()))
    rows = [
        (
            DataText(name),
            {True: "yes", False: "no", None: "too few items"}[test.passes],
            format_number(test.value, places=2),
            format_number(test.advantage),
            f"{test.n:,} of {len(test.trials):,}",
            _items_tested(test),
        )
        for name, test in tests.items()
    ]
    lines: list[TextLine] = [
        ("The alternative annotator test leaves out one person at a time and asks who is nearer to the others.",),
        (f"The judge may be worse by {format_number(first.epsilon, places=2)}, as it is cheaper (epsilon).",),
        ("It passes where it wins against at least half of the people.",),
        (f"Of its wins, at most {format_percent(first.q)} are expected to be false.",),
    ]
    head = ("criterion", "passes", "winning rate", "judge at least as near", "people tested", "items")
    return TextSection(
        ("May the judge replace a person?",), lines, TextTable(head, rows, ("items",)), key="annotator-tests"
    )


def _items_tested(test: AlternativeAnnotator) -> str:
    counts = sorted(trial.n for trial in test.trials.values())
    return f"{counts[0]:,}" if counts[0] == counts[-1] else f"{counts[0]:,} to {counts[-1]:,}"


def _position_bias(pairs: Sequence[PositionBias]) -> TextSection:
    lines: list[TextLine] = [
        ("Pairs that were shown in both orders. Consistent: the same answer wins both times.",),
        ("First or second place: whatever stands there wins both times, so the place decides.",),
    ]
    table = _table(pairs, _POSITION_BIAS, spare=("p",))
    return TextSection(("Does the place decide?",), lines, table, key="position-bias")


def _corrected(corrected: CorrectedMeans) -> TextSection:
    rows: list[TextLine] = []
    if corrected.score is not None:
        part = corrected.score
        n = f"{part.n_labelled:,} + {part.n_unlabelled:,}"
        rows.append(("mean score", format_number(part.predicted_mean), format_number(part.value), _between(part.ci), n))
    lines: list[TextLine] = [
        ("The mean score of all items, labelled or not, and the MET rate of each binary criterion.",),
        ("They are right only if the labelled items were drawn at random.",),
    ]
    for rate in corrected.met_rates:
        value = format_number(rate.value) + (" (cut)" if rate.is_clipped else "")
        shown = (format_number(rate.observed_rate), value, _between(rate.ci), f"{rate.n_samples:,}")
        rows.append((DataText(rate.name), *shown))
        if rate.note is not None:
            lines.append((DataText(rate.name), f": {rate.note}"))
    if corrected.score is not None and corrected.score.n_labelled < FEWEST_LABELS:
        lines.append(
            (f"The mean score rests on {corrected.score.n_labelled} labels only, fewer than {FEWEST_LABELS}.",)
        )
    head = ("what", "as judged", "corrected", "interval", "n")
    return TextSection(
        ("Corrected for the judge's errors",), lines, TextTable(head, rows) if rows else None, key="corrected"
    )


def _between(ci: ConfidenceInterval | None) -> str:
    return _span(interval_ends(ci))


def _signed(value: float | None) -> str:
    text = format_number(value)
    return text if value is None or text.startswith("-") else f"+{text}"


# A corrected mean from fewer labels is little more than the labels' own mean.
FEWEST_LABELS = 30
_MOST_DISPUTED_SHOWN = 10
# How many pieces of a warning are shown.
_LONGEST = 5
_ANSWERS = {
    "yes": "Yes, as far as these labels show.",
    "with care": "With care.",
    "not yet": "Not yet.",
    None: "These labels give no answer.",
}
_RULE = (
    f'The rule: "yes" needs a mean kappa whose interval begins at {SUBSTANTIAL} or above, "with care" one that begins '
    f"at {MODERATE} or above."
)
_CAPS = (
    f'The answer is at most "with care" with fewer than {ENOUGH_ITEMS} items, {ENOUGH_CLUSTERS} clusters or '
    f"{ENOUGH_LABELS} labels of a class, with a criterion below {MODERATE} or without a kappa, with errors that go one "
    f"way beyond chance where the larger error rate is {format_percent(MOST_ONE_WAY)} or more, with a significant bias "
    f"of medium size or more, with a coverage below {format_percent(FULL_ENOUGH)}, or with annotators tied on more "
    f"than {format_percent(MOST_DISPUTED)} of the labelled cells."
)


def short_agreement_sections(result: MetricsResult, *, more: str) -> list[TextSection]:
    """The short form of what a result says: the answer, why, the ceiling, the weakest criteria, what to do next.

    Tables that a result has only where they were asked for are part of it: judges, slices, position bias.

    Args:
        result: The result.
        more: A sentence that says where the rest is.
    """
    human = result.human
    lines: list[TextLine] = [
        *_answer(result),
        *_error_rates(result),
        (_basis(result),),
        *((sentence,) for sentence in _agreement_found(result)),
        ("The ceiling is unknown: no item has labels of two people.",) if human is None else (_ceiling(result),),
        *_warnings(result),
    ]
    steps = next_steps_section(result)._replace(after=[(more,)])
    asked = [_judges(result)] if result.per_judge is not None else []
    asked += [_slices(result.slices)] if result.slices else []
    asked += [_position_bias(result.position_bias)] if result.position_bias else []
    criteria = [] if result.sampling == "chosen" else [_criteria(result, most=FEW_CRITERIA)]
    return [TextSection(("Judge agreement",), lines, key="headline"), *criteria, *asked, steps]


def agreement_sections(result: MetricsResult) -> list[TextSection]:
    """All that a result says to people, in order."""
    scores = [_scores(result)] if has_scores(result) else []
    parts = [_headline(result), next_steps_section(result), _agreement(result), *scores, _criteria(result)]
    parts += _criteria_of_kinds(result)
    if numeric := [part for part in result.per_criterion if isinstance(part, NumericCriterionMetrics)]:
        parts += [_numeric(numeric), _correlations(numeric)]
    if result.per_judge is not None:
        parts.append(_judges(result))
        parts += _votes_of_judges(result)
    if result.na_stats is not None or result.cannot_assess_stats is not None:
        parts.append(_abstentions(result))
    parts += _extras(result)
    parts.append(_reading(result))
    return parts


def has_scores(result: MetricsResult) -> bool:
    """Whether items could have a score: not where all criteria are nominal and none of their options has a value."""
    only_choices = result.n_samples > 0 and result.n_nominal_criteria == result.n_criteria
    told = result.bias.n_samples > 0 or any(warning.startswith("no-scores:") for warning in result.warnings)
    return told or not only_choices


def _count_kinds(result: MetricsResult) -> list[str]:
    """The kinds of criteria with their counts, such as `2 binary`."""
    counts = {
        "binary": result.n_binary_criteria,
        "ordinal": result.n_ordinal_criteria,
        "nominal": result.n_nominal_criteria,
        "numeric": result.n_numeric_criteria,
    }
    return [f"{count:,} {kind}" for kind, count in counts.items() if count]


def _headline(result: MetricsResult) -> TextSection:
    lines: list[TextLine] = [
        *_answer(result),
        *_error_rates(result),
        *((f"{_sentence(note)}.",) for note in result.verdict.notes),
        *((sentence,) for sentence in _findings(result)),
        *_warnings(result),
    ]
    return TextSection(("Judge agreement",), lines, key="headline")


def _answer(result: MetricsResult) -> Iterator[TextLine]:
    yield (f"Can this judge be trusted? {_ANSWERS[result.verdict.answer]}",)
    yield ("Why: ", *_why(result), ".")
    if result.n_judges > 1:
        asks = "`--judge NAME` asks about one of them, `--per-judge` lists each"
        yield (f"This is about the joint verdict of {result.n_judges:,} judges, the panel; {asks}.",)


def _error_rates(result: MetricsResult) -> Iterator[TextLine]:
    if result.sampling != "chosen" and (rates := error_rates(result)) is not None:
        yield (rates,)


def _warnings(result: MetricsResult) -> Iterator[TextLine]:
    for warning in result.warnings:
        yield ("Warning: ", *_pieces(warning))


def _pieces(text: str) -> Iterator[str]:
    """A long text in pieces that no renderer cuts, up to a limit."""
    for place, piece in enumerate(textwrap.wrap(text, LIMIT)[:_LONGEST]):
        yield " " if place else ""
        yield DataText(piece)


def _sentence(note: str) -> str:
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


def _findings(result: MetricsResult) -> Iterator[str]:
    """What the numbers come to, in words."""
    yield _basis(result)
    yield from _agreement_found(result)
    if result.human is not None and result.human.ceiling_kappa is not None:
        yield _ceiling(result)
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


def _basis(result: MetricsResult) -> str:
    """What the numbers rest on."""
    mix = _count_kinds(result)
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


def _agreement_found(result: MetricsResult) -> Iterator[str]:
    """How far verdicts and numbers agree."""
    if result.sampling == "chosen":
        share = format_percent(result.criterion_accuracy)
        yield f"On these outputs alone, the judge agrees with people on {share}; that says nothing about the run."
        return
    ends, kappa = kappa_interval(result), result.mean_kappa
    if result.n_numeric_criteria and result.mean_concordance is not None:
        between = _span(concordance_interval(result))
        yield f"Numbers agree with a mean concordance of {format_number(result.mean_concordance)}, interval {between}."
    if result.n_numeric_criteria and result.n_numeric_criteria == result.n_criteria:
        pass
    elif kappa is None:
        yield "Agreement beyond chance is undefined: no criterion has a kappa."
    elif ends is None:
        yield f"Agreement beyond chance is {_word(kappa)}: mean kappa {format_number(kappa)}, without an interval."
    else:
        low, high = (_word(end) for end in ends)
        reach = f"all of it {low}" if low == high else f"from {low} to {high}"
        yield (
            f"Agreement beyond chance is {_word(kappa)}: mean kappa {format_number(kappa)}, "
            f"interval {_span(ends)}, {reach}."
        )


def _ceiling(result: MetricsResult) -> str:
    """What people reach, which a judge is not expected to pass."""
    human, subject = result.human, "panel" if result.n_judges > 1 else "judge"
    others, what = _measure_of_people(result)
    if human is None or human.ceiling_kappa is None:
        return f"The ceiling is unknown: no person can be compared with the {others} of others."
    share = format_percent(human.n_cells / human.n_labelled_cells if human.n_labelled_cells else None)
    return (
        f"The ceiling: a person compared with the {others} of the others reaches a {what} of "
        f"{format_number(human.ceiling_kappa)}, the {subject} {format_number(human.panel.mean_kappa)}. "
        f"This rests on the {share} of the labelled cells that two people or more labelled."
    )


def _measure_of_people(result: MetricsResult) -> tuple[str, str]:
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


def _word(kappa: float) -> str:
    return interpret_kappa(kappa).removesuffix(" (worse than chance)")


def _span(ends: Interval | None) -> str:
    return "n/a" if ends is None else f"{format_number(ends.low)} to {format_number(ends.high)}"


def _agreement(result: MetricsResult) -> TextSection:
    entries = [("accuracy (micro)", "criterion_accuracy"), ("accuracy (macro)", "macro_accuracy")]
    if result.n_binary_criteria:
        if len(_count_kinds(result)) > 1:
            entries.append(("accuracy (binary)", "binary_accuracy"))
        entries += [
            ("precision (micro)", "criterion_precision"),
            ("recall (micro)", "criterion_recall"),
            ("F1 (micro)", "criterion_f1"),
            ("kappa (micro, binary)", "micro_kappa"),
            ("phi (micro, binary)", "criterion_phi"),
        ]
    entries.append(("mean kappa (macro)", "mean_kappa"))
    if result.n_numeric_criteria:
        entries.append(("mean concordance (numeric)", "mean_concordance"))
    for kind in sorted(result.mean_kappa_by_kind):
        if len(result.mean_kappa_by_kind) > 1 and kind in ("binary", "ordinal", "nominal"):
            entries.append((f"mean kappa ({kind})", f"mean_kappa_by_kind.{kind}"))
    entries.append(("mean alpha (macro)", "mean_krippendorff_alpha"))

    if result.n_numeric_criteria and result.n_numeric_criteria == result.n_criteria:
        entries = [("mean concordance", "mean_concordance")]
    return TextSection(("Agreement",), table=_with_plots(entries, result), key="agreement")


def _scores(result: MetricsResult) -> TextSection:
    entries = [
        ("RMSE", "score_rmse"),
        ("MAE", "score_mae"),
        ("bias", "bias.mean_bias"),
        ("Spearman", "score_spearman.coefficient"),
        ("Kendall", "score_kendall.coefficient"),
        ("Pearson", "score_pearson.coefficient"),
        ("concordance", "score_concordance"),
        ("alpha of the judges' scores", "score_alpha"),
    ]
    if result.score_icc is not None:
        entries.append(("ICC(2,1) of the judges' scores", "score_icc.icc_2_1"))
        entries.append(("ICC(2,k) of the judges' scores", "score_icc.icc_2_k"))

    lines: list[TextLine] = [(f"{plural(result.bias.n_samples, 'pair')} of predicted and true item score.",)]
    ranks = {"Spearman": result.score_spearman, "Kendall": result.score_kendall, "Pearson": result.score_pearson}
    tested = [
        f"{name}: {each.interpretation}, {state_p_value(each.p_value)}"
        for name, each in ranks.items()
        if each.p_value is not None
    ]
    if tested:
        lines.append((f"{'; '.join(tested)}.",))
    if result.score_limits is not None:
        lines.extend((sentence,) for sentence in _limits_of_agreement(result.score_limits))
    return TextSection(("Scores",), lines, _with_intervals(entries, result), key="scores")


def _limits_of_agreement(limits: ScoreLimits) -> Iterator[str]:
    """How far a single score may lie from people's; where no two differences differ, how far it still may."""
    ends = _limits(limits)
    if ends is None:
        return
    if format_number(ends.low) != format_number(ends.high):
        yield f"Limits of agreement: a single item's score is mostly within {_span(ends)} of people's."
        return
    alike = "equal people's" if not limits.mean else f"differ from people's by {_signed(limits.mean)}"
    yield f"Limits of agreement: all scores {alike}, so these items do not show how far a single score may be off."
    if limits.lower_ci is not None and limits.upper_ci is not None:
        reach = _span(Interval(limits.lower_ci.lower, limits.upper_ci.upper))
        yield f"It can still be that single scores mostly lie within {reach} of people's."


def _with_intervals(entries: Sequence[tuple[str, str]], result: MetricsResult) -> TextTable:
    """Numbers by name and field, with their intervals where there are any."""
    rows: list[TextLine] = []
    for name, field in entries:
        value = value_at(result, field)
        rows.append((name, format_percent(value) if field.endswith("accuracy") else format_number(value)))
    resamples = [bootstrap_at(result, field) for _, field in entries]
    if not any(resamples):
        return TextTable(("number", "value"), rows)

    drawn = [(*row, *_drawn(resample)) for row, resample in zip(rows, resamples, strict=True)]
    head = ("number", "value", "interval", "standard error", "replicates")
    return TextTable(head, drawn, ("replicates", "standard error"))


def _drawn(found: BootstrapResult | None) -> TextLine:
    """What replicates tell of a number: its interval, its standard error, and in how many it was defined."""
    if found is None:
        return "n/a", "n/a", "n/a"
    return _between(found.ci), format_number(found.standard_error), f"{found.n_bootstrap:,}"


def _with_plots(entries: Sequence[tuple[str, str]], result: MetricsResult) -> TextTable:
    """Numbers that are at most 1, with their intervals as numbers and drawn on one scale."""
    resamples = [bootstrap_at(result, field) for _, field in entries]
    drawn = [(None, None) if resample is None else (resample.estimate, resample.ci) for resample in resamples]
    return _with_intervals(entries, result)._replace(plots=_interval_plots("agreement", drawn))


def _criteria(result: MetricsResult, *, most: int | None = None) -> TextSection:
    ranked = sorted(result.per_criterion, key=_weakness)
    resampled = any(part.intervals for part in ranked)
    rows = []
    for part in ranked[:most]:
        accuracy: float | None = None
        if not isinstance(part, NumericCriterionMetrics):
            accuracy = part.accuracy if isinstance(part, CriterionMetrics) else part.exact_accuracy
        between = [_between(criterion_interval(part))] * resampled
        remark = "of picked items only" if result.sampling == "chosen" else _remark(part)
        shown = [f"{part.n_samples:,}", format_percent(accuracy), format_number(criterion_kappa(part)), *between]
        rows.append((DataText(part.name), part.criterion_type, *shown, format_number(part.krippendorff_alpha), remark))
    head = ("criterion", "kind", "n", "accuracy", "kappa", *["interval"] * resampled, "alpha", "remark")
    plots = _interval_plots("kappa", [(criterion_kappa(part), criterion_interval(part)) for part in ranked[:most]])
    table = TextTable(head, rows, ("alpha", "kind"), plots) if rows else None
    left = len(ranked) - len(rows)
    after: list[TextLine] = [(f"{count_criteria(left)} more.",)] if left else []
    return TextSection(("Criteria, the weakest first",), (), table, after, key="criteria")


def _criteria_of_kinds(result: MetricsResult) -> Iterator[TextSection]:
    """The numbers that only criteria of one kind have, a section for each kind."""
    for kind, columns in _COLUMNS_OF_KIND.items():
        criteria = [part for part in result.per_criterion if part.criterion_type == kind]
        if criteria:
            yield TextSection((f"{kind.capitalize()} criteria",), table=_table(criteria, columns), key=kind)


def _interval_plots(name: str, numbers: Sequence[tuple[float | None, ConfidenceInterval | None]]) -> list[PlotColumn]:
    """Numbers that are at most 1, such as kappas, with their intervals."""
    cells = [IntervalCell(value, interval_ends(ci)) for value, ci in numbers]
    scale = scale_up_to_one(end for cell in cells for end in cell.ends or (cell.value,))
    return drawn_columns(PlotColumn(name, cells, "interval", scale))


def _numeric(criteria: Sequence[NumericCriterionMetrics]) -> TextSection:
    lines: list[TextLine] = [
        ("In the unit of each criterion. Their kappa above is the concordance, which quadratic kappa is for numbers.",)
    ]
    return TextSection(("Numeric criteria",), lines, _table(criteria, _NUMERIC), key="numeric")


def _limits(limits: ScoreLimits | None) -> Interval | None:
    if limits is None or limits.lower is None or limits.upper is None:
        return None
    return Interval(limits.lower, limits.upper)


def _correlations(criteria: Sequence[NumericCriterionMetrics]) -> TextSection:
    rows: list[TextLine] = []
    for part in criteria:
        every = {
            "dataset": (part.n_samples, part.pearson.coefficient, part.spearman.coefficient, part.kendall.coefficient)
        }
        for name, level in (("sample", part.sample_level), ("system", part.system_level)):
            if level is not None:
                every[name] = (level.n_groups, level.pearson, level.spearman, level.kendall)
        for name, (n, *found) in every.items():
            prefix = "" if name == "dataset" else f"{name}_level."
            known = part.intervals or {}
            ends = _between(interval_of(known, f"{prefix}spearman"))
            shown = [format_number(value) for value in found]
            rows.append((DataText(part.name), name, f"{n:,}", *shown, ends))
    head = ("criterion", "level", "n", "Pearson", "Spearman", "Kendall", "interval of Spearman")
    lines: list[TextLine] = [
        ("Dataset: all pairs. Sample: the mean inside the groups of `group`. System: the means of `system`.",)
    ]
    return TextSection(("Correlations of numbers",), lines, TextTable(head, rows), key="correlations")


def _weakness(part: AnyCriterion) -> tuple[bool, float, int]:
    kappa = criterion_kappa(part)
    return kappa is None, kappa or 0.0, part.index


def _remark(part: AnyCriterion) -> str:
    if part.is_degenerate:
        return "degenerate"
    kappa = criterion_kappa(part)
    if kappa is None:
        return "undefined" if part.n_samples else "no pair of truth and verdict"
    remark = f"{_word(kappa)}: do not rely on it" if kappa < MODERATE else _word(kappa)
    count, label = fewest_labels(part)
    return (
        remark if label is None or count >= _FEW_LABELS else DataText(f"{remark}; {plural(count, 'label')} of {label}")
    )


def _judges(result: MetricsResult) -> TextSection:
    judges = _judges_by_name(result)
    columns: list[Column] = [
        ("judge", "judge_id"),
        ("n", "n_samples"),
        ("accuracy", _percent("criterion_accuracy")),
        ("mean kappa", "mean_kappa"),
        *[("interval", _interval("mean_kappa"))] * any(judge.intervals for judge in judges),
        ("phi", "phi"),
        *[("RMSE", "score_rmse"), ("bias", "bias.mean_bias")] * has_scores(result),
        ("failed", "n_failed"),
        ("abstained", "n_abstained"),
    ]
    plots = _interval_plots(
        "mean kappa", [(judge.mean_kappa, interval_of(judge.intervals, "mean_kappa")) for judge in judges]
    )
    table = _table(judges, columns, spare=("phi", "abstained", "failed"), plots=plots)
    return TextSection(("Judges",), table=table if judges else None, key="judges")


def _judges_by_name(result: MetricsResult) -> list[JudgeMetrics]:
    return [judge for _, judge in sorted((result.per_judge or {}).items())]


def _votes_of_judges(result: MetricsResult) -> Iterator[TextSection]:
    """How the scores and the binary votes of each judge lie to the truth."""
    judges = _judges_by_name(result)
    if has_scores(result):
        yield TextSection(("Scores of each judge",), table=_table(judges, _SCORES_OF_JUDGES), key="judge-scores")

    matrices = {judge.judge_id: judge.confusion_matrix for judge in judges if judge.confusion_matrix is not None}
    if matrices:
        votes = [
            (DataText(name), truth, *(f"{count:,}" for count in counts))
            for name, matrix in matrices.items()
            for truth, counts in zip(matrix.labels, matrix.matrix, strict=True)
        ]
        labels = next(iter(matrices.values())).labels
        table = TextTable(("judge", "truth", *labels), votes)
        yield TextSection(("Binary votes of each judge",), [("A row for each true label.",)], table, key="judge-votes")


def _abstentions(result: MetricsResult) -> TextSection:
    rows: list[TextLine] = []
    for name, part in (("CANNOT_ASSESS", result.cannot_assess_stats), ("not applicable", result.na_stats)):
        if part is not None:
            counts = (part.count_true, part.count_pred, part.false_positive, part.false_negative)
            rows.append((name, *(f"{count:,}" for count in counts), format_number(part.kappa)))
    head = ("abstention", "truth", "judge", "judge only", "truth only", "kappa")
    return TextSection(("Abstentions",), (), TextTable(head, rows), key="abstentions")


def _reading(result: MetricsResult) -> TextSection:
    in_place = " Numeric criteria have their concordance in place of kappa." if result.n_numeric_criteria else ""
    lines: list[TextLine] = [(_RULE + in_place,), (_CAPS,)]
    how = f"Verdicts CANNOT_ASSESS are handled as `{result.cannot_assess_mode}`, NA options as `{result.na_mode}`."
    drawn = result.bootstrap
    if drawn is not None:
        level = format_number(drawn.confidence_level * 100, places=1).removesuffix(".0")
        lines.append(
            (
                f"{how} Intervals: {level} %, {plural(drawn.n_bootstrap, 'replicate')}, seed {drawn.seed}, ",
                DataText(drawn.method),
                ", drawn by ",
                DataText(drawn.unit),
                ".",
            )
        )
    else:
        lines.append((how,))
    alphas = {part.criterion_type for part in result.per_criterion if part.krippendorff_alpha is not None} - {"numeric"}
    if result.n_binary_criteria:
        lines.append((_PHI_NOTE,))
    if "ordinal" in alphas:
        lines.append((_FLEISS_NOTE,))
    if alphas - {"ordinal"}:
        lines.append((_ALPHA_NOTE,))
    return TextSection(("How to read this",), lines, key="reading")
