"""A result of alignment for people: Markdown, and tables on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console

from deemster.alignment.layout import criteria_counted, number, p_shown, percent
from deemster.alignment.models import AnyCriterion, BootstrapResult, CriterionMetrics, MetricsResult
from deemster.alignment.summary import ALPHA_NOTE, DEGENERATE, FLEISS_NOTE, NO_PAIRS, PHI_NOTE, kinds
from deemster.alignment.verdict import (
    ENOUGH_ITEMS,
    FULL_ENOUGH,
    MODERATE,
    SUBSTANTIAL,
    kappa_ends,
    kappa_of,
    undefined_criteria,
    weak_criteria,
)
from deemster.errors import counted
from deemster.report.additions import additions
from deemster.report.escape import LIMIT
from deemster.report.markdown import markdown_of
from deemster.report.sections import Data, Line, Section, Table
from deemster.report.terminal import show_sections
from deemster.stats.interpretation import interpret_effect_size, interpret_kappa

_FEW = 3
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
    f'at {MODERATE} or above. "With care" is also the most that is said without an interval, with fewer than '
    f"{ENOUGH_ITEMS} items or 20 clusters, with a criterion below {MODERATE} or without a kappa, with a significant "
    f"bias of medium size or more, or with a coverage below {percent(FULL_ENOUGH)}."
)


def alignment_markdown(result: MetricsResult) -> str:
    """The result as Markdown: whether the judge can be trusted, then the numbers, the weakest criteria first."""
    return markdown_of(alignment_sections(result))


def alignment_console(result: MetricsResult, console: Console) -> None:
    """Print the result as tables; what the Markdown says, it says too."""
    show_sections(alignment_sections(result), console)


def alignment_sections(result: MetricsResult) -> list[Section]:
    """What a result says to people, in order."""
    parts = [_headline(result), _agreement(result), _scores(result), _criteria(result)]
    if result.per_judge is not None:
        parts.append(_judges(result))
    if result.na_stats is not None or result.cannot_assess_stats is not None:
        parts.append(_abstentions(result))
    parts += additions(result)
    parts.append(_reading(result))
    return parts


def _headline(result: MetricsResult) -> Section:
    lines: list[Line] = [
        (f"Can this judge be trusted? {_ANSWERS[result.verdict.answer]}",),
        (f"Why: {why(result)}.",),
        *((sentence,) for sentence in _findings(result)),
        *_reservations(result),
    ]
    lines += [("Warning: ", *_pieces(warning)) for warning in result.warnings]
    return Section(("Judge alignment",), lines)


def _pieces(text: str) -> Iterator[str]:
    """A long text in pieces that no renderer cuts, up to a length that nobody reads."""
    for place, piece in enumerate(textwrap.wrap(text, LIMIT)[:_LONGEST]):
        yield " " if place else ""
        yield Data(piece)


def why(result: MetricsResult) -> str:
    """What the answer rests on, as half a sentence."""
    found = result.verdict
    if found.answer == "yes":
        return f"the interval of mean kappa begins at {number(found.floor)}, and nothing speaks against it"
    return "; ".join(reason.partition(": ")[2] for reason in found.reasons)


def _findings(result: MetricsResult) -> Iterator[str]:
    """What the numbers come to, in words."""
    mix = kinds(result)
    by_kind = f" ({', '.join(mix)})" if len(mix) > 1 else ""
    judges = counted(result.n_judges, "judge")
    basis = f"{counted(result.n_items, 'item')}, {criteria_counted(result.n_criteria)}{by_kind}, {judges}"
    yield f"The numbers rest on {counted(result.n_samples, 'pair')} of truth and verdict: {basis}."
    ends, kappa = kappa_ends(result), result.mean_kappa
    if kappa is None:
        yield "Agreement beyond chance is undefined: no criterion has a kappa."
    elif ends is None:
        yield f"Agreement beyond chance is {_word(kappa)}: mean kappa {number(kappa)}, without an interval."
    else:
        low, high = (_word(end) for end in ends)
        reach = f"all of it {low}" if low == high else f"from {low} to {high}"
        yield (
            f"Agreement beyond chance is {_word(kappa)}: mean kappa {number(kappa)}, interval {_span(ends)}, {reach}."
        )
    if result.human is not None and result.human.ceiling_kappa is not None:
        human, whole = result.human, "panel" if result.n_judges > 1 else "judge"
        yield (
            f"People among themselves reach a kappa of {number(human.ceiling_kappa)}, "
            f"the {whole} {number(human.panel.mean_kappa)} against the same people."
        )
    yield _bias(result)
    cover = result.coverage_stats
    if cover is not None and cover.n_total:
        errored = f", {counted(cover.n_errored, 'pair')} by errors" if cover.n_errored else ""
        out = cover.n_total - cover.n_covered
        lost = f"; {out:,} are left out{errored}" if out else ""
        yield f"Coverage is {percent(cover.coverage)}: {cover.n_covered:,} of {cover.n_total:,} labelled pairs{lost}."


def _bias(result: MetricsResult) -> str:
    bias = result.bias
    if bias.mean_bias is None:
        return "There is no pair of scores, so nothing is known about bias."
    place = {"positive": "above", "negative": "below"}.get(bias.direction)
    if place is None:
        return (
            f"The judge's scores lie where people's do: mean difference {number(bias.mean_bias)}, n {bias.n_samples:,}."
        )
    size = "" if bias.effect_size is None else f", {interpret_effect_size(bias.effect_size)} effect"
    shown = "not tested" if bias.p_value is None else p_shown(bias.p_value)
    doubt = "" if bias.is_significant or bias.p_value is None else ", so that it may be chance"
    return (
        f"The judge's scores lie {number(abs(bias.mean_bias))} {place} people's on average "
        f"({shown}{size}, n {bias.n_samples:,}){doubt}."
    )


def _reservations(result: MetricsResult) -> Iterator[Line]:
    weak, undefined = weak_criteria(result), undefined_criteria(result)
    if weak:
        yield (f"Do not rely on {criteria_counted(len(weak))} with a kappa below {MODERATE}: ", *_named(weak), ".")
    if undefined:
        about = f"Nothing is known about {criteria_counted(len(undefined))} without a kappa: "
        yield (about, *_named(undefined), ".")
    if kappa_ends(result) is None and result.mean_kappa is not None:
        yield ("Without an interval nobody knows how much of this is chance: ask for a bootstrap.",)


def _named(criteria: Sequence[AnyCriterion]) -> Iterator[str]:
    for place, part in enumerate(criteria[:_FEW]):
        kappa = kappa_of(part)
        yield ", " if place else ""
        yield Data(part.name)
        yield "" if kappa is None else f" ({number(kappa)})"
    if len(criteria) > _FEW:
        yield f" and {len(criteria) - _FEW} more"


def _word(kappa: float) -> str:
    return interpret_kappa(kappa).removesuffix(" (worse than chance)")


def _span(ends: tuple[float, float] | None) -> str:
    return "n/a" if ends is None else f"{number(ends[0])} to {number(ends[1])}"


def _interval(found: BootstrapResult | None) -> str:
    return "n/a" if found is None or found.ci is None else _span((found.ci.lower, found.ci.upper))


def _agreement(result: MetricsResult) -> Section:
    entries: list[tuple[str, str, str]] = [
        ("accuracy (micro)", percent(result.criterion_accuracy), "criterion_accuracy"),
        ("accuracy (macro)", percent(result.macro_accuracy), "macro_accuracy"),
    ]
    if result.n_binary_criteria:
        if len(kinds(result)) > 1:
            entries.append(("accuracy (binary)", percent(result.binary_accuracy), "binary_accuracy"))
        entries += [
            ("precision (micro)", number(result.criterion_precision), "criterion_precision"),
            ("recall (micro)", number(result.criterion_recall), "criterion_recall"),
            ("F1 (micro)", number(result.criterion_f1), "criterion_f1"),
            ("kappa (micro, binary)", number(result.micro_kappa), "micro_kappa"),
            ("phi (micro, binary)", number(result.criterion_phi), "criterion_phi"),
        ]
    entries.append(("mean kappa (macro)", number(result.mean_kappa), "mean_kappa"))
    for kind in sorted(result.mean_kappa_by_kind):
        if len(result.mean_kappa_by_kind) > 1 and kind in ("binary", "ordinal", "nominal"):
            value = result.mean_kappa_by_kind[kind]
            entries.append((f"mean kappa ({kind})", number(value), f"mean_kappa_by_kind.{kind}"))
    entries.append(("mean alpha (macro)", number(result.mean_krippendorff_alpha), "mean_krippendorff_alpha"))
    return Section(("Agreement",), (), _with_intervals(entries, result))


def _scores(result: MetricsResult) -> Section:
    entries = [
        ("RMSE", number(result.score_rmse), "score_rmse"),
        ("MAE", number(result.score_mae), "score_mae"),
        ("bias", number(result.bias.mean_bias), "bias"),
        ("Spearman", number(result.score_spearman.coefficient), "score_spearman"),
        ("Kendall", number(result.score_kendall.coefficient), "score_kendall"),
        ("Pearson", number(result.score_pearson.coefficient), "score_pearson"),
        ("concordance", number(result.score_concordance), "score_concordance"),
        ("alpha of the judges' scores", number(result.score_alpha), "score_alpha"),
    ]
    if result.score_icc is not None:
        icc = result.score_icc
        entries.append(("ICC(2,1) of the judges' scores", number(icc.icc_2_1), "score_icc.icc_2_1"))
        entries.append(("ICC(2,k) of the judges' scores", number(icc.icc_2_k), "score_icc.icc_2_k"))
    lines: list[Line] = [(f"{counted(result.bias.n_samples, 'pair')} of predicted and true item score.",)]
    limits = result.score_limits
    if limits is not None and limits.lower is not None and limits.upper is not None:
        between = _span((limits.lower, limits.upper))
        lines.append((f"Limits of agreement: a single item's score is mostly within {between} of people's.",))
    return Section(("Scores",), lines, _with_intervals(entries, result))


def _with_intervals(entries: Sequence[tuple[str, str, str]], result: MetricsResult) -> Table:
    known = result.intervals or {}
    if not any(field in known for _, _, field in entries):
        return Table(("number", "value"), [(name, value) for name, value, _ in entries])
    return Table(
        ("number", "value", "interval"), [(name, value, _interval(known.get(field))) for name, value, field in entries]
    )


def _criteria(result: MetricsResult) -> Section:
    ranked = sorted(result.per_criterion, key=_weakness)
    resampled = any(part.intervals for part in ranked)
    rows = []
    for part in ranked:
        accuracy = part.accuracy if isinstance(part, CriterionMetrics) else part.exact_accuracy
        field = "weighted_kappa" if part.criterion_type == "ordinal" else "kappa"
        between = [_interval((part.intervals or {}).get(field))] * resampled
        shown = [f"{part.n_samples:,}", percent(accuracy), number(kappa_of(part)), *between]
        rows.append((Data(part.name), part.criterion_type, *shown, number(part.krippendorff_alpha), _remark(part)))
    head = ("criterion", "kind", "n", "accuracy", "kappa", *["interval"] * resampled, "alpha", "remark")
    return Section(("Criteria, the weakest first",), (), Table(head, rows, ("alpha", "kind")) if rows else None)


def _weakness(part: AnyCriterion) -> tuple[bool, float, int]:
    kappa = kappa_of(part)
    return kappa is None, kappa or 0.0, part.index


def _remark(part: AnyCriterion) -> str:
    if part.is_degenerate:
        return DEGENERATE.partition(":")[0]
    kappa = kappa_of(part)
    if kappa is None:
        return "undefined" if part.n_samples else NO_PAIRS
    return f"{_word(kappa)}: do not rely on it" if kappa < MODERATE else _word(kappa)


def _judges(result: MetricsResult) -> Section:
    judges = [(result.per_judge or {})[key] for key in sorted(result.per_judge or {})]
    resampled = any(judge.intervals for judge in judges)
    rows = [
        (
            Data(judge.judge_id),
            f"{judge.n_samples:,}",
            percent(judge.criterion_accuracy),
            number(judge.mean_kappa),
            *[_interval((judge.intervals or {}).get("mean_kappa"))] * resampled,
            number(judge.phi),
            number(judge.score_rmse),
            number(judge.bias.mean_bias),
            f"{judge.n_failed:,}",
            f"{judge.n_abstained:,}",
        )
        for judge in judges
    ]
    between = ["interval"] * resampled
    head = ("judge", "n", "accuracy", "mean kappa", *between, "phi", "RMSE", "bias", "failed", "abstained")
    return Section(("Judges",), (), Table(head, rows, ("phi", "abstained", "failed")) if rows else None)


def _abstentions(result: MetricsResult) -> Section:
    rows: list[Line] = []
    ca, na = result.cannot_assess_stats, result.na_stats
    if ca is not None:
        counts = (ca.ca_count_true, ca.ca_count_pred, ca.ca_false_positive, ca.ca_false_negative)
        rows.append(("CANNOT_ASSESS", *(f"{count:,}" for count in counts), number(ca.ca_kappa)))
    if na is not None:
        counts = (na.na_count_true, na.na_count_pred, na.na_false_positive, na.na_false_negative)
        rows.append(("not applicable", *(f"{count:,}" for count in counts), number(na.na_kappa)))
    head = ("abstention", "truth", "judge", "judge only", "truth only", "kappa")
    return Section(("Abstentions",), (), Table(head, rows))


def _reading(result: MetricsResult) -> Section:
    lines: list[Line] = [(_RULE,)]
    how = f"CANNOT_ASSESS is handled by {result.cannot_assess_mode}, NA by {result.na_mode}."
    drawn = result.bootstrap
    if drawn is not None:
        level = number(drawn.confidence_level * 100, places=1).removesuffix(".0")
        lines.append(
            (
                f"{how} Intervals: {level} %, {counted(drawn.n_bootstrap, 'replicate')}, seed {drawn.seed}, ",
                Data(drawn.method),
                ", drawn by ",
                Data(drawn.unit),
                ".",
            )
        )
    else:
        lines.append((how,))
    alphas = {part.criterion_type for part in result.per_criterion if part.krippendorff_alpha is not None}
    if result.n_binary_criteria:
        lines.append((PHI_NOTE,))
    if "ordinal" in alphas:
        lines.append((FLEISS_NOTE,))
    if alphas - {"ordinal"}:
        lines.append((ALPHA_NOTE,))
    return Section(("How to read this",), lines)
