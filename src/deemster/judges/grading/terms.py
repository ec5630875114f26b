"""What tells one grader from every other, as plain JSON."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from typing import Any

from deemster.documents.canonical import canonical
from deemster.judges.grading.fewshot import FewShot
from deemster.judges.grading.showing import Style
from deemster.judges.prompts import file_text, text_hash
from deemster.rubrics.penalty import LengthPenalty


def penalty_terms(penalty: LengthPenalty | None) -> dict[str, Any] | None:
    """A length penalty; a function that counts by its name and its text, where that can be read.

    Args:
        penalty: The penalty; None for none.
    """
    if penalty is None:
        return None
    fields = {key: getattr(penalty, key) for key in penalty.__struct_fields__}
    if callable(count := fields["count"]):
        fields["count"] = f"{getattr(count, '__module__', '')}:{getattr(count, '__qualname__', type(count).__name__)}"
        try:
            fields["count"] += f" {text_hash(inspect.getsource(count))}"
        except (OSError, TypeError):
            # Typed at a prompt, or no Python: its name is all there is.
            return fields
    return fields


def example_terms(few: FewShot | None) -> dict[str, Any] | None:
    """Where examples come from, and all that judges see of them.

    Args:
        few: How examples are chosen; None for none.
    """
    if few is None:
        return None
    fields: dict[str, Any] = {key: getattr(few, key) for key in ("n", "balance", "reasons", "seed")}
    cluster = few.cluster if few.cluster is None or isinstance(few.cluster, str) else dict(few.cluster)
    found = {"train": few.train.fingerprint, **fields, "cluster": cluster}
    if few.reasons:
        # The fingerprint of a dataset is about its labels, not about why they are what they are.
        told = sorted((str(item.id), list(item.ground_truth_reasons or ())) for item in few.train.items)
        found["told"] = hashlib.sha256(canonical(told)).hexdigest()
    return found


def prompt_terms(style: Style, kinds: Iterable[str], *, whole: bool, examples: bool) -> dict[str, str]:
    """A hash of every prompt, and of the texts that it is put together from.

    Args:
        style: How questions are worded.
        kinds: The kinds of prompts that are used.
        whole: Whether a question is about a whole rubric.
        examples: Whether examples are shown.
    """
    found = {kind: style.prompt(kind).hash for kind in kinds}
    if whole:
        found["entry"] = text_hash(file_text("grade-entry"))
    if examples:
        found["example"] = text_hash(file_text("grade-example"))
    return found
