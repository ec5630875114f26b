"""Outputs that were saved earlier and are graded without calling a target."""

from __future__ import annotations

import functools
import hashlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from deemster.errors import Issue, OutputsError, list_names, nearest, plural
from deemster.formats import Reading, file_format
from deemster.formats.document import Document, sort_issues
from deemster.formats.json_values import pointer, to_json_value
from deemster.formats.read_file import FORMATS, parse_document, quick_json
from deemster.formats.read_parquet import ParquetFile
from deemster.formats.read_table import TABLES
from deemster.formats.schema_validation import check_shape
from deemster.records import Output, Sample, TargetFailure
from deemster.targets._saved_outputs_jsonl import SavedOutputExcerpt, SavedOutputLines, load_lines
from deemster.targets._saved_outputs_table import parquet_entries, table_entries
from deemster.targets.saved_output_format import Answer, Found, OutputsFile, read_entry

_SHOWN = 20
_BEGINNING = 4096


class SavedOutputs:
    """Recorded answers by sample id and repetition.

    Args:
        outputs: A map of id to text, to a list of texts (one per repetition), or to an entry without `id`; or a list of
            entries `{id, output, repetition, trajectory, retrieved, usage, model, error}`.

    Attributes:
        repetitions: How many answers are recorded for every sample.
        path: The file they were loaded from.

    Raises:
        OutputsError: An entry is wrong, given twice, or missing a repetition; every issue is given.
    """

    path: str | None = None

    def __init__(self, outputs: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        is_listed = isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes, Mapping))
        value = to_json_value(list(outputs) if is_listed else outputs)
        held = _texts(value) or _memory(_read_root({"outputs": value}, None), file=None)
        self._recorded: _Memory | SavedOutputLines | SavedOutputExcerpt = held
        self.repetitions = held.repetitions
        self._digest: Callable[[], str] = functools.cache(held.digest)

    @classmethod
    def load(cls, path: str | Path) -> SavedOutputs:
        """Read saved outputs from JSON, YAML, JSONL, CSV, TSV, .xlsx or Parquet.

        A file without an extension is JSON where it begins as JSON does, else YAML.

        Raises:
            OutputsError: The file or an entry in it is wrong; every issue is given with its place.
            MissingExtraError: Parquet or .xlsx is read without its extra.
        """
        reading = Reading(str(path), error=OutputsError, surrogates=True)
        kind = file_format(
            path, reading, known=FORMATS, format=None if Path(path).suffix else _told_by_content(path, reading)
        )
        self = cls.__new__(cls)
        self._digest = functools.cache(functools.partial(_file_digest, Path(path)))
        if kind == "jsonl":
            self._recorded = load_lines(path, reading)
        elif kind == "parquet":
            self._recorded = _read_parquet(ParquetFile(path, reading))
        elif kind in TABLES:
            self._recorded = _memory(table_entries(reading.content(path), kind, reading), file=reading.file)
        else:
            self._recorded = _read_document(reading.content(path), kind, reading)
        self.repetitions, self.path = self._recorded.repetitions, str(path)
        return self

    def __len__(self) -> int:
        return len(self._recorded)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The SHA-256 of the file, or of the answers themselves.

        Raises:
            OutputsError: The file can no longer be read.
        """
        return {"outputs": self._digest()}

    def check(
        self,
        samples: Iterable[str | Sample],
        repetitions: int | None = None,
        *,
        whole: Iterable[str | Sample] | None = None,
    ) -> None:
        """Make sure that every sample has its answers and no other id is recorded.

        Args:
            samples: A dataset, or the ids of one.
            repetitions: How often each sample is graded; one recorded answer may be graded any number of times.
            whole: The dataset that the samples are a part of: answers to its other samples may be recorded too.

        Raises:
            OutputsError: Ids are missing or unknown, or the recorded repetitions do not fit.
        """
        ids = _Ids(samples)
        missing, unknown = self._recorded.compare(ids)
        if unknown and whole is not None:
            unknown = self._recorded.compare(_Ids(whole))[1]
        issues = []
        if missing:
            hint = " `--only answered` leaves such samples out." if len(missing) < len(ids) else ""
            issues.append(Issue(f"{plural(len(missing), 'sample')} without a saved output: {_ids(missing)}.{hint}"))
        if unknown:
            close = nearest(unknown[0], missing[:1000])
            hint = f" Is `{unknown[0]}` meant to be `{close}`?" if close else ""
            said = f"{plural(len(unknown), 'saved output')} for no sample of the dataset"
            issues.append(Issue(f"{said}: {_ids(unknown)}.{hint}"))
        if repetitions is not None and self.repetitions not in (1, repetitions):
            issues.append(
                Issue(
                    f"{self.repetitions} repetitions are recorded and {repetitions} are asked for. "
                    f"Record one output per sample, or ask for {self.repetitions}."
                )
            )
        if issues:
            raise OutputsError(issues)

    def missing(self, samples: Iterable[str | Sample]) -> list[str]:
        """The ids of the samples that have no answer.

        Args:
            samples: A dataset, or the ids of one.
        """
        return self._recorded.compare(_Ids(samples))[0]

    def answers(self, ids: Sequence[str], repetition: int = 0) -> list[Output | TargetFailure]:
        """The recorded answers of some samples, in the order asked for.

        Args:
            ids: Ids of samples.
            repetition: From 0; where one answer is recorded per sample, it serves every repetition.

        Raises:
            OutputsError: Nothing is recorded for a sample, or the file has changed since it was loaded.
        """
        return self._recorded.answers(ids, 0 if self.repetitions == 1 else repetition)

    def excerpt(self, ids: Iterable[str]) -> SavedOutputs:
        """The recorded answers of some samples, to be sent to another process.

        The answers of a JSONL or Parquet file stay in it: the other process reads them there.

        Args:
            ids: Ids of samples.

        Raises:
            OutputsError: Nothing is recorded for a sample.
        """
        part = SavedOutputs.__new__(SavedOutputs)
        part._recorded = self._recorded.excerpt(list(dict.fromkeys(ids)))  # noqa: SLF001 - of this class
        part.repetitions, part.path = self.repetitions, self.path
        return part


def _told_by_content(path: str | Path, reading: Reading) -> str:
    """The format of a file whose name does not say it."""
    with reading.open(path) as file:
        return "json" if file.read(_BEGINNING).removeprefix(BOM_UTF8).lstrip().startswith(b"{") else "yaml"


class _Ids(Collection[str]):
    """The ids of a dataset, read again each time they are gone through rather than kept."""

    def __init__(self, samples: Iterable[str | Sample]) -> None:
        self._samples: Any = samples if isinstance(samples, Sized) else list(samples)

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[str]:
        return (sample.id if isinstance(sample, Sample) else sample for sample in self._samples)

    def __contains__(self, name: object) -> bool:
        return any(name == known for known in self)


def _ids(names: Sequence[str]) -> str:
    return list_names(names, limit=_SHOWN)


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OutputsError(Issue(f"It can no longer be read: {error.strerror}.", str(path))) from None


class _Memory:
    """Answers that are kept in memory.

    Attributes:
        repetitions: How many are recorded for every sample.
        file: The file whose rows they are, where another process can read some of them.
        rows: Where the answers to each sample stand in that file.
    """

    file: ParquetFile | None = None
    rows: Mapping[str, list[int]] = {}

    def __init__(self, answers: dict[str, list[Answer]]) -> None:
        self._answers = answers
        self.repetitions = len(next(iter(answers.values())))

    def __len__(self) -> int:
        return len(self._answers)

    def digest(self) -> str:
        """The SHA-256 of all answers, whatever order they came in."""
        digest = hashlib.sha256()
        for name in sorted(self._answers):
            # A lone surrogate, which JSON cannot hold, must not keep answers from having a name.
            digest.update(repr((name, self._answers[name])).encode("utf-8", "backslashreplace"))
        return digest.hexdigest()

    def compare(self, ids: Collection[str]) -> tuple[list[str], list[str]]:
        """Ids that are not recorded, and recorded ids that are not asked for."""
        asked = set(ids)
        missing = [name for name in ids if name not in self._answers]
        return missing, [name for name in self._answers if name not in asked]

    def answers(self, ids: Sequence[str], repetition: int) -> list[Answer]:
        """Answers in the order asked for.

        Raises:
            OutputsError: Nothing is recorded for an id, or not so often.
        """
        try:
            return [self._answers[name][repetition] for name in ids]
        except KeyError as error:
            raise OutputsError(Issue("No output is saved.", sample=str(error.args[0]))) from None
        except IndexError:
            message = f"Repetition {repetition} is not recorded; there are {self.repetitions}."
            raise OutputsError(Issue(message)) from None

    def excerpt(self, ids: list[str]) -> _Memory:
        """The answers of some samples: as their places in a Parquet file, or as they are."""
        if self.file is not None:
            rows = [row for name in ids for row in self.rows[name]]
            if self.file.can_read_rows(rows):
                return _ParquetExcerpt(self.file, rows, self.repetitions)
        return _Memory({name: self._answers[name] for name in ids})


class _ParquetExcerpt(_Memory):
    """The answers of some samples of a Parquet file, which another process reads there.

    Args:
        source: The file.
        places: The rows in which the answers stand.
        repetitions: How many there are for each sample.
    """

    def __init__(self, source: ParquetFile, places: list[int], repetitions: int) -> None:
        self._source, self._places, self.repetitions = source, places, repetitions

    def __len__(self) -> int:
        return len(self._places) // self.repetitions

    @functools.cached_property
    def _answers(self) -> dict[str, list[Answer]]:  # type: ignore[override]
        reading = self._source.reading
        found = parquet_entries(self._source.read_rows(self._places), reading)
        return _memory(found, file=reading.file)._answers  # noqa: SLF001 - of its own kind


def _texts(outputs: Any) -> _Memory | None:
    """The answers of a map of ids to texts, the commonest form; None where it is another or something is wrong."""
    if not isinstance(outputs, dict) or not outputs or set(map(type, outputs.values())) != {str}:
        return None
    if not all(type(name) is str and name.strip() for name in outputs):
        return None
    return _Memory({name: [Output(text)] for name, text in outputs.items()})


def _memory(found: Iterable[Found | Issue], *, file: str | None) -> _Memory:
    """Put entries together by id; raise every issue at once."""
    issues: list[Issue] = []
    slots: dict[str, dict[int, Answer]] = {}
    places: dict[str, str | None] = {}
    for entry in found:
        if isinstance(entry, Issue):
            issues.append(entry)
            continue
        name, repetition, answer, where = entry
        held = slots.setdefault(name, {})
        places.setdefault(name, where)
        if repetition in held:
            issues.append(Issue(f"Repetition {repetition} is given twice.", where, name))
        held[repetition] = answer
    if not slots and not issues:
        issues.append(Issue("There are no outputs.", file))
    most = max((len(held) for held in slots.values()), default=0)
    for name, held in slots.items():
        gap = next((number for number in range(len(held)) if number not in held), None)
        if gap is not None:
            issues.append(Issue(f"Repetition {gap} is missing.", places[name], name))
        elif len(held) != most:
            message = f"{len(held)} of {most} repetitions are recorded; every sample needs the same number."
            issues.append(Issue(message, places[name], name))
    if issues:
        raise OutputsError(sort_issues(issues))
    return _Memory({name: [held[number] for number in range(len(held))] for name, held in slots.items()})


def _read_document(data: bytes, kind: str, reading: Reading) -> _Memory:
    """Read a file whose root is a map with `outputs`."""
    if kind == "json":
        with suppress(ValueError):
            value = quick_json(data)
            texts = _texts(value["outputs"]) if isinstance(value, dict) and value.keys() == {"outputs"} else None
            return texts or _memory(_read_root(value, None), file=reading.file)
    document = parse_document(data, kind, reading)
    return _memory(_read_root(document.value, document), file=reading.file)


def _read_root(root: Any, document: Document | None) -> Iterator[Found | Issue]:
    """Every recorded answer of a root, or what is wrong with it."""
    outputs = root.get("outputs") if isinstance(root, dict) else None
    if isinstance(outputs, dict):
        pairs: Iterable[tuple[Any, Any, Any]] = ((name, name, entry) for name, entry in outputs.items())
    else:
        pairs = ((at, None, entry) for at, entry in enumerate(outputs if isinstance(outputs, list) else ()))
    try:
        msgspec.convert(root, OutputsFile)
        is_malformed = not isinstance(outputs, (dict, list))
    except (msgspec.ValidationError, UnicodeEncodeError):
        is_malformed = True
    for step, name, entry in pairs:
        where = document.where(("outputs", step)) if document else pointer(("outputs", step))
        try:
            found = read_entry(entry, name=name)
        except ValueError as error:
            known = entry.get("id") if name is None else name
            yield Issue(str(error), where, known)
            continue
        if found is None:
            is_malformed = True
            continue
        for repetition, answer in found[1]:
            yield found[0], repetition, answer, where
    if is_malformed:
        yield from check_shape(root, OutputsFile, document=document, items="outputs", surrogates=True)


def _read_parquet(file: ParquetFile) -> _Memory:
    found = list(parquet_entries(file.read(), file.reading))
    held = _memory(found, file=file.reading.file)
    rows: dict[str, list[int]] = {}
    for row, entry in enumerate(found):
        rows.setdefault(str(entry[0]), []).append(row)
    held.file, held.rows = file, rows
    return held
