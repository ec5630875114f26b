"""Calibrates the judges of a run against labels of people: on the run's outputs, or on cases that are judged now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from deemster import __version__
from deemster.agreement.calibrate_judge import calibrate_judge
from deemster.agreement.calibration_result import Calibration, CalibrationCheck, MetricCalibration
from deemster.calibration._judged_outputs import NO_BACKGROUND, RunBackground, RunOutputs, judged_metric
from deemster.calibration.people_labels import label_tasks
from deemster.comparison import load_report
from deemster.datasets.calibration_cases import CalibrationCases, load_calibration_cases
from deemster.datasets.human_labels import (
    HumanLabel,
    labels_by_subject,
)
from deemster.engine.model_access import NO_LIMITS, ModelAccess, ModelCalls
from deemster.engine.run_sync import run_sync, warner
from deemster.engine.watchers import Watchers
from deemster.errors import ConfigurationError, DatasetError, did_you_mean, list_names
from deemster.errors.parameter_checks import checks_parameters
from deemster.evaluation.check_file import find_kind
from deemster.evaluation.judge_anchors import build_cases_job
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.evaluation.suite import Suite, load_suite
from deemster.evaluation.suite_parts import suite_metrics, suite_models
from deemster.formats.schema_validation import OpenShare, Seed, Share, decode_struct
from deemster.judges.metric_catalog import metric_spellings
from deemster.records import Metric, Output
from deemster.records.marks import reaches
from deemster.report import Report
from deemster.report.report_settings import report_facts
from deemster.report.stored_report import stored_report
from deemster.runs.run_labels import read_run_labels
from deemster.store import RunRow, Store
from deemster.store.open_runs import is_run_file, open_runs


class CalibrationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is calibrated, how, and what it is held to.

    Attributes:
        metrics: The metrics to look at, and the one that labels are about which name none; all that have labels where
            none is named.
        min_agreement: The least agreement with people; None for any.
        min_kappa: The least kappa; None for any.
        max_length_bias: The greatest correlation of length and score among outputs that people judge alike; None for
            any, and then only a warning.
        repetitions: How often each case is judged, where cases are judged now.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.

    Raises:
        ConfigurationError: One is outside of its limits.
    """

    metrics: Sequence[str] = ()
    min_agreement: Share | None = None
    min_kappa: Annotated[float, Meta(ge=-1, le=1)] | None = None
    max_length_bias: Share | None = None
    repetitions: Annotated[int, Meta(ge=1)] = 1
    confidence: OpenShare = 0.95
    seed: Seed = 0

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)


USUAL_CALIBRATION: Final = CalibrationSettings()


def calibrate_report(
    report: Report,
    labels: Sequence[HumanLabel],
    settings: CalibrationSettings,
    *,
    is_cases: bool = False,
    background: RunBackground = NO_BACKGROUND,
) -> Calibration:
    """Compare the metrics of a run with what people say of its outputs.

    Args:
        report: The run.
        labels: The labels of people.
        settings: What is calibrated, and how.
        is_cases: Whether the run is of calibration cases, which stand for no run of their own.
        background: What is known of the run beside.

    Raises:
        DatasetError: A label is about an unknown sample or metric, or is no label; all are listed.
        ConfigurationError: The run has no such metric.
    """
    outputs = RunOutputs(report, background)
    subjects = outputs.subjects()
    for name in settings.metrics:
        if name not in subjects:
            raise ConfigurationError(f"The run has no metric `{name}`. {did_you_mean(name, subjects)}")

    wanted = [subjects[name] for name in settings.metrics]
    default = next((names[0] for names in (wanted, report.metric_order) if len(names) == 1), None)
    if is_cases and default is None:
        # The verdict on a case is about its output as a whole: every metric is held to it.
        labels = [label._replace(subject=name) for name in wanted or report.metric_order for label in labels]

    labels_of = labels_by_subject(labels, subjects, default=default)
    outputs.check(labels)
    calibrated = {
        name: calibrate_judge(
            judged_metric(outputs, name, metric_labels, is_cases=is_cases),
            confidence=settings.confidence,
            seed=settings.seed,
        )
        for name, metric_labels in labels_of.items()
        if not wanted or name in wanted
    }
    if not calibrated:
        raise DatasetError(f"No label is about {list_names(settings.metrics)}.")

    order = [*report.metric_order, *(name for name in calibrated if name not in report.metric_order)]
    calibration = Calibration(
        tool_version=__version__,
        source=report.dataset.name if is_cases else report.run.id,
        dataset=report.dataset.name,
        confidence=settings.confidence,
        seed=settings.seed,
        metrics={name: calibrated[name] for name in order if name in calibrated},
    )
    return _with_checks(calibration, settings)


