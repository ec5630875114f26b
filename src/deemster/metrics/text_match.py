"""Metrics of characters: exact match, contains, starts with, Levenshtein, length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, cast

import msgspec
from msgspec import Meta
from rapidfuzz.distance import Levenshtein as Edits
from rapidfuzz.distance import Prefix

from deemster.errors import ConfigurationError
from deemster.formats.json_values import name_kind
from deemster.metrics._text_normalization import normalize_text, parse_normalize_option, word_tokens
from deemster.metrics.builtin_metric import (
    BuiltinMetric,
    TextCheck,
    UnscoredError,
    expected_text,
    expected_texts,
    list_detail,
    no_expected,
    output_text,
    unscorable_sample,
)
from deemster.metrics.option_checks import PositiveNumber
from deemster.records import Mark, Output, Sample

_Length: TypeAlias = Annotated[int, Meta(ge=0)]


class NormalizingMetric(TextCheck, frozen=True, kw_only=True):
    """A metric of characters with the option `normalize`, which it applies to both sides."""

    normalize: bool | Sequence[str] | None = ()

    def validate(self) -> None:
        """Refuse options that make no sense."""
        msgspec.structs.force_setattr(self, "normalize", parse_normalize_option(self.normalize))

    def normalized(self, text: str) -> str:
        """A text as the metric reads it."""
        return normalize_text(text, cast("tuple[str, ...]", self.normalize))

    def expect(self, sample: Sample) -> Any:
        """The expected text, normalised."""
        return self.normalized(expected_text(sample))

    def read(self, output: Output) -> str:
        """The output's text, normalised."""
        return self.normalized(output_text(output))

    def non_empty(self, text: str) -> str:
        """An expected text, normalised, that some outputs do not hold.

        Raises:
            UnscoredError: It is empty.
        """
        text = self.normalized(text)
        if not text:
            raise unscorable_sample("The expected text is empty, and every output would hold it.")
        return text


class ExactMatch(NormalizingMetric, frozen=True, kw_only=True):
    """1 if the output equals the expected text, character by character; else 0.

    Reads `expected_output` (text) and the output's text.
    Details: match, expected_chars, actual_chars, first_difference (a position, or null where they are equal).

    Options:
        normalize: A list of `nfc`, `casefold`, `strip`, applied to both sides, or true for all. Default: none.
        any_of: True: `expected_output` is a list of accepted texts. Default: false.
        expected: The key of the metadata that holds what is expected. Default: `expected_output` is read.
        negate: True: the score is 1 where the output does not have it. Default: false.

    Example: `exact-match: {normalize: [casefold, strip]}` accepts `paris ` for `Paris`.

    Worked examples:
        - {expected: Paris, output: Paris}
        - {expected: Paris, output: 'paris '}
        - {expected: Paris, output: 'paris ', options: {normalize: [casefold, strip]}}
    """

    alias: ClassVar[str] = "exact-match"
    core: ClassVar[bool] = True

    any_of: bool = False

    def expect(self, sample: Sample) -> tuple[str, ...]:
        """The accepted texts, normalised."""
        if not self.any_of:
            return (self.normalized(expected_text(sample)),)
        expected = sample.expected_output
        if expected is None:
            raise no_expected()
        if not isinstance(expected, (list, tuple)):
            raise unscorable_sample(
                f"`expected_output` is a list of accepted texts with `any_of`, not {name_kind(expected)}."
            )
        return tuple(self.normalized(text) for text in expected_texts(sample))

    def grade(self, expected: tuple[str, ...], actual: str) -> Mark:
        """Compare with each accepted text; the details tell of the one that agrees longest."""
        if actual in expected:
            length = len(actual)
            return self.mark(
                1.0, {"match": True, "expected_chars": length, "actual_chars": length, "first_difference": None}
            )
        shared = [Prefix.similarity(text, actual) for text in expected]
        longest = max(shared)
        return self.mark(
            0.0,
            {
                "match": False,
                "expected_chars": len(expected[shared.index(longest)]),
                "actual_chars": len(actual),
                "first_difference": longest,
            },
        )


