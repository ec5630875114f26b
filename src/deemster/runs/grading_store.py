"""Stores the items of a grading, and says which of them must be graded again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from deemster import __version__
from deemster.datasets.fingerprint import row_hash
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.datasets.rubric_items import item_dict
from deemster.errors import list_names, plural
from deemster.judges.grading_result import Grading, ItemGrading
from deemster.judges.vote import Vote
from deemster.records import Execution, SampleContent, SampleFacts, SampleLabels
from deemster.records.shared_call_cost import distinct_calls, itemized_calls, with_calls
from deemster.rubrics.rubric_definition import Rubric
from deemster.runs._run_identity import digest, run_id
from deemster.runs.run_lifecycle import RunDefinition, RunStorage, RunTimer, StoredRun, new_token, open_run
from deemster.runs.stored_grading import GRADING_RUBRIC_FACT, graded_item
from deemster.store import RunFacts, RunRow, Store
from deemster.store.graded_items import GRADING_CARD

# The parts of a grading's identity that say what is judged.
_ABOUT_ITEMS = ("items", "rubric", "clusters")
# What people said of an item.
_LABELS = ("ground_truth", "ground_truth_reasons", "annotations")


class StoredItem(NamedTuple):
    """An item that was graded before.

    Attributes:
        position: Its place in the dataset.
        item: Its grading.
        known: Its votes, by criterion, where those that failed are to be cast again; None where nothing is.
    """

    position: int
    item: ItemGrading
    known: tuple[tuple[Vote, ...], ...] | None


class GradingWriter:
    """Stores the items of a grading as they are graded, and reads those that were graded before.

    Args:
        run: The stored run.
        dataset: What is graded.
        identity: The identity of the grading.
    """

    def __init__(self, run: StoredRun, dataset: RubricDataset, identity: Mapping[str, Any]) -> None:
        self.run, self._dataset = run, dataset
        # Who judges, and how, without what is judged.
        self._settings = digest({key: value for key, value in identity.items() if key not in _ABOUT_ITEMS})

    @property
    def mixed(self) -> tuple[str, ...]:
        """What changed when the grading was resumed."""
        return tuple(self.run.row.facts.get("mixed", ()))

    def stored(self, tell: Callable[[str], None]) -> Iterator[StoredItem]:
        """The items that were graded before and have not changed.

        Args:
            tell: Gets a sentence about each damage; what is damaged is graded again.

        Raises:
            StoreError: The store fails.
        """
        dataset, store = self._dataset, self.run.store
        for execution in () if self.run.is_new else store.executions(self.run.id, on_damage=tell):
            position = execution.position
            try:
                entry = graded_item(execution)
            except msgspec.ValidationError:
                tell(f"{store.where}: What is stored at position {position} is no graded item.")
                continue
            if position >= len(dataset) or entry.fingerprint != dataset.grading_fingerprint(dataset.items[position]):
                continue
            same = entry.settings == self._settings
            yield StoredItem(position, entry.item, _known_votes(entry.item, reuse=same))

    def stamp(self, position: int) -> dict[str, str]:
        """What tells later whether an item is still what it was when it was graded."""
        item = self._dataset.items[position]
        return {"fingerprint": self._dataset.grading_fingerprint(item), "settings": self._settings}

    def add(self, executions: Sequence[Execution]) -> None:
        """Store graded items, in place of earlier ones.

        Raises:
            StoreError: The store fails.
        """
        self.run.writer.add(executions, at=self.run.timer.now())

    def close(self, grading: Grading) -> None:
        """Note how the grading ended.

        Raises:
            StoreError: The store fails.
        """
        status, reason = grading_status(grading)
        # A vote that failed is asked for again when the grading is resumed.
        failed = grading.n_failed_items or any(judge.failures for judge in grading.judges)
        facts = {"stopped": grading.halted}
        self.run.close(status, reason, duration_s=self.run.duration_s(), facts=facts, is_final=not failed)


def grading_status(grading: Grading) -> tuple[Literal["complete", "incomplete", "mixed"], str | None]:
    """Whether a grading is complete, and why it is not."""
    lost = sum(judge.not_run for judge in grading.judges)
    if lost:
        votes = sum(judge.votes for judge in grading.judges)
        why = "" if grading.halted is None else f" ({grading.halted.rstrip('.')})"
        return "incomplete", f"{plural(lost, 'vote')} of {votes:,} were not asked for{why}"
    if grading.n_failed_items:
        return "incomplete", f"{plural(grading.n_failed_items, 'item')} of {len(grading):,} could not be graded"
    if grading.n_undecided:
        return "incomplete", f"{plural(grading.n_undecided, 'verdict')} could not be had: no judge was reached"
    return ("mixed" if grading.mixed else "complete"), None


def _known_votes(item: ItemGrading, *, reuse: bool) -> tuple[tuple[Vote, ...], ...] | None:
    """The votes of an item that is judged again, empty where none can be reused; None where all votes are valid."""
    if item.criteria and not any(vote.failure is not None for each in item.criteria for vote in each.votes):
        return None
    if not reuse or not item.criteria:
        return ()
    return tuple(each.votes for each in item.criteria)


def carry_over_calls(before: ItemGrading, after: ItemGrading) -> ItemGrading:
    """An item graded again; its votes also carry the calls of the votes that they replace.

    Args:
        before: The stored item.
        after: What became of it.
    """
    lost = {(each.criterion, vote.judge, vote.repeat): vote for each in before.criteria for vote in each.votes}

    def paid(name: str, vote: Vote) -> Vote:
        old = lost.get((name, vote.judge, vote.repeat))
        if old is None or (old.failure is None and old == vote):
            return vote
        return with_calls(vote, distinct_calls((*itemized_calls(old), *itemized_calls(vote))))

    criteria = tuple(
        msgspec.structs.replace(each, votes=tuple(paid(each.criterion, vote) for vote in each.votes))
        for each in after.criteria
    )
    return msgspec.structs.replace(after, criteria=criteria)


@contextmanager
def open_grading_writer(
    dataset: RubricDataset, identity: Mapping[str, Any], storage: RunStorage, *, name: str, seed: int, timer: RunTimer
) -> Iterator[GradingWriter]:
    """Begin a grading in a store, or resume it.

    Args:
        dataset: What is graded.
        identity: The identity of the grading.
        storage: Where it is stored, and what it resumes.
        name: What the dataset is called.
        seed: The grader's.
        timer: When it began.

    Raises:
        StoreError: The store fails, or the grading that is to be resumed is missing or held by another process.
        ConfigurationError: The grading that is to be resumed is another one; every difference is listed.
    """
    facts = RunFacts(
        id=run_id(timer.started, digest([identity, timer.started_at])),
        kind="grading",
        dataset=name,
        fingerprint=dataset.fingerprint,
        seed=seed,
        samples=len(dataset),
        started_at=timer.started_at,
        tool_version=__version__,
        identity=identity,
        facts={"settings": identity["settings"], "token": new_token(), **_rubric_facts(dataset)},
    )
    shape = partial(_shape_changes, dataset, identity, storage.store)
    definition = RunDefinition(facts, partial(_samples, dataset), (GRADING_CARD,), shape)
    with open_run(definition, storage, timer=timer) as run:
        if not run.is_new:
            run.mark_running(identity)
        yield GradingWriter(run, dataset, identity)


def _rubric_facts(dataset: RubricDataset) -> dict[str, Any]:
    """The rubric that items are judged by that have none of their own, so that a grading can be shown again."""
    drawn = {key: value for key in ("cluster", "sampling") if (value := getattr(dataset, key)) is not None}
    return {GRADING_RUBRIC_FACT: None if dataset.rubric is None else dataset.rubric.to_dict(), **drawn}


def _shape_changes(dataset: RubricDataset, identity: Mapping[str, Any], store: Store, row: RunRow) -> list[str]:
    """Changes that `allow_changed` does not permit: other items, and votes of other judges."""
    changes = []
    if [stored.id for stored in store.samples(row.id)] != [item.id for item in dataset.items]:
        changes.append("The dataset has other items, or has them in another order.")
    before, now = (_panel(each["settings"]) for each in (row.identity, identity))
    if before != now:
        changes.append(f"The judges were {before}, and are {now}.")
    return changes


def _panel(settings: Mapping[str, Any]) -> str:
    """The judges of a grading, for a person."""
    names = list_names([judge["id"] for judge in settings["judges"]])
    return names if settings["cascade"] is None else f"{names} one after the other"


def _samples(dataset: RubricDataset) -> Iterator[SampleFacts]:
    """The items: what judges see of each is its input, and what people said of it what should come out."""
    shared = {"prompt": dataset.prompt, "reference_submission": dataset.reference_submission}
    for position, item in enumerate(dataset.items):
        held = item_dict(item)
        if isinstance(rubric := held.pop("rubric", None), Rubric):
            held["rubric"] = rubric.to_dict()
        tags, metadata = held.pop("tags", ()), held.pop("metadata", {})
        labels = {name: held.pop(name) for name in _LABELS if name in held} or None
        del held["id"]
        seen = {**{name: text for name, text in shared.items() if text is not None}, **held}
        yield SampleFacts(
            position=position,
            id=str(item.id),
            row_hash=row_hash(seen, labels),
            labels=SampleLabels(tuple(tags), metadata),
            content=SampleContent(labels, seen),
        )