@checks_parameters
def calibrate(
    run: Report | str | Path,
    labels: str | Path | None = None,
    *,
    suite: str | Path | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    store: str | Path | None = None,
    calls: ModelCalls = NO_LIMITS,
    settings: CalibrationSettings = USUAL_CALIBRATION,
) -> Calibration:
    """Compare the judges of a run with people, and correct its numbers.

    Args:
        run: A report, the file of one, a stored run by its id, label or `latest`; or a file of cases, outputs with
            verdicts of people (`deemster.calibration.v1`), which the metrics of `suite` judge now.
        labels: The sheet of people's labels of the run's outputs, or `viewer`; cases have their own.
        suite: With cases, the file of the suite whose metrics and models judge them.
        columns: Which column of the sheet holds what, where its name does not say it.
        store: The store of a run that is given by name; `.deemster/runs.db` where not given.
        calls: With cases, cache, budget and network of the models.
        settings: Which metrics are looked at, how, and what they are held to.

    Raises:
        InputError: The labels, the cases or the suite cannot be used; every issue is given with its place.
        ReportError: The report cannot be read.
        StoreError: The run is not there, or cannot be read.
    """
    warn = warner()
    if isinstance(run, Report) or not is_cases_file(run):
        return calibrate_labelled(run, labels, settings, suite=suite, columns=columns, store=store, warn=warn)
    work = calibrate_cases(run, labels, settings, suite=suite, limits=calls, watchers=Watchers(warn))
    calibration: Calibration = run_sync(work)
    return calibration


def is_cases_file(source: str | Path) -> bool:
    """Whether something is a file of cases: it says so, or has cases.

    Args:
        source: A file, or the name of a stored run.

    Raises:
        InputError: The file cannot be read.
    """
    path = Path(source)
    can_be = path.suffix.lower() in (".yml", ".yaml", ".json") and path.is_file()
    return can_be and find_kind(str(path)) == "calibration"


def calibrate_labelled(
    run: Report | str | Path,
    labels: str | Path | None,
    settings: CalibrationSettings,
    *,
    suite: str | Path | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    store: str | Path | None = None,
    warn: Callable[[str], None],
) -> Calibration:
    """Compare the judges of a run with the labels of people on its outputs.

    Args:
        run: A report, the file of one, a run file, or a stored run.
        labels: The sheet, or `viewer`.
        settings: What is calibrated, and how.
        suite: None: a run has its metrics.
        columns: Which column of the sheet holds what, where its name does not say it.
        store: The store of a run that is given by name; None for `.deemster/runs.db`.
        warn: Gets each warning.

    Raises:
        InputError: The labels cannot be used; every issue is given with its place.
        ReportError: The report cannot be read.
        StoreError: The run is not there, or cannot be read.
    """
    if labels is None:
        raise ConfigurationError("Name the labels of people: `--labels FILE`, or `--labels viewer`.")
    if suite is not None:
        raise ConfigurationError("`--suite` is for cases; a run has its metrics.")
    if settings.repetitions != 1:
        raise ConfigurationError("`repetitions` are for cases; a run has its own.")
    if isinstance(run, Report) or (Path(run).is_file() and not is_run_file(run)):
        human_labels = read_run_labels(labels, None, columns=columns, warn=warn)
        return calibrate_report(run if isinstance(run, Report) else load_report(run), human_labels, settings)

    with open_runs(store, [str(run)]) as (opened, (name,)):
        row = opened.run(name, kind="run")
        human_labels = read_run_labels(labels, (opened, row.id), columns=columns, warn=warn)
        report = stored_report(opened, row.id, warn=warn)
        return calibrate_report(report, human_labels, settings, background=_background(opened, row))


