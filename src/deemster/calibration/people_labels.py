"""The labels that people gave in the viewer: what can be labelled, and the labels as votes and as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from deemster.calibration.label_sheet import sheet_text
from deemster.datasets.human_labels import FAIL, PASS
from deemster.datasets.votes import Votes
from deemster.datasets.votes_format import SCHEMA, Sampling
from deemster.errors import ReportError, plural
from deemster.judges.vote import vote_failure
from deemster.records import MetricScore, SampleFacts, Unscored
from deemster.records.marks import reaches
from deemster.report.report_settings import RUBRICS_FACT, report_facts
from deemster.report.stored_grading import stored_grading
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.verdicts import CANNOT_ASSESS, VERDICTS
from deemster.store import LabelFacts, RunRow, Store

CSV_COLUMNS = (
    *("id", "criterion", "annotator", "verdict", "repetition", "note", "skip_reason", "labelled_at"),
    *("order", "seed", "inclusion_probability"),
)
_JUDGE = "judge"
# By position and repetition, and then by person: the verdict on each task.
Said: TypeAlias = dict[tuple[int, int], dict[str, dict[tuple[str, str], str | None]]]
_AS_VERDICT = {PASS: "MET", FAIL: "UNMET"}


class LabelTask(NamedTuple):
    """One question that a person answers about a sample.

    Attributes:
        metric: The metric; empty for a criterion of a grading.
        criterion: The criterion; empty for a metric as a whole.
        definition: The criterion as its rubric has it; None for a metric as a whole, which passes or fails.
    """

    metric: str
    criterion: str = ""
    definition: Criterion | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What a label about it names."""
        return self.metric, self.criterion

    @property
    def title(self) -> str:
        """What the question is called: the criterion of a metric as `metric/criterion`."""
        return "/".join(filter(None, self.key))

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """The answers in order: each with its value and what it says."""
        one = self.definition
        if one is None:
            return (PASS, PASS), (FAIL, FAIL)
        if one.kind == "binary":
            return tuple((verdict, verdict.replace("_", " ").lower()) for verdict in VERDICTS)
        given = tuple((option.label, option.label) for option in one.options)
        return given if one.na_option_index is not None else (*given, (CANNOT_ASSESS, "cannot assess"))

    def takes(self, verdict: str) -> bool:
        """Whether a verdict is an answer to the question."""
        return verdict in {value for value, _ in self.options} or self._number(verdict) is not None

    def worth(self, verdict: str) -> float | None:
        """What a verdict is worth, 0 worst to 1 best; None for one that says nothing."""
        one = self.definition
        if one is None:
            return float(verdict == PASS)
        number = self._number(verdict)
        if number is not None:
            return one.share(number)
        return None if verdict == CANNOT_ASSESS else one.values[one.find(verdict)]

    def _number(self, verdict: str) -> float | None:
        """The number that a verdict is, where the criterion asks for one and it lies in its range."""
        one = self.definition
        if one is None or one.minimum is None or one.maximum is None:
            return None
        try:
            number = float(verdict)
        except ValueError:
            return None
        return number if one.minimum <= number <= one.maximum else None


def label_tasks(store: Store, row: RunRow) -> list[LabelTask]:
    """What people can label of a run: every metric, the criteria of one that judges by a rubric before it.

    Of a grading it is every criterion. An evaluation of an earlier version did not keep the rubrics of its metrics.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        ReportError: The grading was made by an earlier version, which did not keep its rubric.
        StoreError: The store fails.
    """
    tasks = []
    for metric, rubrics in _rubrics(store, row).items():
        criteria = {criterion.name: criterion for rubric in rubrics for criterion in rubric.criteria}
        tasks += [LabelTask(metric, name, criterion) for name, criterion in criteria.items()]
        tasks += [LabelTask(metric)] if metric else []
    return tasks


def _rubrics(store: Store, row: RunRow) -> dict[str, list[Rubric]]:
    """The rubrics of each metric of an evaluation, or those of a grading under an empty name."""
    if not row.traits.has_metrics:
        return {"": list(stored_grading(store, row).dataset.rubrics)}
    kept = row.facts.get(RUBRICS_FACT, {})
    return {card.name: [Rubric.load(kept[card.name])] if card.name in kept else [] for card in store.cards(row.id)}


