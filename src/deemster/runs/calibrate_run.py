"""Calibrates the judges of a run against labels of people: on the run's outputs, or on cases that are judged now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from deemster import __version__
from deemster.alignment.calibrate_judge import JudgedMetric, JudgedOutput, calibrate_judge
from deemster.alignment.calibration_result import Calibration, CalibrationCheck, MetricCalibration
from deemster.datasets.calibration_cases import CalibrationCases
from deemster.datasets.human_labels import (
    HumanLabel,
    JoinedLabels,
    join_labels,
    label_kind,
    labels_by_subject,
    read_verdict,
)
from deemster.errors import ConfigurationError, DatasetError, Issue, did_you_mean, list_names, plural
from deemster.models.clock import Clock
from deemster.records import Metric, Output
from deemster.records.marks import reaches
from deemster.records.output import output_digest
from deemster.report import Report
from deemster.report.report_entries import ExecutionEntry, ScoreEntry
from deemster.results import RunMetricSummary
from deemster.runs.build_report import report_identities
from deemster.runs.evaluate_dataset import run_job
from deemster.runs.judge_anchors import build_cases_job
from deemster.runs.metric_catalog import metric_spellings
from deemster.runs.model_access import ModelAccess, ModelLimits, read_model_access
from deemster.runs.progress import Progress
from deemster.runs.rubric_metric import shown_options
from deemster.runs.stop_request import Stop
from deemster.runs.suite import Suite
from deemster.runs.suite_job import suite_metrics
from deemster.store import Store


class CalibrationBounds(NamedTuple):
    """What a calibration is held to.

    Attributes:
        min_agreement: The least agreement with people; None for any.
        min_kappa: The least kappa; None for any.
        max_length_bias: The greatest correlation of length and score among outputs that people judge alike; None for
            any, and then only a warning.
    """

    min_agreement: float | None = None
    min_kappa: float | None = None
    max_length_bias: float | None = None


NO_BOUNDS = CalibrationBounds()


def calibrate_report(
    report: Report,
    labels: Sequence[HumanLabel],
    *,
    metrics: Sequence[str] = (),
    bounds: CalibrationBounds = NO_BOUNDS,
    is_cases: bool = False,
    target_models: Collection[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Calibration:
    """Compare the metrics of a run with what people say of its outputs.

    Args:
        report: The run.
        labels: The labels of people.
        metrics: The metrics to look at, and the one that labels are about which name none; all that have labels where
            none is named.
        bounds: What the calibration is held to.
        is_cases: Whether the run is of calibration cases, which stand for no run of their own.
        target_models: The models that the target used; None for what the report says of them.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.

    Raises:
        DatasetError: A label is about an unknown sample or metric, or is no label; all are listed.
        ConfigurationError: The run has no such metric.
    """
    subjects = _subjects(report)
    for name in metrics:
        if name not in subjects:
            raise ConfigurationError(f"The run has no metric `{name}`. {did_you_mean(name, subjects)}")
    wanted = [subjects[name] for name in metrics]
    default = wanted[0] if len(wanted) == 1 else report.metric_order[0] if len(report.metric_order) == 1 else None
    if is_cases and default is None:
        # The verdict on a case is about its output as a whole: every metric is held to it.
        labels = [label._replace(subject=name) for name in wanted or report.metric_order for label in labels]
    grouped = labels_by_subject(labels, subjects, default=default)
    outputs = _Outputs(report, target_models)
    outputs.check(labels)
    found = {
        name: calibrate_judge(_judged(outputs, name, own, is_cases=is_cases), confidence=confidence, seed=seed)
        for name, own in grouped.items()
        if not wanted or name in wanted
    }
    if not found:
        raise DatasetError(f"No label is about {list_names(metrics)}.")
    order = [*report.metric_order, *(name for name in found if name not in report.metric_order)]
    calibration = Calibration(
        tool_version=__version__,
        source=report.dataset.name if is_cases else report.run.id,
        dataset=report.dataset.name,
        confidence=confidence,
        seed=seed,
        metrics={name: found[name] for name in order if name in found},
    )
    return _with_checks(calibration, bounds)


async def judge_cases(
    cases: CalibrationCases,
    metrics: Sequence[Metric],
    *,
    access: ModelAccess,
    repetitions: int = 1,
    clock: Clock | None = None,
    stop: Stop | None = None,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Judge calibration cases by metrics, as a run that is not stored.

    Args:
        cases: The cases.
        metrics: The metrics.
        access: How they may ask models.
        repetitions: How often each case is judged.
        clock: The time; the machine's own unless given.
        stop: Asks to stop.
        warn: Gets each warning.
        progress: Gets the progress.

    Raises:
        InputError: A case is malformed for a metric, or a metric asks a model that is not there.
    """
    job = build_cases_job(cases, metrics, access, repetitions=repetitions)
    return await run_job(job, clock=clock, stop=stop, warn=warn, progress=progress)