class Contains(NormalizingMetric, frozen=True, kw_only=True):
    """1 if the expected text occurs in the output, else 0.

    Reads `expected_output` (non-empty text) and the output's text. Details: match, position (from 0, or null).

    Options:
        normalize: A list of `nfc`, `casefold`, `strip`, applied to both sides, or true for all. Default: none.
        expected: The key of the metadata that holds what is expected. Default: `expected_output` is read.
        negate: True: the score is 1 where the output does not have it. Default: false.

    Example: `contains` finds `30 days` in `within 30 days.` at 7.

    Worked examples:
        - {expected: 30 days, output: You may return it within 30 days.}
        - {expected: 30 days, output: You may return it within a month.}
    """

    alias: ClassVar[str] = "contains"
    core: ClassVar[bool] = True

    def expect(self, sample: Sample) -> str:
        """The text to be found, normalised."""
        return self.non_empty(expected_text(sample))

    def grade(self, expected: str, actual: str) -> Mark:
        """Look for the text anywhere."""
        position = actual.find(expected)
        if position < 0:
            return self.mark(0.0, {"match": False, "position": None})
        return self.mark(1.0, {"match": True, "position": position})


class SubstringsMetric(NormalizingMetric, frozen=True, kw_only=True):
    """A metric that looks for several texts in the output.

    A subclass says by ``suffices`` how many of them are enough.
    """

    quotes: ClassVar[frozenset[str]] = frozenset({"missing"})

    credit: Literal["all", "fraction"] = "all"

    def expect(self, sample: Sample) -> list[tuple[str, str]]:
        """The texts to be found: as written, and normalised."""
        return [(text, self.non_empty(text)) for text in expected_texts(sample)]

    if TYPE_CHECKING:

        def suffices(self, found: int, required: int) -> bool:
            """Whether so many texts are enough."""

    def grade(self, expected: list[tuple[str, str]], actual: str) -> Mark:
        """Look for every text."""
        missing = [written for written, wanted in expected if wanted not in actual]
        required, found = len(expected), len(expected) - len(missing)
        score = found / required if self.credit == "fraction" else float(self.suffices(found, required))
        return self.mark(score, {"required": required, "found": found, **list_detail("missing", missing)})


class ContainsAny(SubstringsMetric, frozen=True, kw_only=True):
    """1 if at least one of the expected texts occurs in the output, else 0.

    Reads `expected_output` (a list of non-empty texts, or one) and the output's text.
    Details: required, found, missing (texts of the sample, at most 20).

    Options:
        normalize: A list of `nfc`, `casefold`, `strip`, applied to both sides, or true for all. Default: none.
        credit: `all` (1 or 0, the default) or `fraction` (found/required).
        expected: The key of the metadata that holds what is expected. Default: `expected_output` is read.
        negate: True: the score is 1 where the output does not have it. Default: false.

    Example: `contains-any: {normalize: [casefold]}` with `expected_output: [refund, money back]`.

    Worked examples:
        - {expected: [refund, money back], output: You get your money back.}
        - {expected: [refund, money back], output: You get a voucher.}
    """

    alias: ClassVar[str] = "contains-any"

    def suffices(self, found: int, required: int) -> bool:  # noqa: ARG002 - the other needs it
        """One is enough."""
        return found > 0


class ContainsAll(SubstringsMetric, frozen=True, kw_only=True):
    """1 if all of the expected texts occur in the output, else 0.

    Reads `expected_output` (a list of non-empty texts, or one) and the output's text.
    Details: required, found, missing (texts of the sample, at most 20).

    Options:
        normalize: A list of `nfc`, `casefold`, `strip`, applied to both sides, or true for all. Default: none.
        credit: `all` (all or nothing, the default) or `fraction` (found/required).
        expected: The key of the metadata that holds what is expected. Default: `expected_output` is read.
        negate: True: the score is 1 where the output does not have it. Default: false.

    Example: `contains-all: {credit: fraction}` gives 0.5 where one of two texts occurs.

    Worked examples:
        - {expected: [name, date], output: Please write the date.}
        - {expected: [name, date], output: Please write the date., options: {credit: fraction}}
    """

    alias: ClassVar[str] = "contains-all"

    def suffices(self, found: int, required: int) -> bool:
        """Each must be found."""
        return found == required


