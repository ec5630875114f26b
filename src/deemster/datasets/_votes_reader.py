"""Reading votes files into columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from deemster.datasets.item_files import (
    ITEMS,
    Finding,
    Source,
    collector_off,
    key_findings,
    shown_path,
    source_of_file,
    source_of_value,
    text_findings,
    version_findings,
)
from deemster.datasets.label_codebook import (
    Codebook,
    annotation_codes,
    book_of,
    id_findings,
    metadata_findings,
    tag_findings,
)
from deemster.datasets.vote_columns import Columns, cell_code
from deemster.datasets.votes import SCHEMA, Juror, Votes
from deemster.errors import ConfigurationError, Issue, VotesError, did_you_mean
from deemster.formats.document import Reading
from deemster.formats.json_values import Path, kind_of, thawed
from deemster.records import FrozenDict
from deemster.rubrics.rubric_scoring import Scoring
from deemster.rubrics.verdicts import CHECK
from deemster.rubrics.vote_aggregation import Rules

ROOT_KEYS = ("schema_version", "name", "dataset_fingerprint", "rubric", "rubrics", "judges", "grading", ITEMS)
ITEM_KEYS = (
    "id",
    "rubric",
    "ground_truth",
    "annotations",
    "tags",
    "metadata",
    "votes",
    "error",
    "penalty",
    "final",
    "score",
)
JUDGE_KEYS = ("id", "weight", "model")
RULE_KEYS = ("aggregation", "ordinal_aggregation", "nominal_aggregation")
SCORING_KEYS = ("abstention", "partial_credit", "normalize")
_KNOWN = frozenset(ITEM_KEYS)
_WHAT = (
    "A votes file is JSON or JSONL and holds a rubric, the judges, and items with verdicts and people's labels. "
    "How to make one from spreadsheets: docs/guide/judge-validation.md."
)
Bound = Literal["above 0", "of at least 0", ""]


def votes_of_file(path: str | FilePath) -> Votes:
    """Read a votes file, JSON or JSONL.

    Raises:
        VotesError: The file or something in it is wrong; every issue is given with its place.
    """
    reading = Reading(str(path), error=VotesError)
    extension = FilePath(path).suffix.lower()
    if extension not in (".json", ".jsonl"):
        shown = f"The extension is `{extension}`" if extension else "There is no extension"
        reading.refuse(f"{shown}, so this is no votes file. {_WHAT}")
    with collector_off():
        return _Reader(source_of_file(path, reading, known=("json", "jsonl"), item_key=None)).votes()


def votes_of_value(value: Mapping[str, Any]) -> Votes:
    """Read votes from a map with the keys of a votes file.

    Raises:
        VotesError: Something in it is wrong; every issue is given.
    """
    return _Reader(source_of_value(thawed(value), Reading("votes", error=VotesError))).votes()


class _Reader:
    """Reads a root, fills columns, and collects what is wrong."""

    def __init__(self, source: Source) -> None:
        if not isinstance(source.root, dict):
            message = (
                f"The root of a votes file is a map with `judges` and `items`, not {kind_of(source.root)}. {_WHAT}"
            )
            source.refuse([Finding((), message)])
        self._source = source
        self._root: dict[str, Any] = source.root
        self._found: list[Finding] = []
        self._issues: list[Issue] = []
        self._first: dict[str, int] = {}
        self._ids: list[str] = []
        self._tags: list[tuple[str, ...]] = []
        self._metadata: list[Mapping[str, Any]] = []
        self._normalized = False

    def votes(self) -> Votes:
        """The votes.

        Raises:
            VotesError: Something is wrong; every issue is given.
        """
        root = self._root
        if "id" in root and "schema_version" not in root:
            message = "This is an item; a votes file begins with `schema_version`, a rubric and judges."
            self._source.refuse([Finding((), message)])
        if "judges" not in root and not str(root.get("schema_version")).startswith("deemster.votes."):
            self._source.refuse([Finding((), f"This is no votes file: there are no `judges`. {_WHAT}")])
        self._found += key_findings(root, ROOT_KEYS, (), what="a votes file")
        self._found += version_findings(root, SCHEMA, required=True)
        for key in ("name", "dataset_fingerprint"):
            if root.get(key) is not None:
                self._found += text_findings(root[key], (key,))
        judges = self._judges()
        rules, scoring = self._grading()
        self._panel = {judge.id: position for position, judge in enumerate(judges)}
        self._columns = self._rubrics(len(judges))
        items = root.get(ITEMS)
        if isinstance(items, list):
            if not items:
                self._found.append(Finding((ITEMS,), "There are no items."))
            for at, row in enumerate(items):
                self._item(at, row)
        else:
            shown = f"is a list, not {kind_of(items)}" if ITEMS in root else "is missing"
            self._found.append(Finding((ITEMS,), f"`items` {shown}."))
        self._source._replace(issues=tuple(self._issues)).refuse(self._found)
        used = sorted((columns for columns in self._columns.values() if columns and columns.rows), key=_first_row)
        return Votes(
            name=root.get("name"),
            dataset_fingerprint=root.get("dataset_fingerprint"),
            judges=judges,
            rules=rules,
            scoring=scoring,
            ids=tuple(self._ids),
            tags=tuple(self._tags),
            metadata=tuple(self._metadata),
            blocks=tuple(columns.block(rules) for columns in used),
        )

    def _judges(self) -> tuple[Juror, ...]:
        given = self._root.get("judges")
        if not isinstance(given, list) or not given:
            shown = "is missing" if "judges" not in self._root else f"is a list of judges, not {kind_of(given)}"
            self._found.append(Finding(("judges",), f"`judges` {shown if given != [] else 'is empty'}."))
            return ()
        judges: dict[str, Juror] = {}
        for at, entry in enumerate(given):
            before = len(self._found)
            self._found += _judge_findings(entry, ("judges", at))
            if len(self._found) == before:
                if entry["id"] in judges:
                    self._found.append(Finding(("judges", at, "id"), f"judges[{at}]: `{entry['id']}` is given twice."))
                judges[entry["id"]] = Juror(entry["id"], float(entry.get("weight", 1.0)), entry.get("model"))
            elif isinstance(entry, dict) and isinstance(entry.get("id"), str):
                # Known by name, so that its votes are not called those of a stranger.
                judges.setdefault(entry["id"], Juror(entry["id"]))
        return tuple(judges.values())

    def _grading(self) -> tuple[Rules, Scoring]:
        given = self._root.get("grading", {})
        if not isinstance(given, dict):
            self._found.append(Finding(("grading",), f"`grading` is a map, not {kind_of(given)}."))
            return Rules(), Scoring()
        known = (*RULE_KEYS, *SCORING_KEYS)
        wrong = [*key_findings(given, known, ("grading",), what="`grading`")]
        for key in known:
            try:
                (Rules if key in RULE_KEYS else Scoring)(**{key: given[key]} if key in given else {})
            except ConfigurationError as error:
                wrong += [Finding(("grading", key), f"grading.{issue.message}") for issue in error.issues]
        if wrong:
            self._found += wrong
            return Rules(), Scoring()
        rules = Rules(**{key: given[key] for key in RULE_KEYS if key in given})
        scoring = Scoring(**{key: given[key] for key in SCORING_KEYS if key in given})
        self._normalized = scoring.normalize
        return rules, scoring

    def _rubrics(self, judges: int) -> dict[str | None, Columns | None]:
        """Columns by the key of their rubric; None for a rubric that cannot be read."""
        root = self._root
        several = root.get("rubrics")
        if "rubric" in root and "rubrics" in root:
            self._found.append(Finding(("rubrics",), "`rubric` stands beside `rubrics`; use one of the two."))
            return {}
        if "rubric" in root:
            return {None: self._one_rubric(None, root["rubric"], ("rubric",), judges)}
        if isinstance(several, dict) and several:
            return {key: self._one_rubric(key, one, ("rubrics", key), judges) for key, one in several.items()}
        shown = f"`rubrics` is a map of rubrics by key, not {kind_of(several)}." if several is not None else None
        message = shown if several != {} else "`rubrics` is empty."
        self._found.append(Finding(("rubrics",), message or "The rubric is missing: give `rubric` or `rubrics`."))
        return {}

    def _one_rubric(self, key: str | None, value: Any, path: Path, judges: int) -> Columns | None:
        book, issues = book_of(value, path, self._source)
        self._issues += issues
        return Columns(key, book, judges) if book is not None else None

    def _item(self, at: int, row: Any) -> None:
        path: Path = (ITEMS, at)
        found = self._found
        before = len(found)
        if not isinstance(row, dict):
            found.append(Finding(path, f"An item is a map, not {kind_of(row)}."))
            return
        if not row.keys() <= _KNOWN:
            found += key_findings(row, ITEM_KEYS, path, what="an item")
        name = row.get("id")
        if "id" not in row:
            found.append(Finding(path, "The id is missing."))
        else:
            found += id_findings(name, (*path, "id"))
        if isinstance(name, str) and (earlier := self._first.setdefault(name, at)) != at:
            first = self._source.place((ITEMS, earlier))
            found.append(Finding((*path, "id"), f"The id is given twice, first {first}."))
        if "tags" in row:
            found += tag_findings(row["tags"], (*path, "tags"))
        if "metadata" in row:
            found += metadata_findings(row["metadata"], (*path, "metadata"))
        columns = self._columns_of(row, path)
        if columns is not None:
            self._fill(columns, at, row, path)
        if len(found) > before:
            item = name if isinstance(name, str) else None
            found[before:] = [finding._replace(item=item) for finding in found[before:]]
            return
        self._ids.append(row["id"])
        self._tags.append(tuple(row.get("tags", ())))
        self._metadata.append(FrozenDict(row.get("metadata", {})))

    def _columns_of(self, row: dict[str, Any], path: Path) -> Columns | None:
        """The columns that an item belongs to."""
        if None in self._columns:
            if "rubric" in row:
                message = "An item names its rubric only where the file has `rubrics`."
                self._found.append(Finding((*path, "rubric"), message))
            return self._columns[None]
        key = row.get("rubric")
        if not isinstance(key, str):
            shown = f"rubric is a key of `rubrics`, not {kind_of(key)}." if "rubric" in row else "rubric is missing; it"
            message = shown if "rubric" in row else f"{shown} is a key of `rubrics`."
            if self._columns:
                self._found.append(Finding((*path, "rubric"), message))
            return None
        if key not in self._columns and self._columns:
            known = [str(name) for name in self._columns]
            message = f"`{key}` is no key of `rubrics`. {did_you_mean(key, known)}"
            self._found.append(Finding((*path, "rubric"), message))
        return self._columns.get(key)

    def _fill(self, columns: Columns, at: int, row: dict[str, Any], path: Path) -> None:
        """Add what an item holds to its columns."""
        found = self._found
        columns.start(at)
        if "error" in row:
            found += text_findings(row["error"], (*path, "error"))
            if "votes" in row:
                found.append(Finding((*path, "error"), "`error` stands beside `votes`; use one of the two."))
            columns.fail(row["error"])
        elif "votes" not in row:
            found.append(Finding(path, "votes is missing; give `error` where grading failed."))
        elif isinstance(row["votes"], dict):
            for judge, cells in row["votes"].items():
                self._cast(columns, judge, cells, (*path, "votes", judge))
        else:
            found.append(
                Finding((*path, "votes"), f"votes is a map from judges to lists, not {kind_of(row['votes'])}.")
            )
        if row.get("ground_truth") is not None:
            codes = columns.book.codes(row["ground_truth"], (*path, "ground_truth"), found)
            if codes is not None:
                columns.state(codes)
        if row.get("annotations") is not None:
            columns.annotate(annotation_codes(columns.book, row["annotations"], (*path, "annotations"), found))
        if row.get("final") is not None:
            codes = _final_codes(columns.book, row["final"], (*path, "final"), found)
            if codes is not None:
                columns.record(codes)
        bounds: tuple[tuple[str, Bound], ...] = (("penalty", "of at least 0"), ("score", ""))
        for key, least in bounds:
            if row.get(key) is None:
                continue
            if wrong := _number_issue(row[key], least=least):
                found.append(Finding((*path, key), f"{key} is {wrong}"))
            elif key == "score" and self._normalized and not 0 <= row[key] <= 1:
                message = f"score is a number from 0 to 1 where `normalize` is true, not {row[key]!r:.40}."
                found.append(Finding((*path, key), message))
            else:
                columns.note(key, float(row[key]))

    def _cast(self, columns: Columns, judge: Any, cells: Any, path: Path) -> None:
        position = self._panel.get(judge)
        if position is not None:
            columns.cast(position, cells, path, self._found)
        elif isinstance(judge, str) and judge.startswith(CHECK):
            columns.check(judge.removeprefix(CHECK), cells, path, self._found)
        elif self._panel:
            message = f"`{judge}` is none of the judges. {did_you_mean(str(judge), self._panel)}"
            self._found.append(Finding(path, message))


def _final_codes(book: Codebook, entries: Any, path: Path, found: list[Finding]) -> list[int] | None:
    """The codes of the verdicts that a grader recorded: labels, null, or a failure where it came to none."""
    listed = entries if isinstance(entries, list) else []
    failures = {at: entry for at, entry in enumerate(listed) if isinstance(entry, dict) and "failure" in entry}
    if not failures:
        return book.codes(entries, path, found)
    codes = book.codes([None if at in failures else entry for at, entry in enumerate(entries)], path, found)
    if codes is not None:
        for at, entry in failures.items():
            codes[at] = cell_code(book, at, entry, (*path, at), found)
    return codes


def _first_row(columns: Columns) -> int:
    return columns.rows[0]


def _judge_findings(entry: Any, path: Path) -> list[Finding]:
    shown = shown_path(path)
    if not isinstance(entry, dict):
        return [Finding(path, f"{shown} is a map with `id`, not {kind_of(entry)}.")]
    found = [*key_findings(entry, JUDGE_KEYS, path, what="a judge")]
    if "id" not in entry:
        found.append(Finding(path, f"{shown}: The id is missing."))
    else:
        found += id_findings(entry["id"], (*path, "id"))
        if isinstance(entry["id"], str) and entry["id"].startswith(CHECK):
            message = f"{shown}: `{entry['id']}` is no judge; votes of checks need no entry here."
            found.append(Finding((*path, "id"), message))
    weight = entry.get("weight", 1.0)
    wrong = _number_issue(weight, least="above 0")
    if wrong:
        found.append(Finding((*path, "weight"), f"{shown}.weight is {wrong}"))
    if entry.get("model") is not None:
        found += text_findings(entry["model"], (*path, "model"))
    return found


def _number_issue(value: Any, *, least: Bound) -> str | None:
    """What a number should be, where it is something else."""
    wanted = f"a finite number {least}".rstrip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{wanted}, not {kind_of(value)}."
    try:
        good = math.isfinite(float(value)) and (not least or value > 0 or (value == 0 and least != "above 0"))
    except OverflowError:
        good = False
    return None if good else f"{wanted}, not {value!r:.40}."
