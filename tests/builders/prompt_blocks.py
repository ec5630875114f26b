"""A prompt for a judge, and the texts of others in it, taken apart."""

from __future__ import annotations

import re

from deemster.records import Ask


def structure(ask: Ask) -> tuple[tuple[str, str], dict[str, str]]:
    """The messages without the text of each block and with the nonce named; and the texts by label."""
    system, user = (message.content for message in ask.messages)
    (nonce,) = re.findall("the code is ([0-9a-f]{16})", system)
    block = re.compile(rf"^<<< (\w+) {nonce}\n(.*?)\n>>> \1 {nonce}$", re.DOTALL | re.MULTILINE)
    texts = {match[1]: match[2] for match in block.finditer(user)}
    outside = block.sub(lambda match: f"[{match[1]}]", user)

    assert nonce not in outside
    # No block holds what closes it: a reader that looks for the first such line reads the same blocks.
    assert not any(nonce in text for text in texts.values())
    return (system.replace(nonce, "NONCE"), outside), texts
