"""Dry runs: counts the requests that models would get, and about what they cost, without sending them."""

from __future__ import annotations

from binascii import crc32
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from deemster.datasets.where_condition import applies
from deemster.engine.model_access import ModelAccess, open_gateway
from deemster.engine.play_scripts import ask_in_repetition, script_result
from deemster.engine.run_plan import Plan, asks_models
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.evaluation.judge_anchors import anchor_evaluations
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.formats.canonical_json import json_text
from deemster.judges.criterion_grader import CriterionGrader
from deemster.models import Gateway
from deemster.models.call_context import PlannedCalls
from deemster.models.model_call import DRY_RUN
from deemster.records import Answer, Ask, Invocation, Output, Reply, Request, Sample, Token, Vectors
from deemster.report.build_report import batches

_BATCH = 256
# How many entries a list of a model's reply has, at most, where a metric does not say it as `most_listed`.
_LISTED = 10
# A context of five passages, about 250 tokens each, stands in for what a live target would retrieve.
_PASSAGES = tuple({"id": f"assumed-{number}", "text": "assumed context " * 64} for number in range(1, 6))
_ANSWER = "An assumed answer."
_TEXT = "An assumed text that is about as long as a sentence of a model's reply, number {}."


class CallRange(NamedTuple):
    """The requests to one role that a run would make.

    Attributes:
        least: The fewest: a later round of a script asks as little as the replies allow.
        most: The most: a later round asks as much as they allow, and every reply is asked for again once.
    """

    least: PlannedCalls
    most: PlannedCalls


class DryRun(NamedTuple):
    """What a run would ask of models, retries of failed requests aside.

    Attributes:
        roles: The requests to each role.
        assumes_context: Whether a judge reads a context that only the target gives, so that one was assumed.
    """

    roles: Mapping[str, CallRange]
    assumes_context: bool = False

    @classmethod
    def of_all(cls, runs: Sequence[DryRun]) -> DryRun:
        """What several runs would ask together, each as if the others were not there."""
        nothing = CallRange(PlannedCalls(), PlannedCalls())
        roles: dict[str, CallRange] = {}
        for run in runs:
            for role, calls in run.roles.items():
                known = roles.get(role, nothing)
                roles[role] = CallRange(known.least + calls.least, known.most + calls.most)
        return cls(roles, any(run.assumes_context for run in runs))

    def to_json(self) -> bytes:
        """The same as JSON: for each role the least and the most requests, with tokens and cost."""
        roles = {role: plan._asdict() for role, plan in self.roles.items()}
        found = msgspec.json.Encoder(decimal_format="number").encode(
            {"roles": roles, "assumes_context": self.assumes_context}
        )
        return msgspec.json.format(found, indent=2) + b"\n"


class _Way(NamedTuple):
    """How replies are made up: entries in lists, which choices, whether they are sure and can be read at once."""

    entries: int
    last: bool = False
    is_sure: bool = False
    is_readable: bool = True


