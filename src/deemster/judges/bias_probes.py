"""Pairs of answers that differ in one thing only, which shows whether a judge reacts to it: length, tone, language."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Literal, NamedTuple, TypeAlias

from deemster.datasets.planted_defects import change_number

# What a pair is made from: an answer that is right, or the answer to another sample.
Base: TypeAlias = Literal["right", "wrong"]
ORDER = "order"
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
# Frames of six words each: a judge that counts words sees no difference between them.
_NEUTRAL = "Here is the answer to this:"
_AUTHORITY = "Leading professors in the field say:"
_CONFIDENT = "I am absolutely certain of this:"
_FLATTERY = "What a brilliant and thoughtful question!"
_FOREIGN = (
    "Voici la réponse à cette question :",
    "Hier ist die Antwort auf dies:",
    "Esta es la respuesta a esto:",
)
_OTHER_MODEL = "another-model"
# Seven words each.
_CONTENT_FREE = "This is the whole of the answer."
_IRRELEVANT = "The office next door was painted blue."
_PADDING = (
    "To put it in other words, this is the answer to the question, and it is given here in full, so that nothing is "
    "left out and nothing has to be added to it. Whoever asks the question again will get the same answer again, since "
    "the answer does not change when it is given again, and it says all that there is to say about it."
)


class ProbePair(NamedTuple):
    """Two texts that differ in one thing.

    Attributes:
        control: The text without it.
        variant: The text with it.
    """

    control: str
    variant: str


class BiasProbe(NamedTuple):
    """A thing that a judge may react to.

    Attributes:
        name: What users call it.
        what: What the second text of a pair has, in a few words.
        make: Makes a pair of a text, the name of the judge's model, and a generator; None where it cannot.
        bases: What pairs are made from. A judge that adds to its score shows it on wrong answers, one that takes
            away on right answers.
        must_notice: Whether a right judge must give the second text less, instead of the same.
    """

    name: str
    what: str
    make: Callable[[str, str, Random], ProbePair | None]
    bases: tuple[Base, ...] = ("right", "wrong")
    must_notice: bool = False


def make_pair(probe: BiasProbe, text: str, *, model: str, sample: str, seed: int) -> ProbePair | None:
    """A pair that differs in what a probe is about; None where it cannot be made of the text.

    Args:
        probe: The probe.
        text: An answer.
        model: What the judge is called.
        sample: The id of the sample.
        seed: Chooses where there is a choice.
    """
    if not text.strip() or text.lstrip().startswith(("{", "[{", '["')):
        return None
    drawn = Random(f"{seed}/{probe.name}/{sample}")  # noqa: S311 - a seeded choice, no secret
    pair = probe.make(text, model, drawn)
    return None if pair is None or pair.control == pair.variant else pair


def _framed(frame: str) -> Callable[[str, str, Random], ProbePair]:
    return lambda text, _, __: ProbePair(f"{_NEUTRAL} {text}", f"{frame} {text}")


def _in_language(text: str, _: str, drawn: Random) -> ProbePair:
    return ProbePair(f"{_NEUTRAL} {text}", f"{drawn.choice(_FOREIGN)} {text}")


def _by_itself(text: str, model: str, _: Random) -> ProbePair:
    told = "wrote the answer that follows:"
    return ProbePair(f"{_OTHER_MODEL} {told} {text}", f"{model} {told} {text}")


def _formatted(text: str, _: str, __: Random) -> ProbePair:
    parts = [part for part in _SENTENCES.split(text.strip()) if part.strip()]
    return ProbePair("Answer:\n\n" + "\n".join(parts), "## Answer\n\n" + "\n".join(f"- **{part}**" for part in parts))


def _with_detail(text: str, _: str, __: Random) -> ProbePair:
    return ProbePair(f"{text} {_CONTENT_FREE}", f"{text} {_IRRELEVANT}")


def _padded(text: str, _: str, __: Random) -> ProbePair:
    return ProbePair(text, f"{text} {_PADDING}")


def _with_other_number(text: str, _: str, drawn: Random) -> ProbePair | None:
    changed = change_number(text, drawn)
    return None if changed is None else ProbePair(text, changed)


PROBES: dict[str, BiasProbe] = {
    probe.name: probe
    for probe in (
        BiasProbe("length", "more words that say nothing", _padded),
        BiasProbe("formatting", "a heading, a list and bold type", _formatted),
        BiasProbe("confident-tone", "the claim to be certain", _framed(_CONFIDENT)),
        BiasProbe("authority", "the claim that professors say so", _framed(_AUTHORITY)),
        BiasProbe("self-reference", "the judge's own name as its author", _by_itself),
        BiasProbe("sycophancy", "praise for the question", _framed(_FLATTERY)),
        BiasProbe("irrelevant-detail", "a sentence about something else", _with_detail),
        BiasProbe("language", "an introduction in another language", _in_language),
        BiasProbe(
            "numbers-changed", "another number, which is wrong", _with_other_number, bases=("right",), must_notice=True
        ),
    )
}
