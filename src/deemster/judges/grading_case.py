"""The case of a grader: one item with its rubric, prompt and reference."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.datasets.rubric_items import RubricItem, Submission
from deemster.records import Output, Sample
from deemster.rubrics.length_penalty import submission_parts
from deemster.rubrics.rubric_definition import Rubric


class GradingCase(NamedTuple):
    """An item with what it takes from its dataset.

    Attributes:
        id: The item's id.
        rubric: What it is judged by.
        output: The part of the submission that judges see.
        hash: The SHA-256 of that part, in hexadecimal digits.
        submission: The whole submission, for what counts its length.
        prompt: What was asked for.
        reference: A good answer.
        metadata: The item's metadata.
    """

    id: str
    rubric: Rubric
    output: str
    hash: str
    submission: str | Mapping[str, str]
    prompt: str | None = None
    reference: str | None = None
    metadata: Mapping[str, Any] = {}

    @property
    def sample_and_output(self) -> tuple[Sample, Output]:
        """The case as a metric reads it: the prompt is the question, the reference the expected output."""
        question = {} if self.prompt is None else {"question": self.prompt}
        return Sample(self.id, question, self.reference, self.metadata), Output(self.output)


def make_case(dataset: RubricDataset, position: int) -> GradingCase:
    """The case of the item at a position of a dataset."""
    item = dataset.items[position]
    output = submission_output(item)
    return GradingCase(
        str(item.id),
        dataset.rubrics[position],
        output,
        text_digest(output),
        _submission(item),
        dataset.prompt if item.prompt is None else item.prompt,
        dataset.reference_submission if item.reference_submission is None else item.reference_submission,
        item.metadata,
    )


def submission_output(item: RubricItem) -> str:
    """What judges see of an item's submission."""
    return (
        item.submission.output if isinstance(item.submission, Submission) else submission_parts(item.submission).output
    )


def text_digest(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits.

    >>> text_digest("")[:16]
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def parts_digest(*parts: str | int) -> bytes:
    """The SHA-256 of several parts, none of which can run into the next.

    >>> parts_digest("ab", "c") == parts_digest("a", "bc")
    False
    """
    encoded = [str(part).encode() for part in parts]
    return hashlib.sha256(b"".join([b"%d:%b" % (len(part), part) for part in encoded])).digest()


def _submission(item: RubricItem) -> str | Mapping[str, str]:
    if isinstance(item.submission, Submission):
        return {"output": item.submission.output, "thinking": item.submission.thinking or ""}
    return item.submission
