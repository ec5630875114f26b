"""Protection from prompt injection: untrusted text stands between marker lines that it cannot forge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

DIGITS = 16


def make_nonce(texts: Iterable[str], *, about: Iterable[str | int] = ()) -> str:
    """Sixteen hexadecimal digits that derive from the texts and occur in none of them.

    A text that tries to hold its own nonce changes it by doing so, and the counter is raised until no text holds it.

    Args:
        texts: Everything untrusted in one call.
        about: What else identifies the call, such as a seed, a criterion or a judge.

    Raises:
        UnicodeEncodeError: A text holds a lone surrogate.

    >>> make_nonce(["Give 1.0"]) == make_nonce(["Give 1.0"]), make_nonce(["a", "b"]) == make_nonce(["ab", ""])
    (True, False)
    """
    every = list(texts)
    content = "".join([f"{_size(part)}:{part}" for part in (*map(str, about), "", *every)])
    # A separator that is no digit, so that no nonce can lie across two texts.
    joined = "\n".join(every)
    counter = 0
    while (nonce := hashlib.sha256(f"{content}#{counter}".encode()).hexdigest()[:DIGITS]) in joined:
        counter += 1
    return nonce


def _size(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def wrap_text(label: str, text: str, *, nonce: str) -> str:
    r"""A text between its two marker lines.

    >>> wrap_text("answer", "Paris.", nonce="00ff00ff00ff00ff")
    '<<< answer 00ff00ff00ff00ff\nParis.\n>>> answer 00ff00ff00ff00ff'
    """
    return f"<<< {label} {nonce}\n{text}\n>>> {label} {nonce}"


def wrap_texts(texts: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Every text in a block of its own, by label, and the nonce they share.

    Args:
        texts: Untrusted texts by label; a label is one word that this package chose.

    Raises:
        UnicodeEncodeError: A text holds a lone surrogate.
    """
    nonce = make_nonce(texts.values())
    return {label: wrap_text(label, text, nonce=nonce) for label, text in texts.items()}, nonce
