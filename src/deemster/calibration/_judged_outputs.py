"""The outputs of a run that people labelled, beside what each metric or criterion says of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from deemster.agreement.calibrate_judge import JudgedMetric, JudgedOutput
from deemster.calibration.people_labels import criterion_entry
from deemster.datasets.human_labels import (
    HumanLabel,
    JoinedLabels,
    as_options,
    join_labels,
    label_kind,
)
from deemster.errors import DatasetError, Issue, did_you_mean
from deemster.judges.rubric_metric import shown_options
from deemster.records.marks import reaches
from deemster.report import Report
from deemster.report.build_report import report_identities
from deemster.report.report_entries import ExecutionEntry, ScoreEntry
from deemster.results.mark_table import output_digest
from deemster.results.metric_summary import RunMetricSummary
from deemster.rubrics.verdicts import VERDICTS


class RunBackground(NamedTuple):
    """What is known of a stored run beside its report.

    Attributes:
        target_models: The models that the target used; None for what the report says of them.
        options: The options of each criterion, by metric and criterion; none for one that is met or not.
        clusters: The cluster of each sample by its id; empty where samples stand alone.
    """

    target_models: Collection[str] | None = None
    options: Mapping[tuple[str, str], Sequence[str]] = {}
    clusters: Mapping[str, str] = {}


NO_BACKGROUND: RunBackground = RunBackground()


class RunOutputs:
    """The executions of a run, found by sample and repetition."""

    def __init__(self, report: Report, background: RunBackground) -> None:
        self.report = report
        self.target_models = background.target_models
        self._options = background.options
        self.clusters = background.clusters
        self.tags = {sample.id: sample.tags for sample in report.samples}
        self.executions: dict[tuple[str, int], ExecutionEntry] = {
            (execution.id, execution.repetition): execution for execution in report.executions
        }

    def options(self, metric: str, criterion: str) -> Sequence[str]:
        """The options of a criterion by its rubric, or else by the judge's verdicts; none where it is met or not."""
        if (stated := self._options.get((metric, criterion))) is not None:
            return stated
        marks = (execution.marks.get(metric) for execution in self.executions.values())
        entries = (criterion_entry(mark.details, criterion) for mark in marks if isinstance(mark, ScoreEntry))
        verdicts = dict.fromkeys(str(entry["verdict"]) for entry in entries if entry.get("verdict") is not None)
        return [verdict for verdict in verdicts if verdict not in VERDICTS]

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

    def subjects(self) -> dict[str, str]:
        """What labels may be about, by every name: metrics, and the criteria of metrics that have some."""
        subjects = {name: name for name in self.report.metric_order}
        metrics_of_criterion: dict[str, list[str]] = {}
        for metric in self.report.metric_order:
            for criterion in self.report.metrics[metric].criteria or {}:
                subjects[f"{metric}/{criterion}"] = f"{metric}/{criterion}"
                metrics_of_criterion.setdefault(criterion, []).append(metric)

        # A criterion's own name will do where only one metric has it; one with options before a metric of that name.
        single = {
            criterion: f"{metrics[0]}/{criterion}"
            for criterion, metrics in metrics_of_criterion.items()
            if len(metrics) == 1
        }
        with_options = {
            criterion: subject
            for criterion, subject in single.items()
            if self.options(metrics_of_criterion[criterion][0], criterion)
        }
        return single | subjects | with_options


def judged_metric(outputs: RunOutputs, name: str, labels: Sequence[HumanLabel], *, is_cases: bool) -> JudgedMetric:
    """A metric or criterion with its labelled outputs.

    Args:
        outputs: The outputs of the run.
        name: The metric, or `metric/criterion`.
        labels: What people say about it.
        is_cases: Whether the run is of calibration cases, which stand for no run of their own.
    """
    report = outputs.report
    metric = max((other for other in report.metrics if name == other or name.startswith(f"{other}/")), key=len)
    criterion = None if metric == name else name[len(metric) + 1 :]
    options = [] if criterion is None else outputs.options(metric, criterion)
    labels = as_options(labels, options) if options else labels
    kind = label_kind(labels, has_options=bool(options))

    judged: list[JudgedOutput] = []
    disputed = []
    n_unscored = 0
    for key, joined in join_labels(labels, kind).items():
        execution = outputs.executions.get(key)
        said = None if execution is None else _judgement(execution, metric, criterion, is_option=kind == "option")
        if said is None or execution is None:
            n_unscored += 1
        elif joined.truth is None:
            disputed.append(joined.by_annotator)
        else:
            judged.append(_judged_output(key[0], joined, said, execution, outputs))

    figures = report.metrics[metric]
    result = JudgedMetric(
        name,
        kind,
        judged,
        report_identities(report.metrics, report.run.models)[metric],
        threshold=figures.threshold if criterion is None else 0.5,
        higher_is_better=figures.higher_is_better or criterion is not None,
        unscored=n_unscored,
        disputed=disputed,
        is_drawn=all(label.is_drawn for label in labels),
        shown=[
            shown
            for execution in report.executions
            if isinstance(mark := execution.marks.get(metric), ScoreEntry)
            for shown in shown_options(mark.details, execution.output or execution.id, criterion=criterion)
        ],
        warnings=tuple(_doubts(report, figures, labels, outputs.target_models)),
    )
    return result if criterion is not None else _with_run(result, outputs, is_cases=is_cases)


