"""Fake judges that have exactly one bias each, for tests of what finds biases."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from deemster.models.fake_models import FakeChat
from deemster.records import Ask

MODEL = "synthetic-judge"
_BLOCK = re.compile(r"<<< (\w+) ([0-9a-f]{16})\n(.*?)\n>{3} \1 \2", re.DOTALL)
_OPTION = re.compile(r"^(\d+)\. (right|partly|wrong)$", re.MULTILINE)
_WORD = re.compile(r"\w+")
_LONG = 40
_RIGHT, _WRONG, _BIAS = 0.8, 0.2, 0.4
_FOREIGN = frozenset({"voici", "réponse", "hier", "antwort", "auf", "esta", "respuesta", "esto"})


def _has(*words: str) -> Callable[[str], bool]:
    return lambda text: not set(words).isdisjoint(_words(text))


# What each judge reacts to, and how it moves its score.
_REACTIONS: dict[str, tuple[Callable[[str], bool], float]] = {
    "length": (lambda text: len(text.split()) > _LONG, _BIAS),
    "formatting": (lambda text: "**" in text or "##" in text, _BIAS),
    "confident-tone": (_has("certain", "sure", "undoubtedly"), _BIAS),
    "authority": (_has("professors", "experts", "scientists"), _BIAS),
    "self-reference": (lambda text: MODEL in text, _BIAS),
    "sycophancy": (_has("brilliant", "excellent", "thoughtful"), _BIAS),
    "irrelevant-detail": (_has("painted", "office"), -_BIAS),
    "language": (lambda text: not _FOREIGN.isdisjoint(_words(text)), -_BIAS),
}
BIASES = (*_REACTIONS, "numbers-changed", "order")


def biased_judge(bias: str | None, right_answers: Mapping[str, str], *, noise: float = 0.05) -> FakeChat:
    """A judge for llm-as-judge, pairwise and rubric that knows the right answers, with one bias.

    An answer is right if it holds the words of the right answer in their order. The judge gives it 0.8, and 0.2
    otherwise, with noise that is the same for the same question and text. Of the options of a criterion it chooses
    `right` from 0.7 on, `partly` from 0.4 on, and else `wrong`.

    Args:
        bias: One of ``BIASES``; None for a judge without any. `numbers-changed` reads over numbers, and `order` prefers
            the first of two answers that are equally good, and often the first option of a list.
        right_answers: By question, the right answer.
        noise: How far a score lies off at most.
    """

    def score(question: str, text: str) -> float:
        told, known = _words(text), _words(right_answers[question])
        if bias == "numbers-changed":
            told, known = ([word for word in words if not word.isdecimal()] for words in (told, known))
        found = _RIGHT if f" {' '.join(known)} " in f" {' '.join(told)} " else _WRONG
        reacts, move = _REACTIONS.get(bias or "", (None, 0.0))
        found += move if reacts is not None and reacts(text) else 0.0
        return min(1.0, max(0.0, found + noise * (2 * _draw(f"{question}/{text}") - 1)))

    def answer(ask: Ask) -> Any:
        blocks = {label: text for label, _, text in _BLOCK.findall(ask.messages[-1].content)}
        if "submission" in blocks:
            told = score(blocks["prompt"], blocks["submission"])
            options = {label: number for number, label in _OPTION.findall(ask.messages[-1].content)}
            number = options["right" if told >= 0.7 else "partly" if told >= 0.4 else "wrong"]
            reads_on = bias != "order" or _draw(blocks["submission"]) < 0.5
            return {"reason": "As it seems.", "option": int(number) if reads_on else 1}
        question = blocks["question"]
        if "actual_output" in blocks:
            return {"reason": "As it seems.", "score": score(question, blocks["actual_output"])}
        first, second = score(question, blocks["answer_a"]), score(question, blocks["answer_b"])
        if abs(first - second) <= 2 * noise:
            winner = "A" if bias == "order" else "tie"
        else:
            winner = "A" if first > second else "B"
        return {"reason": "As it seems.", "winner": winner}

    return FakeChat(answer, model=MODEL)


def _draw(text: str) -> float:
    """A number from 0 to 1 that is the same for the same text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
