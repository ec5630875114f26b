"""Writes failed records as golden samples, which a person then completes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deemster.datasets import Dataset
from deemster.datasets.attack_facts import KEY
from deemster.datasets.dataset_format import SCHEMA
from deemster.datasets.fingerprint import row_hash
from deemster.errors import ConfigurationError, DatasetError, Issue, did_you_mean
from deemster.formats.json_values import to_json_value
from deemster.formats.write_rows import extend_rows, write_rows
from deemster.records import Execution, MetricCard, MetricScore, Output, Sample, SampleFacts
from deemster.store import RunRow, Store

FORMATS = ("yaml", "json", "jsonl")
TAG = "to-complete"
_ATTACK_KEYS = (KEY, "refusal_expected", "refusal_policy")


class Promotion(NamedTuple):
    """What was written.

    Attributes:
        ids: The ids of the new samples.
        known: Records that were left out because the dataset has their input already.
        incomplete: Whether a sample has no expected output that a person must fill in.
    """

    ids: tuple[str, ...]
    known: int
    incomplete: bool


def promote_failures(
    store: Store,
    runs: Iterable[RunRow],
    path: str | Path,
    *,
    name: str,
    metric: str | None = None,
    ids: Collection[str] = (),
    limit: int | None = None,
) -> Promotion:
    """Write failing records as golden samples without an expected output, for a person to complete.

    Each carries the tag `to-complete`, and in its metadata what was said and by what it failed. An attack keeps what
    its metadata say about the attack, and has nothing to complete.

    Args:
        store: Where the runs are.
        runs: Recordings or runs, scored.
        path: The dataset; made where there is none, else extended.
        name: The name of a dataset that is made.
        metric: Look at this metric alone.
        ids: Take these records, failing or not.
        limit: Take so many at most.

    Raises:
        InputError: A metric or record is unknown, nothing is scored yet, or the file cannot be read or written.
    """
    file = Path(path)
    existing = Dataset.load(file) if file.exists() else None
    collector = _RowCollector(existing or (), limit=limit)
    missing = set(ids)
    for run in runs:
        for sample, execution, cards in _choose_records(store, run, metric=metric, ids=ids):
            missing.discard(sample.id)
            collector.offer(run, sample, execution, cards)
    if missing:
        raise ConfigurationError([Issue(f"There is no record `{sample_id}`.") for sample_id in sorted(missing)])

    rows = collector.rows
    if rows and existing is None:
        header = {"schema_version": SCHEMA, "name": name}
        write_rows(file, header, rows, key="samples", known=FORMATS, error=DatasetError)
    elif rows:
        extend_rows(file, rows, key="samples", known=FORMATS, error=DatasetError)

    incomplete = any(TAG in row["metadata"]["tags"] for row in rows)
    return Promotion(tuple(row["id"] for row in rows), collector.known, incomplete)


class _RowCollector:
    """Collects records as golden samples, each input once; `known` counts those whose input was there before."""

    def __init__(self, existing: Iterable[Sample], *, limit: int | None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.known = 0
        self._limit = limit
        self._seen = {row_hash(sample.input, None) for sample in existing}

    def offer(self, run: RunRow, sample: SampleFacts, execution: Execution, cards: Sequence[MetricCard]) -> None:
        """Take a record, unless its input is known or there are enough."""
        digest = row_hash(sample.input, None)
        if digest in self._seen:
            self.known += 1
        elif self._limit is None or len(self.rows) < self._limit:
            self._seen.add(digest)
            self.rows.append(_row(run, sample, execution, cards))


def _choose_records(
    store: Store, run: RunRow, *, metric: str | None, ids: Collection[str]
) -> Iterator[tuple[SampleFacts, Execution, Sequence[MetricCard]]]:
    if not run.traits.has_metrics:
        raise ConfigurationError(f"`{run.id}` is a grading by a rubric, whose items neither pass nor fail.")
    cards = store.cards(run.id)
    names = [card.name for card in cards]
    if not ids:
        if not cards:
            raise ConfigurationError(
                f"The {run.kind} {run.id} is not scored yet: `deemster run --outputs {run.id} --metric ...`."
            )
        if metric is not None and metric not in names:
            raise ConfigurationError(f"No metric of {run.id} is called `{metric}`. {did_you_mean(metric, names)}")

    columns = [column for column, name in enumerate(names) if metric in (None, name)]
    samples = store.samples(run.id)
    sample = next(samples, None)
    for execution in store.executions(run.id):
        while sample is not None and sample.position < execution.position:
            sample = next(samples, None)
        if sample is None:
            return

        is_chosen = sample.id in ids if ids else _fails(execution, columns)
        if is_chosen:
            if sample.content is None:
                raise ConfigurationError(f"The input of `{sample.id}` is not stored, so it becomes no golden sample.")
            yield sample, execution, cards


def _fails(execution: Execution, columns: Iterable[int]) -> bool:
    # What was not scored yet has no marks.
    marks = [execution.marks[column] for column in columns if column < len(execution.marks)]
    return any(isinstance(mark, MetricScore) and not mark.success for mark in marks)


def _row(run: RunRow, sample: SampleFacts, execution: Execution, cards: Sequence[MetricCard]) -> dict[str, Any]:
    answer = execution.answer
    failed = {
        card.name: mark.score
        for card, mark in zip(cards, execution.marks, strict=False)
        if isinstance(mark, MetricScore) and not mark.success
    }
    error = getattr(answer, "message", "not run")
    outcome = {"said": answer.text} if isinstance(answer, Output) else {"error": error}

    metadata = sample.metadata or {}
    tags = sample.tags
    attack: dict[str, Any] = {}
    if metadata.get(KEY):
        attack = {key: to_json_value(metadata[key]) for key in _ATTACK_KEYS if key in metadata}
    else:
        # An attack expects no output, so that there is nothing to complete.
        tags = (*tags, TAG)

    return {
        "id": sample.id,
        "input": to_json_value(sample.input),
        "expected_output": to_json_value(sample.expected_output),
        "metadata": {
            "tags": [*dict.fromkeys(tags)],
            **attack,
            "promoted": {"run": run.id, **outcome, "failed": failed},
        },
    }
