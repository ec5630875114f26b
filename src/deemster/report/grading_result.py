"""The result of grading: a view of its run, with how each judge did, and the votes as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from deemster.agreement import MetricsResult, compute_metrics
from deemster.datasets.label_codebook import Codebook
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.datasets.rubric_items import RubricItem
from deemster.datasets.votes import Votes
from deemster.datasets.votes_format import SCHEMA
from deemster.errors import InputError, VotesError, plural
from deemster.formats.item_files import ITEMS
from deemster.formats.write_rows import write_rows
from deemster.judges.item_grading import CriterionGrading, ItemGrading
from deemster.judges.vote import Vote, known_cost
from deemster.records import Usage
from deemster.report._grading_dataframe import grading_dataframe
from deemster.report._grading_page import grading_page
from deemster.report.grading_sections import agreement_sections, grading_json, grading_sections
from deemster.report.grading_summary import GradingSummary, summarize_grading
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import NUMERIC_RULE
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    import pandas as pd

# The settings of a grader that a votes file keeps.
_VOTES_SETTINGS = (
    "aggregation",
    "ordinal_aggregation",
    "nominal_aggregation",
    NUMERIC_RULE,
    "abstention",
    "partial_credit",
    "normalize",
)


class JudgeGrading(msgspec.Struct, frozen=True, kw_only=True):
    """One judge over a grading.

    Attributes:
        id: Its id.
        model: The model role it asks.
        weight: How much its vote counts if the rule weighs votes.
        votes: How many votes it should have cast.
        failures: How many of them failed, by category.
        not_run: How many of the failed ones it was never asked for.
        usage: What they used.
    """

    id: str
    model: str
    weight: float = 1.0
    votes: int = 0
    failures: dict[str, int] = {}
    not_run: int = 0
    usage: Usage | None = None

    @property
    def failed(self) -> bool:
        """Whether it was asked and failed every time."""
        return self.not_run < self.votes == sum(self.failures.values())

    @property
    def cost_usd(self) -> Decimal | None:
        """What its votes cost; None if that is unknown."""
        return known_cost(self.usage)


class Grading(Rendered, msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A graded dataset.

    Attributes:
        items: Every item in the order of the dataset; many items are read one by one from a file.
        judges: Each judge over the grading.
        settings: All of the grader's settings that can change a verdict or a score.
        dataset: What was graded.
        usage: What all judges and checks used.
        halted: Why not everything was asked, such as a budget; None if everything was.
        n_failed_items: Items that could not be graded: every call failed, or something before the first.
        n_undecided: Verdicts that are missing because no model that should have given them could be reached.
        n_below_quorum: Items without a score because too few judges of the panel answered.
        run: The run's id in the store; None if it was not stored.
        mixed: What changed between the parts of a grading that was resumed.
    """

    items: Sequence[ItemGrading]
    judges: tuple[JudgeGrading, ...]
    settings: Mapping[str, Any]
    dataset: RubricDataset
    usage: Usage | None = None
    halted: str | None = None
    n_failed_items: int = 0
    n_undecided: int = 0
    n_below_quorum: int = 0
    run: str | None = None
    mixed: tuple[str, ...] = ()

    @property
    def status(self) -> Literal["complete", "incomplete", "mixed"]:
        """How it ended."""
        if self.reason is not None:
            return "incomplete"
        return "mixed" if self.mixed else "complete"

    @property
    def reason(self) -> str | None:
        """Why it is not complete."""
        not_run = sum(judge.not_run for judge in self.judges)
        if not_run:
            votes = sum(judge.votes for judge in self.judges)
            why = "" if self.halted is None else f" ({self.halted.rstrip('.')})"
            return f"{plural(not_run, 'vote')} of {votes:,} were not asked for{why}"
        if self.n_failed_items:
            return f"{plural(self.n_failed_items, 'item')} of {len(self):,} could not be graded"
        if self.n_below_quorum:
            few = "too few judges of the panel answered"
            return f"{plural(self.n_below_quorum, 'item')} of {len(self):,} got no score: {few}"
        if self.n_undecided:
            return f"{plural(self.n_undecided, 'verdict')} could not be had: no judge was reached"
        return None

    @property
    def dataset_fingerprint(self) -> str:
        """The fingerprint of what was graded."""
        return self.dataset.fingerprint

    @property
    def cost_usd(self) -> Decimal | None:
        """What all judges and checks cost; None if that is unknown."""
        return known_cost(self.usage)

    @property
    def failed_judges(self) -> tuple[str, ...]:
        """The judges that were asked and failed every time."""
        return tuple(judge.id for judge in self.judges if judge.failed)

    def votes(self, *, reasons: bool = False) -> Votes:
        """The votes in columns, with the labels of the dataset: what `compute_metrics` reads.

        Args:
            reasons: Whether the judges' reasons are kept with their votes.
        """
        return Votes.parse({**_header(self), ITEMS: list(_rows(self, reasons=reasons))})

    def to_votes(self, path: str | Path, *, reasons: bool = True) -> Path:
        """Write a votes file, JSON or JSONL by extension. The file appears only when it is complete.

        Args:
            path: Where it goes.
            reasons: Whether the judges' reasons are written with their votes.

        Returns:
            The path that was written.

        Raises:
            VotesError: The extension is none of these, or the file cannot be written.
        """
        rows = _rows(self, reasons=reasons)
        write_rows(path, _header(self), rows, key=ITEMS, known=("json", "jsonl"), error=VotesError)
        return Path(path)

    def to_dataframe(self, form: Literal["votes", "items"] = "votes") -> pd.DataFrame:
        """The grading as a pandas table.

        Args:
            form: `votes` for a row for each vote, `items` for a row for each item with the verdict on each criterion.

        Raises:
            InputError: There is no such form.
            MissingExtraError: pandas is not installed.
        """
        return grading_dataframe(self, form)

    @cached_property
    def figures(self) -> GradingSummary:
        """It in numbers."""
        return summarize_grading(self)

    @cached_property
    def agreement(self) -> MetricsResult | str | None:
        """How the judges agree with people, or why that cannot be told; None where the dataset has no labels."""
        if not any(label is not None for truth in self.dataset.truths for label in truth or ()):
            return None
        try:
            return compute_metrics(self, None, per_judge=len(self.judges) > 1)
        except InputError as error:
            return str(error)

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return [*grading_sections(self), *agreement_sections(self)]

    def pieces(self) -> Iterator[bytes]:
        """The results as JSON, item by item."""
        return grading_json(self)

    def to_html(self, *, reasons: bool = True) -> str:
        """The results as one HTML page that loads nothing.

        Args:
            reasons: Whether the judges' reasons are shown, which may quote what was graded.
        """
        return grading_page(self, reasons=reasons)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"<Grading: {len(self.items)} items, {len(self.judges)} judges>"


