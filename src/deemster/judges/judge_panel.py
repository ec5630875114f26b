"""Panels of judges: who is asked how often, and how metrics combine the votes into one score."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr, replace

from deemster.errors import ConfigurationError, Issue, did_you_mean, show_value, visible
from deemster.formats.schema_validation import Id, NonBlank, check_shape, decode_struct, is_id
from deemster.judges.judge_script import Asking, JudgeMetric, NoAnswerError, ParsedReply, ask_all
from deemster.judges.vote import Vote, VoteFailure, vote_failure
from deemster.metrics.option_checks import PositiveInteger, check_choice, check_whole_number, is_amount
from deemster.records import Answer, Ask, Mark, Message, MetricScore, NoAnswer
from deemster.records.marks import FIRST_CAUSE, reaches
from deemster.records.model_requests import JUDGE
from deemster.rubrics.verdicts import CHECK

COMBINATIONS = ("majority", "median", "mean", "weighted", "dawid-skene")
MOST_SAMPLES = 100
SEED = 42
# How many alternatives a model is asked for beside each token that it writes.
ALTERNATIVES = 20
HEAVIEST = 1e300
# What judges are asked with that are asked several times, unless a temperature is given.
_TEMPERATURE = 0.7
_SAME = 1e-9
Weight = Annotated[float, Meta(gt=0)]
T = TypeVar("T")


class Judge(msgspec.Struct, frozen=True):
    """One judge of a panel.

    Attributes:
        id: The name of its votes.
        model: The model role it asks.
        weight: How much its vote counts if the rule weighs votes.

    Raises:
        ConfigurationError: The id or the role is no name, or the weight is not a finite number above 0.
    """

    id: Id
    model: NonBlank
    weight: Weight = 1.0

    def __post_init__(self) -> None:
        checked = decode_struct(self, error=ConfigurationError, path=("judge",))
        if not is_id(self.id):
            raise ConfigurationError(check_shape(self.id, Id, path=("judge", "id")))
        if self.id.startswith(CHECK):
            raise ConfigurationError(
                f"`{self.id}` is no id of a judge: `{CHECK}` is for criteria that a metric answers."
            )
        force_setattr(self, "weight", checked.weight)


def check_judges(judges: Any) -> tuple[Judge, ...]:
    """Refuse what is no panel of judges, and give the judges as a tuple.

    Args:
        judges: One judge or several.

    Raises:
        ConfigurationError: There is none, one is no judge, or two have one id.
    """
    given = (judges,) if isinstance(judges, Judge) else judges
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(f"`judges` is one or more `Judge(id, model)`, not {show_value(judges)}.")
    every = tuple(given)
    issues = [
        Issue(f"A judge is a `Judge(id, model)`, not {show_value(each)}.") for each in every if type(each) is not Judge
    ]
    ids = [each.id for each in every if type(each) is Judge]
    issues += [Issue(f"Two judges have the id `{name}`.") for name in dict.fromkeys(ids) if ids.count(name) > 1]
    if not every:
        issues.append(Issue("`judges` is empty: a grader needs at least one judge."))
    if issues:
        raise ConfigurationError(issues)
    return every


def judge_temperature(given: float | None, *, repeats: int) -> float:
    """The temperature that judges are asked with: the given one, else 0, or 0.7 if they are asked several times.

    Args:
        given: The temperature that the user gave; None if none was given.
        repeats: How often each judge is asked.
    """
    return float(given) if given is not None else 0.0 if repeats == 1 else _TEMPERATURE


class Seat(NamedTuple):
    """One seat of a panel: a judge, and which of its several answers.

    Attributes:
        judge: The id of the judge; of a metric the model role.
        model: The model role that is asked.
        repeat: How often the judge was asked before.
        weight: How much its vote counts if votes are weighed.
    """

    judge: str
    model: str
    repeat: int = 0
    weight: float = 1.0

    def ask(
        self, messages: tuple[Message, ...], *, schema: Any, temperature: float, max_tokens: int, logprobs: int = 0
    ) -> Ask:
        """The request of this seat.

        Args:
            messages: The question.
            schema: The form of the answer.
            temperature: How freely the model chooses.
            max_tokens: The longest reply.
            logprobs: How many alternatives are wanted for each token.
        """
        return Ask(
            messages=messages,
            schema=schema,
            role=self.model,
            temperature=temperature,
            # Each answer has its own seed: a model that honours seeds would otherwise repeat itself.
            seed=SEED + self.repeat,
            max_tokens=max_tokens,
            logprobs=logprobs,
            sample=self.repeat,
        )

    @property
    def silent_vote(self) -> Vote:
        """The vote of this seat before it says anything."""
        return Vote(judge=self.judge, repeat=self.repeat, weight=self.weight)

    def failed_vote(self, failure: NoAnswer, *, tries: int = 0) -> Vote:
        """The vote of this seat if its judge gave no usable answer.

        Args:
            failure: Why.
            tries: How often the question was asked and the reply could not be read.
        """
        return replace(self.silent_vote, failure=vote_failure(failure.cause, failure.message, tries=tries))


class ScoreReply(msgspec.Struct, frozen=True, gc=False):
    """What one reply to a metric says.

    Attributes:
        value: The score, on the scale that was asked for; an expectation lies between its whole numbers.
        reason: Why, in the judge's words.
        label: The verdict in a word, if the metric asks for one.
        mass: The probability that the allowed scores cover, if the value is an expectation.
        fallback: Why the value is no expectation, if it should be one.
    """

    value: float
    reason: str
    label: str | None = None
    mass: float | None = None
    fallback: str | None = None


class PanelReplies(NamedTuple):
    """What the members of a panel replied.

    Attributes:
        votes: The vote of every seat.
        replies: What was read from the replies that could be read, in the order of the seats.
    """

    votes: list[Vote]
    replies: list[ScoreReply]

    @property
    def answered(self) -> list[Vote]:
        """The votes that did not fail."""
        return [vote for vote in self.votes if vote.failure is None]

    def logprob_details(self) -> dict[str, Any]:
        """The details of a mark that tell whether its score is an expectation over log-probabilities."""
        fallback = next((reply.fallback for reply in self.replies if reply.fallback is not None), None)
        masses = [reply.mass for reply in self.replies if reply.mass is not None]
        found = {"scoring": "logprobs" if masses else "integer", "mass": min(masses, default=None)}
        return found if fallback is None else {**found, "fallback": fallback}


def vote_detail(vote: Vote) -> dict[str, Any]:
    """A vote as a detail of the metric's mark.

    Args:
        vote: The vote.
    """
    seat = {"role": vote.judge, "sample": vote.repeat}
    if vote.failure is not None:
        return {**seat, "cause": vote.failure.cause, "message": visible(vote.failure.message, limit=300)}
    said = {**seat, "score": vote.value, "reason": vote.reason, "model": vote.model}
    return said if vote.verdict is None else {**said, "label": vote.verdict}


class PanelMetric(JudgeMetric, frozen=True, kw_only=True):
    """A metric whose judge may be a panel.

    Every model of `models` is asked `samples` times; each answer is a vote. Votes that failed are left out where a
    lower `quorum` allows it.

    Raises:
        ConfigurationError: An option is out of range.
    """

    models: Sequence[str] = (JUDGE,)
    samples: Annotated[int, Meta(ge=1, le=MOST_SAMPLES)] = 1
    temperature: float | None = None
    combine: str = "mean"
    weights: Mapping[str, float] | None = None
    quorum: int | None = None
    max_tokens: PositiveInteger = 1024

    def validate(self) -> None:
        """Refuse options of a panel that are out of range.

        Raises:
            ConfigurationError: An option is out of range.
        """
        force_setattr(self, "models", _models(self.models, metric=self.alias))
        force_setattr(self, "temperature", self._checked_temperature())
        check_choice(self.combine, COMBINATIONS, option="combine", metric=self.alias)
        force_setattr(self, "weights", self._checked_weights())
        if self.quorum is not None:
            check_whole_number(self.quorum, least=1, most=len(self.seats), option="quorum", metric=self.alias)

    def _checked_temperature(self) -> float | None:
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

    def _checked_weights(self) -> dict[str, float] | None:
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
    def seats(self) -> tuple[Seat, ...]:
        """The seats of the panel: for each model as many as it is asked times."""
        weights = None if self.weights is None else tuple(self.weights[model] for model in self.models)
        return _seats(tuple(self.models), self.samples, weights)

    @property
    def required_votes(self) -> int:
        """How many seats must answer: every one, unless `quorum` says otherwise."""
        return self.quorum if self.quorum is not None else len(self.models) * self.samples

    def asks(self, messages: tuple[Message, ...], *, schema: Mapping[str, Any], logprobs: int = 0) -> list[Ask]:
        """The same question to every seat.

        Args:
            messages: The question.
            schema: The form of the answer.
            logprobs: How many alternatives are wanted for each token.
        """
        temperature = judge_temperature(self.temperature, repeats=self.samples)
        return [
            seat.ask(messages, schema=schema, temperature=temperature, max_tokens=self.max_tokens, logprobs=logprobs)
            for seat in self.seats
        ]

    def ask_panel(
        self,
        messages: tuple[Message, ...],
        *,
        schema: Mapping[str, Any],
        read: Callable[[Answer], ScoreReply],
        logprobs: int = 0,
    ) -> Asking[PanelReplies]:
        """Ask every seat the same question at once.

        Args:
            messages: The question.
            schema: The form of the answer.
            read: Reads an answer, or raises `UnreadableReplyError`.
            logprobs: How many alternatives are wanted for each token.
        """
        found = yield from ask_all(self.asks(messages, schema=schema, logprobs=logprobs), read)
        votes = list(map(_score_vote, self.seats, found))
        return PanelReplies(votes, [each.value for each in found if isinstance(each, ParsedReply)])

    def combine_votes(self, votes: Sequence[Vote], *, higher_is_better: bool = True) -> tuple[float, dict[str, Any]]:
        """The panel's value, and the details that show how it came about.

        Args:
            votes: One for each seat, failed ones included.
            higher_is_better: Which of two values is the worse one if they tie.

        Returns:
            The value, and details: nothing for a panel of one, else the votes, their spread and their agreement.

        Raises:
            NoAnswerError: Too few seats answered.
        """
        if len(votes) == 1 and votes[0].value is not None:
            return votes[0].value, {}
        answered = require_quorum(votes, needed=self.required_votes)
        values = [vote.value for vote in answered if vote.value is not None]
        weights = None if self.weights is None else [vote.weight for vote in answered]
        # `settle` learns the weights of dawid-skene from all marks of a run; until then they are equal.
        how = "mean" if self.combine == "dawid-skene" else self.combine
        value = combine_values(values, how, weights=weights, higher_is_better=higher_is_better)
        if len(votes) == 1:
            return value, {}
        quorum = {"quorum": self.required_votes} if self.required_votes < len(votes) else {}
        found = {**vote_spread(values, value), "combine": self.combine, **quorum}
        return value, {**found, "votes": [*map(vote_detail, votes)]}

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
        return reweigh_marks(marks, label=lambda score: reaches(score, threshold))


def require_quorum(votes: Sequence[Vote], *, needed: int) -> list[Vote]:
    """The votes that did not fail, if they are enough.

    Args:
        votes: The votes of all seats.
        needed: How many must not have failed.

    Raises:
        NoAnswerError: They are fewer, or a budget or an interruption kept a seat from being asked: its vote could
            change the result. The cause is that of the only seat; of a panel it is `not_run` or `no_quorum`.
    """
    failures = [vote.failure for vote in votes if vote.failure is not None]
    answered = [vote for vote in votes if vote.failure is None]
    unasked = next((failure for failure in failures if failure.cause == "not_run"), None)
    if len(answered) >= needed and unasked is None:
        return answered
    if len(votes) == 1:
        raise NoAnswerError(NoAnswer(cause=failures[0].cause, message=failures[0].message))
    spoke = f"{len(answered)} of {len(votes)} members of the panel spoke"
    if unasked is not None:
        message = f"{spoke}; the others were not asked: {visible(unasked.message, limit=160)}"
        raise NoAnswerError(NoAnswer(cause="not_run", message=message))
    votes_by_judge = [f"{vote.judge} {vote.value:g}" for vote in answered if vote.value is not None]
    message = describe_no_quorum(votes, votes_by_judge, needed=needed)
    first_cause = first_failure(votes).cause
    raise NoAnswerError(NoAnswer(cause="no_quorum", message=message), {FIRST_CAUSE: first_cause})


def first_failure(votes: Sequence[Vote]) -> VoteFailure:
    """The failure that a panel without a quorum names first: an unreadable reply before a member that was down.

    A resumed run asks members that were down, and every member anew where a reply could not be read.

    Args:
        votes: The votes of all seats, of which some failed.
    """
    failures = [vote.failure for vote in votes if vote.failure is not None]
    return min(failures, key=lambda failure: failure.cause != "unreadable")


def describe_no_quorum(votes: Sequence[Vote], votes_by_judge: Sequence[str], *, needed: int) -> str:
    """Why the votes of a panel are too few, and what those were that were cast.

    Args:
        votes: The votes of all seats, of which some failed.
        votes_by_judge: The votes that did not fail, as text.
        needed: How many must not have failed.
    """
    first = first_failure(votes)
    n_answered = sum(vote.failure is None for vote in votes)
    spoke = f"{n_answered} of {len(votes)} members of the panel spoke"
    message = f"{spoke}; {needed} are needed. First: {first.cause}, {visible(first.message, limit=160)}"
    return message + (f" Votes: {', '.join(votes_by_judge)}." if votes_by_judge else "")


def combine_values(
    values: Sequence[float], how: str, *, weights: Sequence[float] | None = None, higher_is_better: bool = True
) -> float:
    """One value for several votes. Of tied values the worse one is taken.

    Args:
        values: The votes; at least one.
        how: `majority` (the commonest value), `median` (of two middle values the worse), `mean`, or `weighted` (the
            mean by weight; the plain mean if all weights are 0).
        weights: One for each vote, for `weighted`.
        higher_is_better: Whether a lower value is the worse one.

    >>> combine_values([1, 2, 2, 1], "majority"), combine_values([1, 2, 2, 1], "majority", higher_is_better=False)
    (1, 2)
    >>> combine_values([0.2, 0.4, 0.9, 1.0], "median"), combine_values([0.0, 1.0], "weighted", weights=[1, 3])
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