class StartsWith(NormalizingMetric, frozen=True, kw_only=True):
    """1 if the output begins with the expected text, else 0.

    Reads `expected_output` (non-empty text) and the output's text. Details: match.

    Options:
        normalize: A list of `nfc`, `casefold`, `strip`, applied to both sides, or true for all. Default: none.
        expected: The key of the metadata that holds what is expected. Default: `expected_output` is read.
        negate: True: the score is 1 where the output does not have it. Default: false.

    Example: `starts-with: {normalize: true}` accepts ` Yes, of course` for `yes`.

    Worked examples:
        - {expected: 'Yes', output: 'Yes, of course.'}
        - {expected: 'Yes', output: 'Of course, yes.'}
    """

    alias: ClassVar[str] = "starts-with"

    def expect(self, sample: Sample) -> str:
        """The prefix, normalised."""
        return self.non_empty(expected_text(sample))

    def grade(self, expected: str, actual: str) -> Mark:
        """Compare the beginning."""
        match = actual.startswith(expected)
        return self.mark(float(match), {"match": match})


class Levenshtein(NormalizingMetric, frozen=True, kw_only=True):
    """1 - distance/length: the least number of characters to insert, delete or replace, over the longer text's length.

    Reads `expected_output` (text) and the output's text. Two empty texts score 1.
    Details: distance, expected_chars, actual_chars.

    Options:
        normalize: A list of `nfc`, `casefold`, `strip`, applied to both sides, or true for all. Default: none.
        max_cells: Largest product of the two lengths; above it the output is unscored, `too_large`. Default: 1e10.
        expected: The key of the metadata that holds what is expected. Default: `expected_output` is read.
        negate: True: the score is 1 where the output does not have it. Default: false.

    Example: `levenshtein` gives `sitting` for `kitten` (7 - 3)/7 = 0.5714.

    Worked examples:
        - {expected: kitten, output: sitting}
    """

    alias: ClassVar[str] = "levenshtein"

    max_cells: PositiveNumber = 1e10

    def grade(self, expected: str, actual: str) -> Mark:
        """Count the edits.

        Raises:
            UnscoredError: The texts are too long for each other.
        """
        m, n = len(expected), len(actual)
        if m * n > self.max_cells:
            raise UnscoredError("too_large", f"{m} x {n} characters are more than `max_cells`, {self.max_cells:g}.")
        longest = max(m, n)
        distance = Edits.distance(expected, actual)
        score = (longest - distance) / longest if longest else 1.0
        return self.mark(score, {"distance": distance, "expected_chars": m, "actual_chars": n})


class LengthWithin(BuiltinMetric, frozen=True, kw_only=True):
    """1 if min <= length <= max, else 0.

    Reads the output's text only. Details: length, unit.

    Options:
        min: Smallest length. Default: none.
        max: Largest length. Default: none. At least one of the two is given.
        unit: `chars` (the default), `words` (runs of letters and digits) or `lines`.

    Example: `length-within: {max: 50, unit: words}`.

    Worked examples:
        - {output: One two three., options: {max: 3, unit: words}}
        - {output: One two three four., options: {max: 3, unit: words}}
    """

    alias: ClassVar[str] = "length-within"
    family: ClassVar[str] = "lexical"
    reads_expected: ClassVar[bool] = False

    min: _Length | None = None
    max: _Length | None = None
    unit: Literal["chars", "words", "lines"] = "chars"

    def validate(self) -> None:
        """Refuse options that make no sense.

        Raises:
            ConfigurationError: No limit is given, or the limits exclude every length.
        """
        if self.min is None and self.max is None:
            raise ConfigurationError("length-within needs `min`, `max` or both.")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ConfigurationError(f"length-within has a `min` of {self.min} above its `max` of {self.max}.")

    def expect(self, sample: Sample) -> None:  # noqa: ARG002 - no sample asks for anything here
        """Nothing of the sample is read."""
        return

    def grade(self, expected: None, actual: str) -> Mark:  # noqa: ARG002 - see expect
        """Measure the text."""
        if self.unit == "words":
            length = len(word_tokens(actual))
        else:
            length = len(actual) if self.unit == "chars" else len(actual.splitlines())
        above = self.min is None or length >= self.min
        below = self.max is None or length <= self.max
        return self.mark(float(above and below), {"length": length, "unit": self.unit})
