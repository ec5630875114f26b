"""The audits for Python code: each function does what the command `deemster audit` of its name does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from deemster.audit.audit_dataset import HealthSettings, audit_dataset, find_dataset
from deemster.audit.audit_gate import audit_gate
from deemster.audit.audit_judge import BiasSettings, audit_judge
from deemster.audit.audit_metrics import DefectSettings, audit_metrics
from deemster.audit.dataset_health import DatasetAudit
from deemster.audit.gate_error_rates import GateAudit, TrialSettings
from deemster.audit.judge_bias import JudgeAudit
from deemster.audit.mutation_score import MetricAudit
from deemster.audit.planted_outputs import AuditedOutputs, load_audit
from deemster.engine.model_access import NO_LIMITS, ModelCalls
from deemster.engine.run_sync import run_sync, warner
from deemster.engine.watchers import Watchers
from deemster.errors.parameter_checks import checks_parameters
from deemster.evaluation.suite import load_suite
from deemster.store.open_runs import open_runs

_EXPECTED_OUTPUTS = AuditedOutputs()
_PROBING, _PLANTING, _TRYING, _LOOKING = BiasSettings(), DefectSettings(), TrialSettings(), HealthSettings()


@checks_parameters
def judge(
    role: str = "judge",
    *,
    suite: str | Path = "suite.yml",
    metrics: Sequence[str] = (),
    outputs: AuditedOutputs = _EXPECTED_OUTPUTS,
    settings: BiasSettings = _PROBING,
    calls: ModelCalls = NO_LIMITS,
) -> JudgeAudit:
    """Ask a judge about pairs of answers that differ in one thing only, and flag what it is biased by.

    Args:
        role: The role of the judge in the suite's `models`.
        suite: The suite's file.
        metrics: The metrics to use; all that ask the role where none is named.
        outputs: Which outputs to begin with; the expected ones where not given.
        settings: What is asked, and how it is counted.
        calls: Cache, budget and network of the models.

    Raises:
        InputError: The suite cannot be used, no metric asks the role, no sample has an answer, or a probe is unknown.
        StoreError: The run is not there, or cannot be read.
    """
    job, found, source = load_audit(suite, outputs, metrics=metrics, limits=calls)
    return run_sync(audit_judge(job, role, found, source=source, settings=settings, watchers=Watchers(warner())))


@checks_parameters
def metrics(
    suite: str | Path,
    *,
    metrics: Sequence[str] = (),
    outputs: AuditedOutputs = _EXPECTED_OUTPUTS,
    settings: DefectSettings = _PLANTING,
    calls: ModelCalls = NO_LIMITS,
) -> MetricAudit:
    """Plant defects in good outputs, and count which of them the metrics and the gate of a suite notice.

    Args:
        suite: The suite's file.
        metrics: The metrics to use; all of the suite where none is named.
        outputs: Which outputs to begin with; the expected ones where not given.
        settings: What is planted, and how it is counted.
        calls: Cache, budget and network of the models.

    Raises:
        InputError: The suite cannot be used, no sample has a good output, or a kind of defect is unknown.
        StoreError: The run is not there, or cannot be read.
    """
    job, found, source = load_audit(suite, outputs, metrics=metrics, limits=calls)
    return run_sync(audit_metrics(job, found, source=source, settings=settings, watchers=Watchers(warner())))


def gate(
    suite: str | Path,
    *,
    runs: Sequence[str] = (),
    settings: TrialSettings = _TRYING,
    store: str | Path | None = None,
) -> GateAudit:
    """Tell how often the gate of a suite errs: false alarms, missed drops, the margin it certifies.

    Args:
        suite: The suite's file.
        runs: The stored runs that the noise is measured on; the newest of the suite by one target where not given.
        settings: How the gate is tried, and the noise where it is stated.
        store: Where the runs are stored; `.deemster/runs.db` where not given.

    Raises:
        InputError: The suite has no gate, or nothing says how much runs differ.
        StoreError: A run is not there, or cannot be read.
    """
    loaded = load_suite(suite, calls_target=False)
    with ExitStack() as opened:
        needs_store = settings.pass_rate is None or runs
        source, names = opened.enter_context(open_runs(store, runs)) if needs_store else (None, [])
        return audit_gate(loaded, source, names=names, settings=settings)


def dataset(
    dataset_or_run: str | Path,
    *,
    runs: Sequence[str] = (),
    settings: HealthSettings = _LOOKING,
    store: str | Path | None = None,
) -> DatasetAudit:
    """Find copies, contradictions, leaks and flaky samples of a dataset, and a part of it that will do.

    Args:
        dataset_or_run: The dataset's file, or a stored run.
        runs: The stored runs to look at; the newest of the dataset where not given.
        settings: How it is audited.
        store: Where the runs are stored; `.deemster/runs.db` where not given.

    Raises:
        InputError: The dataset cannot be read.
        StoreError: A run is not there, or cannot be read.
    """
    with ExitStack() as opened:
        found, source, names = find_dataset(dataset_or_run, store, opened, names=runs)
        return audit_dataset(found, source, names=names, settings=settings)
