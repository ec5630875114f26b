"""The report of a calibration: how far judges agree with people, where they are biased, and the corrected numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.agreement.estimate import Estimate, state_equal_labels
from deemster.errors import plural
from deemster.stats.interpretation import interpret_kappa
from deemster.text.number_format import format_number, format_p_value, format_percent
from deemster.text.text_sections import DataText, MetricName, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.agreement.calibration_result import (
        Calibration,
        CorrectedEstimate,
        MetricCalibration,
        ThresholdChoice,
    )


def calibration_sections(calibration: Calibration) -> list[TextSection]:
    """What a calibration says to people, in order."""
    parts = [_overview(calibration)]
    if calibration.checks:
        parts.append(_checks(calibration))
    for name, found in calibration.metrics.items():
        parts += _metric_sections(name, found, calibration.confidence)
    return parts


def _overview(calibration: Calibration) -> TextSection:
    level = f"{100 * calibration.confidence:.4g}% interval"
    rows = [
        (MetricName(name), str(found.n), format_percent(found.agreement.value), _ends(found.agreement),
         _number(found.kappa), _ends(found.kappa), _kappa_word(found))
        for name, found in calibration.metrics.items()
    ]  # fmt: skip
    head = ("metric", "labels", "agreement", level, "kappa", f"{level} of kappa", "")
    lines: list[TextLine] = [("Judges against people on ", DataText(calibration.source), ".")]
    for name, found in calibration.metrics.items():
        lines += (("Warning: ", MetricName(name), ": ", SentenceText(warning)) for warning in found.warnings)
    return TextSection(("Calibration",), lines, TextTable(head, rows))


def _kappa_word(found: MetricCalibration) -> str:
    return "of picked outputs only" if found.sampling == "chosen" else interpret_kappa(found.kappa.value)


def _checks(calibration: Calibration) -> TextSection:
    rows = [
        (MetricName(check.name), check.status, format_number(check.observed), format_number(check.required),
         SentenceText(check.because))
        for check in calibration.checks
    ]  # fmt: skip
    counts = Counter(str(check.status) for check in calibration.checks)
    verdict = "fail" if counts["fail"] else "pass"
    words = {"pass": "passed", "fail": "failed", "skipped": "skipped"}
    told = ", ".join(f"{counts[status]} {word}" for status, word in words.items() if counts[status])
    return TextSection(
        (f"Gate: {verdict} ({told})",), table=TextTable(("rule", "status", "observed", "required", "because"), rows)
    )


def _metric_sections(name: str, found: MetricCalibration, confidence: float) -> Iterator[TextSection]:
    lines: list[TextLine] = [*_basis(found)]
    if found.confusion is not None:
        counts = found.confusion
        table = TextTable(
            ("", "judge passes", "judge fails"),
            [
                ("people pass", str(counts.both_pass), str(counts.only_people_pass)),
                ("people fail", str(counts.only_judge_passes), str(counts.both_fail)),
            ],
        )
        yield TextSection((MetricName(name),), lines, table, after=list(_errors(found)))
    else:
        yield TextSection((MetricName(name),), lines)
    corrected = [(told, one) for told, one in (("pass-rate", found.pass_rate), ("mean score", found.mean)) if one]
    if corrected:
        yield _corrected(corrected, confidence)
    if biases := list(_biases(found)):
        yield TextSection(("Biases: ", MetricName(name)), biases)
    if found.tags:
        rows = [
            (DataText(tag.tag), str(tag.agreement.n), format_percent(tag.agreement.value), _ends(tag.agreement))
            for tag in found.tags
        ]
        interval = f"{100 * confidence:.4g}% interval"
        table = TextTable(("tag", "labels", "agreement", interval), rows)
        yield TextSection(("Agreement by tag: ", MetricName(name)), table=table)


def _basis(found: MetricCalibration) -> Iterator[TextLine]:
    kinds = {"verdict": "pass or fail", "score": "scores", "option": "options"}
    weighted = ", weighted by their inclusion probabilities" if found.is_weighted else ""
    labelled = plural(found.n, "labelled sample")
    if found.samples < found.n and found.samples:
        labelled = f"{plural(found.samples, 'labelled sample')}, {plural(found.n, 'output')}"
    picked = ", picked because they looked hard: they say nothing about the run" if found.sampling == "chosen" else ""
    yield (f"{labelled} ({kinds[found.kind]}){weighted}{picked}.",)
    if found.unscored:
        yield (f"{plural(found.unscored, 'label')} left out: the judge has no score there.",)
    people = found.people
    if people is not None:
        equal = format_percent(people.agreement)
        told = f"{people.annotators} annotators agree among themselves on {equal} of pairs, Krippendorff's alpha"
        several = f"{plural(people.n, 'sample')} with several labels, {people.disputed} tied"
        yield (f"{told} {format_number(people.krippendorff_alpha)} ({several}).",)


def _errors(found: MetricCalibration) -> Iterator[TextLine]:
    for told, estimate in (
        ("Sensitivity (of what people pass, the judge passes)", found.sensitivity),
        ("Specificity (of what people fail, the judge fails)", found.specificity),
        ("Sensitivity + specificity - 1 (0 is chance)", found.youden),
        ("Spearman of the judge's scores with those of people", found.score_spearman),
        ("The judge's score minus that of people", found.score_bias),
    ):
        if estimate is not None:
            yield (f"{told}: {_with_ends(estimate)}, from {plural(estimate.n, 'label')}.",)


def _corrected(numbers: list[tuple[str, CorrectedEstimate]], confidence: float) -> TextSection:
    interval = f"{100 * confidence:.4g}% interval"
    rows = [
        (told, format_number(one.naive), format_number(one.value), _range(one.low, one.high), _number(one.people),
         _ends(one.people))
        for told, one in numbers
    ]  # fmt: skip
    notes: list[TextLine] = [(f"{told}: ", SentenceText(one.note)) for told, one in numbers if one.note]
    notes += [
        (f"{told}: {plural(one.people.n, 'label')}; {state_equal_labels(one.equal_labels)}.",)
        for told, one in numbers
        if one.equal_labels is not None
    ]
    head = ("of the run", "by the judge", "corrected", interval, "by labels alone", f"{interval} of labels")
    return TextSection(("Corrected numbers",), table=TextTable(head, rows), after=notes)


def _biases(found: MetricCalibration) -> Iterator[TextLine]:
    length, order, again = found.length_bias, found.position_bias, found.consistency
    if length is not None:
        alike = f"among outputs that people judge alike {_with_ends(length.partial)}"
        yield (f"Length: Spearman of length and score {_with_ends(length.spearman)}; {alike}.",)
    if order is not None:
        share = format_percent(order.consistency)
        places = f"the first place is favoured {order.favours_first} times, the second {order.favours_second}"
        kept = f"{share} of {plural(order.n_pairs, 'pair')} keep their winner in both orders"
        yield (f"Position: {kept}; {places} (p {format_p_value(order.p_value)}).",)
    if (options := found.option_order_bias) is not None:
        place = f"mean place of the chosen option {_with_ends(options.mean_place)}"
        places = f"the first is chosen {options.first} times, the last {options.last}, expected {options.expected:.1f}"
        scale = f"(0 first, 1 last, 0.5 without bias; {plural(options.n, 'vote')})"
        yield (f"Position: {place} {scale}; {places} each (p {format_p_value(options.p_value)}).",)
    if again is not None:
        kept = f"{format_percent(again.stable_share)} of {plural(again.n_cells, 'output')} that were judged again"
        pairs = format_percent(again.pairwise_agreement)
        yield (f"Consistency: {kept} kept their verdict; {pairs} of pairs are equal.",)
    if found.threshold is not None:
        yield (_choice(found.threshold),)


def _choice(choice: ThresholdChoice) -> str:
    if choice.best == choice.current:
        return f"Threshold: {choice.current:.4g} agrees on {format_percent(choice.agreement)}, and no other on more."
    told = (
        f"Threshold: {choice.current:.4g} agrees on {format_percent(choice.agreement)}; {choice.best:.4g} on"
        f" {format_percent(choice.best_agreement)} of these labels, {format_percent(choice.cross_validated)}"
        f" cross-validated: a gain of {_number(choice.gain)}, {_ends(choice.gain)}"
    )
    return f"{told}, which may be noise." if choice.is_noise else f"{told}."


def _number(estimate: Estimate) -> str:
    return format_number(estimate.value)


def _with_ends(estimate: Estimate) -> str:
    return "n/a" if estimate.value is None else f"{_number(estimate)}, {_ends(estimate)}"


def _ends(estimate: Estimate) -> str:
    return _range(estimate.low, estimate.high)


def _range(low: float | None, high: float | None) -> str:
    return "n/a" if low is None or high is None else f"{low:.4f} to {high:.4f}"
