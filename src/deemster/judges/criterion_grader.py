"""Grading by a rubric: one judge or a panel, criterion by criterion."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from deemster.datasets.votes import CHECK
from deemster.errors import ConfigurationError, Issue, did_you_mean, show_value
from deemster.formats.canonical_json import canonical
from deemster.formats.json_values import SURROGATE
from deemster.judges._grading_prompt import KINDS, RUBRIC, Exhibit, Style, rubric_schema, schema_of
from deemster.judges._grading_replies import Heard, Question, Said, Tries, heard_all, tries_of
from deemster.judges._metric_criteria import checked
from deemster.judges._panel_verdict import Settling
from deemster.judges._verdict_probability import ALTERNATIVES
from deemster.judges.few_shot import FewShot, Selection, Shown
from deemster.judges.grading_case import Case
from deemster.judges.grading_judge import Judge, jury_of
from deemster.judges.grading_result import ItemGrading, Vote, failure_of, verdict_fields
from deemster.judges.judge_cascade import Cascade
from deemster.judges.prompt_templates import file_text, text_hash
from deemster.records import Ask, Reply, Request
from deemster.records.shared_call_cost import split_calls
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.length_penalty import LengthPenalty
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_scoring import Scoring
from deemster.rubrics.vote_aggregation import Rules


def penalty_terms(penalty: LengthPenalty | None) -> dict[str, Any] | None:
    """A length penalty; a function that counts by its name and its text, where that can be read.

    Args:
        penalty: The penalty; None for none.
    """
    if penalty is None:
        return None
    fields = {key: getattr(penalty, key) for key in penalty.__struct_fields__}
    if callable(count := fields["count"]):
        fields["count"] = f"{getattr(count, '__module__', '')}:{getattr(count, '__qualname__', type(count).__name__)}"
        try:
            fields["count"] += f" {text_hash(inspect.getsource(count))}"
        except (OSError, TypeError):
            # Typed at a prompt, or no Python: its name is all there is.
            return fields
    return fields


def example_terms(few: FewShot | None) -> dict[str, Any] | None:
    """Where examples come from, and all that judges see of them.

    Args:
        few: How examples are chosen; None for none.
    """
    if few is None:
        return None
    fields: dict[str, Any] = {key: getattr(few, key) for key in ("n", "balance", "reasons", "seed")}
    cluster = few.cluster if few.cluster is None or isinstance(few.cluster, str) else dict(few.cluster)
    found = {"train": few.train.fingerprint, **fields, "cluster": cluster}
    if few.reasons:
        # The fingerprint of a dataset is about its labels, not about why they are what they are.
        told = sorted((str(item.id), list(item.ground_truth_reasons or ())) for item in few.train.items)
        found["told"] = hashlib.sha256(canonical(told)).hexdigest()
    return found


def prompt_terms(style: Style, kinds: Iterable[str], *, whole: bool, examples: bool) -> dict[str, str]:
    """A hash of every prompt, and of the texts that it is put together from.

    Args:
        style: How questions are worded.
        kinds: The kinds of prompts that are used.
        whole: Whether a question is about a whole rubric.
        examples: Whether examples are shown.
    """
    found = {kind: style.prompt(kind).hash for kind in kinds}
    if whole:
        found["entry"] = text_hash(file_text("grade-entry"))
    if examples:
        found["example"] = text_hash(file_text("grade-example"))
    return found


CALLS = ("per_criterion", "per_item")
TEMPERATURE = 0.7
SEED = 42
UNREADABLE = "unreadable"
MAX_TOKENS, PER_CRITERION = 1024, 512
GradingScript: TypeAlias = Generator[Sequence[Request], Sequence[Reply], ItemGrading]


@dataclasses.dataclass(frozen=True, eq=False)
class CriterionGrader:
    """Grades submissions by a rubric.

    Args:
        judges: One or more; several are a panel. Or a ``Cascade``: a cheap one first, and others where it is unsure.
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
        probabilities: Whether judges are asked for log-probabilities, which say how sure they are of each vote.
        cascade: Which of the judges is asked first; comes with `judges`.

    Raises:
        ConfigurationError: A setting is none of these; all issues are listed.
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
    probabilities: bool = False
    cascade: Cascade | None = None

    def __post_init__(self) -> None:
        issues: list[Issue] = []
        for check in (self._take_judges, lambda: self.rules, lambda: self.scoring):
            try:
                check()
            except ConfigurationError as error:
                issues += error.issues
        issues += self._issues()
        if issues:
            raise ConfigurationError(issues)

    def _take_judges(self) -> None:
        given: Any = self.judges
        if isinstance(given, Cascade):
            object.__setattr__(self, "cascade", given)
            given = given.judges
        object.__setattr__(self, "judges", jury_of(given))

    def _issues(self) -> Iterator[Issue]:
        if self.calls not in CALLS:
            yield Issue(f"`calls` knows no {show_value(self.calls)}. {did_you_mean(str(self.calls), CALLS)}")
        for key in ("shuffle_options", "auto_na", "probabilities"):
            if not isinstance(getattr(self, key), bool):
                yield Issue(f"`{key}` is true or false, not {show_value(getattr(self, key))}.")
        for key, kind in (("length_penalty", LengthPenalty), ("few_shot", FewShot)):
            if getattr(self, key) is not None and not isinstance(getattr(self, key), kind):
                yield Issue(f"`{key}` is a `{kind.__name__}` or None, not {show_value(getattr(self, key))[:60]}.")
        if type(self.repeats) is not int or not 1 <= self.repeats <= 100:
            yield Issue(f"`repeats` is a whole number from 1 to 100, not {show_value(self.repeats)}.")
        if type(self.seed) is not int:
            yield Issue(f"`seed` is a whole number, not {show_value(self.seed)}.")
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 1):
            yield Issue(f"`max_tokens` is a whole number of at least 1, not {show_value(self.max_tokens)}.")
        warm = self.temperature
        if warm is not None and (type(warm) not in (int, float) or not math.isfinite(warm) or not 0 <= warm <= 2):
            yield Issue(f"`temperature` is a number from 0 to 2, not {show_value(warm)}.")
        elif warm == 0 and self.repeats != 1:
            yield Issue("`repeats` above 1 needs a `temperature` above 0: at 0 all answers are one.")
        if self.cascade is not None:
            yield from self._cascade_issues()
        yield from self._prompt_issues()

    def _cascade_issues(self) -> Iterator[Issue]:
        if not isinstance(self.cascade, Cascade):
            yield Issue(f"`cascade` is a `Cascade` or None, not {show_value(self.cascade)[:60]}.")
        elif self.judges != self.cascade.judges:
            yield Issue("`judges` are not those of the cascade; give the cascade as `judges`.")
        elif self.temperature == 0 and self.cascade.asks > 1:
            yield Issue("`repeats` of a cascade above 1 needs a `temperature` above 0: at 0 all answers are one.")

    def _prompt_issues(self) -> Iterator[Issue]:
        given = self.system_prompt
        prompts = given if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(KINDS, given)
        for kind, text in prompts.items():
            if kind not in KINDS:
                yield Issue(f"`system_prompt` knows no kind {show_value(kind)}. {did_you_mean(str(kind), KINDS)}")
            elif not isinstance(text, str) or not text.strip():
                yield Issue(f"`system_prompt` is text, or text by kind of criterion, not {show_value(text)}.")
                return
            elif SURROGATE.search(text):
                yield Issue("`system_prompt` is not valid Unicode: it holds a lone surrogate.")
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
        whole, shows = self.calls == "per_item", self.few_shot is not None
        return {
            "judges": [{"id": judge.id, "model": judge.model, "weight": judge.weight} for judge in self.judges],
            "calls": self.calls,
            "aggregation": self.aggregation,
            "ordinal_aggregation": self.ordinal_aggregation,
            "nominal_aggregation": self.nominal_aggregation,
            "abstention": self.abstention,
            "partial_credit": self.partial_credit,
            "normalize": self.normalize,
            "length_penalty": penalty_terms(self.length_penalty),
            "shuffle_options": self.shuffle_options,
            "auto_na": self.auto_na,
            "few_shot": example_terms(self.few_shot),
            "repeats": self.repeats,
            "seed": self.seed,
            "temperature": self._warmth(self.repeats),
            "max_tokens": self.max_tokens,
            "probabilities": self.probabilities,
            "cascade": None if self.cascade is None else self.cascade.settings,
            "prompts": prompt_terms(self.style, self._kinds, whole=whole, examples=shows),
        }

    @property
    def _kinds(self) -> tuple[str, ...]:
        return (RUBRIC,) if self.calls == "per_item" else tuple(kind for kind in KINDS if kind != RUBRIC)

    def _warmth(self, repeats: int) -> float:
        if self.temperature is not None:
            return float(self.temperature)
        return 0.0 if repeats == 1 else TEMPERATURE

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
        return each * sum(map(self._repeats, range(len(self.judges))))

    def _repeats(self, number: int) -> int:
        """How often a judge is asked, by its place among the judges."""
        return self.repeats if number or self.cascade is None else self.cascade.asks

    def script(
        self, case: Case, *, checks: Mapping[Criterion, Any] | None = None, known: Sequence[Sequence[Vote]] = ()
    ) -> GradingScript:
        """Grade one item, asking as it goes.

        Args:
            case: The item.
            checks: The metric that answers each criterion with a `check`.
            known: Votes on each criterion that were cast before; nobody is asked for them again, but for those that
                failed. Where a reply could not be read, the question is put as one that was not put before.

        Raises:
            ConfigurationError: A criterion has a `check` and nobody says which metric it is.
            RubricError: The function that counts a submission's length gives no count.
        """
        penalty = 0.0 if self.length_penalty is None else self.length_penalty.of(case.submission)
        votes = [[vote for vote in each if vote.failure is None] for each in known or [()] * len(case.rubric.criteria)]
        for place, criterion in enumerate(case.rubric.criteria):
            if criterion.check is not None and not votes[place]:
                votes[place].append((yield from checked(criterion, case, checks or {})))
        places = [place for place, criterion in enumerate(case.rubric.criteria) if criterion.check is None]
        settling, tries = self._settling(case.rubric), tries_of(known)
        if self.cascade is None:
            yield from self._heard(case, places, range(len(self.judges)), votes, tries)
        else:
            yield from self._heard(case, places, (0,), votes, tries)
            unsure = [place for place in places if not settling.stands(place, votes[place])]
            yield from self._heard(case, unsure, range(1, len(self.judges)), votes, tries)
        return settling.graded(case.id, votes, penalty=penalty)

    def _heard(
        self,
        case: Case,
        places: Sequence[int],
        judges: Sequence[int],
        votes: Sequence[list[Vote]],
        tries: Tries,
    ) -> Generator[Sequence[Request], Sequence[Reply], None]:
        """Ask some of the judges about some of the criteria, and cast their votes."""
        questions = [
            self._anew(each, tries) for each in self._questions(case, places, judges) if self._is_open(each, votes)
        ]
        if questions:
            said = yield from heard_all(questions)
            for question, each in zip(questions, said, strict=True):
                self._cast(question, each, votes)
            order = {judge.id: number for number, judge in enumerate(self.judges)}
            for place in places:
                votes[place].sort(key=lambda vote: (order[vote.judge], vote.repeat))

    def _is_open(self, question: Question, votes: Sequence[Sequence[Vote]]) -> bool:
        """Whether a vote is missing that a question would bring."""
        about = (self.judges[question.judge].id, question.repeat)
        return any(all((vote.judge, vote.repeat) != about for vote in votes[each.place]) for each in question.exhibits)

    def _anew(self, question: Question, tries: Tries) -> Question:
        """A question as it is put now: where its replies could not be read, as one that no cache has an answer to."""
        judge = self.judges[question.judge].id
        again = max((tries.get((each.place, judge, question.repeat), 0) for each in question.exhibits), default=0)
        return question._replace(ask=msgspec.structs.replace(question.ask, again=again)) if again else question

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
                for number, judge in enumerate(self.judges if self.cascade is None else self.judges[:1])
                for repeat in range(self._repeats(number))
            ]
            for criterion in case.rubric.criteria
        ]
        return self._settling(case.rubric).graded(case.id, votes, penalty=0.0)

    def _settling(self, rubric: Rubric) -> Settling:
        if rubric not in self._settlings:
            made = Settling(rubric, judges=self.judges, rules=self.rules, scoring=self.scoring, cascade=self.cascade)
            self._settlings[rubric] = made
        return self._settlings[rubric]

    def _questions(self, case: Case, places: Sequence[int], judges: Sequence[int]) -> Iterator[Question]:
        groups: Iterable[Sequence[int]] = [places] if self.calls == "per_item" else [[place] for place in places]
        for group in groups if places else ():
            for number in judges:
                judge = self.judges[number]
                examples = self._examples(case, group, judge.id)
                for repeat in range(self._repeats(number)):
                    exhibits = tuple(self.style.exhibit(case, place, judge=judge.id, repeat=repeat) for place in group)
                    yield self._question(case, exhibits, examples, number, repeat)

    def _examples(self, case: Case, group: Sequence[int], judge: str) -> list[Shown]:
        if self._selection is None:
            return []
        if self.calls == "per_item":
            asked = [place for place, criterion in enumerate(case.rubric.criteria) if criterion.check is None]
            whole = self._selection.of_rubric(case, judge)
            return whole if len(group) == len(asked) else [each.about(map(asked.index, group)) for each in whole]
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
            temperature=self._warmth(self._repeats(number)),
            # A seed of its own for each answer: a model that honours seeds would else repeat itself.
            seed=SEED + repeat,
            max_tokens=self.max_tokens or MAX_TOKENS + PER_CRITERION * (len(exhibits) - 1),
            logprobs=ALTERNATIVES if self._weighs(number) else 0,
            sample=repeat,
        )
        return Question(ask, number, repeat, exhibits, whole)

    def _weighs(self, number: int) -> bool:
        """Whether a judge is asked how likely its verdicts are."""
        return self.probabilities or (number == 0 and self.cascade is not None and self.cascade.by == "probability")

    def _cast(self, question: Question, said: Said, votes: Sequence[list[Vote]]) -> None:
        judge = self.judges[question.judge]
        seat = (judge.id, question.repeat)
        cast: list[Vote] = []
        places: list[int] = []
        for exhibit, found in zip(question.exhibits, said.found, strict=True):
            if any((vote.judge, vote.repeat) == seat for vote in votes[exhibit.place]):
                # A question about a whole rubric was put again for another criterion.
                continue
            facts: dict[str, Any] = {
                "judge": judge.id,
                "repeat": question.repeat,
                "weight": judge.weight,
                "shown_order": exhibit.order,
            }
            if isinstance(found, Heard):
                facts |= verdict_fields(exhibit.criterion, found.code)
                facts |= {"reason": found.reason, "thinking": found.thinking, "probabilities": found.probabilities}
            else:
                tries = question.ask.again + 2 if found.cause == UNREADABLE else 0
                facts["failure"] = failure_of(found.cause, found.message, tries=tries)
            cast.append(Vote(**facts))
            places.append(exhibit.place)
        for place, vote in zip(places, split_calls(cast, said.calls), strict=True):
            votes[place].append(vote)
