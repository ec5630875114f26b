"""Marks in, numbers out."""

from deemster.results.aggregator_section import aggregator_of, read_aggregator
from deemster.results.gate_decision import Check, Decision, decide, unknown_names
from deemster.results.gate_rules import NONE_UNSCORED, Allowance, Gate, read_allowance, read_gate, with_allowance
from deemster.results.mark_columns import Tally
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
from deemster.results.metric_figures import Bin, Corrected, CriterionFigures, Figures, Interval, MetricFigures
from deemster.results.repetition_precision import Precision, RunPrecision
from deemster.results.run_summary import UNTAGGED, Aggregate, Cohort, Summary, Totals, summarize
from deemster.results.sample_figures import DECIMALS, MetricSpread, SampleFigures, sample_figures
from deemster.results.usage_totals import Cost, Latency, ModelCost, RunUsage, UsageTotals
from deemster.results.weighted_aggregator import WeightedMetricsAggregator

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
