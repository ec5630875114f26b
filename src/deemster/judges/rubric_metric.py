"""The metric `rubric`: judges grade an output by a rubric, and its score is the mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from deemster.agreement.option_order_bias import ShownOption
from deemster.errors import ConfigurationError, InputError, Issue, visible
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats import missing_file
from deemster.formats.canonical_json import canonical
from deemster.judges import metric_catalog as catalog
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grader_section import KEYS, build_grader
from deemster.judges.grading_case import GradingCase, text_digest
from deemster.judges.item_grading import ItemGrading
from deemster.judges.judge_panel import Judge
from deemster.judges.judge_script import JudgeMetric
from deemster.judges.prompt_templates import text_hash
from deemster.judges.reply_parser import truncate_text
from deemster.judges.sample_context import question_text, reference_text
from deemster.judges.vote import Vote
from deemster.metrics.builtin_metric import output_text
from deemster.metrics.metric_spec import format_options
from deemster.metrics.score_outputs import score_outputs, user_mark
from deemster.records import Cause, Output, Sample, Script, Unscored
from deemster.records.model_requests import JUDGE
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.length_penalty import submission_parts
from deemster.rubrics.rubric_definition import Rubric


class RubricMetric(JudgeMetric, frozen=True, kw_only=True, dict=True):
    """How well the output does by a rubric, in the eyes of one judge or a panel.

    Reads the output as the submission (judges do not see what stands in `<thinking>`), `input.question`, else the whole
    input as JSON, as the prompt, and `expected_output`, where there is one, as the reference. `file` is the rubric's
    path, relative to the suite; `rubric` is the rubric itself. `judges` are model roles, or maps of `id`, `model` and
    `weight`; `cascade` (`unsure_below`, `by`, `repeats`) asks the first of them first, the others where it is unsure.
    Everything else is as a grader has it: `calls`, `aggregation`, `ordinal_aggregation`, `nominal_aggregation`,
    `numeric_aggregation`, `abstention`, `partial_credit`, `length_penalty`, `shuffle_options`, `auto_na`, `few_shot`
    (`train` is a path), `repeats`, `quorum`, `seed`, `system_prompt`, `temperature`, `max_tokens`, `probabilities`.
    Every judge of a panel must vote on each criterion, or as many as `quorum` says; else there is no score. A criterion
    on which a lone judge failed counts as an abstention; where that is so of all of them, or a judge was not asked,
    because the run stopped, there is no score.
    Details: criteria (verdict, value, agreement, abstained, failed by criterion), votes (with the place at which the
    chosen option was shown, where options are shuffled), raw_score, penalty,
    judge_scores, mean_agreement, failed_fatal, unresolved_fatal, and a lower `quorum`.
    Example: +10 facts MET, -4 fluff UNMET, +6 depth fair (0.5) scores 13 / 16 = 0.8125.

    Worked examples:
        - question: How do I return an item?
          output: Send it back within 30 days. Have a wonderful, wonderful day!
          options:
            rubric:
              name: reply
              criteria:
              - {name: deadline, weight: 10, requirement: It names the deadline.}
              - {name: chatter, weight: -4, requirement: It has superfluous words.}
          replies: ['{"reason": "30 days.", "verdict": "MET"}', '{"reason": "Wonderful twice.", "verdict": "MET"}']
    """

    alias: ClassVar[str] = "rubric"
    quotes: ClassVar[frozenset[str]] = frozenset({"votes"})

    file: str | None = None
    rubric: Rubric | Mapping[str, Any] | None = None
    judges: str | Judge | Sequence[str | Judge | Mapping[str, Any]] = (JUDGE,)
    calls: str = "per_criterion"
    aggregation: str = "majority"
    ordinal_aggregation: str = "mean"
    nominal_aggregation: str = "mode"
    numeric_aggregation: str = "mean"
    abstention: str = "skip"
    partial_credit: float = 0.5
    normalize: bool = True
    length_penalty: Mapping[str, Any] | None = None
    shuffle_options: bool = True
    auto_na: bool = True
    few_shot: Mapping[str, Any] | None = None
    repeats: int = 1
    quorum: int | None = None
    seed: int = 0
    system_prompt: str | Mapping[str, str] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    probabilities: bool = False
    cascade: Mapping[str, Any] | None = None

    @classmethod
    def placed(cls, options: Mapping[str, Any], folder: str | PathLike[str] | None) -> dict[str, Any]:
        """Options whose paths are relative to a folder, as a suite gives them.

        Args:
            options: The options.
            folder: The folder; None where paths stay as they are.
        """
        found = dict(options)
        if folder is None:
            return found
        if isinstance(found.get("file"), str):
            found["file"] = str(Path(folder) / found["file"])
        few = found.get("few_shot")
        if isinstance(few, Mapping) and isinstance(few.get("train"), str):
            found["few_shot"] = {**few, "train": str(Path(folder) / few["train"])}
        return found

    def validate(self) -> None:
        """Refuse options that make no sense, and a rubric that cannot be read.

        Raises:
            ConfigurationError: An option is out of range, or the rubric is none; all errors are listed.
        """
        if (self.file is None) == (self.rubric is None):
            raise ConfigurationError("`rubric` needs either `file`, a rubric's path, or `rubric`, the rubric itself.")
        if self.normalize is not True:
            raise ConfigurationError(
                "`rubric` takes no `normalize: false`: a score of a run lies in [0, 1]. Raw scores come from `grade`."
            )
        if isinstance(self.rubric, Rubric):
            msgspec.structs.force_setattr(self, "rubric", self.rubric.to_dict())
        given: Any = self.judges
        judges = (given,) if isinstance(given, (str, Mapping, Judge)) else given
        if isinstance(judges, Sequence):
            plain = tuple(msgspec.structs.asdict(each) if isinstance(each, Judge) else each for each in judges)
            msgspec.structs.force_setattr(self, "judges", plain)
        # Read while the run is made ready, so that what is wrong is told before anything is asked.
        _ = self.loaded_rubric, self.grader, self.checks

    @cached_property
    def loaded_rubric(self) -> Rubric:
        """The rubric."""
        given: Any = self.rubric if self.file is None else self.file
        if self.file is not None and not isinstance(self.file, str):
            raise ConfigurationError("`file` of rubric is the path of a rubric.")
        if self.file is not None and (message := missing_file(self.file)):
            raise ConfigurationError(message)
        try:
            return Rubric.load(given)
        except InputError as error:
            raise ConfigurationError(error.issues) from None

    @cached_property
    def grader(self) -> CriterionGrader:
        """Who judges, and how."""
        return build_grader({key: getattr(self, key) for key in KEYS})

    @cached_property
    def checks(self) -> dict[Criterion, CriterionCheck]:
        """The metrics that answer criteria in place of a judge."""
        return build_criterion_checks([self.loaded_rubric])

    @property
    def parts(self) -> tuple[str, ...]:
        """The criteria that its marks have verdicts on."""
        return self.loaded_rubric.names

    @property
    def roles(self) -> tuple[str, ...]:
        """The model roles it asks."""
        others = (role for check in self.checks.values() for role in check.roles)
        return tuple(dict.fromkeys((*self.grader.roles, *others)))

    @property
    def version(self) -> str:  # type: ignore[override]
        """The edition, and a digest of the rubric and the grader, prompts included."""
        checks = {criterion.name: check.identity for criterion, check in self.checks.items()}
        known = {"rubric": self.loaded_rubric.to_dict(), "settings": self.grader.settings, "checks": checks}
        return f"{self.edition}.{text_hash(canonical(known).decode())}"

    @property
    def portable_spec(self) -> str:
        """Its spec without paths, which differ between machines; its version covers the rubric."""
        return self.alias if self.name == self.alias else self.alias + format_options({"name": self.name})

    def prompt_text(self) -> str:
        """The prompts for the kinds of criteria the rubric has, as a person reads them."""
        criteria = self.loaded_rubric.criteria
        kinds = ["rubric"] if self.calls == "per_item" else dict.fromkeys(each.kind for each in criteria)
        return "\n\n".join(self.grader.style.prompt(kind).text for kind in kinds)

    @property
    def needs(self) -> tuple[str, ...]:
        """Nothing: a sample need not have a reference."""
        return ()

    def expect(self, sample: Sample) -> tuple[str, str | None]:
        """The prompt and the reference, which a sample need not have.

        Raises:
            UnscoredError: One of them cannot be read.
        """
        return question_text(sample), None if sample.expected_output is None else reference_text(sample)

    def judge_output(self, sample: Sample, output: Output) -> Script:
        """Ask about every criterion, and mark.

        Raises:
            UnscoredError: The sample or output cannot be read.
        """
        prompt, reference = self.expect(sample)
        text = output_text(output)
        seen = submission_parts(text).output
        rubric, digest = self.loaded_rubric, text_digest(seen)
        case = GradingCase(sample.id, rubric, seen, digest, text, prompt, reference, sample.metadata)
        item = yield from self.grader.script(case, checks=self.checks)
        unasked = _unasked(item)
        if unasked is not None:
            return Unscored("not_run", unasked)
        if item.score is None:
            message = visible(item.unscored or "There is no score.", limit=300)
            return Unscored(_cause(item), message, details=self._details(item) if item.below_quorum else {})
        return self.mark(item.score, self._details(item))

    def _details(self, item: ItemGrading) -> dict[str, Any]:
        criteria = {criterion.name: criterion for criterion in self.loaded_rubric.criteria}
        return {
            "criteria": {each.criterion: each.counted for each in item.criteria},
            "votes": [
                _vote(criteria[each.criterion], vote, is_shuffled=self.grader.questions.shuffle_options)
                for each in item.criteria
                for vote in each.votes
            ],
            "raw_score": item.raw_score,
            "penalty": item.penalty,
            "judge_scores": item.judge_scores,
            "mean_agreement": item.mean_agreement,
            "failed_fatal": item.failed_fatal,
            "unresolved_fatal": item.unresolved_fatal,
            **({} if self.grader.lower_quorum is None else {"quorum": self.grader.lower_quorum}),
        }


def _unasked(item: ItemGrading) -> str | None:
    """Why a judge was not asked about a criterion, which leaves the output without a score; None where all were."""
    for criterion in item.criteria:
        for vote in criterion.votes:
            if vote.failure is not None and vote.failure.cause == "not_run":
                return f"{criterion.criterion}: {vote.failure.message}"
    return None


def _cause(item: ItemGrading) -> Cause:
    """The commonest cause where every call failed; else too few judges of the panel gave a usable answer."""
    if item.below_quorum:
        return "no_quorum"
    causes = Counter(
        vote.failure.cause for each in item.criteria for vote in each.votes if vote.failure is not None and each.failed
    )
    return causes.most_common(1)[0][0] if causes else "no_quorum"


def _vote(criterion: Criterion, vote: Vote, *, is_shuffled: bool) -> dict[str, Any]:
    seat: dict[str, Any] = {"criterion": criterion.name, "judge": vote.judge, "repeat": vote.repeat}
    if vote.failure is not None:
        return {**seat, "cause": vote.failure.cause, "message": visible(vote.failure.message, limit=300)}
    said = {**seat, "verdict": vote.verdict, "reason": None if vote.reason is None else truncate_text(vote.reason)}
    if is_shuffled and vote.shown_order and vote.option_index in criterion.scored:
        said |= {"place": vote.shown_order.index(vote.option_index) + 1, "options": len(criterion.scored)}
    return said if vote.probabilities is None else {**said, "p": vote.probabilities}


def shown_options(details: Mapping[str, Any], text: str, *, criterion: str | None = None) -> list[ShownOption]:
    """Where the options that judges chose stood in the shuffled lists that they saw.

    Args:
        details: The details of a mark; those of other metrics hold none.
        text: The output that was marked.
        criterion: The criterion; all where not given.
    """
    return [
        ShownOption(vote["place"], vote["options"], text)
        for vote in details.get("votes") or ()
        if isinstance(vote, Mapping) and "place" in vote and criterion in (None, vote.get("criterion"))
    ]


def build_criterion_checks(rubrics: Iterable[Rubric]) -> dict[Criterion, CriterionCheck]:
    """The metric of every criterion that a metric answers.

    Args:
        rubrics: Any number of rubrics; equal ones are one.

    Raises:
        ConfigurationError: There is no such metric, or it cannot be made with these arguments; all issues are listed.
    """
    found: dict[Criterion, CriterionCheck] = {}
    issues = []
    for rubric in {id(rubric): rubric for rubric in rubrics}.values():
        for criterion in rubric.criteria:
            if criterion.check is None or criterion in found:
                continue
            if "where" in criterion.check.args:
                issues.append(Issue(f"`{criterion.name}`: a metric that answers a criterion takes no `where`."))
                continue
            try:
                found[criterion] = CriterionCheck(catalog.resolve({criterion.check.metric: dict(criterion.check.args)}))
            except ConfigurationError as error:
                issues += [issue._replace(message=f"`{criterion.name}`: {issue.message}") for issue in error.issues]
    if issues:
        raise ConfigurationError(list(dict.fromkeys(issues)))
    return found


class CriterionCheck:
    """A metric that answers a criterion; every failure of it is an unscored mark.

    Args:
        metric: The metric or scorer.
    """

    def __init__(self, metric: Any) -> None:
        self.metric = metric
        self.name = str(metric.name)
        self.roles = tuple(getattr(metric, "roles", ()))
        self.identity = catalog.identity(metric)

    def script(self, sample: Sample, output: Output) -> Script:
        """Mark one output; a scorer asks as it goes, a metric asks nothing."""
        if not hasattr(self.metric, "script"):
            ((mark,),) = score_outputs([self.metric], [sample], [output], thresholds={})
            return mark
        with UserCodeGuard() as caught:
            return user_mark(self.metric, (yield from self.metric.script(sample, output)))
        return Unscored("metric_failed", caught.message_with_place)
