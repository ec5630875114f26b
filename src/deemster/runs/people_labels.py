"""The labels that people gave in the viewer: what can be labelled, and the labels as votes and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from deemster.datasets.votes import Votes
from deemster.datasets.votes_format import SCHEMA
from deemster.errors import ReportError
from deemster.records import MetricScore, Unscored
from deemster.report.label_sheet import sheet_text
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.verdicts import CANNOT_ASSESS, VERDICTS
from deemster.runs.grading_store import stored_grading
from deemster.store import LabelFacts, RunRow, Store

PASS, FAIL = "pass", "fail"
CSV_COLUMNS = (
    *("id", "criterion", "annotator", "verdict", "repetition", "note", "skip_reason", "labelled_at"),
    *("order", "seed", "inclusion_probability"),
)
_JUDGE = "judge"
_AS_VERDICT = {PASS: "MET", FAIL: "UNMET"}


class LabelTask(NamedTuple):
    """One question that a person answers about a sample.

    Attributes:
        metric: The metric; empty for a criterion of a grading.
        criterion: The criterion; empty for a metric.
        title: What the question is called.
        requirement: What is asked, where that is known.
        options: The answers in order: each with its value and what it says.
        minimum: The lowest number of a criterion that asks for one.
        maximum: The highest number of it.
    """

    metric: str
    criterion: str
    title: str
    requirement: str | None
    options: tuple[tuple[str, str], ...]
    minimum: float | None = None
    maximum: float | None = None

    def takes(self, verdict: str) -> bool:
        """Whether a verdict is an answer to the question."""
        if verdict in {value for value, _ in self.options}:
            return True
        try:
            number = float(verdict)
        except ValueError:
            return False
        return self.minimum is not None and self.maximum is not None and self.minimum <= number <= self.maximum


def label_tasks(store: Store, row: RunRow) -> list[LabelTask]:
    """What people can label of a run: every metric, or every criterion of a grading.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        ReportError: The grading was made by an earlier version, which did not keep its rubric.
        StoreError: The store fails.
    """
    if row.kind != "grading":
        options = ((PASS, PASS), (FAIL, FAIL))
        return [LabelTask(card.name, "", card.name, None, options) for card in store.cards(row.id)]
    rubrics = stored_grading(store, row).dataset.rubrics
    criteria = {criterion.name: criterion for rubric in rubrics for criterion in rubric.criteria}
    return [
        LabelTask("", name, name, one.requirement, _options(one), one.minimum, one.maximum)
        for name, one in criteria.items()
    ]


def _options(criterion: Criterion) -> tuple[tuple[str, str], ...]:
    if criterion.kind == "binary":
        return tuple((verdict, verdict.replace("_", " ").lower()) for verdict in VERDICTS)
    return (*((option.label, option.label) for option in criterion.options), (CANNOT_ASSESS, "cannot assess"))


def labelled_votes(store: Store, row: RunRow) -> Votes:
    """What judges and people said of a run, as `compute_metrics` and `deemster align` read it.

    Of an evaluation, every labelled metric is a binary criterion, and a mark that passes is MET. The people are
    annotators. Of a grading, labels of the viewer stand beside those of its dataset.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        ReportError: Nobody has labelled the run.
        StoreError: The store fails.
    """
    labels = [label for label in store.labels(row.id) if label.verdict is not None]
    if row.kind == "grading":
        return _grading_votes(store, row, labels)
    if not labels:
        raise ReportError(f"Nobody has labelled the run `{row.id}`: `deemster view --label NAME` does.")
    return Votes.parse(_run_votes(store, row, labels))


def _run_votes(store: Store, row: RunRow, labels: Sequence[LabelFacts]) -> dict[str, Any]:
    labelled = {label.metric for label in labels}
    names = [card.name for card in store.cards(row.id)]
    metrics = [name for name in names if name in labelled]
    said: dict[tuple[int, int], dict[str, dict[str, str]]] = {}
    for label in labels:
        authors = said.setdefault((label.position, label.repetition), {})
        authors.setdefault(label.author, {})[label.metric] = str(label.verdict)
    items = []
    for position in sorted({position for position, _ in said}):
        for sample, executions in store.samples_at(row.id, [position]):
            for execution in executions:
                people = said.get((position, execution.repetition))
                if people is None:
                    continue
                marks = dict(zip(names, execution.marks, strict=True))
                several = f"#{execution.repetition}" if row.repetitions > 1 else ""
                items.append(
                    {
                        "id": f"{sample.id}{several}",
                        "tags": list(sample.tags),
                        "metadata": {"sample": sample.id},
                        "annotations": {
                            author: [_AS_VERDICT.get(found.get(name, "")) for name in metrics]
                            for author, found in people.items()
                        },
                        "votes": {_JUDGE: [_cell(marks[name]) for name in metrics]},
                    }
                )
    criteria = [{"name": name, "requirement": f"The output passes `{name}`.", "weight": 1} for name in metrics]
    return {
        "schema_version": SCHEMA,
        "name": row.dataset,
        "rubric": {"criteria": criteria},
        "judges": [{"id": _JUDGE}],
        "items": items,
    }


def _cell(mark: Any) -> Any:
    if isinstance(mark, MetricScore):
        return "MET" if mark.success else "UNMET"
    return {"failure": "unknown", "message": mark.message} if isinstance(mark, Unscored) else None


def _grading_votes(store: Store, row: RunRow, labels: Sequence[LabelFacts]) -> Votes:
    grading = stored_grading(store, row)
    value: dict[str, Any] = grading.votes(reasons=True).to_dict()
    if not labels:
        return Votes.parse(value)
    said: dict[int, dict[str, dict[str, str]]] = {}
    for label in labels:
        said.setdefault(label.position, {}).setdefault(label.author, {})[label.criterion] = str(label.verdict)
    for position, (item, rubric) in enumerate(zip(value["items"], grading.dataset.rubrics, strict=True)):
        for author, found in said.get(position, {}).items():
            item.setdefault("annotations", {})[author] = [found.get(name) for name in rubric.names]
    return Votes.parse(value)


def _sample_ids(store: Store, row: RunRow, labels: Sequence[LabelFacts]) -> dict[int, str]:
    """The ids of labelled samples by their places."""
    places = sorted({label.position for label in labels})
    return {sample.position: sample.id for sample, _ in store.samples_at(row.id, places)}


def labels_csv(store: Store, row: RunRow) -> str:
    """The labels of a run as CSV, a line each, as `deemster align --labels` reads them.

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
            label.criterion or label.metric,
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
