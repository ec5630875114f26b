"""Builds the `MetricsResult` from statistics by key: criteria, judges, coverage, slices, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from deemster.agreement._agreement_statistics import Statistics
from deemster.agreement._contingency_counts import CriterionGroup
from deemster.agreement._criterion_columns import CriterionColumn, Floats, is_failed
from deemster.agreement._error_intervals import bias_with_interval
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._numeric_agreement import correlation_result, numeric_metrics
from deemster.agreement._score_statistics import CORRELATIONS, ICC_FORMS
from deemster.agreement._tag_slices import FEWEST_ITEMS, SliceEstimates
from deemster.agreement._verdict_statistics import COVERAGE_RATES, KINDS
from deemster.agreement.metrics_result import MetricsResult
from deemster.agreement.panel_worth import PanelWorth
from deemster.agreement.result_models import (
    AbstentionStats,
    AnyCriterion,
    BootstrapResult,
    BootstrapResults,
    CalibrationMetrics,
    ConfusionMatrix,
    CorrectedMeans,
    CoverageStats,
    CriterionMetrics,
    HumanAgreement,
    Intervals,
    ItemMetrics,
    JudgeConsistency,
    JudgeMetrics,
    NominalCriterionMetrics,
    NumericCriterionMetrics,
    OptionMetrics,
    OrdinalCriterionMetrics,
    PooledScaleMetrics,
    PositionBias,
    ScoreICC,
    ScoreLimits,
    SliceMetrics,
)
from deemster.errors import list_names, visible
from deemster.stats import confusion_tables as tables
from deemster.stats.confidence_interval import ConfidenceInterval, interval_ends, normal_quantile
from deemster.stats.correlation import kendall, spearman
from deemster.stats.interpretation import interpret_kappa
from deemster.stats.paired_tests import mcnemar
from deemster.stats.proportion_intervals import clopper_pearson
from deemster.stats.systematic_bias import BiasResult

_MODELS: dict[str, type[CriterionMetrics | OrdinalCriterionMetrics | NominalCriterionMetrics]] = {
    "binary": CriterionMetrics,
    "ordinal": OrdinalCriterionMetrics,
    "nominal": NominalCriterionMetrics,
}
# A statistic that is undefined in more than this share of the replicates causes a warning.
_UNDEFINED_SHARE = 0.05
_VERDICTS = ("MET", "UNMET", "CANNOT_ASSESS")
# Numbers of item scores, and what they are called on a single criterion: of the panel, a judge, a criterion of numbers.
_TWINS = (
    ("score_concordance", "mean_kappa"),
    ("score_alpha", "mean_krippendorff_alpha"),
    *((f"score_{name}", phi) for name in CORRELATIONS for phi in ("criterion_phi", "phi")),
)
_TWINS_OF_NUMBERS = (
    ("score_concordance", "concordance"),
    ("score_alpha", "krippendorff_alpha"),
    *((f"score_{name}", name) for name in CORRELATIONS),
    *((f"score_icc.{form}", f"judge_icc.{form}") for form in ICC_FORMS),
)
_SAME = 1e-9


class Extras(NamedTuple):
    """The fields of a result that are no statistics of agreement; each is None where it does not apply."""

    human: HumanAgreement | None
    consistency: tuple[JudgeConsistency, ...] | None
    position_bias: tuple[PositionBias, ...] | None
    calibration: tuple[CalibrationMetrics, ...] | None
    corrected: CorrectedMeans | None
    items: tuple[ItemMetrics, ...] | None
    panel: PanelWorth | None


def build_result(statistics: Statistics, extras: Extras) -> MetricsResult:
    """Build the result from every statistic."""
    votes = statistics.votes
    options = statistics.options
    kinds = [column.criterion.kind for column in votes.columns]

    numeric, concordance = _numeric(statistics)
    criteria = _criteria(statistics, numeric)
    n_samples = sum(criterion.n_samples for criterion in criteria)

    intervals = _overall_intervals(statistics)
    if intervals is not None and concordance is not None:
        alone = criteria[0].intervals if len(criteria) == 1 else None
        intervals = _with_one_interval(intervals, alone, _TWINS_OF_NUMBERS) | {"mean_concordance": concordance}

    return MetricsResult(
        mean_kappa_by_kind={
            kind: statistics.value("all", f"mean_kappa_by_kind.{kind}")
            for kind in dict.fromkeys(kinds)
            if kind != "numeric"
        },
        bias=_bias(statistics),
        score_limits=_limits(statistics),
        score_icc=_icc(statistics),
        per_criterion=criteria,
        per_judge=_judges(statistics) if options.per_judge else None,
        bootstrap=_bootstrap(statistics, intervals),
        n_samples=n_samples,
        cannot_assess_mode=options.modes.cannot_assess,
        na_mode=options.modes.na_mode,
        na_stats=_abstentions(statistics, binary=False) if set(kinds) - {"binary"} else None,
        cannot_assess_stats=_abstentions(statistics, binary=True) if "binary" in kinds else None,
        coverage_stats=_coverage(statistics, -1, n_samples),
        pooled_by_scale=_pooled(statistics) if votes.mixed_rubrics else None,
        slices=None if statistics.slices is None else _slices(statistics.slices, statistics),
        warnings=(*votes.warnings, *_undefined_warnings(statistics), *_data_warnings(statistics, criteria)),
        intervals=intervals,
        **_counts(votes, kinds),
        **_overall_numbers(statistics, concordance),
        **extras._asdict(),
    )


def _overall_numbers(statistics: Statistics, concordance: BootstrapResult | None) -> dict[str, Any]:
    """The numbers of all criteria together, by field."""
    correlations = statistics.scores.comparisons[0].pairs.correlations
    return {
        **statistics.numbers_of(MetricsResult, "all"),
        **_errors_by_side(statistics.votes),
        **{f"score_{name}": correlation_result(correlations[name]) for name in CORRELATIONS},
        "mean_concordance": None if concordance is None else concordance.estimate,
    }


def _with_exact_shares(intervals: Intervals, counts: Mapping[str, int], statistics: Statistics) -> Intervals:
    """Give shares of independent pairs their exact interval, which never falls below its level.

    Args:
        intervals: The intervals of one scope, by name.
        counts: The shares among them, and how many pairs each is a share of.
        statistics: The method and the level. Where clusters are resampled, pairs are not independent, and nothing
            changes.
    """
    if intervals is None or statistics.bootstrap.method != "smoothed" or statistics.votes.clusters is not None:
        return intervals

    exact = dict(intervals)
    for name, n in counts.items():
        estimate = exact[name].estimate if name in exact else None
        if estimate is not None and n:
            share = clopper_pearson(round(estimate * n), n, confidence=statistics.bootstrap.confidence)
            exact[name] = msgspec.structs.replace(exact[name], ci=share.interval)
    return exact


def _with_one_interval(
    intervals: Mapping[str, BootstrapResult], source: Intervals, twins: Iterable[tuple[str, str]]
) -> dict[str, BootstrapResult]:
    """Give a number the interval that it has under another name; of a single criterion, scores are its verdicts."""
    merged = dict(intervals)
    for name, twin_name in twins:
        number = merged.get(name)
        twin = (source or {}).get(twin_name)
        if number is None or twin is None or number.estimate is None or twin.estimate is None:
            continue
        # Options that are not evenly spaced make two numbers of them.
        if abs(number.estimate - twin.estimate) <= _SAME:
            merged[name] = msgspec.structs.replace(number, ci=twin.ci)
    return merged


def _share_counts(n: int, met: Floats | None) -> dict[str, int]:
    """The shares that follow from so many pairs, and how many pairs each is a share of.

    Args:
        n: How many pairs there are.
        met: Their table of MET against the rest; None for criteria that are not binary.
    """
    counts = dict.fromkeys(("accuracy", "exact_accuracy", "adjacent_accuracy", "macro_accuracy"), n)
    if met is not None:
        n_met = int(met[0].sum())
        n_judged_met = int(met[:, 0].sum())
        counts |= {"precision": n_judged_met, "recall": n_met, "fnr": n_met, "fpr": n - n_met, "binary_accuracy": n}
    return counts | {f"criterion_{name}": count for name, count in counts.items()}


def _overall_intervals(statistics: Statistics, judge: int | None = None) -> Intervals:
    """The intervals of all criteria together, for the panel or a judge.

    With a single criterion, shares have the intervals of that one. A number has one interval under all its names.
    """
    intervals = statistics.scope_intervals("all") if judge is None else statistics.scope_intervals("judge", judge)
    if intervals is not None and statistics.bootstrap.method == "smoothed":
        ci = _bias(statistics, judge).ci or intervals["bias"].ci
        names = ("bias", "score_limits.mean") if judge is None else ("bias",)
        intervals = intervals | {name: msgspec.structs.replace(intervals[name], ci=ci) for name in names}
    if intervals is None or len(statistics.votes.columns) > 1 or statistics.votes.columns[0].numbers is not None:
        return intervals
    intervals = _with_one_interval(intervals, intervals, _TWINS)
    group = statistics.layout.groups[0]
    table = group.tables.of(statistics.counts)[0 if judge is None else 1 + judge, 0, 0]
    met = tables.positive_against_rest(table) if group.kind == "binary" else None
    shares = _share_counts(int(table.sum()), met)
    if judge is None:
        people = _errors_by_side(statistics.votes)
        shares |= {"passed_of_passed": people["n_people_passed"], "passed_of_failed": people["n_people_failed"]}
    return _with_exact_shares(intervals, shares, statistics)


def _counts(votes: LabelledVotes, kinds: Sequence[str]) -> dict[str, Any]:
    """What the numbers rest on, by field."""
    return {
        "n_items": len(votes.ids),
        "n_units": votes.n_units,
        "sampling": votes.votes.sampling,
        "n_judges": len(votes.judges),
        "n_criteria": len(kinds),
        **{f"n_{kind}_criteria": kinds.count(kind) for kind in ("binary", "ordinal", "nominal", "numeric")},
    }


def _errors_by_side(votes: LabelledVotes) -> dict[str, Any]:
    """How many binary pairs people pass and fail, and whether the judge's errors go one way beyond chance.

    Each unit counts once, by the side to which most of its errors go.
    """
    passed = failed = 0
    balance = np.zeros(votes.n_units, dtype=np.intp)
    for column in votes.columns:
        if column.criterion.kind != "binary":
            continue
        truth = column.truth_classes
        final = column.final_classes
        is_pair = (truth >= 0) & (final >= 0)
        is_negative = column.criterion.weight < 0
        people_pass = (truth[is_pair] == 0) != is_negative
        judge_passes = (final[is_pair] == 0) != is_negative

        passed += int(people_pass.sum())
        failed += int((~people_pass).sum())
        np.add.at(balance, votes.unit_of_item[column.rows[is_pair]], judge_passes.astype(np.intp) - people_pass)

    lenient = int((balance > 0).sum())
    strict = int((balance < 0).sum())
    return {
        "n_people_passed": passed,
        "n_people_failed": failed,
        "one_way_p": mcnemar(lenient, strict).p_value,
    }


def _bias(statistics: Statistics, judge: int | None = None) -> BiasResult:
    """The bias of the panel or a judge, with an interval that holds its level where few units differ."""
    comparison = statistics.scores.comparisons[0 if judge is None else 1 + judge]
    if statistics.bootstrap.method != "smoothed" or statistics.intervals is None:
        return comparison.pairs.bias
    return bias_with_interval(comparison.pairs.bias, statistics.intervals[*comparison.scope, "bias"].ci)


def _bootstrap(statistics: Statistics, intervals: Intervals) -> BootstrapResults | None:
    if intervals is None:
        return None
    return BootstrapResults(
        accuracy_ci=interval_ends(intervals["criterion_accuracy"].ci),
        kappa_ci=interval_ends(intervals["mean_kappa"].ci),
        rmse_ci=interval_ends(intervals["score_rmse"].ci),
        n_bootstrap=statistics.bootstrap.replicates,
        confidence_level=statistics.bootstrap.confidence,
        seed=statistics.bootstrap.seed,
        method=statistics.bootstrap.method,
        unit=statistics.votes.unit,
    )


def _limits(statistics: Statistics) -> ScoreLimits | None:
    """The limits of agreement, with an interval of each; None without a pair of scores."""
    n = len(statistics.scores.comparisons[0].pairs.predicted)
    if not n:
        return None
    mean, lower, upper = (statistics.value("all", f"score_limits.{name}") for name in ("mean", "lower", "upper"))
    ends: list[ConfidenceInterval | None] = [None, None]
    deviation = statistics.value("all", "bias.std_bias")
    if statistics.bootstrap.method == "smoothed" and statistics.intervals is not None:
        ends = [statistics.intervals["all", f"score_limits.{name}"].ci for name in ("lower", "upper")]
    elif deviation and lower is not None and upper is not None:
        confidence = statistics.bootstrap.confidence
        z = normal_quantile(confidence)
        half = z * deviation * float(np.sqrt(1 / n + z * z / (2 * (n - 1))))
        ends = [ConfidenceInterval(end - half, end + half, confidence, "normal") for end in (lower, upper)]
    return ScoreLimits(mean=mean, lower=lower, upper=upper, lower_ci=ends[0], upper_ci=ends[1], n_samples=n)


def _icc(statistics: Statistics) -> ScoreICC | None:
    """The intraclass correlations of the judges' scores; None below two judges."""
    if len(statistics.votes.judges) < 2:
        return None
    complete = ~np.isnan(statistics.votes.judge_scores).any(axis=1)
    forms = {name: statistics.value("all", f"score_icc.{name}") for name in ICC_FORMS}
    return ScoreICC(n_items=int(complete.sum()), n_judges=len(statistics.votes.judges), **forms)