def _header(grading: Grading) -> dict[str, Any]:
    header: dict[str, Any] = {"schema_version": SCHEMA}
    if grading.dataset.name is not None:
        header["name"] = grading.dataset.name
    for key in ("cluster", "sampling"):
        if (value := getattr(grading.dataset, key)) is not None:
            header[key] = value
    header["dataset_fingerprint"] = grading.dataset_fingerprint
    keys = _keys(grading.dataset.rubrics)
    if len(keys) == 1:
        header["rubric"] = grading.dataset.rubrics[0].to_dict()
    else:
        header["rubrics"] = {key: rubric.to_dict() for rubric, key in keys.items()}
    header["judges"] = [
        {"id": judge.id, "weight": judge.weight, "model": judge.model}
        | ({"cost_usd": float(judge.cost_usd)} if judge.cost_usd else {})
        for judge in grading.judges
    ]
    header["grading"] = {key: grading.settings[key] for key in _VOTES_SETTINGS if key in grading.settings}
    return header


def _keys(rubrics: Sequence[Rubric]) -> dict[Rubric, str]:
    """The name of each distinct rubric in a votes file."""
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
    """Verdicts and score that do not follow from the votes: those of a cascade, or by settings that changed since."""
    final = [_failure(each) if each.failed else book.label(at, each.code) for at, each in enumerate(graded.criteria)]
    return {"final": final} if graded.score is None else {"final": final, "score": graded.score}


def _failure(graded: CriterionGrading) -> dict[str, Any]:
    """The failure of a criterion without a verdict: that of the last judge that failed."""
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
        is_binary = book.rubric.criteria[position].kind == "binary"
        cell["p"] = vote.probabilities[0] if is_binary else list(vote.probabilities)
    if reasons and vote.reason is not None:
        cell["reason"] = vote.reason
    return cell if len(cell) > 1 else label
