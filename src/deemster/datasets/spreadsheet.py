"""Reads labels of people and verdicts of judges from spreadsheets, with a rubric or one derived from the values."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from deemster.datasets._spreadsheet_columns import Columns, SheetKind, load_sheets
from deemster.datasets._spreadsheet_items import (
    derive_rubric,
    lay_out,
    read_label_items,
    read_verdict_items,
    require_verdicts,
)
from deemster.datasets._votes_reader import read_votes_items
from deemster.datasets.rubric_dataset import RubricDataset, read_dataset_items
from deemster.datasets.votes import Votes
from deemster.errors import InputError
from deemster.rubrics.rubric_definition import Rubric


class SpreadsheetData(NamedTuple):
    """What spreadsheets hold.

    Attributes:
        rubric: The rubric that was given, or that the values fit.
        votes: The verdicts of judges, None without a sheet of them.
        labels: The labels of people as a dataset, None without a sheet of them.
    """

    rubric: Rubric
    votes: Votes | None
    labels: RubricDataset | None


def read_spreadsheets(
    *,
    labels: str | Path | None = None,
    verdicts: str | Path | None = None,
    rubric: Rubric | str | Path | None = None,
    columns: Columns | None = None,
) -> SpreadsheetData:
    """Read labels and verdicts from CSV, TSV or .xlsx, ready for `compute_metrics(data.votes, data.labels)`.

    A sheet has a column for each criterion, or a column that names the criterion and one with the verdict. Columns are
    found by their names: `id`; `annotator` or `judge`; `criterion` and `verdict`; `tags` (split at a vertical bar). Any
    other column is metadata of the item where all its lines agree.

    Args:
        labels: What people say. Without a column of annotators it is the ground truth.
        verdicts: What judges say. Several lines of one judge about one item are repeats; the cell `error` is a call
            that gave no verdict, a blank cell is no call, and a column `error` holds why an item failed.
        rubric: The rubric, or its file. Without it the values decide: yes and no, MET and UNMET, 1 and 0 are binary,
            other numbers a scale, and anything else a choice without an order, which has no part in the score.
        columns: Which column holds what, where its name does not say it, such as `{"id": "Nr.", "judge": "Model"}`;
            `metadata` may name several.

    Raises:
        InputError: Neither sheet is given, or something in them is wrong; every issue is given with its line.
        MissingExtraError: A file is a workbook, and openpyxl is not installed.
    """
    paths: dict[SheetKind, str | Path] = {}
    if labels is not None:
        paths["labels"] = labels
    if verdicts is not None:
        paths["verdicts"] = verdicts
    if not paths:
        raise InputError("Give a spreadsheet of labels, of verdicts, or both.")
    known = rubric if isinstance(rubric, Rubric) or rubric is None else Rubric.load(rubric)
    sheets = load_sheets(paths, columns)
    layouts = dict(zip(sheets, lay_out(list(sheets.values()), known), strict=True))
    is_derived = known is None
    known = known or derive_rubric(list(layouts.values()))
    require_verdicts(layouts.values(), known)
    votes = None
    if "verdicts" in layouts:
        votes = Votes(**read_votes_items(read_verdict_items(layouts["verdicts"], known, is_derived=is_derived)))
    dataset = read_dataset_items(read_label_items(layouts["labels"], known)) if "labels" in layouts else None
    return SpreadsheetData(known, votes, dataset)
