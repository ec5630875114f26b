"""The nouns that travel between rooms. Immutable, and they refuse impossible values."""

from deemster.records.execution import Cut, Execution, Invocation, TargetFailure
from deemster.records.frozen_json import FrozenDict, freeze
from deemster.records.marks import CAUSES, Cause, Mark, MetricScore, Unscored
from deemster.records.model_requests import (
    Answer,
    Ask,
    Embed,
    Message,
    Reply,
    Request,
    Scorer,
    Script,
    Scripts,
    Silence,
    Token,
    Vectors,
)
from deemster.records.output import Output
from deemster.records.sample import Sample
from deemster.records.scorer_protocols import Metric, MetricCard, Problem
from deemster.records.trajectory import ToolCall, Trajectory
from deemster.records.usage import Call, Usage

__all__ = [
    "CAUSES",
    "Answer",
    "Ask",
    "Call",
    "Cause",
    "Cut",
    "Embed",
    "Execution",
    "FrozenDict",
    "Invocation",
    "Mark",
    "Message",
    "Metric",
    "MetricCard",
    "MetricScore",
    "Output",
    "Problem",
    "Reply",
    "Request",
    "Sample",
    "Scorer",
    "Script",
    "Scripts",
    "Silence",
    "TargetFailure",
    "Token",
    "ToolCall",
    "Trajectory",
    "Unscored",
    "Usage",
    "Vectors",
    "freeze",
]
