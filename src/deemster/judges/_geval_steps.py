"""The steps of a G-Eval metric that was given none: a model writes them, once for all samples."""

from __future__ import annotations

from functools import lru_cache

from deemster.judges.geval_definition import MOST_STEPS, SHOWN, JudgedQuality, format_bands
from deemster.judges.judge_panel import SEED
from deemster.judges.judge_script import Asking, ask_model
from deemster.judges.prompt_templates import DIVIDER, fill_template, prompt_file_text
from deemster.judges.reply_parser import TEXT, UnreadableReplyError, reply_entries, reply_schema
from deemster.records import Answer, Ask, Message

SCHEMA_STEPS = reply_schema({"steps": {"type": "array", "items": TEXT, "minItems": 1}})


def write_steps(quality: JudgedQuality, *, role: str, max_tokens: int) -> Asking[tuple[str, ...]]:
    """Have a model write the steps of a quality.

    Args:
        quality: The quality.
        role: The model that is asked.
        max_tokens: The longest answer.

    Raises:
        NoAnswerError: No usable answer came.
    """
    ask = Ask(
        messages=steps_messages(quality),
        schema=SCHEMA_STEPS,
        role=role,
        seed=SEED,
        max_tokens=max_tokens,
        once=True,
    )
    return (yield from ask_model(ask, parse_steps)).value


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


def parse_steps(answer: Answer) -> tuple[str, ...]:
    """The steps that a model wrote.

    Raises:
        UnreadableReplyError: They are no list of texts, or too many.
    """
    steps = reply_entries(answer, ("steps",))["steps"]
    if type(steps) is not list or not 1 <= len(steps) <= MOST_STEPS:
        raise UnreadableReplyError(f"`steps` are 1 to {MOST_STEPS} texts.")
    if not all(type(step) is str and step.strip() for step in steps):
        raise UnreadableReplyError("`steps` are texts that are not blank.")
    return tuple(step.strip() for step in steps)
