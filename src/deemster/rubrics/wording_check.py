"""What is wrong with the wording of one requirement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from deemster.rubrics._compound_requirement import READ, joint_of, reported, tokens_of, unquoted
from deemster.rubrics._vague_words import (
    DOUBLED,
    EXACT_AFTER,
    EXACT_BEFORE,
    LIMITS,
    NEGATIONS,
    OUTSIDE,
    PHRASES,
    PLAIN,
    RATING,
    VAGUE,
)
from deemster.rubrics.criterion import Criterion

LONGEST: Final = 60
RATE: Final = "say what a judge must see in the text for it to count"
_DESCRIBED: Final = 3
_SPACE: Final = re.compile(r"\s+")
# What follows a word and defines it.
_DEFINED: Final = re.compile(r"\A\W*(?::|\(|\bi\.e\.|\bthat is\b|\bmeaning\b|\bwhich means\b|-\s)")
_LATER: Final = re.compile(r":|\(|\bi\.e\.|\bthat is\b|\bmeaning\b")


class Remark(NamedTuple):
    """Something about a text: its code, what is wrong, and what to do."""

    code: str
    message: str
    suggestion: str


def phrasing(criterion: Criterion) -> Iterator[Remark]:
    """What is wrong with the wording of a requirement, in the order of the text's issues from worst to least.

    A requirement that a metric answers is read by no judge, and only its length counts.
    """
    text = criterion.requirement[:READ]
    if criterion.check is None:
        yield from _joined(text)
        yield from _negated(criterion, text)
        if not _described(criterion):
            yield from vague_words(text)
        yield from _outside(text)
    words = len(criterion.requirement.split())
    if words > LONGEST:
        message = f"The requirement has {words} words; judges lose the point of more than {LONGEST}."
        yield Remark("long-requirement", message, "Ask for one thing, and move what holds for all to `guidelines`.")


def _described(criterion: Criterion) -> bool:
    """Whether the options say what the words of the requirement mean."""
    scored = [option for option in criterion.options if not option.na]
    return bool(scored) and all(len(option.label.split()) >= _DESCRIBED for option in scored)


def _joined(text: str) -> Iterator[Remark]:
    joint = joint_of(text)
    if joint is not None:
        shown = f"{joint.left}{'' if joint.word == ';' else ' '}{joint.word} {joint.right}"
        message = f"Two things are asked for at once (`{shown}`): a submission may meet one and not the other."
        yield Remark(
            "double-barrelled", message, "Make it two criteria, or an ordinal one that counts how many are met."
        )


def vague_words(text: str) -> Iterator[Remark]:
    """The words of a requirement that every judge reads differently, each once.

    A word that the text goes on to define is not vague, nor is one that is part of a term.

    >>> [remark.message for remark in vague_words("Is concise and clear: at most 50 words.")]
    []
    """
    plain = _spaced(unquoted_keeping_brackets(text[:READ]))
    words = tokens_of(plain)
    seen: set[str] = set()
    for place, word in enumerate(words):
        if word not in VAGUE or word in seen or _is_exact(words, place) or reported(words[:place]):
            continue
        seen.add(word)
        if not _is_defined(plain, word):
            yield _vague(word, VAGUE[word])
    for word in sorted(_rated(words) - seen):
        if not _is_defined(plain, word):
            yield _vague(word, RATE)
    joined = f" {' '.join(words)} "
    for phrase, advice in PHRASES.items():
        if f" {phrase} " in joined and not _is_defined(plain, phrase):
            yield _vague(phrase, advice)


def _rated(words: list[str]) -> set[str]:
    """The adjective that is all a requirement says of its subject, or of a manner, where its ending is that of praise.

    >>> _rated(["the", "mood", "is", "cheerful", "."]), _rated(["in", "a", "sober", "manner"])
    ({'cheerful'}, {'sober'})
    """
    found = {
        word for word, after in pairwise(words) if after in {"manner", "way"} and words[words.index(word) - 1] == "a"
    }
    body = words[:-1] if words and words[-1] == "." else words
    if len(body) > 2 and body[-2] in {"is", "are"} and body[-1].endswith(RATING):
        found.add(body[-1])
    return {word for word in found if word not in PLAIN and word not in {"same", "different"}}


def _vague(word: str, advice: str) -> Remark:
    return Remark("vague-word", f"`{word}` means something else to every judge.", f"Instead, {advice}.")


def unquoted_keeping_brackets(text: str) -> str:
    """A text without what stands in quotes.

    >>> unquoted_keeping_brackets('Says "good" (twice).')
    'Says Q (twice).'
    """
    return re.sub(r"\"[^\"]*\"|“[^“”]*”|`[^`]*`|(?<!\w)'[^']*'(?!\w)", "Q", text)


def _is_exact(words: list[str], place: int) -> bool:
    word = words[place]
    after = words[place + 1] if place + 1 < len(words) else ""
    before = words[place - 1] if place else ""
    return after in EXACT_AFTER.get(word, ()) or before in EXACT_BEFORE.get(word, ())


def _is_defined(text: str, word: str) -> bool:
    """Whether a definition or a number that bounds it follows the word."""
    rest = re.split(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, maxsplit=1, flags=re.IGNORECASE)
    return len(rest) > 1 and (_DEFINED.match(rest[1]) is not None or _LATER.search(rest[1]) is not None)


def _spaced(text: str) -> str:
    return _SPACE.sub(" ", text)


def _negated(criterion: Criterion, text: str) -> Iterator[Remark]:
    plain = _spaced(" ".join(tokens_of(text)))
    doubled = next((phrase for phrase in DOUBLED if re.search(rf"\b{phrase}\b", plain)), None)
    if doubled is not None:
        message = f"Two negations cancel out (`{doubled}`), and judges slip on them."
        yield Remark("double-negative", message, "Say what the submission does.")
        return
    for limit in LIMITS:
        plain = plain.replace(limit, " ")
    found = [word for word in plain.split() if word in NEGATIONS]
    if len(found) > 1 and "nor" not in found:
        message = f"The requirement denies twice ({', '.join(f'`{word}`' for word in found)}); judges slip on it."
        yield Remark("double-negative", message, "Say what the submission does, or make two criteria.")
    elif found and criterion.weight < 0:
        message = f"`{found[0]}` stands in a criterion of negative weight: meeting it means that something is absent."
        yield Remark("negated-issue", message, "Turn it round: ask for what should be there, with a positive weight.")
    elif found and criterion.weight > 0 and not criterion.options:
        message = f"`{found[0]}` asks for an absence: whatever says nothing meets it."
        yield Remark("negated", message, "Ask for the issue itself, with a negative weight.")


def _outside(text: str) -> Iterator[Remark]:
    plain = _spaced(unquoted(text).lower())
    phrases = [phrase for phrase in OUTSIDE if re.search(rf"\b{re.escape(phrase)}\b", plain)]
    for phrase in phrases:
        if any(phrase != other and phrase in other for other in phrases):
            continue
        message = f"`{phrase}` cannot be judged from the submission alone."
        yield Remark("outside-knowledge", message, f"Instead, {OUTSIDE[phrase]}.")
