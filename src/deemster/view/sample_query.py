"""Finds the samples of a run that a page of the viewer asks for: filters and sorts by columns, and by text if asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.datasets.only_expression import LATEST, Only, parse_only
from deemster.datasets.sample_selection import has_value
from deemster.errors import InputError, did_you_mean
from deemster.formats.json_values import json_bytes
from deemster.records import CAUSES, Output, SampleFacts, TargetFailure
from deemster.records.marks import NotApplicable, Unscored
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.run_summary import cohort_label
from deemster.results.sample_summary import failing_positions
from deemster.store.run_facts import TextTable
from deemster.view.opened_run import OpenedRun, mean_latencies, mean_lengths

TextField: TypeAlias = Literal["id", "input", "output", "expected", "passages", "messages", "reasons"]
TEXT_FIELDS: tuple[TextField, ...] = get_args(TextField)
_FIXED_ORDERS = ("position", "id", "latency", "chars", "pass_rate", "worst")
# Where the store keeps the texts of a field.
_FIELD_TABLES: Mapping[str, tuple[TextTable, ...]] = {
    "id": ("samples",),
    "input": ("contents",),
    "expected": ("contents",),
    "output": ("outputs",),
    "passages": ("outputs",),
    "messages": ("outputs", "marks"),
    "reasons": ("marks",),
}
# So many bytes of an id decide the order of samples by id.
_ID_BYTES = 64
_ID_BLOCK = 1 << 16
# The last queries of a run whose answers are kept, so that a page costs its rows alone.
_KEPT = 6
# So many samples are read to learn which metadata keys there are.
_READ_FOR_KEYS = 1000
# Four bytes a place: some orders of a million samples are kept.
Positions: TypeAlias = NDArray[np.int32]


class SampleQuery(NamedTuple):
    """Which samples are wanted, in which order.

    Attributes:
        metric: The metric that `min`, `max`, `passed` and `cause` speak of; None for the sample as a whole.
        min: The least mean score.
        max: The greatest mean score.
        passed: Whether it passed in every repetition.
        unstable: Whether it passed in some repetitions and not in all.
        cause: A cause for which it has no score; `any` for every one.
        only: What `--only` says of it, such as `tag:x`, `id:q*`, `lang=de` or `failed`; `tag:(untagged)` for no tag.
        min_ms: The least latency in milliseconds.
        max_ms: The greatest latency.
        text: Words that occur in it, upper or lower case.
        fields: Where the text is looked for.
        sort: What it is sorted by: `position`, `id`, `latency`, `chars`, `pass_rate`, `worst` or a metric.
        descending: Whether the greatest comes first. What has no value comes last in both orders.
    """

    metric: str | None = None
    min: float | None = None
    max: float | None = None
    passed: bool | None = None
    unstable: bool | None = None
    cause: str | None = None
    only: tuple[str, ...] = ()
    min_ms: float | None = None
    max_ms: float | None = None
    text: str = ""
    fields: tuple[str, ...] = TEXT_FIELDS
    sort: str = "position"
    descending: bool = False


def find_samples(run: OpenedRun, query: SampleQuery) -> Positions:
    """The places of the samples that a query asks for, in its order.

    Args:
        run: The run.
        query: What is asked.

    Raises:
        InputError: The query names what the run does not have.
        StoreError: The store fails.
    """
    kept = run.found.get(query)
    if kept is not None:
        return kept
    matched = _filter(run, query)
    found = _sort(run, query, matched)
    run.found[query] = found
    while len(run.found) > _KEPT:
        run.found.popitem(last=False)
    return found


def _filter(run: OpenedRun, query: SampleQuery) -> Positions:
    fits = np.ones(run.row.samples, dtype=np.bool_)
    for condition in _conditions(run, query):
        fits &= condition
    if query.only:
        fits &= _meant(run, parse_only(query.only))
    if query.text:
        _require_text(run, query, fits)
    return np.flatnonzero(fits).astype(np.int32)


def _conditions(run: OpenedRun, query: SampleQuery) -> Iterator[NDArray[np.bool_]]:
    """What columns say, condition by condition."""
    places = list(range(len(run.cards))) if query.metric is None else [_place(run, query.metric)]
    if query.min is not None or query.max is not None:
        if query.metric is None:
            raise InputError("`min` and `max` are about the scores of one metric: name it as `metric`.")
        yield from _within(run.mean_scores(places[0]), query.min, query.max)
    if query.passed is not None or query.unstable is not None:
        counts, repetitions = run.pass_counts(places), run.table.repetitions
        if query.passed is not None:
            yield (counts == repetitions) == query.passed
            yield counts >= 0
        if query.unstable is not None:
            yield ((counts > 0) & (counts < repetitions)) == query.unstable
    if query.cause is not None:
        yield _has_cause(run, places, query.cause)
    if query.min_ms is not None or query.max_ms is not None:
        yield from _within(mean_latencies(run.table), query.min_ms, query.max_ms)


def _place(run: OpenedRun, metric: str) -> int:
    if metric not in run.names:
        raise InputError(f"The run has no metric {metric!r:.100}. {did_you_mean(metric, run.names)}")
    return run.names.index(metric)


def _within(values: NDArray[np.float64], low: float | None, high: float | None) -> Iterator[NDArray[np.bool_]]:
    # NaN is neither above nor below anything. Scores are shown with nine decimals.
    if low is not None:
        yield values >= low - 1e-9
    if high is not None:
        yield values <= high + 1e-9


def _has_cause(run: OpenedRun, places: Sequence[int], cause: str) -> NDArray[np.bool_]:
    causes = run.table.causes
    found = np.zeros(run.table.samples, dtype=np.bool_)
    if cause != "any" and cause not in CAUSES:
        raise InputError(f"No cause is called {cause!r:.100}. {did_you_mean(cause, CAUSES)}")
    for place in places:
        codes = causes[:, :, place]
        fits = (codes != SCORED) & (codes != OUTSIDE) if cause == "any" else codes == CAUSES.index(cause) + 1
        found |= fits.any(axis=1)
    return found


def _has_tag(run: OpenedRun, tag: str) -> NDArray[np.bool_]:
    found = np.zeros(run.table.samples, dtype=np.bool_)
    for name, positions in run.table.cohorts:
        if cohort_label(name) == tag:
            found[positions] = True
    return found


def _meant(run: OpenedRun, only: Only) -> NDArray[np.bool_]:
    """Which samples `only` speaks of; what failed, failed in this run."""
    if set(only.failed) - {LATEST}:
        raise InputError("`failed` speaks of the run that is shown; `failed:RUN` is for `deemster run`.")
    meant = np.ones(run.row.samples, dtype=np.bool_)

    if only.tags:
        meant &= np.any([_has_tag(run, tag) for tag in only.tags], axis=0)
    if only.failed:
        meant &= run.pass_counts(range(len(run.cards))) != run.table.repetitions
    if only.answered:
        meant &= ~np.isnan(mean_lengths(run.table))

    if only.ids or only.where:
        has_content = any(path.startswith("input.") for path in only.where)
        for sample in run.store.samples(run.row.id, content=has_content):
            meant[sample.position] &= _is_named(sample, only)
    return meant


def _is_named(sample: SampleFacts, only: Only) -> bool:
    """Whether a sample has a wanted id, and the wanted values."""
    is_named = not only.ids or any(fnmatchcase(sample.id, pattern) for pattern in only.ids)
    return is_named and all(has_value(sample, path, values) for path, values in only.where.items())


def _require_text(run: OpenedRun, query: SampleQuery, fits: NDArray[np.bool_]) -> None:
    """Leave out the samples in whose texts the words do not occur.

    The store finds the rows whose bytes may hold the words, which is quick. Only these are looked at more closely.
    """
    words, fields = query.text.lower(), set(query.fields)
    wanted = bytearray(fits)
    for table in dict.fromkeys(table for name in query.fields for table in _FIELD_TABLES[name]):
        for position, row in run.store.rows_with_text(run.row.id, words, table, wanted=wanted.__getitem__):
            if wanted[position] and words in _joined(_row_texts(table, row, fields)):
                wanted[position] = 0
    fits &= ~np.frombuffer(wanted, dtype=np.bool_)


def _row_texts(table: TextTable, row: Any, fields: set[str]) -> Iterator[Any]:
    """The texts of some fields in a row of the store."""
    if table == "samples":
        yield row
    elif table == "contents":
        yield row.input if "input" in fields else None
        yield row.expected_output if "expected" in fields else None
    elif isinstance(row, Output):
        yield row.text if "output" in fields else None
        yield row.retrieved if "passages" in fields else None
        yield msgspec.to_builtins(row.trajectory) if "messages" in fields else None
    elif isinstance(row, TargetFailure):
        yield row.message if "messages" in fields else None
    for mark in row if table == "marks" else ():
        if "reasons" in fields and not isinstance(mark, NotApplicable):
            yield mark.details
        if "messages" in fields and isinstance(mark, Unscored):
            yield mark.message


def metadata_values(metadata: Mapping[str, Any] | None, key: str) -> list[str]:
    """The values of a metadata key as texts; those of a list one by one.

    Args:
        metadata: The metadata of a sample.
        key: The key.
    """
    value = None if metadata is None else metadata.get(key)
    if value is None:
        return []
    entries = value if isinstance(value, (list, tuple)) else [value]
    return [entry if isinstance(entry, str) else json_bytes(entry).decode() for entry in entries]


def _joined(values: Any) -> str:
    return "\n".join(text_words(value) for value in values if value is not None).lower()


def text_words(value: Any) -> str:
    """The texts in a JSON value, one a line; keys are left out."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(map(text_words, value.values()))
    if isinstance(value, (list, tuple)):
        return "\n".join(map(text_words, value))
    return "" if value is None else str(value)