class CallCounter:
    """Plays scripts with made-up replies, and counts the fewest and the most requests that they make.

    A script is played several times: with short and long lists, with the first and the last of every choice, with
    replies that can be read at once or only when they are asked for again. Cached and recorded answers are used as they
    are.
    """

    def __init__(self, least: Gateway, most: Gateway, probe: Gateway) -> None:
        self._least, self._most, self._probe = least, most, probe
        self._embeds: list[Request] = []

    async def count(
        self,
        script: Callable[[], Any],
        *,
        listed: int = _LISTED,
        rare: frozenset[str] = frozenset(),
        repetition: int = 0,
    ) -> None:
        """Count the requests of one script.

        Args:
            script: Begins the script.
            listed: How many entries a list in a reply has, at most.
            rare: The roles that may not be asked at all: the strong judges of a cascade.
            repetition: The repetition of the sample.
        """
        ways = [_Way(0, is_sure=True), _Way(1, is_sure=True)]
        ways += [_Way(listed, last, is_readable=readable) for last in (False, True) for readable in (True, False)]
        plays = [await self._requests(script, way, repetition) for way in ways]
        fewest = min([found for found in plays if not any(map(_is_repeat, found))] or plays, key=len)
        needed = [each for each in fewest if not _is_repeat(each) and each.role not in rare]
        # Texts of all scripts may go in one request, so that the fewest requests are known at the end.
        self._embeds += [each for each in needed if not isinstance(each, Ask)]
        await self._least.answers([each for each in needed if isinstance(each, Ask)])
        for each in max(plays, key=len):
            await self._most.answers([each])

    def may_batch(self, scorer: Any) -> bool:
        """Whether a scorer marks a batch with one script."""
        return hasattr(scorer, "script_many") and self._probe.may_batch(scorer)

    async def _requests(self, script: Callable[[], Any], way: _Way, repetition: int) -> list[Request]:
        """The requests of a script whose replies are made up in one way."""
        asked: list[Request] = []

        async def answers(requests: Sequence[Request]) -> Sequence[Reply]:
            asked.extend(requests)
            replies = await self._probe.answers(requests)
            return [
                _made_up_reply(request, way) if reply is DRY_RUN else reply
                for request, reply in zip(requests, replies, strict=True)
            ]

        # A custom script may raise at a made-up reply; what it asked until then counts.
        with UserCodeGuard():
            await script_result(script(), ask_in_repetition(answers, repetition), [])
        return asked

    async def ranges(self) -> dict[str, CallRange]:
        """What was counted, by role."""
        await self._least.answers(self._embeds)
        least = self._least.planned
        return {role: CallRange(least.get(role, PlannedCalls()), plan) for role, plan in self._most.planned.items()}


@asynccontextmanager
async def open_call_counter(access: ModelAccess, *, seed: int) -> AsyncIterator[CallCounter]:
    """A counter of the requests of scripts; nothing is sent.

    Raises:
        ConfigurationError: A request could not be made because of how the run is set up.
    """
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(open_gateway(access, clock=None, seed=seed, dry_run=True)) for _ in range(3)
        ]
        yield CallCounter(*opened)


async def plan_job_calls(job: Evaluation) -> DryRun:
    """The requests of an evaluation, by role; the target is not called.

    Where there are no saved outputs, the expected output is used in place of the target's answer, and a context is
    assumed where a judge reads one and the sample has none. The calls that judge anchors count too.

    Raises:
        DatasetError: A file of anchors cannot be used; every issue is given with its place.
    """
    if not job.plan.asking:
        return DryRun({})
    async with open_call_counter(job.access, seed=job.seed) as counter:
        assumes_context = await _play_all(job.plan, counter)
        planned = await counter.ranges()
    # Anchors are judged past the cache.
    for cases in anchor_evaluations(job):
        async with open_call_counter(cases.access, seed=cases.seed) as counter:
            await _play_all(cases.plan, counter)
            for role, calls in (await counter.ranges()).items():
                known = planned.get(role, CallRange(PlannedCalls(), PlannedCalls()))
                planned[role] = CallRange(known.least + calls.least, known.most + calls.most)
    return DryRun(planned, assumes_context)


async def plan_scripts(
    scripts: Iterable[Callable[[], Any]], grader: CriterionGrader, access: ModelAccess, *, checks: Mapping[Any, Any]
) -> DryRun:
    """The requests of scripts of a grader, by role.

    Args:
        scripts: Each begins a script.
        grader: Who judges, and how.
        access: How models may be asked.
        checks: The metrics that answer criteria.
    """
    listed, rare = max(map(_most_listed, checks.values()), default=_LISTED), rarely_asked(grader)
    async with open_call_counter(access, seed=grader.seed) as counter:
        for script in scripts:
            await counter.count(script, listed=listed, rare=rare)
        return DryRun(await counter.ranges())


async def _play_all(plan: Plan, counter: CallCounter) -> bool:
    """Play every script of a run; whether a context was assumed for a judge that reads one."""
    assumed = False
    scorers = [each for each in zip(plan.metrics, plan.where, strict=True) if hasattr(each[0], "script")]
    for repetition in range(plan.repetitions):
        for samples in batches(plan.dataset, _BATCH):
            if asks_models(plan.target):
                await _play_target(plan, samples, counter=counter, repetition=repetition)
            outputs = [_stand_in(plan, sample, repetition) for sample in samples]
            for scorer, where in scorers:
                those = [pair for pair in zip(samples, outputs, strict=True) if applies(where, pair[0])]
                if those:
                    reads_context = "context" in getattr(scorer, "reads", ())
                    assumed |= reads_context and any(output.retrieved is _PASSAGES for _, output in those)
                    await _play_scorer(scorer, *zip(*those, strict=True), counter=counter, repetition=repetition)
    return assumed


