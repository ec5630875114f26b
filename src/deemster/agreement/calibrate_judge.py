"""Calibrates a judge: compares what it says of outputs with what people say, and looks for its biases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.agreement._bootstrap_replicates import BootstrapSettings, smoothed_results
from deemster.agreement._imagined_units import table_shapes
from deemster.agreement._position_bias import compare_orders
from deemster.agreement.calibration_result import (
    AnnotatorAgreement,
    ConfusionCounts,
    CorrectedEstimate,
    LengthBias,
    MetricCalibration,
    TagAgreement,
    ThresholdChoice,
)
from deemster.agreement.estimate import Estimate, estimate_with
from deemster.agreement.option_order_bias import ShownOption, option_order_bias
from deemster.agreement.result_models import JudgeConsistency, PositionBias
from deemster.datasets.human_labels import LabelKind, LabelledMetric, LabelledPair
from deemster.errors import plural
from deemster.records.marks import reaches
from deemster.stats import (
    bounded_mean,
    fisher_interval,
    krippendorff_alpha,
    paired_difference,
    ppi_mean,
    spearman,
    weighted_share,
    wilson,
)
from deemster.stats.confidence_interval import interval_ends
from deemster.stats.confusion_tables import accuracy, kappa
from deemster.stats.debiased_estimates import unit_values
from deemster.stats.proportion_intervals import newcombe
from deemster.stats.unequal_sampling import equal_sample_size

_Floats: TypeAlias = NDArray[np.float64]
_Bools: TypeAlias = NDArray[np.bool_]
FEWEST_LABELS = 30
FEWEST_OF_A_CLASS = 10
_FOLDS = 10
_MOST_THRESHOLDS = 200
_REPLICATES = 2000
# A correlation of length and score among outputs that people judge alike is worth a warning from here on.
LENGTH_BIAS = 0.2


class JudgedOutput(NamedTuple):
    """An output that people labelled and a judge decided.

    Attributes:
        id: The sample.
        truth: What people say together: 1 or 0, a score, or an option.
        by_annotator: What each person says.
        verdict: What the judge says: 1 or 0, or an option.
        score: The judge's score.
        length: How many characters the output has.
        tags: The tags of the sample.
        probability: How probable it was that the sample is drawn; None where that is not known.
        stratum: The stratum in which it was drawn.
        unit: What it is a repetition or a cluster of; itself where blank.
    """

    id: str
    truth: float | str
    by_annotator: Mapping[str, float | str]
    verdict: float | str
    score: float
    length: int
    tags: tuple[str, ...] = ()
    probability: float | None = None
    stratum: str | None = None
    unit: str = ""


class JudgedMetric(NamedTuple):
    """A metric or criterion, with everything that a calibration of it looks at.

    Attributes:
        name: Its name.
        kind: What people gave.
        outputs: The labelled outputs.
        identity: Everything that must be equal for a metric to be the one that was labelled.
        threshold: Its pass mark; None where it has none, or several.
        higher_is_better: Whether a higher score is a better one.
        unscored: How many labelled outputs have no score.
        disputed: What each person says of outputs that people are tied on.
        is_drawn: Whether the labelled outputs were drawn at random.
        passed: In how many repetitions each sample of the run passes; None where the labels are cases.
        samples: The unit of each of these samples.
        scores: The mean score of each sample of the run.
        repetitions: How often each sample was run.
        orders: The place that a pairwise judge favours on each pair, None where it is consistent; None for others.
        shown: Where the options that the judge chose stood in shuffled lists; empty for judges without options.
        repeats: The verdicts of the judge on the same output, by sample; empty without repetitions.
        warnings: What is known to be doubtful.
    """

    name: str
    kind: LabelKind
    outputs: Sequence[JudgedOutput]
    identity: dict[str, Any]
    threshold: float | None = None
    higher_is_better: bool = True
    unscored: int = 0
    disputed: Sequence[Mapping[str, float | str]] = ()
    is_drawn: bool = True
    passed: NDArray[np.int64] | None = None
    samples: Sequence[str] = ()
    scores: _Floats | None = None
    repetitions: int = 1
    orders: Sequence[str | None] | None = None
    shown: Sequence[ShownOption] = ()
    repeats: Sequence[Sequence[bool]] = ()
    warnings: tuple[str, ...] = ()


def calibrate_judge(judged: JudgedMetric, *, confidence: float = 0.95, seed: int = 0) -> MetricCalibration:
    """Compare a judge with people on the outputs that both decided.

    Agreement has Wilson's interval, kappa the smoothed bootstrap's (see ``compute_metrics``). Where samples were drawn
    with unequal probabilities, each counts with 1/probability; outputs of one unit are one. The corrected pass-rate and
    mean of the run are those of ``ppi_mean``: never less precise than the labels alone.

    Args:
        judged: The metric, its labelled outputs, and the run.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
    """
    outputs = judged.outputs
    weights = _weights(outputs)
    units = _Units(outputs, weights)
    found: dict[str, Any] = {
        "kind": judged.kind,
        "n": len(outputs),
        "samples": units.size,
        "sampling": "random" if judged.is_drawn else "chosen",
        "unscored": judged.unscored,
        "is_weighted": weights is not None,
        **_agreement(judged, units, confidence, seed),
        "position_bias": _position_bias(judged, confidence),
        "option_order_bias": option_order_bias(judged.shown, confidence=confidence),
        "consistency": _consistency(judged),
        "people": _people(judged),
    }
    if judged.kind != "option":
        found |= _numbers(judged, units, confidence, seed)
    if not judged.is_drawn:
        found = _without_intervals(found)
    found["warnings"] = tuple(_warnings(judged, found))
    return MetricCalibration(**found)


class _Units:
    """The units of labelled outputs: repetitions of a sample, or samples of a cluster, are one.

    Attributes:
        size: How many there are.
        of_output: The number of each output's unit.
        weights: What each output counts, with a mean of 1.
        is_weighted: Whether outputs were drawn with unequal probabilities.
    """

    def __init__(self, outputs: Sequence[JudgedOutput], weights: _Floats | None) -> None:
        names = [output.unit or output.id for output in outputs]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self.size = len(numbers)
        self.of_output = np.array([numbers[name] for name in names], dtype=np.intp)
        self.is_weighted = weights is not None
        self.weights = np.ones(len(outputs)) if weights is None else weights / weights.mean()

    def totals(self, values: NDArray[Any], inside: _Bools | None = None) -> _Floats:
        """The weighted sum of values of each unit, over some outputs."""
        shares = self.weights if inside is None else self.weights * inside
        return np.bincount(self.of_output, weights=values * shares, minlength=self.size).astype(np.float64)

    def means(self, values: NDArray[Any], inside: _Bools | None = None) -> tuple[_Floats, _Floats]:
        """The mean of each unit that has some of the outputs, and what the unit counts."""
        sizes = self.totals(np.ones(len(values)), inside)
        has_some = sizes > 0
        return self.totals(values, inside)[has_some] / sizes[has_some], sizes[has_some]

    def share(self, hits: _Bools, inside: _Bools | None = None, *, confidence: float) -> Estimate:
        """The share of hits among some outputs, with Wilson's interval for as many items as the units are worth."""
        means, sizes = self.means(hits, inside)
        return shareestimate_with(means, sizes, confidence, n=len(hits) if inside is None else int(inside.sum()))


