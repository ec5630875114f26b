"""The report of judge agreement: whether a judge can be trusted, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.agreement._agreement_by_criterion import (
    correlation_section,
    criteria_section,
    limits_interval,
    numeric_section,
    sections_of_kinds,
)
from deemster.agreement._agreement_by_judge import judge_vote_sections, judges_section, panel_section
from deemster.agreement._agreement_next_steps import FEW_CRITERIA, next_steps_section
from deemster.agreement._agreement_tables import (
    Column,
    format_ends,
    format_signed,
    format_span,
    interval_column,
    percent_column,
    table_of,
    table_with_intervals,
    table_with_plots,
)
from deemster.agreement._people_sections import annotator_test_section, people_section
from deemster.agreement.agreement_sentences import (
    answer_lines,
    count_kinds,
    error_rate_lines,
    findings,
    has_scores,
    note_sentence,
    state_agreement,
    state_basis,
    state_ceiling,
    warning_lines,
)
from deemster.agreement.result_models import (
    CorrectedMeans,
    NumericCriterionMetrics,
    PositionBias,
    ScoreLimits,
    SliceMetrics,
    interval_of,
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
)
from deemster.errors import plural
from deemster.stats.confidence_interval import Interval, interval_ends
from deemster.text.number_format import format_number, format_percent, state_p_value
from deemster.text.table_plots import IntervalCell, drawn_changes
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

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
_KINDS: tuple[Column, ...] = (
    ("kind", lambda part: part.scale_type),
    ("n", "n_points"),
    ("accuracy", percent_column("exact_accuracy")),
    ("kappa", "kappa"),
    ("RMSE", "value_rmse"),
    ("Spearman", "value_spearman"),
)
_POSITION_BIAS: tuple[Column, ...] = (
    ("criterion", "criterion"),
    ("judge", lambda part: "final" if part.judge_id is None else DataText(part.judge_id)),
    ("pairs", "n_pairs"),
    ("consistent", percent_column("consistency")),
    ("interval", "consistency_ci"),
    ("first place", "favours_first"),
    ("second place", "favours_second"),
    ("p", lambda part: "n/a" if part.p_value is None else state_p_value(part.p_value)),
)
_CONSISTENCY: tuple[Column, ...] = (
    ("judge", "judge_id"),
    ("cells", "n_cells"),
    ("repeats", "n_repeats"),
    ("all equal", percent_column("stable_share")),
    ("equal pairs", percent_column("pairwise_agreement")),
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
# A corrected mean from fewer labels is little more than the labels' own mean.
FEWEST_LABELS = 30
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
        *answer_lines(result),
        *error_rate_lines(result),
        (state_basis(result),),
        *((sentence,) for sentence in state_agreement(result)),
        ("The ceiling is unknown: no item has labels of two people.",) if human is None else (state_ceiling(result),),
        *warning_lines(result),
    ]
    steps = next_steps_section(result)._replace(after=[(more,)])
    asked = [judges_section(result)] if result.per_judge is not None else []
    asked += [panel_section(result.panel)] if result.panel is not None else []
    asked += [_slices(result.slices)] if result.slices else []
    asked += [_position_bias(result.position_bias)] if result.position_bias else []
    criteria = [] if result.sampling == "chosen" else [criteria_section(result, most=FEW_CRITERIA)]
    return [TextSection(("Judge agreement",), lines, key="headline"), *criteria, *asked, steps]


def agreement_sections(result: MetricsResult) -> list[TextSection]:
    """All that a result says to people, in order."""
    scores = [_scores(result)] if has_scores(result) else []
    parts = [_headline(result), next_steps_section(result), _agreement(result), *scores, criteria_section(result)]
    parts += sections_of_kinds(result)
    if numeric := [part for part in result.per_criterion if isinstance(part, NumericCriterionMetrics)]:
        parts += [numeric_section(numeric), correlation_section(numeric)]
    if result.per_judge is not None:
        parts.append(judges_section(result))
        parts += judge_vote_sections(result)
    if result.na_stats is not None or result.cannot_assess_stats is not None:
        parts.append(_abstentions(result))
    parts += _extras(result)
    parts.append(_reading(result))
    return parts


def _headline(result: MetricsResult) -> TextSection:
    lines: list[TextLine] = [
        *answer_lines(result),
        *error_rate_lines(result),
        *((f"{note_sentence(note)}.",) for note in result.verdict.notes),
        *((sentence,) for sentence in findings(result)),
        *warning_lines(result),
    ]
    return TextSection(("Judge agreement",), lines, key="headline")


def _agreement(result: MetricsResult) -> TextSection:
    entries = [("accuracy (micro)", "criterion_accuracy"), ("accuracy (macro)", "macro_accuracy")]
    if result.n_binary_criteria:
        if len(count_kinds(result)) > 1:
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
    return TextSection(("Agreement",), table=table_with_plots(entries, result), key="agreement")


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
    return TextSection(("Scores",), lines, table_with_intervals(entries, result), key="scores")


def _limits_of_agreement(limits: ScoreLimits) -> Iterator[str]:
    """How far a single score may lie from people's; where no two differences differ, how far it still may."""
    ends = limits_interval(limits)
    if ends is None:
        return
    if format_number(ends.low) != format_number(ends.high):
        yield f"Limits of agreement: a single item's score is mostly within {format_span(ends)} of people's."
        return
    alike = "equal people's" if not limits.mean else f"differ from people's by {format_signed(limits.mean)}"
    yield f"Limits of agreement: all scores {alike}, so these items do not show how far a single score may be off."
    if limits.lower_ci is not None and limits.upper_ci is not None:
        reach = format_span(Interval(limits.lower_ci.lower, limits.upper_ci.upper))
        yield f"It can still be that single scores mostly lie within {reach} of people's."


