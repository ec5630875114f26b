"""Summaries of runs and gradings: statistics, cohorts, aggregators, usage and cost, and the gate."""

from deemster.results.aggregator_section import build_aggregator
from deemster.results.mark_table import MarkTable
from deemster.results.metric_aggregators import (
    AggregationResult,
    Aggregator,
    AtLeast,
    Critical,
    GeometricAggregator,
    MetricResult,
    MetricsAggregator,
    MinAggregator,
    aggregator_name,
)
from deemster.results.metric_summary import (
    CorrectedPassRate,
    CriterionSummary,
    HistogramBin,
    MetricSummary,
    RunMetricSummary,
)
from deemster.results.repetition_precision import Precision, RunPrecision
from deemster.results.run_summary import UNTAGGED, Aggregate, Cohort, RunSummary, Totals, cohort_label, summarize_run
from deemster.results.sample_summary import (
    DECIMALS,
    AggregateEntry,
    MetricSpread,
    SampleEntry,
    summarize_samples,
)
from deemster.results.usage_and_cost import Cost, Latency, ModelCost, RunUsage, UsageTotals
from deemster.results.weighted_aggregator import WeightedMetricsAggregator

__all__ = [
    "DECIMALS",
    "UNTAGGED",
    "Aggregate",
    "AggregateEntry",
    "AggregationResult",
    "Aggregator",
    "AtLeast",
    "Cohort",
    "CorrectedPassRate",
    "Cost",
    "CriterionSummary",
    "Critical",
    "GeometricAggregator",
    "HistogramBin",
    "Latency",
    "MarkTable",
    "MetricResult",
    "MetricSpread",
    "MetricSummary",
    "MetricsAggregator",
    "MinAggregator",
    "ModelCost",
    "Precision",
    "RunMetricSummary",
    "RunPrecision",
    "RunSummary",
    "RunUsage",
    "SampleEntry",
    "Totals",
    "UsageTotals",
    "WeightedMetricsAggregator",
    "aggregator_name",
    "build_aggregator",
    "cohort_label",
    "summarize_run",
    "summarize_samples",
]