def _without_intervals(found: Mapping[str, Any]) -> dict[str, Any]:
    """What is left of a calibration by outputs that nobody drew at random: what is true of these outputs."""
    kept = {
        key: msgspec.structs.replace(value, low=None, high=None) if isinstance(value, Estimate) else value
        for key, value in found.items()
    }
    for key in ("pass_rate", "mean", "threshold", "length_bias", "labels"):
        kept.pop(key, None)
    kept["tags"] = tuple(
        TagAgreement(tag=tag.tag, agreement=msgspec.structs.replace(tag.agreement, low=None, high=None))
        for tag in found["tags"]
    )
    return kept


def _weights(outputs: Sequence[JudgedOutput]) -> _Floats | None:
    """1/probability of each output; None where all are alike or not known."""
    known = [output.probability for output in outputs if output.probability is not None]
    if not known or len(known) < len(outputs) or min(known) == max(known):
        return None
    return 1 / np.array(known)


def _classes(judged: JudgedMetric) -> tuple[NDArray[np.intp], NDArray[np.intp], int]:
    """What people and the judge say of each output as small numbers, and how many classes there are."""
    if judged.kind == "option":
        labels = sorted({str(side) for output in judged.outputs for side in (output.truth, output.verdict)})
        places = {label: place for place, label in enumerate(labels)}
        sides = [[places[str(getattr(each, side))] for each in judged.outputs] for side in ("truth", "verdict")]
        return np.array(sides[0], dtype=np.intp), np.array(sides[1], dtype=np.intp), max(2, len(labels))
    people = np.where(_people_pass(judged), 0, 1).astype(np.intp)
    judge = np.array([0 if output.verdict else 1 for output in judged.outputs], dtype=np.intp)
    return people, judge, 2


