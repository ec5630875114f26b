"""Warns of answers of a chat target that were cut, or stopped by a filter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deemster.errors import plural, visible
from deemster.records import Output
from deemster.records.execution import Execution

_SAID = {
    "length": ("cut off at the token limit", " Raise `max_tokens`, or ask for shorter ones."),
    "content_filter": ("stopped by the provider's content filter", ""),
}


class BrokenOffWatch:
    """Counts the answers of a run that end early."""

    def __init__(self) -> None:
        self._answers = 0
        self._samples: dict[str, list[str]] = {}

    def add(self, executions: Sequence[Execution]) -> None:
        """Look at executions as they are counted."""
        for execution in executions:
            answer = execution.answer
            if isinstance(answer, Output):
                self._answers += 1
                if answer.broken_off is not None:
                    self._samples.setdefault(answer.broken_off, []).append(execution.id)

    def warnings(self) -> Iterator[str]:
        """A warning for each reason, with the number of answers and the first of them."""
        for reason, samples in sorted(self._samples.items()):
            what, advice = _SAID[reason]
            verb = "was" if len(samples) == 1 else "were"
            first = visible(samples[0], limit=80)
            yield f"{len(samples):,} of {plural(self._answers, 'answer')} {verb} {what}, first `{first}`.{advice}"
