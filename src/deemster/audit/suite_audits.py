"""The audits for Python code: each function does what the command `deemster audit` of its name does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

from deemster.errors import ConfigurationError
from deemster.report.dataset_health import DatasetAudit
from deemster.report.gate_error_rates import GateAudit, TrialSettings
from deemster.report.judge_bias import JudgeAudit
from deemster.report.mutation_score import MetricAudit
from deemster.runs.audit_dataset import HealthSettings, audit_dataset, find_dataset
from deemster.runs.audit_gate import StatedVariance, audit_gate
from deemster.runs.audit_judge import SAMPLES, BiasSettings, audit_judge
from deemster.runs.audit_metrics import DefectSettings, audit_metrics
from deemster.runs.model_access import ModelLimits
from deemster.runs.planted_outputs import AuditedOutputs, load_audit
from deemster.runs.run_sync import run_sync, warner
from deemster.runs.suite import load_suite
from deemster.store import open_store


def judge(
    role: str = "judge",
    *,
    suite: str | Path = "suite.yml",
    run: str | None = None,
    outputs: str | Path | None = None,
    metrics: Sequence[str] = (),
    probes: Sequence[str] = (),
    max_samples: int = SAMPLES,
    confidence: float = 0.95,
    seed: int = 0,
    store: str | Path | None = None,
    cache: str | Path | None = None,
    budget_usd: Decimal | float | None = None,
    budget_tokens: int | None = None,
    offline: bool = False,
) -> JudgeAudit:
    """Ask a judge about pairs of answers that differ in one thing only, and flag what it is biased by.

    Args:
        role: The role of the judge in the suite's `models`.
        suite: The suite's file.
        run: Begin with the outputs of this stored run, not with the expected outputs.
        outputs: Begin with the outputs of this file.
        metrics: The metrics to use; all that ask the role where none is named.
        probes: The probes to use; all where none is named.
        max_samples: The most samples that pairs are made from, drawn at random.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
        store: Where the run is stored; `.deemster/runs.db` where not given.
        cache: The file of cached answers.
        budget_usd: The most that the models may cost, in US dollars.
        budget_tokens: The most tokens that the models may use.
        offline: Whether nothing may be asked over the network.

    Raises:
        InputError: The suite cannot be used, no metric asks the role, no sample has an answer, or a probe is unknown.
        StoreError: The run is not there, or cannot be read.
    """
    _check_least(1, max_samples=max_samples)
    limits = ModelLimits(cache, budget_usd, budget_tokens, offline)
    job, found, source = load_audit(suite, AuditedOutputs(run, outputs, store), metrics=metrics, limits=limits)
    settings = BiasSettings(probes, max_samples, confidence, seed)
    warn = warner()
    return run_sync(audit_judge(job, role, found, source=source, settings=settings, warn=warn))


def metrics(
    suite: str | Path,
    *,
    run: str | None = None,
    outputs: str | Path | None = None,
    metrics: Sequence[str] = (),
    defects: Sequence[str] = (),
    max_samples: int | None = None,
    draws: int = 50,
    confidence: float = 0.95,
    seed: int = 0,
    store: str | Path | None = None,
    cache: str | Path | None = None,
    budget_usd: Decimal | float | None = None,
    budget_tokens: int | None = None,
    offline: bool = False,
) -> MetricAudit:
    """Plant defects in good outputs, and count which of them the metrics and the gate of a suite notice.

    Args:
        suite: The suite's file.
        run: Begin with the outputs of this stored run, not with the expected outputs.
        outputs: Begin with the outputs of this file.
        metrics: The metrics to use; all of the suite where none is named.
        defects: The kinds of defects to plant; all where none is named.
        max_samples: The most samples that defects are planted in, drawn at random; all where not given.
        draws: How often the gate is tried for each share of outputs with a defect; 0 tries no gate.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
        store: Where the run is stored; `.deemster/runs.db` where not given.
        cache: The file of cached answers.
        budget_usd: The most that the models may cost, in US dollars.
        budget_tokens: The most tokens that the models may use.
        offline: Whether nothing may be asked over the network.

    Raises:
        InputError: The suite cannot be used, no sample has a good output, or a kind of defect is unknown.
        StoreError: The run is not there, or cannot be read.
    """
    limits = ModelLimits(cache, budget_usd, budget_tokens, offline)
    job, found, source = load_audit(suite, AuditedOutputs(run, outputs, store), metrics=metrics, limits=limits)
    settings = DefectSettings(defects=defects, max_samples=max_samples, draws=draws, confidence=confidence, seed=seed)
    warn = warner()
    return run_sync(audit_metrics(job, found, source=source, settings=settings, warn=warn))


def gate(
    suite: str | Path,
    *,
    runs: Sequence[str] = (),
    flip_rate: float | None = None,
    sd: float | None = None,
    pass_rate: float | None = None,
    cohort: str | None = None,
    draws: int = 100,
    confidence: float = 0.95,
    seed: int = 0,
    store: str | Path | None = None,
) -> GateAudit:
    """Tell how often the gate of a suite errs: false alarms, missed drops, the margin it certifies.

    Args:
        suite: The suite's file.
        runs: The stored runs that the noise is measured on; the newest of the suite by one target where not given.
        flip_rate: The share of samples that flip from run to run, where it is stated.
        sd: Instead, the spread of differences of scores.
        pass_rate: The share of samples that pass, where no run is stored.
        cohort: The cohort that drops by itself; the smallest of at least five samples where not given.
        draws: How many comparisons are simulated for each number.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
        store: Where the runs are stored; `.deemster/runs.db` where not given.

    Raises:
        InputError: The suite has no gate, or nothing says how much runs differ.
        StoreError: A run is not there, or cannot be read.
    """
    _check_least(1, draws=draws)
    loaded = load_suite(suite, calls_target=False)
    stated = StatedVariance(flip_rate, sd, pass_rate)
    stated.check()
    settings = TrialSettings(draws=draws, cohort=cohort, confidence=confidence, seed=seed)
    with ExitStack() as opened:
        source = opened.enter_context(open_store(store, create=False)) if pass_rate is None or runs else None
        return audit_gate(loaded, source, names=runs, stated=stated, settings=settings)


def dataset(
    dataset_or_run: str | Path,
    *,
    runs: Sequence[str] = (),
    near: float = 0.95,
    margin: float | None = None,
    draws: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    store: str | Path | None = None,
) -> DatasetAudit:
    """Find copies, contradictions, leaks and flaky samples of a dataset, and a part of it that will do.

    Args:
        dataset_or_run: The dataset's file, or a stored run.
        runs: The stored runs to look at; the newest of the dataset where not given.
        near: The similarity from which two inputs are near copies.
        margin: The drop that would still be acceptable; that of the newest run's gate, or 0.05, where not given.
        draws: How many regressions are planted to find the part that will do; 0 looks for none.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
        store: Where the runs are stored; `.deemster/runs.db` where not given.

    Raises:
        InputError: The dataset cannot be read.
        StoreError: A run is not there, or cannot be read.
    """
    _check_least(0, draws=draws)
    settings = HealthSettings(near=near, margin=margin, draws=draws, confidence=confidence, seed=seed)
    with ExitStack() as opened:
        found, source = find_dataset(dataset_or_run, store, opened, needs_store=bool(runs))
        return audit_dataset(found, source, names=runs, settings=settings)


def _check_least(least: int, **numbers: int) -> None:
    for name, number in numbers.items():
        if number < least:
            raise ConfigurationError(f"`{name}` is at least {least}, not {number}.")
