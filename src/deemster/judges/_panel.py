"""Panels: several models, or one model several times, and what becomes of their votes."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from deemster.errors import ConfigurationError, did_you_mean, show_value, visible
from deemster.judges.judge_script import Asking, Judged, Silent, Told, asked_all
from deemster.metrics.option_checks import check_choice, check_whole_number, is_amount
from deemster.records import Answer, Ask, Mark, Message, MetricScore, NoAnswer, Usage
from deemster.records.model_requests import JUDGE
from deemster.records.usage import added

COMBINATIONS = ("majority", "median", "mean", "weighted", "dawid-skene")
MOST_SAMPLES = 100
SEED = 42
HEAVIEST = 1e300
_SAME = 1e-9
T = TypeVar("T")


class Member(NamedTuple):
    """One seat of a panel: a model, and which of its several answers."""

    role: str
    sample: int = 0


class Vote(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one member of a panel said, or why it said nothing.

    Attributes:
        member: Who.
        value: The vote; None where the member was silent.
        reason: Why, in the member's words.
        model: The model that says it answered.
        label: The vote in a word, where the judge has words for it.
        no_answer: Why there is no vote.
        usage: What it used.
    """

    member: Member
    value: float | None = None
    reason: str | None = None
    model: str | None = None
    label: str | None = None
    no_answer: NoAnswer | None = None
    usage: Usage | None = None

    def detail(self) -> dict[str, Any]:
        """The vote as a detail of a mark."""
        seat = {"role": self.member.role, "sample": self.member.sample}
        if self.no_answer is not None:
            return {**seat, "cause": self.no_answer.cause, "message": visible(self.no_answer.message, limit=300)}
        said: dict[str, Any] = {"score": self.value, "reason": self.reason, "model": self.model}
        return {**seat, **said} if self.label is None else {**seat, **said, "label": self.label}


