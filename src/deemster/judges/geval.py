"""The G-Eval metric: a model judges one quality by steps, on a rubric of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import msgspec
from msgspec.structs import force_setattr

from deemster.errors import ConfigurationError
from deemster.judges._geval_prompt import geval_messages, quality_prompt, verdict_schema
from deemster.judges._geval_steps import steps_prompt, write_steps
from deemster.judges._log_probabilities import read_integer_score
from deemster.judges.geval_definition import (
    TENTHS,
    JudgedQuality,
    Preset,
    check_example_list,
    check_examples,
    check_fields,
    check_steps,
    load_preset,
    parse_bands,
)
from deemster.judges.judge_panel import ALTERNATIVES, PanelMetric, PanelReplies, reweigh_marks, vote_spread
from deemster.judges.judge_script import Asking
from deemster.judges.prompt_templates import check_text
from deemster.judges.refusal_quality import load_reference_prompt, reference_declines
from deemster.judges.reply_parser import truncate_text
from deemster.judges.sample_context import context_passages, question_text, reference_text, sample_passages
from deemster.metrics.builtin_metric import output_text, with_expected
from deemster.records import Mark, MetricScore, Output, Sample, Script

# The value of `combine` where none was given: what it is then depends on `scoring`.
AUTO = "auto"
DEFAULT_FIELDS = ("input", "actual_output")
# The preset that `refusal_check` judges by where the reference declines to answer.
REFUSAL = "refusal-alignment"


class GEval(PanelMetric, frozen=True, kw_only=True):
    """How much an output has of one quality, in the eyes of a model that goes step by step.

    The quality is a `preset`, or `steps`, or `criteria` in free text, from which the first model writes the steps:
    once, since the request is the same for every sample and the cache answers all further ones. What is given beside a
    preset takes the place of the preset's own.

    `fields` are shown to the judge: `input` (`input.question`, else the whole input as JSON), `expected_output`,
    `actual_output`, and `context`: the texts in `output.retrieved`, else `input.context`, else `metadata.context`, a
    text or a list of texts or of maps with a `text`. `expected` is the key of the metadata that holds the expected
    output, unless it is `expected_output` itself. `info` is what else the judge should know, and `few_shot` a list
    of cases with their `score` and `reason`.

    `rubric` is a list of bands `{range: [low, high], outcome}` that cover neighbouring whole numbers, 0 to 10 unless
    given. The score is (value - low) / (high - low); where `higher_is_better` is false it passes at or below the
    threshold. `strict` makes everything but the best value the worst; of an expectation the nearest whole number
    counts. A number off the rubric is asked for once more and then unscored.

    `scoring` is `integer`, the number the judge wrote; `logprobs`, its expectation over what the judge might have
    written; or `samples`, the mean over `samples` answers. An expectation without log-probabilities is the number
    written, and says so.

    `refusal_check` first looks whether the reference declines to answer (`metadata.refusal_expected`, else the model is
    asked) and then judges `refusal-alignment` in place of this quality.

    `models`, `samples`, `combine`, `weights`, `quorum`, `temperature`: as of llm-as-judge; `combine` is `majority` for
    whole numbers and `mean` for expectations unless given.

    Details: rubric_value, rubric_range, scoring, judge_reason, model, prompt_hash; steps where a model wrote them; mass
    or fallback with logprobs; judged_as and reference_refuses with refusal_check; of a panel votes, spread, agreement.
    Example: an answer that leaves out one of the things asked for has completeness 2 of 1 to 3, a score of 0.5.

    Worked examples:
        - question: When are you open?
          output: hi!!! we r open 9-17
          options:
            steps: [Look for greetings, Look for spelling]
            fields: [actual_output]
            rubric:
            - range: [0, 3]
              outcome: careless
            - range: [4, 7]
              outcome: plain
            - range: [8, 10]
              outcome: polite
          replies: ['{"reason": "Careless spelling.", "score": 2}']
    """

    alias: ClassVar[str] = "g-eval"
    quotes: ClassVar[frozenset[str]] = frozenset({"judge_reason", "votes"})
    reads: ClassVar[frozenset[str]] = frozenset({"context", "refusal_expected"})
    reads_expected: ClassVar[bool] = False

    combine: str = AUTO
    preset: str | None = None
    criteria: str | None = None
    steps: Sequence[str] | None = None
    fields: Sequence[str] | None = None
    rubric: Sequence[Any] | None = None
    higher_is_better: bool | None = None
    strict: bool = False
    scoring: Literal["integer", "logprobs", "samples"] = "integer"
    few_shot: Sequence[Any] = ()
    info: str | None = None
    expected: str | None = None
    refusal_check: bool = False

    def __post_init__(self) -> None:
        defaults = self.defaults()
        not_given = {"threshold": None, "higher_is_better": None, "combine": AUTO}
        for option, value in not_given.items():
            if getattr(self, option) == value:
                force_setattr(self, option, defaults[option])
        super().__post_init__()

    def defaults(self) -> dict[str, Any]:
        """The values of options that were not given: a preset has its own pass mark and polarity."""
        preset = self.chosen_preset
        return {
            "name": self.default_name(),
            "threshold": self.pass_mark if preset is None else preset.threshold,
            "higher_is_better": preset is None or preset.higher_is_better,
            "combine": "majority" if self.scoring == "integer" else "mean",
        }

    def default_name(self) -> str:
        """The name where none was given: the preset's, else the alias."""
        return self.preset or self.alias

    @property
    def chosen_preset(self) -> Preset | None:
        """The preset, if one was given."""
        return None if self.preset is None else load_preset(self.preset)

    def validate(self) -> None:
        """Refuse options that are out of range.

        Raises:
            ConfigurationError: An option is missing or out of range.
        """
        super().validate()
        if self.criteria is not None and self.steps is not None:
            raise ConfigurationError(f"{self.alias} takes `criteria` or `steps`, not both.")
        if self.criteria is None and self.steps is None and self.preset is None:
            raise ConfigurationError(f"{self.alias} needs a `preset`, `criteria` or `steps`: it says what is judged.")

        self._normalize_texts()
        self._normalize_examples()
        self._check_scoring()
        if self.refusal_check:
            self._check_scale_of_refusals()

    def _normalize_texts(self) -> None:
        """Bring what describes the quality into the form in which it is used, or refuse it."""
        metric = self.alias
        for option in ("criteria", "info", "expected"):
            text = getattr(self, option)
            if text is not None:
                force_setattr(self, option, check_text(text, option=option, metric=metric))

        if self.steps is not None:
            force_setattr(self, "steps", check_steps(self.steps, metric=metric))
        if self.fields is not None:
            force_setattr(self, "fields", check_fields(self.fields, metric=metric))
        if self.rubric is not None:
            force_setattr(self, "rubric", parse_bands(self.rubric, metric=metric))

    def _normalize_examples(self) -> None:
        # The examples need to be a list before there is a quality, whose fields and rubric they are read by.
        force_setattr(self, "few_shot", check_example_list(self.few_shot, metric=self.alias))

        quality = self.quality
        examples = check_examples(
            self.few_shot, fields=quality.fields, low=quality.low, high=quality.high, metric=self.alias
        )
        force_setattr(self, "few_shot", examples)

    def _check_scoring(self) -> None:
        if self.scoring == "samples" and self.samples == 1:
            raise ConfigurationError(
                f"`scoring: samples` of {self.alias} needs `samples`, how many answers are asked for, such as 5."
            )
        if self.scoring != "integer" and self.combine == "majority":
            raise ConfigurationError(
                f"`combine: majority` of {self.alias} is for whole numbers; with `scoring: {self.scoring}` say `mean`."
            )
        if self.scoring == "samples" and self.combine not in ("mean", "weighted"):
            raise ConfigurationError(
                f"`scoring: samples` of {self.alias} is a mean: `combine` is `mean` or `weighted`, no `{self.combine}`."
            )

    def _check_scale_of_refusals(self) -> None:
        """Refuse a quality whose scores cannot stand beside those of refusals."""
        quality = self.quality
        refusal = load_preset(REFUSAL)
        if (quality.low, quality.high) != (refusal.low, refusal.high) or not self.higher_is_better:
            raise ConfigurationError(
                f"`refusal_check` of {self.alias} needs a rubric from {refusal.low} to {refusal.high} "
                f"where higher is better, as `{REFUSAL}` has it, which takes its place."
            )

    @property
    def quality(self) -> JudgedQuality:
        """What is judged: the preset, where there is one, with what was given beside it."""
        base = self.chosen_preset or JudgedQuality(
            about=self._description(), steps=None, rubric=TENTHS, fields=DEFAULT_FIELDS
        )
        # For criteria of one's own a model writes the steps, not the preset.
        steps = base.steps if self.criteria is None else None

        return JudgedQuality(
            about=self.criteria or base.about,
            steps=steps if self.steps is None else tuple(self.steps),
            rubric=base.rubric if self.rubric is None else tuple(self.rubric),
            fields=base.fields if self.fields is None else tuple(self.fields),
            higher_is_better=bool(self.higher_is_better),
            info=self.info,
            examples=tuple(self.few_shot),
        )

    @property
    def refusal_quality(self) -> JudgedQuality:
        """What is judged instead if the reference declines to answer."""
        return msgspec.structs.replace(load_preset(REFUSAL), info=self.info)

    def _description(self) -> str:
        """What a judge is told where only steps are given: the name that the user chose."""
        is_named = self.name not in ("", self.alias)
        return self.name if is_named else "what the steps look at."

    def prompt_text(self) -> str:
        """The whole prompt, as a person reads it; the prompts of its other requests follow."""
        quality = self.quality
        prompts = [quality_prompt(quality)]
        if quality.steps is None:
            prompts.append(steps_prompt(quality))
        if self.refusal_check:
            prompts.append(load_reference_prompt().text)
            prompts.append(quality_prompt(self.refusal_quality))
        return "\n\n".join(prompts)

    @property
    def needs(self) -> tuple[str, ...]:
        """The expected output, where it is shown; a context may come with the output."""
        return (self.expected or "expected_output",) if "expected_output" in self._shown_fields else ()

    def expect(self, sample: Sample) -> dict[str, str]:
        """The texts that the sample itself brings, by field.

        Raises:
            UnscoredError: One is missing or cannot be read.
        """
        if "context" in self.quality.fields:
            # The output may bring a context too, so a sample without one is no error yet.
            sample_passages(sample)
        return self._sample_texts(sample)

    def _sample_texts(self, sample: Sample) -> dict[str, str]:
        readers = {"input": question_text, "expected_output": reference_text}
        shown = self._shown_fields
        seen = with_expected(sample, self.expected)
        return {field: read(seen) for field, read in readers.items() if field in shown}

    @property
    def _shown_fields(self) -> frozenset[str]:
        """What is shown of a sample, to any of its judges."""
        shown = frozenset(self.quality.fields)
        return shown.union(load_preset(REFUSAL).fields) if self.refusal_check else shown

    def judge_output(self, sample: Sample, output: Output) -> Script:
        """Ask every member for a score on the rubric, and mark.

        Raises:
            UnscoredError: The sample or output cannot be read.
            NoAnswerError: Too few judges gave a usable answer.
        """
        quality = self.quality
        texts: dict[str, str | tuple[str, ...]] = {**self._sample_texts(sample), "actual_output": output_text(output)}
        first_answers: dict[str, Any] = {}

        if self.refusal_check:
            refuses = yield from reference_declines(sample, role=self.models[0], max_tokens=self.max_tokens)
            first_answers["reference_refuses"] = refuses
            if refuses:
                quality = self.refusal_quality
                first_answers["judged_as"] = REFUSAL

        if "context" in quality.fields:
            texts["context"] = context_passages(sample, output)

        steps = quality.steps
        if steps is None:
            steps = yield from write_steps(quality, role=self.models[0], max_tokens=self.max_tokens)
            first_answers["steps"] = [truncate_text(step) for step in steps]

        panel = yield from self._ask_for_scores(quality, steps, {field: texts[field] for field in quality.fields})
        value, vote_details = self.combine_votes(panel.votes, higher_is_better=quality.higher_is_better)
        speaker = next((vote for vote in panel.answered if vote.value == value), panel.answered[0])

        details = {
            "judge_reason": speaker.reason,
            "model": speaker.model,
            "prompt_hash": self.prompt_hash,
            **(panel.logprob_details() if self.scoring == "logprobs" else {"scoring": self.scoring}),
            **first_answers,
            **vote_details,
        }
        return self._mark_value(value, details, quality)

    def _ask_for_scores(
        self, quality: JudgedQuality, steps: tuple[str, ...], texts: dict[str, str | tuple[str, ...]]
    ) -> Asking[PanelReplies]:
        with_logprobs = self.scoring == "logprobs"
        return self.ask_panel(
            geval_messages(quality, steps, texts),
            schema=verdict_schema(quality.low, quality.high),
            read=lambda answer: read_integer_score(answer, low=quality.low, high=quality.high, logprobs=with_logprobs),
            logprobs=ALTERNATIVES if with_logprobs else 0,
        )

    def _mark_value(self, value: float, details: dict[str, Any], quality: JudgedQuality) -> MetricScore:
        """The mark of a value on the rubric; `strict` takes everything but the best for the worst."""
        score = quality.normalize(value)
        native = quality.nearest_integer(score)
        if self.strict:
            native = quality.best if native == quality.best else quality.worst
            score = quality.normalize(native)

        return MetricScore(
            score,
            {"rubric_value": value, "rubric_range": [quality.low, quality.high], **details},
            float(native),
            self.threshold,  # type: ignore[arg-type]
            quality.higher_is_better,
        )

    def settle(self, marks: Sequence[Mark]) -> list[Mark]:
        """The marks of a whole run, once all of them are there; only `combine: dawid-skene` changes any.

        Args:
            marks: The marks of this metric over a run.
        """
        if not self.settles:
            return list(marks)

        quality = self.quality
        normalized = [_with_normalized_votes(mark, quality) for mark in marks]
        reweighed = reweigh_marks(normalized, label=quality.nearest_integer)
        return [self._settled(mark, other, quality) for mark, other in zip(marks, reweighed, strict=True)]

    def _settled(self, mark: Mark, reweighed: Mark, quality: JudgedQuality) -> Mark:
        """The mark with the score of a reweighed one, back on the rubric."""
        if not isinstance(mark, MetricScore) or not isinstance(reweighed, MetricScore):
            return mark
        if "weights" not in reweighed.details:
            return mark

        value = quality.value(reweighed.score)
        votes = [vote["score"] for vote in mark.details["votes"] if "score" in vote]
        details = {**mark.details, **vote_spread(votes, value), "weights": reweighed.details["weights"]}
        return msgspec.structs.replace(self._mark_value(value, details, quality), usage=mark.usage)


def _with_normalized_votes(mark: Mark, quality: JudgedQuality) -> Mark:
    """A mark whose votes are brought to [0, 1], as `reweigh_marks` expects."""
    if not isinstance(mark, MetricScore):
        return mark
    votes = [
        {**vote, "score": quality.normalize(vote["score"])} if "score" in vote else vote
        for vote in mark.details.get("votes", ())
    ]
    return msgspec.structs.replace(mark, details={**mark.details, "votes": votes})
