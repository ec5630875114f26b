"""Golden datasets, rubric datasets and votes: reading, checking, fingerprints, splits, writing.

What concerns rubrics is loaded when it is first used: a run over a golden dataset needs none of it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from deemster.datasets.fingerprint import row_hash
from deemster.datasets.golden_dataset import Dataset

if TYPE_CHECKING:
    from deemster.datasets.derived_verdicts import Derived, derive
    from deemster.datasets.join_ground_truth import with_truth
    from deemster.datasets.rubric_dataset import RubricDataset
    from deemster.datasets.rubric_items import RubricItem, Submission
    from deemster.datasets.votes import Block, Juror, Probability, Repeat, Votes

_FILES = {
    "derived_verdicts": ("Derived", "derive"),
    "rubric_items": ("RubricItem", "Submission"),
    "join_ground_truth": ("with_truth",),
    "rubric_dataset": ("RubricDataset",),
    "votes": ("Block", "Juror", "Probability", "Repeat", "Votes"),
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names}

__all__ = [
    "Block",
    "Dataset",
    "Derived",
    "Juror",
    "Probability",
    "Repeat",
    "RubricDataset",
    "RubricItem",
    "Submission",
    "Votes",
    "derive",
    "row_hash",
    "with_truth",
]


def __getattr__(name: str) -> Any:
    """Load what concerns rubrics on first use.

    Raises:
        AttributeError: The room has no such name.
    """
    if name not in _FILE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_FILE_OF[name]}"), name)
    globals()[name] = found
    return found
