"""Confirm or clear: which newly failing samples really fail, from running them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from deemster.records import Mark, MetricScore, NotApplicable, Unscored, Usage
from deemster.records.usage import sum_usage
from deemster.results.sample_changes import SampleChange
from deemster.results.usage_and_cost import UsageAccount
from deemster.stats import confirm_failures, reruns_to_confirm

# The chance of any false confirmation that is accepted.
_LEVEL = 0.05
State: TypeAlias = Literal["confirmed", "flaky", "open"]


class Reruns(msgspec.Struct, frozen=True, kw_only=True):
    """Samples that were run again after a run. They are stored with it, beside its marks.

    Attributes:
        metrics: The metrics, in the order of the outcomes.
        samples: By a sample's id, the outcomes of each rerun: whether each metric passed or does not
            apply, None where it gave no score.
        usage: What the target and the metrics used for them, summed by model; latencies are left out.
    """

    metrics: tuple[str, ...] = ()
    samples: Mapping[str, tuple[tuple[bool | None, ...], ...]] = {}
    usage: tuple[Usage, ...] = ()

    def add(self, sample: str, marks: Sequence[Mark], usages: Iterable[Usage | None] = ()) -> Reruns:
        """The reruns with one more, and what it used."""
        outcome = tuple(None if isinstance(mark, Unscored) else _passed(mark) for mark in marks)
        return msgspec.structs.replace(
            self,
            samples={**self.samples, sample: (*self.samples.get(sample, ()), outcome)},
            usage=sum_by_model([*self.usage, *(usage for usage in usages if usage is not None)]),
        )

    def account(self) -> UsageAccount:
        """What all reruns used."""
        account = UsageAccount()
        for usage in self.usage:
            account.add(usage)
        return account

    def counts(self, sample: str, names: Sequence[str]) -> tuple[int, int]:
        """How often every one of some metrics passed, and in how many reruns that is known."""
        columns = [self.metrics.index(name) for name in names if name in self.metrics]
        known = [
            all(outcome[column] for column in columns)
            for outcome in self.samples.get(sample, ())
            if _is_known([outcome[column] for column in columns])
        ]
        return sum(known), len(known)


def sum_by_model(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    """The usage of many calls, added up for each model.

    Args:
        usages: The usage of each call.
    """
    # Calls without a price stay apart, since a sum with one of them has none.
    parts: dict[tuple[object, ...], list[Usage]] = {}
    for usage in usages:
        alike = (usage.model, usage.cost_usd is None, usage.cost_source)
        parts.setdefault(alike, []).append(msgspec.structs.replace(usage, latency_ms=None))
    return tuple(total for part in parts.values() if (total := sum_usage(part)) is not None)


def _passed(mark: MetricScore | NotApplicable) -> bool:
    """Whether a mark lets its sample pass; a metric that does not apply stops none."""
    return isinstance(mark, NotApplicable) or mark.success


def _is_known(passes: Sequence[bool | None]) -> bool:
    """Whether a rerun tells something: one metric failed, or all passed. One without a score is no failure."""
    return False in passes or None not in passes


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


def newly_failing(changes: Iterable[SampleChange]) -> Iterator[SampleChange]:
    """The samples that newly fail; they come first among the changes."""
    for change in changes:
        if change.status != "newly_failing":
            return
        yield change


def confirm_changes(
    changes: Iterable[SampleChange],
    reruns: Reruns,
    *,
    names: Sequence[str],
    earlier: Mapping[str, tuple[int, int]] | None = None,
) -> Confirmation | None:
    """Test which newly failing samples really fail; None where none was run again.

    The mark that made a sample newly failing is no evidence, because it was selected for failing. Only the reruns are.
    Its history is the baseline, as far as it has more than the pass that made the sample newly failing, and the runs
    before it.

    Args:
        changes: Every sample that changed, those that newly fail first.
        reruns: What was run again.
        names: The metrics that are compared.
        earlier: By row hash, how often a sample passed in runs before the baseline, and how often it ran.
    """
    failing = [change for change in newly_failing(changes) if change.candidate and change.baseline]
    counts = [reruns.counts(change.candidate.id, names) for change in failing if change.candidate]
    if not any(n for _, n in counts):
        return None
    histories = [_history(change, earlier or {}) for change in failing]
    found = confirm_failures(
        [passed for passed, _ in counts],
        [n for _, n in counts],
        **{name: [history[name] for history in histories] for name in histories[0]},
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
    kinds = {tuple(history.items()) for history in histories}
    needed = [reruns_to_confirm(len(samples), **dict(kind), level=_LEVEL) for kind in kinds]
    return Confirmation(samples=tuple(samples), needed=max(filter(None, needed), default=None))


def _history(change: SampleChange, earlier: Mapping[str, tuple[int, int]]) -> dict[str, int]:
    """What is known of a sample before the candidate, as `confirm_failures` wants it."""
    before, (passed, n) = change.baseline, earlier.get(change.row_hash or "", (0, 0))
    repetitions = before.repetitions if before else 0
    return {
        "earlier_passed": passed,
        "earlier_n": n,
        "baseline_passed": before.passed if before else 0,
        "baseline_n": repetitions,
        "needed": (repetitions + 1) // 2,
    }


def _state(passed: int, reruns: int, *, confirmed: bool, possible: bool) -> State:
    if confirmed:
        return "confirmed"
    # Where nothing could have been confirmed, failing most of the reruns clears nothing.
    return "flaky" if possible or (reruns and passed * 2 >= reruns) else "open"
