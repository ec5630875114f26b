"""From the votes on an item to its verdicts, agreement and scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from deemster.errors import plural
from deemster.judges.item_grading import CriterionGrading, ItemGrading
from deemster.judges.judge_cascade import Cascade
from deemster.judges.judge_panel import Judge, describe_no_quorum
from deemster.judges.vote import Vote, verdict_fields
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING, Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_scoring import Scoring, rubric_scores
from deemster.rubrics.vote_aggregation import (
    Rules,
    aggregate_cells,
    is_missing,
    merge_repeated_cells,
    split_cells,
)

_FAILED = frozenset({FAILED, FAILED_WORST})
# So many combinations of verdicts are remembered with their scores.
_MOST_KNOWN = 4096


class _Result(NamedTuple):
    """The verdict of some votes, a code or a number, and the value before it was snapped to an option."""

    code: int | float
    value: float | None


class _ItemScores(NamedTuple):
    """What the verdicts on an item come to: the score of the panel, then that of each judge."""

    scores: tuple[float | None, ...]
    raw_score: float | None
    failed_fatal: tuple[str, ...]
    unresolved_fatal: tuple[str, ...]


class ItemAggregator:
    """Aggregates the votes on the items of one rubric.

    Args:
        rubric: What they are judged by.
        judges: Who judges them.
        rules: How votes become one verdict.
        scoring: How verdicts become a score.
        cascade: Which judge is asked first, if the others are asked only where it is unsure.
        quorum: The fewest votes of a panel on a criterion that make a score; None where every one must be cast.
    """

    def __init__(
        self,
        rubric: Rubric,
        *,
        judges: Sequence[Judge],
        rules: Rules,
        scoring: Scoring,
        cascade: Cascade | None = None,
        quorum: int | None = None,
    ) -> None:
        self._quorum = quorum
        self._rubric, self._judges, self._scoring, self._cascade = rubric, tuple(judges), scoring, cascade
        self._rules = [rules.rule_for(criterion) for criterion in rubric.criteria]
        self._weights = [judge.weight for judge in judges]
        # A dict takes the code 1 and the number 1.0 for one key.
        self._has_numbers = any(criterion.kind == "numeric" for criterion in rubric.criteria)
        self._known_scores: dict[tuple[Any, ...], _ItemScores] = {}
        # Few verdicts and few judges make few combinations of votes, so results are cached.
        self._results: list[dict[tuple[int | float, ...], _Result]] = [{} for _ in rubric.criteria]
        self._merged: list[dict[tuple[int | float, ...], int | float]] = [{} for _ in rubric.criteria]

    def grade_item(self, name: str, votes: Sequence[Sequence[Vote]], *, penalty: float) -> ItemGrading:
        """The grading of one item.

        Args:
            name: The item's id.
            votes: The votes on each criterion.
            penalty: What is subtracted for its length.
        """
        rows: list[list[int | float]] = [[MISSING] * len(votes) for _ in self._judges]
        finals: list[_Result] = []
        for place, (criterion, cast) in enumerate(zip(self._rubric.criteria, votes, strict=True)):
            if criterion.check is not None:
                code = cast[0].code
                finals.append(_Result(code, verdict_fields(criterion, code).get("value")))
                continue
            cells = [
                self._merge_repeats(place, [vote.code for vote in cast if vote.judge == judge.id])
                for judge in self._judges
            ]
            for row, cell in zip(rows, cells, strict=True):
                row[place] = cell
            finals.append(self._decide(place, cast, cells))
        scores = self._scores([[final.code for final in finals], *rows], penalty)
        criteria = tuple(
            _criterion_grading(criterion, cast, final)
            for criterion, cast, final in zip(self._rubric.criteria, votes, finals, strict=True)
        )
        agreements = [each.agreement for each in criteria if each.agreement is not None]
        score, *own = scores.scores
        error = _error(criteria)
        too_few = self._too_few_votes(criteria)
        if too_few:
            score = None
        return ItemGrading(
            id=name,
            score=score,
            raw_score=None if too_few else scores.raw_score,
            unscored=None if score is not None else _why_unscored(error, too_few),
            penalty=penalty,
            criteria=criteria,
            judge_scores=dict(zip((judge.id for judge in self._judges), own, strict=True)),
            mean_agreement=math.fsum(agreements) / len(agreements) if agreements else None,
            cannot_assess_count=sum(each.abstained for each in criteria),
            failed_fatal=scores.failed_fatal,
            unresolved_fatal=scores.unresolved_fatal,
            below_quorum=tuple(too_few),
            error=error,
        )

    def _too_few_votes(self, graded: Sequence[CriterionGrading]) -> dict[str, str]:
        """By criterion, why the votes behind its verdict are too few for a score."""
        reasons: dict[str, str] = {}

        for place, criterion in enumerate(graded):
            if criterion.failed:
                continue
            panel = self._deciding_votes(place, criterion.votes)
            answered = [vote for vote in panel if vote.failure is None]
            needed = len(panel) if self._quorum is None else min(self._quorum, len(panel))
            if len(answered) < needed:
                votes_by_judge = [f"{vote.judge} {vote.verdict}" for vote in answered]
                reasons[criterion.criterion] = describe_no_quorum(panel, votes_by_judge, needed=needed)

        return reasons

    def _deciding_votes(self, place: int, votes: Sequence[Vote]) -> list[Vote]:
        """The votes of the panel that decides on a criterion; none where the first judge of a cascade does."""
        if self._rubric.criteria[place].check is not None or self.cheap_verdict_stands(place, votes):
            return []
        if self._cascade is None:
            return list(votes)
        return [vote for vote in votes if vote.judge != self._cascade.cheap.id]

    def _scores(self, cells: Sequence[Sequence[int | float]], penalty: float) -> _ItemScores:
        """The scores of the panel and of each judge, from the cells of each."""
        key = (penalty, *map(tuple, cells))
        found = None if self._has_numbers else self._known_scores.get(key)
        if found is None:
            found = self._work_out_scores(cells, penalty)
            # Numbers and lengths make ever new combinations.
            if not self._has_numbers and len(self._known_scores) < _MOST_KNOWN:
                self._known_scores[key] = found
        return found

    def _work_out_scores(self, cells: Sequence[Sequence[int | float]], penalty: float) -> _ItemScores:
        codes, numbers = split_cells(cells)
        by_place = dict(enumerate(numbers.T))
        scores = rubric_scores(self._rubric, codes, scoring=self._scoring, penalties=penalty, numbers=by_place)
        raw = float(scores.raw_score[0])
        return _ItemScores(
            tuple(None if math.isnan(value) else value for value in scores.score.tolist()),
            None if math.isnan(raw) else raw,
            self._names(scores.failed_fatal[0]),
            self._names(scores.unresolved_fatal[0]),
        )

    def cheap_verdict_stands(self, place: int, votes: Sequence[Vote]) -> bool:
        """Whether the verdict of a cascade's cheap judge on a criterion stands.

        Args:
            place: The criterion's place in the rubric.
            votes: All votes on it; only those of the cheap judge are read.
        """
        if self._cascade is None:
            return False
        own = [vote for vote in votes if vote.judge == self._cascade.cheap.id]
        code = self._merge_repeats(place, [vote.code for vote in own])
        return self._cascade.is_confident(self._rubric.criteria[place], own, code)

    def _decide(self, place: int, votes: Sequence[Vote], codes: Sequence[int | float]) -> _Result:
        """The verdict of a panel; of a cascade that of the cheap judge, or of the others if it does not stand."""
        if self._cascade is None:
            return self._result(place, tuple(codes))
        if self.cheap_verdict_stands(place, votes) or all(map(is_missing, codes[1:])):
            return self._result(place, (codes[0], *(MISSING for _ in codes[1:])))
        return self._result(place, (MISSING, *codes[1:]))

    def _merge_repeats(self, place: int, codes: Sequence[int | float]) -> int | float:
        """One judge's vote, from all its answers."""
        if len(codes) < 2:
            return codes[0] if codes else MISSING
        criterion, rule, given = self._rubric.criteria[place], self._rules[place], tuple(codes)
        if criterion.kind == "numeric":
            return merge_repeated_cells(criterion, given, rule=rule)
        found = self._merged[place]
        if given not in found:
            found[given] = merge_repeated_cells(criterion, given, rule=rule)
        return found[given]

    def _result(self, place: int, codes: tuple[int | float, ...]) -> _Result:
        criterion, rule, found = self._rubric.criteria[place], self._rules[place], self._results[place]
        # A dict takes the code 1 and the number 1.0 for one key.
        if criterion.kind == "numeric":
            return _Result(*aggregate_cells(criterion, codes, rule=rule, weights=self._weights))
        if codes not in found:
            found[codes] = _Result(*aggregate_cells(criterion, codes, rule=rule, weights=self._weights))
        return found[codes]

    def _names(self, flags: Any) -> tuple[str, ...]:
        return tuple(name for name, flag in zip(self._rubric.names, flags.tolist(), strict=True) if flag)


