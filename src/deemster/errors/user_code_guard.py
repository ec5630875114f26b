"""Catches whatever user code (a target, a custom metric) raises, and holds it as a value."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from deemster.errors.message_text import visible


class UserCodeGuard:
    """Holds what user code raised inside its ``with`` block; cancellation and interrupts pass through.

    A ``SystemExit`` counts as raised: user code must not end a run with an exit code of its own.

    Args:
        everything: Whether cancellation and interrupts are held too, as a thread without a caller needs it.

    Attributes:
        error: What was raised, or None.
    """

    __slots__ = ("_everything", "error")

    def __init__(self, *, everything: bool = False) -> None:
        self.error: BaseException | None = None
        self._everything = everything

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(error, (Exception, SystemExit)) or (self._everything and error is not None):
            self.error = error
            return True
        return False

    @property
    def message(self) -> str:
        """What was raised, in one line: its type and its text."""
        if self.error is None:
            return ""
        text = _text(self.error)
        return visible(f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__, limit=300)


def _text(error: BaseException) -> str:
    with UserCodeGuard() as caught:
        return str(error)
    return f"(its text cannot be shown: {type(caught.error).__name__})"
