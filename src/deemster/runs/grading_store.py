"""The graded items of one grading in a store, and which of them have to be graded again."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import msgspec

from deemster import __version__
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ConfigurationError, DeemsterError, Issue, RunExistsError, StoreError, counted, listing
from deemster.formats.canonical_json import canonical
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_result import Grading, ItemGrading
from deemster.judges.vote import Vote
from deemster.models.clock import Clock
from deemster.records.shared_call_cost import distinct_calls, itemized_calls, with_calls
from deemster.runs import metric_catalog as catalog
from deemster.runs._run_identity import differences, format_time, model_identity, source_digest
from deemster.runs.model_access import ModelAccess
from deemster.runs.run_writer import RunStorage
from deemster.store import Lease, RunFacts, RunRow, SampleFacts, Store, Writer

_WAYS = 10_000
_UNFINISHED = ("running", "incomplete")


class _Entry(msgspec.Struct, frozen=True):
    """A graded item as the store has it.

    Attributes:
        item: The grading of the item.
        fingerprint: Of all that the judges could see of it.
        settings: A digest of who judged it, and how.
    """

    item: ItemGrading
    fingerprint: str
    settings: str


_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder(_Entry)


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


class GradingIdentity(NamedTuple):
    """What makes a grading the same one.

    Attributes:
        dataset: What is graded.
        identity: Everything that could change a vote, as plain JSON.
    """

    dataset: RubricDataset
    identity: dict[str, Any]

    @property
    def settings(self) -> str:
        """A digest of who judges, and how; of the items nothing."""
        return digest(
            {key: value for key, value in self.identity.items() if key not in ("items", "rubric", "clusters")}
        )


def grading_identity(
    dataset: RubricDataset, grader: CriterionGrader, checks: Mapping[Any, Any], access: ModelAccess
) -> GradingIdentity:
    """What makes a grading the same one: items, rubrics, settings with prompts, checks and models; no label.

    Where examples of an item's own cluster are passed over, its cluster counts too.

    Args:
        dataset: What is graded.
        grader: Who judges, and how.
        checks: The metrics that answer criteria.
        access: The models.
    """
    rubrics = {id(rubric): rubric for rubric in dataset.rubrics}.values()
    asked = sorted({role for each in (grader, *checks.values()) for role in each.roles})
    identity = {
        "items": digest([[item.id, dataset.grading_fingerprint(item)] for item in dataset.items]),
        "rubric": digest([rubric.to_dict() for rubric in rubrics]),
        "settings": grader.settings,
        "checks": {criterion.name: _check_identity(check) for criterion, check in checks.items()},
        "models": {role: model_identity(access.roles[role]) for role in asked},
    }
    few = grader.few_shot
    if few is not None and few.cluster is not None:
        identity["clusters"] = digest([few.cluster_of(str(item.id), item.metadata) for item in dataset.items])
    return GradingIdentity(dataset, msgspec.json.decode(msgspec.json.encode(identity)))


def _check_identity(check: Any) -> Any:
    """A metric that answers a criterion; a user's may change without anybody giving it another version."""
    source = source_digest(check.metric) if catalog.family(check.metric) == "custom" else None
    return check.identity if source is None else {"identity": check.identity, "source": source}


def digest(value: Any) -> str:
    """The SHA-256 of a JSON value."""
    return hashlib.sha256(canonical(value)).hexdigest()