def _coverage(statistics: Statistics, column: int, n_covered: int) -> CoverageStats | None:
    """Which pairs of a column are covered; -1 is all columns. None where abstentions are not left out."""
    if not statistics.options.modes.exclude_all:
        return None
    layout = statistics.layout
    chosen = slice(None) if column < 0 else slice(column, column + 1)
    cells = layout.coverage_cells(statistics.counts)[chosen, :, 0]
    errored = layout.n_errored[chosen].sum()
    n_total = int(cells[:, 0].sum() + errored)
    intervals = statistics.scope_intervals("coverage", column)
    if column >= 0 or len(statistics.votes.columns) == 1:
        intervals = _with_exact_shares(intervals, dict.fromkeys(COVERAGE_RATES, n_total), statistics)
    return CoverageStats(
        n_total=n_total,
        n_covered=n_covered,
        n_errored=int(cells[:, 3].sum() + errored),
        n_disputed=int(cells[:, 4].sum()),
        intervals=intervals,
        **statistics.numbers_of(CoverageStats, "coverage", column),
    )


def _abstentions(statistics: Statistics, *, binary: bool) -> AbstentionStats:
    """Agreement about abstaining on binary criteria, or on all others."""
    table = statistics.layout.abstention_tables(statistics.counts, binary=binary)[0]
    (both, missed), (extra, _) = table.astype(int).tolist()
    kappa = statistics.value("abstaining", binary, "kappa")
    return AbstentionStats(
        count_true=both + missed,
        count_pred=both + extra,
        kappa=kappa,
        kappa_interpretation=None if kappa is None else interpret_kappa(kappa),
        false_positive=extra,
        false_negative=missed,
        intervals=statistics.scope_intervals("abstaining", binary),
    )


