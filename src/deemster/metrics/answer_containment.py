"""Was the answer within reach: the expected text in what was retrieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from deemster.metrics._relevance_reader import check_k, depth, entries_of, entry_id
from deemster.metrics._text_normalization import loose
from deemster.metrics.metric_contract import Scored, UnscoredError, expected_text, kind, text_of, unscorable_sample
from deemster.metrics.option_checks import flag
from deemster.records import Mark, Output, Sample


class AnswerContainmentAtK(Scored, frozen=True, kw_only=True):
    """1 if the expected text stands in one of the first k passages, else 0: was the answer within reach.

    Reads `expected_output` (non-blank text), `metadata.k`, and the `text` of what the output retrieved; an entry
    without text matches nothing. Both sides NFC, spaces collapsed, trimmed, case-folded.
    Details: k, passages (entries among the first k), matched_rank (from 1, or null).

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.
        case_sensitive: True: case is kept. Default: false.

    Example: `containment@3`.
    """

    alias: ClassVar[str] = "answer-containment-at-k"
    short: ClassVar[str | None] = "containment"
    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"k"})

    k: int | None = None
    case_sensitive: bool = False

    def validate(self) -> None:
        """Refuse options that make no sense."""
        check_k(self.k, self.alias)
        flag(self.case_sensitive, option="case_sensitive", metric=self.alias)

    def expect(self, sample: Sample) -> tuple[str, int]:
        """The text to be found, and how deep to look.

        Raises:
            UnscoredError: The text is blank.
        """
        wanted = loose(expected_text(sample), fold=not self.case_sensitive)
        if not wanted:
            raise unscorable_sample("The expected text is blank, and every passage would hold it.")
        return wanted, self.k or depth(sample)

    def read(self, output: Output) -> Sequence[Any]:
        """The entries of the ranking."""
        return entries_of(output)

    def grade(self, expected: tuple[str, int], actual: Sequence[Any]) -> Mark:
        """Look into the passages, best first."""
        wanted, k = expected
        passages = [_passage(entry, position) for position, entry in enumerate(actual)][:k]
        fold = not self.case_sensitive
        ranks = (rank for rank, text in enumerate(passages, start=1) if text and wanted in loose(text, fold=fold))
        rank = next(ranks, None)
        return self.mark(float(rank is not None), {"k": k, "passages": len(passages), "matched_rank": rank})


def _passage(entry: Any, position: int) -> str | None:
    entry_id(entry, position)
    text = entry.get("text") if isinstance(entry, Mapping) else None
    if text is None:
        return None
    if not isinstance(text, str):
        raise UnscoredError(
            "bad_output", f"The text of entry {position} of what was retrieved is no text but {kind(text)}."
        )
    return text_of(Output(text))
