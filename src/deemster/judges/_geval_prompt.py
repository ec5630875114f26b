"""The prompt of G-Eval: the quality, its steps and rubric, examples, and the case."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from deemster.judges._untrusted_text import wrap_texts
from deemster.judges.geval_definition import FIELDS, SHOWN, Band, GEvalExample, format_bands
from deemster.judges.prompt_templates import DIVIDER, fill_template, load_prompt, prompt_file_text
from deemster.judges.reply_parser import TEXT, reply_schema
from deemster.records import Message

_SLACK = 1e-9
NOTHING = "The context is empty: no passage was retrieved."
TITLES = {
    "input": "Question",
    "context": "Context",
    "expected_output": "Expected answer",
    "actual_output": "Actual answer",
}
LABELS = {"input": "question"}
STEPS_SCHEMA = reply_schema({"steps": {"type": "array", "items": TEXT, "minItems": 1}})


class JudgedQuality(msgspec.Struct, frozen=True, kw_only=True):
    """One quality as the prompt describes it.

    Attributes:
        about: What it is, in a sentence or more.
        steps: What the judge does, in order; None if a model writes them from `about`.
        rubric: What earns which score.
        fields: What the judge is shown.
        higher_is_better: Whether a higher score is the better one.
        info: What else the judge should know.
        examples: Cases with the scores they deserve.
    """

    about: str
    steps: tuple[str, ...] | None
    rubric: tuple[Band, ...]
    fields: tuple[str, ...]
    higher_is_better: bool = True
    info: str | None = None
    examples: tuple[GEvalExample, ...] = ()

    @property
    def low(self) -> int:
        """The least score."""
        return self.rubric[0].range[0]

    @property
    def high(self) -> int:
        """The greatest score."""
        return self.rubric[-1].range[1]

    def normalize(self, value: float) -> float:
        """A value of the rubric brought to [0, 1]: 0 for the least, 1 for the greatest."""
        return (value - self.low) / (self.high - self.low)

    def value(self, score: float) -> float:
        """The value of the rubric that a score in [0, 1] stands for."""
        return self.low + score * (self.high - self.low)

    def nearest_integer(self, score: float) -> int:
        """The whole number of the rubric nearest to a score in [0, 1]; of two equally near ones the higher."""
        # Division may leave a half slightly too small; the slack makes up for it.
        return math.floor(self.value(score) + 0.5 + _SLACK)


class PromptPart(NamedTuple):
    """One text of a case: its title, the label of its block, and the text."""

    title: str
    label: str
    text: str


def split_parts(texts: Mapping[str, str | Sequence[str]], *, before: str = "") -> Iterator[PromptPart]:
    """The texts of a case with their titles and labels; each passage of a context is a text of its own.

    Args:
        texts: The text of each field; of the context also a list of passages.
        before: A prefix of every label.
    """
    for field in FIELDS:
        text = texts.get(field)
        if text is None:
            continue
        if isinstance(text, str):
            yield PromptPart(TITLES[field], before + LABELS.get(field, field), text)
            continue
        for place, passage in enumerate(text, start=1):
            yield PromptPart(f"{TITLES[field]}, passage {place}", f"{before}passage_{place}", passage)


def geval_messages(
    quality: JudgedQuality, steps: tuple[str, ...], texts: Mapping[str, str | Sequence[str]]
) -> tuple[Message, Message]:
    """The two messages that describe a quality to a judge and show it a case.

    Args:
        quality: The quality.
        steps: Its steps, given by the user or written by a model.
        texts: The text of each field that is shown; the passages of a context as a list.
    """
    system, examples = _fixed(quality, steps)
    case = list(split_parts(texts))
    every = {part.label: part.text for part in case}
    for parts, _ in examples:
        every |= {part.label: part.text for part in parts}
    found, nonce = wrap_texts(every)
    shown_examples = [
        f"Example {place}:\n\n{_laid_out(parts, found)}\n\nThe right reply:\n{reply}\n\n"
        for place, (parts, reply) in enumerate(examples, start=1)
    ]
    shown = _laid_out(case, found)
    if "context" in texts and not texts["context"]:
        shown = f"{shown}\n\n{NOTHING}" if shown else NOTHING
    user = fill_template(load_prompt("g-eval").user, {"examples": "".join(shown_examples), "case": shown})
    return Message("system", nonce.join(system)), Message("user", user)


@lru_cache(maxsize=64)
def steps_messages(quality: JudgedQuality) -> tuple[Message, Message]:
    """The two messages that ask a model to write the steps of a quality; they are the same for every case."""
    values = {
        "criteria": quality.about,
        "shown": ", ".join(SHOWN[field] for field in quality.fields),
        "low": str(quality.low),
        "high": str(quality.high),
        "rubric": format_bands(quality.rubric),
    }
    system, _, user = prompt_file_text("g-eval-steps").strip().partition(DIVIDER)
    return Message("system", fill_template(system, values)), Message("user", fill_template(user, values))


def steps_prompt(quality: JudgedQuality) -> str:
    """The prompt that asks for the steps of a quality, as a person reads it."""
    return DIVIDER.join(message.content for message in steps_messages(quality))


@lru_cache(maxsize=64)
def quality_prompt(quality: JudgedQuality) -> str:
    """The prompt about a quality, as a person reads it: with places for the texts of a case."""
    values = dict(_quality_values(quality))
    if quality.steps is not None:
        values["steps"] = format_steps(quality.steps)
    values["examples"] = "".join(
        f"Example {place}:\n\n{json.dumps(msgspec.to_builtins(example), ensure_ascii=False)}\n\n"
        for place, example in enumerate(quality.examples, start=1)
    )
    values["case"] = "\n\n".join(f"{TITLES[field]}:\n{{{{{field}}}}}" for field in quality.fields)
    return fill_template(load_prompt("g-eval").text, values)


@lru_cache(maxsize=64)
def format_steps(steps: tuple[str, ...]) -> str:
    r"""Steps as a numbered list.

    >>> format_steps(("Read.", "Decide."))
    '1. Read.\n2. Decide.'
    """
    return "\n".join(f"{place}. {step}" for place, step in enumerate(steps, start=1))


@lru_cache(maxsize=64)
def verdict_schema(low: int, high: int) -> Any:
    """The form of a judge's reply.

    Args:
        low: The least score.
        high: The greatest.
    """
    return reply_schema({"reason": TEXT, "score": {"type": "integer", "minimum": low, "maximum": high}})


@lru_cache(maxsize=64)
def _quality_values(quality: JudgedQuality) -> dict[str, str]:
    return {
        "quality": f"The quality: {quality.about}",
        "low": str(quality.low),
        "high": str(quality.high),
        "rubric": format_bands(quality.rubric),
        "direction": "a better case" if quality.higher_is_better else "a worse case",
        "info": "" if quality.info is None else f"\n\nWhat you should know beside:\n{quality.info}",
    }


@lru_cache(maxsize=64)
def _fixed(
    quality: JudgedQuality, steps: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[tuple[tuple[PromptPart, ...], str], ...]]:
    """What is the same for every case: the system message, split at the places of the nonce, and the examples."""
    values = {**_quality_values(quality), "steps": format_steps(steps)}
    # Filled piece by piece, so that a `{{nonce}}` within the steps is not taken for a place of the nonce.
    system = tuple(fill_template(piece, values) for piece in load_prompt("g-eval").system.split("{{nonce}}"))
    examples = tuple(
        (tuple(split_parts(_example_texts(example), before=f"example_{place}_")), _reply(example))
        for place, example in enumerate(quality.examples, start=1)
    )
    return system, examples


def _laid_out(parts: Sequence[PromptPart], found: Mapping[str, str]) -> str:
    return "\n\n".join(f"{part.title}:\n{found[part.label]}" for part in parts)


def _example_texts(example: GEvalExample) -> dict[str, str]:
    texts = {field: getattr(example, field) for field in FIELDS}
    return {field: text for field, text in texts.items() if text is not None}


def _reply(example: GEvalExample) -> str:
    return json.dumps({"reason": example.reason, "score": example.score}, ensure_ascii=False)