def _numeric(statistics: Statistics) -> tuple[dict[int, NumericCriterionMetrics], BootstrapResult | None]:
    """The numeric criteria by index, and the mean of their concordances."""
    pairs = {
        index: int(table.sum())
        for group in statistics.layout.groups
        for index, table in zip(group.tables.columns, group.tables.of(statistics.counts)[0, :, 0], strict=True)
        if group.kind == "numeric"
    }
    return numeric_metrics(
        statistics.votes,
        statistics.levels,
        {index: _coverage(statistics, index, n) for index, n in pairs.items()},
        statistics.bootstrap,
    )


def _criteria(statistics: Statistics, numeric: Mapping[int, NumericCriterionMetrics]) -> tuple[AnyCriterion, ...]:
    """Every criterion, in order."""
    criteria: dict[int, AnyCriterion] = dict(numeric)
    for group in statistics.layout.groups:
        if group.kind == "numeric":
            continue
        for index, table in zip(group.tables.columns, group.tables.of(statistics.counts)[0, :, 0], strict=True):
            criteria[index] = _criterion(statistics, statistics.votes.columns[index], table)
    return tuple(criteria[index] for index in sorted(criteria))


def _criterion(statistics: Statistics, column: CriterionColumn, table: Floats) -> AnyCriterion:
    """A criterion that is answered by one of several classes."""
    kind = column.criterion.kind
    n = int(table.sum())
    met = tables.positive_against_rest(table) if kind == "binary" else None
    model = _MODELS[kind]
    fields = statistics.numbers_of(model, "criterion", column.index)
    kappa = fields["weighted_kappa" if kind == "ordinal" else "kappa"]

    fields |= {
        "name": column.name,
        "index": column.index,
        "n_samples": n,
        "kappa_interpretation": interpret_kappa(kappa),
        "is_degenerate": n > 0 and kappa is None,
        "coverage_stats": _coverage(statistics, column.index, n),
        "intervals": _with_exact_shares(
            statistics.scope_intervals("criterion", column.index), _share_counts(n, met), statistics
        ),
    }

    if met is None:
        fields |= _options(statistics, column, table)
    else:
        fields |= {
            "support_true": int(met[0].sum()),
            "support_pred": int(met[:, 0].sum()),
            "confusion_matrix": _confusion_matrix(met, _VERDICTS[:2]) if met.any() else None,
        }

    if kind == "ordinal":
        is_pair = (column.truth_classes >= 0) & (column.final_classes >= 0)
        truth = column.truth_classes[is_pair]
        final = column.final_classes[is_pair]
        for name, correlate in (("spearman", spearman), ("kendall", kendall)):
            fields[name] = correlation_result(correlate(truth, final, confidence=statistics.bootstrap.confidence))
    return model(**fields)


