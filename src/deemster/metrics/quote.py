"""Details that repeat words of a sample or output: cut, and safe to write as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

SHOWN = 20


def quoted(key: str, words: Iterable[str]) -> dict[str, Any]:
    """A detail that lists words, cut at 20 with `truncated: true`.

    Lone surrogates, which no JSON writer takes, become question marks.

    >>> quoted("missing", ["a"])
    {'missing': ['a']}
    """
    shown = [_writable(word) for word in islice(words, SHOWN + 1)]
    if len(shown) > SHOWN:
        return {key: shown[:SHOWN], "truncated": True}
    return {key: shown}


def pointer(path: Iterable[str | int]) -> str:
    """A place within a JSON value, as RFC 6901 writes it.

    >>> pointer(["a/b", 0])
    '/a~1b/0'
    """
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1') if isinstance(step, str) else step}" for step in path)


def _writable(word: str) -> str:
    return word if word.isascii() else word.encode("utf-8", "replace").decode()
