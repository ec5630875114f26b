"""Improves a rubric: rewords criteria, and accepts wordings that raise held-out agreement with people.

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

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from deemster.agreement.agreement_gain import AgreementGain, compare_agreement, lowest_p_value
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.engine.model_access import (
    NO_LIMITS,
    ModelAccess,
    ModelCalls,
    build_model_access,
    complete_model_access,
    open_gateway,
)
from deemster.engine.progress import Progress
from deemster.engine.run_sync import run_sync
from deemster.errors import ConfigurationError, plural, show_value
from deemster.errors.parameter_checks import checks_parameters
from deemster.evaluation.dry_run import DryRun, plan_scripts
from deemster.grading._improvement_run import open_improvement_run
from deemster.grading._improvement_split import DatasetPart, split_train_test
from deemster.grading.improvement_judging import (
    HELD_OUT,
    TRAIN,
    USUAL_IMPROVEMENT,
    ImprovementJudging,
    ImprovementSettings,
    ImprovementStopped,
)
from deemster.grading.improvement_report import Improvement, TargetCriterion, WordingTrial
from deemster.judges.criterion_grader import CriterionGrader
from deemster.models import ChatClient, Role
from deemster.models.clock import Clock
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import is_missing
from deemster.runs.run_identity import digest
from deemster.runs.run_storage import Storage
from deemster.runs.run_timer import RunTimer
from deemster.store import Store
from deemster.store.run_facts import RunStatus


@checks_parameters
def improve_rubric(
    rubric: Rubric | str | Path,
    dataset: RubricDataset | str | Path,
    grader: CriterionGrader,
    *,
    models: Mapping[str, ChatClient | Role | Mapping[str, Any]] | None = None,
    calls: ModelCalls = NO_LIMITS,
    storage: Storage | str | Path | None = None,
    settings: ImprovementSettings = USUAL_IMPROVEMENT,
) -> Improvement:
    """Reword the criteria that judges and people agree least about, and accept wordings that raise held-out agreement.

    Name, weight, options, labels, values and scale stay as they are.

    Args:
        rubric: What is improved, or the path of its file.
        dataset: Items with people's labels, or the path of their file.
        grader: Who judges, and how; one call per criterion, without examples.
        models: Models by role: a client, or a map as in a suite's `models` section.
        calls: Cache, budget and network of the models.
        storage: The file that keeps what the models said, so that a stopped improvement can be resumed, or a
            ``Storage``, which says that it is.
        settings: How wordings are looked for and tested.

    Raises:
        InputError: Something given cannot be used.
    """
    if not isinstance(grader, CriterionGrader):
        raise ConfigurationError(f"`grader` is a `CriterionGrader`, not {show_value(grader)[:60]}.")
    known = rubric if isinstance(rubric, Rubric) else Rubric.load(rubric)
    items = dataset if isinstance(dataset, RubricDataset) else RubricDataset.load(dataset)
    path, resume = _progress_file(storage)
    access = build_model_access(models, calls)
    return run_sync(run_improvement(known, items, grader, settings, access=access, path=path, resume=resume))


def _progress_file(storage: Storage | str | Path | None) -> tuple[Path | None, bool]:
    """The file that an improvement is kept in, and whether it is resumed."""
    if storage is None:
        return None, False
    where, resume, *_ = storage if isinstance(storage, Storage) else Storage(storage)
    if isinstance(where, Store):
        raise ConfigurationError("An improvement is kept in a file of its own: give `storage` its path.")
    return Path(where), bool(resume)


async def run_improvement(
    rubric: Rubric,
    dataset: RubricDataset,
    grader: CriterionGrader,
    settings: ImprovementSettings,
    *,
    access: ModelAccess,
    path: Path | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
) -> Improvement:
    """The same as ``improve_rubric``, to be awaited.

    Args:
        rubric: What is improved.
        dataset: Items with people's labels.
        grader: Who judges.
        settings: How.
        access: How models may be asked.
        path: The progress file.
        resume: Whether to resume from that file.
        progress: Gets the progress of the grading under way.
        clock: The time; the machine's own unless given.

    Raises:
        InputError: Something given cannot be used.
    """
    if issues := list(settings.issues(grader)):
        raise ConfigurationError(issues)
    train, held_out = split_train_test(
        rubric, dataset, train=settings.train, cluster=settings.cluster, seed=settings.seed
    )
    access = complete_model_access(access, [grader, WriterRole(settings.writer_role(grader))])
    identity = _identity(rubric, dataset, grader, settings, access)
    timer = RunTimer(clock)
    with open_improvement_run(path, dataset, identity, seed=settings.seed, resume=resume, timer=timer) as run:
        calls = None if run is None else run.calls
        async with open_gateway(access, clock=timer.clock, seed=settings.seed, calls=calls) as gateway:
            parts = {TRAIN: train, HELD_OUT: held_out}
            judging = ImprovementJudging(rubric, parts, grader, settings, gateway=gateway, run=run, progress=progress)
            improvement = await RubricImprovement(judging).improve()
        if run is not None:
            status: RunStatus = "complete" if improvement.complete else "incomplete"
            run.close(status, None if improvement.complete else improvement.stopped, duration_s=run.duration_s())
        return improvement


class WriterRole(NamedTuple):
    """Who proposes wordings, as what names the roles that are asked."""

    role: str

    @property
    def name(self) -> str:
        """How messages call it."""
        return "The writer"

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return (self.role,)


def _identity(
    rubric: Rubric,
    dataset: RubricDataset,
    grader: CriterionGrader,
    settings: ImprovementSettings,
    access: ModelAccess,
) -> dict[str, Any]:
    """The identity of an improvement: everything that its questions and answers depend on."""
    writer = settings.writer_role(grader)
    used = dict.fromkeys((*grader.roles, writer))
    models = {role: {"model": access.roles[role].model, "identity": access.roles[role].identity} for role in used}
    return {
        "rubric": rubric.to_dict(),
        "dataset": dataset.fingerprint,
        "reasons": _reasons(dataset),
        "grader": grader.settings,
        "models": msgspec.to_builtins(models),
        **msgspec.structs.asdict(msgspec.structs.replace(settings, writer=writer)),
    }


def _reasons(dataset: RubricDataset) -> str:
    """A digest of the reasons that people gave for their labels; the writer sees them, and no fingerprint has them."""
    return digest(sorted([str(item.id), *(item.ground_truth_reasons or ())] for item in dataset.items))


class RubricImprovement:
    """One rubric being improved.

    Args:
        judging: Asks judges and the writer.
    """

    def __init__(self, judging: ImprovementJudging) -> None:
        self._judging, self._rubric, self._settings = judging, judging.rubric, judging.settings
        self._targets: list[TargetCriterion] = []
        self._tries: list[WordingTrial] = []
        self._wordings: dict[str, str] = {}

    async def improve(self) -> Improvement:
        """Improve the rubric as far as the models answer."""
        complete = True
        try:
            stopped = await self._try_rounds()
        except ImprovementStopped as reason:
            stopped, complete = str(reason), False
        return Improvement(
            before=self._rubric,
            after=reword_rubric(self._rubric, self._wordings),
            targets=tuple(self._targets),
            tries=tuple(self._tries),
            alpha=self._settings.alpha,
            family=self._family,
            train_items=len(self._judging.parts[TRAIN].cases),
            held_out_items=len(self._judging.parts[HELD_OUT].cases),
            stopped=stopped,
            complete=complete,
            usage=self._judging.usage,
        )

    @property
    def _family(self) -> int:
        return len(self._targets) * self._settings.rounds

    async def _try_rounds(self) -> str:
        """Try wordings until there is nothing left to try; why it ended."""
        for criterion in await self._worst():
            self._targets.append(await self._target(criterion))
        if not self._targets:
            return "judges and people agree on every item of the training part"
        for number in range(1, self._settings.rounds + 1):
            before = len(self._tries)
            for target in self._targets:
                if target.criterion not in self._wordings:
                    await self._try(target, number)
            if len(self._wordings) == len(self._targets):
                return "every criterion that was looked at has a better wording"
            helped = [each for each in self._tries[before:] if each.decision in ("accepted", "rejected")]
            if not helped:
                return f"round {number} brought no wording that helps on the training part"
        return f"all {plural(self._settings.rounds, 'round')} are over"

    async def _worst(self) -> list[Criterion]:
        """The criteria that judges and people agree least about on the training part, worst first."""
        ranked = []
        for place, criterion in enumerate(self._rubric.criteria):
            if criterion.check is None and not all(map(is_missing, self._judging.truths(place, TRAIN))):
                scores = [each for each in await self._judging.agreements(criterion, TRAIN) if each is not None]
                if scores and min(scores) < 1:
                    ranked.append((sum(scores) / len(scores), place))
        return [self._rubric.criteria[place] for _, place in sorted(ranked)[: self._settings.criteria]]

    async def _target(self, criterion: Criterion) -> TargetCriterion:
        train = [each for each in await self._judging.agreements(criterion, TRAIN) if each is not None]
        held = await self._judging.agreements(criterion, HELD_OUT)
        seen = [each for each in held if each is not None]
        return TargetCriterion(
            criterion=criterion.name,
            requirement=criterion.requirement,
            train_n=len(train),
            train_agreement=sum(train) / len(train),
            train_disagreements=sum(each < 1 for each in train),
            held_out_n=len(seen),
            held_out_agreement=sum(seen) / len(seen) if seen else None,
            least_p=lowest_p_value(held, clusters=self._judging.parts[HELD_OUT].clusters, seed=self._settings.seed),
        )

    async def _try(self, target: TargetCriterion, number: int) -> None:
        level = self._settings.alpha / (self._family - len(self._wordings))
        trial = WordingTrial(round=number, criterion=target.criterion, decision="out of reach", level=level)
        if target.least_p > level:
            if not any(each.criterion == target.criterion for each in self._tries):
                message = f"Too few disagreements are held out: even a perfect wording has p = {target.least_p:.4g}."
                self._tries.append(replace(trial, message=message))
            return
        old = self._rubric.criteria[self._rubric.names.index(target.criterion)]
        # Counted by criterion, so that the n-th proposal is the same whatever became of the other criteria.
        past = [each for each in self._tries if each.criterion == old.name and each.decision != "out of reach"]
        tried = [each.requirement for each in past if each.requirement is not None]
        reply = await self._judging.propose(old, len(past) + 1, tried=tried)
        if reply.requirement is None:
            self._tries.append(replace(trial, decision="refused", message=reply.message))
            return
        new = replace(old, requirement=reply.requirement)
        train = await self._gain(old, new, TRAIN)
        trial = replace(trial, requirement=reply.requirement, diagnosis=reply.diagnosis, train=train)
        if train.difference is None or train.difference <= 0:
            self._tries.append(replace(trial, decision="no better"))
            return
        held = await self._gain(old, new, HELD_OUT)
        # A level near 1 lets a wording through that is better as often as worse: such a one is no improvement.
        gains = held.difference is not None and held.difference > 0
        accepted = gains and held.p_value is not None and held.p_value <= level
        if accepted:
            self._wordings[target.criterion] = reply.requirement
        self._tries.append(replace(trial, decision="accepted" if accepted else "rejected", held_out=held))

    async def _gain(self, old: Criterion, new: Criterion, part: str) -> AgreementGain:
        labelled = sum(
            not is_missing(truth) for truth in self._judging.truths(self._rubric.names.index(old.name), part)
        )
        return compare_agreement(
            await self._judging.agreements(old, part),
            await self._judging.agreements(new, part),
            labelled=labelled,
            clusters=self._judging.parts[part].clusters,
            seed=self._settings.seed,
        )


def reword_rubric(rubric: Rubric, wordings: Mapping[str, str]) -> Rubric:
    """A rubric with new requirements for some criteria; everything else stays.

    Args:
        rubric: The rubric.
        wordings: New requirements by the names of their criteria.

    >>> reword_rubric(Rubric((Criterion("Is good.", name="a"),)), {"a": "Names a source."}).criteria[0].requirement
    'Names a source.'
    """

    def each(criteria: Iterable[Criterion]) -> tuple[Criterion, ...]:
        return tuple(replace(one, requirement=wordings.get(one.name, one.requirement)) for one in criteria)

    sections = tuple(replace(one, criteria=each(one.criteria)) for one in rubric.sections)
    return replace(rubric, criteria=each(rubric.criteria), sections=sections)


class Forecast(NamedTuple):
    """What improving a rubric would ask.

    Attributes:
        planned: The questions that are asked in any case: every criterion on the part that is learnt from.
        judged: The most questions that judges get in all, where every reply can be read.
        written: The most wordings that the writer is asked for.
    """

    planned: DryRun
    judged: int
    written: int


async def forecast(
    rubric: Rubric,
    dataset: RubricDataset,
    grader: CriterionGrader,
    settings: ImprovementSettings,
    *,
    access: ModelAccess,
) -> Forecast:
    """Count what improving a rubric would ask of models, without asking them.

    Args:
        rubric: What would be improved.
        dataset: Items with people's labels.
        grader: Who judges.
        settings: How.
        access: How models may be asked.

    Raises:
        InputError: Something given cannot be used.
    """
    if issues := list(settings.issues(grader)):
        raise ConfigurationError(issues)
    train, held = split_train_test(rubric, dataset, train=settings.train, cluster=settings.cluster, seed=settings.seed)
    access = complete_model_access(access, [grader, WriterRole(settings.writer_role(grader))])
    places = [place for place, criterion in enumerate(rubric.criteria) if criterion.check is None]
    scripts = (
        partial(grader.script, case._replace(rubric=Rubric((rubric.criteria[place],), rubric.guidelines)))
        for place in places
        for case, truths in zip(train.cases, train.truths, strict=True)
        if not is_missing(truths[place])
    )
    planned = await plan_scripts(scripts, grader, access, checks={})
    learnt, decided = _labelled(train, places), _labelled(held, places)
    # The most is asked where the criteria with the most labels are those that are reworded, each in every round.
    sizes = sorted(
        (seen + settings.rounds * (known + seen) for known, seen in zip(learnt, decided, strict=True)), reverse=True
    )
    each = grader.count_requests(Rubric(rubric.criteria[places[0] : places[0] + 1])) if places else 0
    targets = min(settings.criteria, len(places))
    return Forecast(planned, each * (sum(learnt) + sum(sizes[:targets])), targets * settings.rounds)


def _labelled(part: DatasetPart, places: list[int]) -> list[int]:
    """How many items of a part have a label, for each criterion."""
    return [sum(not is_missing(truths[place]) for truths in part.truths) for place in places]