def _options(statistics: Statistics, column: CriterionColumn, table: Floats) -> dict[str, Any]:
    """The options and the confusion matrix in the author's order."""
    classes = column.classes
    order = list(classes.author_order)
    n_true = table.sum(axis=1).astype(int).tolist()
    n_judged = table.sum(axis=0).astype(int).tolist()
    per_option = tuple(
        OptionMetrics(
            label=classes.labels[option],
            index=classes.codes[option],
            **statistics.numbers_of(OptionMetrics, "option", column.index, option),
            support_true=n_true[option],
            support_pred=n_judged[option],
            intervals=_with_exact_shares(
                statistics.scope_intervals("option", column.index, option),
                {"precision": n_judged[option], "recall": n_true[option]},
                statistics,
            ),
        )
        for option in order
    )
    matrix = _confusion_matrix(table[np.ix_(order, order)], tuple(classes.labels[option] for option in order))
    return {"n_options": classes.size, "per_option": per_option, "confusion_matrix": matrix}


def _confusion_matrix(table: Floats, labels: tuple[str, ...]) -> ConfusionMatrix:
    """A table of counts as whole numbers."""
    return ConfusionMatrix(matrix=tuple(tuple(int(cell) for cell in row) for row in table), labels=labels)


def _judges(statistics: Statistics) -> dict[str, JudgeMetrics]:
    """Every judge against the truth, by id."""
    metrics = {}
    for judge, name in enumerate(statistics.votes.judges):
        comparison = statistics.scores.comparisons[1 + judge]
        n_pairs = sum(int(group.tables.of(statistics.counts)[1 + judge].sum()) for group in statistics.layout.groups)
        raw, failed, abstained = _raw_votes(statistics.votes, judge)
        numbers = statistics.numbers_of(JudgeMetrics, "judge", judge)
        correlations = comparison.pairs.correlations
        numbers |= {f"score_{kind}": correlation_result(correlations[kind]) for kind in CORRELATIONS}

        metrics[name] = JudgeMetrics(
            judge_id=name,
            confusion_matrix=_confusion_matrix(raw, _VERDICTS) if raw.any() else None,
            bias=_bias(statistics, judge),
            n_samples=n_pairs,
            n_failed=failed,
            n_abstained=abstained,
            intervals=_overall_intervals(statistics, judge),
            **numbers,
        )
    return metrics


