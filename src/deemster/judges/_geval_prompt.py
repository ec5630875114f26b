"""The prompt of G-Eval: the quality, its steps and rubric, examples, and the case."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from deemster.judges._untrusted_text import wrap_texts
from deemster.judges.geval_definition import FIELDS, GEvalExample, JudgedQuality, format_bands
from deemster.judges.prompt_templates import fill_template, load_prompt
from deemster.judges.reply_parser import TEXT, reply_schema
from deemster.records import Message

NOTHING = "The context is empty: no passage was retrieved."
TITLES = {
    "input": "Question",
    "context": "Context",
    "expected_output": "Expected answer",
    "actual_output": "Actual answer",
}
LABELS = {"input": "question"}


class PromptPart(NamedTuple):
    """One text of a case: its title, the label of its block, and the text."""

    title: str
    label: str
    text: str


class ShownExample(NamedTuple):
    """An example as the judge sees it: its texts, and the reply that is right."""

    parts: tuple[PromptPart, ...]
    reply: str


class FixedPrompt(NamedTuple):
    """What is the same for every case: the system message, split where the nonce goes, and the examples."""

    system: tuple[str, ...]
    examples: tuple[ShownExample, ...]


def geval_messages(
    quality: JudgedQuality, steps: tuple[str, ...], texts: Mapping[str, str | Sequence[str]]
) -> tuple[Message, Message]:
    """The two messages that describe a quality to a judge and show it a case.

    Args:
        quality: The quality.
        steps: Its steps, given by the user or written by a model.
        texts: The text of each field that is shown; the passages of a context as a list.
    """
    fixed = _fixed_prompt(quality, steps)
    case = list(split_parts(texts))

    parts = [*case, *(part for example in fixed.examples for part in example.parts)]
    wrapped, nonce = wrap_texts({part.label: part.text for part in parts})

    examples = [
        f"Example {number}:\n\n{_lay_out(example.parts, wrapped)}\n\nThe right reply:\n{example.reply}\n\n"
        for number, example in enumerate(fixed.examples, start=1)
    ]
    blocks = _lay_out(case, wrapped)
    if "context" in texts and not texts["context"]:
        blocks = f"{blocks}\n\n{NOTHING}" if blocks else NOTHING

    user = fill_template(load_prompt("g-eval").user, {"examples": "".join(examples), "case": blocks})
    return Message("system", nonce.join(fixed.system)), Message("user", user)


def split_parts(texts: Mapping[str, str | Sequence[str]], *, prefix: str = "") -> Iterator[PromptPart]:
    """The texts of a case with their titles and labels; each passage of a context is a text of its own.

    Args:
        texts: The text of each field; of the context also a list of passages.
        prefix: What every label begins with.
    """
    for field in FIELDS:
        text = texts.get(field)
        if text is None:
            continue
        title = TITLES[field]
        if isinstance(text, str):
            yield PromptPart(title, prefix + LABELS.get(field, field), text)
        else:
            for number, passage in enumerate(text, start=1):
                yield PromptPart(f"{title}, passage {number}", f"{prefix}passage_{number}", passage)


def _lay_out(parts: Sequence[PromptPart], wrapped: Mapping[str, str]) -> str:
    return "\n\n".join(f"{part.title}:\n{wrapped[part.label]}" for part in parts)


@lru_cache(maxsize=64)
def _fixed_prompt(quality: JudgedQuality, steps: tuple[str, ...]) -> FixedPrompt:
    values = {**_quality_values(quality), "steps": format_steps(steps)}
    # Filled piece by piece, so that a `{{nonce}}` within the steps is not taken for a place of the nonce.
    system = tuple(fill_template(piece, values) for piece in load_prompt("g-eval").system.split("{{nonce}}"))

    examples = tuple(
        ShownExample(tuple(split_parts(_example_texts(example), prefix=f"example_{number}_")), _right_reply(example))
        for number, example in enumerate(quality.examples, start=1)
    )
    return FixedPrompt(system, examples)


def _example_texts(example: GEvalExample) -> dict[str, str]:
    texts = {field: getattr(example, field) for field in FIELDS}
    return {field: text for field, text in texts.items() if text is not None}


def _right_reply(example: GEvalExample) -> str:
    return json.dumps({"reason": example.reason, "score": example.score}, ensure_ascii=False)


@lru_cache(maxsize=64)
def quality_prompt(quality: JudgedQuality) -> str:
    """The prompt about a quality, as a person reads it: with places for the texts of a case."""
    values = dict(_quality_values(quality))
    if quality.steps is not None:
        values["steps"] = format_steps(quality.steps)
    values["examples"] = "".join(
        f"Example {number}:\n\n{json.dumps(msgspec.to_builtins(example), ensure_ascii=False)}\n\n"
        for number, example in enumerate(quality.examples, start=1)
    )
    values["case"] = "\n\n".join(f"{TITLES[field]}:\n{{{{{field}}}}}" for field in quality.fields)
    return fill_template(load_prompt("g-eval").text, values)


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
def format_steps(steps: tuple[str, ...]) -> str:
    r"""Steps as a numbered list.

    >>> format_steps(("Read.", "Decide."))
    '1. Read.\n2. Decide.'
    """
    return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))


@lru_cache(maxsize=64)
def verdict_schema(low: int, high: int) -> Any:
    """The form of a judge's reply.

    Args:
        low: The least score.
        high: The greatest.
    """
    return reply_schema({"reason": TEXT, "score": {"type": "integer", "minimum": low, "maximum": high}})