class Panelled(Judged, frozen=True, kw_only=True):
    """A judge that may be a panel.

    Every model of `models` is asked `samples` times; each answer is a vote. Members that stay silent are left out.

    Raises:
        ConfigurationError: An option is out of range.
    """

    models: Sequence[str] = (JUDGE,)
    samples: int = 1
    temperature: float | None = None
    combine: str = "mean"
    weights: Mapping[str, float] | None = None
    quorum: int | None = None
    max_tokens: int = 1024

    def validate(self) -> None:
        """Refuse a panel that makes no sense.

        Raises:
            ConfigurationError: An option is out of range.
        """
        put = msgspec.structs.force_setattr
        put(self, "models", _models(self.models, metric=self.alias))
        check_whole_number(self.samples, least=1, most=MOST_SAMPLES, option="samples", metric=self.alias)
        put(self, "temperature", self._temperature())
        check_choice(self.combine, COMBINATIONS, option="combine", metric=self.alias)
        put(self, "weights", self._weights())
        if self.quorum is not None:
            check_whole_number(self.quorum, least=1, most=len(self.members), option="quorum", metric=self.alias)
        check_whole_number(self.max_tokens, least=1, option="max_tokens", metric=self.alias)

    def _temperature(self) -> float | None:
        if self.temperature is None:
            return None
        if not is_amount(self.temperature) or self.temperature > 2:
            raise ConfigurationError(
                f"`temperature` of {self.alias} is a number from 0 to 2, not {show_value(self.temperature)}."
            )
        if self.samples > 1 and not self.temperature:
            raise ConfigurationError(
                f"{self.alias} with `samples` above 1 needs a `temperature` above 0: at 0 all answers are one."
            )
        return float(self.temperature)

    def _weights(self) -> dict[str, float] | None:
        if (self.combine == "weighted") != (self.weights is not None):
            raise ConfigurationError(f"`combine: weighted` and `weights` of {self.alias} go together; one is missing.")
        if self.weights is None:
            return None
        example = f"Write `weights: {{{', '.join(f'{role!r}: 1' for role in self.models)}}}`."
        if not isinstance(self.weights, Mapping) or not all(map(is_amount, self.weights.values())):
            raise ConfigurationError(f"`weights` of {self.alias} are numbers of at least 0 by model. {example}")
        for role in self.weights:
            if role not in self.models:
                hint = did_you_mean(str(role), self.models)
                raise ConfigurationError(
                    f"`weights` of {self.alias} names {show_value(role)}, which is no model. {hint}"
                )
        lacking = [role for role in self.models if role not in self.weights]
        if lacking or not any(self.weights.values()):
            raise ConfigurationError(f"`weights` of {self.alias} need every model, and one above 0. {example}")
        if max(self.weights.values()) > HEAVIEST:
            raise ConfigurationError(f"`weights` of {self.alias} are at most {HEAVIEST:g}, so that they can be added.")
        return {role: float(self.weights[role]) for role in self.models}

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return tuple(self.models)

    @property
    def members(self) -> tuple[Member, ...]:
        """The seats of the panel: for each model as many as it is asked times."""
        return _seats(tuple(self.models), self.samples)

    @property
    def needed(self) -> int:
        """How many members must speak: more than half, unless told otherwise."""
        return self.quorum if self.quorum is not None else len(self.models) * self.samples // 2 + 1

    def asks(
        self, messages: tuple[Message, ...], *, schema: Mapping[str, Any], members: Iterable[Member], logprobs: int = 0
    ) -> list[Ask]:
        """The same question to every member.

        Args:
            messages: The question.
            schema: The form of the answer.
            members: Who is asked.
            logprobs: How many alternatives are wanted for each token.
        """
        temperature = self.temperature if self.temperature is not None else 0.0 if self.samples == 1 else 0.7
        return [
            Ask(
                messages=messages,
                schema=schema,
                role=member.role,
                temperature=temperature,
                # A seed of its own for each answer: a model that honours seeds would else repeat itself.
                seed=SEED + member.sample,
                max_tokens=self.max_tokens,
                logprobs=logprobs,
                sample=member.sample,
            )
            for member in members
        ]

    def polled(
        self,
        messages: tuple[Message, ...],
        *,
        schema: Mapping[str, Any],
        read: Callable[[Answer], T],
        logprobs: int = 0,
    ) -> Asking[list[tuple[Member, Told[T] | NoAnswer]]]:
        """Put one question to all members at once.

        Args:
            messages: The question.
            schema: The form of the answer.
            read: Takes the verdict from an answer, or raises `Unreadable`.
            logprobs: How many alternatives are wanted for each token.

        Returns:
            Every member, with what was read from its answer or why nothing was.
        """
        members = self.members
        heard = yield from asked_all(self.asks(messages, schema=schema, members=members, logprobs=logprobs), read)
        return list(zip(members, heard, strict=True))

    def verdict(self, votes: Sequence[Vote], *, higher_is_better: bool = True) -> tuple[float, dict[str, Any]]:
        """The panel's value, and the details that show how it came about.

        Args:
            votes: One for each member, silent ones included.
            higher_is_better: Which of two values is the worse one, where they tie.

        Returns:
            The value, and details: nothing for a panel of one, else the votes, their spread and their agreement.

        Raises:
            Silent: Too few members spoke.
        """
        if len(votes) == 1 and votes[0].value is not None:
            return votes[0].value, {}
        spoken = spoken_of(votes, needed=self.needed)
        values = [vote.value for vote in spoken if vote.value is not None]
        weights = None if self.weights is None else [self.weights[vote.member.role] for vote in spoken]
        # Weights that are learned over the run are not there yet: until `settle` they are equal.
        how = "mean" if self.combine == "dawid-skene" else self.combine
        value = combined(values, how, weights=weights, higher_is_better=higher_is_better)
        if len(votes) == 1:
            return value, {}
        return value, {**spread_of(values, value), "combine": self.combine, "votes": [vote.detail() for vote in votes]}

    @property
    def settles(self) -> bool:
        """Whether marks are final only once all of a run are there."""
        return self.combine == "dawid-skene"

    def settle(self, marks: Sequence[Mark]) -> list[Mark]:
        """The marks of a whole run, once all of them are there; only `combine: dawid-skene` changes any.

        Args:
            marks: The marks of this metric over a run.
        """
        if not self.settles:
            return list(marks)
        threshold = 0.5 if self.threshold is None else self.threshold
        return settled(marks, classed=lambda score: score >= threshold)


def spoken_of(votes: Sequence[Vote], *, needed: int) -> list[Vote]:
    """The votes of those who spoke, where they are enough.

    Raises:
        Silent: They are fewer than needed. A panel of one keeps the cause of its missing answer; where the budget or an
            interruption came before enough could speak the cause is `not_run`, else `no_quorum`.
    """
    spoken = [vote for vote in votes if vote.no_answer is None]
    no_answers = [vote.no_answer for vote in votes if vote.no_answer is not None]
    if len(spoken) >= needed:
        return spoken
    usage = added(vote.usage for vote in votes if vote.usage is not None)
    if len(votes) == 1:
        raise Silent(no_answers[0])
    unasked = any(no_answer.cause == "not_run" for no_answer in no_answers)
    first = f"{no_answers[0].cause}, {visible(no_answers[0].message, limit=160)}"
    raise Silent(
        NoAnswer(
            cause="not_run" if unasked else "no_quorum",
            message=f"{len(spoken)} of {len(votes)} members of the panel spoke; {needed} are needed. First: {first}",
            usage=usage,
        )
    )


