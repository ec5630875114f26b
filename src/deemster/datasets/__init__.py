"""Golden datasets, rubric datasets and votes: reading, checking, fingerprints, splits, writing."""

from deemster import lazy_names

_FILES = {
    "deemster.datasets.derived_verdicts": ("Derived", "derive"),
    "deemster.datasets.fingerprint": ("row_hash",),
    "deemster.datasets.golden_dataset": ("Dataset",),
    "deemster.datasets.join_ground_truth": ("with_ground_truth",),
    "deemster.datasets.rubric_dataset": ("RubricDataset",),
    "deemster.datasets.rubric_items": ("RubricItem", "Submission"),
    "deemster.datasets.sample_selection": ("SelectedPart",),
    "deemster.datasets.spreadsheet": ("SpreadsheetData", "read_spreadsheets"),
    "deemster.datasets.vote_block": ("Block", "Juror", "Probability", "Repeat"),
    "deemster.datasets.votes": ("Votes",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