def case_judges(suite: Suite, names: Sequence[str], limits: ModelLimits) -> tuple[tuple[Metric, ...], ModelAccess]:
    """The metrics of a suite that judge cases, and how they may ask models.

    Args:
        suite: The suite.
        names: The metrics to take, by name; all where none is named.
        limits: Cache and budget.

    Raises:
        ConfigurationError: The suite has no such metric, or something in it cannot be used.
    """
    metrics = suite_metrics(suite)
    known = metric_spellings(metrics)
    for name in names:
        if name not in known:
            raise ConfigurationError(f"The suite has no metric `{name}`. {did_you_mean(name, known.values())}")
    wanted = {known[name] for name in names}
    access = read_model_access(suite.models, limits, place=suite.document.where, folder=suite.folder)
    return tuple(metric for metric in metrics if not wanted or metric.name in wanted), access


def target_models(store: Store, run: str) -> set[str]:
    """The models that the target of a stored run says it used.

    Args:
        store: Where the run is stored.
        run: Its id.

    Raises:
        StoreError: It cannot be read.
    """
    answers = (execution.answer for execution in store.executions(run))
    return {answer.model for answer in answers if isinstance(answer, Output) and answer.model is not None}


def viewer_labels(store: Store, run: str, *, warn: Callable[[str], None]) -> list[HumanLabel]:
    """The labels that people gave a stored run in the viewer: those drawn at random, where there are some.

    Args:
        store: Where the run is stored.
        run: Its id.
        warn: Gets a warning where labels are left out, or were not drawn at random.

    Raises:
        StoreError: They cannot be read.
        DatasetError: There are none.
    """
    given = [label for label in store.labels(run) if label.verdict is not None]
    if not given:
        raise DatasetError(f"Nobody has labelled the run `{run}` in the viewer: `deemster view --label NAME`.")
    drawn = [label for label in given if label.order == "random"]
    if not drawn:
        warn("No label was drawn at random, so these numbers do not hold for the whole run.")
    elif len(drawn) < len(given):
        left = plural(len(given) - len(drawn), "label")
        warn(f"{left} of samples that were not drawn at random left out: corrected numbers need a random draw.")
    ids = [sample.id for sample in store.samples(run, content=False)]
    return [
        HumanLabel(
            ids[label.position],
            "/".join(part for part in (label.metric, label.criterion) if part) or None,
            label.author,
            read_verdict(label.verdict or ""),
            probability=label.probability,
            repetition=label.repetition,
        )
        for label in drawn or given
    ]


def _subjects(report: Report) -> dict[str, str]:
    """What labels may be about, by every name: metrics, and the criteria of metrics that have some."""
    found = {name: name for name in report.metric_order}
    short: dict[str, list[str]] = {}
    for name in report.metric_order:
        for criterion in report.metrics[name].criteria or {}:
            found[f"{name}/{criterion}"] = f"{name}/{criterion}"
            short.setdefault(criterion, []).append(f"{name}/{criterion}")
    # A criterion's own name will do where only one metric has it.
    return {criterion: names[0] for criterion, names in short.items() if len(names) == 1} | found


class _Outputs:
    """The executions of a run, found by sample and repetition."""

    def __init__(self, report: Report, target_models: Collection[str] | None) -> None:
        self.report, self.target_models = report, target_models
        self.tags = {sample.id: sample.tags for sample in report.samples}
        self.executions: dict[tuple[str, int], ExecutionEntry] = {
            (execution.id, execution.repetition): execution for execution in report.executions
        }

    def check(self, labels: Sequence[HumanLabel]) -> None:
        """Refuse labels of samples that the run does not have.

        Raises:
            DatasetError: There are some; all are listed.
        """
        unknown = {label.id: label for label in labels if label.id not in self.tags}
        if unknown:
            raise DatasetError(
                Issue(f"The run has no sample `{label.id}`. {did_you_mean(label.id, self.tags)}", label.where)
                for label in unknown.values()
            )


def _judged(outputs: _Outputs, name: str, labels: Sequence[HumanLabel], *, is_cases: bool) -> JudgedMetric:
    """A metric or criterion with its labelled outputs."""
    report = outputs.report
    kind = label_kind(labels)
    metric = max((one for one in report.metrics if name == one or name.startswith(f"{one}/")), key=len)
    criterion = None if metric == name else name[len(metric) + 1 :]
    figures = report.metrics[metric]
    found, disputed, unscored = [], [], 0
    for key, joined in join_labels(labels, kind).items():
        execution = outputs.executions.get(key)
        judged = None if execution is None else _mark(execution, metric, criterion, is_option=kind == "option")
        if judged is None or execution is None:
            unscored += 1
        elif joined.truth is None:
            disputed.append(joined.by_annotator)
        else:
            found.append(_judged_output(key[0], joined, judged, execution, outputs.tags[key[0]]))
    return JudgedMetric(
        name,
        kind,
        found,
        report_identities(report.metrics, report.run.models)[metric],
        threshold=figures.threshold if criterion is None else 0.5,
        higher_is_better=figures.higher_is_better or criterion is not None,
        unscored=unscored,
        disputed=disputed,
        **({} if criterion is not None else _run_columns(outputs, metric, is_cases=is_cases)),
        shown=[
            shown
            for execution in report.executions
            if isinstance(mark := execution.marks.get(metric), ScoreEntry)
            for shown in shown_options(mark.details, execution.output or execution.id, criterion=criterion)
        ],
        warnings=tuple(_doubts(report, figures, labels, outputs.target_models)),
    )


