"""Selects samples of a dataset: by tag, id or metadata, at random, or the first ones."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

import msgspec

from deemster.datasets.fingerprint import RowHashes, list_hash
from deemster.datasets.only_expression import Only, condition_text, value_text
from deemster.errors import DatasetError, Issue, did_you_mean, list_names, show_value, visible
from deemster.records import Sample, SampleFacts

_SECTIONS = ("metadata", "input")
_EXPECTED = "expected_output"
_GLOB = frozenset("*?[")
_MOST_KNOWN = 1000
_LONGEST = 200


class SelectedPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a dataset.

    Attributes:
        samples: How many samples it has.
        of: How many the whole dataset has.
        selection: How they were selected, written as flags of `deemster run`; None where that is left out.
    """

    samples: int
    of: int
    selection: str | None

    @property
    def stopped_early(self) -> bool:
        """Whether the run stopped once its margins were settled, as earlier versions could."""
        return self.selection is not None and self.selection.endswith("--until-decided")

    @property
    def is_of_failed(self) -> bool:
        """Whether it holds only what failed in an earlier run, so that a bound of the whole run says nothing of it."""
        return any(word.startswith("failed:") for word in shlex.split(self.selection or ""))

    def describe(self) -> str:
        """The part in words.

        >>> SelectedPart(samples=12, of=40, selection="--only tag:policy").describe()
        '12 of 40 samples, --only tag:policy'
        """
        how = "" if self.selection is None else f", {visible(self.selection, limit=_LONGEST)}"
        caution = " (the run stopped as soon as its margin was settled, which makes a drop look 18 to 20 % larger)"
        return f"{self.samples:,} of {self.of:,} samples{how}{caution if self.stopped_early else ''}"