def _people_pass(judged: JudgedMetric) -> _Bools:
    """Whether people pass each output; a score passes where it reaches the pass mark of the metric."""
    bound = 0.5 if judged.kind == "verdict" or judged.threshold is None else judged.threshold
    better = judged.kind == "verdict" or judged.higher_is_better
    return np.array([reaches(float(each.truth), bound, higher_is_better=better) for each in judged.outputs], dtype=bool)


def _agreement(judged: JudgedMetric, units: _Units, confidence: float, seed: int) -> dict[str, Any]:
    people, judge, size = _classes(judged)
    equal = people == judge
    tags = sorted({tag for output in judged.outputs for tag in output.tags})
    tagged = {tag: np.array([tag in output.tags for output in judged.outputs]) for tag in tags}
    return {
        "agreement": units.share(equal, confidence=confidence),
        "kappa": _kappa(people, judge, size, units, confidence=confidence, seed=seed),
        "tags": tuple(
            TagAgreement(tag=tag, agreement=units.share(equal, inside, confidence=confidence))
            for tag, inside in tagged.items()
        ),
    }


def shareestimate_with(hits: ArrayLike, weights: ArrayLike, confidence: float = 0.95, *, n: int) -> Estimate:
    """A share of hits with Wilson's interval; weighted units count as many as ``weighted_share`` says.

    Args:
        hits: The share of hits of each unit.
        weights: What each unit counts.
        confidence: The level of the interval.
        n: How many outputs the share is of.
    """
    value, size = weighted_share(hits, weights)
    if value is None:
        return Estimate(value=None, n=0)
    interval = wilson(size if value == 1 else value * size, size, confidence=confidence).interval
    return estimate_with(value, interval, n)


def _kappa(
    people: NDArray[np.intp],
    judge: NDArray[np.intp],
    size: int,
    units: _Units,
    *,
    confidence: float,
    seed: int,
) -> Estimate:
    if not len(people):
        return Estimate(value=None, n=0)
    cells = np.zeros((size * size, units.size))
    np.add.at(cells, (people * size + judge, units.of_output), units.weights)
    # An imagined unit has the average size.
    cells *= units.size / cells.sum()

    def statistic(draws: _Floats, rng: np.random.Generator | None) -> _Floats:
        counts = cells @ draws
        if rng is not None:
            counts = counts + rng.standard_gamma(table_shapes(size)[:, None], counts.shape)
        tables = np.moveaxis(counts.reshape(size, size, -1), -1, 0)
        return np.stack([kappa(tables, "nominal"), accuracy(tables)])

    drawing = BootstrapSettings(replicates=_REPLICATES, confidence=confidence, seed=seed)
    found = smoothed_results(statistic, units=units.size, drawing=drawing)[0]
    return estimate_with(found.estimate, found.ci, len(people))


