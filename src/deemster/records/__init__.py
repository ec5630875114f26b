"""The nouns that travel between rooms. Immutable, and they refuse impossible values."""

from deemster.records.execution import Execution, Invocation, TargetFailure
from deemster.records.frozen import FrozenDict, freeze
from deemster.records.mark import CAUSES, Cause, Mark, MetricScore, Unscored
from deemster.records.output import Output
from deemster.records.protocols import Metric, MetricCard, Problem
from deemster.records.sample import Sample
from deemster.records.trajectory import ToolCall, Trajectory
from deemster.records.usage import Usage

__all__ = [
    "CAUSES",
    "Cause",
    "Execution",
    "FrozenDict",
    "Invocation",
    "Mark",
    "Metric",
    "MetricCard",
    "MetricScore",
    "Output",
    "Problem",
    "Sample",
    "TargetFailure",
    "ToolCall",
    "Trajectory",
    "Unscored",
    "Usage",
    "freeze",
]
