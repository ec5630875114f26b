"""Grading by a rubric: one judge or a panel, criterion by criterion."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

from deemster.dataset.votes import CHECK
from deemster.documents.values import SURROGATE
from deemster.errors import ConfigurationError, Fault, did_you_mean
from deemster.judges.contract import Asking
from deemster.judges.grading.cases import Case
from deemster.judges.grading.fewshot import FewShot, Selection, Shown
from deemster.judges.grading.grades import ItemGrading, Vote, failure_of, verdict_fields
from deemster.judges.grading.hearing import Heard, Question, Said, heard_all
from deemster.judges.grading.jury import Judge, jury_of
from deemster.judges.grading.settling import Settling
from deemster.judges.grading.showing import KINDS, RUBRIC, Exhibit, Style, rubric_schema, schema_of
from deemster.metrics.contract import shown
from deemster.records import Ask, MetricScore, Reply, Request, Usage
from deemster.records.usage import added
from deemster.rubrics.aggregation import Rules
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.penalty import LengthPenalty
from deemster.rubrics.rubric import Rubric
from deemster.rubrics.scoring import Scoring

CALLS = ("per_criterion", "per_item")
TEMPERATURE = 0.7
SEED = 42
MAX_TOKENS, PER_CRITERION = 1024, 512
GradingScript: TypeAlias = Generator[Sequence[Request], Sequence[Reply], ItemGrading]


@dataclasses.dataclass(frozen=True, eq=False)
class CriterionGrader:
    """Grades submissions by a rubric.

    Args:
        judges: One or more; several are a panel.
        calls: `per_criterion`, or `per_item` for the whole rubric in one call.
        aggregation: How the votes on a binary criterion become one verdict.
        ordinal_aggregation: The same for ordinal criteria.
        nominal_aggregation: The same for nominal criteria.
        abstention: What an abstention does to the score: `skip`, `zero`, `partial` or `fail`.
        partial_credit: The share of a positive weight that `partial` grants.
        normalize: Whether the score is brought to [0, 1].
        length_penalty: What a submission loses for its length.
        shuffle_options: Whether each question shows the options in an order of its own.
        auto_na: Whether an abstention is offered where the author of the rubric gave no option for it.
        few_shot: Examples for the judges.
        repeats: How often each judge is asked.
        seed: What everything random derives from.
        system_prompt: What takes the place of the built-in task: text for all, or by kind of criterion (`binary`,
            `ordinal`, `nominal`, and `rubric` for calls per item). The form of the reply and the rule about data blocks
            stay.
        temperature: How freely the judges choose; 0, or 0.7 where they are asked several times.
        max_tokens: The longest reply; by the number of criteria where it is not given.

    Raises:
        ConfigurationError: A setting is none of these; all faults are listed.
    """

    judges: tuple[Judge, ...]
    _: dataclasses.KW_ONLY
    calls: Literal["per_criterion", "per_item"] = "per_criterion"
    aggregation: str = "majority"
    ordinal_aggregation: str = "mean"
    nominal_aggregation: str = "mode"
    abstention: str = "skip"
    partial_credit: float = 0.5
    normalize: bool = True
    length_penalty: LengthPenalty | None = None
    shuffle_options: bool = True
    auto_na: bool = True
    few_shot: FewShot | None = None
    repeats: int = 1
    seed: int = 0
    system_prompt: str | Mapping[str, str] | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        faults: list[Fault] = []
        for check in (self._take_judges, lambda: self.rules, lambda: self.scoring):
            try:
                check()
            except ConfigurationError as error:
                faults += error.faults
        faults += self._faults()
        if faults:
            raise ConfigurationError(faults)

    def _take_judges(self) -> None:
        object.__setattr__(self, "judges", jury_of(self.judges))

    def _faults(self) -> Iterator[Fault]:
        if self.calls not in CALLS:
            yield Fault(f"`calls` knows no {shown(self.calls)}. {did_you_mean(str(self.calls), CALLS)}")
        for key in ("shuffle_options", "auto_na"):
            if not isinstance(getattr(self, key), bool):
                yield Fault(f"`{key}` is true or false, not {shown(getattr(self, key))}.")
        for key, kind in (("length_penalty", LengthPenalty), ("few_shot", FewShot)):
            if getattr(self, key) is not None and not isinstance(getattr(self, key), kind):
                yield Fault(f"`{key}` is a `{kind.__name__}` or None, not {shown(getattr(self, key))[:60]}.")
        if type(self.repeats) is not int or not 1 <= self.repeats <= 100:
            yield Fault(f"`repeats` is a whole number from 1 to 100, not {shown(self.repeats)}.")
        if type(self.seed) is not int:
            yield Fault(f"`seed` is a whole number, not {shown(self.seed)}.")
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 1):
            yield Fault(f"`max_tokens` is a whole number of at least 1, not {shown(self.max_tokens)}.")
        warm = self.temperature
        if warm is not None and (type(warm) not in (int, float) or not math.isfinite(warm) or not 0 <= warm <= 2):
            yield Fault(f"`temperature` is a number from 0 to 2, not {shown(warm)}.")
        elif warm == 0 and self.repeats != 1:
            yield Fault("`repeats` above 1 needs a `temperature` above 0: at 0 all answers are one.")
        yield from self._prompt_faults()

    def _prompt_faults(self) -> Iterator[Fault]:
        given = self.system_prompt
        prompts = given if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(KINDS, given)
        for kind, text in prompts.items():
            if kind not in KINDS:
                yield Fault(f"`system_prompt` knows no kind {shown(kind)}. {did_you_mean(str(kind), KINDS)}")
            elif not isinstance(text, str) or not text.strip():
                yield Fault(f"`system_prompt` is text, or text by kind of criterion, not {shown(text)}.")
                return
            elif SURROGATE.search(text):
                yield Fault("`system_prompt` is not valid Unicode: it holds a lone surrogate.")
                return

    @property
    def name(self) -> str:
        """How messages call it."""
        return "CriterionGrader"

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return tuple(dict.fromkeys(judge.model for judge in self.judges))

    @cached_property
    def rules(self) -> Rules:
        """How votes become one verdict."""
        return Rules(self.aggregation, self.ordinal_aggregation, self.nominal_aggregation)

    @cached_property
    def scoring(self) -> Scoring:
        """How verdicts become a score."""
        return Scoring(self.abstention, self.partial_credit, self.normalize)

    @cached_property
    def style(self) -> Style:
        """How it words its questions."""
        given = self.system_prompt
        prompts = given if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(KINDS, given)
        return Style(dict(prompts), self.shuffle_options, self.auto_na, self.seed)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All that can change a verdict or a score beside the dataset and the models, as JSON."""
        few, penalty = self.few_shot, self.length_penalty
        return {
            "judges": [{"id": judge.id, "model": judge.model, "weight": judge.weight} for judge in self.judges],
            "calls": self.calls,
            "aggregation": self.aggregation,
            "ordinal_aggregation": self.ordinal_aggregation,
            "nominal_aggregation": self.nominal_aggregation,
            "abstention": self.abstention,
            "partial_credit": self.partial_credit,
            "normalize": self.normalize,
            "length_penalty": None if penalty is None else _plain_penalty(penalty),
            "shuffle_options": self.shuffle_options,
            "auto_na": self.auto_na,
            "few_shot": None if few is None else _plain_examples(few),
            "repeats": self.repeats,
            "seed": self.seed,
            "temperature": self._warmth,
            "max_tokens": self.max_tokens,
            "prompts": {kind: self.style.prompt(kind).hash for kind in self._kinds},
        }

    @property
    def _kinds(self) -> tuple[str, ...]:
        return (RUBRIC,) if self.calls == "per_item" else tuple(kind for kind in KINDS if kind != RUBRIC)

    @property
    def _warmth(self) -> float:
        if self.temperature is not None:
            return float(self.temperature)
        return 0.0 if self.repeats == 1 else TEMPERATURE

    @cached_property
    def _selection(self) -> Selection | None:
        return None if self.few_shot is None else Selection(self.few_shot, auto_na=self.auto_na)

    @cached_property
    def _settlings(self) -> dict[Rubric, Settling]:
        return {}

    def requests(self, rubric: Rubric) -> int:
        """How many requests an item of a rubric takes, where every reply can be read."""
        asked = sum(criterion.check is None for criterion in rubric.criteria)
        each = min(asked, 1) if self.calls == "per_item" else asked
        return each * len(self.judges) * self.repeats

    def script(self, case: Case, *, checks: Mapping[Criterion, Any] | None = None) -> GradingScript:
        """Grade one item, asking as it goes.

        Args:
            case: The item.
            checks: The metric that answers each criterion with a `check`.

        Raises:
            ConfigurationError: A criterion has a `check` and nobody says which metric it is.
            RubricError: The function that counts a submission's length gives no count.
        """
        penalty = 0.0 if self.length_penalty is None else self.length_penalty.of(case.submission)
        votes: list[list[Vote]] = [[] for _ in case.rubric.criteria]
        for place, criterion in enumerate(case.rubric.criteria):
            if criterion.check is not None:
                votes[place].append((yield from _checked(criterion, case, checks or {})))
        questions = list(self._questions(case))
        if questions:
            said = yield from heard_all(questions)
            for question, each in zip(questions, said, strict=True):
                self._cast(question, each, votes)
        return self._settling(case.rubric).graded(case.id, votes, penalty=penalty)

    def unasked(self, case: Case, message: str) -> ItemGrading:
        """The grading of an item that nobody was asked about.

        Args:
            case: The item.
            message: Why.
        """
        failure = failure_of("not_run", message)
        votes = [
            [Vote(judge=f"{CHECK}{criterion.check.metric}", failure=failure)]
            if criterion.check is not None
            else [
                Vote(judge=judge.id, repeat=repeat, failure=failure, weight=judge.weight)
                for judge in self.judges
                for repeat in range(self.repeats)
            ]
            for criterion in case.rubric.criteria
        ]
        return self._settling(case.rubric).graded(case.id, votes, penalty=0.0)

    def _settling(self, rubric: Rubric) -> Settling:
        if rubric not in self._settlings:
            made = Settling(rubric, judges=self.judges, rules=self.rules, scoring=self.scoring)
            self._settlings[rubric] = made
        return self._settlings[rubric]

    def _questions(self, case: Case) -> Iterator[Question]:
        places = [place for place, criterion in enumerate(case.rubric.criteria) if criterion.check is None]
        groups: Iterable[Sequence[int]] = [places] if self.calls == "per_item" else [[place] for place in places]
        for group in groups if places else ():
            for number, judge in enumerate(self.judges):
                examples = self._examples(case, group, judge.id)
                for repeat in range(self.repeats):
                    exhibits = tuple(self.style.exhibit(case, place, judge=judge.id, repeat=repeat) for place in group)
                    yield self._question(case, exhibits, examples, number, repeat)

    def _examples(self, case: Case, group: Sequence[int], judge: str) -> list[Shown]:
        if self._selection is None:
            return []
        if self.calls == "per_item":
            return self._selection.of_rubric(case, judge)
        return self._selection.of_criterion(case, case.rubric.criteria[group[0]], judge)

    def _question(
        self, case: Case, exhibits: tuple[Exhibit, ...], examples: Sequence[Shown], number: int, repeat: int
    ) -> Question:
        judge, whole = self.judges[number], self.calls == "per_item"
        kind = RUBRIC if whole else exhibits[0].criterion.kind
        if whole:
            schema = rubric_schema(tuple((each.criterion.name, len(each.order)) for each in exhibits))
        else:
            schema = schema_of(len(exhibits[0].order))
        ask = Ask(
            messages=self.style.messages(case, exhibits, examples, kind=kind, judge=judge.id, repeat=repeat),
            schema=schema,
            role=judge.model,
            temperature=self._warmth,
            # A seed of its own for each answer: a model that honours seeds would else repeat itself.
            seed=SEED + repeat,
            max_tokens=self.max_tokens or MAX_TOKENS + PER_CRITERION * (len(exhibits) - 1),
            sample=repeat,
        )
        return Question(ask, number, repeat, exhibits, whole)

    def _cast(self, question: Question, said: Said, votes: Sequence[list[Vote]]) -> None:
        judge = self.judges[question.judge]
        for exhibit, found, usage in zip(question.exhibits, said.found, said.usages, strict=True):
            facts: dict[str, Any] = {
                "judge": judge.id,
                "repeat": question.repeat,
                "weight": judge.weight,
                "shown_order": exhibit.order,
                "usage": usage,
            }
            if isinstance(found, Heard):
                facts |= verdict_fields(exhibit.criterion, found.code)
                facts |= {"reason": found.reason, "thinking": found.thinking}
            else:
                facts["failure"] = failure_of(found.cause, found.message)
            votes[exhibit.place].append(Vote(**facts))


