"""Computes the comparison of two runs from their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from deemster.comparison.comparison import SCHEMA, Comparison
from deemster.errors import ReportError
from deemster.formats.schema_validation import OpenShare, Seed
from deemster.records import MetricCard
from deemster.results.alike_samples import MOST_SAMPLES, alike_warnings, may_group
from deemster.results.compared_numbers import (
    CohortComparison,
    Difference,
    MetricComparison,
    PassTable,
    SampleCounts,
    SampleDrop,
    UsageComparison,
)
from deemster.results.difference_origin import (
    DifferenceOrigin,
    MatchedOutputs,
    find_drift,
    match_outputs,
    split_difference,
)
from deemster.results.metric_summary import SCORED
from deemster.results.run_columns import JoinedSamples, RunColumns, describe_identity_changes, join_samples
from deemster.results.run_summary import cohort_label
from deemster.results.sample_changes import ChangedSamples, ChangeTable
from deemster.results.usage_and_cost import USAGE
from deemster.stats import exact_mean, mcnemar, paired_difference, sign_flip, student, tango
from deemster.stats.confidence_interval import Interval, interval_ends
from deemster.stats.noise_split import NoiseSplit, noise_split

_Floats: TypeAlias = NDArray[np.float64]
_Bools: TypeAlias = NDArray[np.bool_]
_Places: TypeAlias = NDArray[np.int64]
# Reports round scores to nine decimals: numbers that differ by less are equal.
_ROUNDING = 2e-9


class ComparisonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How two runs are compared.

    Attributes:
        confidence: The level of the intervals, and of the one-sided bounds.
        margin: The drop that would still be acceptable; None where nothing is held to one.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.
        seed: The seed of what is drawn.
        tests: Whether differences are tested by flipping signs. No gate looks at these tests, and they take half the
            time of a small comparison.
    """

    confidence: OpenShare = 0.95
    margin: Annotated[float, Meta(ge=0, lt=1)] | None = None
    cluster: str | None = None
    seed: Seed = 0
    tests: bool = True


class _Side(NamedTuple):
    """One metric, or all of them, in one run, by sample and repetition."""

    passed: _Bools
    scored: _Bools

    def at(self, places: _Places) -> _Side:
        """The same of some samples."""
        if len(places) == len(self.passed):
            return self
        return _Side(self.passed[places], self.scored[places])

    @property
    def share(self) -> _Floats:
        """The share of repetitions that pass, by sample."""
        return np.asarray(self.passed.mean(axis=1))


def compare_columns(
    baseline: RunColumns,
    candidate: RunColumns,
    *,
    settings: ComparisonSettings,
    tool_version: str,
    wanted: _Places | None = None,
) -> Comparison:
    """Compare two runs sample by sample.

    Args:
        baseline: The run before.
        candidate: The run now.
        settings: How they are compared.
        tool_version: The version that compares them.
        wanted: The samples of the candidate that are looked at; all unless given.

    Raises:
        ReportError: The runs share no sample.
    """
    joined = join_samples(baseline, candidate)
    joined = joined if wanted is None else joined.within(wanted)
    if not len(joined.before):
        message = f"The runs `{baseline.run.id}` and `{candidate.run.id}` share no sample, so nothing can be compared."
        raise ReportError(f"{message} Two samples are the same if their input and expected output are equal.")
    compared, reasons = comparable_metrics(baseline, candidate)
    table = ChangeTable(baseline, candidate, joined, compared)
    # The table knows the hashes of the samples that it shows. All others are joined, and take much room.
    baseline, candidate = baseline.without_digests(), candidate.without_digests()
    pair = _Pair(baseline, candidate, joined, settings)
    numbers = pair.numbers(compared)
    return Comparison(
        schema_version=SCHEMA,
        tool_version=tool_version,
        baseline=baseline.run,
        candidate=candidate.run,
        confidence=settings.confidence,
        cluster=settings.cluster,
        seed=settings.seed,
        margin=settings.margin,
        samples=SampleCounts(paired=len(joined.after), added=len(joined.added), removed=len(joined.removed)),
        warnings=(*_warnings(baseline, candidate), *pair.alike(compared)),
        not_comparable=reasons,
        usage=dict(pair.usage(compared)),
        statuses=table.counts,
        changes=ChangedSamples(table),
        **numbers,
    )


