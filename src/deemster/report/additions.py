"""What a result of alignment says beyond agreement: slices, people, repeats, probabilities, corrected means, items."""

from __future__ import annotations

from deemster.alignment.layout import number, percent
from deemster.alignment.models import (
    CalibrationMetrics,
    ConfidenceInterval,
    CorrectedMeans,
    HumanAgreement,
    ItemMetrics,
    JudgeConsistency,
    MetricsResult,
    PooledScaleMetrics,
    SliceMetrics,
)
from deemster.errors import counted
from deemster.report.sections import Data, Line, Section, Table


def additions(result: MetricsResult) -> list[Section]:
    """The sections of what a result has beyond agreement."""
    parts: list[Section] = []
    if result.pooled_by_scale:
        parts.append(_pooled(result.pooled_by_scale))
    if result.slices:
        parts.append(_slices(result.slices))
    if result.human is not None:
        parts.append(_people(result.human, several=result.n_judges > 1))
    if result.consistency:
        parts.append(_consistency(result.consistency))
    if result.calibration:
        parts.append(_calibration(result.calibration))
    if result.corrected is not None:
        parts.append(_corrected(result.corrected))
    if result.items:
        parts.append(_items(result.items))
    return parts


def _pooled(scales: tuple[PooledScaleMetrics, ...]) -> Section:
    rows = [
        (
            part.scale_type,
            f"{part.n_points:,}",
            percent(part.exact_accuracy),
            number(part.kappa),
            number(part.value_rmse),
            number(part.value_spearman),
        )
        for part in scales
    ]
    return Section(("Pooled by kind",), (), Table(("kind", "n", "accuracy", "kappa", "RMSE", "Spearman"), rows))


def _slices(slices: tuple[SliceMetrics, ...]) -> Section:
    ends = [_kappa_ends(part) for part in slices]
    resampled = any(found is not None for found in ends)
    rows = [
        (
            Data(part.tag),
            f"{part.n_items:,}",
            f"{part.n_samples:,}",
            percent(part.criterion_accuracy),
            number(part.mean_kappa),
            _signed(part.kappa_difference),
            *[_between(found)] * resampled,
            number(part.score_rmse),
            number(part.bias),
        )
        for part, found in zip(slices, ends, strict=True)
    ]
    between = ["interval"] * resampled
    head = ("slice", "items", "pairs", "accuracy", "mean kappa", "minus the rest", *between, "RMSE", "bias")
    return Section(("Slices",), (), Table(head, rows, ("pairs", "bias")))


def _kappa_ends(part: SliceMetrics) -> ConfidenceInterval | None:
    """The interval of what kappa is here minus what it is elsewhere."""
    found = (part.intervals or {}).get("kappa_difference")
    return None if found is None else found.ci


def _people(human: HumanAgreement, *, several: bool) -> Section:
    whole = "panel" if several else "judge"
    together = [("panel", human.panel)]
    if not several:
        # A panel of one is that judge, unless verdicts were recorded or checked otherwise.
        together = [("final", human.panel)] if _differs(human) else []
    people = [("person", part) for part in human.annotators]
    judges = [("judge", part) for part in human.judges]
    rows = [
        (
            kind,
            Data(part.name) if kind != "final" else "verdicts",
            f"{part.n_samples:,}",
            percent(part.accuracy),
            number(part.mean_kappa),
        )
        for kind, part in (*people, *together, *judges)
    ]
    many = f"{counted(human.n_annotators, 'annotator')}, {counted(human.n_items, 'item')} with two or more"
    ceiling = f"a kappa of {number(human.ceiling_kappa)} and an accuracy of {percent(human.ceiling_accuracy)}"
    lines: list[Line] = [
        (f"{many}; alpha among them {number(human.krippendorff_alpha)}.",),
        (f"The ceiling is {ceiling}; the {whole}'s gap is {_signed(human.kappa_gap)} in kappa.",),
    ]
    head = ("who", "name", "n", "accuracy", "mean kappa")
    return Section(("Judges and people against the other people",), lines, Table(head, rows))


def _differs(human: HumanAgreement) -> bool:
    """Whether the final verdicts are others than those of a single judge."""
    final = human.panel
    return any(
        (part.accuracy, part.mean_kappa, part.n_samples) != (final.accuracy, final.mean_kappa, final.n_samples)
        for part in human.judges
    )


def _consistency(judges: tuple[JudgeConsistency, ...]) -> Section:
    rows = [
        (
            Data(part.judge_id),
            f"{part.n_cells:,}",
            f"{part.n_repeats:,}",
            percent(part.stable_share),
            percent(part.pairwise_agreement),
            number(part.krippendorff_alpha),
        )
        for part in judges
    ]
    head = ("judge", "cells", "repeats", "all equal", "equal pairs", "alpha")
    return Section(("Does a judge repeat itself?",), (), Table(head, rows))


def _calibration(figures: tuple[CalibrationMetrics, ...]) -> Section:
    rows = [
        (
            "all judges" if part.judge_id is None else Data(part.judge_id),
            part.scale,
            f"{part.n_samples:,}",
            number(part.brier),
            number(part.calibration_error),
        )
        for part in figures
    ]
    head = ("judge", "kind", "n", "Brier", "calibration error")
    return Section(("Do probabilities mean what they say?",), (), Table(head, rows))


def _corrected(corrected: CorrectedMeans) -> Section:
    rows: list[Line] = []
    if corrected.score is not None:
        part = corrected.score
        n = f"{part.n_labelled:,} + {part.n_unlabelled:,}"
        rows.append(("mean score", number(part.predicted_mean), number(part.value), _between(part.ci), n))
    for rate in corrected.met_rates:
        shown = (number(rate.observed_rate), number(rate.value), _between(rate.ci), f"{rate.n_samples:,}")
        rows.append((Data(rate.name), *shown))
    lines: list[Line] = [
        ("The mean score of all items, labelled or not, and the MET rate of each binary criterion.",),
        ("Right only where the labelled items were drawn at random.",),
    ]
    head = ("what", "as judged", "corrected", "interval", "n")
    return Section(("Corrected for the judge's errors",), lines, Table(head, rows) if rows else None)


def _items(items: tuple[ItemMetrics, ...]) -> Section:
    rows = [(Data(part.id), number(part.dispute), number(part.difficulty), f"{part.n_votes:,}") for part in items]
    head = ("item", "dispute", "difficulty", "votes")
    return Section(("Items to look at",), [("The most disputed first, then the hardest.",)], Table(head, rows))


def _between(ci: ConfidenceInterval | None) -> str:
    return "n/a" if ci is None else f"{number(ci.lower)} to {number(ci.upper)}"


def _signed(value: float | None) -> str:
    text = number(value)
    return text if value is None or text.startswith("-") else f"+{text}"