class _Judgement(NamedTuple):
    """What a judge says of an output."""

    verdict: float | str
    score: float


def _judgement(execution: ExecutionEntry, metric: str, criterion: str | None, *, is_option: bool) -> _Judgement | None:
    """What a metric, or one criterion of it, says of an output; None where it says nothing."""
    mark = execution.marks.get(metric)
    if not isinstance(mark, ScoreEntry):
        return None
    if criterion is None:
        return _Judgement(float(mark.success), mark.score)

    entry = mark.details.get("criteria", {}).get(criterion)
    value = None if entry is None else entry.get("value")
    if is_option:
        verdict = None if entry is None else entry.get("verdict")
        return None if verdict is None else _Judgement(str(verdict), value if isinstance(value, (int, float)) else 0.0)
    if not isinstance(value, (int, float)):
        return None
    return _Judgement(float(reaches(value, 0.5)), min(1.0, max(0.0, float(value))))


def _judged_output(
    name: str, joined: JoinedLabels, judged: _Judgement, execution: ExecutionEntry, outputs: RunOutputs
) -> JudgedOutput:
    return JudgedOutput(
        name,
        joined.truth if joined.truth is not None else 0.0,
        joined.by_annotator,
        judged.verdict,
        judged.score,
        execution.output_chars,
        outputs.tags[name],
        joined.probability,
        joined.stratum,
        unit=outputs.clusters.get(name, name),
    )


def _with_run(judged: JudgedMetric, outputs: RunOutputs, *, is_cases: bool) -> JudgedMetric:
    """A metric with what a calibration looks at of all outputs of a run: verdicts, scores, orders and repeats."""
    passed: dict[str, list[bool]] = {}
    scores: dict[str, list[float]] = {}
    repeats: dict[tuple[str, int], list[bool]] = {}
    # One order of each sample: its repetitions are one.
    orders: dict[str, str | None] = {}
    for (name, _), execution in outputs.executions.items():
        mark = execution.marks.get(judged.name)
        if not isinstance(mark, ScoreEntry):
            continue
        passed.setdefault(name, []).append(mark.success)
        scores.setdefault(name, []).append(mark.score)
        if execution.output is not None:
            digest = output_digest(execution.output, execution.retrieved, execution.trajectory)
            repeats.setdefault((name, digest), []).append(mark.success)
        if "consistent" in mark.details and not mark.details.get("identical"):
            orders.setdefault(name, None if mark.details["consistent"] else mark.details.get("favoured") or "both")

    repetitions = outputs.report.totals.repetitions
    judged = judged._replace(
        repetitions=repetitions,
        orders=list(orders.values()) or None,
        repeats=[verdicts for verdicts in repeats.values() if len(verdicts) > 1] if repetitions > 1 else (),
    )
    if is_cases:
        return judged
    whole = [name for name, verdicts in passed.items() if len(verdicts) == repetitions]
    return judged._replace(
        passed=np.array([sum(passed[name]) for name in whole], dtype=np.int64),
        scores=np.array([sum(scores[name]) / len(scores[name]) for name in whole]),
        samples=[outputs.clusters.get(name, name) for name in whole],
    )


def _doubts(
    report: Report, figures: RunMetricSummary, labels: Sequence[HumanLabel], target_models: Collection[str] | None
) -> Iterator[str]:
    """What is doubtful about a judge and its labels before anything is computed."""
    models = report.run.models or {}
    judges = {str(models[role].get("model")) for role in figures.roles if role in models and models[role].get("model")}
    tested = judges & (_target_models(report) if target_models is None else set(target_models))
    if tested:
        yield f"The judge is the model under test ({', '.join(sorted(tested))}): models prefer their own answers."
    if figures.roles and any(label.probability is None for label in labels):
        yield "Labels without inclusion probability: the numbers hold if the samples were drawn at random."


def _target_models(report: Report) -> set[str]:
    """The models that the target used, as far as a report says: those with more calls than all judges made."""
    if report.cost is None:
        return set()
    return {model.model for model in report.cost.models if model.calls > report.usage.scoring.calls}
