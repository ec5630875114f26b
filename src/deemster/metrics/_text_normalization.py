"""Normalises text (NFC, case, spaces) and splits it into word tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from deemster.errors import ConfigurationError, did_you_mean, list_names, show_value

STEPS = ("nfc", "casefold", "strip")
_WORD = re.compile(r"[^\W_]+")
_ASCII_WORDS = bytes(
    byte + 32 if 65 <= byte <= 90 else byte if 97 <= byte <= 122 or 48 <= byte <= 57 else 32 for byte in range(128)
) + bytes(range(128, 256))
_SPACE = re.compile(r"\s+")


def parse_normalize_option(option: Any) -> tuple[str, ...]:
    """The steps a `normalize` option names, in the order they are applied.

    Args:
        option: False or None for none, True for all, or a list of `nfc`, `casefold`, `strip`.

    Raises:
        ConfigurationError: The option names no known step.
    """
    if option is None or option is False:
        return ()
    if option is True:
        return STEPS
    steps = (option,) if isinstance(option, str) else option
    if not isinstance(steps, Sequence):
        raise ConfigurationError(f"`normalize` is true or a list of {list_names(STEPS)}, not {show_value(option)}.")
    for step in steps:
        if step not in STEPS:
            word = step if isinstance(step, str) else show_value(step)
            raise ConfigurationError(f"`normalize` knows no step {show_value(step)}. {did_you_mean(word, STEPS)}")
    return tuple(step for step in STEPS if step in steps)


def normalize_text(text: str, steps: Sequence[str]) -> str:
    """Text after the given steps: NFC, case folding (and NFC again), stripping."""
    if "nfc" in steps:
        text = unicodedata.normalize("NFC", text)
    if "casefold" in steps:
        text = text.casefold()
        if "nfc" in steps:
            text = unicodedata.normalize("NFC", text)
    return text.strip() if "strip" in steps else text


def normalize_passage(text: str, *, fold: bool = True) -> str:
    """Normalise a quote or passage for comparison: NFC, spaces collapsed, trimmed, case-folded where `fold`."""
    steps = ("nfc", "casefold") if fold else ("nfc",)
    return _SPACE.sub(" ", normalize_text(text, steps)).strip()


def word_tokens(text: str) -> list[str]:
    """Split text into word tokens: NFC, lower case, every run of letters and digits.

    >>> word_tokens("Snake_case x2")
    ['snake', 'case', 'x2']
    """
    if text.isascii():
        return text.encode("ascii").translate(_ASCII_WORDS).decode("ascii").split()
    return _WORD.findall(unicodedata.normalize("NFC", text).lower())
