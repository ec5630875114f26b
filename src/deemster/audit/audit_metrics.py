"""Audits the metrics of a suite: plants defects in good outputs, and counts which of them the metrics notice."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from deemster import __version__
from deemster.audit.gate_error_rates import decide_columns
from deemster.audit.mutation_score import (
    DefectAudit,
    LetThrough,
    MetricAudit,
    PlantedMarks,
    audit_defect,
    check_references,
    total_kill_rate,
    try_gate,
)
from deemster.audit.planted_outputs import good_outputs, mark_outputs
from deemster.comparison.run_source import build_columns, card_identities
from deemster.datasets.planted_defects import DEFECTS, GoodOutput, OutputPool, PlantedDefect, plant_defect
from deemster.engine.watchers import Watchers
from deemster.errors import ConfigurationError, did_you_mean
from deemster.evaluation.evaluation_identity import scoring_identity
from deemster.evaluation.gate_baseline import comparison_settings
from deemster.evaluation.preflight_check import check_samples
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.formats.schema_validation import OpenShare, Seed, decode_struct
from deemster.gate.gate_decision import GateCheck, conclude
from deemster.gate.read_gate import EVERY, BaselineRules, GateRules
from deemster.judges.metric_catalog import metric_spellings
from deemster.records import Execution, Output
from deemster.results.mark_table import MarkTable
from deemster.results.run_columns import ComparedRun, RunColumns
from deemster.results.run_summary import cohort_label
from deemster.runs.run_identity import plain_json

DRAWS = 50


class DefectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an audit of metrics plants, and how it counts.

    Attributes:
        defects: The kinds of defects; all where none is named.
        max_samples: The most samples whose outputs are taken, drawn at random; None for all.
        draws: How often outputs are drawn for each share that the gate is tried with; 0 tries no gate.
        confidence: The level of the intervals.
        seed: The seed of what is planted and drawn.

    Raises:
        ConfigurationError: One is outside of its limits.
    """

    defects: Sequence[str] = ()
    max_samples: Annotated[int, Meta(ge=1)] | None = None
    draws: Annotated[int, Meta(ge=0)] = DRAWS
    confidence: OpenShare = 0.95
    seed: Seed = 0

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)


NO_SETTINGS = DefectSettings()


async def audit_metrics(
    job: Evaluation,
    outputs: Mapping[str, Output],
    *,
    source: str,
    settings: DefectSettings = NO_SETTINGS,
    watchers: Watchers,
) -> MetricAudit:
    """Plant defects in good outputs, mark them, and count which defects each metric and the gate notice.

    Args:
        job: The suite's metrics, gate and models, as `audit_job` gives them.
        outputs: The good outputs by sample id.
        source: Where they come from, as the audit says it.
        settings: What is planted.
        watchers: Who watches it, and may stop it.

    Raises:
        InputError: No sample has a good output, a kind of defect is unknown, or a sample is malformed for a metric.
    """
    kinds = [_defect(name) for name in settings.defects or DEFECTS]
    goods = good_outputs(job.plan.dataset, outputs, most=settings.max_samples, seed=settings.seed)
    whole = len(job.plan.dataset)
    if len(goods) < whole:
        job = _with_samples(job, {good.sample.id for good in goods})
    planted = _plant(kinds, goods, seed=settings.seed)
    every = [*goods, *(GoodOutput(goods[each.place].sample, each.output) for each in planted)]
    marked = await mark_outputs(job, every, watchers=watchers)
    reference, marks = _tables(job, kinds, planted, marked)
    gate = _GateTrial(job, reference)
    defects = {name: _audit_defect(reference, own, gate, settings) for name, own in marks.items()}
    ids = [good.sample.id for good in goods]
    failing, faults = check_references(reference, ids, confidence=settings.confidence)
    return MetricAudit(
        tool_version=__version__,
        suite=job.suite or job.plan.dataset.name,
        dataset=job.plan.dataset.name,
        source=source,
        samples=len(goods),
        left_out=whole - len(goods),
        confidence=settings.confidence,
        seed=settings.seed,
        metrics=tuple(metric.name for metric in job.plan.metrics),
        references=failing,
        faults=faults,
        score=total_kill_rate(reference, marks.values(), confidence=settings.confidence),
        defects=defects,
        gate_checks=gate.checks,
        gate_unmet=gate.unmet,
        stopped=watchers.stop.reason,
    )


class PlantedOutput(NamedTuple):
    """An output with a defect, and the place of its sample."""

    place: int
    defect: PlantedDefect
    output: Output


def _plant(kinds: Sequence[PlantedDefect], goods: Sequence[GoodOutput], *, seed: int) -> list[PlantedOutput]:
    pool = OutputPool(goods)
    return [
        PlantedOutput(place, kind, output)
        for kind in kinds
        for place, good in enumerate(goods)
        if (output := plant_defect(kind, good, pool, seed=seed)) is not None
    ]


