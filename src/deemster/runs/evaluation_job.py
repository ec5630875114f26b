"""Builds the job of an evaluation: everything it needs, resolved and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

from deemster.datasets import Dataset
from deemster.datasets.attack_facts import AttackedSamples
from deemster.datasets.human_labels import SuiteCalibration
from deemster.errors import ConfigurationError, Issue, did_you_mean, list_names, plural
from deemster.models.secret_redaction import NO_SECRETS
from deemster.records import Metric
from deemster.report.calibration_report import load_calibration
from deemster.results import NONE_UNSCORED, Aggregator, Allowance, Gate, build_aggregator, read_allowance, read_gate
from deemster.results.baseline_gate import PinnedBaseline
from deemster.results.corrected_rates import check_corrected_rules
from deemster.results.difference_origin import AnchorScores
from deemster.results.metric_aggregators import SubsetAggregator
from deemster.runs import metric_catalog as catalog
from deemster.runs.import_user_code import import_object
from deemster.runs.metric_catalog import metric_spellings, names_of_group, with_group
from deemster.runs.model_access import ModelAccess, ModelLimits, build_model_access, complete_model_access
from deemster.runs.run_plan import Plan, Target
from deemster.runs.suite import CONCURRENCY, DELTA, SEED
from deemster.targets.python_target import as_target
from deemster.targets.saved_outputs import SavedOutputs

# A run keeps a few bytes of each in memory.
MOST_EXECUTIONS = 100_000_000


class Job(NamedTuple):
    """A plan and the other settings of a run.

    Attributes:
        plan: What to run.
        gate: The rules it is held to; None for no gate.
        suite: The suite's name.
        seed: For everything that draws.
        delta: The difference that repeated runs should be able to show.
        strict: Whether something absent in a sample is an error.
        allowance: How many marks may stay unscored before the run counts as incomplete.
        redact_warnings: Whether warnings leave out what a sample says.
        access: How its metrics may ask models.
        aggregator: Makes one result of each execution's marks; None for none.
        origin: The suite file and what it says, as plain data; None where there is none.
        label: What the user calls the run.
        baseline: The baseline that the gate compares with, once it is found.
        confirm: How often samples that newly fail against the baseline are run again.
        calibration: Labels of people that its numbers are corrected by; None for none.
        anchors: How its anchors were judged, once they are; None where it has none.
        attacks: Which of its samples are attacks, once they were looked at; None where none is.
    """

    plan: Plan
    gate: Gate | None = None
    suite: str | None = None
    seed: int = SEED
    delta: float = DELTA
    strict: bool = False
    allowance: Allowance = NONE_UNSCORED
    redact_warnings: bool = False
    access: ModelAccess = ModelAccess()
    aggregator: Aggregator | None = None
    origin: Mapping[str, Any] | None = None
    label: str | None = None
    baseline: PinnedBaseline | None = None
    confirm: int = 0
    calibration: SuiteCalibration | None = None
    anchors: AnchorScores | None = None
    attacks: AttackedSamples | None = None


def with_secrets(job: Job) -> Job:
    """A job whose run writes none of the keys of its models."""
    own = getattr(job.plan.target, "secrets", NO_SECRETS)
    secrets = reduce(add, (role.secrets for role in job.access.roles.values()), own)
    return job._replace(plan=job.plan._replace(secrets=secrets))


def build_job(
    dataset: Dataset | Iterable[Any] | str | Path,
    *,
    target: Any = None,
    outputs: SavedOutputs | Mapping[str, Any] | str | Path | None = None,
    metrics: Sequence[Any] = (),
    group: str | None = None,
    repetitions: int | None = None,
    thresholds: Mapping[str, float] | None = None,
    gate: Mapping[str, Any] | None = None,
    concurrency: int = CONCURRENCY,
    seed: int = SEED,
    delta: float = DELTA,
    strict: bool = False,
    max_unscored: int | str = 0,
    models: Mapping[str, Any] | None = None,
    aggregator: Aggregator | str | Mapping[str, Any] | None = None,
    partial: bool = False,
    label: str | None = None,
    calibration: str | Path | None = None,
    **limits: Any,
) -> Job:
    """Resolve and check the settings of a run; see ``evaluate``. The limits are those of `ModelLimits`.

    Raises:
        InputError: Something given cannot be used.
    """
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta <= 1:
        raise ConfigurationError(f"`delta` lies in (0, 1], not {delta!r}.")
    if type(seed) is not int or seed < 0:
        raise ConfigurationError(f"`seed` is a whole number of at least 0, not {seed!r}.")
    allowed = ModelLimits(**limits)
    access = build_model_access(models, allowed)
    if group is not None:
        metrics, aggregator = with_group(group, metrics, aggregator)
    resolved = catalog.resolve_all(metrics)
    plan = build_plan(
        _dataset(dataset),
        target=_target(target, outputs, offline=allowed.offline),
        metrics=resolved,
        repetitions=repetitions,
        thresholds=thresholds or {},
        concurrency=concurrency,
        partial=partial,
    )
    rules = None if gate is None else read_gate(gate).with_cluster(plan.dataset.cluster)
    allowance = (rules.allowance if rules is not None else None) or read_allowance(max_unscored)
    return Job(
        plan,
        gate=rules,
        seed=seed,
        delta=delta,
        strict=strict,
        allowance=allowance,
        access=complete_model_access(access, plan.scorers),
        aggregator=None if aggregator is None else _aggregator(aggregator, resolved, group),
        label=label,
        calibration=load_suite_calibration(calibration, resolved, rules),
    )


def load_suite_calibration(
    path: str | Path | None, metrics: Sequence[Metric], gate: Gate | None
) -> SuiteCalibration | None:
    """The labels of a calibration file, by which the numbers of a run are corrected; None where none is named.

    Args:
        path: The file that `deemster calibrate --json` wrote.
        metrics: The metrics of the run.
        gate: The rules that may look at corrected numbers.

    Raises:
        ConfigurationError: It has no labels of any of them, or the gate needs some that it has not.
        ReportError: It is no calibration.
    """
    labels = None if path is None else _load_calibration(path, metrics)
    if gate is not None and gate.rules:
        check_corrected_rules(gate, () if labels is None else labels.metrics, metric_spellings(metrics))
    return labels


def _load_calibration(path: str | Path, metrics: Sequence[Metric]) -> SuiteCalibration:
    found = load_calibration(path)
    labels = {name: one.labels for name, one in found.metrics.items() if one.labels is not None}
    own = {metric.name: labels[metric.name] for metric in metrics if metric.name in labels}
    if not own:
        known = f"It has labels of {list_names(labels)}." if labels else "It has no labels that correct a number."
        raise ConfigurationError(Issue(f"The calibration has no labels of a metric of this run. {known}", str(path)))
    return SuiteCalibration(source=found.source, metrics=own)


def _dataset(given: Dataset | Iterable[Any] | str | Path) -> Dataset:
    if isinstance(given, Dataset):
        return given
    if isinstance(given, (str, Path)):
        return Dataset.load(given)
    if hasattr(given, "columns") and hasattr(given, "iloc"):
        return Dataset.from_dataframe(given)
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise ConfigurationError(
            f"A dataset is a Dataset, a path, a list of samples or a data frame, not {type(given).__name__}."
        )
    samples: Any = given
    return Dataset(samples, name="samples")


def build_plan(
    dataset: Dataset,
    *,
    target: Target,
    metrics: tuple[Metric, ...],
    repetitions: int | None,
    thresholds: Mapping[str, float],
    concurrency: int,
    partial: bool = False,
) -> Plan:
    """A plan whose parts fit each other.

    Args:
        dataset: The samples.
        target: What answers them.
        metrics: What marks the answers.
        repetitions: How often each sample is run; otherwise what the saved outputs or the dataset say, or once.
        thresholds: Pass marks by metric name or spec.
        concurrency: How many calls of the target may be under way at once.
        partial: Whether samples without a saved output are left out.

    Raises:
        InputError: Repetitions, thresholds or saved outputs do not fit.
    """
    if repetitions is not None and (type(repetitions) is not int or repetitions < 1):
        raise ConfigurationError(f"`repetitions` is a whole number of at least 1, not {repetitions!r}.")
    if type(concurrency) is not int or concurrency < 1:
        raise ConfigurationError(f"`concurrency` is a whole number of at least 1, not {concurrency!r}.")
    times = repetitions or dataset.repetitions or 1
    if partial:
        dataset = _with_outputs(dataset, target)
    if isinstance(target, SavedOutputs):
        if repetitions is None and target.repetitions > 1:
            times = dataset.repetitions or target.repetitions
        target.check(dataset, times, whole=dataset.whole)
    if len(dataset) * times > MOST_EXECUTIONS:
        sized = f"{plural(len(dataset), 'sample')} x {plural(times, 'repetition')}"
        raise ConfigurationError(f"A run has at most {MOST_EXECUTIONS:,} executions, not {sized}.")
    return Plan(dataset, target, metrics, times, _resolve_thresholds(thresholds, metrics), concurrency)


def _with_outputs(dataset: Dataset, target: Target) -> Dataset:
    """The samples that have a saved output."""
    if not isinstance(target, SavedOutputs):
        raise ConfigurationError("`partial` leaves out samples without a saved output, and this run has a live target.")
    missing = frozenset(target.missing(dataset))
    if not missing:
        return dataset
    return dataset.keep({sample.id for sample in dataset} - missing, selection="--partial")


def group_aggregator(
    make: Callable[[Mapping[str, str]], Aggregator], group: str, metrics: Mapping[str, str]
) -> Aggregator | None:
    """The aggregator of a group, which looks at the group's own metrics; None where none of them is in the run.

    Args:
        make: Makes it for metrics by their spellings.
        group: The group's name.
        metrics: The run's metrics, by every spelling.

    Raises:
        ConfigurationError: The aggregator does not fit.
    """
    names = names_of_group(group)
    own = {spelling: name for spelling, name in metrics.items() if name in names}
    if not own:
        return None
    aggregator = make(own)
    if len(own) == len(metrics):
        return aggregator
    return SubsetAggregator(aggregator, [name for name in names if name in own])


def _aggregator(given: Any, metrics: Sequence[Metric], group: str | None) -> Aggregator | None:
    spelt = metric_spellings(metrics)
    load = partial(import_object, called="The aggregator")
    if group is None:
        return build_aggregator(given, metrics=spelt, load=load)
    return group_aggregator(lambda own: build_aggregator(given, metrics=own, load=load), group, spelt)


def _resolve_thresholds(given: Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    names = metric_spellings(metrics) if given else {}
    issues = []
    resolved = {}
    for name, value in given.items():
        if name not in names:
            known = did_you_mean(name, dict.fromkeys(names.values()))
            issues.append(Issue(f"A threshold is given for `{name}`, which is no metric of this run. {known}"))
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            issues.append(Issue(f"The threshold of `{name}` is a number between 0 and 1, not {value!r}."))
        else:
            resolved[names[name]] = float(value)
    if issues:
        raise ConfigurationError(issues)
    return resolved


def _target(given: Any, outputs: Any, *, offline: bool) -> Target:
    if (given is None) == (outputs is None):
        raise ConfigurationError("Give either `target`, a function, or `outputs`, what it has said already.")
    if given is not None:
        target: Target = as_target(given)
        if offline and not getattr(target, "is_local", True):
            raise ConfigurationError("`offline` asks nothing over the network, and the target is an address elsewhere.")
        return target
    if isinstance(outputs, SavedOutputs):
        return outputs
    return SavedOutputs.load(outputs) if isinstance(outputs, (str, Path)) else SavedOutputs(outputs)