def _sort(run: OpenedRun, query: SampleQuery, positions: Positions) -> Positions:
    if query.sort == "position":
        return positions[::-1] if query.descending else positions
    if query.sort == "id":
        order = np.argsort(_id_keys(run, positions), kind="stable")
        return positions[order[::-1] if query.descending else order]
    values = _sort_values(run, query.sort)[positions]
    keys = -values if query.descending else values
    # NaN sorts to the end.
    return positions[np.argsort(keys, kind="stable")]


def _id_keys(run: OpenedRun, positions: Positions) -> NDArray[np.bytes_]:
    """The ids of some samples as bytes, which sort as code points do; in blocks, since texts take much room."""
    blocks = (positions[start : start + _ID_BLOCK].tolist() for start in range(0, len(positions), _ID_BLOCK))
    keys = [np.array([name.encode()[:_ID_BYTES] for name in run.samples.ids(block)], dtype=bytes) for block in blocks]
    return np.concatenate(keys) if keys else np.empty(0, dtype=bytes)


def _sort_values(run: OpenedRun, sort: str) -> NDArray[np.float64]:
    if sort in run.names:
        return run.mean_scores(run.names.index(sort))
    if sort == "latency":
        return mean_latencies(run.table)
    if sort == "chars":
        return mean_lengths(run.table)
    if sort == "pass_rate":
        return _pass_rates(run)
    if sort == "worst":
        return worst_ranks(run)
    known = [*_FIXED_ORDERS, *run.names]
    raise InputError(f"Samples cannot be sorted by {sort!r:.100}. {did_you_mean(sort, known)}")


