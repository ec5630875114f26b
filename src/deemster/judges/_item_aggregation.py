"""From the votes on an item to its verdicts, agreement and scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from deemster.errors import plural
from deemster.judges.grading_result import CriterionGrading, ItemGrading
from deemster.judges.judge_cascade import Cascade
from deemster.judges.judge_panel import Judge
from deemster.judges.vote import Vote, verdict_fields
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING, Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_scoring import Scoring, rubric_scores
from deemster.rubrics.vote_aggregation import Rules, aggregate, merge_repeats

_FAILED = frozenset({FAILED, FAILED_WORST})


class _Result(NamedTuple):
    """The verdict of some votes, and the value before it was snapped to an option."""

    code: int
    value: float | None


class ItemAggregator:
    """Aggregates the votes on the items of one rubric.

    Args:
        rubric: What they are judged by.
        judges: Who judges them.
        rules: How votes become one verdict.
        scoring: How verdicts become a score.
        cascade: Which judge is asked first, if the others are asked only where it is unsure.
    """

    def __init__(
        self,
        rubric: Rubric,
        *,
        judges: Sequence[Judge],
        rules: Rules,
        scoring: Scoring,
        cascade: Cascade | None = None,
    ) -> None:
        self._rubric, self._judges, self._scoring, self._cascade = rubric, tuple(judges), scoring, cascade
        self._rules = [rules.rule_for(criterion) for criterion in rubric.criteria]
        self._weights = [judge.weight for judge in judges]
        # Few verdicts and few judges make few combinations of votes, so results are cached.
        self._results: list[dict[tuple[int, ...], _Result]] = [{} for _ in rubric.criteria]
        self._merged: list[dict[tuple[int, ...], int]] = [{} for _ in rubric.criteria]

    def grade_item(self, name: str, votes: Sequence[Sequence[Vote]], *, penalty: float) -> ItemGrading:
        """The grading of one item.

        Args:
            name: The item's id.
            votes: The votes on each criterion.
            penalty: What is subtracted for its length.
        """
        rows = [[MISSING] * len(votes) for _ in self._judges]
        finals: list[_Result] = []
        for place, (criterion, cast) in enumerate(zip(self._rubric.criteria, votes, strict=True)):
            if criterion.check is not None:
                code = cast[0].code
                finals.append(_Result(code, criterion.values[code] if code >= 0 else None))
                continue
            codes = [
                self._merge_repeats(place, [vote.code for vote in cast if vote.judge == judge.id])
                for judge in self._judges
            ]
            for row, code in zip(rows, codes, strict=True):
                row[place] = code
            finals.append(self._decide(place, cast, codes))
        every = [[final.code for final in finals], *rows]
        scores = rubric_scores(self._rubric, every, scoring=self._scoring, penalties=penalty)
        criteria = tuple(
            _criterion_grading(criterion, cast, final)
            for criterion, cast, final in zip(self._rubric.criteria, votes, finals, strict=True)
        )
        agreements = [each.agreement for each in criteria if each.agreement is not None]
        score, *own = (None if math.isnan(value) else value for value in scores.score.tolist())
        raw = float(scores.raw_score[0])
        error = _error(criteria)
        return ItemGrading(
            id=name,
            score=score,
            raw_score=None if math.isnan(raw) else raw,
            unscored=None if score is not None else error or "No criterion with a weight is left to score.",
            penalty=penalty,
            criteria=criteria,
            judge_scores=dict(zip((judge.id for judge in self._judges), own, strict=True)),
            mean_agreement=math.fsum(agreements) / len(agreements) if agreements else None,
            cannot_assess_count=sum(each.abstained for each in criteria),
            failed_fatal=self._names(scores.failed_fatal[0]),
            unresolved_fatal=self._names(scores.unresolved_fatal[0]),
            error=error,
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

    def _decide(self, place: int, votes: Sequence[Vote], codes: Sequence[int]) -> _Result:
        """The verdict of a panel; of a cascade that of the cheap judge, or of the others if it does not stand."""
        if self._cascade is None:
            return self._result(place, tuple(codes))
        if self.cheap_verdict_stands(place, votes) or all(code == MISSING for code in codes[1:]):
            return self._result(place, (codes[0], *(MISSING for _ in codes[1:])))
        return self._result(place, (MISSING, *codes[1:]))

    def _merge_repeats(self, place: int, codes: Sequence[int]) -> int:
        """One judge's vote, from all its answers."""
        if len(codes) < 2:
            return codes[0] if codes else MISSING
        found, given = self._merged[place], tuple(codes)
        if given not in found:
            merged = merge_repeats(self._rubric.criteria[place], [given], rule=self._rules[place])
            found[given] = int(merged[0])
        return found[given]

    def _result(self, place: int, codes: tuple[int, ...]) -> _Result:
        found = self._results[place]
        if codes not in found:
            rule, weights = self._rules[place], self._weights
            result = aggregate(self._rubric.criteria[place], [codes], rule=rule, weights=weights)
            value = float(result.values[0])
            found[codes] = _Result(int(result.codes[0]), None if math.isnan(value) else value)
        return found[codes]

    def _names(self, flags: Any) -> tuple[str, ...]:
        return tuple(name for name, flag in zip(self._rubric.names, flags.tolist(), strict=True) if flag)


def _criterion_grading(criterion: Criterion, votes: Sequence[Vote], final: _Result) -> CriterionGrading:
    failed = final.code in _FAILED
    codes = [vote.code for vote in votes if vote.failure is None]
    return CriterionGrading(
        criterion=criterion.name,
        **verdict_fields(criterion, final.code),
        aggregated_value=final.value,
        failed=failed,
        agreement=codes.count(final.code) / len(codes) if codes and not failed else None,
        votes=tuple(votes),
    )


def _error(criteria: Sequence[CriterionGrading]) -> str | None:
    """The commonest message, if every criterion failed."""
    if not all(each.failed for each in criteria):
        return None
    messages = Counter(vote.failure.message for each in criteria for vote in each.votes if vote.failure is not None)
    ((message, _),) = messages.most_common(1)
    return f"Every call failed ({plural(messages.total(), 'call')}): {message}"
