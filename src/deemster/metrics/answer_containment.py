"""The metric `answer-containment-at-k`: is the expected text in the first k retrieved passages?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from deemster.formats.json_values import name_kind
from deemster.metrics._relevance_reader import entry_id, ranking_depth, retrieved_entries
from deemster.metrics._text_normalization import normalize_passage
from deemster.metrics.builtin_metric import BuiltinMetric, UnscoredError, expected_text, output_text, unscorable_sample
from deemster.metrics.option_checks import PositiveInteger
from deemster.records import Mark, Output, Sample


class AnswerContainmentAtK(BuiltinMetric, frozen=True, kw_only=True):
    """1 if the expected text stands in one of the first k passages, else 0: was the answer within reach.

    Reads `expected_output` (non-blank text), `metadata.k`, and the `text` of what the output retrieved; an entry
    without text matches nothing. Both sides NFC, spaces collapsed, trimmed, case-folded.
    Details: k, passages (entries among the first k), matched_rank (from 1, or null).

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.
        case_sensitive: True: case is kept. Default: false.

    Example: `containment@3`.

    Worked examples:
        - expected: 16 weeks
          retrieved:
          - {id: a, text: Kinds of leave.}
          - {id: b, text: Each parent has 16 weeks.}
          options: {k: 2}
        - expected: 16 weeks
          retrieved:
          - {id: a, text: Kinds of leave.}
          - {id: b, text: Each parent has 16 weeks.}
          options: {k: 1}
    """

    alias: ClassVar[str] = "answer-containment-at-k"
    core: ClassVar[bool] = True
    short: ClassVar[str | None] = "containment"
    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"k"})

    k: PositiveInteger | None = None
    case_sensitive: bool = False

    def expect(self, sample: Sample) -> tuple[str, int]:
        """The text to be found, and how deep to look.

        Raises:
            UnscoredError: The text is blank.
        """
        wanted = normalize_passage(expected_text(sample), fold=not self.case_sensitive)
        if not wanted:
            raise unscorable_sample("The expected text is blank, and every passage would hold it.")
        return wanted, self.k or ranking_depth(sample)

    def read(self, output: Output) -> Sequence[Any]:
        """The entries of the ranking."""
        return retrieved_entries(output)

    def grade(self, expected: tuple[str, int], actual: Sequence[Any]) -> Mark:
        """Look into the passages, best first."""
        wanted, k = expected
        passages = [_passage(entry, position) for position, entry in enumerate(actual)][:k]
        fold = not self.case_sensitive
        ranks = (
            rank for rank, text in enumerate(passages, start=1) if text and wanted in normalize_passage(text, fold=fold)
        )
        rank = next(ranks, None)
        return self.mark(float(rank is not None), {"k": k, "passages": len(passages), "matched_rank": rank})


def _passage(entry: Any, position: int) -> str | None:
    entry_id(entry, position)
    text = entry.get("text") if isinstance(entry, Mapping) else None
    if text is None:
        return None
    if not isinstance(text, str):
        raise UnscoredError(
            "bad_output", f"The text of entry {position} of what was retrieved is no text but {name_kind(text)}."
        )
    return output_text(Output(text))