def _numbers(judged: JudgedMetric, units: _Units, confidence: float, seed: int) -> dict[str, Any]:
    """What is computed where people gave verdicts or scores."""
    people, judge = _people_pass(judged), np.array([bool(output.verdict) for output in judged.outputs], dtype=bool)
    found: dict[str, Any] = {
        "confusion": ConfusionCounts(
            both_pass=int(np.count_nonzero(people & judge)),
            only_people_pass=int(np.count_nonzero(people & ~judge)),
            only_judge_passes=int(np.count_nonzero(~people & judge)),
            both_fail=int(np.count_nonzero(~people & ~judge)),
        ),
        "sensitivity": units.share(judge, people, confidence=confidence),
        "specificity": units.share(~judge, ~people, confidence=confidence),
        "length_bias": _length_bias(judged, units, confidence),
        "labels": labelled_metric(judged),
    }
    found["youden"] = _youden(people, judge, units, confidence)
    found["is_informative"] = found["youden"].low is not None and found["youden"].low > 0
    if judged.passed is not None:
        found["pass_rate"] = _corrected_pass_rate(judged, people, judge, units, confidence)
    if judged.kind == "score":
        found |= _scores(judged, units, confidence)
    else:
        found["threshold"] = _threshold(judged, people, units, confidence, seed)
    return found


def _youden(people: _Bools, judge: _Bools, units: _Units, confidence: float) -> Estimate:
    sensitivity, positives = weighted_share(*units.means(judge, people))
    specificity, negatives = weighted_share(*units.means(~judge, ~people))
    if sensitivity is None or specificity is None:
        return Estimate(value=None, n=len(people))
    alarms = (1 - specificity) * negatives
    found = newcombe(sensitivity * positives, positives, alarms, negatives, confidence=confidence)
    return estimate_with(sensitivity + specificity - 1, found.interval, len(people))


def labelled_metric(judged: JudgedMetric) -> LabelledMetric:
    """The labels of a metric, as a calibration keeps them."""
    return LabelledMetric(
        kind="score" if judged.kind == "score" else "verdict",
        identity=judged.identity,
        pairs=tuple(
            LabelledPair(
                id=output.id,
                truth=float(output.truth),
                score=output.score,
                passed=bool(output.verdict),
                probability=output.probability,
                stratum=output.stratum,
                unit=output.unit if output.unit != output.id else None,
            )
            for output in judged.outputs
        ),
    )


def _corrected_pass_rate(
    judged: JudgedMetric, people: _Bools, judge: _Bools, units: _Units, confidence: float
) -> CorrectedEstimate | None:
    if judged.passed is None or not len(judged.passed):
        return None
    return _corrected_mean(
        judged, people, judge, judged.passed / judged.repetitions, units=units, confidence=confidence
    )


def _corrected_mean(
    judged: JudgedMetric,
    truth: NDArray[Any],
    said: NDArray[Any],
    run: _Floats,
    *,
    units: _Units,
    confidence: float,
) -> CorrectedEstimate:
    """A mean of the run, prediction-powered: people's labels, with the judge's help where it follows them.

    Args:
        judged: The metric.
        truth: What people say of each labelled output.
        said: What the judge says of it.
        run: What the judge says of each sample of the run.
        units: The units of the labelled outputs.
        confidence: The level of the interval.
    """
    means, sizes = units.means(truth)
    predicted, _ = units.means(said)
    others = run
    if judged.samples and not units.is_weighted:
        others = _unlabelled(judged, run)
    found = ppi_mean(means, predicted, others, weights=sizes, bounds=(0.0, 1.0), confidence=confidence)
    alone = bounded_mean(means * sizes, sizes, confidence=confidence)
    people = estimate_with(alone.value, alone.interval, len(truth))
    if truth.dtype == bool:
        people = units.share(truth, confidence=confidence)
    note = None
    if not found.lam and len(others):
        note = "The judge does not follow people here, so this rests on their labels alone."
    low, high = interval_ends(found.interval) or (None, None)
    return CorrectedEstimate(
        naive=float(run.mean()),
        value=found.value,
        low=low,
        high=high,
        n=len(run),
        people=people,
        note=note,
        equal_labels=equal_sample_size(means - (found.lam or 0.0) * predicted, sizes) if units.is_weighted else None,
    )


def _unlabelled(judged: JudgedMetric, run: _Floats) -> _Floats:
    """What the judge says of each unit of the run of which nothing is labelled."""
    labelled = {output.unit or output.id for output in judged.outputs}
    is_other = np.array([name not in labelled for name in judged.samples], dtype=bool)
    return unit_values(run[is_other], np.array(judged.samples)[is_other])


