"""Outputs that were saved earlier and are graded without calling a target."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, TypeAlias, cast

from deemster.errors import Issue, OutputsError, list_names, nearest, plural
from deemster.formats import Reading, file_format
from deemster.formats.json_values import to_json_value
from deemster.formats.read_file import FORMATS
from deemster.formats.read_parquet import ParquetFile
from deemster.formats.read_table import TABLES
from deemster.records import Output, Sample, TargetFailure
from deemster.targets._answers_in_memory import AnswersInMemory, join_answers
from deemster.targets._saved_outputs_document import format_by_content, read_outputs_document, read_value
from deemster.targets._saved_outputs_jsonl import SavedOutputExcerpt, SavedOutputLines, load_lines
from deemster.targets._saved_outputs_parquet import ParquetAnswers
from deemster.targets._saved_outputs_table import table_entries

_SHOWN = 20
RecordedAnswers: TypeAlias = AnswersInMemory | SavedOutputLines | SavedOutputExcerpt


class SavedOutputs:
    """Recorded answers by sample id and repetition.

    Args:
        outputs: A map of id to text, to a list of texts (one per repetition), or to an entry without `id`; or a list of
            entries `{id, output, repetition, trajectory, retrieved, usage, model, error}`.

    Attributes:
        repetitions: How many answers are recorded for every sample.
        path: The file they were loaded from.
        run: The stored run they come from.

    Raises:
        OutputsError: An entry is wrong, given twice, or missing a repetition; every issue is given.
    """

    path: str | None = None
    run: str | None = None

    def __init__(self, outputs: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        is_list = isinstance(outputs, Iterable) and not isinstance(outputs, (str, bytes, Mapping))
        self._recorded: RecordedAnswers = read_value(to_json_value(list(outputs) if is_list else outputs))
        self.repetitions = self._recorded.repetitions

    @classmethod
    def load(cls, path: str | Path) -> SavedOutputs:
        """Read saved outputs from JSON, YAML, JSONL, CSV, TSV, .xlsx or Parquet.

        A file without an extension is JSON where it begins as JSON does, else YAML.

        Raises:
            OutputsError: The file or an entry in it is wrong; every issue is given with its place.
            MissingExtraError: Parquet or .xlsx is read without its extra.
        """
        reading = Reading(str(path), error=OutputsError, surrogates=True)
        is_named = bool(Path(path).suffix)
        kind = file_format(path, reading, known=FORMATS, format=None if is_named else format_by_content(path, reading))

        self = cls.__new__(cls)
        self.path = str(path)
        if kind == "jsonl":
            self._recorded = load_lines(path, reading)
        elif kind == "parquet":
            self._recorded = ParquetAnswers(ParquetFile(path, reading))
        elif kind in TABLES:
            entries = table_entries(reading.content(path), kind, reading)
            self._recorded = AnswersInMemory(join_answers(entries, file=reading.file))
        else:
            self._recorded = read_outputs_document(reading.content(path), kind, reading)
        self.repetitions = self._recorded.repetitions
        return self

    @classmethod
    def of_run(cls, run: str, answers: dict[str, list[Output | TargetFailure]]) -> SavedOutputs:
        """The answers of a stored run.

        Args:
            run: Its id.
            answers: Those of each sample, in the order of repetitions.

        Raises:
            OutputsError: There are none.
        """
        if not answers:
            raise OutputsError(Issue(f"The run `{run}` has no sample whose outputs are all kept whole."))
        self = cls.__new__(cls)
        self.run = run
        self._recorded = AnswersInMemory(answers)
        self.repetitions = self._recorded.repetitions
        return self

    def __len__(self) -> int:
        return len(self._recorded)

    @functools.cached_property
    def identity(self) -> Mapping[str, Any]:
        """The run that they come from, or the SHA-256 of the file, or of the answers themselves.

        Raises:
            OutputsError: The file can no longer be read.
        """
        if self.run is not None:
            return {"outputs": self.run}
        if self.path is not None:
            return {"outputs": _file_digest(Path(self.path))}
        # Only a file may keep its answers to itself.
        return {"outputs": cast("AnswersInMemory", self._recorded).digest()}

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
        ids = _SampleIds(samples)
        missing, unknown = self._recorded.compare(ids)
        if unknown and whole is not None:
            _, unknown = self._recorded.compare(_SampleIds(whole))

        issues = [*_missing_issues(missing, len(ids)), *_unknown_issues(unknown, missing)]
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
        missing, _ = self._recorded.compare(_SampleIds(samples))
        return missing

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
        part.repetitions = self.repetitions
        part.path = self.path
        return part


class _SampleIds(Collection[str]):
    """The ids of a dataset, read again each time they are gone through rather than kept."""

    def __init__(self, samples: Iterable[str | Sample]) -> None:
        self._samples: Any = samples if isinstance(samples, Sized) else list(samples)

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[str]:
        return (sample.id if isinstance(sample, Sample) else sample for sample in self._samples)

    def __contains__(self, name: object) -> bool:
        return any(name == sample_id for sample_id in self)


def _missing_issues(missing: Sequence[str], n_samples: int) -> Iterator[Issue]:
    if missing:
        count = plural(len(missing), "sample")
        hint = " `--only answered` leaves such samples out." if len(missing) < n_samples else ""
        yield Issue(f"{count} without a saved output: {_list_ids(missing)}.{hint}")


def _unknown_issues(unknown: Sequence[str], missing: Sequence[str]) -> Iterator[Issue]:
    if unknown:
        count = plural(len(unknown), "saved output")
        close = nearest(unknown[0], missing[:1000])
        hint = f" Is `{unknown[0]}` meant to be `{close}`?" if close else ""
        yield Issue(f"{count} for no sample of the dataset: {_list_ids(unknown)}.{hint}")


def _list_ids(ids: Sequence[str]) -> str:
    return list_names(ids, limit=_SHOWN)


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OutputsError(Issue(f"It can no longer be read: {error.strerror}.", str(path))) from None
