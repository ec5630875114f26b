"""The settings of a report (gate, allowance, aggregator), and how a store keeps them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from deemster.datasets import SelectedPart
from deemster.datasets.attack_facts import AttackedSamples
from deemster.datasets.human_labels import SuiteCalibration
from deemster.errors import ConfigurationError, StoreError
from deemster.gate import NONE_UNSCORED, Allowance, GateRules
from deemster.gate.baseline_gate import PinnedBaseline
from deemster.models.budget import BudgetEntry
from deemster.records import Metric, Usage
from deemster.results import (
    Aggregator,
    AtLeast,
    Critical,
    GeometricAggregator,
    MetricsAggregator,
    MinAggregator,
    WeightedMetricsAggregator,
)
from deemster.results.difference_origin import AnchorScores
from deemster.results.metric_aggregators import SubsetAggregator, aggregator_name
from deemster.results.repetition_precision import DELTA
from deemster.store import RunFacts

if TYPE_CHECKING:
    from deemster.engine.run_plan import Plan

_PLAIN: dict[str, type[MetricsAggregator]] = {
    "and": MetricsAggregator,
    "min": MinAggregator,
    "geometric": GeometricAggregator,
}
_SECRET = re.compile(r"auth|cookie|credential|key|passw|secret|token", re.IGNORECASE)
_NAMES = re.compile(r".*_env|max_.*|.*_tokens", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY = re.compile(r"(?i)([?&][^=&#\s]*(?:auth|code|credential|key|passw|pwd|secret|sig|token)[^=&#\s]*=)([^&#\s]*)")
_HIDDEN = "(not kept)"
_ANCHORS = "anchors"
_ATTACKS = "attacks"
_BASELINE = "baseline"
_CLUSTER = "cluster"
# What every run with an end keeps of its settings.
_SETTINGS = ("gate", "allowance", "delta", "aggregator", "varied")
# The fact of a run that holds the rubrics of its metrics by name; runs of earlier versions have none.
RUBRICS_FACT = "rubrics"


class ReportSettings(NamedTuple):
    """How a report is made of the marks of a run.

    Attributes:
        gate: The rules it is held to; None for no gate.
        allowance: How many marks may stay unscored before the run counts as incomplete.
        delta: The difference that repeated runs should be able to show.
        aggregator: Makes one result of each execution's marks; None where the run has none.
        varied: What differs between repetitions.
        missing_aggregator: The name of an aggregator that only the program that ran this has; None where there is none.
        calibration: Labels of people that its numbers are corrected by; None where the suite names none.
    """

    gate: GateRules | None
    allowance: Allowance
    delta: float
    aggregator: Aggregator | None
    varied: Literal["target", "scoring"] | None
    missing_aggregator: str | None = None
    calibration: SuiteCalibration | None = None


# A recording may have records that a metric cannot mark.
RECORDING_SETTINGS = ReportSettings(None, Allowance(1.0, share=True), DELTA, None, None)


def settings_facts(settings: ReportSettings, plan: Plan, *, origin: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a store keeps of the settings, as plain JSON, so that the report can be built again.

    Args:
        settings: How the report is made.
        plan: What is run.
        origin: The suite file and what it says, as plain data; None where there is none.
    """
    return {
        "schema_version": plan.dataset.schema_version,
        "suite": None if origin is None else _suite_facts(origin),
        "gate": msgspec.to_builtins(settings.gate),
        "allowance": msgspec.to_builtins(settings.allowance),
        "delta": settings.delta,
        "aggregator": None if settings.aggregator is None else _aggregator_facts(settings.aggregator),
        "varied": settings.varied,
        **({} if plan.dataset.part is None else {"part": msgspec.to_builtins(plan.dataset.part)}),
        **({} if plan.dataset.cluster is None else {_CLUSTER: plan.dataset.cluster}),
        **({} if settings.calibration is None else {"calibration": msgspec.to_builtins(settings.calibration)}),
        **rubric_facts(plan.metrics),
    }


class _EarlierReruns(msgspec.Struct, frozen=True):
    """What earlier versions kept with a run of its samples that were run again."""

    usage: tuple[Usage, ...] = ()


