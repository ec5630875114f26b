"""What grading comes to: votes, verdicts, scores, and what they cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.datasets.vote_columns import FAILURES
from deemster.datasets.votes import Votes
from deemster.records import Call, Usage
from deemster.records.marks import Cause
from deemster.records.shared_call_cost import CallPayments, count_as_cached_part
from deemster.records.usage import added
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.verdicts import VERDICTS

Category: TypeAlias = Literal["infrastructure", "parse", "unknown"]
_CATEGORIES: Mapping[str, Category] = {
    "model_failed": "infrastructure",
    "rate_limited": "infrastructure",
    "not_run": "infrastructure",
    "unreadable": "parse",
}
# Causes that lie with a model, not with what it was asked about.
MODELS = frozenset(_CATEGORIES)
_FREE = Decimal(0)


class Failure(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Why a call brought no vote.

    Attributes:
        category: `infrastructure`, `parse` or `unknown`; it decides what stands in for the vote.
        message: What happened, for a person.
        cause: The engine's word for it.
        tries: How often the question had been put by then, where a reply came every time and none could be read.
    """

    category: Category
    message: str
    cause: Cause
    tries: int = 0


def failure_of(cause: Cause, message: str, *, tries: int = 0) -> Failure:
    """The failure that a missing answer of some cause is.

    Args:
        cause: The engine's word for it.
        message: What happened, for a person.
        tries: How often the question was put and answered by what could not be read.

    >>> failure_of("rate_limited", "429").category, failure_of("metric_failed", "?").category
    ('infrastructure', 'unknown')
    """
    return Failure(_CATEGORIES.get(cause, "unknown"), message, cause, tries)


class Vote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one judge said about one criterion, once.

    Attributes:
        judge: Its id; `check:` and a metric's name where a metric answered.
        repeat: Which of its answers this is, from 0.
        verdict: `MET`, `UNMET`, `CANNOT_ASSESS` or the label of an option; None where the call failed.
        option_index: The index of the option; None for a binary criterion.
        value: What the verdict is worth; None for an abstention.
        abstained: Whether the verdict is an abstention.
        failure: Why there is no verdict.
        reason: Why, in the judge's words.
        thinking: The model's reasoning, where it is told apart from the answer.
        probabilities: P(MET), or one for every scored option, where the judge gave them.
        shown_order: The indices of the options in the order they were shown.
        weight: How much the vote counts where a rule weighs votes.
        usage: Tokens, money and time.
        calls: The calls it stands on, while its grading is under way: others may stand on them too, and the first of
            them in order pays. A finished grading has none.
    """

    judge: str
    repeat: int = 0
    verdict: str | None = None
    option_index: int | None = None
    value: float | None = None
    abstained: bool = False
    failure: Failure | None = None
    reason: str | None = None
    thinking: str | None = None
    probabilities: tuple[float, ...] | None = None
    shown_order: tuple[int, ...] = ()
    weight: float = 1.0
    usage: Usage | None = None
    calls: tuple[Call, ...] = ()

    @property
    def cost_usd(self) -> Decimal | None:
        """What it cost; None where nobody knows."""
        return cost_of(self.usage)

    @property
    def code(self) -> int:
        """The verdict as a code of its criterion, or the code of its failure."""
        if self.failure is not None:
            return FAILURES[self.failure.category]
        return _code(self.verdict, self.option_index)


def _code(verdict: str | None, option_index: int | None) -> int:
    return VERDICTS.index(str(verdict)) if option_index is None else option_index


def cost_of(usage: Usage | None) -> Decimal | None:
    """The money of a usage: nothing where no call was made, None where nobody knows."""
    return _FREE if usage is None or not usage.calls else usage.cost_usd


def verdict_fields(criterion: Criterion, code: int) -> dict[str, Any]:
    """A code as a vote or a grading writes it; nothing for a code that is no verdict.

    >>> verdict_fields(Criterion("Is it right?"), 0)
    {'verdict': 'MET', 'option_index': None, 'value': 1.0, 'abstained': False}
    """
    if code < 0:
        return {}
    return {
        "verdict": criterion.labels[code],
        "option_index": code if criterion.options else None,
        "value": criterion.values[code],
        "abstained": code in criterion.abstentions,
    }


def total_of(usages: Iterable[Usage | None]) -> Usage | None:
    """Several usages as one, those that are None left out."""
    return added(usage for usage in usages if usage is not None)


class CriterionGrading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the votes on one criterion come to.

    Attributes:
        criterion: Its name.
        verdict: The final verdict; None where every vote failed.
        option_index: The index of the option; None for a binary criterion.
        value: What the verdict is worth; None for an abstention.
        aggregated_value: The value before it was snapped to an option.
        abstained: Whether the verdict is an abstention.
        failed: Whether every vote failed.
        agreement: The share of the votes that did not fail and equal the verdict; None without any.
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
    def code(self) -> int:
        """The final verdict as a code of the criterion.

        Raises:
            ValueError: There is none: every vote failed.
        """
        return _code(self.verdict, self.option_index)

    @property
    def reason(self) -> str | None:
        """The judges' reasons, a line each; None without any."""
        lines = [f"{vote.judge}: {vote.reason}" for vote in self.votes if vote.reason is not None]
        return "\n".join(lines) or None

    @property
    def usage(self) -> Usage | None:
        """What the votes used."""
        return total_of(vote.usage for vote in self.votes)

    @property
    def cost_usd(self) -> Decimal | None:
        """What the votes cost; None where nobody knows."""
        return cost_of(self.usage)


