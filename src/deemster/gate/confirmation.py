"""Confirm or clear: which newly failing samples really fail, from running them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from deemster.errors import plural
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.run_columns import RunColumns
from deemster.results.sample_changes import SampleChange, newly_failing
from deemster.stats import confirm_failures, reruns_to_confirm
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

# The chance of any false confirmation that is accepted.
_LEVEL = 0.05
_MOST_SHOWN = 30
State: TypeAlias = Literal["confirmed", "flaky", "open"]


def count_passes(run: RunColumns, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By a sample's id, how often every one of some metrics passed, and in how many repetitions that is known.

    A repetition tells something where one metric failed, or all passed: one without a score is no failure.

    Args:
        run: A run of samples that were run again.
        names: The metrics that are compared.
    """
    columns = [column for column, card in enumerate(run.marks.cards) if card.name in names]
    causes = run.marks.causes[:, :, columns]
    # A metric that does not apply does not fail.
    passed = run.marks.passed[:, :, columns] | (causes == OUTSIDE)
    failed = (causes == SCORED) & ~passed
    all_passed = passed.all(axis=2)
    known = all_passed | failed.any(axis=2)
    counts = zip(all_passed.sum(axis=1).tolist(), known.sum(axis=1).tolist(), strict=True)
    return dict(zip(run.ids(range(run.marks.samples)), counts, strict=True))


class ConfirmedSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A newly failing sample that was run again.

    Attributes:
        id: Its id in the candidate.
        reruns: How often it was run again and marked.
        passed: In how many of these every compared metric passed.
        p_value: The exact test that it passes as often as before, after Holm's correction over all of them.
        state: `confirmed` where it fails more often than its history allows, `flaky` where it does not, `open` where so
            few reruns, or so short a history, cannot tell.
    """

    id: str
    reruns: int
    passed: int
    p_value: float
    state: State


class Confirmation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every newly failing sample, confirmed or cleared by running it again.

    Attributes:
        samples: The samples.
        needed: How many reruns confirm every one of them whose history can show anything, if it fails all of them;
            None where no history can.
    """

    samples: tuple[ConfirmedSample, ...]
    needed: int | None

    def count(self, state: State) -> int:
        """How many samples are in a state."""
        return sum(sample.state == state for sample in self.samples)


def confirm_changes(
    changes: Iterable[SampleChange],
    reruns: Mapping[str, tuple[int, int]],
    *,
    earlier: Mapping[str, tuple[int, int]] | None = None,
) -> Confirmation | None:
    """Test which newly failing samples really fail; None where none was run again.

    The mark that made a sample newly failing is no evidence, because it was selected for failing. Only the reruns are.
    Its history is the baseline, as far as it has more than the pass that made the sample newly failing, and the runs
    before it.

    Args:
        changes: Every sample that changed, those that newly fail first.
        reruns: By a sample's id, how often it passed when it was run again, and in how many reruns that is known.
        earlier: By row hash, how often a sample passed in runs before the baseline, and how often it ran.
    """
    failing = [change for change in newly_failing(changes) if change.candidate and change.baseline]
    counts = [reruns.get(change.candidate.id, (0, 0)) for change in failing if change.candidate]
    if not any(n for _, n in counts):
        return None
    histories = [_history(change, earlier or {}) for change in failing]
    found = confirm_failures(
        [passed for passed, _ in counts],
        [n for _, n in counts],
        earlier_passed=[history.earlier_passed for history in histories],
        earlier_n=[history.earlier_n for history in histories],
        baseline_passed=[history.baseline_passed for history in histories],
        baseline_n=[history.baseline_n for history in histories],
        needed=[history.needed for history in histories],
        level=_LEVEL,
    )
    samples = [
        ConfirmedSample(
            id=change.candidate.id if change.candidate else "",
            reruns=n,
            passed=passed,
            p_value=found.adjusted[place],
            state=_state(passed, n, confirmed=found.confirmed[place], possible=found.possible[place]),
        )
        for place, (change, (passed, n)) in enumerate(zip(failing, counts, strict=True))
    ]
    # Few histories differ, and each takes a search.
    needed = [
        reruns_to_confirm(
            len(samples),
            earlier_passed=history.earlier_passed,
            earlier_n=history.earlier_n,
            baseline_passed=history.baseline_passed,
            baseline_n=history.baseline_n,
            needed=history.needed,
            level=_LEVEL,
        )
        for history in set(histories)
    ]
    return Confirmation(samples=tuple(samples), needed=max(filter(None, needed), default=None))


class _History(NamedTuple):
    """What is known of a sample before the candidate, as `confirm_failures` wants it."""

    earlier_passed: int
    earlier_n: int
    baseline_passed: int
    baseline_n: int
    needed: int


def _history(change: SampleChange, earlier: Mapping[str, tuple[int, int]]) -> _History:
    before = change.baseline
    repetitions = before.repetitions if before else 0
    return _History(
        *earlier.get(change.row_hash or "", (0, 0)),
        baseline_passed=before.passed if before else 0,
        baseline_n=repetitions,
        needed=(repetitions + 1) // 2,
    )


def _state(passed: int, reruns: int, *, confirmed: bool, possible: bool) -> State:
    if confirmed:
        return "confirmed"
    # Where nothing could have been confirmed, failing most of the reruns clears nothing.
    return "flaky" if possible or (reruns and passed * 2 >= reruns) else "open"


def confirmation_sections(found: Confirmation | None) -> list[TextSection]:
    """Which newly failing samples really fail, for a person; nothing where none was run again."""
    if found is None:
        return []
    order = ("confirmed", "open", "flaky")
    rows = [
        (DataText(sample.id), sample.state, f"{sample.passed} of {sample.reruns}", f"{sample.p_value:.4f}")
        for sample in sorted(found.samples, key=lambda each: order.index(each.state))
    ]
    counts = ", ".join(f"{found.count(state)} {state}" for state in order if found.count(state))  # type: ignore[arg-type]
    lines: list[TextLine] = [(f"{plural(len(rows), 'sample')} that broke, run again: {counts}.",)]
    if found.count("open") and found.needed is None:
        lines.append(("Without a history nothing is confirmed: one pass in the baseline may have been luck.",))
        lines.append(("Repetitions in the baseline, or stored runs before it, are a history.",))
    elif found.count("open"):
        lines.append((f"A sample that fails every time is confirmed by {plural(found.needed or 0, 'rerun')}.",))
    table = TextTable(("sample", "found", "passed again", "p after Holm"), rows[:_MOST_SHOWN])
    more = len(rows) - _MOST_SHOWN
    after: list[TextLine] = [(f"... and {more:,} more.",)] if more > 0 else []
    return [TextSection(("Samples that were run again",), lines, table, after=after, key="confirmation")]