def _pass_rates(run: OpenedRun) -> NDArray[np.float64]:
    counts = run.pass_counts(range(len(run.cards)))
    return np.where(counts < 0, np.nan, counts / run.table.repetitions)


def worst_ranks(run: OpenedRun) -> NDArray[np.float64]:
    """For each sample its rank among those that did not pass, the worst first; NaN for the others.

    Args:
        run: The run.
    """
    positions = failing_positions(run.table, [card.higher_is_better for card in run.cards])
    ranks = np.full(run.table.samples, np.nan)
    ranks[positions] = np.arange(len(positions))
    return ranks


def neighbours(found: NDArray[np.integer[Any]], position: int) -> dict[str, Any]:
    """The samples before and after one, and its place among them; None where it is not one of them."""
    at = np.flatnonzero(found == position)
    place = int(at[0]) if len(at) else None
    return {
        "previous": int(found[place - 1]) if place else None,
        "next": int(found[place + 1]) if place is not None and place + 1 < len(found) else None,
        "place": place,
        "matched": len(found),
    }


def metadata_keys(run: OpenedRun) -> dict[str, list[str]]:
    """The metadata keys of the first samples of a run, with some of their values; `tags` stand apart.

    Args:
        run: The run.

    Raises:
        StoreError: The store fails.
    """
    found: dict[str, set[str]] = {}
    for sample in islice(run.store.samples(run.row.id, content=False), _READ_FOR_KEYS):
        for key in sample.metadata or ():
            if key != "tags":
                found.setdefault(key, set()).update(metadata_values(sample.metadata, key))
    return {key: sorted(values)[:50] for key, values in sorted(found.items())}