class ItemGrading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the verdicts on one item come to.

    Attributes:
        id: The item's id.
        score: None where nothing is left to score.
        raw_score: The weighted sum.
        unscored: Why there is no score.
        penalty: What was subtracted for length.
        criteria: Each criterion, in the order of the rubric; none where grading the item failed before it began.
        judge_scores: Each judge's own score; None where all its votes failed or nothing is left.
        mean_agreement: The mean of the criteria's agreements that are defined.
        cannot_assess_count: How many final verdicts are abstentions.
        failed_fatal: The fatal criteria that failed.
        unresolved_fatal: The fatal criteria that nobody could decide.
        error: What failed, where nothing was judged.
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
    error: str | None = None

    @property
    def votes(self) -> Iterator[Vote]:
        """Its votes, criterion by criterion."""
        return (vote for each in self.criteria for vote in each.votes)

    @property
    def usage(self) -> Usage | None:
        """What its votes used."""
        return total_of(vote.usage for vote in self.votes)

    @property
    def cost_usd(self) -> Decimal | None:
        """What its votes cost; None where nobody knows."""
        return cost_of(self.usage)

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

        criteria = tuple(
            msgspec.structs.replace(each, votes=tuple(map(settle_vote, each.votes))) for each in self.criteria
        )
        return msgspec.structs.replace(self, criteria=criteria)

    def without_calls(self) -> ItemGrading:
        """The item as it is when its grading is finished."""
        return self.settle(vote_payments(shared=()))


def vote_payments(*, shared: Collection[int] | None = None) -> CallPayments:
    """Who pays for the calls of votes.

    Args:
        shared: The ids of the calls that several may stand on; None if that can be any call.
    """
    return CallPayments(shared=shared, reused=count_as_cached_part)


class JudgeGrading(msgspec.Struct, frozen=True, kw_only=True):
    """How one judge fared.

    Attributes:
        id: Its id.
        model: The model role it asks.
        weight: How much its vote counts where a rule weighs votes.
        votes: How many votes it should have cast.
        failures: How many of them failed, by category.
        not_run: How many of the failed ones it was never asked for.
        usage: What they used.
    """

    id: str
    model: str
    weight: float = 1.0
    votes: int = 0
    failures: dict[str, int] = {}
    not_run: int = 0
    usage: Usage | None = None

    @property
    def failed(self) -> bool:
        """Whether it was asked and failed every time."""
        return self.not_run < self.votes == sum(self.failures.values())

    @property
    def cost_usd(self) -> Decimal | None:
        """What its votes cost; None where nobody knows."""
        return cost_of(self.usage)


class Grading(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A graded dataset.

    Attributes:
        items: Every item in the order of the dataset; read one by one where they are many.
        judges: How each judge fared.
        settings: All of the grader's settings that can change a verdict or a score.
        dataset: What was graded.
        usage: What all judges and checks used.
        halted: Why not everything was asked, such as a budget; None where everything was.
        n_failed_items: Items that could not be graded: every call failed, or something before the first.
        n_undecided: Verdicts that are missing because no model that should have given them could be reached.
        run: The run's id in the store; None where it was not stored.
        mixed: What changed while the grading was resumed, so that its parts are not of one kind.
    """

    items: Sequence[ItemGrading]
    judges: tuple[JudgeGrading, ...]
    settings: Mapping[str, Any]
    dataset: RubricDataset
    usage: Usage | None = None
    halted: str | None = None
    n_failed_items: int = 0
    n_undecided: int = 0
    run: str | None = None
    mixed: tuple[str, ...] = ()

    @property
    def dataset_fingerprint(self) -> str:
        """The fingerprint of what was graded."""
        return self.dataset.fingerprint

    @property
    def cost_usd(self) -> Decimal | None:
        """What all judges and checks cost; None where nobody knows."""
        return cost_of(self.usage)

    @property
    def failed_judges(self) -> tuple[str, ...]:
        """The judges that were asked and failed every time."""
        return tuple(judge.id for judge in self.judges if judge.failed)

    def votes(self, *, reasons: bool = False) -> Votes:
        """The votes in columns, with the labels of the dataset: what `compute_metrics` reads.

        Args:
            reasons: Whether the judges' reasons are kept with their votes.
        """
        from deemster.judges._grading_votes import votes_of  # noqa: PLC0415 - the writer needs this class

        return votes_of(self, reasons=reasons)

    def to_votes(self, path: str | Path, *, reasons: bool = True) -> Path:
        """Write a votes file, JSON or JSONL by extension; a reader never sees half a file.

        Args:
            path: Where it goes.
            reasons: Whether the judges' reasons are written with their votes.

        Returns:
            The path that was written.

        Raises:
            VotesError: The extension is none of these, or the file cannot be written.
        """
        from deemster.judges._grading_votes import write_grading  # noqa: PLC0415 - the writer needs this class

        return write_grading(self, path, reasons=reasons)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"<Grading: {len(self.items)} items, {len(self.judges)} judges>"