class _Judged(NamedTuple):
    """What a judge says of an output."""

    verdict: float | str
    score: float


def _mark(execution: ExecutionEntry, metric: str, criterion: str | None, *, is_option: bool) -> _Judged | None:
    """What a metric, or one criterion of it, says of an output; None where it says nothing."""
    mark = execution.marks.get(metric)
    if not isinstance(mark, ScoreEntry):
        return None
    if criterion is None:
        return _Judged(float(mark.success), mark.score)
    entry = mark.details.get("criteria", {}).get(criterion)
    value = None if entry is None else entry.get("value")
    if is_option:
        verdict = None if entry is None else entry.get("verdict")
        return None if verdict is None else _Judged(str(verdict), value if isinstance(value, (int, float)) else 0.0)
    if not isinstance(value, (int, float)):
        return None
    return _Judged(float(reaches(value, 0.5)), min(1.0, max(0.0, float(value))))


def _judged_output(
    name: str, joined: JoinedLabels, judged: _Judged, execution: ExecutionEntry, tags: tuple[str, ...]
) -> JudgedOutput:
    return JudgedOutput(
        name,
        joined.truth if joined.truth is not None else 0.0,
        joined.by_annotator,
        judged.verdict,
        judged.score,
        execution.output_chars,
        tags,
        joined.probability,
        joined.stratum,
    )


def _run_columns(outputs: _Outputs, metric: str, *, is_cases: bool) -> dict[str, Any]:
    """What a calibration looks at of all outputs of a run: verdicts, scores, orders and repeats."""
    passed: dict[str, list[bool]] = {}
    scores: dict[str, list[float]] = {}
    repeats: dict[tuple[str, int], list[bool]] = {}
    orders: list[str | None] = []
    for (name, _), execution in outputs.executions.items():
        mark = execution.marks.get(metric)
        if not isinstance(mark, ScoreEntry):
            continue
        passed.setdefault(name, []).append(mark.success)
        scores.setdefault(name, []).append(mark.score)
        if execution.output is not None:
            digest = output_digest(execution.output, execution.retrieved, execution.trajectory)
            repeats.setdefault((name, digest), []).append(mark.success)
        if "consistent" in mark.details and not mark.details.get("identical"):
            orders.append(None if mark.details["consistent"] else mark.details.get("favoured") or "both")
    repetitions = outputs.report.totals.repetitions
    whole = [name for name, own in passed.items() if len(own) == repetitions]
    return {
        "passed": None if is_cases else np.array([sum(passed[name]) for name in whole], dtype=np.int64),
        "scores": None if is_cases else np.array([sum(own) / len(own) for own in scores.values()]),
        "repetitions": repetitions,
        "orders": orders or None,
        "repeats": [cell for cell in repeats.values() if len(cell) > 1] if repetitions > 1 else (),
    }


def _doubts(
    report: Report, figures: RunMetricSummary, labels: Sequence[HumanLabel], target_models: Collection[str] | None
) -> Iterator[str]:
    """What is doubtful about a judge and its labels before anything is computed."""
    models = report.run.models or {}
    judges = {str(models[role].get("model")) for role in figures.roles if role in models and models[role].get("model")}
    own = judges & (_target_models(report) if target_models is None else set(target_models))
    if own:
        yield f"The judge is the model under test ({', '.join(sorted(own))}): models prefer their own answers."
    if figures.roles and any(label.probability is None for label in labels):
        yield "Labels without inclusion probability: the numbers hold if the samples were drawn at random."


def _target_models(report: Report) -> set[str]:
    """The models that the target used, as far as a report says: those with more calls than all judges made."""
    if report.cost is None:
        return set()
    return {model.model for model in report.cost.models if model.calls > report.usage.scoring.calls}


def _with_checks(calibration: Calibration, bounds: CalibrationBounds) -> Calibration:
    checks = [check for name, found in calibration.metrics.items() for check in _checks(name, found, bounds)]
    return msgspec.structs.replace(calibration, checks=tuple(checks))


def _checks(name: str, found: MetricCalibration, bounds: CalibrationBounds) -> Iterator[CalibrationCheck]:
    length = None if found.length_bias is None else found.length_bias.partial.value
    rules = (
        ("min_agreement", bounds.min_agreement, found.agreement.value, True),
        ("min_kappa", bounds.min_kappa, found.kappa.value, True),
        # A bias that cannot be measured is not there as far as anybody knows.
        ("max_length_bias", bounds.max_length_bias, abs(length or 0.0), False),
    )
    for rule, bound, value, upwards in rules:
        if bound is not None:
            holds = value is not None and reaches(value, bound, higher_is_better=upwards)
            because = "it is undefined" if value is None else f"the estimate {'keeps' if holds else 'misses'} the bound"
            yield CalibrationCheck(
                name=f"{name}.{rule}",
                observed=value,
                required=bound,
                status="pass" if holds else "fail",
                because=because,
            )
