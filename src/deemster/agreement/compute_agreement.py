"""`compute_metrics`: agreement of judges with people and with each other."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from deemster.agreement._bootstrap_replicates import (
    SMOOTHED,
    BootstrapSettings,
    Compute,
    bootstrap_results,
    jackknife_statistics,
    replicate_statistics,
)
from deemster.agreement._build_result import Extras, Options, Statistics, build_result
from deemster.agreement._contingency_counts import ContingencyCounts, count_votes
from deemster.agreement._corrected_means import corrected_means
from deemster.agreement._error_intervals import with_error_intervals
from deemster.agreement._human_agreement import human_agreement
from deemster.agreement._item_difficulty import disputed_items
from deemster.agreement._judge_calibration import judge_calibration
from deemster.agreement._judge_consistency import judge_consistency
from deemster.agreement._labelled_votes import (
    Cluster,
    Floats,
    HasVotes,
    LabelledVotes,
    read_labelled_votes,
    with_clusters,
)
from deemster.agreement._numeric_agreement import Levels
from deemster.agreement._position_bias import pair_clusters, position_bias
from deemster.agreement._score_statistics import ScoreSums, sum_scores
from deemster.agreement._tag_slices import estimate_slices, read_tags, slice_statistics
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.agreement._verdict_statistics import Key, Values, verdict_statistics
from deemster.agreement.metrics_result import MetricsResult
from deemster.agreement.result_models import AbstentionMode, BootstrapResult, CorrectedMeans
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError
from deemster.errors.parameter_checks import checks_parameters
from deemster.stats.confidence_interval import ConfidenceInterval


@checks_parameters
def compute_metrics(
    result: Votes | HasVotes | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    bootstrap: BootstrapSettings = SMOOTHED,
    per_judge: bool = False,
    cannot_assess: AbstentionMode = "exclude",
    na_mode: AbstentionMode = "exclude",
    cluster: Cluster | None = None,
    per_slice: bool = False,
    judges: Collection[str] | None = None,
    pair: str | None = None,
    epsilon: float = 0.2,
    group: str | None = None,
    system: str | None = None,
) -> MetricsResult:
    """Compare final verdicts, votes and scores with the truth, and the judges with each other.

    Items are matched by id. What is undefined is None; `warnings` say what a reader has to know.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from; items it does not label keep that of the votes. None for that of the votes.
        bootstrap: How every number gets its interval.
        per_judge: Compare each judge with the truth too.
        cannot_assess: What an abstention counts as on binary criteria: "exclude", "as_unmet" or "as_category".
        na_mode: What an abstention counts as on multi-choice criteria.
        cluster: A metadata key, or the cluster of each item by id, resampled whole; None for the key of the votes.
        per_slice: Compute the headline numbers of each tag too.
        judges: The judges of the panel, by id; what was recorded of all of them is then derived anew. None for all.
        pair: A metadata key: two items with one value are a pair in both orders, for position bias. Pairs are clusters.
        epsilon: How much worse than one of three people the judge may be in the alternative annotator test.
        group: A metadata key: numbers are correlated inside each group too, the level of samples.
        system: A metadata key: the mean numbers of each system are correlated too.

    Raises:
        InputError: An argument is not as described, there is no such judge, no labelled item was graded, or
            ``as_category`` meets an ordinal criterion with an abstention. It is a ValueError too.
    """
    options = Options(
        modes=AbstentionModes(cannot_assess, na_mode),
        bootstrap=bootstrap.checked(),
        per_judge=per_judge,
        per_slice=per_slice,
    )

    votes = read_labelled_votes(result, dataset, modes=options.modes, cluster=cluster, judges=judges)
    if votes.votes.sampling == "chosen":
        options = replace(options, bootstrap=options.bootstrap._replace(replicates=0))
    if pair is not None and votes.clusters is None:
        votes = with_clusters(votes, pair_clusters(votes.votes, pair))

    statistics = _compute_statistics(votes, options, Levels(group, system))
    extras = _compute_extras(votes, options, epsilon=epsilon, pair=pair)
    metrics = build_result(votes, options, statistics, extras)
    return _of_these_items_alone(metrics) if metrics.sampling == "chosen" else metrics


def _of_these_items_alone(part: Any) -> Any:
    """A result, or a part of it, without what speaks for others than its items, which nobody drew at random."""
    if isinstance(part, (ConfidenceInterval, CorrectedMeans)):
        return None
    if isinstance(part, Mapping):
        return {key: _of_these_items_alone(value) for key, value in part.items()}
    if isinstance(part, tuple):
        return tuple(map(_of_these_items_alone, part))
    if not isinstance(part, msgspec.Struct):
        return part

    kept = {name: _of_these_items_alone(getattr(part, name)) for name in part.__struct_fields__}
    kept |= {name: value for name, value in _NO_INFERENCE.items() if name in kept}
    return type(part)(**kept)


# The fields of results that are tests of hypotheses, and what they are where nothing is tested.
_NO_INFERENCE: Mapping[str, Any] = {"p_value": None, "one_way_p": None, "is_significant": False}


def _compute_statistics(votes: LabelledVotes, options: Options, levels: Levels) -> Statistics:
    """Compute every statistic of the data and, for a bootstrap, of the replicates."""
    is_drawn = options.bootstrap.replicates > 0
    tags = read_tags(votes) if options.per_slice else None
    # Only slices with enough items have replicates.
    members = tags.large_members(len(votes.ids)) if tags is not None and is_drawn and len(tags.large) else None

    layout = count_votes(votes, per_judge=options.per_judge, slices=members)
    scores = sum_scores(votes, per_judge=options.per_judge, slices=members, confidence=options.bootstrap.confidence)

    def compute(counts: Floats, sums: Floats, draws: NDArray[Any] | None, imagined: Floats | None) -> Values:
        coverage = options.modes.exclude_all
        values = verdict_statistics(layout, counts, coverage=coverage, pooled=votes.mixed_rubrics)
        values |= scores.statistics(sums, draws, imagined)
        if tags is not None and members is not None:
            is_twice = imagined is not None
            values |= slice_statistics(layout, scores, counts, sums, numbers=tags.large, twice=is_twice)
        return values

    counts = layout.count_cells(layout.pattern_totals())
    estimates = {key: float(values[0]) for key, values in compute(counts, scores.totals(), None, None).items()}
    estimates |= scores.exact_correlations()
    slices = None if tags is None else estimate_slices(tags, votes, layout, scores, counts)
    if slices is not None:
        estimates |= slices.by_key()

    intervals = None
    if is_drawn:
        intervals = _intervals(votes, options, layout, scores, compute=compute, estimates=estimates)
    if intervals is not None and options.bootstrap.method == "smoothed":
        intervals = with_error_intervals(intervals, votes, scores, None if members is None else tags)

    return Statistics(
        layout=layout,
        counts=counts,
        scores=scores,
        estimates={key: None if math.isnan(value) else value for key, value in estimates.items()},
        intervals=intervals,
        slices=slices,
        levels=levels,
    )


def _intervals(
    votes: LabelledVotes,
    options: Options,
    layout: ContingencyCounts,
    scores: ScoreSums,
    *,
    compute: Compute,
    estimates: Mapping[Key, float],
) -> dict[Key, BootstrapResult]:
    """The interval of every statistic, from its replicates."""
    bootstrap = options.bootstrap
    replicates = replicate_statistics(
        layout, scores, compute, n=bootstrap.replicates, seed=bootstrap.seed, method=bootstrap.method
    )

    needs_jackknife = bootstrap.method == "bca" and votes.n_units > 1
    jackknife = jackknife_statistics(layout, scores, compute) if needs_jackknife else None
    return bootstrap_results(
        estimates,
        replicates,
        jackknife,
        method=bootstrap.method,
        units=votes.n_units,
        confidence=bootstrap.confidence,
        expanded=scores.expanded_keys(),
    )


def _compute_extras(votes: LabelledVotes, options: Options, *, epsilon: float, pair: str | None) -> Extras:
    """Compute what a result says beyond agreement."""
    if not isinstance(epsilon, (int, float)) or not 0 <= epsilon < 1:
        raise InputError(f"`epsilon` is a number from 0 to below 1, not {epsilon!r:.60}.")

    confidence = options.bootstrap.confidence
    return Extras(
        human=human_agreement(votes, options.bootstrap, epsilon=epsilon),
        consistency=judge_consistency(votes),
        position_bias=None if pair is None else position_bias(votes, pair, confidence=confidence),
        calibration=judge_calibration(votes, confidence=confidence),
        corrected=corrected_means(votes, confidence=confidence),
        items=disputed_items(votes),
    )
