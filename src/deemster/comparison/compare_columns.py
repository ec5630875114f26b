"""Computes the comparison of two runs from their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from deemster.comparison._paired_marks import (
    Bools,
    Floats,
    MacroShares,
    Rows,
    Side,
    all_passed,
    card_of,
    cluster_codes,
    column_of,
    known_means,
    mean_bounds,
    mean_scores,
    metric_passed,
    noise_of,
    pass_rate,
    pass_table,
    per_pass,
    scores_of,
    side_of,
)
from deemster.comparison.comparison import SCHEMA, Comparison
from deemster.errors import ReportError
from deemster.formats.schema_validation import OpenShare, Seed
from deemster.results.compared_numbers import (
    CohortComparison,
    Difference,
    MetricComparison,
    RepeatedComparison,
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
from deemster.results.undeclared_clusters import MOST_SAMPLES, alike_warnings, may_group
from deemster.results.usage_and_cost import USAGE
from deemster.stats import exact_mean, paired_difference, sign_flip, student, tango
from deemster.stats.confidence_interval import Interval, interval_ends
from deemster.stats.means import unit_sums

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


DEFAULT_SETTINGS: ComparisonSettings = ComparisonSettings()


def compare_columns(
    baseline: RunColumns,
    candidate: RunColumns,
    *,
    settings: ComparisonSettings,
    tool_version: str,
    wanted: Rows | None = None,
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
    joined = _join(baseline, candidate, wanted)
    compared, reasons = comparable_metrics(baseline, candidate)
    table = ChangeTable(baseline, candidate, joined, compared)
    # The table knows the hashes of the samples that it shows. All others are joined, and take much room.
    baseline = baseline.without_digests()
    candidate = candidate.without_digests()
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
        warnings=(
            *role_warnings(baseline, candidate),
            *repetition_warnings([baseline, candidate]),
            *pair.alike(compared),
        ),
        not_comparable=reasons,
        usage=dict(pair.usage(compared)),
        statuses=table.counts,
        changes=ChangedSamples(table),
        **numbers,
    )


def compare_pass_rates(baseline: RunColumns, candidate: RunColumns, *, settings: ComparisonSettings) -> Difference:
    """The difference of the pass-rates of two runs: the one that ``compare_columns`` gives, without the sign-flip test.

    Raises:
        ReportError: The runs share no sample.
    """
    joined = _join(baseline, candidate)
    compared, _ = comparable_metrics(baseline, candidate)
    untested = msgspec.structs.replace(settings, tests=False)
    return _Pair(baseline, candidate, joined, untested).pass_rate(compared)


def _join(baseline: RunColumns, candidate: RunColumns, wanted: Rows | None = None) -> JoinedSamples:
    """The samples that two runs share, or those of them that are wanted.

    Raises:
        ReportError: They share none.
    """
    joined = join_samples(baseline, candidate)
    if wanted is not None:
        joined = joined.within(wanted)
    if not len(joined.before):
        message = f"The runs `{baseline.run.id}` and `{candidate.run.id}` share no sample, so nothing can be compared."
        raise ReportError(f"{message} Two samples are the same if their input and expected output are equal.")
    return joined


def run_warnings(columns: RunColumns, subject: str) -> Iterator[str]:
    """What a reader must know of a run before believing its numbers.

    Args:
        columns: The run.
        subject: How a sentence calls it.
    """
    run = columns.run
    beginning = subject[:1].upper() + subject[1:]
    if run.status != "complete":
        yield f"{beginning} is {run.status}."
    if run.part is not None:
        yield f"{beginning} ran a part of its dataset: {run.part.samples:,} of {run.part.of:,} samples."
    for metric, panels in columns.marks.panel_summaries().items():
        if panels.n_incomplete:
            lacking = f"{panels.n_incomplete:,} of {panels.n:,} scores of `{metric}`"
            yield f"In {subject}, {lacking} lack the vote of a judge that failed."


def role_warnings(baseline: RunColumns, candidate: RunColumns) -> Iterator[str]:
    """What a reader must know of each of two runs that are compared."""
    for role, columns in (("baseline", baseline), ("candidate", candidate)):
        yield from run_warnings(columns, f"the {role} `{columns.run.id}`")
        # Where every target call failed, there was no output to keep.
        if not columns.marks.outputs.any() and (columns.marks.causes == SCORED).any():
            yield f"The outputs of the {role} are not kept, so changes of a judge count as changes of outputs."


def repetition_warnings(runs: Sequence[RunColumns]) -> list[str]:
    """That runs have other numbers of repetitions, where they do."""
    *first, last = dict.fromkeys(str(columns.run.repetitions) for columns in runs)
    if not first:
        return []
    return [f"The runs have {', '.join(first)} and {last} repetitions. Each sample counts with its mean."]


def comparable_metrics(baseline: RunColumns, candidate: RunColumns) -> tuple[list[str], dict[str, str]]:
    """The metrics that both runs have with the same identity, and why the others cannot be compared."""
    before = baseline.identities
    now = candidate.identities
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
        self._before = baseline
        self._after = candidate
        self._joined = joined
        self._settings = settings
        self._matched = match_outputs(baseline.marks.outputs[joined.before], candidate.marks.outputs[joined.after])
        self._clusters: Rows | None = None
        if candidate.clusters is not None:
            self._clusters = cluster_codes(candidate.clusters[position] for position in joined.after.tolist())

    def alike(self, compared: list[str]) -> list[str]:
        """Warnings of samples whose differences are alike although nobody said that they belong together."""
        read_metadata = self._after.metadata
        positions = self._joined.after
        if read_metadata is None or self._clusters is not None or not self._settings.tests:
            return []
        if len(positions) > MOST_SAMPLES or not may_group(next(iter(read_metadata()), {})):
            return []

        applies = self._applies(compared)
        changes = {}
        for column, name in enumerate(compared):
            before, after = self._sides(name)
            changes[f"change of {name}"] = np.where(applies[:, column], after.share - before.share, np.nan)

        metadata = list(read_metadata())
        return alike_warnings(
            changes, [metadata[position] for position in positions.tolist()], seed=self._settings.seed
        )

    def numbers(self, compared: list[str]) -> dict[str, Any]:
        """The numbers of a comparison that come from marks.

        One number after the other: the arrays of a million samples take much room.
        """
        applies = self._applies(compared)
        metrics = {name: self._metric(name, np.flatnonzero(applies[:, column])) for column, name in enumerate(compared)}
        rated = np.flatnonzero(applies.any(axis=1))
        before, after = (side.at(rated) for side in self._all_metrics(compared, applies))
        return {
            "metrics": metrics,
            "macro_f1": self._macro_f1(self._macro_shares(compared, applies), rated),
            "pass_rate": self._pass_rate(before, after, rated),
            "repeated": self._repeated(before, after, rated),
            "table": pass_table(before.share, after.share),
            "noise": noise_of(before, after),
            "macro_f1_origin": self._macro_f1_origin(metrics),
            "pass_rate_origin": self._pass_rate_origin(compared, before, after, rated),
            "cohorts": tuple(
                self._cohort(label, rows, compared, applies[rows]) for label, rows in self._rows_of_cohorts()
            ),
        }

    def pass_rate(self, compared: list[str]) -> Difference:
        """The difference of the pass-rate of these metrics together."""
        applies = self._applies(compared)
        rated = np.flatnonzero(applies.any(axis=1))
        before, after = (side.at(rated) for side in self._all_metrics(compared, applies))
        return self._pass_rate(before, after, rated)

    def _pass_rate(self, before: Side, after: Side, rated: Rows) -> Difference:
        return self._difference(before.share, after.share, rated, table=(before, after))

    def _repeated(self, before: Side, after: Side, rated: Rows) -> RepeatedComparison | None:
        """How often one of several repetitions passes, and how often all do; None where a run has no repetitions."""
        k = min(before.passed.shape[1], after.passed.shape[1])
        if k < 2 or not len(rated):
            return None
        return RepeatedComparison(
            k=k,
            pass_at_k=self._difference(before.pass_at(k), after.pass_at(k), rated),
            pass_hat_k=self._difference(before.pass_hat(k), after.pass_hat(k), rated),
        )

    def _cohort(self, label: str, rows: Rows, compared: list[str], applies: Bools) -> CohortComparison:
        """One cohort: the rows of its samples, and whether each metric applies to them."""
        metrics = {}
        for column, name in enumerate(compared):
            inside = rows[applies[:, column]]
            before, after = self._sides(name, inside)
            metrics[name] = self._difference(before.share, after.share, inside)

        is_rated = applies.any(axis=1)
        share_before, share_after = (side.share[is_rated] for side in self._all_metrics(compared, applies, rows))
        return CohortComparison(
            label=label,
            samples=len(rows),
            macro_f1=self._macro_f1(self._macro_shares(compared, applies, rows), rows[is_rated]),
            pass_rate=self._difference(share_before, share_after, rows[is_rated]),
            metrics=metrics,
        )

    def _macro_shares(self, compared: list[str], applies: Bools, rows: Rows | None = None) -> MacroShares:
        macro = MacroShares(applies)
        for column, name in enumerate(compared):
            before, after = self._sides(name, rows)
            macro.add(column, before.share, after.share)
        return macro

    def _all_metrics(self, compared: list[str], applies: Bools, rows: Rows | None = None) -> tuple[Side, Side]:
        """Whether every metric that applies passed, and has a score, in both runs."""
        shapes = [(len(applies), run.marks.repetitions) for run in (self._before, self._after)]
        before, after = (Side(np.ones(shape, np.bool_), np.ones(shape, np.bool_)) for shape in shapes)
        for column, name in enumerate(compared):
            outside = ~applies[:, column][:, None]
            for total, side in zip((before, after), self._sides(name, rows), strict=True):
                total.passed[:] &= side.passed | outside
                total.scored[:] &= side.scored | outside
        return before, after

    def _macro_f1(self, macro: MacroShares, rated: Rows) -> Difference:
        """The difference of macro-F1 of the samples in some rows, to each of which a metric applies."""
        if macro.weights is None:
            return self._difference(macro.before, macro.after, rated)
        before = macro.before[macro.rated]
        after = macro.after[macro.rated]
        return self._difference(before, after, rated, weights=macro.weights[macro.rated])

    def _applies(self, compared: list[str]) -> Bools:
        """For each joined sample and metric, whether the metric applies to the sample in both runs."""
        applies = [
            run.marks.applies_to(positions)[:, [column_of(run, name) for name in compared]]
            for run, positions in ((self._before, self._joined.before), (self._after, self._joined.after))
        ]
        return np.asarray(applies[0] & applies[1])

    def _sides(self, name: str, rows: Rows | None = None) -> tuple[Side, Side]:
        """A metric in both runs: of all samples that both have, or of some rows of these."""
        before, after = self._positions(rows)
        return side_of(self._before, name, before), side_of(self._after, name, after)

    def _positions(self, rows: Rows | None) -> tuple[Rows, Rows]:
        """The positions in both runs of the samples in some rows."""
        before, after, *_ = self._joined
        if rows is None or len(rows) == len(before):
            return before, after
        return before[rows], after[rows]

    def _rows_of_cohorts(self) -> Iterator[tuple[str, Rows]]:
        """The cohorts of the candidate, with the rows of their samples among those that both runs have."""
        row_of_position = np.full(self._after.marks.samples, -1)
        row_of_position[self._joined.after] = np.arange(len(self._joined.after))
        for tag, positions in self._after.marks.cohorts:
            rows = row_of_position[positions]
            rows = rows[rows >= 0]
            if len(rows):
                yield cohort_label(tag), rows

    def _metric(self, name: str, rows: Rows) -> MetricComparison:
        """One metric, over the samples that it applies to in both runs."""
        higher_is_better = card_of(self._after, name).higher_is_better
        before, after = self._sides(name, rows)
        matched = self._matched.at(rows)
        pass_rate_difference = self._difference(before.share, after.share, rows, table=(before, after))

        position_before, position_after = self._positions(rows)
        scores_before = (scores_of(self._before, name, position_before), before.scored)
        scores_after = (scores_of(self._after, name, position_after), after.scored)
        anchors = self._after.anchors.moved_since(self._before.anchors, name)
        drift = find_drift(scores_before, scores_after, matched, anchors=anchors, seed=self._settings.seed)
        bounds = mean_bounds(scores_before, scores_after)
        mean_before = mean_scores(*scores_before)
        mean_after = mean_scores(*scores_after)
        # The scores of a million samples take much room.
        del scores_before, scores_after

        scored = np.flatnonzero(before.scored.any(axis=1) & after.scored.any(axis=1))
        left_out = len(rows) - len(scored)
        if left_out:
            mean_before = mean_before[scored]
            mean_after = mean_after[scored]
            rows = rows[scored]

        rates = (pass_rate(metric_passed(run, name)) for run in (self._before, self._after))
        return MetricComparison(
            pass_rate=pass_rate_difference,
            mean=self._difference(mean_before, mean_after, rows, upwards=higher_is_better),
            mean_bounds=bounds,
            left_out=left_out,
            table=pass_table(before.share, after.share),
            noise=noise_of(before, after),
            higher_is_better=higher_is_better,
            largest_drop=self._largest_drop(mean_before, mean_after, rows, upwards=higher_is_better),
            origin=self._origin(before, after, matched, *rates),
            drift=drift,
        )

    def _largest_drop(self, before: Floats, after: Floats, rows: Rows, *, upwards: bool) -> SampleDrop | None:
        drops = before - after if upwards else after - before
        if not len(drops) or drops.max() <= _ROUNDING:
            return None
        worst = int(np.argmax(drops))
        (sample_id,) = self._after.ids([int(self._joined.after[rows[worst]])])
        return SampleDrop(id=sample_id, drop=float(drops[worst]))

    def _difference(
        self,
        before: Floats,
        after: Floats,
        rows: Rows,
        *,
        upwards: bool = True,
        table: tuple[Side, Side] | None = None,
        weights: Floats | None = None,
    ) -> Difference:
        """The difference of a number of the samples in some rows of those that both runs have.

        With weights, whose mean is 1, the numbers are those of the samples times their weights.
        """
        changes = after - before
        changes[np.abs(changes) <= _ROUNDING] = 0.0
        n_up = int(np.count_nonzero(changes > 0))
        n_down = int(np.count_nonzero(changes < 0))

        totals = changes
        sizes = weights
        if self._clusters is not None:
            clusters = self._clusters[rows]
            totals, sizes = unit_sums(changes, clusters)
            if weights is not None:
                sizes, _ = unit_sums(weights, clusters)

        settings = self._settings
        paired = paired_difference(totals, sizes, margin=settings.margin, confidence=settings.confidence)
        return Difference(
            n=len(changes),
            units=paired.n,
            baseline=exact_mean(before),
            candidate=exact_mean(after),
            difference=paired.value,
            interval=interval_ends(paired.interval),
            method=None if paired.interval is None else paired.interval.method,
            lower_bound=paired.lower_bound,
            upper_bound=paired.upper_bound,
            p_value=paired.p_value,
            sign_flip_p=sign_flip(totals, seed=settings.seed).p_value if settings.tests else None,
            effect=paired.effect,
            better=n_up if upwards else n_down,
            equal=len(changes) - n_up - n_down,
            worse=n_down if upwards else n_up,
            certifiable=paired.certifiable,
            certifiable_unchanged=paired.certifiable_unchanged,
            detectable=paired.detectable,
            p_beyond=paired.p_beyond,
            tango=self._tango(n_up, n_down, table),
        )

    def _tango(self, n_up: int, n_down: int, table: tuple[Side, Side] | None) -> Interval | None:
        if table is None or self._clusters is not None or any(side.passed.shape[1] != 1 for side in table):
            return None
        return interval_ends(tango(n_up, n_down, len(table[0].passed), confidence=self._settings.confidence).interval)

    def _origin(
        self, before: Side, after: Side, matched: MatchedOutputs, rate_before: float, rate_after: float
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

    def _pass_rate_origin(self, compared: list[str], before: Side, after: Side, rated: Rows) -> DifferenceOrigin:
        rates = (pass_rate(all_passed(run, compared)) for run in (self._before, self._after))
        origin = self._origin(before, after, self._matched.at(rated), *rates)
        return _with_metrics(origin, self._before.run.pass_rate, self._after.run.pass_rate)

    def _macro_f1_origin(self, metrics: Mapping[str, MetricComparison]) -> DifferenceOrigin:
        origins = [metric.origin for metric in metrics.values() if metric.pass_rate.n]
        fields = ("total", "outputs", "judge", "unscored", "dataset")
        means = {name: exact_mean([getattr(origin, name) for origin in origins]) or 0.0 for name in fields}
        return _with_metrics(DifferenceOrigin(**means), self._before.run.macro_f1, self._after.run.macro_f1)

    def usage(self, compared: list[str]) -> Iterator[tuple[str, UsageComparison]]:
        """What the target used in both runs, for every kind of usage that both know."""
        usage_before = self._before.usage()
        usage_after = self._after.usage()
        if usage_before is None or usage_after is None:
            return

        for kind, name in enumerate(USAGE):
            before = usage_before[:, :, kind]
            after = usage_after[:, :, kind]
            if not np.isnan(before).all() and not np.isnan(after).all():
                yield name, self._usage_of_kind(before, after, compared)

    def _usage_of_kind(self, before: Floats, after: Floats, compared: list[str]) -> UsageComparison:
        means_before = known_means(before[self._joined.before])
        means_after = known_means(after[self._joined.after])
        is_known = ~np.isnan(means_before) & ~np.isnan(means_after)
        if not is_known.all():
            means_before = means_before[is_known]
            means_after = means_after[is_known]

        difference = student(means_after - means_before, confidence=self._settings.confidence)
        return UsageComparison(
            n=difference.n,
            baseline=exact_mean(means_before),
            candidate=exact_mean(means_after),
            difference=difference.value,
            interval=interval_ends(difference.interval),
            baseline_per_pass=per_pass(self._before, before, compared),
            candidate_per_pass=per_pass(self._after, after, compared),
        )


def _with_metrics(origin: DifferenceOrigin, before: float | None, after: float | None) -> DifferenceOrigin:
    """The origin of the change of a number of whole runs, of which metrics that cannot be compared are a part."""
    total = origin.total if before is None or after is None else after - before
    return DifferenceOrigin(
        total=total,
        outputs=origin.outputs,
        judge=origin.judge,
        unscored=origin.unscored,
        dataset=origin.dataset,
        metrics=total - origin.total if abs(total - origin.total) > _ROUNDING else 0.0,
    )
