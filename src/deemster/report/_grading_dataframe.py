"""A grading as pandas data frames: votes, or items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deemster.errors import InputError, did_you_mean
from deemster.formats.dataframe import dataframe

if TYPE_CHECKING:
    import pandas as pd

    from deemster.report.grading_result import Grading

FORMS = ("votes", "items")


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