def vote_spread(values: Sequence[float], result: float) -> dict[str, Any]:
    """How far votes differ: their count, extremes, standard deviation, and the share equal to the result.

    Args:
        values: The votes; at least one.
        result: The value that they were combined into.

    >>> vote_spread([0.5, 0.5, 1.0, 1.0], 0.5)["agreement"]
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


def reweigh_marks(marks: Sequence[Mark], *, label: Callable[[float], Hashable]) -> list[Mark]:
    """The marks of a run, their votes weighed by how the seats agree over the whole run.

    Dawid and Skene's model takes the votes as labels and estimates how often each seat is right. The weight of a seat
    is how far that lies above guessing among the labels that occur; a seat no better than guessing has weight 0. The
    votes are then combined as by `weighted`. The marks stay as they are if there is only one label or one seat, or if
    all weights are 0.

    Args:
        marks: The marks of one metric over a run, with their votes in the details.
        label: The label that a score stands for.
    """
    votes = {
        place: {
            (vote["role"], vote["sample"]): vote["score"] for vote in mark.details.get("votes", ()) if "score" in vote
        }
        for place, mark in enumerate(marks)
        if isinstance(mark, MetricScore)
    }
    weights = _learned_weights(
        {place: {seat: label(score) for seat, score in row.items()} for place, row in votes.items() if row}
    )
    if not weights:
        return list(marks)
    weight_details = {f"{role}#{sample}": weight for (role, sample), weight in weights.items()}
    return [
        _reweighed(mark, votes[place], weights, weight_details)
        if isinstance(mark, MetricScore) and votes[place]
        else mark
        for place, mark in enumerate(marks)
    ]


def _reweighed(
    mark: MetricScore,
    row: Mapping[tuple[str, int], float],
    weights: Mapping[tuple[str, int], float],
    weight_details: Mapping[str, float],
) -> MetricScore:
    score = combine_values(list(row.values()), "weighted", weights=[weights[seat] for seat in row])
    details = {**mark.details, **vote_spread(list(row.values()), score), "weights": weight_details}
    if "judge_score" in details:
        details["judge_score"] = score
    return msgspec.structs.replace(mark, score=score, details=details)


def _learned_weights(labels: Mapping[Hashable, Mapping[Hashable, Hashable]]) -> dict[Any, float]:
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
def _seats(models: tuple[str, ...], samples: int, weights: tuple[float, ...] | None) -> tuple[Seat, ...]:
    weighed = zip(models, weights or (1.0,) * len(models), strict=True)
    return tuple(Seat(model, model, sample, weight) for model, weight in weighed for sample in range(samples))


def _score_vote(seat: Seat, found: ParsedReply[ScoreReply] | NoAnswer) -> Vote:
    if isinstance(found, NoAnswer):
        return seat.failed_vote(found)
    reply = found.value
    return replace(
        seat.silent_vote, value=reply.value, reason=reply.reason, verdict=reply.label, model=found.answer.model
    )


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
