"""The cells of a votes file: labels, votes with details, failures, and repeats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deemster.dataset.entries import Codebook
from deemster.dataset.source import Finding, key_findings, shown_path, text_findings
from deemster.documents.values import Path, kind_of
from deemster.errors import did_you_mean, listing
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING

FAILURES = {"infrastructure": FAILED, "parse": FAILED, "unknown": FAILED_WORST}
VOTE_KEYS = ("verdict", "p", "reason")
FAILURE_KEYS = ("failure", "message")
SLACK = 1e-6


def cell_code(book: Codebook, position: int, cell: Any, path: Path, found: list[Finding]) -> int:
    """The code of a cell that is not a list; MISSING with the reason added where it is wrong.

    Args:
        book: The codes of the rubric.
        position: The criterion.
        cell: A label, null, or a map.
        path: Where the cell stands.
        found: What is wrong so far.
    """
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return book.resolved(position, cell, path, found)
    if not isinstance(cell, dict):
        expected = "a label, null, a map with `verdict` or `failure`, or a list of repeats"
        found.append(Finding(path, f"{shown_path(path)} is {expected}, not {kind_of(cell)}."))
        return MISSING
    if "failure" in cell:
        return _failure(cell, path, found)
    return _vote(book, position, cell, path, found)


def _failure(cell: dict[str, Any], path: Path, found: list[Finding]) -> int:
    found += key_findings(cell, FAILURE_KEYS, path, what="a failed call")
    if "message" in cell:
        found += text_findings(cell["message"], (*path, "message"))
    category = cell["failure"]
    if isinstance(category, str) and category in FAILURES:
        return FAILURES[category]
    hint = did_you_mean(category, FAILURES) if isinstance(category, str) else f"Known: {listing(FAILURES)}."
    shown = f"`{category}`" if isinstance(category, str) else kind_of(category)
    found.append(Finding((*path, "failure"), f"{shown_path(path)}.failure is no category: {shown}. {hint}"))
    return MISSING


def _vote(book: Codebook, position: int, cell: dict[str, Any], path: Path, found: list[Finding]) -> int:
    if not cell.keys() <= _VOTE:
        found += key_findings(cell, VOTE_KEYS, path, what="a vote")
    if "reason" in cell:
        found += text_findings(cell["reason"], (*path, "reason"))
    if "p" in cell and (wrong := _p_fault(book, position, cell["p"])):
        found.append(Finding((*path, "p"), f"{shown_path(path)}.p {wrong}"))
    verdict = cell.get("verdict")
    if isinstance(verdict, str):
        table = book.tables[position]
        return table[verdict] if verdict in table else book.resolved(position, verdict, (*path, "verdict"), found)
    message = f"is a label, not {kind_of(verdict)}." if "verdict" in cell else "is missing."
    found.append(Finding((*path, "verdict"), f"{shown_path(path)}.verdict {message}"))
    return MISSING


_VOTE = frozenset(VOTE_KEYS)


def _p_fault(book: Codebook, position: int, p: Any) -> str | None:
    """What is wrong with the probabilities of a vote."""
    criterion = book.rubric.criteria[position]
    if criterion.kind == "binary":
        return None if _is_probability(p) else f"is P(MET), a number from 0 to 1, not {_shown(p)}."
    labels = [criterion.labels[code] for code in criterion.scored]
    if not isinstance(p, list):
        return f"is a list with a probability for each of {listing(labels)}, not {_shown(p)}."
    if len(p) != len(labels):
        return f"has {len(p)} numbers; it needs one for each of {listing(labels)}."
    for entry in p:
        if not _is_probability(entry):
            return f"holds numbers from 0 to 1, not {_shown(entry)}."
    total = math.fsum(p)
    return None if abs(total - 1) <= SLACK else f"sums to {total:.6g}, not to 1."


def _is_probability(value: Any) -> bool:
    return type(value) in (float, int) and 0 <= value <= 1


def _shown(value: Any) -> str:
    return f"{value!r:.40}" if type(value) in (float, int) else kind_of(value)


def probabilities_of(cell: Any) -> tuple[float, ...] | None:
    """The probabilities of a good cell, of repeats their mean; None where it has none.

    >>> probabilities_of([{"verdict": "MET", "p": 0.75}, "UNMET", {"verdict": "UNMET", "p": 0.25}])
    (0.5,)
    """
    cells: Sequence[Any] = cell if isinstance(cell, list) else [cell]
    given = [one["p"] for one in cells if isinstance(one, dict) and "p" in one]
    lists = [p if isinstance(p, list) else [p] for p in given]
    if not lists:
        return None
    return tuple(math.fsum(entries) / len(lists) for entries in zip(*lists, strict=True))
