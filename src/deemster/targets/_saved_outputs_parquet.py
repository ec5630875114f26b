"""Saved outputs in Parquet: kept in memory, and sent to another process as the rows in which they stand."""

from __future__ import annotations

import functools

from deemster.formats.read_parquet import ParquetFile
from deemster.targets._answers_in_memory import AnswersInMemory, join_answers
from deemster.targets._saved_outputs_table import parquet_entries
from deemster.targets.saved_output_format import Answer, SavedAnswer


class ParquetAnswers(AnswersInMemory):
    """The answers of a Parquet file.

    Args:
        file: The file.

    Raises:
        OutputsError: Something in it is wrong; every issue is given.
    """

    def __init__(self, file: ParquetFile) -> None:
        entries = list(parquet_entries(file.read(), file.reading))
        super().__init__(join_answers(entries, file=file.reading.file))
        self._file = file
        self._rows: dict[str, list[int]] = {}
        for row, saved in enumerate(entries):
            if isinstance(saved, SavedAnswer):
                self._rows.setdefault(saved.sample_id, []).append(row)

    def excerpt(self, ids: list[str]) -> AnswersInMemory:
        """The answers of some samples: as their rows in the file, or as they are where it cannot be read in part."""
        rows = [row for name in ids for row in self._rows[name]]
        if self._file.can_read_rows(rows):
            return _ParquetExcerpt(self._file, rows, self.repetitions)
        return super().excerpt(ids)


class _ParquetExcerpt(AnswersInMemory):
    """The answers of some samples of a Parquet file, which another process reads there.

    Args:
        source: The file.
        row_numbers: The rows in which the answers stand.
        repetitions: How many there are for each sample.
    """

    def __init__(self, source: ParquetFile, row_numbers: list[int], repetitions: int) -> None:
        self.repetitions = repetitions
        self._source = source
        self._row_numbers = row_numbers

    def __len__(self) -> int:
        return len(self._row_numbers) // self.repetitions

    @functools.cached_property
    def _answers(self) -> dict[str, list[Answer]]:  # type: ignore[override]
        reading = self._source.reading
        entries = parquet_entries(self._source.read_rows(self._row_numbers), reading)
        return join_answers(entries, file=reading.file)