class GradingWriter:
    """Keeps the items of a grading while it goes on.

    Args:
        store: Where they are kept.
        row: The grading as the store has it.
        terms: What makes it the same one.
        writer: Writes its items.
        clock: The time.
        is_new: Whether nothing was graded before.

    Attributes:
        token: Tells the grading's own calls of models from those of others.
    """

    def __init__(
        self, store: Store, row: RunRow, terms: GradingIdentity, *, writer: Writer, clock: Clock, is_new: bool
    ) -> None:
        self._store, self._row, self._terms, self._writer, self._clock = store, row, terms, writer, clock
        self._is_new = is_new
        self.token = str(row.facts.get("token", row.id))
        self._settings = terms.settings
        self._began = clock.elapsed_s()

    @property
    def run_id(self) -> str:
        """The grading's id in the store."""
        return self._row.id

    @property
    def mixed(self) -> tuple[str, ...]:
        """What changed while it was resumed."""
        return tuple(self._row.facts.get("mixed", ()))

    def stored(self, tell: Callable[[str], None]) -> Iterator[StoredItem]:
        """The items that were graded before and still are what they were.

        Args:
            tell: Told what is damaged; it is graded again.

        Raises:
            StoreError: The store fails.
        """
        dataset = self._terms.dataset
        for position, body in () if self._is_new else self._store.entries(self._row.id, on_damage=tell):
            try:
                entry = _DECODER.decode(body)
            except (msgspec.ValidationError, msgspec.DecodeError):
                tell(f"{self._store.where}: What is kept at position {position} is no graded item.")
                continue
            if position >= len(dataset) or entry.fingerprint != dataset.grading_fingerprint(dataset.items[position]):
                continue
            same = entry.settings == self._settings
            yield StoredItem(position, entry.item, _standing(entry.item, reuse=same))

    def add(self, position: int, item: ItemGrading) -> None:
        """Keep a graded item, in place of what was there.

        Raises:
            StoreError: It cannot be kept.
        """
        dataset = self._terms.dataset
        entry = _Entry(item, dataset.grading_fingerprint(dataset.items[position]), self._settings)
        self._writer.add_entries([(position, _ENCODER.encode(entry))])

    def close(self, grading: Grading) -> None:
        """Note how the grading ended.

        Raises:
            StoreError: It cannot be noted.
        """
        status, reason = grading_status(grading)
        self._writer.flush()
        self._end(status, reason)

    def give_up(self, error: DeemsterError) -> None:
        """Note that the grading cannot go on as it is set up.

        Raises:
            StoreError: It cannot be noted.
        """
        self._writer.flush()
        self._end("incomplete", str(error).partition("\n")[0])

    def _end(self, status: Literal["complete", "incomplete", "mixed"], reason: str | None) -> None:
        now = self._clock.elapsed_s()
        lasted = 0.0 if self._began is None or now is None else now - self._began
        self._store.finish(
            self._row.id,
            status=status,
            reason=reason,
            finished_at=format_time(self._clock.now()),
            duration_s=round((self._row.duration_s or 0.0) + lasted, 3),
            release=True,
        )


def grading_status(grading: Grading) -> tuple[Literal["complete", "incomplete", "mixed"], str | None]:
    """Whether a grading is complete, and why it is not."""
    lost = sum(judge.not_run for judge in grading.judges)
    if lost:
        votes = sum(judge.votes for judge in grading.judges)
        why = "" if grading.halted is None else f" ({grading.halted.rstrip('.')})"
        return "incomplete", f"{counted(lost, 'vote')} of {votes:,} were not asked for{why}"
    if grading.n_failed_items:
        return "incomplete", f"{counted(grading.n_failed_items, 'item')} of {len(grading):,} could not be graded"
    if grading.n_undecided:
        return "incomplete", f"{counted(grading.n_undecided, 'verdict')} could not be had: no judge was reached"
    return ("mixed" if grading.mixed else "complete"), None


def _standing(item: ItemGrading, *, reuse: bool) -> tuple[tuple[Vote, ...], ...] | None:
    """The votes of an item where some are to be cast again, none of another kind; None where all of them stand."""
    if item.criteria and not any(vote.failure is not None for each in item.criteria for vote in each.votes):
        return None
    if not reuse or not item.criteria:
        return ()
    return tuple(each.votes for each in item.criteria)


