"""The metrics `bleu` and `chrf` of machine translation, computed by sacrebleu."""

from __future__ import annotations

import functools
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from deemster.errors import ConfigurationError, MissingExtraError
from deemster.metrics.builtin_metric import BuiltinMetric, expected_texts
from deemster.metrics.option_checks import PositiveNumber
from deemster.records import Mark, Sample

EXTRA = "bleu"
ORDERS = 100
# BLEU has a precision for each order, and a detail lists at most 20 values.
PRECISIONS = 20
HEAVIEST = 1000


class Bleu(BuiltinMetric, frozen=True, kw_only=True):
    """Sentence BLEU by sacrebleu, as a share of 1, with effective order. The mean of it is not corpus BLEU.

    Reads `expected_output` (text, or a list of references) and the output's text. No token on either side scores 1,
    on one side 0. Details: bp, precisions, signature.

    Options:
        max_order: Longest n-gram. Default: 4.
        smooth: `exp` (the default), `floor`, `add-k` or `none`.
        tokenize: `13a` (the default), `intl`, `char`, `zh` or `none`; none of them downloads anything.

    Example: `bleu` gives `the cat lay on the mat` for `the cat sat on the mat` 0.3799.

    Worked examples:
        - {expected: the cat sat on the mat, output: the cat lay on the mat}
    """

    alias: ClassVar[str] = "bleu"
    family: ClassVar[str] = "lexical"
    extra: ClassVar[str | None] = EXTRA

    max_order: Annotated[int, Meta(ge=1, le=PRECISIONS)] = 4
    smooth: Literal["exp", "floor", "add-k", "none"] = "exp"
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a"

    def validate(self) -> None:
        """Refuse options that make no sense.

        Raises:
            ConfigurationError: An option is out of range.
            MissingExtraError: sacrebleu is not installed.
        """
        _sacrebleu("bleu")

    def expect(self, sample: Sample) -> tuple[str, ...]:
        """The references."""
        return expected_texts(sample)

    def grade(self, expected: tuple[str, ...], actual: str) -> Mark:
        """Ask sacrebleu; equal texts can score 100.00000000000004 there, so the score is capped."""
        scorer = _bleu(self.max_order, self.smooth, self.tokenize)
        result = scorer.sentence_score(actual, expected)
        signature = _signature(scorer, len(expected))
        if result.sys_len == 0:
            empty = float(result.ref_len == 0)
            return self.mark(empty, {"bp": None, "precisions": None, "signature": signature})
        return self.mark(
            min(result.score / 100, 1.0),
            {"bp": result.bp, "precisions": [value / 100 for value in result.precisions], "signature": signature},
        )


class Chrf(BuiltinMetric, frozen=True, kw_only=True):
    """Sentence chrF by sacrebleu, as a share of 1: F-score of character n-grams, and of word n-grams where asked for.

    Reads `expected_output` (text, or a list of references, of which the best counts) and the output's text. Blank
    on both sides scores 1, on one side 0. Details: signature.

    Options:
        char_order: Longest character n-gram. Default: 6.
        word_order: Longest word n-gram; 2 is chrF++. Default: 0.
        beta: Weight of recall against precision. Default: 2.

    Example: `chrf: {word_order: 2}` gives `the cat lay on the mat` for `the cat sat on the mat` 0.6373.

    Worked examples:
        - {expected: the cat sat on the mat, output: the cat lay on the mat}
        - {expected: the cat sat on the mat, output: the cat lay on the mat, options: {word_order: 2}}
    """

    alias: ClassVar[str] = "chrf"
    family: ClassVar[str] = "lexical"
    extra: ClassVar[str | None] = EXTRA

    char_order: Annotated[int, Meta(ge=1, le=ORDERS)] = 6
    word_order: Annotated[int, Meta(ge=0, le=ORDERS)] = 0
    beta: PositiveNumber = 2

    def validate(self) -> None:
        """Refuse options that make no sense.

        Raises:
            ConfigurationError: An option is out of range.
            MissingExtraError: sacrebleu is not installed.
        """
        if self.beta > HEAVIEST:
            raise ConfigurationError(f"`beta` of chrf is at most {HEAVIEST}, not {self.beta!r}.")
        _sacrebleu("chrf")

    def expect(self, sample: Sample) -> tuple[str, ...]:
        """The references."""
        return expected_texts(sample)

    def grade(self, expected: tuple[str, ...], actual: str) -> Mark:
        """Ask sacrebleu, except about blank texts."""
        scorer = _chrf(self.char_order, self.word_order, self.beta)
        if actual and not actual.isspace():
            score = min(scorer.sentence_score(actual, expected).score / 100, 1.0)
        else:
            score = float(any(not text or text.isspace() for text in expected))
        return self.mark(score, {"signature": _signature(scorer, len(expected))})


def _sacrebleu(alias: str) -> Any:
    try:
        import sacrebleu  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise MissingExtraError(alias, extra=EXTRA) from None
    return sacrebleu


@functools.lru_cache(maxsize=16)
def _bleu(max_order: int, smooth: str, tokenize: str) -> Any:
    return _sacrebleu("bleu").BLEU(
        max_ngram_order=max_order, smooth_method=smooth, tokenize=tokenize, effective_order=True, force=True
    )


@functools.lru_cache(maxsize=16)
def _chrf(char_order: int, word_order: int, beta: float) -> Any:
    return _sacrebleu("chrf").CHRF(char_order=char_order, word_order=word_order, beta=beta)


def _signature(scorer: Any, references: int) -> str:
    # sacrebleu remembers the number of references of its last call, so it is set anew for each.
    scorer.num_refs = references
    return str(scorer.get_signature())
