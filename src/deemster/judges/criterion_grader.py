"""The grader: one judge or a panel judges submissions by a rubric, criterion by criterion."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import Meta

from deemster.errors import ConfigurationError, Issue, did_you_mean, plural, show_value
from deemster.errors.parameter_checks import checks_parameters
from deemster.formats.canonical_json import canonical
from deemster.formats.schema_validation import Share, decode_struct
from deemster.judges._grading_prompt import (
    KINDS,
    RUBRIC,
    CriterionView,
    QuestionStyle,
    criterion_schema,
    rubric_schema,
)
from deemster.judges._grading_questions import CriterionReply, Question, Tries, ask_questions, count_tries
from deemster.judges._item_aggregation import ItemAggregator
from deemster.judges._metric_criteria import metric_vote
from deemster.judges.few_shot import ExampleSelector, FewShot, FewShotExample
from deemster.judges.grading_case import GradingCase
from deemster.judges.item_grading import ItemGrading
from deemster.judges.judge_cascade import Cascade
from deemster.judges.judge_panel import ALTERNATIVES, Judge, Seat, check_judges, judge_temperature
from deemster.judges.judge_script import QuestionOutcome
from deemster.judges.prompt_templates import prompt_file_text, text_hash
from deemster.judges.vote import Vote, verdict_fields, vote_failure
from deemster.records import Metric, Reply, Request, Scorer
from deemster.records.shared_call_cost import split_calls
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.length_penalty import LengthPenalty
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_format import BinaryRule, NominalRule, NumericRule, OrdinalRule
from deemster.rubrics.rubric_scoring import Scoring, Strategy
from deemster.rubrics.verdicts import CHECK
from deemster.rubrics.vote_aggregation import NUMERIC_RULE, Rules

Calls = Literal["per_criterion", "per_item"]
CALLS: tuple[str, ...] = get_args(Calls)
UNREADABLE = "unreadable"
MAX_TOKENS, PER_CRITERION = 1024, 512
GradingScript: TypeAlias = Generator[Sequence[Request], Sequence[Reply], ItemGrading]


def penalty_settings(penalty: LengthPenalty | None) -> dict[str, Any] | None:
    """The settings of a length penalty; a function that counts is given by its name and source text.

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
            # Typed at a prompt, or not written in Python: only its name is known.
            return fields
    return fields


def example_settings(few: FewShot | None) -> dict[str, Any] | None:
    """The settings of few-shot examples, and a hash of all that judges see of them.

    Args:
        few: How examples are chosen; None for none.
    """
    if few is None:
        return None
    fields: dict[str, Any] = {key: getattr(few, key) for key in ("n", "balance", "reasons", "seed")}
    cluster = few.cluster if few.cluster is None or isinstance(few.cluster, str) else dict(few.cluster)
    found = {"train": few.train.fingerprint, **fields, "cluster": cluster}
    if few.reasons:
        # The fingerprint of a dataset covers its labels, not their reasons.
        reasons = sorted((str(item.id), list(item.ground_truth_reasons or ())) for item in few.train.items)
        found["told"] = hashlib.sha256(canonical(reasons)).hexdigest()
    return found


def prompt_settings(style: QuestionStyle, kinds: Iterable[str], *, per_item: bool, examples: bool) -> dict[str, str]:
    """A hash of every prompt and of the texts that it is composed of.

    Args:
        style: How questions are worded.
        kinds: The kinds of prompts that are used.
        per_item: Whether a question is about a whole rubric.
        examples: Whether examples are shown.
    """
    found = {kind: style.prompt(kind).hash for kind in kinds}
    if per_item:
        found["entry"] = text_hash(prompt_file_text("grade-entry"))
    if examples:
        found["example"] = text_hash(prompt_file_text("grade-example"))
    return found


class GraderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A grader, as a file has it."""

    calls: Calls = "per_criterion"
    aggregation: BinaryRule = "majority"
    ordinal_aggregation: OrdinalRule = "mean"
    nominal_aggregation: NominalRule = "mode"
    numeric_aggregation: NumericRule = "mean"
    abstention: Strategy = "skip"
    partial_credit: Share = 0.5
    normalize: bool = True
    shuffle_options: bool = True
    auto_na: bool = True
    repeats: Annotated[int, Meta(ge=1, le=100)] = 1
    quorum: Annotated[int, Meta(ge=1)] | None = None
    seed: int = 0
    system_prompt: str | Mapping[str, str] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    probabilities: bool = False


class QuestionSettings(NamedTuple):
    """How a grader words its questions.

    Attributes:
        system_prompt: Replaces the built-in task: text for all, or by kind of criterion (`binary`, `ordinal`,
            `nominal`, and `rubric` for calls per item). The form of the reply and the rule about data blocks stay.
        shuffle_options: Whether each question shows the options in an order of its own.
        auto_na: Whether an abstention is offered where the author of the rubric gave no option for it.
    """

    system_prompt: str | Mapping[str, str] | None = None
    shuffle_options: bool = True
    auto_na: bool = True


USUAL_RULES: Final = Rules()
USUAL_SCORING: Final = Scoring()
USUAL_QUESTIONS: Final = QuestionSettings()


class CriterionGrader:
    """Grades submissions by a rubric.

    Args:
        judges: One or more; several are a panel. Or a ``Cascade``: a cheap one first, and others where it is unsure.
        calls: `per_criterion`, or `per_item` for the whole rubric in one call.
        rules: How the votes on a criterion become one verdict.
        scoring: How verdicts become a score.
        questions: How questions are worded.
        length_penalty: What a submission loses for its length.
        few_shot: How judges get labelled examples.
        repeats: How often each judge is asked.
        quorum: The fewest votes of a panel on each criterion that make a score; every one unless given. Where fewer are
            cast the item is unscored.
        seed: The seed of everything random.
        temperature: How freely the judges choose; 0, or 0.7 where they are asked several times.
        max_tokens: The longest reply; by the number of criteria where it is not given.
        probabilities: Whether judges are asked for log-probabilities, which say how sure they are of each vote.

    Attributes:
        judges: All of them, the cheap one of a cascade first.
        cascade: Which of the judges is asked first; None where all are asked at once.

    Raises:
        ConfigurationError: A setting is none of these; all issues are listed.
    """

    @checks_parameters
    def __init__(
        self,
        judges: Judge | Sequence[Judge] | Cascade,
        *,
        calls: Calls = "per_criterion",
        rules: Rules = USUAL_RULES,
        scoring: Scoring = USUAL_SCORING,
        questions: QuestionSettings = USUAL_QUESTIONS,
        length_penalty: LengthPenalty | None = None,
        few_shot: FewShot | None = None,
        repeats: int = 1,
        quorum: int | None = None,
        seed: int = 0,
        temperature: float | None = None,
        max_tokens: int | None = None,
        probabilities: bool = False,
    ) -> None:
        self.cascade = judges if isinstance(judges, Cascade) else None
        self.judges: tuple[Judge, ...] = ()
        self.calls = calls
        self.rules = rules
        self.scoring = scoring
        self.questions = questions
        self.length_penalty = length_penalty
        self.few_shot = few_shot
        self.repeats = repeats
        self.quorum = quorum
        self.seed = seed
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.probabilities = probabilities

        issues: list[Issue] = []
        try:
            self.judges = check_judges(judges.judges if isinstance(judges, Cascade) else judges)
        except ConfigurationError as error:
            issues += error.issues
        issues += [*self._setting_issues(), *self._part_issues()]
        if not issues:
            issues += [*self._temperature_issues(), *self._prompt_issues(), *self._quorum_issues()]
        if issues:
            raise ConfigurationError(issues)

    def _setting_issues(self) -> Sequence[Issue]:
        """What has not the form that a file would have it in."""
        given = GraderSettings(
            calls=self.calls,
            repeats=self.repeats,
            quorum=self.quorum,
            seed=self.seed,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            probabilities=self.probabilities,
            **self.questions._asdict(),
        )
        try:
            decode_struct(given, error=ConfigurationError)
        except ConfigurationError as error:
            return error.issues
        return ()

    def _part_issues(self) -> Iterator[Issue]:
        for key, kind in (("length_penalty", LengthPenalty), ("few_shot", FewShot)):
            if getattr(self, key) is not None and not isinstance(getattr(self, key), kind):
                yield Issue(f"`{key}` is a `{kind.__name__}` or None, not {show_value(getattr(self, key))[:60]}.")

    def _temperature_issues(self) -> Iterator[Issue]:
        if self.temperature == 0 and self.repeats != 1:
            yield Issue("`repeats` above 1 needs a `temperature` above 0: at 0 all answers are one.")
        elif self.temperature == 0 and self.cascade is not None and self.cascade.cheap_repeats > 1:
            yield Issue("`repeats` of a cascade above 1 needs a `temperature` above 0: at 0 all answers are one.")

    def _prompt_issues(self) -> Iterator[Issue]:
        prompts = self._system_prompts
        for kind in prompts:
            if kind not in KINDS:
                yield Issue(f"`system_prompt` knows no kind {show_value(kind)}. {did_you_mean(kind, KINDS)}")
        if not all(text.strip() for text in prompts.values()):
            yield Issue("`system_prompt` is blank.")

    def _quorum_issues(self) -> Iterator[Issue]:
        if self.quorum is not None and self.quorum > self.panel_size:
            votes = plural(self.panel_size, "vote")
            yield Issue(f"`quorum` is {self.quorum}, and at most {votes} can be cast on a criterion.")

    @property
    def panel_size(self) -> int:
        """How many votes a panel casts on a criterion; in a cascade those who decide where the first is unsure."""
        deciding = self.judges if self.cascade is None else self.cascade.strong
        return len(deciding) * self.repeats

    @property
    def lower_quorum(self) -> int | None:
        """The quorum, where it is lower than the panel is large."""
        return None if self.quorum == self.panel_size else self.quorum

    @property
    def name(self) -> str:
        """Its name in messages."""
        return "CriterionGrader"

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        return tuple(dict.fromkeys(judge.model for judge in self.judges))

    @cached_property
    def style(self) -> QuestionStyle:
        """How it words its questions."""
        return QuestionStyle(self._system_prompts, self.questions.shuffle_options, self.questions.auto_na, self.seed)

    @property
    def _system_prompts(self) -> dict[str, Any]:
        """The given prompts by kind of criterion."""
        given = self.questions.system_prompt
        return dict(given) if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(KINDS, given)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All that can change a verdict or a score beside the dataset and the models, as JSON."""
        per_item, shows = self.calls == "per_item", self.few_shot is not None
        return {
            "judges": [{"id": judge.id, "model": judge.model, "weight": judge.weight} for judge in self.judges],
            "calls": self.calls,
            "aggregation": self.rules.aggregation,
            "ordinal_aggregation": self.rules.ordinal_aggregation,
            "nominal_aggregation": self.rules.nominal_aggregation,
            # Left out as it is usual, so that gradings from before there were numeric criteria can be resumed.
            **({} if self.rules.numeric_aggregation == "mean" else {NUMERIC_RULE: self.rules.numeric_aggregation}),
            "abstention": self.scoring.abstention,
            "partial_credit": self.scoring.partial_credit,
            "normalize": self.scoring.normalize,
            "length_penalty": penalty_settings(self.length_penalty),
            "shuffle_options": self.questions.shuffle_options,
            "auto_na": self.questions.auto_na,
            "few_shot": example_settings(self.few_shot),
            "repeats": self.repeats,
            # Left out where every vote must be cast, so that gradings from before there was a quorum can be resumed.
            **({} if self.lower_quorum is None else {"quorum": self.lower_quorum}),
            "seed": self.seed,
            "temperature": judge_temperature(self.temperature, repeats=self.repeats),
            "max_tokens": self.max_tokens,
            "probabilities": self.probabilities,
            "cascade": None if self.cascade is None else self.cascade.settings,
            "prompts": prompt_settings(self.style, self._kinds, per_item=per_item, examples=shows),
        }

    @property
    def _kinds(self) -> tuple[str, ...]:
        if self.calls == "per_item":
            return (RUBRIC,)
        # The built-in prompt for numbers is not named, so that older gradings can be resumed.
        given = self.questions.system_prompt
        own = isinstance(given, Mapping) and "numeric" in given
        return tuple(kind for kind in KINDS if kind != RUBRIC and (kind != "numeric" or own))

    @cached_property
    def _selector(self) -> ExampleSelector | None:
        return None if self.few_shot is None else ExampleSelector(self.few_shot, auto_na=self.questions.auto_na)

    @cached_property
    def _aggregators(self) -> dict[Rubric, ItemAggregator]:
        return {}

    def count_requests(self, rubric: Rubric) -> int:
        """How many requests an item of a rubric takes, where every reply can be read."""
        judged = sum(criterion.check is None for criterion in rubric.criteria)
        each = min(judged, 1) if self.calls == "per_item" else judged
        return each * sum(map(self._repeats, range(len(self.judges))))

    def _repeats(self, number: int) -> int:
        """How often a judge is asked, by its place among the judges."""
        return self.repeats if number or self.cascade is None else self.cascade.cheap_repeats

    def script(
        self,
        case: GradingCase,
        *,
        checks: Mapping[Criterion, Metric | Scorer] | None = None,
        known: Sequence[Sequence[Vote]] = (),
    ) -> GradingScript:
        """Grade one item, asking as it goes.

        Args:
            case: The item.
            checks: The metric that answers each criterion with a `check`.
            known: Votes on each criterion that were cast before. Only those that failed are asked for again; if a reply
                could not be read, the question is numbered anew, so that no cache answers it.

        Raises:
            ConfigurationError: A criterion has a `check`, and `checks` has no metric for it.
            RubricError: The function that counts a submission's length gives no count.
        """
        penalty = 0.0 if self.length_penalty is None else self.length_penalty.of(case.submission)
        votes = [[vote for vote in each if vote.failure is None] for each in known or [()] * len(case.rubric.criteria)]
        for place, criterion in enumerate(case.rubric.criteria):
            if criterion.check is not None and not votes[place]:
                votes[place].append((yield from metric_vote(criterion, case, checks or {})))
        places = [place for place, criterion in enumerate(case.rubric.criteria) if criterion.check is None]
        aggregator, tries = self._aggregator(case.rubric), count_tries(known)
        if self.cascade is None:
            yield from self._collect_votes(case, places, range(len(self.judges)), votes, tries)
        else:
            yield from self._collect_votes(case, places, (0,), votes, tries)
            unsure = [place for place in places if not aggregator.cheap_verdict_stands(place, votes[place])]
            yield from self._collect_votes(case, unsure, range(1, len(self.judges)), votes, tries)
        return aggregator.grade_item(case.id, votes, penalty=penalty)

    def _collect_votes(
        self,
        case: GradingCase,
        places: Sequence[int],
        judges: Sequence[int],
        votes: Sequence[list[Vote]],
        tries: Tries,
    ) -> Generator[Sequence[Request], Sequence[Reply], None]:
        """Ask some of the judges about some of the criteria, and cast their votes."""
        questions = [_repeated(each, tries) for each in self._questions(case, places, judges) if _is_open(each, votes)]
        if questions:
            outcomes = yield from ask_questions(questions)
            for question, outcome in zip(questions, outcomes, strict=True):
                _cast_votes(question, outcome, votes)
            order = {judge.id: number for number, judge in enumerate(self.judges)}
            for place in places:
                votes[place].sort(key=lambda vote: (order[vote.judge], vote.repeat))

    def grade_unasked(self, case: GradingCase, message: str) -> ItemGrading:
        """The grading of an item that no judge was asked about.

        Args:
            case: The item.
            message: Why.
        """
        failure = vote_failure("not_run", message)
        votes = [
            [Vote(judge=f"{CHECK}{criterion.check.metric}", failure=failure)]
            if criterion.check is not None
            else [
                msgspec.structs.replace(seat.silent_vote, failure=failure)
                for number in range(len(self.judges) if self.cascade is None else 1)
                for seat in self._seats(number)
            ]
            for criterion in case.rubric.criteria
        ]
        return self._aggregator(case.rubric).grade_item(case.id, votes, penalty=0.0)

    def _aggregator(self, rubric: Rubric) -> ItemAggregator:
        if rubric not in self._aggregators:
            made = ItemAggregator(
                rubric,
                judges=self.judges,
                rules=self.rules,
                scoring=self.scoring,
                cascade=self.cascade,
                quorum=self.quorum,
            )
            self._aggregators[rubric] = made
        return self._aggregators[rubric]

    def _questions(self, case: GradingCase, places: Sequence[int], judges: Sequence[int]) -> Iterator[Question]:
        groups: Iterable[Sequence[int]] = [places] if self.calls == "per_item" else [[place] for place in places]
        for group in groups if places else ():
            for number in judges:
                judge = self.judges[number]
                examples = self._examples(case, group, judge.id)
                for seat in self._seats(number):
                    views = tuple(self.style.view_criterion(case, place, seat) for place in group)
                    yield self._question(case, views, examples, number, seat)

    def _examples(self, case: GradingCase, group: Sequence[int], judge: str) -> list[FewShotExample]:
        if self._selector is None:
            return []
        if self.calls == "per_item":
            judged = [place for place, criterion in enumerate(case.rubric.criteria) if criterion.check is None]
            examples = self._selector.choose_for_rubric(case, judge)
            if len(group) == len(judged):
                return examples
            return [example.restrict_to(map(judged.index, group)) for example in examples]
        return self._selector.choose_for_criterion(case, case.rubric.criteria[group[0]], judge)

    def _seats(self, number: int) -> list[Seat]:
        """The seats of a judge, by its place among the judges: as many as it is asked times."""
        judge = self.judges[number]
        return [Seat(judge.id, judge.model, repeat, judge.weight) for repeat in range(self._repeats(number))]

    def _question(
        self,
        case: GradingCase,
        views: tuple[CriterionView, ...],
        examples: Sequence[FewShotExample],
        number: int,
        seat: Seat,
    ) -> Question:
        per_item = self.calls == "per_item"
        if per_item:
            kind, schema = RUBRIC, rubric_schema(tuple((each.criterion.name, each.answer) for each in views))
        else:
            kind, schema = views[0].criterion.kind, criterion_schema(views[0].answer)
        ask = seat.ask(
            self.style.messages(case, views, examples, kind=kind, seat=seat),
            schema=schema,
            temperature=judge_temperature(self.temperature, repeats=self._repeats(number)),
            max_tokens=self.max_tokens or MAX_TOKENS + PER_CRITERION * (len(views) - 1),
            logprobs=ALTERNATIVES if self._wants_logprobs(number) else 0,
        )
        return Question(ask, seat, views, per_item)

    def _wants_logprobs(self, number: int) -> bool:
        """Whether a judge is asked how likely its verdicts are."""
        return self.probabilities or (number == 0 and self.cascade is not None and self.cascade.by == "probability")