def labelled_votes(store: Store, row: RunRow) -> Votes:
    """What judges and people said of a run, as `compute_metrics` and `deemster agreement` read it.

    Of an evaluation, every labelled metric is a binary criterion, and a mark that passes is MET. Where a mark keeps the
    votes of several judges, each of them is a judge. The people are annotators. Of a grading, labels of the viewer
    stand beside those of its dataset. Labels of samples that were drawn at random speak for the run; where there are
    some, those of disputed or uncertain samples are left out. Repetitions of a sample are one cluster.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        ReportError: Nobody has labelled the run.
        StoreError: The store fails.
    """
    labels = [label for label in store.labels(row.id) if label.verdict is not None]
    drawn = [label for label in labels if label.order == "random"]
    sampling: Sampling = "random" if drawn or not labels else "chosen"
    if not row.traits.has_metrics:
        return _grading_votes(store, row, drawn or labels, sampling)
    if not labels:
        raise ReportError(
            f"Nobody has labelled the run `{row.id}` yet. Start: `deemster view --annotator YOUR_NAME`, or name a file "
            "of labels with `--labels`."
        )
    counted = drawn or labels
    labelled = {(label.metric, label.criterion) for label in counted}
    said: Said = {}
    for label in counted:
        authors = said.setdefault((label.position, label.repetition), {})
        verdict = str(label.verdict) if label.criterion else _AS_VERDICT.get(str(label.verdict))
        authors.setdefault(label.author, {})[label.metric, label.criterion] = verdict
    tasks = [task for task in label_tasks(store, row) if task.key in labelled]
    return Votes.parse({**_run_votes(store, row, tasks, said), "sampling": sampling})


def rubric_votes(store: Store, row: RunRow) -> Votes:
    """What judges said of all outputs of a run by its rubric, whose labels stand in a dataset of their own.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        ReportError: The run has no metric that judges by a rubric, or several.
        StoreError: The store fails.
    """
    if not row.traits.has_metrics:
        return _grading_votes(store, row, (), "random")
    tasks = [task for task in label_tasks(store, row) if task.definition is not None]
    metrics = {task.metric for task in tasks}
    if len(metrics) != 1:
        raise ReportError(
            f"A dataset has the labels of one rubric, and the run `{row.id}` has {plural(len(metrics), 'metric')} that "
            "judge by one."
        )
    said: Said = {
        (position, repetition): {} for position in range(row.samples) for repetition in range(row.repetitions)
    }
    value = _run_votes(store, row, tasks, said)
    for criterion, task in zip(value["rubric"]["criteria"], tasks, strict=True):
        criterion["name"] = task.criterion
    return Votes.parse(value)


def _run_votes(store: Store, row: RunRow, tasks: Sequence[LabelTask], said: Said) -> dict[str, Any]:
    """The verdicts on some tasks, of the outputs that are named, with what people said of them."""
    names = [card.name for card in store.cards(row.id)]
    items, judged = [], []
    cluster = report_facts(row).cluster
    key = "sample" if cluster is None and row.repetitions > 1 else cluster
    for sample, executions in store.samples_at(row.id, sorted({position for position, _ in said})):
        for execution in executions:
            people = said.get((sample.position, execution.repetition))
            if people is None:
                continue
            marks = dict(zip(names, execution.marks, strict=True))
            judged.append([marks[task.metric] for task in tasks])
            several = f"#{execution.repetition}" if row.repetitions > 1 else ""
            items.append(
                {
                    "id": f"{sample.id}{several}",
                    "tags": list(sample.tags),
                    "metadata": {"sample": sample.id, **_cluster_of(sample, cluster)},
                    "annotations": {
                        author: [found.get(task.key) for task in tasks] for author, found in people.items()
                    },
                }
            )
    judges, verdicts = _judges_verdicts(tasks, judged)
    return {
        "schema_version": SCHEMA,
        "name": row.dataset,
        **({} if key is None else {"cluster": key}),
        "rubric": {"criteria": _votes_criteria(store, row, tasks)},
        "judges": [{"id": judge} for judge in judges],
        "items": [{**item, **verdict} for item, verdict in zip(items, verdicts, strict=True)],
    }


def _cluster_of(sample: SampleFacts, key: str | None) -> dict[str, str]:
    """The cluster of a sample, as flat metadata."""
    return {} if key is None else {key: str((sample.metadata or {}).get(key))}


def _judges_verdicts(
    tasks: Sequence[LabelTask], judged: Sequence[Sequence[Any]]
) -> tuple[list[str], list[dict[str, Any]]]:
    """The judges, and what they said of each item: their votes, and what a panel came to.

    Where several judges voted on a task, the votes are theirs, and the mark is the final verdict. Elsewhere the mark is
    the vote of one judge.
    """
    votes = [list(map(_judge_cells, marks, tasks)) for marks in judged]
    panels = [list(dict.fromkeys(judge for cells in column for judge in cells)) for column in zip(*votes, strict=True)]
    panels = [panel if len(panel) > 1 else [] for panel in panels]
    judges = list(dict.fromkeys(judge for panel in panels for judge in panel or [_JUDGE]))
    verdicts = []
    for marks, cells in zip(judged, votes, strict=True):
        marked = list(map(_cell, marks, tasks))
        found: dict[str, Any] = {
            "votes": {
                judge: [
                    each.get(judge) if panel else mark if judge == _JUDGE else None
                    for mark, each, panel in zip(marked, cells, panels, strict=True)
                ]
                for judge in judges
            }
        }
        if any(panels):
            found["final"] = [mark if panel else None for mark, panel in zip(marked, panels, strict=True)]
        verdicts.append(found)
    return judges, verdicts


