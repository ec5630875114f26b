"""Whether the reference itself declines to answer."""

from __future__ import annotations

from typing import Any

from deemster.judges.blocks import blocks
from deemster.judges.case import question_of, reference_of
from deemster.judges.contract import Asking, asked
from deemster.judges.panel import SEED
from deemster.judges.prompts import Prompt, prompt
from deemster.judges.reply import Unreadable, entries_of, words
from deemster.metrics.contract import absent, kind
from deemster.records import Answer, Ask, Sample, freeze

SCHEMA: Any = freeze(
    {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "declines": {"type": "boolean"}},
        "required": ["reason", "declines"],
        "additionalProperties": False,
    }
)


def reference_prompt() -> Prompt:
    """What a model is told that has to decide it."""
    return prompt("refuses")


def reference_declines(sample: Sample, *, role: str, max_tokens: int) -> Asking[bool]:
    """Whether the reference declines: as `metadata.refusal_expected` says, else as a model finds.

    Args:
        sample: The sample.
        role: The model that is asked.
        max_tokens: The longest answer.

    Raises:
        Fault: There is no reference, or the metadata is no boolean.
        Silent: No usable answer came.
    """
    said = sample.metadata.get("refusal_expected")
    if said is not None:
        if type(said) is not bool:
            raise absent(f"`metadata.refusal_expected` is true or false; here it is {kind(said)}.")
        return said
    values, nonce = blocks({"question": question_of(sample), "expected_output": reference_of(sample)})
    ask = Ask(
        messages=reference_prompt().messages(values, nonce=nonce),
        schema=SCHEMA,
        role=role,
        seed=SEED,
        max_tokens=max_tokens,
    )
    return (yield from asked(ask, declines_of)).value


def declines_of(answer: Answer) -> bool:
    """What one answer says.

    Raises:
        Unreadable: It is not a reason and a boolean.
    """
    entries = entries_of(answer, ("reason", "declines"))
    words(entries, "reason")
    declines = entries["declines"]
    if type(declines) is not bool:
        raise Unreadable("`declines` is true or false.")
    return declines