def _warnings(baseline: RunColumns, candidate: RunColumns) -> Iterator[str]:
    """What a reader must know before believing the numbers."""
    for name, columns in (("baseline", baseline), ("candidate", candidate)):
        run = columns.run
        if run.status != "complete":
            yield f"The {name} `{run.id}` is {run.status}."
        if run.part is not None:
            yield f"The {name} `{run.id}` ran a part of its dataset: {run.part.samples:,} of {run.part.of:,} samples."
        # Where every target call failed, there was no output to keep.
        if not columns.marks.outputs.any() and (columns.marks.causes == SCORED).any():
            yield f"The outputs of the {name} are not kept, so changes of a judge count as changes of outputs."
        for metric, panels in columns.marks.panel_summaries().items():
            if panels.n_incomplete:
                lacking = f"{panels.n_incomplete:,} of {panels.n:,} scores of `{metric}`"
                yield f"In the {name} `{run.id}`, {lacking} lack the vote of a judge that failed."
    if baseline.run.repetitions != candidate.run.repetitions:
        counts = f"{baseline.run.repetitions} and {candidate.run.repetitions}"
        yield f"The runs have {counts} repetitions. Each sample counts with its mean."


def comparable_metrics(baseline: RunColumns, candidate: RunColumns) -> tuple[list[str], dict[str, str]]:
    """The metrics that both runs have with the same identity, and why the others cannot be compared."""
    before, now = baseline.identities, candidate.identities
    reasons = {}
    for name in [*now, *(name for name in before if name not in now)]:
        if name not in before or name not in now:
            reasons[name] = f"only the {'candidate' if name in now else 'baseline'} has it"
        elif differences := describe_identity_changes(before[name], now[name]):
            reasons[name] = "; ".join(differences)
    return [name for name in now if name not in reasons], reasons


