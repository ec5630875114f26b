"""The prompts of a grader: the criterion, its options in shuffled order, examples, and the submission."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from deemster.judges._untrusted_text import make_nonce, wrap_text
from deemster.judges.few_shot import FewShotExample
from deemster.judges.grading_case import GradingCase, parts_digest
from deemster.judges.judge_panel import Seat
from deemster.judges.prompt_templates import DIVIDER, Prompt, fill_template, prompt_file_text, template_places
from deemster.judges.reply_parser import TEXT, reply_schema
from deemster.records import FrozenDict, Message
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.verdicts import VERDICTS
from deemster.rubrics.vote_aggregation import is_missing

RUBRIC = "rubric"
KINDS = ("binary", "ordinal", "nominal", "numeric", RUBRIC)


class AnswerShape(NamedTuple):
    """What a reply may say about a criterion: a verdict, the number of an option, or a number of a range.

    Attributes:
        options: How many options are shown; 0 for a binary or numeric criterion.
        low: The lowest number; None where no number is asked for.
        high: The highest number.
        is_whole: Whether only whole numbers may be given.
        may_abstain: Whether null may be given in place of a number.
    """

    options: int = 0
    low: float | None = None
    high: float | None = None
    is_whole: bool = False
    may_abstain: bool = False

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the key that holds it."""
        if self.low is None or self.high is None:
            if not self.options:
                return {"verdict": {"type": "string", "enum": list(VERDICTS)}}
            return {"option": {"type": "integer", "minimum": 1, "maximum": self.options}}
        number: dict[str, Any] = {"type": "number", "minimum": self.low, "maximum": self.high}
        if self.is_whole:
            number = {"type": "integer", "minimum": int(self.low), "maximum": int(self.high)}
        return {"number": {"anyOf": [number, {"type": "null"}]} if self.may_abstain else number}


class CriterionView(NamedTuple):
    """A criterion as one judge sees it.

    Attributes:
        place: Its place in the rubric.
        criterion: The criterion.
        order: The codes of its options in the order they are shown; empty for a binary or numeric criterion.
        may_abstain: Whether a numeric criterion may be answered with null.
    """

    place: int
    criterion: Criterion
    order: tuple[int, ...]
    may_abstain: bool = False

    @property
    def key(self) -> str:
        """The key of a reply that holds the verdict."""
        return "option" if self.order else "number" if self.criterion.kind == "numeric" else "verdict"

    @property
    def answer(self) -> AnswerShape:
        """What stands at that key."""
        criterion = self.criterion
        if self.key != "number":
            return AnswerShape(options=len(self.order))
        low, high, step = criterion.minimum or 0.0, criterion.maximum or 0.0, criterion.step
        is_whole = step is not None and step.is_integer() and low.is_integer()
        return AnswerShape(low=low, high=high, is_whole=is_whole, may_abstain=self.may_abstain)


class QuestionStyle(NamedTuple):
    """How a grader words its questions.

    Attributes:
        system: The text that replaces the built-in task, by kind of criterion; `rubric` for whole rubrics.
        shuffle: Whether each question shows the options in an order of its own.
        auto_na: Whether an abstention is offered if the author gave no option for it.
        seed: The seed of orders and marker lines.
    """

    system: Mapping[str, str]
    shuffle: bool
    auto_na: bool
    seed: int

    def prompt(self, kind: str) -> Prompt:
        """The prompt for a kind of criterion, or for a whole rubric."""
        return _prompt(kind, self.system.get(kind))

    def view_criterion(self, case: GradingCase, place: int, seat: Seat) -> CriterionView:
        """A criterion of a case, with the order in which this judge sees its options this time."""
        criterion = case.rubric.criteria[place]
        if not criterion.options:
            return CriterionView(place, criterion, (), may_abstain=self.auto_na)
        scored = list(criterion.scored)
        if self.shuffle:
            about = (self.seed, case.hash, criterion.name, seat.judge, seat.repeat)
            scored.sort(key=lambda code: parts_digest(*about, criterion.labels[code]))
        offered = len(criterion.labels) if self.auto_na else len(criterion.options)
        return CriterionView(
            place, criterion, (*scored, *sorted(code for code in criterion.abstentions if code < offered))
        )

    def messages(
        self,
        case: GradingCase,
        views: Sequence[CriterionView],
        examples: Sequence[FewShotExample],
        *,
        kind: str,
        seat: Seat,
    ) -> tuple[Message, Message]:
        """The two messages of one question.

        Args:
            case: What is judged.
            views: The criteria it is judged by: one, or all of a rubric.
            examples: Submissions that people have labelled.
            kind: The criterion's kind, or `rubric`.
            seat: Who is asked, and how often before.
        """
        texts = _untrusted(case, examples)
        criterion = "" if kind == RUBRIC else views[0].criterion.name
        nonce = make_nonce(texts.values(), about=(self.seed, case.hash, criterion, seat.judge, seat.repeat))
        blocks = {label: wrap_text(label, text, nonce=nonce) for label, text in texts.items()}
        values: dict[str, str] = {
            label: blocks[label] for label in ("prompt", "reference", "submission") if label in blocks
        }
        if case.rubric.guidelines is not None:
            values["guidelines"] = case.rubric.guidelines
        if kind == RUBRIC:
            values["criteria"] = "\n\n".join(_entry(view) for view in views)
        else:
            values |= _described(views[0])
        if examples:
            values["examples"] = "\n\n".join(
                _example(number, example, views, blocks, names=kind == RUBRIC)
                for number, example in enumerate(examples, 1)
            )
        prompt = self.prompt(kind)
        return _reduced(prompt, frozenset(values)).messages(values, nonce=nonce)


