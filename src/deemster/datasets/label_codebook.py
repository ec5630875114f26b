"""Labels as small integers, and what all rubric items have in common, in a dataset or beside votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import getitem
from typing import Any

from deemster.datasets.item_files import ITEMS, Finding, Source, shown_path, text_findings
from deemster.errors import Issue, RubricError
from deemster.formats.json_values import SURROGATE, Path, kind_of, value_issues
from deemster.formats.schema_validation import Id, check_shape
from deemster.rubrics.criterion import MISSING, Criterion
from deemster.rubrics.rubric_definition import Rubric, read_rubric
from deemster.rubrics.verdicts import CANNOT_ASSESS


class Codebook:
    """The codes of every label of a rubric; a spelling that was resolved once is kept.

    Attributes:
        rubric: The rubric.
        tables: For each criterion, codes by label; None is not labelled.
    """

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric
        self.tables: list[dict[Any, int]] = []
        for criterion in rubric.criteria:
            table: dict[Any, int] = {label: code for code, label in enumerate(criterion.labels)}
            self.tables.append(table | {CANNOT_ASSESS: criterion.abstention, None: MISSING})

    def __len__(self) -> int:
        return len(self.tables)

    def quick(self, entries: Any) -> list[int] | None:
        """The codes of a list of plain labels, or None where something needs a closer look."""
        if type(entries) is not list or len(entries) != len(self.tables):
            return None
        try:
            return list(map(getitem, self.tables, entries))
        except (KeyError, TypeError):
            return None

    def code(self, position: int, label: str) -> int:
        """The code of a label of one criterion.

        Raises:
            RubricError: It is no label of it.
        """
        table = self.tables[position]
        if label not in table:
            table[label] = self.rubric.criteria[position].code(label)
        return table[label]

    def label(self, position: int, code: int) -> str | None:
        """How a code is written, None for a missing one.

        An abstention that the author gave no option for is written as the verdict that means it for any criterion.
        """
        if code < 0:
            return None
        criterion = self.rubric.criteria[position]
        is_injected = bool(criterion.options) and code >= len(criterion.options)
        return CANNOT_ASSESS if is_injected else criterion.labels[code]

    def labels(self, codes: Iterable[int]) -> list[str | None]:
        """How the codes of one item are written."""
        return [self.label(position, code) for position, code in enumerate(codes)]

    def codes(self, entries: Any, path: Path, found: list[Finding]) -> list[int] | None:
        """The codes of a list of labels, or None with the reasons added to what was found.

        Args:
            entries: A label or null for every criterion.
            path: Where the list stands.
            found: What is wrong so far.
        """
        quick = self.quick(entries)
        if quick is not None:
            return quick
        shown = shown_path(path)
        if not isinstance(entries, list):
            found.append(Finding(path, f"{shown} is a list with an entry for each criterion, not {kind_of(entries)}."))
            return None
        before = len(found)
        if wrong := self.length_issue(entries):
            found.append(Finding(path, f"{shown} {wrong}"))
        codes = []
        for position, entry in enumerate(entries[: len(self)]):
            if entry is None:
                codes.append(MISSING)
            elif isinstance(entry, str):
                codes.append(self.resolved(position, entry, (*path, position), found))
            else:
                message = f"{shown}[{position}] is a label or null, not {kind_of(entry)}."
                found.append(Finding((*path, position), message))
        return codes if len(found) == before else None

    def resolved(self, position: int, label: str, path: Path, found: list[Finding]) -> int:
        """The code of a label, or MISSING with the reason added to what was found."""
        try:
            return self.code(position, label)
        except RubricError as error:
            found.append(Finding(path, f"{shown_path(path)}: {error.issues[0].message}"))
            return MISSING

    def length_issue(self, entries: Sequence[Any]) -> str | None:
        """What is wrong with the length of a list that has an entry for each criterion."""
        if len(entries) == len(self):
            return None
        given = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
        return f"has {given}; the rubric has {len(self)} {'criterion' if len(self) == 1 else 'criteria'}."


def consensus(criterion: Criterion, codes: Iterable[int]) -> int:
    """What annotators agree on, or MISSING.

    Binary and nominal: the most frequent entry. Ordinal: the median place on the scale; as an abstention has no place,
    it is the consensus where more than half abstain, and there is none where exactly half do. A tie, or a median
    between two places, is no consensus.

    Args:
        criterion: What was annotated.
        codes: One for each annotator; missing ones do not count.
    """
    given = [code for code in codes if code != MISSING]
    if not given:
        return MISSING
    if criterion.kind == "ordinal":
        scored = sorted(place for code in given if (place := criterion.positions[code]) is not None)
        away = len(given) - len(scored)
        if away == len(scored):
            return MISSING
        if away < len(scored):
            low, high = scored[(len(scored) - 1) // 2], scored[len(scored) // 2]
            return criterion.positions.index(low) if low == high else MISSING
        given = [code for code in given if criterion.positions[code] is None]
    (code, count), *others = Counter(given).most_common(2)
    return MISSING if others and others[0][1] == count else code


def id_findings(name: Any, path: Path) -> Iterator[Finding]:
    """What is wrong with the id of an item or a judge."""
    if not (type(name) is str and name.isascii() and name.isprintable() and 0 < len(name) < 256 and name[0] != " "):
        shown = path[2:] if path[:1] == (ITEMS,) else path
        yield from (Finding(path, issue.message) for issue in check_shape(name, Id, path=shown))


def tag_findings(tags: Any, path: Path) -> Iterator[Finding]:
    """What is wrong with the tags of an item."""
    if not isinstance(tags, list):
        yield Finding(path, f"tags is a list of words, not {kind_of(tags)}.")
        return
    for position, tag in enumerate(tags):
        if type(tag) is str and tag.isalnum() and tag not in tags[:position]:
            continue
        if not isinstance(tag, str):
            yield Finding((*path, position), f"tags[{position}] is text, not {kind_of(tag)}. Quote it.")
        elif not tag.strip():
            yield Finding((*path, position), f"tags[{position}] is blank.")
        elif tag in tags[:position]:
            yield Finding((*path, position), f"tags[{position}]: `{tag}` is given twice.")
        else:
            yield from text_findings(tag, (*path, position))


def metadata_findings(metadata: Any, path: Path) -> Iterator[Finding]:
    """What is wrong with the metadata of an item."""
    if not isinstance(metadata, dict):
        yield Finding(path, f"metadata is a map, not {kind_of(metadata)}.")
        return
    for key, value in metadata.items():
        if type(key) is str and key.isascii() and (type(value) is int or (type(value) is str and value.isascii())):
            continue
        if isinstance(value, (dict, list)):
            yield Finding((*path, key), f"metadata is flat: `{key}` is text, a number, a boolean or null, "
                                        f"not {kind_of(value)}.")  # fmt: skip
        else:
            issues = value_issues({key: value}, ("metadata",))
            yield from (Finding((*path, key), message) for _, message in issues)


def annotation_codes(book: Codebook, annotations: Any, path: Path, found: list[Finding]) -> dict[str, list[int]]:
    """The codes of every annotator whose entries are good; what is wrong is added to what was found."""
    if not isinstance(annotations, dict):
        message = f"annotations is a map from annotators to lists, not {kind_of(annotations)}."
        found.append(Finding(path, message))
        return {}
    known = {}
    for name, entries in annotations.items():
        if not isinstance(name, str) or not name.strip() or SURROGATE.search(name):
            found.append(Finding((*path, name), f"annotations: {name!r:.40} is no name of an annotator."))
        codes = book.codes(entries, (*path, name), found)
        if codes is not None:
            known[name] = codes
    return known


def book_of(value: Any, path: Path, source: Source) -> tuple[Codebook | None, list[Issue]]:
    """The codes of a rubric that stands inside a file, or everything that is wrong with it.

    Args:
        value: A rubric, or what a file has for one.
        path: Where it stands.
        source: The file.
    """
    if isinstance(value, Rubric):
        return Codebook(value), []
    rubric, issues = read_rubric(value, None, path)
    if issues and source.document is not None:
        document, rest = source.document(path)
        rubric, issues = read_rubric(value, document, rest)
    return (None, issues) if rubric is None else (Codebook(rubric), [])