def _scores(judged: JudgedMetric, units: _Units, confidence: float) -> dict[str, Any]:
    truth = np.array([float(output.truth) for output in judged.outputs])
    said = np.array([output.score for output in judged.outputs])
    (means, sizes), (predicted, _) = units.means(truth), units.means(said)
    ranks = spearman(means, predicted, confidence=confidence)
    bias = bounded_mean((predicted - means) * sizes, sizes, low=-1.0, high=1.0, confidence=confidence)
    found: dict[str, Any] = {
        "score_spearman": estimate_with(ranks.value, ranks.interval, len(truth)),
        "score_bias": estimate_with(bias.value, bias.interval, len(truth)),
    }
    if judged.scores is not None and len(judged.scores):
        found["mean"] = _corrected_mean(judged, truth, said, judged.scores, units=units, confidence=confidence)
    return found


def _threshold(
    judged: JudgedMetric, people: _Bools, units: _Units, confidence: float, seed: int
) -> ThresholdChoice | None:
    """The pass mark at which the judge agrees most; None where its scores are no more than pass and fail."""
    scores = np.array([output.score for output in judged.outputs])
    distinct = np.unique(scores)
    current, n = judged.threshold, len(scores)
    if current is None or len(distinct) < 3 or units.size < 2 * _FOLDS:
        return None
    marks = distinct[np.unique(np.linspace(0, len(distinct) - 1, _MOST_THRESHOLDS).round().astype(int))]
    # The nearest to the present one first, so that it stays where others are no better.
    marks = np.array(sorted({*marks.tolist(), current}, key=lambda mark: abs(mark - current)))
    passes = (scores[:, None] >= marks) if judged.higher_is_better else (scores[:, None] <= marks)
    right = (passes == people[:, None]).astype(np.float64)
    shares = units.weights
    totals = shares @ right
    folds = (np.random.default_rng(seed).permutation(units.size) % _FOLDS)[units.of_output]
    held_out = np.zeros(n)
    for fold in range(_FOLDS):
        inside = folds == fold
        held_out[inside] = right[inside, int(np.argmax(totals - shares[inside] @ right[inside]))]
    best = int(np.argmax(totals))
    gains, sizes = units.means(held_out - right[:, 0])
    gain = paired_difference(gains * sizes, sizes, confidence=confidence)
    return ThresholdChoice(
        current=current,
        best=float(marks[best]),
        agreement=float(totals[0] / n),
        best_agreement=float(totals[best] / n),
        cross_validated=float(shares @ held_out / n),
        gain=estimate_with(gain.value, gain.interval, n),
        is_noise=gain.interval is None or gain.interval.lower <= 0,
    )


def _length_bias(judged: JudgedMetric, units: _Units, confidence: float) -> LengthBias:
    outputs = judged.outputs
    lengths, _ = units.means(np.array([float(output.length) for output in outputs]))
    scores, _ = units.means(np.array([output.score for output in outputs]))
    truth, _ = units.means(np.array([float(output.truth) for output in outputs]))
    quality = scores if judged.higher_is_better else 1 - scores
    plain = spearman(lengths, quality, confidence=confidence)
    sides = spearman(lengths, truth).value, spearman(quality, truth).value
    partial = plain.value
    if plain.value is not None and sides[0] is not None and sides[1] is not None:
        left = math.sqrt(max(0.0, (1 - sides[0] ** 2) * (1 - sides[1] ** 2)))
        # A judge whose scores are the labels themselves leaves nothing for the length to explain.
        partial = (plain.value - sides[0] * sides[1]) / left if left > 1e-9 else None
    interval = None
    if partial is not None and units.size > 1:
        partial = min(1.0, max(-1.0, partial))
        interval = fisher_interval(partial, units.size - 1, method="spearman", confidence=confidence)
    return LengthBias(
        spearman=estimate_with(plain.value, plain.interval, len(outputs)),
        partial=estimate_with(partial, interval, len(outputs)),
        is_biased=interval is not None and (interval.lower > 0 or interval.upper < 0),
    )