async def calibrate_cases(
    file: str | Path,
    labels: str | Path | None,
    settings: CalibrationSettings,
    *,
    suite: str | Path | None,
    limits: ModelCalls,
    watchers: Watchers,
) -> Calibration:
    """Judge cases by the metrics of a suite, and compare its judges with people.

    Args:
        file: The cases.
        labels: None: cases have their own.
        settings: What is calibrated, and how.
        suite: The suite's file.
        limits: Cache and budget.
        watchers: Who watches it, and may stop it.

    Raises:
        InputError: The cases or the suite cannot be used; every issue is given with its place.
    """
    if labels is not None:
        raise ConfigurationError("Cases hold the labels of people; leave out `--labels`.")
    if suite is None:
        raise ConfigurationError("Name the suite whose metrics judge the cases: `--suite FILE`.")

    cases = load_calibration_cases(file)
    chosen, access = case_judges(load_suite(suite, calls_target=False, must_run=False), settings.metrics, limits)
    report = await judge_cases(cases, chosen, access=access, repetitions=settings.repetitions, watchers=watchers)
    every_metric = msgspec.structs.replace(settings, metrics=())
    return calibrate_report(report, cases.labels, every_metric, is_cases=True)


async def judge_cases(
    cases: CalibrationCases,
    metrics: Sequence[Metric],
    *,
    access: ModelAccess,
    repetitions: int = 1,
    watchers: Watchers,
) -> Report:
    """Judge calibration cases by metrics, as a run that is not stored.

    Args:
        cases: The cases.
        metrics: The metrics.
        access: How they may ask models.
        repetitions: How often each case is judged.
        watchers: Who watches it, and may stop it.

    Raises:
        InputError: A case is malformed for a metric, or a metric asks a model that is not there.
    """
    job = build_cases_job(cases, metrics, access, repetitions=repetitions)
    return await run_evaluation(job, stop=watchers.stop, warn=watchers.warn, progress=watchers.progress)


def case_judges(suite: Suite, names: Sequence[str], limits: ModelCalls) -> tuple[tuple[Metric, ...], ModelAccess]:
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
    return tuple(metric for metric in metrics if not wanted or metric.name in wanted), suite_models(suite, limits)


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


def _background(store: Store, row: RunRow) -> RunBackground:
    options = {
        task.key: [option.label for option in task.definition.options]
        for task in label_tasks(store, row)
        if task.definition is not None
    }
    clusters: dict[str, str] = {}
    if (key := report_facts(row).cluster) is not None:
        samples = store.samples(row.id, content=False)
        clusters = {sample.id: str((sample.metadata or {}).get(key)) for sample in samples}
    return RunBackground(target_models(store, row.id), options, clusters)


def _with_checks(calibration: Calibration, settings: CalibrationSettings) -> Calibration:
    checks = [check for name, metric in calibration.metrics.items() for check in _checks(name, metric, settings)]
    return msgspec.structs.replace(calibration, checks=tuple(checks))


def _checks(name: str, metric: MetricCalibration, settings: CalibrationSettings) -> Iterator[CalibrationCheck]:
    length = None if metric.length_bias is None else metric.length_bias.partial.value
    rules = (
        ("min_agreement", settings.min_agreement, metric.agreement.value, True),
        ("min_kappa", settings.min_kappa, metric.kappa.value, True),
        ("max_length_bias", settings.max_length_bias, None if length is None else abs(length), False),
    )
    for rule, bound, value, upwards in rules:
        if bound is None:
            continue
        status: Literal["pass", "fail", "skipped"]
        if metric.sampling == "chosen":
            status, because = "fail", "the labelled outputs were not drawn at random"
        elif value is None:
            status, because = "fail" if upwards else "skipped", "it is undefined"
        else:
            status = "pass" if reaches(value, bound, higher_is_better=upwards) else "fail"
            because = f"the estimate {'keeps' if status == 'pass' else 'misses'} the bound"
        yield CalibrationCheck(name=f"{name}.{rule}", observed=value, required=bound, status=status, because=because)
