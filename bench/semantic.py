"""CPU time of embeddings and of bertscore-like against numpy sketches that do only the arithmetic.

The sketches get prepared inputs that deemster has to compute: the ids of the word pieces, the normalised vectors, the
numbers of the tokens. They multiply, take maxima and means in blocks, and make no marks.

Usage: .venv/bin/python bench/semantic.py
"""

import os
import random
import time

# On a busy machine the threads of OpenBLAS wait for each other in small products, and the sketch takes ten times as
# long; ours keeps to products that are not shared among threads.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from deemster.metrics._text_normalization import word_tokens
from deemster.metrics.semantic_similarity import BertscoreLike
from deemster.models.embedded_embedding import EmbeddedEmbedding
from deemster.records import Output, Sample

ANSWERS, PAIRS, TOKENS, VOCABULARY = 20_000, 10_000, 60, 4_000
TURNS = 10
GOAL = 2.0


def timed(function):
    """The CPU time and the result of a call."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def vocabulary(model):
    """Words of the model's own pieces, some of two, in the order a rank would give them."""
    rng = random.Random(7)
    tokenizer = model._pieces._tokenizer  # noqa: SLF001 - the sketch is given what ours finds
    pieces = sorted(piece[1:] for piece in tokenizer.get_vocab() if piece.startswith("\u2581"))
    plain = [piece for piece in pieces if piece.isascii() and piece.isalpha() and piece.islower() and len(piece) > 1]
    rng.shuffle(plain)
    return [plain[n] if n % 4 else plain[n] + plain[-n - 1] for n in range(VOCABULARY)]


def texts(words, *, count, tokens):
    """Texts whose words are as unequally frequent as those of a language."""
    rng = np.random.default_rng(7)
    weights = 1 / np.arange(1, len(words) + 1)
    drawn = rng.choice(len(words), size=(count, tokens), p=weights / weights.sum())
    return [" ".join(words[word] for word in row) for row in drawn]


def pooled(weights, ids):
    """The sketch of an embedding: the mean of the vectors of given word pieces, in blocks of equal length."""
    found = np.empty((len(ids), weights.shape[1]), np.float32)
    order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
    for start in range(0, len(order), 64):
        block = order[start : start + 64]
        longest = len(ids[block[-1]])
        padded = np.array([ids[number] + [0] * (longest - len(ids[number])) for number in block])
        mask = np.array([[1.0] * len(ids[number]) + [0.0] * (longest - len(ids[number])) for number in block])
        mask = mask.astype(np.float32)[:, None, :]
        found[block] = (mask @ weights.take(padded, axis=0))[:, 0] / mask.sum(axis=2)
    return found


def matched(vectors, expected, actual):
    """The sketch of bertscore-like: products of 64 pairs at a time, maxima, means and their harmonic mean."""
    scores = []
    for start in range(0, len(expected), 64):
        left, right = vectors[expected[start : start + 64]], vectors[actual[start : start + 64]]
        cosine = left @ right.transpose(0, 2, 1)
        recall = cosine.max(axis=2).clip(0, 1).mean(axis=1)
        precision = cosine.max(axis=1).clip(0, 1).mean(axis=1)
        scores.append(2 * precision * recall / (precision + recall))
    return np.concatenate(scores)


def embedding_race(model, answers):
    """CPU seconds of ours and of the sketch, and the largest difference of a number in a vector."""
    pieces = model._pieces  # noqa: SLF001 - the sketch is given what ours finds
    tokenizer, weights = pieces._tokenizer, pieces._weights  # noqa: SLF001
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in answers]
    ours = sketch = apart = 0.0
    for turn in range(TURNS):
        part = slice(turn * len(answers) // TURNS, (turn + 1) * len(answers) // TURNS)
        spent, mine = timed(lambda part=part: model.embed_many(answers[part]).values)
        ours += spent
        spent, theirs = timed(lambda part=part: pooled(weights, ids[part]))
        sketch += spent
        apart = max(apart, float(np.abs(mine - theirs).max()))
    return ours, sketch, apart


def matching_race(model, pairs):
    """CPU seconds of ours and of the sketch, and the largest difference of a score.

    The vectors are there beforehand for both; what is left to ours is tokens, blocks, checks and marks.
    """
    metric = BertscoreLike()
    samples = [Sample(str(number), {}, expected) for number, (expected, _) in enumerate(pairs)]
    outputs = [Output(actual) for _, actual in pairs]
    tokens = [[word_tokens(text) for text in pair] for pair in pairs]
    places = {token: place for place, token in enumerate({token for pair in tokens for side in pair for token in side})}
    raw = model.embed_many(list(places)).values
    vectors = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    numbers = np.array([[[places[token] for token in side] for side in pair] for pair in tokens])

    ours = sketch = apart = 0.0
    for start in range(0, len(pairs), 512):
        part = slice(start, start + 512)
        script = metric.script_many(samples[part], outputs[part])
        spent, (request,) = timed(lambda script=script: next(script))
        reply = model.embed_many(request.texts)
        more, marks = timed(lambda script=script, reply=reply: finished(script, reply))
        ours += spent + more
        spent, scores = timed(lambda part=part: matched(vectors, numbers[part, 0], numbers[part, 1]))
        sketch += spent
        apart = max(apart, *(abs(mark.score - score) for mark, score in zip(marks, scores.tolist(), strict=True)))
    return ours, sketch, apart


def finished(script, reply):
    """The marks of a script that asks once."""
    try:
        script.send([reply])
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("The script asked twice.")


def main():
    model = EmbeddedEmbedding()
    words = vocabulary(model)
    answers = texts(words, count=ANSWERS, tokens=30)
    embedded = embedding_race(model, answers)
    rng = np.random.default_rng(11)
    drawn = [[rng.choice(len(words), size=TOKENS, replace=False) for _ in range(2)] for _ in range(PAIRS)]
    pairs = [tuple(" ".join(words[word] for word in side) + "." for side in pair) for pair in drawn]
    matching = matching_race(model, pairs)
    for what, (ours, sketch, apart) in (
        (f"{ANSWERS} answers of 30 words", embedded),
        (f"{PAIRS} pairs of {TOKENS} tokens", matching),
    ):
        print(
            f"{what}: deemster {ours:.3f} CPU s, numpy sketch {sketch:.3f}, {ours / sketch:.2f} times (goal {GOAL:g}); "
            f"largest difference {apart:.1e}"
        )
    ours, sketch = embedded[0] + matching[0], embedded[1] + matching[1]
    print(f"both: deemster {ours:.3f} CPU s, numpy sketch {sketch:.3f}, {ours / sketch:.2f} times (goal {GOAL:g})")
    print(f"{ANSWERS / embedded[0]:.0f} answers embedded a CPU second")


if __name__ == "__main__":
    main()