def _abstentions(result: MetricsResult) -> TextSection:
    rows: list[TextLine] = []
    for name, part in (("CANNOT_ASSESS", result.cannot_assess_stats), ("not applicable", result.na_stats)):
        if part is not None:
            counts = (part.count_true, part.count_pred, part.false_positive, part.false_negative)
            rows.append((name, *(f"{count:,}" for count in counts), format_number(part.kappa)))
    head = ("abstention", "truth", "judge", "judge only", "truth only", "kappa")
    return TextSection(("Abstentions",), (), TextTable(head, rows), key="abstentions")


def _extras(result: MetricsResult) -> list[TextSection]:
    """The sections of what a result says beyond agreement."""
    parts: list[TextSection] = []
    if result.pooled_by_scale:
        kinds = table_of(result.pooled_by_scale, _KINDS)
        parts.append(TextSection(("Pooled by kind",), table=kinds, key="kinds"))
    if result.slices:
        parts.append(_slices(result.slices))
    if result.panel is not None:
        parts.append(panel_section(result.panel))
    if result.human is not None:
        parts.append(people_section(result.human, result))
        if result.human.annotator_tests:
            parts.append(annotator_test_section(result.human.annotator_tests))
    if result.position_bias:
        parts.append(_position_bias(result.position_bias))
    if result.consistency:
        judges = table_of(result.consistency, _CONSISTENCY)
        parts.append(TextSection(("Does a judge repeat itself?",), table=judges, key="consistency"))
    if result.calibration:
        stated = table_of(result.calibration, _PROBABILITIES)
        parts.append(TextSection(("Do probabilities mean what they say?",), table=stated, key="probabilities"))
    if result.corrected is not None:
        parts.append(_corrected(result.corrected))
    if result.items:
        order = "The most disputed first, then the hardest."
        parts.append(TextSection(("Items to look at",), [(order,)], table_of(result.items, _ITEMS), key="items"))
    return parts


def _slices(slices: tuple[SliceMetrics, ...]) -> TextSection:
    ends = [interval_of(part.intervals, "kappa_difference") for part in slices]
    resampled = any(interval is not None for interval in ends)
    columns: list[Column] = [
        ("slice", "tag"),
        ("items", "n_items"),
        ("pairs", "n_samples"),
        ("accuracy", percent_column("criterion_accuracy")),
        ("mean kappa", "mean_kappa"),
        ("minus the rest", lambda part: format_signed(part.kappa_difference)),
        *[("interval", interval_column("kappa_difference"))] * resampled,
        ("RMSE", "score_rmse"),
        ("bias", "bias"),
    ]

    cells = [
        IntervalCell(part.kappa_difference, interval_ends(interval))
        for part, interval in zip(slices, ends, strict=True)
    ]
    beside = "interval" if resampled else "minus the rest"
    plots = drawn_changes("kappa minus the rest", cells, beside=beside)
    return TextSection(("Slices",), table=table_of(slices, columns, spare=("pairs", "bias"), plots=plots), key="slices")


def _position_bias(pairs: Sequence[PositionBias]) -> TextSection:
    lines: list[TextLine] = [
        ("Pairs that were shown in both orders. Consistent: the same answer wins both times.",),
        ("First or second place: whatever stands there wins both times, so the place decides.",),
    ]
    table = table_of(pairs, _POSITION_BIAS, spare=("p",))
    return TextSection(("Does the place decide?",), lines, table, key="position-bias")


def _corrected(corrected: CorrectedMeans) -> TextSection:
    rows: list[TextLine] = []
    if corrected.score is not None:
        part = corrected.score
        n = f"{part.n_labelled:,} + {part.n_unlabelled:,}"
        rows.append(
            ("mean score", format_number(part.predicted_mean), format_number(part.value), format_ends(part.ci), n)
        )
    lines: list[TextLine] = [
        ("The mean score of all items, labelled or not, and the MET rate of each binary criterion.",),
        ("They are right only if the labelled items were drawn at random.",),
    ]
    for rate in corrected.met_rates:
        value = format_number(rate.value) + (" (cut)" if rate.is_clipped else "")
        shown = (format_number(rate.observed_rate), value, format_ends(rate.ci), f"{rate.n_samples:,}")
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