def _criterion_grading(criterion: Criterion, votes: Sequence[Vote], final: _Result) -> CriterionGrading:
    failed = not isinstance(final.code, float) and final.code in _FAILED
    cells = [vote.code for vote in votes if vote.failure is None]
    return CriterionGrading(
        criterion=criterion.name,
        **verdict_fields(criterion, final.code),
        aggregated_value=final.value,
        failed=failed,
        agreement=_agreement(criterion, cells, final.code) if cells and not failed else None,
        votes=tuple(votes),
    )


def _agreement(criterion: Criterion, cells: Sequence[int | float], final: float) -> float:
    """The share of votes that equal the verdict; of numbers how near they are to it."""
    if not isinstance(final, float):
        return sum(cell == final and not isinstance(cell, float) for cell in cells) / len(cells)
    near = (1 - abs(criterion.share(cell) - criterion.share(final)) for cell in cells if isinstance(cell, float))
    return math.fsum(near) / len(cells)


def _why_unscored(error: str | None, too_few: Mapping[str, str]) -> str:
    """Why an item has no score."""
    for criterion, reason in too_few.items():
        others = len(too_few) - 1
        more = f" ({others:,} more {'criterion' if others == 1 else 'criteria'})" if others else ""
        return f"{criterion}: {reason}{more}"
    return error or "No criterion with a weight is left to score."


def _error(criteria: Sequence[CriterionGrading]) -> str | None:
    """The commonest message, if every criterion failed."""
    if not all(each.failed for each in criteria):
        return None
    messages = Counter(vote.failure.message for each in criteria for vote in each.votes if vote.failure is not None)
    ((message, _),) = messages.most_common(1)
    return f"Every call failed ({plural(messages.total(), 'call')}): {message}"
