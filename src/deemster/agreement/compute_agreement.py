"""`compute_metrics`: agreement of judges with people and with each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from deemster.agreement._agreement_statistics import Options, Statistics, compute_statistics
from deemster.agreement._bootstrap_replicates import SMOOTHED, BootstrapSettings
from deemster.agreement._build_result import Extras, build_result
from deemster.agreement._corrected_means import corrected_means
from deemster.agreement._human_agreement import human_agreement
from deemster.agreement._item_clusters import Cluster, with_clusters
from deemster.agreement._item_difficulty import disputed_items
from deemster.agreement._judge_calibration import judge_calibration
from deemster.agreement._judge_consistency import judge_consistency
from deemster.agreement._labelled_votes import HasVotes, read_labelled_votes
from deemster.agreement._numeric_agreement import Levels
from deemster.agreement._position_bias import pair_clusters, position_bias
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.agreement.metrics_result import MetricsResult
from deemster.agreement.panel_worth import panel_worth
from deemster.agreement.result_models import AbstentionMode, CorrectedMeans
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError
from deemster.errors.parameter_checks import checks_parameters
from deemster.stats.confidence_interval import ConfidenceInterval

# The fields of results that are tests of hypotheses, and what they are where nothing is tested.
_NO_INFERENCE: Mapping[str, Any] = {"p_value": None, "one_way_p": None, "is_significant": False}


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

    statistics = compute_statistics(votes, options, Levels(group, system))
    extras = _compute_extras(statistics, epsilon=epsilon, pair=pair)
    metrics = build_result(statistics, extras)
    return _without_inference(metrics) if metrics.sampling == "chosen" else metrics


def _compute_extras(statistics: Statistics, *, epsilon: float, pair: str | None) -> Extras:
    """Compute what a result says beyond agreement."""
    if not isinstance(epsilon, (int, float)) or not 0 <= epsilon < 1:
        raise InputError(f"`epsilon` is a number from 0 to below 1, not {epsilon!r:.60}.")

    votes = statistics.votes
    bootstrap = statistics.bootstrap
    return Extras(
        human=human_agreement(votes, bootstrap, epsilon=epsilon),
        consistency=judge_consistency(votes),
        position_bias=None if pair is None else position_bias(votes, pair, confidence=bootstrap.confidence),
        calibration=judge_calibration(votes, confidence=bootstrap.confidence),
        corrected=corrected_means(votes, confidence=bootstrap.confidence),
        items=disputed_items(votes),
        panel=panel_worth(statistics),
    )


def _without_inference(part: Any) -> Any:
    """A result, or a part of it, without what speaks for others than its items, which nobody drew at random."""
    if isinstance(part, (ConfidenceInterval, CorrectedMeans)):
        return None
    if isinstance(part, Mapping):
        return {key: _without_inference(value) for key, value in part.items()}
    if isinstance(part, tuple):
        return tuple(map(_without_inference, part))
    if not isinstance(part, msgspec.Struct):
        return part

    kept = {name: _without_inference(getattr(part, name)) for name in part.__struct_fields__}
    kept |= {name: value for name, value in _NO_INFERENCE.items() if name in kept}
    return type(part)(**kept)