class Rows(Protocol):
    """The samples of a dataset, wherever they are kept."""

    @property
    def digests(self) -> bytes | bytearray:
        """32 bytes of row hash for each."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Sample]: ...

    def pick(self, positions: list[int]) -> Iterator[Sample]:
        """Samples by position, in the order asked for."""
        ...

    def excerpt(self, positions: list[int]) -> Rows:
        """Samples by position that another process can read: as their places in a file, or as they are."""
        ...

    def fingerprint(self) -> str:
        """The hash over `[id, row_hash, metadata]` of every sample, by id."""
        ...


def rows_fingerprint(rows: Rows) -> str:
    """The hash over `[id, row_hash, metadata]` of every sample, by id."""
    ids = [sample.id for sample in rows]
    hashes = RowHashes(rows.digests)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    samples = zip(order, rows.pick(order), strict=True)
    return list_hash([sample.id, hashes[at], sample.metadata] for at, sample in samples)


class SelectedRows:
    """Some samples of a dataset, found by their positions in it.

    Args:
        rows: All samples.
        positions: The positions of those that are selected, in their order.

    Attributes:
        digests: 32 bytes of row hash for each.
    """

    def __init__(self, rows: Rows, positions: list[int]) -> None:
        self._rows, self._positions = rows, positions
        self.digests = b"".join(bytes(rows.digests[at * 32 : at * 32 + 32]) for at in positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Sample]:
        return self._rows.pick(self._positions)

    def pick(self, positions: list[int]) -> Iterator[Sample]:
        """Samples by position, in the order asked for."""
        return self._rows.pick([self._positions[position] for position in positions])

    def excerpt(self, positions: list[int]) -> Rows:
        """Samples by position that another process can read."""
        return self._rows.excerpt([self._positions[position] for position in positions])

    def fingerprint(self) -> str:
        """The hash over `[id, row_hash, metadata]` of every sample, by id."""
        return rows_fingerprint(self)


class Selection(NamedTuple):
    """Which samples of a dataset are wanted; see `Dataset.select`."""

    tags: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    where: Mapping[str, Sequence[Any]] = {}
    sample: int | None = None
    seed: int = 0
    limit: int | None = None
    has: tuple[str, ...] = ()

    def flags(self) -> str:
        """The selection as flags of `deemster run`."""
        words = [condition_text(Only(self.tags, self.ids, self.where))]
        if self.sample is not None:
            words.append(f"--sample {self.sample} --seed {self.seed}")
        if self.limit is not None:
            words.append(f"--limit {self.limit}")
        return " ".join(filter(None, words))

    def check(self) -> None:
        """Refuse what cannot be used.

        Raises:
            DatasetError: With every issue.
        """
        issues = [
            Issue(f"`{name}` is a whole number of at least {least}, not {show_value(value)}.")
            for name, value, least in (("sample", self.sample, 1), ("limit", self.limit, 1), ("seed", self.seed, 0))
            if value is not None and (type(value) is not int or value < least)
        ]
        if self.sample is not None and self.limit is not None:
            issues.append(Issue("`sample` draws samples at random and `limit` takes the first: give one of the two."))
        for path in self.where:
            section, dot, key = path.partition(".")
            if section not in _SECTIONS or not dot or not key:
                issues.append(Issue(f"`where` names a key such as `metadata.lang` or `input.lang`, not `{path}`."))
        if issues:
            raise DatasetError(issues)


def select_positions(samples: Iterable[Sample], selection: Selection, *, file: str | None) -> list[int]:
    """The positions of the samples that are wanted, in increasing order.

    Args:
        samples: All samples.
        selection: What is wanted.
        file: How messages name the dataset.

    Raises:
        DatasetError: No sample has a tag, an id or a key that is asked for, or none has all that is; the nearest is
            named.
    """
    search = SampleSearch(selection)
    found = [(position, sample.id) for position, sample in enumerate(samples) if search.takes(sample)]
    if issues := list(search.issues(file)):
        raise DatasetError(issues)
    if not found:
        raise DatasetError(Issue(f"No sample fits all of `{selection.flags()}`.", file))
    if selection.sample is not None:
        # The rank of a sample depends on its id alone: samples that are added change little, and 20 include the 10.
        found = sorted(found, key=lambda entry: random_rank(selection.seed, entry[1]))
        found = sorted(found[: selection.sample])
    return [position for position, _ in found[: selection.limit]]


def random_rank(seed: int, name: str) -> bytes:
    """The place of a sample in a random order, which depends on the seed and its id alone."""
    return hashlib.sha256(f"{seed}/{name}".encode()).digest()


class SampleSearch:
    """Tests samples, and remembers which of the wanted things no sample has."""

    def __init__(self, selection: Selection) -> None:
        self._wanted = selection
        self._tags: set[str] = set()
        self._known: set[str] = set()
        self._missing = set(selection.ids)
        self._exact = frozenset(selection.ids)
        self._globs = [name for name in selection.ids if _GLOB.intersection(name)]
        self._paths: dict[str, set[str]] = {path: set() for path in selection.where}
        self._lacking = set(selection.has)
        self._keys: set[str] = set()

    def takes(self, sample: Sample) -> bool:
        """Whether a sample is wanted. Every condition is tried on every sample, so that all misspelt ones are found."""
        wanted = self._wanted
        self._tags.update(sample.tags if wanted.tags else ())
        if len(self._known) < _MOST_KNOWN and wanted.ids:
            self._known.add(sample.id)
        by_id = {name for name in self._globs if fnmatchcase(sample.id, name)} | self._exact.intersection((sample.id,))
        self._missing -= by_id
        holds = [self._holds(sample, path, values) for path, values in wanted.where.items()]
        holds += [self._has(sample, names) for names in wanted.has]
        tagged = not wanted.tags or has_tag(sample, wanted.tags)
        return tagged and bool(by_id or not wanted.ids) and all(holds)

    def _holds(self, sample: Sample, path: str, values: Sequence[Any]) -> bool:
        held = _values(sample, path)
        if not held:
            self._note_keys(sample, path)
        fits = has_value(sample, path, values)
        if len(self._paths[path]) < _MOST_KNOWN or fits:
            self._paths[path].update(map(value_text, held))
        return fits

    def _has(self, sample: Sample, names: str) -> bool:
        found = has_one(sample, names.split("|"))
        if found:
            self._lacking.discard(names)
        elif names in self._lacking:
            self._note_keys(sample, _path(names.partition("|")[0]))
        return found

    def _note_keys(self, sample: Sample, path: str) -> None:
        section = path.partition(".")[0]
        content = getattr(sample, section)
        if isinstance(content, Mapping) and len(self._keys) < _MOST_KNOWN:
            self._keys.update(f"{section}.{name}" for name in content)

    def issues(self, file: str | None) -> Iterator[Issue]:
        """What no sample has."""
        for tag in self._wanted.tags:
            if tag not in self._tags:
                near = did_you_mean(tag, sorted(self._tags)) if self._tags else "No sample has a tag."
                yield Issue(f"No sample has the tag `{tag}`. {near}", file)
        for name in self._wanted.ids:
            if name in self._missing:
                kind = "matches" if _GLOB.intersection(name) else "has the id"
                yield Issue(f"No sample {kind} `{name}`. {did_you_mean(name, sorted(self._known))}", file)
        for path, values in self._wanted.where.items():
            held = self._paths[path]
            if not held:
                yield Issue(f"No sample has `{path}`. {did_you_mean(path, sorted(self._keys))}", file)
            elif missing := [value_text(value) for value in values if value_text(value) not in held]:
                near = did_you_mean(missing[0], sorted(held))
                yield Issue(f"No sample has {list_names(missing)} as its `{path}`. {near}", file)
        for names in self._wanted.has:
            if names in self._lacking:
                paths = [_path(name) for name in names.split("|")]
                near = did_you_mean(paths[0], sorted(self._keys)) if self._keys else "No sample has metadata."
                yield Issue(f"No sample has {list_names(paths)}. {near}", file)


def as_entries(value: Any) -> tuple[Any, ...]:
    """The entries of a list; any other value is the only one."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def has_tag(sample: Sample, tags: Iterable[str]) -> bool:
    """Whether a sample has one of the tags."""
    return not set(tags).isdisjoint(sample.tags)