def _raw_votes(votes: LabelledVotes, judge: int) -> tuple[Floats, int, int]:
    """A judge's binary votes against the truth, and how many of its votes on labelled cells failed or abstained."""
    raw = np.zeros(9)
    failed = abstained = 0
    for column in votes.columns:
        labelled = column.truth >= 0
        truth = column.truth[labelled]
        codes = column.votes[labelled, judge]
        failed += int(is_failed(codes).sum())
        abstained += sum(int((codes == code).sum()) for code in column.criterion.abstentions)
        if column.criterion.kind == "binary":
            is_verdict = codes >= 0
            raw += np.bincount(truth[is_verdict].astype(np.intp) * 3 + codes[is_verdict], minlength=9)
    return raw.reshape(3, 3), failed, abstained


def _pooled(statistics: Statistics) -> tuple[PooledScaleMetrics, ...]:
    """All pairs of each kind of criterion that occurs."""
    pooled = []
    for kind in KINDS:
        groups: list[CriterionGroup] = [group for group in statistics.layout.groups if group.kind == kind]
        if not groups:
            continue
        final = [group.tables.of(statistics.counts)[0, :, 0] for group in groups]
        matrix = None
        if kind == "binary":
            met = tables.positive_against_rest(final[0].sum(axis=0))
            matrix = _confusion_matrix(met, _VERDICTS[:2]) if met.any() else None
        columns = [column for column in statistics.votes.columns if column.criterion.kind == kind]
        pooled.append(
            PooledScaleMetrics(
                scale_type=kind,
                n_points=sum(int(table.sum()) for table in final),
                confusion_matrix=matrix,
                n_abstain=sum(map(_abstaining_pairs, columns)),
                intervals=statistics.scope_intervals("pooled", kind),
                **statistics.numbers_of(PooledScaleMetrics, "pooled", kind),
            )
        )
    return tuple(pooled)


