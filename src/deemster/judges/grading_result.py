"""The result of grading: verdicts and scores by item, how each judge did, and the votes as a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from deemster.datasets.label_codebook import Codebook
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.datasets.rubric_items import RubricItem
from deemster.datasets.votes import Votes
from deemster.datasets.votes_format import SCHEMA
from deemster.errors import VotesError, plural
from deemster.formats.item_files import ITEMS
from deemster.formats.write_rows import write_rows
from deemster.judges._grading_tables import grading_dataframe, grading_notebook
from deemster.judges.vote import Vote, known_cost, total_usage, verdict_code
from deemster.records import Usage
from deemster.records.shared_call_cost import (
    CallPayments,
    count_as_cached_part,
    distinct_calls,
    itemized_calls,
    with_calls,
)
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import NUMERIC_RULE
from deemster.text.html_page import render_part

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


class CriterionGrading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The result of one criterion on one item.

    Attributes:
        criterion: Its name.
        verdict: The final verdict; None if every vote failed.
        option_index: The index of the option; None for a binary criterion and for a number.
        value: What the verdict is worth; None for an abstention.
        aggregated_value: The value before it was snapped to an option.
        abstained: Whether the verdict is an abstention.
        failed: Whether every vote failed.
        agreement: The share of the votes that did not fail and equal the verdict; None without any. On a numeric
            criterion 1 minus the mean distance of the votes from the verdict, as a share of the range.
        votes: Every vote, by judge and repeat.
    """

    criterion: str
    verdict: str | None = None
    option_index: int | None = None
    value: float | None = None
    aggregated_value: float | None = None
    abstained: bool = False
    failed: bool = False
    agreement: float | None = None
    votes: tuple[Vote, ...] = ()

    @property
    def code(self) -> int | float:
        """The final verdict as a code of the criterion; a float is a number.

        Raises:
            ValueError: There is none: every vote failed.
        """
        return verdict_code(self.verdict, self.option_index)

    @property
    def reason(self) -> str | None:
        """The judges' reasons, a line each; None without any."""
        lines = [f"{vote.judge}: {vote.reason}" for vote in self.votes if vote.reason is not None]
        return "\n".join(lines) or None

    @property
    def usage(self) -> Usage | None:
        """What the votes used."""
        return total_usage(vote.usage for vote in self.votes)

    @property
    def cost_usd(self) -> Decimal | None:
        """What the votes cost; None if that is unknown."""
        return known_cost(self.usage)


class ItemGrading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The result of one item.

    Attributes:
        id: The item's id.
        score: The score; None if nothing is left to score.
        raw_score: The weighted sum.
        unscored: Why there is no score.
        penalty: What was subtracted for length.
        criteria: Each criterion, in the order of the rubric; empty if grading failed before it began.
        judge_scores: Each judge's own score; None if all its votes failed or nothing is left to score.
        mean_agreement: The mean of the criteria's agreements that are defined.
        cannot_assess_count: How many final verdicts are abstentions.
        failed_fatal: The fatal criteria that failed.
        unresolved_fatal: The fatal criteria without a verdict.
        below_quorum: The criteria on which too few judges of the panel answered, for which the item has no score.
        error: What failed, if nothing was judged.
    """

    id: str
    score: float | None = None
    raw_score: float | None = None
    unscored: str | None = None
    penalty: float = 0.0
    criteria: tuple[CriterionGrading, ...] = ()
    judge_scores: dict[str, float | None] = {}
    mean_agreement: float | None = None
    cannot_assess_count: int = 0
    failed_fatal: tuple[str, ...] = ()
    unresolved_fatal: tuple[str, ...] = ()
    below_quorum: tuple[str, ...] = ()
    error: str | None = None

    @property
    def votes(self) -> Iterator[Vote]:
        """Its votes, criterion by criterion."""
        return (vote for each in self.criteria for vote in each.votes)

    @property
    def usage(self) -> Usage | None:
        """What its votes used."""
        return total_usage(vote.usage for vote in self.votes)

    @property
    def cost_usd(self) -> Decimal | None:
        """What its votes cost; None if that is unknown."""
        return known_cost(self.usage)

    @property
    def call_ids(self) -> list[int]:
        """The calls that votes on other items may stand on too; once for each question that a call answers."""
        asked = {(vote.judge, vote.repeat, call.id) for vote in self.votes for call in vote.calls if call.id}
        return [call_id for *_, call_id in asked]

    def settle(self, payments: CallPayments) -> ItemGrading:
        """The item with what its votes used in the end, and without calls.

        Args:
            payments: Knows which calls the items before this one in order have paid for.
        """
        if not any(vote.calls for vote in self.votes):
            return self
        # One question brings votes on several criteria, which share its cost: all of them pay, or none does.
        pays: dict[tuple[str, int, int], bool] = {}

        def settle_vote(vote: Vote) -> Vote:
            def pay(call_id: int) -> bool:
                question = (vote.judge, vote.repeat, call_id)
                if question not in pays:
                    pays[question] = payments.pay(call_id)
                return pays[question]

            return payments.settle(vote, pay)

        return self._with_votes(settle_vote)

    def without_calls(self) -> ItemGrading:
        """The item as it is when its grading is finished."""
        if not any(vote.calls for vote in self.votes):
            return self
        return self._with_votes(lambda vote: msgspec.structs.replace(vote, calls=()))

    def with_calls_of(self, earlier: ItemGrading) -> ItemGrading:
        """The item, whose votes also carry the calls of the votes that they replace.

        Args:
            earlier: The item as it was graded before.
        """
        lost = {(each.criterion, vote.judge, vote.repeat): vote for each in earlier.criteria for vote in each.votes}

        def paid(name: str, vote: Vote) -> Vote:
            old = lost.get((name, vote.judge, vote.repeat))
            if old is None or (old.failure is None and old == vote):
                return vote
            return with_calls(vote, distinct_calls((*itemized_calls(old), *itemized_calls(vote))))

        criteria = tuple(
            msgspec.structs.replace(each, votes=tuple(paid(each.criterion, vote) for vote in each.votes))
            for each in self.criteria
        )
        return msgspec.structs.replace(self, criteria=criteria)

    def _with_votes(self, change: Callable[[Vote], Vote]) -> ItemGrading:
        criteria = [
            msgspec.structs.replace(each, votes=tuple([change(vote) if vote.calls else vote for vote in each.votes]))
            for each in self.criteria
        ]
        return msgspec.structs.replace(self, criteria=tuple(criteria))


def vote_payments(*, shared: Collection[int] | None = None) -> CallPayments:
    """Who pays for the calls of votes.

    Args:
        shared: The ids of the calls that several may stand on; None if that can be any call.
    """
    return CallPayments(shared=shared, reused=count_as_cached_part)


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


class Grading(msgspec.Struct, frozen=True, kw_only=True, eq=False):
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

    def _repr_html_(self) -> str:
        return render_part(grading_notebook(self))

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
    header["judges"] = [{"id": judge.id, "weight": judge.weight, "model": judge.model} for judge in grading.judges]
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