def carry_over_calls(before: ItemGrading, after: ItemGrading) -> ItemGrading:
    """An item graded again, whose votes also count what those used in whose place they are.

    Args:
        before: What was kept.
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
    terms: GradingIdentity, storage: RunStorage, *, name: str, seed: int, clock: Clock
) -> Iterator[GradingWriter]:
    """Where the items of a grading are kept, while it goes on.

    Args:
        terms: What makes it the same one.
        storage: How it is stored.
        name: What its dataset is called.
        seed: The grader's.
        clock: The time.

    Raises:
        StoreError: The store fails, or the grading that is to be resumed is not there or in other hands.
        ConfigurationError: The grading that is to be resumed is another one; every difference is listed.
    """
    store = storage.store
    row = _chosen(store, name, storage.resume) if storage.resume else None
    if row is None and storage.resume:
        storage.tell("There is no grading to resume; this is a new one.")
    with _begun(terms, store, name, seed, clock) if row is None else store.lease(row.id) as lease:
        is_new = row is None
        row = store.run(lease.run_id)
        if not is_new:
            row = _resumed(terms, row, storage)
        with store.writer(row.id) as writer:
            docket = GradingWriter(store, row, terms, writer=writer, clock=clock, is_new=is_new)
            try:
                yield docket
            except StoreError:
                raise
            except DeemsterError as error:
                docket.give_up(error)
                raise


def _chosen(store: Store, name: str, wanted: str | bool | None) -> RunRow | None:  # noqa: FBT001 - what `resume` says
    """The grading to go on with: by its id, else the last unfinished one of the dataset, else its last."""
    if isinstance(wanted, str):
        row = store.run(wanted, kind="grading")
        if row.kind != "grading":
            raise StoreError(Issue(f"`{row.id}` is a {row.kind}, which `grade` cannot resume.", store.where))
        return row
    own = store.runs(dataset=name, kind="grading")
    return next((row for row in own if row.status in _UNFINISHED), own[0] if own else None)


def _resumed(terms: GradingIdentity, row: RunRow, storage: RunStorage) -> RunRow:
    """A grading that goes on, with what changed noted.

    Raises:
        ConfigurationError: Something changed, and that is not allowed or cannot be.
    """
    store, changes = storage.store, differences(row.identity, terms.identity)
    if changes and not storage.allow_changed:
        raise ConfigurationError(
            [
                Issue(f"The grading `{row.id}` cannot be resumed: it is not the same any more."),
                *map(Issue, changes),
                Issue("Start a new one, or go on with `--allow-changed`: it is then marked as mixed."),
            ]
        )
    if changes:
        _refuse_other_shape(terms, row, store)
    kept: dict[str, Any] = {}
    if changes:
        kept = {"facts": {"mixed": [*row.facts.get("mixed", ()), *changes]}, "identity": terms.identity}
    lasted = row.duration_s
    store.amend(row.id, status="running", **kept)
    return msgspec.structs.replace(store.run(row.id), duration_s=lasted)


def _refuse_other_shape(terms: GradingIdentity, row: RunRow, store: Store) -> None:
    """Refuse what no permission can mix: other items, and votes of other judges.

    Raises:
        ConfigurationError: One of them changed.
    """
    issues = []
    if [kept.id for kept in store.samples(row.id)] != [item.id for item in terms.dataset.items]:
        issues.append(Issue("The dataset has other items, or has them in another order."))
    before, now = (_panel(identity["settings"]) for identity in (row.identity, terms.identity))
    if before != now:
        issues.append(Issue(f"The judges were {before}, and are {now}."))
    if issues:
        message = f"The grading `{row.id}` cannot be resumed even with `--allow-changed`: start a new one."
        raise ConfigurationError([Issue(message), *issues])


def _panel(settings: Mapping[str, Any]) -> str:
    """The judges of a grading, for a person."""
    names = listing([judge["id"] for judge in settings["judges"]])
    return names if settings["cascade"] is None else f"{names} one after the other"


def _begun(terms: GradingIdentity, store: Store, name: str, seed: int, clock: Clock) -> Lease:
    """Begin a grading; one that would have the id of another gets a number after it."""
    started, dataset = clock.now(), terms.dataset
    facts = RunFacts(
        id=f"{started:%Y%m%dT%H%M%SZ}-{digest([terms.identity, format_time(started)])[:6]}",
        kind="grading",
        dataset=name,
        fingerprint=dataset.fingerprint,
        seed=seed,
        samples=len(dataset),
        started_at=format_time(started),
        tool_version=__version__,
        identity=terms.identity,
        facts={"settings": terms.identity["settings"], "token": secrets.token_hex(8)},
    )
    for way in range(1, _WAYS):
        named = facts if way == 1 else msgspec.structs.replace(facts, id=f"{facts.id}-{way}")
        try:
            return store.begin(named, _samples(dataset), cards=())
        except RunExistsError:
            continue
    raise StoreError(Issue(f"There are {_WAYS:,} runs that would be called `{facts.id}`.", store.where))


def _samples(dataset: RubricDataset) -> Iterator[SampleFacts]:
    """The items without what they say: that stays in the dataset."""
    for position, item in enumerate(dataset.items):
        tags: Sequence[str] = item.tags
        yield SampleFacts(position, str(item.id), dataset.grading_fingerprint(item), tuple(tags), content=False)
