"""Marks in, numbers out."""

from deemster.summary.figures import Bin, Corrected, Figures, MetricFigures
from deemster.summary.gate import Check, Decision, decide, unknown_names
from deemster.summary.interval import Interval
from deemster.summary.overall import UNTAGGED, Aggregate, Cohort, Summary, Totals, summarize
from deemster.summary.precision import Precision, RunPrecision
from deemster.summary.rules import NONE_UNSCORED, Allowance, Gate, read_allowance, read_gate, with_allowance
from deemster.summary.samples import DECIMALS, MetricSpread, SampleFigures, sample_figures
from deemster.summary.spending import Cost, Latency, ModelCost, RunUsage, UsageTotals
from deemster.summary.tally import Tally

__all__ = [
    "DECIMALS",
    "NONE_UNSCORED",
    "UNTAGGED",
    "Aggregate",
    "Allowance",
    "Bin",
    "Check",
    "Cohort",
    "Corrected",
    "Cost",
    "Decision",
    "Figures",
    "Gate",
    "Interval",
    "Latency",
    "MetricFigures",
    "MetricSpread",
    "ModelCost",
    "Precision",
    "RunPrecision",
    "RunUsage",
    "SampleFigures",
    "Summary",
    "Tally",
    "Totals",
    "UsageTotals",
    "decide",
    "read_allowance",
    "read_gate",
    "sample_figures",
    "summarize",
    "unknown_names",
    "with_allowance",
]