class _Pair:
    """The samples that two runs share."""

    def __init__(
        self, baseline: RunColumns, candidate: RunColumns, joined: JoinedSamples, settings: ComparisonSettings
    ) -> None:
        self._runs = baseline, candidate
        self._joined, self._settings = joined, settings
        self._matched = match_outputs(baseline.marks.outputs[joined.before], candidate.marks.outputs[joined.after])
        self._clusters: _Places | None = None
        if candidate.clusters is not None:
            numbers: dict[object, int] = {}
            every = [numbers.setdefault(candidate.clusters[place], len(numbers)) for place in joined.after.tolist()]
            self._clusters = np.array(every, dtype=np.int64)

    def alike(self, compared: list[str]) -> list[str]:
        """Warnings of samples whose differences are alike although nobody said that they belong together."""
        read, places = self._runs[1].metadata, self._joined.after
        if read is None or self._clusters is not None or not self._settings.tests or len(places) > MOST_SAMPLES:
            return []
        if not may_group(next(iter(read()), {})):
            return []
        applies = self._applies(compared)
        changes = {}
        for column, name in enumerate(compared):
            before, after = self._sides(name)
            changes[f"change of {name}"] = np.where(applies[:, column], after.share - before.share, np.nan)
        metadata = list(read())
        return alike_warnings(changes, [metadata[place] for place in places.tolist()], seed=self._settings.seed)

    def numbers(self, compared: list[str]) -> dict[str, Any]:
        """The numbers of a comparison that come from marks.

        One number after the other: the arrays of a million samples take much room.
        """
        applies = self._applies(compared)
        metrics = {name: self._metric(name, np.flatnonzero(applies[:, at])) for at, name in enumerate(compared)}
        places = np.flatnonzero(applies.any(axis=1))
        before, after = (side.at(places) for side in self._all_metrics(compared, applies))
        return {
            "metrics": metrics,
            "macro_f1": self._macro_f1(self._macro_shares(compared, applies), places),
            "pass_rate": self._difference(before.share, after.share, places, table=(before, after)),
            "table": _pass_table(before.share, after.share),
            "noise": _noise(before, after),
            "macro_f1_origin": self._macro_f1_origin(metrics),
            "pass_rate_origin": self._pass_rate_origin(compared, before, after, places),
            "cohorts": tuple(
                self._cohort(label, here, compared, applies[here]) for label, here in self._cohort_places()
            ),
        }

    def _cohort(self, label: str, here: _Places, compared: list[str], applies: _Bools) -> CohortComparison:
        """One cohort: the samples at some places, and whether each metric applies to them."""
        metrics = {}
        for column, name in enumerate(compared):
            inside = here[applies[:, column]]
            before, after = self._sides(name, inside)
            metrics[name] = self._difference(before.share, after.share, inside)
        rated = applies.any(axis=1)
        shares = [side.share[rated] for side in self._all_metrics(compared, applies, here)]
        return CohortComparison(
            label=label,
            samples=len(here),
            macro_f1=self._macro_f1(self._macro_shares(compared, applies, here), here[rated]),
            pass_rate=self._difference(shares[0], shares[1], here[rated]),
            metrics=metrics,
        )

    def _macro_shares(self, compared: list[str], applies: _Bools, here: _Places | None = None) -> _MacroShares:
        macro = _MacroShares(applies)
        for column, name in enumerate(compared):
            before, after = self._sides(name, here)
            macro.add(column, before.share, after.share)
        return macro

    def _all_metrics(self, compared: list[str], applies: _Bools, here: _Places | None = None) -> tuple[_Side, _Side]:
        """Whether every metric that applies passed, and has a score, in both runs."""
        shapes = [(len(applies), run.marks.repetitions) for run in self._runs]
        before, after = (_Side(np.ones(shape, np.bool_), np.ones(shape, np.bool_)) for shape in shapes)
        for column, name in enumerate(compared):
            outside = ~applies[:, column][:, None]
            for every, side in zip((before, after), self._sides(name, here), strict=True):
                every.passed[:] &= side.passed | outside
                every.scored[:] &= side.scored | outside
        return before, after

    def _macro_f1(self, macro: _MacroShares, places: _Places) -> Difference:
        """The difference of macro-F1 of the samples at some places, to each of which a metric applies."""
        (before, after), weights = macro.shares, macro.weights
        if weights is not None:
            before, after, weights = before[macro.rated], after[macro.rated], weights[macro.rated]
        return self._difference(before, after, places, weights=weights)

    def _applies(self, compared: list[str]) -> _Bools:
        """For each joined sample and metric, whether the metric applies to the sample in both runs."""
        before, after = (
            run.marks.applies_to(positions)[:, [_place(run, name) for name in compared]]
            for run, positions in zip(self._runs, (self._joined.before, self._joined.after), strict=True)
        )
        return np.asarray(before & after)

    def _sides(self, name: str, here: _Places | None = None) -> tuple[_Side, _Side]:
        """A metric in both runs: of all samples that both have, or of those at some places among them."""
        (before, first), (after, second) = self._positions(here)
        return _side(before, name, first), _side(after, name, second)

    def _scores(self, name: str, here: _Places) -> tuple[_Floats, _Floats]:
        """The scores of a metric in both runs, at some places; 0 where there is none."""
        (before, first), (after, second) = self._positions(here)
        scores = before.marks.scores[:, :, _place(before, name)], after.marks.scores[:, :, _place(after, name)]
        return scores[0][first], scores[1][second]

    def _positions(self, here: _Places | None) -> tuple[tuple[RunColumns, _Places], tuple[RunColumns, _Places]]:
        """Both runs, with the positions there of the samples at some places."""
        (before, after), (first, second, *_) = self._runs, self._joined
        if here is not None and len(here) < len(first):
            first, second = first[here], second[here]
        return (before, first), (after, second)

    def _cohort_places(self) -> Iterator[tuple[str, _Places]]:
        """The cohorts of the candidate, with the places of their samples among those that both runs have."""
        candidate = self._runs[1]
        places = np.full(candidate.marks.samples, -1)
        places[self._joined.after] = np.arange(len(self._joined.after))
        for tag, positions in candidate.marks.cohorts:
            here = places[positions]
            if len(here := here[here >= 0]):
                yield cohort_label(tag), here

    def _metric(self, name: str, places: _Places) -> MetricComparison:
        """One metric, over the samples that it applies to in both runs."""
        upwards = _card(self._runs[1], name).higher_is_better
        before, after = self._sides(name, places)
        matched = self._matched.at(places)
        pass_rate = self._difference(before.share, after.share, places, table=(before, after))
        scores = self._scores(name, places)
        drift = find_drift((scores[0], before.scored), (scores[1], after.scored), matched, seed=self._settings.seed)
        bounds = _mean_bounds((scores[0], before.scored), (scores[1], after.scored))
        known = np.flatnonzero(before.scored.any(axis=1) & after.scored.any(axis=1))
        means = _mean_scores(scores[0], before.scored), _mean_scores(scores[1], after.scored)
        del scores
        left_out, rates = len(places) - len(known), (_pass_rate(_metric_passed(run, name)) for run in self._runs)
        if left_out:
            means, places = (means[0][known], means[1][known]), places[known]
        return MetricComparison(
            pass_rate=pass_rate,
            mean=self._difference(*means, places, upwards=upwards),
            mean_bounds=bounds,
            left_out=left_out,
            table=_pass_table(before.share, after.share),
            noise=_noise(before, after),
            higher_is_better=upwards,
            largest_drop=self._largest_drop(*means, places, upwards=upwards),
            origin=self._origin(before, after, matched, *rates),
            drift=drift,
        )

    def _largest_drop(self, before: _Floats, after: _Floats, places: _Places, *, upwards: bool) -> SampleDrop | None:
        lost = before - after if upwards else after - before
        if not len(lost) or lost.max() <= _ROUNDING:
            return None
        worst = int(np.argmax(lost))
        (name,) = self._runs[1].ids([int(self._joined.after[places[worst]])])
        return SampleDrop(id=name, drop=float(lost[worst]))

    def _difference(
        self,
        before: _Floats,
        after: _Floats,
        places: _Places,
        *,
        upwards: bool = True,
        table: tuple[_Side, _Side] | None = None,
        weights: _Floats | None = None,
    ) -> Difference:
        """The difference of a number of the samples at some places among those that both runs have.

        With weights, whose mean is 1, the numbers are those of the samples times their weights.
        """
        moved = after - before
        moved[np.abs(moved) <= _ROUNDING] = 0.0
        totals, sizes = moved, weights
        if self._clusters is not None:
            _, codes = np.unique(self._clusters[places], return_inverse=True)
            totals = np.bincount(codes, weights=moved).astype(np.float64)
            sizes = np.bincount(codes, weights=weights).astype(np.float64)
        found = paired_difference(totals, sizes, margin=self._settings.margin, confidence=self._settings.confidence)
        up, down = int(np.count_nonzero(moved > 0)), int(np.count_nonzero(moved < 0))
        return Difference(
            n=len(moved),
            units=found.n,
            baseline=exact_mean(before),
            candidate=exact_mean(after),
            difference=found.value,
            interval=interval_ends(found.interval),
            method=None if found.interval is None else found.interval.method,
            lower_bound=found.lower_bound,
            upper_bound=found.upper_bound,
            p_value=found.p_value,
            sign_flip_p=sign_flip(totals, seed=self._settings.seed).p_value if self._settings.tests else None,
            effect=found.effect,
            better=up if upwards else down,
            equal=len(moved) - up - down,
            worse=down if upwards else up,
            certifiable=found.certifiable,
            certifiable_unchanged=found.certifiable_unchanged,
            detectable=found.detectable,
            p_beyond=found.p_beyond,
            tango=self._tango(up, down, table),
        )

    def _tango(self, up: int, down: int, table: tuple[_Side, _Side] | None) -> Interval | None:
        if table is None or self._clusters is not None or any(side.passed.shape[1] != 1 for side in table):
            return None
        return interval_ends(tango(up, down, len(table[0].passed), confidence=self._settings.confidence).interval)

    def _origin(
        self, before: _Side, after: _Side, matched: MatchedOutputs, rate_before: float, rate_after: float
    ) -> DifferenceOrigin:
        """Split the change of a rate; the rates are those of the whole runs."""
        outputs, judge, unscored = split_difference(
            (before.passed, before.scored), (after.passed, after.scored), matched
        )
        total = rate_after - rate_before
        return DifferenceOrigin(
            total=total,
            outputs=outputs,
            judge=judge,
            unscored=unscored,
            dataset=total - ((exact_mean(after.share) or 0.0) - (exact_mean(before.share) or 0.0)),
        )

    def _pass_rate_origin(self, compared: list[str], before: _Side, after: _Side, places: _Places) -> DifferenceOrigin:
        rates = [_pass_rate(_all_passed(run, compared)) for run in self._runs]
        found = self._origin(before, after, self._matched.at(places), *rates)
        return _with_metrics(found, [run.run.pass_rate for run in self._runs])

    def _macro_f1_origin(self, metrics: Mapping[str, MetricComparison]) -> DifferenceOrigin:
        origins = [metric.origin for metric in metrics.values() if metric.pass_rate.n]
        fields = ("total", "outputs", "judge", "unscored", "dataset")
        means = {name: exact_mean([getattr(origin, name) for origin in origins]) or 0.0 for name in fields}
        return _with_metrics(DifferenceOrigin(**means), [run.run.macro_f1 for run in self._runs])

    def usage(self, compared: list[str]) -> Iterator[tuple[str, UsageComparison]]:
        """What the target used in both runs, for every kind of usage that both know."""
        used = [run.usage() for run in self._runs]
        if used[0] is None or used[1] is None:
            return
        for place, name in enumerate(USAGE):
            before, after = used[0][:, :, place], used[1][:, :, place]
            if np.isnan(before).all() or np.isnan(after).all():
                continue
            first, second = _known_means(before[self._joined.before]), _known_means(after[self._joined.after])
            known = ~np.isnan(first) & ~np.isnan(second)
            if not known.all():
                first, second = first[known], second[known]
            found = student(second - first, confidence=self._settings.confidence)
            yield (
                name,
                UsageComparison(
                    n=found.n,
                    baseline=exact_mean(first),
                    candidate=exact_mean(second),
                    difference=found.value,
                    interval=interval_ends(found.interval),
                    baseline_per_pass=_per_pass(self._runs[0], before, compared),
                    candidate_per_pass=_per_pass(self._runs[1], after, compared),
                ),
            )


