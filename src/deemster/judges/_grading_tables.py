"""A grading as pandas data frames and for a notebook: votes, or items."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from deemster.errors import InputError, did_you_mean, plural
from deemster.formats.dataframe import dataframe
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    import pandas as pd

    from deemster.judges.grading_result import Grading

FORMS = ("votes", "items")
_SHOWN = 20


def grading_dataframe(grading: Grading, form: str) -> pd.DataFrame:
    """The grading as a table: a row for each vote, or a row for each item with a column for each criterion.

    Raises:
        InputError: There is no such form.
        MissingExtraError: pandas is not installed.
    """
    if form not in FORMS:
        raise InputError(f"A grading has no table {form!r}. {did_you_mean(form, FORMS)}")
    return dataframe(_vote_rows(grading) if form == "votes" else _item_rows(grading), of="A grading")


def _vote_rows(grading: Grading) -> Iterator[dict[str, Any]]:
    for item in grading.items:
        for criterion in item.criteria:
            for vote in criterion.votes:
                yield {
                    "item_id": item.id,
                    "criterion": criterion.criterion,
                    "judge": vote.judge,
                    "repeat": vote.repeat,
                    "verdict": vote.verdict,
                    "value": vote.value,
                    "abstained": vote.abstained,
                    "failure": None if vote.failure is None else vote.failure.message,
                    "reason": vote.reason,
                }


def _item_rows(grading: Grading) -> Iterator[dict[str, Any]]:
    for item, given in zip(grading.items, grading.dataset.items, strict=True):
        yield {
            "item_id": item.id,
            "tags": list(given.tags),
            "score": item.score,
            "mean_agreement": item.mean_agreement,
            "cannot_assess_count": item.cannot_assess_count,
            "unscored": item.unscored,
            "error": item.error,
            **{criterion.criterion: criterion.verdict for criterion in item.criteria},
        }


def grading_notebook(grading: Grading) -> list[TextSection]:
    """What a notebook shows of a grading: its counts, what failed, and the verdicts of the first items."""
    lines: list[TextLine] = [(f"{plural(len(grading.items), 'item')}, {plural(len(grading.judges), 'judge')}.",)]
    if grading.n_failed_items:
        lines.append((f"Grading failed on {plural(grading.n_failed_items, 'item')}.",))
    if grading.halted is not None:
        lines.append(("Halted: ", DataText(grading.halted), "."))
    lines += [("Every call of judge ", DataText(judge), " failed.") for judge in grading.failed_judges]
    rows = list(islice(_item_rows(grading), _SHOWN))
    fixed = ("tags", "mean_agreement", "cannot_assess_count", "unscored")
    names = list(dict.fromkeys(name for row in rows for name in row if name not in fixed))
    if all(row["error"] is None for row in rows):
        names = [name for name in names if name != "error"]
    if len(grading.items) > len(rows):
        lines.append((f"The first {len(rows)} items; `to_dataframe('items')` has all.",))
    cells = [tuple(_cell(row.get(name)) for name in names) for row in rows]
    table = TextTable(tuple(map(DataText, names)), cells) if rows else None
    return [TextSection(("Grading",), lines, table, key="headline")]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else DataText(value)
