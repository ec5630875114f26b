"""A vote: what one judge said about one thing, once, or why it said nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec

from deemster.records import Call, Usage
from deemster.records.marks import Cause
from deemster.records.usage import sum_usage
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.verdicts import FAILURES, VERDICTS

Category: TypeAlias = Literal["infrastructure", "parse", "unknown"]
_CATEGORIES: Mapping[str, Category] = {
    "model_failed": "infrastructure",
    "rate_limited": "infrastructure",
    "not_run": "infrastructure",
    "unreadable": "parse",
}
# Causes of failure that lie with the model, not with what it was asked about.
MODEL_CAUSES = frozenset(_CATEGORIES)
_FREE = Decimal(0)


class VoteFailure(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Why a judge that was asked gave no vote.

    Attributes:
        category: `infrastructure`, `parse` or `unknown`; it decides which verdict is counted in place of the vote.
        message: What happened, for a person.
        cause: The cause of the unscored mark that follows.
        tries: How often the question was asked, if a reply came every time and none could be read; else 0.
    """

    category: Category
    message: str
    cause: Cause
    tries: int = 0


def vote_failure(cause: Cause, message: str, *, tries: int = 0) -> VoteFailure:
    """The failure of a vote, with the category that its cause belongs to.

    Args:
        cause: Why there is no answer.
        message: What happened, for a person.
        tries: How often the question was asked and the reply could not be read.

    >>> vote_failure("rate_limited", "429").category, vote_failure("metric_failed", "?").category
    ('infrastructure', 'unknown')
    """
    return VoteFailure(_CATEGORIES.get(cause, "unknown"), message, cause, tries)


class Vote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one judge said, once: about one criterion of a rubric, or about one output as a metric.

    Attributes:
        judge: Its id; of a metric the model role; `check:` and a metric's name if a metric answered a criterion.
        repeat: Which of its answers this is, from 0.
        verdict: `MET`, `UNMET`, `CANNOT_ASSESS`, the label of an option or the text of a number; of a metric the label,
            if it has labels. None if the judge failed.
        option_index: The index of the option; None for a binary criterion and for a number.
        value: What the verdict is worth, or the score of a metric; None for an abstention.
        abstained: Whether the verdict is an abstention.
        failure: Why there is no verdict.
        reason: Why, in the judge's words.
        thinking: The model's reasoning, if the provider reports it apart from the answer.
        probabilities: P(MET), or one for every scored option, if the judge gave them.
        shown_order: The indices of the options in the order they were shown.
        weight: How much the vote counts if the rule weighs votes.
        usage: Tokens, money and time.
        calls: The calls it stands on while its grading is running. Other votes may stand on them too, and the first
            in order pays. A finished grading has none.
        model: The model that answered a metric, by its own account.
    """

    judge: str
    repeat: int = 0
    verdict: str | None = None
    option_index: int | None = None
    value: float | None = None
    abstained: bool = False
    failure: VoteFailure | None = None
    reason: str | None = None
    thinking: str | None = None
    probabilities: tuple[float, ...] | None = None
    shown_order: tuple[int, ...] = ()
    weight: float = 1.0
    usage: Usage | None = None
    calls: tuple[Call, ...] = ()
    model: str | None = None

    @property
    def cost_usd(self) -> Decimal | None:
        """What it cost; None if that is unknown."""
        return known_cost(self.usage)

    @property
    def code(self) -> int | float:
        """The verdict as a code of its criterion, or the code of its failure; a float is a number."""
        if self.failure is not None:
            return FAILURES[self.failure.category]
        return verdict_code(self.verdict, self.option_index)


def verdict_code(verdict: str | None, option_index: int | None) -> int | float:
    """The code of a verdict: the index of its option, its place among the binary verdicts, or the number it is.

    Raises:
        ValueError: There is no verdict.

    >>> verdict_code("UNMET", None), verdict_code("good", 2), verdict_code("3.5", None)
    (1, 2, 3.5)
    """
    if option_index is not None:
        return option_index
    return VERDICTS.index(verdict) if verdict in VERDICTS else float(str(verdict))


def known_cost(usage: Usage | None) -> Decimal | None:
    """The cost of a usage in US dollars: 0 if no call was made, None if it is unknown."""
    return _FREE if usage is None or not usage.calls else usage.cost_usd


def verdict_fields(criterion: Criterion, code: float) -> dict[str, Any]:
    """The fields of a vote or a grading that hold a verdict; none for a code that is no verdict. A float is a number.

    >>> verdict_fields(Criterion("Is it right?"), 0)
    {'verdict': 'MET', 'option_index': None, 'value': 1.0, 'abstained': False}
    """
    if isinstance(code, float):
        value = criterion.share(code)
        return {"verdict": repr(code), "option_index": None, "value": value, "abstained": False}
    if code < 0:
        return {}
    return {
        "verdict": criterion.labels[code],
        "option_index": None if criterion.kind == "binary" else code,
        "value": criterion.values[code],
        "abstained": code in criterion.abstentions,
    }


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of usages; None stands for no usage."""
    return sum_usage(usage for usage in usages if usage is not None)