def _has_vote(votes: Iterable[Vote], seat: Seat) -> bool:
    return any(vote.repeat == seat.repeat and vote.judge == seat.judge for vote in votes)


def _is_open(question: Question, votes: Sequence[Sequence[Vote]]) -> bool:
    """Whether a vote is missing that the answer to a question would bring."""
    return not all(_has_vote(votes[view.place], question.seat) for view in question.views)


def _repeated(question: Question, tries: Tries) -> Question:
    """A question numbered by how often its replies could not be read, so that no cache has an answer to it."""
    seat = question.seat
    again = max((tries.get((each.place, seat.judge, seat.repeat), 0) for each in question.views), default=0)
    return question._replace(ask=msgspec.structs.replace(question.ask, again=again)) if again else question


def _cast_votes(question: Question, outcome: QuestionOutcome[CriterionReply], votes: Sequence[list[Vote]]) -> None:
    """Add the votes that the answer to a question brings.

    A question about a whole rubric may have been asked again for one criterion; the votes on the others stand.
    """
    cast: list[Vote] = []
    places: list[int] = []
    for view, part in zip(question.views, outcome.parts, strict=True):
        if _has_vote(votes[view.place], question.seat):
            continue
        places.append(view.place)
        if isinstance(part, CriterionReply):
            vote = msgspec.structs.replace(
                question.seat.silent_vote,
                reason=part.reason,
                thinking=part.thinking,
                probabilities=part.probabilities,
                **verdict_fields(view.criterion, part.code),
            )
        else:
            tries = question.ask.again + 2 if part.cause == UNREADABLE else 0
            vote = question.seat.failed_vote(part, tries=tries)
        cast.append(msgspec.structs.replace(vote, shown_order=view.order))
    for place, vote in zip(places, split_calls(cast, outcome.calls), strict=True):
        votes[place].append(vote)