def has_one(sample: Sample, names: Iterable[str]) -> bool:
    """Whether a sample has a value for one of the names: keys of its metadata, `expected_output`, `input.question`."""
    return any(_find(sample, _path(name)) is not None for name in names)


def has_value(sample: Sample | SampleFacts, path: str, values: Iterable[Any]) -> bool:
    """Whether a sample has one of the values at a path such as `metadata.lang`, or in a list that stands there."""
    held = _values(sample, path)
    return any(_equals(value, wanted) for wanted in values for value in held)


def _path(name: str) -> str:
    """The path of what a sample has: a bare name is a key of its metadata."""
    return name if name.partition(".")[0] in (*_SECTIONS, _EXPECTED) else f"metadata.{name}"


def _values(sample: Sample | SampleFacts, path: str) -> Sequence[Any]:
    """The values at a path; the entries of a list one by one."""
    found = _find(sample, path, default=())
    return found if isinstance(found, (list, tuple)) else (found,)


def _find(sample: Sample | SampleFacts, path: str, *, default: Any = None) -> Any:
    """What stands at a path such as `metadata.lang`, `metadata.author.lang` or `expected_output`."""
    section, dot, key = path.partition(".")
    return _find_key(getattr(sample, section), key, default) if dot else getattr(sample, section)


def _find_key(content: Any, key: str, default: Any) -> Any:
    if not isinstance(content, Mapping):
        return default
    if key in content:
        return content[key]
    first, dot, rest = key.partition(".")
    return _find_key(content[first], rest, default) if dot and first in content else default


def _equals(value: Any, wanted: Any) -> bool:
    """Whether a value is the one that is wanted; a text also means the number or the truth value that is written so."""
    return bool(value == wanted and isinstance(value, bool) == isinstance(wanted, bool)) or value_text(value) == wanted
