"""Audits a judge for biases: asks it about pairs of answers that differ in one thing only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from deemster import __version__
from deemster.audit.judge_bias import (
    JudgeAudit,
    ProbedPair,
    ProbeResult,
    fewest_samples,
    flag_biases,
    option_order_result,
    order_result,
    probe_result,
)
from deemster.audit.planted_outputs import good_outputs, mark_outputs
from deemster.datasets.planted_defects import GoodOutput
from deemster.engine.watchers import Watchers
from deemster.errors import ConfigurationError, did_you_mean, list_names
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.formats.schema_validation import OpenShare, Seed, decode_struct
from deemster.judges.bias_probes import ORDER, PROBES, Base, ProbePair, make_pair
from deemster.judges.pairwise import Pairwise
from deemster.judges.rubric_metric import shown_options
from deemster.records import Mark, MetricScore, NotApplicable, Output

SAMPLES = 50
# The probe whose pairs without the thing show a pairwise judge the order: the answer with an introduction.
_ORDER_BASE = "confident-tone"


class BiasSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an audit of a judge asks, and how it counts.

    Attributes:
        probes: The probes; all where none is named.
        max_samples: The most samples that pairs are made from, drawn at random.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.

    Raises:
        ConfigurationError: One is outside of its limits.
    """

    probes: Sequence[str] = ()
    max_samples: Annotated[int, Meta(ge=1)] = SAMPLES
    confidence: OpenShare = 0.95
    seed: Seed = 0

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)


NO_SETTINGS = BiasSettings()


def judge_job(job: Evaluation, role: str) -> Evaluation:
    """A job with the metrics that ask one role, without gate and aggregator.

    Args:
        job: The suite.
        role: The role of the judge.

    Raises:
        ConfigurationError: No metric asks it.
    """
    kept = tuple(metric for metric in job.plan.metrics if role in getattr(metric, "roles", ()))
    if not kept:
        roles = sorted({one for metric in job.plan.scorers for one in getattr(metric, "roles", ())} - {"embedding"})
        known = f"They ask {list_names(roles)}. {did_you_mean(role, roles)}" if roles else "They ask no judge."
        raise ConfigurationError(f"No metric of the suite asks the role `{role}`. {known}")
    return job._replace(plan=job.plan._replace(metrics=kept), gate=None, aggregator=None)


async def audit_judge(
    job: Evaluation,
    role: str,
    outputs: Mapping[str, Output],
    *,
    source: str,
    settings: BiasSettings = NO_SETTINGS,
    watchers: Watchers,
) -> JudgeAudit:
    """Ask a judge about pairs of answers that differ in one thing only, and flag what it reacts to.

    Args:
        job: The suite's metrics and models, as `audit_job` gives them.
        role: The role of the judge.
        outputs: The answers that pairs are made from, by sample id.
        source: Where they come from, as the audit says it.
        settings: What is asked.
        watchers: Who watches it, and may stop it.

    Raises:
        InputError: No metric asks the role, no sample has an answer, or a probe is unknown.
    """
    job = judge_job(job, role)
    names = [_check_name(name) for name in settings.probes or (*PROBES, ORDER)]
    goods = good_outputs(job.plan.dataset, outputs, most=settings.max_samples, seed=settings.seed)
    asked = job.access.roles[role]
    model = getattr(asked.client, "model", None) or asked.model
    probing = _Probing(names, goods, model=model or role, seed=settings.seed)
    marked = await mark_outputs(job, probing.outputs(), watchers=watchers)
    found = {
        metric.name: probing.results(
            [None if each is None else each.marks[place] for each in marked],
            is_pairwise=isinstance(metric, Pairwise),
            confidence=settings.confidence,
        )
        for place, metric in enumerate(job.plan.metrics)
    }
    level = 1 - settings.confidence
    return JudgeAudit(
        tool_version=__version__,
        suite=job.suite or job.plan.dataset.name,
        dataset=job.plan.dataset.name,
        role=role,
        model=model,
        source=source,
        samples=len(goods),
        confidence=settings.confidence,
        seed=settings.seed,
        fewest_samples=fewest_samples(sum(map(len, found.values())), level=level),
        metrics=flag_biases(found, level=level),
        stopped=watchers.stop.reason,
    )


def _check_name(name: str) -> str:
    if name != ORDER and name not in PROBES:
        raise ConfigurationError(f"No probe is called `{name}`. {did_you_mean(name, [*PROBES, ORDER])}")
    return name