@lru_cache(maxsize=64)
def _prompt(kind: str, task: str | None) -> Prompt:
    """A prompt of this package; the form of the reply and the rule about data blocks stay with any task."""
    built_in, form, user = prompt_file_text(f"grade-{kind}").split(DIVIDER)
    system = "\n\n".join(
        part.strip() for part in (built_in if task is None else task, form, prompt_file_text("blocks"))
    )
    return Prompt(system, user.strip())


@lru_cache(maxsize=256)
def _reduced(prompt: Prompt, known: frozenset[str]) -> Prompt:
    return Prompt(prompt.system, _fillable_paragraphs(prompt.user, known))


@lru_cache(maxsize=256)
def _fillable_paragraphs(template: str, known: frozenset[str]) -> str:
    """A template without the paragraphs whose places have no value.

    A heading that ends in a colon belongs to the paragraph after it.
    """
    paragraphs: list[str] = []
    heading: list[str] = []
    for paragraph in template.strip().split("\n\n"):
        if paragraph.endswith(":"):
            heading.append(paragraph)
            continue
        if known.issuperset(template_places(paragraph)):
            paragraphs += [*heading, paragraph]
        heading = []
    return "\n\n".join(paragraphs)


def _untrusted(case: GradingCase, examples: Sequence[FewShotExample]) -> dict[str, str]:
    """Every text in a question that the author of the rubric did not write, by label."""
    texts = {}
    for number, example in enumerate(examples, 1):
        texts[f"example_{number}"] = example.output
        for place, reason in enumerate(example.reasons):
            if reason is not None and not is_missing(example.codes[place]):
                texts[f"reason_{number}_{place + 1}"] = reason
    if case.prompt is not None:
        texts["prompt"] = case.prompt
    if case.reference is not None:
        texts["reference"] = case.reference
    texts["submission"] = case.output
    return texts


def _described(view: CriterionView) -> dict[str, str]:
    """What a question says about a criterion, by place of the template."""
    criterion = view.criterion
    values = {"requirement": criterion.requirement}
    if criterion.weight:
        values["fault" if criterion.weight < 0 else "gain"] = ""
    if view.key == "number":
        values["range"] = _range_text(criterion)
        if view.may_abstain:
            values["na"] = ""
    if view.order:
        lines = [f"{number}. {criterion.labels[code]}" for number, code in enumerate(view.order, 1)]
        values["options"] = "\n".join(lines)
        if view.order[-1] in criterion.abstentions:
            values["na"] = ""
    return values


def _range_text(criterion: Criterion) -> str:
    """The numbers that may be given, in words."""
    ends = f"{criterion.minimum:g} to {criterion.maximum:g}"
    if criterion.step is None:
        return f"{ends}; decimals are allowed"
    return f"{ends}, a whole number" if criterion.step == 1 else f"{ends}, in steps of {criterion.step:g}"


def _entry(view: CriterionView) -> str:
    values = {**_described(view), "name": _quoted(view.criterion.name)}
    file = "grade-entry-number" if view.key == "number" else "grade-entry"
    return fill_template(_fillable_paragraphs(prompt_file_text(file), frozenset(values)), values)


def _example(
    number: int, example: FewShotExample, views: Sequence[CriterionView], blocks: Mapping[str, str], *, names: bool
) -> str:
    said, why = [], []
    for place, (view, code) in enumerate(zip(views, example.codes, strict=True)):
        if is_missing(code):
            continue
        name = f"{_quoted(view.criterion.name)} " if names else ""
        said.append(f"{name}{_answer(view, code)}")
        if (reason := blocks.get(f"reason_{number}_{place + 1}")) is not None:
            why.append(f"{name.strip()}\n{reason}".strip())
    values = {"number": str(number), "example": blocks[f"example_{number}"], "said": ", ".join(said)}
    if why:
        values["why"] = "\n".join(why)
    return fill_template(_fillable_paragraphs(prompt_file_text("grade-example"), frozenset(values)), values)


def _answer(view: CriterionView, code: float) -> str:
    """A label as a reply would give it."""
    if view.key == "number":
        return f"number {code:g}" if isinstance(code, float) else "number null"
    code = int(code)
    if not view.order:
        return VERDICTS[code]
    return f"option {view.order.index(code) + 1}"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


@lru_cache(maxsize=256)
def criterion_schema(answer: AnswerShape) -> FrozenDict:
    """The JSON schema of a reply about one criterion."""
    return reply_schema({"reason": TEXT, **answer.schema()})


@lru_cache(maxsize=64)
def rubric_schema(entries: tuple[tuple[str, AnswerShape], ...]) -> FrozenDict:
    """The JSON schema of a reply about a whole rubric.

    Args:
        entries: The name of each criterion, and what a reply may say about it.
    """
    kinds = [
        reply_schema({"criterion": {"type": "string", "enum": [name]}, "reason": TEXT, **answer.schema()})
        for name, answer in entries
    ]
    return reply_schema({"verdicts": {"type": "array", "items": {"anyOf": kinds}}})
