"""From a grading to votes, as a file and in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deemster.datasets.item_files import ITEMS
from deemster.datasets.label_codebook import Codebook
from deemster.datasets.rubric_items import RubricItem
from deemster.datasets.votes import SCHEMA, Votes
from deemster.errors import VotesError
from deemster.formats.write_rows import write_rows
from deemster.judges.grading_result import CriterionGrading, Grading, ItemGrading, Vote
from deemster.rubrics.rubric_definition import Rubric

_SETTINGS = (
    "aggregation",
    "ordinal_aggregation",
    "nominal_aggregation",
    "abstention",
    "partial_credit",
    "normalize",
)


def votes_of(grading: Grading, *, reasons: bool) -> Votes:
    """The votes of a grading in columns.

    Args:
        grading: What was graded.
        reasons: Whether the judges' reasons are kept with their votes.
    """
    return Votes.parse({**_header(grading), ITEMS: list(_rows(grading, reasons=reasons))})


def write_grading(grading: Grading, path: str | Path, *, reasons: bool) -> Path:
    """Write the votes of a grading, item by item.

    Raises:
        VotesError: The extension is neither that of JSON nor of JSONL, or the file cannot be written.
    """
    rows = _rows(grading, reasons=reasons)
    write_rows(path, _header(grading), rows, key=ITEMS, known=("json", "jsonl"), error=VotesError)
    return Path(path)


def _header(grading: Grading) -> dict[str, Any]:
    header: dict[str, Any] = {"schema_version": SCHEMA}
    if grading.dataset.name is not None:
        header["name"] = grading.dataset.name
    header["dataset_fingerprint"] = grading.dataset_fingerprint
    keys = _keys(grading.dataset.rubrics)
    if len(keys) == 1:
        header["rubric"] = grading.dataset.rubrics[0].to_dict()
    else:
        header["rubrics"] = {key: rubric.to_dict() for rubric, key in keys.items()}
    header["judges"] = [{"id": judge.id, "weight": judge.weight, "model": judge.model} for judge in grading.judges]
    header["grading"] = {key: grading.settings[key] for key in _SETTINGS}
    return header


def _keys(rubrics: Sequence[Rubric]) -> dict[Rubric, str]:
    """What each rubric is called among several; equal ones are one."""
    found: dict[Rubric, str] = {}
    for rubric in {id(each): each for each in rubrics}.values():
        if rubric not in found:
            number = len(found) + 1
            found[rubric] = f"rubric-{number}" if rubric.name is None else f"{number}-{rubric.name}"
    return found


def _rows(grading: Grading, *, reasons: bool) -> Iterator[dict[str, Any]]:
    dataset = grading.dataset
    keys = _keys(dataset.rubrics)
    books = {rubric: Codebook(rubric) for rubric in keys}
    judges = [judge.id for judge in grading.judges]
    for item, rubric, graded in zip(dataset.items, dataset.rubrics, grading.items, strict=True):
        row: dict[str, Any] = {"id": graded.id}
        if len(keys) > 1:
            row["rubric"] = keys[rubric]
        row |= _labels(item)
        if graded.criteria:
            row["votes"] = _cells(graded, books[rubric], judges, reasons=reasons)
            if graded.penalty:
                row["penalty"] = graded.penalty
            if grading.settings["cascade"] is not None or grading.mixed:
                row |= _recorded(graded, books[rubric])
        else:
            row["error"] = graded.error
        yield row


def _recorded(graded: ItemGrading, book: Codebook) -> dict[str, Any]:
    """Verdicts and score that nobody could tell from the votes: of a cascade, or by settings that changed since."""
    final = [_failure(each) if each.failed else book.label(at, each.code) for at, each in enumerate(graded.criteria)]
    return {"final": final} if graded.score is None else {"final": final, "score": graded.score}


def _failure(graded: CriterionGrading) -> dict[str, Any]:
    """The failure of a criterion that nobody decided: that of the last judge who was to do so."""
    category = next(vote.failure.category for vote in reversed(graded.votes) if vote.failure is not None)
    return {"failure": category}


def _labels(item: RubricItem) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if item.tags:
        found["tags"] = list(item.tags)
    if item.metadata:
        found["metadata"] = dict(item.metadata)
    if item.ground_truth is not None:
        found["ground_truth"] = list(item.ground_truth)
    if item.annotations:
        found["annotations"] = {name: list(entries) for name, entries in item.annotations.items()}
    return found


def _cells(graded: ItemGrading, book: Codebook, judges: Sequence[str], *, reasons: bool) -> Mapping[str, list[Any]]:
    """The cells of every judge, and of every metric that answered a criterion."""
    found: dict[str, list[Any]] = {name: [None] * len(book) for name in judges}
    for position, criterion in enumerate(graded.criteria):
        said: dict[str, list[Any]] = {}
        for vote in criterion.votes:
            said.setdefault(vote.judge, []).append(_cell(vote, book, position, reasons=reasons))
        for name, cells in said.items():
            row = found.setdefault(name, [None] * len(book))
            row[position] = cells[0] if len(cells) == 1 else cells
    return found


def _cell(vote: Vote, book: Codebook, position: int, *, reasons: bool) -> Any:
    if vote.failure is not None:
        return {"failure": vote.failure.category, "message": vote.failure.message}
    label = book.label(position, vote.code)
    cell: dict[str, Any] = {"verdict": label}
    if vote.probabilities is not None:
        is_binary = not book.rubric.criteria[position].options
        cell["p"] = vote.probabilities[0] if is_binary else list(vote.probabilities)
    if reasons and vote.reason is not None:
        cell["reason"] = vote.reason
    return cell if len(cell) > 1 else label
