"""What people write for a label: words for pass, fail and an abstention, and numbers."""

from __future__ import annotations

import re
from typing import Final

_PASS_AND_FAIL: Final = (
    ("met", "unmet"), ("met", "not met"), ("yes", "no"), ("y", "n"), ("true", "false"), ("1", "0"), ("pass", "fail"),
    ("passed", "failed"), ("correct", "incorrect"), ("right", "wrong"), ("good", "bad"), ("ok", "not ok"),
    ("okay", "nok"), ("accept", "reject"), ("accepted", "rejected"), ("acceptable", "unacceptable"),
    ("👍", "👎"), ("✓", "✗"), ("✅", "❌"),
)  # fmt: skip
PASS_WORDS: Final = frozenset(word for word, _ in _PASS_AND_FAIL)
FAIL_WORDS: Final = frozenset(word for _, word in _PASS_AND_FAIL)
ABSTAIN_WORDS: Final = frozenset({"cannot_assess", "cannot assess", "n/a", "abstain", "abstained"})
_DECIMAL_COMMA = re.compile(r"([+-]?[0-9]+),([0-9]+)")


def parse_number(text: str) -> float | None:
    """A number, also with a decimal comma; None where a text is none."""
    try:
        number = float(_DECIMAL_COMMA.sub(r"\1.\2", text.strip()))
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None
