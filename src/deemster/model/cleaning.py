"""Answers without the keys that a server may have echoed in them."""

from __future__ import annotations

from typing import Any

import msgspec

from deemster.model.secrets import Secrets
from deemster.records import Answer, Token


def cleaned(answer: Answer, secrets: Secrets) -> Answer:
    """An answer in which no field holds a secret; its tokens go altogether where one is in them.

    Args:
        answer: What a model said.
        secrets: What must not be in it.

    >>> cleaned(Answer(text="Your key is hunter2-hunter2."), Secrets(["hunter2-hunter2"])).text
    'Your key is [removed].'
    """
    fields = (answer.text, answer.model, answer.thinking, answer.finish)
    told = "\0".join([field for field in fields if isinstance(field, str)])
    if not (secrets.within(told) or (answer.tokens is not None and _tell(answer.tokens, secrets))):
        return answer
    changes: dict[str, Any] = {
        name: clean
        for name in ("text", "model", "thinking", "finish")
        if isinstance(told := getattr(answer, name), str) and (clean := secrets.removed(told)) != told
    }
    if answer.tokens is not None and _tell(answer.tokens, secrets):
        changes["tokens"] = None
    return msgspec.structs.replace(answer, **changes)


def _tell(tokens: tuple[Token, ...], secrets: Secrets) -> bool:
    """Whether tokens, one by one or in a row, hold a secret."""
    row = "".join(token.text for token in tokens)
    others = "\n".join(text for token in tokens for text, _ in token.alternatives)
    return secrets.within(row) or secrets.within(others)
