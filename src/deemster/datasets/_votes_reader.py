"""Reads votes files into columns and checks them against their rubrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec

from deemster.datasets.label_codebook import Cell, Codebook, annotation_codes, check_id_and_tags, read_codebook
from deemster.datasets.vote_block import Juror
from deemster.datasets.vote_columns import Columns, cell_code
from deemster.datasets.votes_format import GradingSection, VotesFile
from deemster.errors import ConfigurationError, VotesError, did_you_mean
from deemster.formats.document import Reading
from deemster.formats.item_files import (
    ITEMS,
    IssueList,
    ItemFile,
    pause_garbage_collection,
    read_item_file,
    repeated_ids,
)
from deemster.formats.json_values import Path, is_number, name_kind, to_json_value
from deemster.formats.schema_validation import is_id
from deemster.records import FrozenDict
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric_scoring import Scoring
from deemster.rubrics.verdicts import CHECK
from deemster.rubrics.vote_aggregation import Rules

RULE_KEYS = Rules.__struct_fields__
SCORING_KEYS = Scoring.__struct_fields__
_WHAT = (
    "A votes file is JSON or JSONL and holds a rubric, the judges, and items with verdicts and people's labels. "
    "Spreadsheets are read by `deemster agreement VERDICTS.csv --labels LABELS.csv`."
)


def read_votes_file(path: str | FilePath) -> dict[str, Any]:
    """Read a votes file, JSON or JSONL, as the fields of `Votes`.

    Raises:
        VotesError: The file or something in it is wrong; every issue is given with its place.
    """
    reading = Reading(str(path), error=VotesError, keeps_not_finite=True)
    extension = FilePath(path).suffix.lower()
    if extension not in (".json", ".jsonl"):
        shown = f"The extension is `{extension}`" if extension else "There is no extension"
        reading.refuse(f"{shown}, so this is no votes file. {_WHAT}")
    with pause_garbage_collection():
        return _Reader(read_item_file(path, reading, known=("json", "jsonl"), item_key=None)).fields()


def read_votes_items(file: ItemFile) -> dict[str, Any]:
    """Check votes that were read from another kind of file, as the fields of `Votes`.

    Raises:
        VotesError: Something in it is wrong; every issue is given with its place.
    """
    with pause_garbage_collection():
        return _Reader(file).fields()


def read_votes_value(value: Mapping[str, Any]) -> dict[str, Any]:
    """Read votes from a map with the keys of a votes file, as the fields of `Votes`.

    Raises:
        VotesError: Something in it is wrong; every issue is given.
    """
    return read_votes_items(ItemFile(to_json_value(value), None, Reading("votes", error=VotesError)))


class _Reader:
    """Reads a root, fills columns, and collects what is wrong.

    It alone holds the file, so that the collector, once it is on again, finds nothing of it to look through.
    """

    def __init__(self, file: ItemFile) -> None:
        self._file = file
        self._found = IssueList(file)
        self._root: dict[str, Any] = file.root if isinstance(file.root, dict) else {}

    def fields(self) -> dict[str, Any]:
        """The fields of the votes.

        Raises:
            VotesError: Something is wrong; every issue is given.
        """
        self._refuse_other_files()
        root, found = self._root, self._found
        decoded = found.decode(self._without_rubrics(), VotesFile)
        judges = self._judges()
        rules, scoring = self._grading()
        self._normalized = scoring.normalize
        self._panel = {judge.id: position for position, judge in enumerate(judges)}
        self._columns = self._rubrics(len(judges))
        rows = root.get(ITEMS)
        rows = rows if isinstance(rows, list) else []
        for at, row in enumerate(rows):
            if isinstance(row, dict):
                found.item = row["id"] if isinstance(row.get("id"), str) else None
                self._item(at, row)
        found.issues += repeated_ids(rows, ITEMS, self._file.where)
        found.refuse()
        if decoded is None:
            raise AssertionError("a votes file without its shape passed the validator")
        used = sorted((columns for columns in self._columns.values() if columns and columns.rows), key=_first_row)
        return {
            "name": decoded.name,
            "dataset_fingerprint": decoded.dataset_fingerprint,
            "cluster": decoded.cluster,
            "sampling": decoded.sampling,
            "judges": judges,
            "rules": rules,
            "scoring": scoring,
            "ids": tuple(item.id for item in decoded.items),
            "tags": tuple(item.tags for item in decoded.items),
            "metadata": tuple(FrozenDict(item.metadata) for item in decoded.items),
            "blocks": tuple(columns.block(rules) for columns in used),
        }

    def _refuse_other_files(self) -> None:
        """Refuse what is no votes file at all with one issue that says what a votes file is.

        Raises:
            VotesError: It is none.
        """
        root, found = self._root, self._found
        if not isinstance(self._file.root, dict):
            kind = name_kind(self._file.root)
            found.add((), f"A votes file is a map with `judges` and `items`, not {kind}. {_WHAT}")
        elif "id" in root and "schema_version" not in root:
            found.add((), "This is an item; a votes file begins with `schema_version`, a rubric and judges.")
        elif "judges" not in root and not str(root.get("schema_version")).startswith("deemster.votes."):
            found.add((), f"This is no votes file: there are no `judges`. {_WHAT}")
        if found.issues:
            raise VotesError(found.issues)

    def _without_rubrics(self) -> dict[str, Any]:
        """The root with empty maps in place of rubrics, which have a shape of their own."""
        several = self._root.get("rubrics")
        blank: dict[str, Any] = {"rubric": {}}
        if isinstance(several, dict):
            blank["rubrics"] = {key: {} for key in several}
        return {key: blank.get(key, value) for key, value in self._root.items()}

    def _judges(self) -> tuple[Juror, ...]:
        """The judges as far as they can be read, so that the votes of each are known."""
        given = self._root.get("judges")
        judges: dict[str, Juror] = {}
        for at, entry in enumerate(given if isinstance(given, list) else ()):
            name = entry.get("id") if isinstance(entry, dict) else None
            if not isinstance(name, str):
                continue
            path: Path = ("judges", at, "id")
            if name.startswith(CHECK):
                self._found.add(path, f"judges[{at}]: `{name}` is no judge; votes of checks need no entry here.")
            if name in judges:
                self._found.add(path, f"judges[{at}]: `{name}` is given twice.")
            weight, cost = entry.get("weight", 1.0), entry.get("cost_usd")
            self._found.is_malformed |= not is_id(name)
            judges.setdefault(
                name,
                Juror(
                    name,
                    float(weight) if is_number(weight) else 1.0,
                    entry.get("model"),
                    float(cost) if is_number(cost) else None,
                ),
            )
        return tuple(judges.values())

    def _grading(self) -> tuple[Rules, Scoring]:
        try:
            given = msgspec.convert(self._root.get("grading", {}), GradingSection)
            rules = Rules(*(getattr(given, key) for key in RULE_KEYS))
            return rules, Scoring(*(getattr(given, key) for key in SCORING_KEYS))
        except (msgspec.ValidationError, ConfigurationError):
            self._found.is_malformed = True
            return Rules(), Scoring()

    def _rubrics(self, judges: int) -> dict[str | None, Columns | None]:
        """Columns by the key of their rubric; None for a rubric that cannot be read."""
        root = self._root
        several = root.get("rubrics")
        self._found.is_malformed |= ("rubric" in root) == ("rubrics" in root)
        if "rubric" in root and "rubrics" not in root:
            return {None: self._one_rubric(None, root["rubric"], ("rubric",), judges)}
        if "rubric" in root or not isinstance(several, dict):
            return {}
        return {key: self._one_rubric(key, one, ("rubrics", key), judges) for key, one in several.items()}

    def _one_rubric(self, key: str | None, value: Any, path: Path, judges: int) -> Columns | None:
        book, issues = read_codebook(value, path, self._file)
        self._found.issues += issues
        return Columns(key, book, judges) if book is not None else None

    def _item(self, at: int, row: dict[str, Any]) -> None:
        """Check an item and add it to its columns; what has no right shape is left to the validator."""
        path: Path = (ITEMS, at)
        found = self._found
        check_id_and_tags(row, path, found)
        found.is_malformed |= ("votes" in row) == ("error" in row)
        columns = self._find_columns(row, path)
        if columns is None:
            return
        columns.start(at)
        if "error" in row:
            columns.note("error", row["error"])
        elif isinstance(row.get("votes"), dict):
            for judge, cells in row["votes"].items():
                self._cast(columns, judge, cells, (*path, "votes", judge))
        if "ground_truth" in row:
            truth = columns.book.codes(row["ground_truth"], (*path, "ground_truth"), found)
            if truth is not None:
                columns.note("ground_truth", truth)
        if "annotations" in row:
            columns.annotate(annotation_codes(columns.book, row["annotations"], (*path, "annotations"), found))
        if isinstance(row.get("final"), list):
            columns.note("final", _final_codes(columns.book, row["final"], (*path, "final"), found))
        for key in ("penalty", "score"):
            if key not in row or not is_number(value := row[key]):
                continue
            if key == "score" and self._normalized and not 0 <= value <= 1:
                message = f"score must be a number from 0 to 1 where `normalize` is true, not {value!r:.40}."
                found.add((*path, key), message)
            columns.note(key, float(value))

    def _find_columns(self, row: dict[str, Any], path: Path) -> Columns | None:
        """The columns that an item belongs to."""
        here = (*path, "rubric")
        if None in self._columns:
            if "rubric" in row:
                self._found.add(here, "An item names its rubric only where the file has `rubrics`.")
            return self._columns[None]
        key = row.get("rubric")
        if self._columns and "rubric" not in row:
            self._found.add(path, "`rubric` is missing; it is a key of `rubrics`.")
        elif self._columns and isinstance(key, str) and key not in self._columns:
            known = [str(name) for name in self._columns]
            self._found.add(here, f"`{key}` is no key of `rubrics`. {did_you_mean(key, known)}")
        return self._columns.get(key) if isinstance(key, str) else None

    def _cast(self, columns: Columns, judge: Any, cells: Any, path: Path) -> None:
        position = self._panel.get(judge)
        if position is not None:
            columns.cast(position, cells, path, self._found)
        elif isinstance(judge, str) and judge.startswith(CHECK):
            columns.check(judge.removeprefix(CHECK), cells, path, self._found)
        elif self._panel:
            message = f"`{judge}` is none of the judges. {did_you_mean(str(judge), self._panel)}"
            self._found.add(path, message)


def _final_codes(book: Codebook, entries: list[Any], path: Path, found: IssueList) -> Sequence[Cell]:
    """The codes of the verdicts that a grader recorded: labels, null, or a failure where it came to none."""
    quick = book.quick(entries)
    if quick is not None:
        return quick
    book.check_length(entries, path, found)
    # A vote with details is no final verdict.
    found.is_malformed |= any(isinstance(entry, dict) and "failure" not in entry for entry in entries)
    codes = [cell_code(book, at, entry, (*path, at), found) for at, entry in enumerate(entries[: len(book)])]
    return codes + [MISSING] * (len(book) - len(codes))


def _first_row(columns: Columns) -> int:
    return columns.rows[0]