async def _play_target(plan: Plan, samples: Sequence[Sample], *, counter: CallCounter, repetition: int) -> None:
    target: Any = plan.target
    number = plan.first_repetition + repetition
    for sample in samples:
        script = partial(target.script, Invocation(sample.id, sample.input, number))
        await counter.count(script, repetition=number)


async def _play_scorer(
    scorer: Any, samples: Sequence[Sample], outputs: Sequence[Output], *, counter: CallCounter, repetition: int
) -> None:
    if counter.may_batch(scorer):
        scripts = [lambda: scorer.script_many(samples, outputs)]
    else:
        scripts = [partial(scorer.script, *each) for each in zip(samples, outputs, strict=True)]
    for script in scripts:
        await counter.count(
            script,
            listed=_most_listed(scorer),
            rare=rarely_asked(getattr(scorer, "grader", None)),
            repetition=repetition,
        )


def _stand_in(plan: Plan, sample: Sample, repetition: int) -> Output:
    """The saved output of a sample; of a live target the expected output, with an assumed context."""
    answers = getattr(plan.target, "answers", None)
    if answers is not None:
        (answer,) = answers([sample.id], 0 if plan.varied == "scoring" else repetition)
        return answer if isinstance(answer, Output) else Output("")
    expected = sample.expected_output
    text = expected if isinstance(expected, str) else _ANSWER if expected is None else json_text(expected)
    has_context = "context" in sample.input or "context" in sample.metadata
    return Output(text or _ANSWER, None if has_context else _PASSAGES)


def _most_listed(scorer: Any) -> int:
    return max(getattr(scorer, "most_listed", _LISTED), *map(_most_listed, getattr(scorer, "checks", {}).values()), 1)


def rarely_asked(grader: Any) -> frozenset[str]:
    """The roles of a grader that its cascade may not ask at all.

    Args:
        grader: A grader, or None.
    """
    cascade = getattr(grader, "cascade", None)
    return (
        frozenset() if cascade is None else frozenset(judge.model for judge in cascade.strong) - {cascade.cheap.model}
    )


def _is_repeat(request: Request) -> bool:
    return isinstance(request, Ask) and request.again > 0


def _made_up_reply(request: Request, way: _Way) -> Reply:
    if not isinstance(request, Ask):
        return Vectors(values=np.ones((len(request.texts), 1), dtype=np.float32))
    if request.schema is None or not (way.is_readable or _is_repeat(request)):
        return Answer(text=_ANSWER)
    # The repeats of an unsure judge differ, and so do texts that are asked for by different requests: later requests
    # that quote them are then as many as in the run.
    mark = f"{crc32(repr(request.messages).encode('utf-8', 'surrogatepass')):08x}"
    text = msgspec.json.encode(_made_up(request.schema, way, request.sample, mark=mark)).decode()
    sure = [Token(letter, 0.0, ((letter, 0.0),)) for letter in text] if way.is_sure and request.logprobs else ()
    return Answer(text=text, tokens=tuple(sure) or None)


def _made_up(schema: Mapping[str, Any], way: _Way, number: int = 0, *, mark: str = "") -> Any:
    """A value that fits a schema of a judge."""
    if "anyOf" in schema:
        return _made_up(schema["anyOf"][0], way, number, mark=mark)
    if "enum" in schema:
        values = schema["enum"]
        return values[-1] if way.last else values[0] if way.is_sure else values[number % len(values)]
    kind = schema.get("type")
    if kind == "object":
        return {name: _made_up(each, way, number, mark=mark) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        items = schema.get("items", {})
        # An entry for each kind of them, such as for each criterion of a rubric.
        kinds = items.get("anyOf") or [items] * way.entries
        return [_made_up(each, way, place, mark=mark) for place, each in enumerate(kinds)]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 1)
        return high if way.last else low if way.is_sure else low + number % (int(high - low) + 1)
    if kind == "boolean":
        return way.last
    return None if kind == "null" else _TEXT.format(f"{number + 1}-{mark}")
