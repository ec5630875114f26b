"""The metrics `cosine-embedding` and `bertscore-like`, by vectors of an embedding model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from deemster.metrics._text_normalization import word_tokens
from deemster.metrics._vector_matching import (
    DECIMALS,
    EmbeddingBlock,
    IndexedPair,
    TextPair,
    cosines,
    embedding_blocks,
    nearest_partners,
    nearest_texts,
    unit_vectors,
)
from deemster.metrics.builtin_metric import BuiltinScorer, UnscoredError
from deemster.metrics.option_checks import PositiveInteger
from deemster.records import Mark, NoAnswer, Output, Reply, Request, Sample, Script, Scripts, Unscored
from deemster.records.model_requests import EMBEDDING

if TYPE_CHECKING:
    from deemster.metrics._vector_matching import Doubles

# Causes that may lie in a single text. The pairs of the block are then embedded one by one.
_OF_A_TEXT = frozenset({"model_failed", "unreadable"})
_NO_DIRECTION = "The vector of a text has no direction: it is zero, or holds a number that is not finite."


class EmbeddingScorer(BuiltinScorer, frozen=True, kw_only=True):
    """A metric that compares an output with the expected text by vectors.

    A subclass says which texts of a pair need vectors (``prepare``), and marks pairs once they are there (``grade``).
    """

    family: ClassVar[str] = "semantic"
    roles: ClassVar[tuple[str, ...]] = (EMBEDDING,)

    if TYPE_CHECKING:

        def prepare(self, expected: str, actual: str) -> TextPair | Mark:
            """The texts that need vectors, or a mark where none do.

            Raises:
                UnscoredError: The pair is beyond what this metric marks.
            """

        def grade(self, placed: Sequence[IndexedPair], values: Doubles) -> list[Mark]:
            """Mark pairs by vectors of length 1."""

    def script(self, sample: Sample, output: Output) -> Script:
        """Mark one output, asking once for its vectors."""
        (mark,) = yield from self.script_many((sample,), (output,))
        return mark

    def script_many(self, samples: Sequence[Sample], outputs: Sequence[Output]) -> Scripts:
        """Mark a batch, asking for each distinct text of a block of pairs once.

        Where that brings no vectors for a reason that may lie in one of the texts, each pair is asked for on its own.
        """
        marks: dict[int, Mark] = {}
        pairs: list[tuple[int, TextPair]] = []
        for number, (sample, output) in enumerate(zip(samples, outputs, strict=True)):
            ready = self._ready(sample, output)
            if isinstance(ready, TextPair):
                pairs.append((number, ready))
            else:
                marks[number] = ready
        for block in embedding_blocks(pairs):
            yield from self._play(block, marks)
        return [marks[number] for number in range(len(samples))]

    def _ready(self, sample: Sample, output: Output) -> TextPair | Mark:
        try:
            return self.prepare(self.expect(sample), self.read(output))
        except UnscoredError as error:
            return Unscored(error.cause, error.message)

    def _play(
        self, block: EmbeddingBlock, marks: dict[int, Mark]
    ) -> Generator[Sequence[Request], Sequence[Reply], None]:
        (reply,) = yield (block.embed(),)
        if not isinstance(reply, NoAnswer) or reply.cause not in _OF_A_TEXT or len(block.placed) == 1:
            self._mark(block, reply, marks)
            return
        alone = [EmbeddingBlock() for _ in block.placed]
        for single, each in zip(alone, block.placed, strict=True):
            single.add(each.number, each.pair)
        replies = yield tuple(single.embed() for single in alone)
        for single, reply in zip(alone, replies, strict=True):
            self._mark(single, reply, marks)

    def _mark(self, block: EmbeddingBlock, reply: Reply, marks: dict[int, Mark]) -> None:
        try:
            found = unit_vectors(reply, count=block.size)
        except UnscoredError as error:
            marks.update((each.number, Unscored(error.cause, error.message)) for each in block.placed)
            return
        placed = block.placed
        if lost := found.lost:
            placed = [each for each in placed if lost.isdisjoint(each.expected) and lost.isdisjoint(each.actual)]
            marks.update((each.number, Unscored("unreadable", _NO_DIRECTION)) for each in block.placed)
        if placed:
            graded = self.grade(placed, found.values)
            marks.update((each.number, mark) for each, mark in zip(placed, graded, strict=True))


class CosineEmbedding(EmbeddingScorer, frozen=True, kw_only=True):
    """Cosine of the embeddings of both texts: how alike they are as a whole.

    Reads `expected_output` (text) and the output's text, and asks the model `embedding` for a vector of each. Two blank
    texts score 1, one blank text 0; then no model is asked. A cosine is rounded to 6 decimals, which is what the
    single precision of models holds. Details: cosine, dimensions, mode. Every embedding puts a contradiction close to
    the truth, so this alone does not tell right from wrong.

    Options:
        mode: `clamp` (the default; a negative cosine scores 0) or `rescale`, (1 + cosine)/2.

    Example: vectors (1, 0) and (0.6, 0.8) score 0.6, with `cosine-embedding(mode=rescale)` 0.8.

    Worked examples:
        - {expected: The parcel arrives on Monday., output: Your package will come on Monday.}
        - {expected: The parcel arrives on Monday., output: The parcel does not arrive on Monday.}
        - {expected: The parcel arrives on Monday., output: Our office is closed in August.}
    """

    alias: ClassVar[str] = "cosine-embedding"
    core: ClassVar[bool] = True

    mode: Literal["clamp", "rescale"] = "clamp"

    def prepare(self, expected: str, actual: str) -> TextPair | Mark:
        """Both texts as they are."""
        blank = (not expected.strip(), not actual.strip())
        if any(blank):
            return self.mark(float(all(blank)), {"cosine": None, "dimensions": None, "mode": self.mode})
        return TextPair((expected,), (actual,))

    def grade(self, placed: Sequence[IndexedPair], values: Doubles) -> list[Mark]:
        """Place each cosine between 0 and 1."""
        is_clamped = self.mode == "clamp"
        dimensions = values.shape[1]
        return [
            self.mark(
                max(0.0, cosine) if is_clamped else round((1.0 + cosine) / 2, DECIMALS),
                {"cosine": cosine, "dimensions": dimensions, "mode": self.mode},
            )
            for cosine in cosines(placed, values)
        ]


class BertscoreLike(EmbeddingScorer, frozen=True, kw_only=True):
    """Token by token, how well each side is covered by the other, after BERTScore (Zhang et al., 2020).

    Reads `expected_output` (text) and the output's text, and asks the model `embedding` for a vector of each distinct
    word token. Recall is the mean over expected tokens of the best cosine in the output, within [0, 1]: is every part
    covered? Precision is the reverse: is every part justified? Score: 2PR/(P + R). Cosines, means and score are rounded
    to 6 decimals. No token on either side scores 1, on
    one side 0; then no model is asked. Details: expected_tokens, actual_tokens, embedded_tokens, precision, recall, and
    matches where asked for.

    Options:
        tokens: `unique` (the default) or `all`, where repeated tokens weigh in the means.
        attribute: Whether to list matches: `[expected token, best output token, similarity]`, worst first.
            Default: false.
        attribute_limit: How many matches at most. Default: 50.
        max_tokens: Most distinct tokens of a side; above it the output is unscored, `too_large`. Default: 2048.

    Example: with cat (1, 0), dog (0.8, 0.6), car (0, 1), `dog car car` for `cat car` scores 0.9.

    Worked examples:
        - {expected: The parcel arrives on Monday., output: Your package will come on Monday.}
        - {expected: The parcel arrives on Monday., output: The parcel does not arrive on Monday.}
        - {expected: The parcel arrives on Monday., output: Our office is closed in August.}
    """

    alias: ClassVar[str] = "bertscore-like"
    core: ClassVar[bool] = True
    quotes: ClassVar[frozenset[str]] = frozenset({"matches"})

    tokens: Literal["unique", "all"] = "unique"
    attribute: bool = False
    attribute_limit: PositiveInteger = 50
    max_tokens: PositiveInteger = 2048

    def prepare(self, expected: str, actual: str) -> TextPair | Mark:
        """The distinct tokens of both sides.

        Raises:
            UnscoredError: A side has too many.
        """
        words = word_tokens(expected), word_tokens(actual)
        wanted, given = (tuple(dict.fromkeys(side)) for side in words)
        if max(len(wanted), len(given)) > self.max_tokens:
            what = f"{len(wanted)} and {len(given)} distinct tokens"
            raise UnscoredError("too_large", f"{what}: a side has more than `max_tokens`, {self.max_tokens}.")
        pair = TextPair(wanted, given)
        if self.tokens == "all":
            # A Counter keeps the order of first occurrence, as the distinct tokens do.
            pair = pair._replace(weights=(tuple(Counter(words[0]).values()), tuple(Counter(words[1]).values())))
        return pair if wanted and given else self._unmatched(pair)

    def _unmatched(self, pair: TextPair) -> Mark:
        """The mark where a side has no token."""
        m, n = _sizes(pair)
        details: dict[str, Any] = {
            "expected_tokens": m,
            "actual_tokens": n,
            "embedded_tokens": 0,
            "precision": 0.0 if n else None,
            "recall": 0.0 if m else None,
        }
        if self.attribute:
            details |= self._matches([(token, None, 0.0) for token in pair.expected])
        return self.mark(0.0 if m or n else 1.0, details)

    def grade(self, placed: Sequence[IndexedPair], values: Doubles) -> list[Mark]:
        """Find the best match of every token, and the means of these."""
        marks: list[Mark] = []
        for each, found in zip(placed, nearest_texts(placed, values), strict=True):
            recall, precision = found.recall, found.precision
            m, n = _sizes(each.pair)
            details: dict[str, Any] = {
                "expected_tokens": m,
                "actual_tokens": n,
                "embedded_tokens": found.distinct,
                "precision": precision,
                "recall": recall,
            }
            if self.attribute:
                matches = zip(each.pair.expected, nearest_partners(each, values), found.best.tolist(), strict=True)
                details |= self._matches(list(matches))
            both = precision + recall
            marks.append(self.mark(round(2 * precision * recall / both, DECIMALS) if both else 0.0, details))
        return marks

    def _matches(self, matches: list[tuple[str, str | None, float]]) -> dict[str, Any]:
        """Matches as a detail, worst first, in the order of the text where alike."""
        listed = [list(match) for match in sorted(matches, key=_similarity)[: self.attribute_limit]]
        return {"matches": listed, "truncated": True} if len(matches) > len(listed) else {"matches": listed}


def _sizes(pair: TextPair) -> tuple[int, int]:
    """How many tokens each side has, repeated ones where they count."""
    if pair.weights is None:
        return len(pair.expected), len(pair.actual)
    return sum(pair.weights[0]), sum(pair.weights[1])


def _similarity(match: tuple[str, str | None, float]) -> float:
    return match[2]