def _checked(criterion: Criterion, case: Case, checks: Mapping[Criterion, Any]) -> Asking[Vote]:
    """The vote of the metric that answers a criterion; where it has no score, an abstention.

    Raises:
        ConfigurationError: Nobody says which metric it is.
    """
    check = criterion.check
    metric = checks.get(criterion)
    if check is None or metric is None:
        raise ConfigurationError(f"`{criterion.name}` is answered by a metric, and nobody says which.")
    sample, output = case.pair
    usage: Usage | None = None
    if hasattr(metric, "script"):
        mark, usage = yield from _counted(metric.script(sample, output))
    else:
        mark = metric.score(sample, output)
    if isinstance(mark, MetricScore):
        code, reason = _code(criterion, mark.score, check.threshold), f"{check.metric} is {mark.score:.4g}."
    else:
        code, reason = criterion.abstention, f"{check.metric} has no score: {mark.message}"
    fields = verdict_fields(criterion, code)
    return Vote(judge=f"{CHECK}{check.metric}", reason=reason, usage=mark.usage or usage, **fields)


def _code(criterion: Criterion, score: float, threshold: float) -> int:
    """The verdict that a score means: met from the threshold on, or the option of the nearest value."""
    if not criterion.options:
        return 0 if score >= threshold else 1
    distance = {code: abs((criterion.values[code] or 0.0) - score) for code in criterion.scored}
    nearest = min(distance.values())
    return criterion.worst_among(code for code in criterion.scored if distance[code] <= nearest + 1e-9)


def _counted(script: Any) -> Asking[tuple[Any, Usage | None]]:
    """What a script returns, and what its replies used."""
    spent: list[Usage] = []
    try:
        requests = next(script)
        while True:
            replies = yield requests
            spent += [reply.usage for reply in replies if reply.usage is not None]
            requests = script.send(replies)
    except StopIteration as stop:
        return stop.value, added(spent)


def _plain_penalty(penalty: LengthPenalty) -> dict[str, Any]:
    fields = {key: getattr(penalty, key) for key in penalty.__struct_fields__}
    if callable(count := fields["count"]):
        fields["count"] = f"{getattr(count, '__module__', '')}:{getattr(count, '__qualname__', type(count).__name__)}"
    return fields


def _plain_examples(few: FewShot) -> dict[str, Any]:
    fields = {key: getattr(few, key) for key in ("n", "balance", "reasons", "seed")}
    cluster = few.cluster if few.cluster is None or isinstance(few.cluster, str) else dict(few.cluster)
    return {"train": few.train.fingerprint, **fields, "cluster": cluster}
