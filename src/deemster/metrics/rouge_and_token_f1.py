"""Metrics of word tokens: `rouge-l` (longest common subsequence) and `token-f1` as in SQuAD."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from rapidfuzz.distance import LCSseq

from deemster.metrics._text_normalization import word_tokens
from deemster.metrics.builtin_metric import BuiltinMetric, UnscoredError, expected_texts
from deemster.metrics.option_checks import PositiveNumber
from deemster.records import Mark, Sample

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


class RougeL(BuiltinMetric, frozen=True, kw_only=True):
    """ROUGE-L: 2·LCS/(m + n), for the longest common subsequence of the word tokens of both sides.

    Reads `expected_output` (text, m tokens) and the output's text (n tokens). Precision is LCS/n, recall LCS/m.
    No token on either side scores 1, on one side 0. Details: lcs, expected_tokens, actual_tokens, precision, recall.

    Options:
        max_cells: Largest m·n; above it the output is unscored, `too_large`. Default: 2.5e9, 50,000 x 50,000 tokens.

    Example: `rouge-l` gives `the cat lay on the mat` for `the cat sat on the mat` 10/12 = 0.8333.

    Worked examples:
        - {expected: the cat sat on the mat, output: the cat lay on the mat}
        - {expected: the cat sat on the mat, output: on the mat the cat sat}
    """

    alias: ClassVar[str] = "rouge-l"
    core: ClassVar[bool] = True
    family: ClassVar[str] = "lexical"

    max_cells: PositiveNumber = 2.5e9

    def grade(self, expected: str, actual: str) -> Mark:
        """Find the longest common subsequence.

        Raises:
            UnscoredError: The texts are too long for each other.
        """
        wanted, given = word_tokens(expected), word_tokens(actual)
        m, n = len(wanted), len(given)
        if m * n > self.max_cells:
            raise UnscoredError("too_large", f"{m} x {n} tokens are more than `max_cells`, {self.max_cells:g}.")
        lcs = LCSseq.similarity(wanted, given)
        return self.mark(
            2 * lcs / (m + n) if m or n else 1.0,
            {
                "lcs": lcs,
                "expected_tokens": m,
                "actual_tokens": n,
                "precision": lcs / n if n else None,
                "recall": lcs / m if m else None,
            },
        )


class TokenF1(BuiltinMetric, frozen=True, kw_only=True):
    """Token F1 as in SQuAD: 2·common/(m + n), for the multisets of tokens of both sides.

    Reads `expected_output` (text, or a list of which the best counts) and the output's text. Tokens: lower case,
    punctuation dropped, `a an the` dropped, split on white space. SQuAD's script drops only ASCII punctuation; here the
    punctuation of all of Unicode is dropped. No token on either side scores 1, on one side 0.
    Details: common, expected_tokens, actual_tokens, precision, recall.

    Options:
        articles: `drop` (the default) or `keep`.

    Example: `token-f1` gives `Eiffel Tower in Paris` for `the Eiffel Tower` 4/6 = 0.6667.

    Worked examples:
        - {expected: the Eiffel Tower, output: Eiffel Tower in Paris}
        - {expected: the cat sat on the mat, output: on the mat the cat sat}
    """

    alias: ClassVar[str] = "token-f1"
    family: ClassVar[str] = "lexical"

    articles: Literal["drop", "keep"] = "drop"

    def expect(self, sample: Sample) -> tuple[str, ...]:
        """The accepted texts."""
        return expected_texts(sample)

    def grade(self, expected: Sequence[str], actual: str) -> Mark:
        """Compare with each accepted text and keep the best, the first of equals."""
        is_dropped = self.articles == "drop"
        given = squad_tokens(actual, drop_articles=is_dropped)
        n = len(given)
        best: tuple[float, int, int] = (-1.0, 0, 0)
        for text in expected:
            wanted = squad_tokens(text, drop_articles=is_dropped)
            m = len(wanted)
            common = _common(wanted, given)
            score = 2 * common / (m + n) if m or n else 1.0
            if score > best[0]:
                best = (score, common, m)
        score, common, m = best
        return self.mark(
            score,
            {
                "common": common,
                "expected_tokens": m,
                "actual_tokens": n,
                "precision": common / n if n else None,
                "recall": common / m if m else None,
            },
        )


class _WithoutPunctuation(dict[int, int | None]):
    """A table for `str.translate` that drops ASCII and Unicode punctuation and learns characters as they come."""

    def __missing__(self, code: int) -> int | None:
        kept = None if unicodedata.category(chr(code)).startswith("P") else code
        self[code] = kept
        return kept


_BARE = _WithoutPunctuation((ord(character), None) for character in string.punctuation)


def squad_tokens(text: str, *, drop_articles: bool = True) -> list[str]:
    """Words as SQuAD compares answers: lower case, without punctuation, without articles.

    Args:
        text: Any text.
        drop_articles: Whether `a`, `an` and `the` are left out.

    >>> squad_tokens("The U.S.A., a country")
    ['usa', 'country']
    """
    bare = text.lower().translate(_BARE)
    return (_ARTICLE.sub(" ", bare) if drop_articles else bare).split()


def _common(first: Sequence[Any], second: Sequence[Any]) -> int:
    if not first or not second:
        return 0
    if first == second:
        return len(first)
    left: dict[Any, int] = {}
    for token in first:
        left[token] = left.get(token, 0) + 1
    common = 0
    for token in second:
        count = left.get(token)
        if count:
            left[token] = count - 1
            common += 1
    return common
