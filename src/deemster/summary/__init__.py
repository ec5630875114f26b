"""Marks in, numbers out."""

from deemster.summary.aggregators import (
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
from deemster.summary.declared import aggregator_of, read_aggregator
from deemster.summary.figures import Bin, Corrected, CriterionFigures, Figures, MetricFigures
from deemster.summary.gate import Check, Decision, decide, unknown_names
from deemster.summary.interval import Interval
from deemster.summary.overall import UNTAGGED, Aggregate, Cohort, Summary, Totals, summarize
from deemster.summary.precision import Precision, RunPrecision
from deemster.summary.rules import NONE_UNSCORED, Allowance, Gate, read_allowance, read_gate, with_allowance
from deemster.summary.samples import DECIMALS, MetricSpread, SampleFigures, sample_figures
from deemster.summary.spending import Cost, Latency, ModelCost, RunUsage, UsageTotals
from deemster.summary.tally import Tally
from deemster.summary.weighted import WeightedMetricsAggregator

__all__ = [
    "DECIMALS",
    "NONE_UNSCORED",
    "UNTAGGED",
    "Aggregate",
    "AggregationResult",
    "Aggregator",
    "Allowance",
    "AtLeast",
    "Bin",
    "Check",
    "Cohort",
    "Corrected",
    "Cost",
    "CriterionFigures",
    "Critical",
    "Decision",
    "Figures",
    "Gate",
    "GeometricAggregator",
    "Interval",
    "Latency",
    "MetricFigures",
    "MetricResult",
    "MetricSpread",
    "MetricsAggregator",
    "MinAggregator",
    "ModelCost",
    "Precision",
    "RunPrecision",
    "RunUsage",
    "SampleFigures",
    "Summary",
    "Tally",
    "Totals",
    "UsageTotals",
    "WeightedMetricsAggregator",
    "aggregator_name",
    "aggregator_of",
    "decide",
    "read_aggregator",
    "read_allowance",
    "read_gate",
    "sample_figures",
    "summarize",
    "unknown_names",
    "with_allowance",
]