class _MacroShares:
    """The share of each sample in macro-F1: every metric has one vote, divided among the samples that it applies to.

    Args:
        applies: For each sample and metric, whether the metric applies to the sample in both runs.

    Attributes:
        rated: For each sample, whether a metric applies to it.
        shares: The share of each sample in both runs, times its weight.
        weights: The weights, whose mean over rated samples is 1; None where all count alike.
    """

    def __init__(self, applies: _Bools) -> None:
        self._applies = applies
        self.rated = np.asarray(applies.any(axis=1))
        samples = applies.sum(axis=0)
        used = int(np.count_nonzero(samples))
        # Where every metric applies to every sample, a mark counts 1 divided by the number of metrics.
        self._divisors = used * samples / max(1, int(np.count_nonzero(self.rated)))
        self.shares = np.zeros(len(applies)), np.zeros(len(applies))
        self.weights = None if applies.size and applies.all() else np.zeros(len(applies))

    def add(self, column: int, before: _Floats, after: _Floats) -> None:
        """Add the shares of a metric, by sample, in both runs."""
        divisor, inside = float(self._divisors[column]), self._applies[:, column]
        if self.weights is None:
            self.shares[0][:] += before / divisor
            self.shares[1][:] += after / divisor
        elif divisor:
            self.shares[0][inside] += before[inside] / divisor
            self.shares[1][inside] += after[inside] / divisor
            self.weights[inside] += 1 / divisor