class RunFindings(NamedTuple):
    """What is found out about a run beside its outputs and marks. It belongs to the facts of the run.

    Attributes:
        attacks: Which of its samples are attacks; None where none is.
        baseline: The baseline that its gate compares with, and what the comparison found once the run has ended; None
            where it compares with none.
        anchors: How its anchors were judged; None where it has none.
        earlier_usage: What earlier versions spent beside the samples, to run those again that failed.
    """

    attacks: AttackedSamples | None = None
    baseline: PinnedBaseline | None = None
    anchors: AnchorScores | None = None
    earlier_usage: tuple[Usage, ...] = ()

    @property
    def usage(self) -> tuple[Usage, ...]:
        """What was used beside the samples."""
        return self.earlier_usage if self.anchors is None else (*self.earlier_usage, *self.anchors.usage)

    def facts(self) -> dict[str, Any]:
        """What a store keeps of them, as plain JSON."""
        findings = {_ATTACKS: self.attacks, _BASELINE: self.baseline, _ANCHORS: self.anchors}
        return {name: msgspec.to_builtins(finding) for name, finding in findings.items() if finding is not None}


def rubric_facts(metrics: Sequence[Metric], *, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a store keeps of the rubrics that metrics judge by, so that people can label their criteria.

    Args:
        metrics: The metrics.
        known: What the store keeps already; rubrics of the same metrics are replaced.
    """
    rubrics = {metric.name: metric.loaded_rubric.to_dict() for metric in metrics if hasattr(metric, "loaded_rubric")}
    return {RUBRICS_FACT: {**(known or {}).get(RUBRICS_FACT, {}), **rubrics}} if rubrics else {}


class ReportFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a store keeps of a run, from which its report is built again; what it does not keep is as in a new run.

    Attributes:
        schema_version: The format of its dataset.
        gate: The rules it is held to.
        allowance: How many marks may stay unscored.
        delta: The difference that repeated runs should be able to show.
        aggregator: Makes one result of each execution's marks.
        varied: What differs between repetitions.
        calibration: Labels of people that its numbers are corrected by.
        part: The part of its dataset that it took; None for the whole.
        cluster: The metadata key whose equal values belong together; None where samples stand alone.
        attacks: Which of its samples are attacks.
        baseline: The baseline that it is compared with, and what the comparison found.
        anchors: How its anchors were judged.
        reruns: What an earlier version ran again.
        budget: What it was allowed to spend.
        stopped: Why it stopped early.
        mixed: What changed when it was resumed.
        until_decided: Whether an earlier version drew its samples at random, so as to stop once its margins were
            settled.
    """

    schema_version: str = ""
    gate: GateRules | None = None
    allowance: Allowance = NONE_UNSCORED
    delta: float = DELTA
    aggregator: dict[str, Any] | None = None
    varied: Literal["target", "scoring"] | None = None
    calibration: SuiteCalibration | None = None
    part: SelectedPart | None = None
    cluster: str | None = None
    attacks: AttackedSamples | None = None
    baseline: PinnedBaseline | None = None
    anchors: AnchorScores | None = None
    reruns: _EarlierReruns = _EarlierReruns()
    budget: BudgetEntry | None = None
    stopped: str | None = None
    mixed: tuple[str, ...] = ()
    until_decided: bool = False

    @property
    def findings(self) -> RunFindings:
        """What was found out about the run beside its outputs and marks."""
        return RunFindings(self.attacks, self.baseline, self.anchors, self.reruns.usage)


def report_facts(row: RunFacts) -> ReportFacts:
    """What is stored of a run, from which its report is built.

    Raises:
        StoreError: It is not what a run keeps.
    """
    try:
        return msgspec.convert(row.facts, ReportFacts)
    except msgspec.ValidationError as error:
        raise _unreadable(row, error) from None


def stored_settings(row: RunFacts) -> ReportSettings:
    """The report settings that are stored with a run.

    Raises:
        StoreError: They are not what `settings_facts` writes.
    """
    facts = report_facts(row)
    try:
        missing = [name for name in _SETTINGS if name not in row.facts]
        aggregator, missing_aggregator = _parse_aggregator(facts.aggregator)
    except (KeyError, TypeError, ValueError, ConfigurationError) as error:
        raise _unreadable(row, error) from None
    if missing:
        raise _unreadable(row, f"`{missing[0]}` is missing")
    return ReportSettings(
        facts.gate,
        facts.allowance,
        facts.delta,
        aggregator,
        facts.varied,
        missing_aggregator=missing_aggregator,
        calibration=facts.calibration,
    )


def _unreadable(row: RunFacts, why: object) -> StoreError:
    return StoreError(f"run `{row.id}`: The stored report settings cannot be read: {why}")


def without_secrets(value: Any, *, name: str = "") -> Any:
    """Plain data without values that look like keys or passwords; names of variables stay.

    >>> without_secrets({"headers": {"Authorization": "Bearer abc"}, "api_key_env": "KEY", "url": "http://u:p@h/"})
    {'headers': {'Authorization': '(not kept)'}, 'api_key_env': 'KEY', 'url': 'http://h/'}
    >>> without_secrets({"url": "http://h/ask?q={{input}}&token=abc&key=${KEY}"})
    {'url': 'http://h/ask?q={{input}}&token=(not kept)&key=${KEY}'}
    """
    if isinstance(value, Mapping):
        return {str(key): without_secrets(entry, name=str(key)) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_secrets(entry, name=name) for entry in value]
    if not isinstance(value, str):
        return value
    if _SECRET.search(name) and not _NAMES.fullmatch(name) and "${" not in value:
        return _HIDDEN
    return _QUERY.sub(lambda match: match[0] if "${" in match[2] else f"{match[1]}{_HIDDEN}", _USER.sub("", value))


def _suite_facts(origin: Mapping[str, Any]) -> dict[str, Any]:
    """A suite as it was written, without secrets in its models and its target."""
    document = dict(origin["document"])
    reaching = {key: without_secrets(document[key], name=key) for key in ("models", "target") if key in document}
    return {**origin, "document": document | reaching}


def _aggregator_facts(aggregator: Aggregator) -> dict[str, Any]:
    """A built-in aggregator as plain data; of a custom one only the name."""
    kind = type(aggregator)
    for name, plain in _PLAIN.items():
        if kind is plain:
            return {"kind": name}
    if kind is AtLeast and isinstance(aggregator, AtLeast):
        return {"kind": "at-least", "k": aggregator.k}
    if kind is Critical and isinstance(aggregator, Critical):
        return {"kind": "critical", "names": list(aggregator.names)}
    if kind is SubsetAggregator and isinstance(aggregator, SubsetAggregator):
        inner = _aggregator_facts(aggregator.aggregator)
        if inner["kind"] != "custom":
            return {"kind": "among", "of": inner, "names": list(aggregator.names)}
    if kind is WeightedMetricsAggregator and isinstance(aggregator, WeightedMetricsAggregator):
        mappings = aggregator.score_mapping
        if all(isinstance(mapping, Mapping) for mapping in mappings.values()):
            pairs = {name: [list(pair) for pair in mapping.items()] for name, mapping in mappings.items()}  # type: ignore[union-attr]
            return {"kind": "weighted", "weights": dict(aggregator.weights), "score_mapping": pairs}
    return {"kind": "custom", "name": aggregator_name(aggregator)}


def _parse_aggregator(stored: Mapping[str, Any] | None) -> tuple[Aggregator | None, str | None]:
    """The aggregator that was declared, or the name of one that cannot be made again."""
    if stored is None:
        return None, None
    kind = stored["kind"]
    if kind in _PLAIN:
        return _PLAIN[kind](), None
    if kind == "at-least":
        return AtLeast(stored["k"]), None
    if kind == "critical":
        return Critical(stored["names"]), None
    if kind == "among":
        inner, missing_aggregator = _parse_aggregator(stored["of"])
        return (None if inner is None else SubsetAggregator(inner, stored["names"])), missing_aggregator
    if kind == "weighted":
        mappings = {name: dict(pairs) for name, pairs in stored["score_mapping"].items()}
        return WeightedMetricsAggregator(stored["weights"], mappings), None
    return None, str(stored["name"])