def _judge_cells(mark: Any, task: LabelTask) -> dict[str, Any]:
    """What each judge said on a task, by its id; several times where it was asked so often. Empty for no votes."""
    found: dict[str, list[Any]] = {}
    # Votes on a metric's own scale have no pass mark.
    if isinstance(mark, MetricScore) and (task.criterion or mark.rubric_score is None):
        for vote in mark.details.get("votes") or ():
            if isinstance(vote, Mapping) and vote.get("criterion", "") == task.criterion:
                judge = str(vote.get("judge", vote.get("role", _JUDGE)))
                found.setdefault(judge, []).append(_vote_cell(vote, mark, task))
    return {judge: cells[0] if len(cells) == 1 else cells for judge, cells in found.items()}


def _vote_cell(vote: Mapping[str, Any], mark: MetricScore, task: LabelTask) -> Any:
    if "cause" in vote:
        failure = vote_failure(vote["cause"], str(vote.get("message")))
        return {"failure": failure.category, "message": failure.message}
    if task.criterion:
        return vote.get("verdict")
    score = vote.get("score")
    if score is None:
        return CANNOT_ASSESS
    return _AS_VERDICT[PASS if reaches(score, mark.threshold, higher_is_better=mark.higher_is_better) else FAIL]


def _votes_criteria(store: Store, row: RunRow, tasks: Sequence[LabelTask]) -> list[dict[str, Any]]:
    """What is labelled, as the criteria of one rubric: a metric as a whole is binary."""
    known = {
        (metric, criterion.name): entry
        for metric, rubrics in _rubrics(store, row).items()
        for rubric in rubrics
        for criterion, entry in zip(rubric.criteria, Rubric(rubric.criteria).to_dict()["criteria"], strict=True)
    }
    whole = {"weight": 1}
    return [
        {
            **known.get(task.key, whole | {"requirement": f"The output passes `{task.metric}`."}),
            "name": task.title,
        }
        for task in tasks
    ]


def _cell(mark: Any, task: LabelTask) -> Any:
    if isinstance(mark, MetricScore):
        if task.criterion:
            return criterion_entry(mark.details, task.criterion).get("verdict")
        return _AS_VERDICT[PASS if mark.success else FAIL]
    return {"failure": "unknown", "message": mark.message} if isinstance(mark, Unscored) else None


def criterion_entry(details: Mapping[str, Any], criterion: str) -> Mapping[str, Any]:
    """What a mark of the metric `rubric` says of one criterion: its verdict, value, agreement; empty for nothing.

    Args:
        details: The details of the mark.
        criterion: The criterion's name.
    """
    found: Mapping[str, Any] = details.get("criteria", {}).get(criterion, {})
    return found


def _grading_votes(store: Store, row: RunRow, labels: Sequence[LabelFacts], sampling: Sampling) -> Votes:
    grading = stored_grading(store, row)
    votes = grading.votes(reasons=True)
    if not labels:
        return votes
    value: dict[str, Any] = votes.to_dict()
    said: dict[int, dict[str, dict[str, str]]] = {}
    for label in labels:
        said.setdefault(label.position, {}).setdefault(label.author, {})[label.criterion] = str(label.verdict)
    for position, (item, rubric) in enumerate(zip(value["items"], grading.dataset.rubrics, strict=True)):
        for author, found in said.get(position, {}).items():
            item.setdefault("annotations", {})[author] = [found.get(name) for name in rubric.names]
    return Votes.parse({**value, "sampling": sampling})


def _sample_ids(store: Store, row: RunRow, labels: Sequence[LabelFacts]) -> dict[int, str]:
    """The ids of labelled samples by their places."""
    places = sorted({label.position for label in labels})
    return {sample.position: sample.id for sample, _ in store.samples_at(row.id, places)}


def labels_csv(store: Store, row: RunRow) -> str:
    """The labels of a run as CSV, a line each, as `deemster agreement --labels` reads them.

    The verdict of a skipped one is blank.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        StoreError: The store fails.
    """
    labels = store.labels(row.id)
    names = _sample_ids(store, row, labels)
    lines = (
        (
            names[label.position],
            "/".join(filter(None, (label.metric, label.criterion))),
            label.author,
            label.verdict,
            label.repetition,
            label.note,
            label.skip_reason,
            label.at,
            label.order,
            label.seed,
            label.probability,
        )
        for label in labels
    )
    return sheet_text(CSV_COLUMNS, lines)