def combined(
    values: Sequence[float], how: str, *, weights: Sequence[float] | None = None, higher_is_better: bool = True
) -> float:
    """One value for several votes. Ties go to the worse quality.

    Args:
        values: The votes; at least one.
        how: `majority` (the commonest value), `median` (of two middle values the worse), `mean`, or `weighted` (the
            mean by weight; the plain one where those who spoke weigh nothing).
        weights: One for each vote, for `weighted`.
        higher_is_better: Whether a lower value is the worse one.

    >>> combined([1, 2, 2, 1], "majority"), combined([1, 2, 2, 1], "majority", higher_is_better=False)
    (1, 2)
    >>> combined([0.2, 0.4, 0.9, 1.0], "median"), combined([0.0, 1.0], "weighted", weights=[1, 3])
    (0.4, 0.75)
    """
    worse = min if higher_is_better else max
    if how == "majority":
        counts: dict[float, int] = {}
        for value in values:
            counts[value] = counts.get(value, 0) + 1
        most = max(counts.values())
        return worse(value for value, count in counts.items() if count == most)
    if how == "median":
        ranked = sorted(values)
        return worse(ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2])
    if how == "weighted" and weights is not None and (total := math.fsum(weights)):
        mean = math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / total
    else:
        mean = math.fsum(values) / len(values)
    # Rounding may carry a mean a hair beyond the values it lies between.
    return min(max(mean, min(values)), max(values))


def spread_of(values: Sequence[float], result: float) -> dict[str, Any]:
    """How far votes lie apart: their count, extremes, standard deviation, and the share equal to the result.

    Args:
        values: The votes; at least one.
        result: What became of them.

    >>> spread_of([0.5, 0.5, 1.0, 1.0], 0.5)["agreement"]
    0.5
    """
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return {
        "members": len(values),
        "lowest": min(values),
        "highest": max(values),
        "spread": math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else None,
        "agreement": sum(abs(value - result) <= _SAME for value in values) / len(values),
    }


def settled(marks: Sequence[Mark], *, classed: Callable[[float], Hashable]) -> list[Mark]:
    """The marks of a run with weights learned from how the members agree over all of it.

    Dawid and Skene's model takes the votes as labels and says how often each member is right. Its weight is what that
    is above guessing among the labels that occur; members no better than guessing weigh nothing. The votes are then
    combined as by `weighted`. Where nothing can be learned, because there is one label or one member, or all weigh
    nothing, the marks stay.

    Args:
        marks: The marks of one metric over a run, with their votes in the details.
        classed: The label of a vote.
    """
    votes = {
        place: {
            (vote["role"], vote["sample"]): vote["score"] for vote in mark.details.get("votes", ()) if "score" in vote
        }
        for place, mark in enumerate(marks)
        if isinstance(mark, MetricScore)
    }
    weights = _learned(
        {place: {seat: classed(score) for seat, score in row.items()} for place, row in votes.items() if row}
    )
    if not weights:
        return list(marks)
    shown_weights = {f"{role}#{sample}": weight for (role, sample), weight in weights.items()}
    return [
        _reweighed(mark, votes[place], weights, shown_weights)
        if isinstance(mark, MetricScore) and votes[place]
        else mark
        for place, mark in enumerate(marks)
    ]


def _reweighed(
    mark: MetricScore,
    row: Mapping[tuple[str, int], float],
    weights: Mapping[tuple[str, int], float],
    shown_weights: Mapping[str, float],
) -> MetricScore:
    score = combined(list(row.values()), "weighted", weights=[weights[seat] for seat in row])
    details = {**mark.details, **spread_of(list(row.values()), score), "weights": shown_weights}
    if "judge_score" in details:
        details["judge_score"] = score
    return msgspec.structs.replace(mark, score=score, details=details)


def _learned(labels: Mapping[Hashable, Mapping[Hashable, Hashable]]) -> dict[Any, float]:
    seats = {seat for row in labels.values() for seat in row}
    classes = {label for row in labels.values() for label in row.values()}
    if len(seats) < 2 or len(classes) < 2:
        return {}
    from deemster.stats.dawid_skene import dawid_skene  # noqa: PLC0415 - numpy is for those who ask for it

    guess = 1 / len(classes)
    accuracy = dawid_skene(labels).accuracy
    weights = {seat: max(0.0, ((right or 0.0) - guess) / (1 - guess)) for seat, right in accuracy.items()}
    return weights if any(weights.values()) else {}


@lru_cache(maxsize=64)
def _seats(models: tuple[str, ...], samples: int) -> tuple[Member, ...]:
    return tuple(Member(role, sample) for role in models for sample in range(samples))


def _models(models: Any, *, metric: str) -> tuple[str, ...]:
    roles = (models,) if isinstance(models, str) else models
    if (
        not isinstance(roles, Sequence)
        or not roles
        or not all(isinstance(role, str) and role.strip() == role != "" for role in roles)
    ):
        raise ConfigurationError(f"`models` of {metric} are names of the suite's models, not {show_value(models)}.")
    if len(set(roles)) != len(roles):
        raise ConfigurationError(f"`models` of {metric} names a model twice. To ask it several times say `samples`.")
    return tuple(roles)