def _position_bias(judged: JudgedMetric, confidence: float) -> PositionBias | None:
    orders = judged.orders
    if not orders:
        return None
    first, second = orders.count("first"), orders.count("second")
    return compare_orders(judged.name, None, n=len(orders), first=first, second=second, confidence=confidence)


def _consistency(judged: JudgedMetric) -> JudgeConsistency | None:
    cells = [cell for cell in judged.repeats if len(cell) > 1]
    if not cells:
        return None
    shares = [_equal_pairs(list(cell)) for cell in cells]
    width = max(map(len, cells))
    raters = [[None if place >= len(cell) else int(cell[place]) for cell in cells] for place in range(width)]
    return JudgeConsistency(
        judge_id=judged.name,
        n_cells=len(cells),
        n_repeats=sum(map(len, cells)),
        stable_share=sum(share == 1 for share in shares) / len(cells),
        pairwise_agreement=sum(shares) / len(cells),
        krippendorff_alpha=krippendorff_alpha(raters).value,
    )


def _equal_pairs(values: Sequence[object]) -> float:
    """The share of equal pairs.

    >>> _equal_pairs([True, True, False])
    0.3333333333333333
    """
    n = len(values)
    return sum(values.count(value) - 1 for value in values) / (n * (n - 1))


def _people(judged: JudgedMetric) -> AnnotatorAgreement | None:
    labelled = [*(output.by_annotator for output in judged.outputs), *judged.disputed]
    names = sorted({name for said in labelled for name in said})
    if len(names) < 2:
        return None
    raters = [[said.get(name) for said in labelled] for name in names]
    shares = [_equal_pairs(list(said.values())) for said in labelled if len(said) > 1]
    return AnnotatorAgreement(
        annotators=len(names),
        n=len(shares),
        agreement=sum(shares) / len(shares) if shares else None,
        krippendorff_alpha=krippendorff_alpha(raters, level="interval" if judged.kind == "score" else "nominal").value,
        disputed=len(judged.disputed),
    )


def _warnings(judged: JudgedMetric, found: Mapping[str, Any]) -> Iterator[str]:
    """What a reader must know before believing the numbers."""
    yield from judged.warnings
    n = found["n"]
    if not judged.is_drawn:
        yield "These outputs were picked because they looked hard: the numbers are about them, not about the run."
    if found["samples"] < n:
        yield f"{plural(found['samples'], 'sample')}, {plural(n, 'output')}: outputs of a sample count as one."
    if found["samples"] < FEWEST_LABELS:
        yield f"Only {plural(found['samples'], 'label')}: intervals are wide, and corrected numbers rest on little."
    confusion = found.get("confusion")
    if confusion is not None:
        passed = confusion.both_pass + confusion.only_people_pass
        for side, count in (("pass", passed), ("fail", n - passed)):
            if count < FEWEST_OF_A_CLASS:
                told = f"only {count}" if count else "none"
                yield f"People {side} {told} of the labelled samples, so its errors there are hardly measured."
        if judged.is_drawn and not found["is_informative"]:
            yield "The labels do not tell the judge from chance, so it corrects no other run."
    bias = found.get("length_bias")
    if bias is not None and bias.is_biased and abs(bias.partial.value or 0) >= LENGTH_BIAS:
        longer = "longer" if bias.partial.value > 0 else "shorter"
        yield f"The judge prefers {longer} outputs among those that people judge alike."
    order = found["position_bias"]
    if order is not None and order.p_value is not None and order.p_value < 0.05:
        place = "first" if order.favours_first > order.favours_second else "second"
        yield f"The judge prefers the answer shown {place}."
    options = found["option_order_bias"]
    if options is not None and options.p_value is not None and options.p_value < 0.05:
        end = "first" if (options.mean_place.value or 0.0) < 0.5 else "last"
        yield f"The judge prefers the options shown {end}."
    choice = found.get("threshold")
    # A judge at chance agrees most at a mark that passes, or fails, nearly everything.
    if choice is not None and not choice.is_noise and found["is_informative"]:
        yield f"A threshold of {choice.best:.4g} agrees better with people than {choice.current:.4g}."
    people = found["people"]
    if people is not None and people.disputed:
        yield f"People are tied on {people.disputed} samples, which are left out."