def _abstaining_pairs(column: CriterionColumn) -> int:
    """How many labelled and judged pairs have an abstention on either side."""
    codes = list(column.criterion.abstentions)
    judged = (column.truth >= 0) & (column.final >= 0)
    return int((judged & (np.isin(column.truth, codes) | np.isin(column.final, codes))).sum())


def _slices(slices: SliceEstimates, statistics: Statistics) -> tuple[SliceMetrics, ...]:
    sizes, n_pairs, n_scores = (counts.tolist() for counts in (slices.tags.sizes, slices.n_pairs, slices.n_scores))
    return tuple(
        SliceMetrics(
            tag=tag,
            n_items=sizes[number],
            n_samples=n_pairs[number],
            n_scores=n_scores[number],
            intervals=statistics.scope_intervals("slice", number) if sizes[number] >= FEWEST_ITEMS else None,
            **statistics.numbers_of(SliceMetrics, "slice", number),
        )
        for number, tag in enumerate(slices.tags.names)
    )


def _undefined_warnings(statistics: Statistics) -> Iterator[str]:
    intervals = statistics.intervals or {}
    fewest = (1 - _UNDEFINED_SHARE) * statistics.bootstrap.replicates
    scarce = [key for key, result in intervals.items() if result.estimate is not None and result.n_bootstrap < fewest]
    if scarce:
        names = list_names(sorted({str(key[-1]) for key in scarce}), limit=5)
        share = f"{len(scarce)} of {len(intervals)} numbers are undefined in more than 5 % of the replicates"
        yield f"undefined-replicates: {share}, among them {names}; their intervals rest on the others."


def _data_warnings(statistics: Statistics, criteria: Sequence[AnyCriterion]) -> Iterator[str]:
    votes = statistics.votes
    panel = statistics.scores.comparisons[0].pairs
    if not len(panel.predicted) and any(column.criterion.is_scored for column in votes.columns):
        yield "no-scores: no item has both a predicted and a true score; score-level numbers are undefined."
    elif len(panel.predicted) and len(set(panel.true.tolist())) <= 2:
        yield "score-collapse: true scores take at most 2 values; correlations of scores say nothing."

    degenerate = [visible(criterion.name, limit=60) for criterion in criteria if criterion.is_degenerate]
    if degenerate:
        yield f"degenerate: one class only, so no kappa, on {list_names(degenerate, limit=10)}."

    bias = panel.bias
    if bias.std_bias == 0 and bias.mean_bias is not None and abs(bias.mean_bias) > 1e-12 * panel.scale.largest:
        yield "constant-shift: every predicted score differs from the true one by the same amount."

    for judge, name in enumerate(votes.judges):
        if not any((column.votes[:, judge] >= 0).any() for column in votes.columns):
            yield f"judge-silent: `{visible(name, limit=60)}` has no usable vote."
    if len(votes.ids) == 1:
        yield "one-item: everything rests on one item, and resampling it says nothing of others."
