"""The records that travel between rooms: immutable, and they refuse impossible values."""

from deemster.records.execution import Cut, Execution, Invocation, TargetFailure
from deemster.records.frozen_json import FrozenDict, freeze
from deemster.records.marks import CAUSES, NOT_APPLICABLE, Cause, Mark, MetricScore, NotApplicable, Unscored
from deemster.records.model_requests import (
    Answer,
    Ask,
    Embed,
    Exchange,
    Message,
    NoAnswer,
    Reply,
    Request,
    Script,
    Scripts,
    Token,
    Vectors,
)
from deemster.records.output import Output
from deemster.records.sample import Sample
from deemster.records.sample_facts import SampleContent, SampleFacts, SampleLabels
from deemster.records.scorer_protocols import Metric, MetricCard, Scorer, Where
from deemster.records.trajectory import ToolCall, Trajectory
from deemster.records.usage import Call, Usage

__all__ = [
    "CAUSES",
    "NOT_APPLICABLE",
    "Answer",
    "Ask",
    "Call",
    "Cause",
    "Cut",
    "Embed",
    "Exchange",
    "Execution",
    "FrozenDict",
    "Invocation",
    "Mark",
    "Message",
    "Metric",
    "MetricCard",
    "MetricScore",
    "NoAnswer",
    "NotApplicable",
    "Output",
    "Reply",
    "Request",
    "Sample",
    "SampleContent",
    "SampleFacts",
    "SampleLabels",
    "Scorer",
    "Script",
    "Scripts",
    "TargetFailure",
    "Token",
    "ToolCall",
    "Trajectory",
    "Unscored",
    "Usage",
    "Vectors",
    "Where",
    "freeze",
]