def _card(run: RunColumns, name: str) -> MetricCard:
    return run.marks.cards[_place(run, name)]


def _place(run: RunColumns, name: str) -> int:
    return next(place for place, card in enumerate(run.marks.cards) if card.name == name)


def _side(run: RunColumns, name: str, positions: _Places) -> _Side:
    place, marks = _place(run, name), run.marks
    return _Side(marks.passed[:, :, place][positions], marks.causes[:, :, place][positions] == SCORED)


def _metric_passed(run: RunColumns, name: str) -> _Bools:
    """Whether a metric passed, for each sample that it applies to and each repetition."""
    place = _place(run, name)
    return np.asarray(run.marks.passed[run.marks.applies_to(slice(None))[:, place], :, place])


def _all_passed(run: RunColumns, names: list[str]) -> _Bools:
    """Whether all metrics that apply passed, for each sample that one applies to and each repetition."""
    places = [_place(run, name) for name in names]
    applies = run.marks.applies_to(slice(None))[:, places]
    every = np.asarray((run.marks.passed[:, :, places] | ~applies[:, None, :]).all(axis=2))
    return every if applies.all() else every[applies.any(axis=1)]


def _pass_rate(passed: _Bools) -> float:
    return int(np.count_nonzero(passed)) / passed.size if passed.size else 0.0


