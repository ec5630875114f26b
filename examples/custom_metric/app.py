"""The application under test: writes product descriptions. A template stands in for a language model here."""

from __future__ import annotations

import asyncio
from typing import Any


async def describe(input: dict[str, Any]) -> str:
    """Write a description; a target may be a plain function as well."""
    await asyncio.sleep(0)  # where an application would wait for its model
    kind, _, name = input["product"].rpartition(" ")
    facts = input["facts"]
    if not facts:
        raise ValueError(f"no facts about {input['product']}")
    praise = "the ultimate" if kind == "Tent" else "a"
    return f"The {name} is {praise} {kind.lower()}. Good to know: {', '.join(facts[:2])}."
