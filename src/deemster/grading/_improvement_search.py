"""Rewords the criteria of a rubric, and accepts wordings that raise held-out agreement with people.

The labelled items are split into a training part and a held-out part. A model, the writer, sees the criteria with the
worst agreement on the training part, and submissions of that part on which judges and people disagree. The judges grade
both parts by each wording that the writer proposes. A wording is accepted where agreement on the held-out part rises by
more than noise: p of a one-sided sign-flip test of the paired differences is at most alpha / (tests - accepted), with
criteria x rounds tests. That is Holm's correction, applied test by test. It holds although the tests come one after the
other on the same items: an accepted criterion is not tried again, and neither the writer nor the judges learn anything
about the held-out part. So the n-th proposal for a criterion does not depend on earlier decisions, and the family of
tests is fixed before the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from deemster.agreement.agreement_gain import AgreementGain, compare_agreement, lowest_p_value
from deemster.errors import plural
from deemster.grading.improvement_judging import HELD_OUT, TRAIN, ImprovementJudging, ImprovementStopped
from deemster.grading.improvement_report import Improvement, TargetCriterion, WordingTrial
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import is_missing


class RubricImprovement:
    """One rubric being improved.

    Args:
        judging: Asks judges and the writer.
    """

    def __init__(self, judging: ImprovementJudging) -> None:
        self._judging = judging
        self._rubric = judging.rubric
        self._settings = judging.settings
        self._targets: list[TargetCriterion] = []
        self._trials: list[WordingTrial] = []
        # The accepted wordings, by criterion.
        self._wordings: dict[str, str] = {}

    async def improve(self) -> Improvement:
        """Improve the rubric as far as the models answer."""
        is_complete = True
        try:
            stopped = await self._try_rounds()
        except ImprovementStopped as reason:
            stopped = str(reason)
            is_complete = False

        return Improvement(
            before=self._rubric,
            after=reword_rubric(self._rubric, self._wordings),
            targets=tuple(self._targets),
            tries=tuple(self._trials),
            alpha=self._settings.alpha,
            family=self._n_tests,
            train_items=len(self._judging.parts[TRAIN].cases),
            held_out_items=len(self._judging.parts[HELD_OUT].cases),
            stopped=stopped,
            complete=is_complete,
            usage=self._judging.usage,
        )

    @property
    def _n_tests(self) -> int:
        """How many tests there may be in all."""
        return len(self._targets) * self._settings.rounds

    async def _try_rounds(self) -> str:
        """Try wordings until there is nothing left to try; why it ended."""
        for criterion in await self._worst_criteria():
            self._targets.append(await self._target(criterion))
        if not self._targets:
            return "judges and people agree on every item of the training part"

        for number in range(1, self._settings.rounds + 1):
            n_before = len(self._trials)
            for target in self._targets:
                if target.criterion not in self._wordings:
                    self._trials += await self._try(target, number)

            if len(self._wordings) == len(self._targets):
                return "every criterion that was looked at has a better wording"
            if not any(trial.decision in ("accepted", "rejected") for trial in self._trials[n_before:]):
                return f"round {number} brought no wording that helps on the training part"
        return f"all {plural(self._settings.rounds, 'round')} are over"

    async def _worst_criteria(self) -> list[Criterion]:
        """The criteria that judges and people agree least about on the training part, worst first."""
        ranked = []
        for index, criterion in enumerate(self._rubric.criteria):
            if criterion.check is not None or all(map(is_missing, self._judging.truths(index, TRAIN))):
                continue
            agreements = await self._known_agreements(criterion, TRAIN)
            if agreements and min(agreements) < 1:
                ranked.append((sum(agreements) / len(agreements), index))
        return [self._rubric.criteria[index] for _, index in sorted(ranked)[: self._settings.criteria]]

    async def _known_agreements(self, criterion: Criterion, part: str) -> list[float]:
        """How far judges and people agree on each item of a part that both judged."""
        return [agreement for agreement in await self._judging.agreements(criterion, part) if agreement is not None]

    async def _target(self, criterion: Criterion) -> TargetCriterion:
        train = await self._known_agreements(criterion, TRAIN)
        held_out = await self._judging.agreements(criterion, HELD_OUT)
        known = [agreement for agreement in held_out if agreement is not None]
        clusters = self._judging.parts[HELD_OUT].clusters
        return TargetCriterion(
            criterion=criterion.name,
            requirement=criterion.requirement,
            train_n=len(train),
            train_agreement=sum(train) / len(train),
            train_disagreements=sum(agreement < 1 for agreement in train),
            held_out_n=len(known),
            held_out_agreement=sum(known) / len(known) if known else None,
            least_p=lowest_p_value(held_out, clusters=clusters, seed=self._settings.seed),
        )

    async def _try(self, target: TargetCriterion, number: int) -> list[WordingTrial]:
        """Try one wording of a criterion; no trial where it is known that none can be accepted."""
        level = self._settings.alpha / (self._n_tests - len(self._wordings))
        trial = WordingTrial(round=number, criterion=target.criterion, decision="out of reach", level=level)
        earlier = [other for other in self._trials if other.criterion == target.criterion]
        if target.least_p > level:
            message = f"Too few disagreements are held out: even a perfect wording has p = {target.least_p:.4g}."
            return [] if earlier else [replace(trial, message=message)]

        old = self._rubric.criteria[self._rubric.names.index(target.criterion)]
        # Counted by criterion, so that the n-th proposal is the same whatever became of the other criteria.
        proposed = [other for other in earlier if other.decision != "out of reach"]
        tried = [other.requirement for other in proposed if other.requirement is not None]
        reply = await self._judging.propose(old, len(proposed) + 1, tried=tried)
        if reply.requirement is None:
            return [replace(trial, decision="refused", message=reply.message)]

        trial = replace(trial, requirement=reply.requirement, diagnosis=reply.diagnosis)
        return [await self._test(trial, old, replace(old, requirement=reply.requirement))]

    async def _test(self, trial: WordingTrial, old: Criterion, new: Criterion) -> WordingTrial:
        """Whether a wording helps, on the training part and then on the held-out one."""
        trial = replace(trial, train=await self._gain(old, new, TRAIN))
        if not _is_better(trial.train):
            return replace(trial, decision="no better")

        held_out = await self._gain(old, new, HELD_OUT)
        # A level near 1 lets a wording through that is better as often as worse: such a one is no improvement.
        is_significant = held_out.p_value is not None and held_out.p_value <= trial.level
        if not _is_better(held_out) or not is_significant:
            return replace(trial, decision="rejected", held_out=held_out)
        self._wordings[old.name] = new.requirement
        return replace(trial, decision="accepted", held_out=held_out)

    async def _gain(self, old: Criterion, new: Criterion, part: str) -> AgreementGain:
        truths = self._judging.truths(self._rubric.names.index(old.name), part)
        return compare_agreement(
            await self._judging.agreements(old, part),
            await self._judging.agreements(new, part),
            labelled=sum(not is_missing(truth) for truth in truths),
            clusters=self._judging.parts[part].clusters,
            seed=self._settings.seed,
        )


def _is_better(gain: AgreementGain | None) -> bool:
    return gain is not None and gain.difference is not None and gain.difference > 0


def reword_rubric(rubric: Rubric, wordings: Mapping[str, str]) -> Rubric:
    """A rubric with new requirements for some criteria; everything else stays.

    Args:
        rubric: The rubric.
        wordings: New requirements by the names of their criteria.

    >>> reword_rubric(Rubric((Criterion("Is good.", name="a"),)), {"a": "Names a source."}).criteria[0].requirement
    'Names a source.'
    """

    def reword(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
        return tuple(
            replace(criterion, requirement=wordings.get(criterion.name, criterion.requirement))
            for criterion in criteria
        )

    sections = tuple(replace(section, criteria=reword(section.criteria)) for section in rubric.sections)
    return replace(rubric, criteria=reword(rubric.criteria), sections=sections)