class _Pair(NamedTuple):
    """A pair of texts about a sample."""

    sample: int
    base: Base
    texts: ProbePair


class _Probing:
    """The pairs of an audit: the outputs that are marked for them, and what the marks show.

    A text that several pairs share is marked once.

    Args:
        names: The probes.
        goods: The samples with their answers.
        model: What the judge is called.
        seed: The seed of what is drawn.
    """

    def __init__(self, names: Sequence[str], goods: Sequence[GoodOutput], *, model: str, seed: int) -> None:
        self._names, self._goods = names, goods
        wrong = _wrong_answers(goods, seed=seed)
        self._pairs: dict[str, list[_Pair]] = {}
        self._missing: Counter[str] = Counter()
        for name in dict.fromkeys(_ORDER_BASE if name == ORDER else name for name in names):
            probe, self._pairs[name] = PROBES[name], []
            for base in probe.bases:
                for place, good in enumerate(goods):
                    text = good.output.text if base == "right" else wrong[place]
                    pair = text and make_pair(probe, text, model=model, sample=good.sample.id, seed=seed)
                    if not pair:
                        self._missing[name] += 1
                    else:
                        self._pairs[name].append(_Pair(place, base, pair))
        pairs = (pair for own in self._pairs.values() for pair in own)
        self._texts = list(dict.fromkeys((pair.sample, text) for pair in pairs for text in pair.texts))

    def outputs(self) -> list[GoodOutput]:
        """What is to be marked."""
        return [
            GoodOutput(self._goods[place].sample, msgspec.structs.replace(self._goods[place].output, text=text))
            for place, text in self._texts
        ]

    def results(self, marks: Sequence[Mark | None], *, is_pairwise: bool, confidence: float) -> dict[str, ProbeResult]:
        """What every probe shows of one metric.

        Args:
            marks: Its marks of the outputs, in order.
            is_pairwise: Whether it compares two answers in both orders.
            confidence: The level of the intervals.
        """
        known = dict(zip(self._texts, marks, strict=True))
        found = {}
        for name in self._names:
            if name != ORDER:
                found[name] = self._result(name, known, confidence)
            elif is_pairwise:
                own = [pair for pair in self._pairs[_ORDER_BASE] if pair.base == "right"]
                found[name] = _order([known[pair.sample, pair.texts.control] for pair in own], confidence)
            elif (options := _option_order(known, confidence)) is not None:
                found[name] = options
        return found

    def _result(self, name: str, known: Mapping[tuple[int, str], Mark | None], confidence: float) -> ProbeResult:
        judged, unscored = [], 0
        for pair in self._pairs[name]:
            control, variant = (known[pair.sample, text] for text in pair.texts)
            if isinstance(control, MetricScore) and isinstance(variant, MetricScore):
                quality = _quality(control), _quality(variant)
                judged.append(ProbedPair(pair.sample, pair.base, *quality, control.success, variant.success))
            elif not isinstance(control, NotApplicable):
                unscored += 1
        missing = self._missing[name]
        return probe_result(PROBES[name], judged, not_applicable=missing, unscored=unscored, confidence=confidence)


def _wrong_answers(goods: Sequence[GoodOutput], *, seed: int) -> list[str | None]:
    """For each sample, the answer to another one, each used once; None where that is the same answer."""
    order = list(range(len(goods)))
    Random(seed).shuffle(order)  # noqa: S311 - a seeded order, no secret
    found: list[str | None] = [None] * len(goods)
    for place, other in zip(order, [*order[1:], *order[:1]], strict=True):
        text = goods[other].output.text
        found[place] = None if text == goods[place].output.text else text
    return found


def _quality(mark: MetricScore) -> float:
    return mark.score if mark.higher_is_better else 1 - mark.score


def _option_order(known: Mapping[tuple[int, str], Mark | None], confidence: float) -> ProbeResult | None:
    scored = ((text, mark.details) for (_, text), mark in known.items() if isinstance(mark, MetricScore))
    shown = [one for text, details in scored for one in shown_options(details, text)]
    return option_order_result(shown, confidence=confidence)


def _order(marks: Sequence[Mark | None], confidence: float) -> ProbeResult:
    compared = [mark for mark in marks if isinstance(mark, MetricScore) and not mark.details.get("identical")]
    favoured = [None if mark.details["consistent"] else mark.details.get("favoured") or "both" for mark in compared]
    unscored = sum(not isinstance(mark, (MetricScore, NotApplicable)) for mark in marks)
    return order_result(favoured, unscored=unscored, confidence=confidence)