def _tables(
    job: Evaluation,
    kinds: Sequence[PlantedDefect],
    planted: Sequence[PlantedOutput],
    marked: Sequence[Execution | None],
) -> tuple[MarkTable, dict[str, PlantedMarks]]:
    """The marks of the good outputs, and of those with each kind of defect, at the places of their samples."""
    empty = check_samples(job).table
    goods, rest = marked[: empty.samples], marked[empty.samples :]
    found = {}
    for kind in kinds:
        rows = {each.place: own for each, own in zip(planted, rest, strict=True) if each.defect is kind}
        found[kind.name] = PlantedMarks(kind.what, _table(empty, rows.items()), _mask(empty.samples, rows))
    return _table(empty, enumerate(goods)), found


def _audit_defect(reference: MarkTable, marks: PlantedMarks, gate: _GateTrial, settings: DefectSettings) -> DefectAudit:
    """What the metrics and the gate say of one kind of defect."""
    confidence, seed = settings.confidence, settings.seed
    tried: Sequence[LetThrough] = ()
    # Where no output passes any metric without the defect, a gate says nothing about it.
    passes = reference.passed[:, 0, :].any(axis=1)
    if settings.draws and gate.checks and (marks.planted & passes).any():
        tried = try_gate(
            gate.reference, marks, gate.lets_through, draws=settings.draws, confidence=confidence, seed=seed
        )
    return audit_defect(reference, marks, confidence=confidence, gate=tried)


def _defect(name: str) -> PlantedDefect:
    if name not in DEFECTS:
        raise ConfigurationError(f"No defect is called `{name}`. {did_you_mean(name, DEFECTS)}")
    return DEFECTS[name]


def _with_samples(job: Evaluation, ids: Collection[str]) -> Evaluation:
    return job._replace(plan=job.plan._replace(dataset=job.plan.dataset.keep(ids, selection="with an output")))


def _table(empty: MarkTable, rows: Iterable[tuple[int, Execution | None]]) -> MarkTable:
    """The marks of executions, at the places of their samples."""
    table = empty.empty_copy()
    table.add([msgspec.structs.replace(each, position=place) for place, each in rows if each is not None])
    return table


def _mask(size: int, places: Iterable[int]) -> NDArray[np.bool_]:
    mask = np.zeros(size, dtype=np.bool_)
    mask[list(places)] = True
    return mask


class _GateTrial:
    """Holds marks to the gate of a suite; where it compares with a baseline, that is the good outputs.

    Args:
        job: The suite.
        reference: The marks of the good outputs.

    Attributes:
        reference: The marks of the good outputs, with the cohorts that the gate looks at.
        checks: The names of the checks that the good outputs pass.
        unmet: The names of the others, which are left out.
    """

    def __init__(self, job: Evaluation, reference: MarkTable) -> None:
        self._gate = job.gate or GateRules()
        self._names = metric_spellings(job.plan.metrics)
        rules = self._gate.baseline or BaselineRules()
        # Only a decision is wanted: no p-value of a difference is shown.
        self._settings = msgspec.structs.replace(comparison_settings(rules, seed=job.seed), tests=False)
        self.reference = copy.copy(reference)
        cohorts = {*rules.cohorts, *(rule.cohort for rule in self._gate.rules)}
        if EVERY not in cohorts:
            self.reference.keep_cohorts(lambda tag: cohort_label(tag) in cohorts)
        self._baseline = _reference_columns(job, self.reference, cluster=rules.cluster)
        checks = self._all(self.reference)
        self.checks = tuple(check.name for check in checks if check.status == "pass")
        self.unmet = tuple(check.name for check in checks if check.status in ("fail", "inconclusive"))

    def lets_through(self, marks: MarkTable) -> bool:
        """Whether the gate passes marks."""
        tried = [check for check in self._all(marks) if check.name in self.checks]
        return conclude(tried, mode=self._gate.decision).decision == "pass"

    def _all(self, marks: MarkTable) -> Sequence[GateCheck]:
        after = self._baseline._replace(marks=marks)
        decision, _ = decide_columns(self._gate, self._baseline, after, metrics=self._names, settings=self._settings)
        return decision.checks


def _reference_columns(job: Evaluation, marks: MarkTable, *, cluster: str | None) -> RunColumns:
    """The good outputs as a run that others are compared with."""
    run = ComparedRun(
        id="good outputs",
        dataset=job.plan.dataset.name,
        fingerprint=None,
        started_at="",
        status="complete",
        samples=marks.samples,
        repetitions=1,
        macro_f1=None,
        pass_rate=None,
    )
    identities = card_identities(job.plan.cards, plain_json(scoring_identity(job)))
    columns = build_columns(run, marks, job.plan.dataset, identities=identities, cluster=cluster)
    return columns._replace(metadata=None)
