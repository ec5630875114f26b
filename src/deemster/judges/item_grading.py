"""The verdicts, the score and the votes of one graded item."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from typing import Any

import msgspec

from deemster.judges.vote import Vote, known_cost, total_usage, verdict_code
from deemster.records import Usage
from deemster.records.shared_call_cost import (
    CallPayments,
    count_as_cached_part,
    distinct_calls,
    itemized_calls,
    with_calls,
)


class CriterionGrading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The result of one criterion on one item.

    Attributes:
        criterion: Its name.
        verdict: The final verdict; None if every vote failed.
        option_index: The index of the option; None for a binary criterion and for a number.
        value: What the verdict is worth; None for an abstention.
        aggregated_value: The value before it was snapped to an option.
        abstained: Whether the verdict is an abstention.
        failed: Whether every vote failed.
        agreement: The share of the votes that did not fail and equal the verdict; None without any. On a numeric
            criterion 1 minus the mean distance of the votes from the verdict, as a share of the range.
        votes: Every vote, by judge and repeat.
    """

    criterion: str
    verdict: str | None = None
    option_index: int | None = None
    value: float | None = None
    aggregated_value: float | None = None
    abstained: bool = False
    failed: bool = False
    agreement: float | None = None
    votes: tuple[Vote, ...] = ()

    @property
    def code(self) -> int | float:
        """The final verdict as a code of the criterion; a float is a number.

        Raises:
            ValueError: There is none: every vote failed.
        """
        return verdict_code(self.verdict, self.option_index)

    @property
    def counted(self) -> dict[str, Any]:
        """What is counted of it, as a mark has it."""
        return {
            "verdict": self.verdict,
            "value": self.value,
            "agreement": self.agreement,
            "abstained": self.abstained,
            "failed": self.failed,
        }

    @property
    def reason(self) -> str | None:
        """The judges' reasons, a line each; None without any."""
        lines = [f"{vote.judge}: {vote.reason}" for vote in self.votes if vote.reason is not None]
        return "\n".join(lines) or None

    @property
    def usage(self) -> Usage | None:
        """What the votes used."""
        return total_usage(vote.usage for vote in self.votes)

    @property
    def cost_usd(self) -> Decimal | None:
        """What the votes cost; None if that is unknown."""
        return known_cost(self.usage)


class ItemGrading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The result of one item.

    Attributes:
        id: The item's id.
        score: The score; None if nothing is left to score.
        raw_score: The weighted sum.
        unscored: Why there is no score.
        penalty: What was subtracted for length.
        criteria: Each criterion, in the order of the rubric; empty if grading failed before it began.
        judge_scores: Each judge's own score; None if all its votes failed or nothing is left to score.
        mean_agreement: The mean of the criteria's agreements that are defined.
        cannot_assess_count: How many final verdicts are abstentions.
        failed_fatal: The fatal criteria that failed.
        unresolved_fatal: The fatal criteria without a verdict.
        below_quorum: The criteria on which too few judges of the panel answered, for which the item has no score.
        error: What failed, if nothing was judged.
    """

    id: str
    score: float | None = None
    raw_score: float | None = None
    unscored: str | None = None
    penalty: float = 0.0
    criteria: tuple[CriterionGrading, ...] = ()
    judge_scores: dict[str, float | None] = {}
    mean_agreement: float | None = None
    cannot_assess_count: int = 0
    failed_fatal: tuple[str, ...] = ()
    unresolved_fatal: tuple[str, ...] = ()
    below_quorum: tuple[str, ...] = ()
    error: str | None = None

    @property
    def votes(self) -> Iterator[Vote]:
        """Its votes, criterion by criterion."""
        return (vote for each in self.criteria for vote in each.votes)

    @property
    def usage(self) -> Usage | None:
        """What its votes used."""
        return total_usage(vote.usage for vote in self.votes)

    @property
    def cost_usd(self) -> Decimal | None:
        """What its votes cost; None if that is unknown."""
        return known_cost(self.usage)

    @property
    def call_ids(self) -> list[int]:
        """The calls that votes on other items may stand on too; once for each question that a call answers."""
        asked = {(vote.judge, vote.repeat, call.id) for vote in self.votes for call in vote.calls if call.id}
        return [call_id for *_, call_id in asked]

    def settle(self, payments: CallPayments) -> ItemGrading:
        """The item with what its votes used in the end, and without calls.

        Args:
            payments: Knows which calls the items before this one in order have paid for.
        """
        if not any(vote.calls for vote in self.votes):
            return self
        # One question brings votes on several criteria, which share its cost: all of them pay, or none does.
        pays: dict[tuple[str, int, int], bool] = {}

        def settle_vote(vote: Vote) -> Vote:
            def pay(call_id: int) -> bool:
                question = (vote.judge, vote.repeat, call_id)
                if question not in pays:
                    pays[question] = payments.pay(call_id)
                return pays[question]

            return payments.settle(vote, pay)

        return self._with_votes(settle_vote)

    def without_calls(self) -> ItemGrading:
        """The item as it is when its grading is finished."""
        if not any(vote.calls for vote in self.votes):
            return self
        return self._with_votes(lambda vote: msgspec.structs.replace(vote, calls=()))

    def with_calls_of(self, earlier: ItemGrading) -> ItemGrading:
        """The item, whose votes also carry the calls of the votes that they replace.

        Args:
            earlier: The item as it was graded before.
        """
        lost = {(each.criterion, vote.judge, vote.repeat): vote for each in earlier.criteria for vote in each.votes}

        def paid(name: str, vote: Vote) -> Vote:
            old = lost.get((name, vote.judge, vote.repeat))
            if old is None or (old.failure is None and old == vote):
                return vote
            return with_calls(vote, distinct_calls((*itemized_calls(old), *itemized_calls(vote))))

        criteria = tuple(
            msgspec.structs.replace(each, votes=tuple(paid(each.criterion, vote) for vote in each.votes))
            for each in self.criteria
        )
        return msgspec.structs.replace(self, criteria=criteria)

    def _with_votes(self, change: Callable[[Vote], Vote]) -> ItemGrading:
        criteria = [
            msgspec.structs.replace(each, votes=tuple([change(vote) if vote.calls else vote for vote in each.votes]))
            for each in self.criteria
        ]
        return msgspec.structs.replace(self, criteria=tuple(criteria))


def vote_payments(*, shared: Collection[int] | None = None) -> CallPayments:
    """Who pays for the calls of votes.

    Args:
        shared: The ids of the calls that several may stand on; None if that can be any call.
    """
    return CallPayments(shared=shared, reused=count_as_cached_part)