def _mean_scores(scores: _Floats, scored: _Bools) -> _Floats:
    """The mean score of each sample; 0 where it has none."""
    means = np.asarray(np.where(scored, scores, 0.0).sum(axis=1))
    means /= np.maximum(scored.sum(axis=1, dtype=np.int32), 1)
    return means


def _mean_bounds(before: tuple[_Floats, _Bools], after: tuple[_Floats, _Bools]) -> Interval | None:
    """What the mean difference of all samples could be, whatever scores the unscored marks would have."""
    if before[1].all() and after[1].all():
        return None
    low = np.where(after[1], after[0], 0.0).mean() - np.where(before[1], before[0], 1.0).mean()
    high = np.where(after[1], after[0], 1.0).mean() - np.where(before[1], before[0], 0.0).mean()
    return Interval(float(low), float(high))


def _noise(before: _Side, after: _Side) -> NoiseSplit | None:
    """Where the noise of a pass-rate comes from; None where a run has no repetitions."""
    if before.passed.shape[1] < 2 or after.passed.shape[1] < 2:
        return None
    return noise_split(before.passed.astype(np.float64), after.passed.astype(np.float64))


def _pass_table(before: _Floats, after: _Floats) -> PassTable:
    was, now = before >= 0.5, after >= 0.5
    failing, passing = int(np.count_nonzero(was & ~now)), int(np.count_nonzero(~was & now))
    test = mcnemar(failing, passing)
    return PassTable(
        passed_both=int(np.count_nonzero(was & now)),
        newly_failing=failing,
        newly_passing=passing,
        failed_both=int(np.count_nonzero(~was & ~now)),
        p_value=test.p_value,
        mid_p=test.mid_p,
    )


def _with_metrics(origin: DifferenceOrigin, numbers: Sequence[float | None]) -> DifferenceOrigin:
    """The origin of the change of a number of whole runs, of which metrics that cannot be compared are a part."""
    before, after = numbers
    total = origin.total if before is None or after is None else after - before
    return DifferenceOrigin(
        total=total,
        outputs=origin.outputs,
        judge=origin.judge,
        unscored=origin.unscored,
        dataset=origin.dataset,
        metrics=total - origin.total if abs(total - origin.total) > _ROUNDING else 0.0,
    )


def _known_means(values: _Floats) -> _Floats:
    """The mean of each row over what is known; NaN where nothing is."""
    if values.shape[1] == 1:
        return values[:, 0]
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _per_pass(run: RunColumns, values: _Floats, compared: list[str]) -> float | None:
    passes = int(np.count_nonzero(_all_passed(run, compared))) if compared else 0
    return float(np.nansum(values)) / passes if passes else None
