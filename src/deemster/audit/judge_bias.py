"""The biases of a judge: how often its verdict flips where two texts differ in one thing only, and which way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from deemster.agreement.estimate import Estimate
from deemster.agreement.option_order_bias import ShownOption, option_order_bias
from deemster.audit.judge_audit_report import judge_audit_sections
from deemster.judges.bias_probes import Base, BiasProbe
from deemster.stats import holm, mcnemar
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import interval_ends
from deemster.stats.means import unit_sums
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.paired_difference import paired_difference
from deemster.stats.paired_tests import sign_flip
from deemster.stats.proportion_intervals import wilson
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

JUDGE_AUDIT_SCHEMA: Final = "deemster.judge_audit.v1"
# A right judge may miss so many changed numbers: not every number matters to the answer.
MISSES_ALLOWED = 0.1
# It has noticed a changed number where its score falls by a tenth of the scale; less is noise.
NOTICED_DROP = 0.1
_NOTHING: Final = 1e-9


class ProbedPair(NamedTuple):
    """What a judge said of the two texts of a pair.

    Attributes:
        sample: The place of the sample.
        base: What the pair was made from.
        control: The quality of the text without the thing: its score, or 1 minus it where lower is better.
        variant: The quality of the text with it.
        control_passes: Whether the first passes.
        variant_passes: Whether the second passes.
    """

    sample: int
    base: Base
    control: float
    variant: float
    control_passes: bool
    variant_passes: bool


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one probe shows of one metric.

    Attributes:
        what: What the second text of each pair has.
        pairs: Pairs with two scores.
        samples: The samples they are made from.
        not_applicable: Pairs that could not be made.
        unscored: Pairs that lack a score.
        flips: The share of pairs whose verdict differs.
        to_pass: Pairs that pass only with the thing.
        to_fail: Pairs that pass only without it.
        shift: How much better the second text is scored, on average; of the probe `order`, how many more comparisons
            the first place wins than the second, or the first half of a list of options than the second.
        right_move: What the thing moves in the pass-rate of right answers, or of the outputs of the run.
        wrong_move: What it moves in the pass-rate of wrong answers.
        noticed: Of a probe that a judge must notice, the share of pairs that are scored lower by a tenth or more.
        p_value: Of the null hypothesis that the thing changes no score, or that a judge misses no more than it may.
        adjusted_p: The same after Holm's correction over all probes and metrics of the audit.
        is_flagged: Whether the judge is biased, or blind where it must notice something.
    """

    what: str
    pairs: int
    samples: int
    not_applicable: int
    unscored: int
    flips: Estimate
    to_pass: int
    to_fail: int
    shift: Estimate
    right_move: Estimate | None
    wrong_move: Estimate | None
    noticed: Estimate | None = None
    p_value: float | None
    adjusted_p: float | None = None
    is_flagged: bool = False


class JudgeAudit(Rendered, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The biases of a judge.

    Attributes:
        suite: The suite's name.
        dataset: The dataset's name.
        role: The role of the judge.
        model: Its model.
        source: Where the answers come from: the expected outputs, a run, or a file.
        samples: The samples that pairs are made from.
        confidence: The level of the intervals; flags keep 1 minus it over all probes.
        seed: The seed of what was drawn.
        fewest_samples: Samples that it takes to flag a bias that shows on each of them.
        metrics: By metric and probe, what was found.
        stopped: Why the audit ended early; None where it did not.
    """

    schema_version: str = JUDGE_AUDIT_SCHEMA
    tool_version: str
    suite: str
    dataset: str
    role: str
    model: str | None
    source: str
    samples: int
    confidence: float
    seed: int
    fewest_samples: int
    metrics: dict[str, dict[str, ProbeResult]]
    stopped: str | None = None

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return judge_audit_sections(self)

    @property
    def is_empty(self) -> bool:
        """Whether no pair has two scores, so that nothing is known of the judge."""
        return not any(one.pairs for probes in self.metrics.values() for one in probes.values())

    @property
    def flags(self) -> list[tuple[str, str]]:
        """Metric and probe of every flag."""
        return [
            (metric, name) for metric, probes in self.metrics.items() for name, one in probes.items() if one.is_flagged
        ]


def probe_result(
    probe: BiasProbe, pairs: Sequence[ProbedPair], *, not_applicable: int, unscored: int, confidence: float
) -> ProbeResult:
    """What a probe shows of a metric; it is not flagged before all probes are there.

    Args:
        probe: The probe.
        pairs: The pairs with two scores.
        not_applicable: Pairs that could not be made.
        unscored: Pairs that lack a score.
        confidence: The level of the intervals.
    """
    samples = np.array([pair.sample for pair in pairs], dtype=np.int64)
    differences = np.array([pair.variant - pair.control for pair in pairs])
    moves = np.array([float(pair.variant_passes) - float(pair.control_passes) for pair in pairs])
    totals, sizes = _by_sample(samples, np.abs(moves))
    flips = bounded_mean(totals, sizes, confidence=confidence)
    missed = int(np.count_nonzero(differences > _NOTHING - NOTICED_DROP))
    return ProbeResult(
        what=probe.what,
        pairs=len(pairs),
        samples=len(totals),
        not_applicable=not_applicable,
        unscored=unscored,
        flips=_estimate(flips.value, flips.interval, len(totals)),
        to_pass=int(np.count_nonzero(moves > 0)),
        to_fail=int(np.count_nonzero(moves < 0)),
        shift=_difference(samples, differences, confidence),
        right_move=_move(pairs, moves, "right", confidence),
        wrong_move=_move(pairs, moves, "wrong", confidence) if "wrong" in probe.bases else None,
        noticed=_share(len(pairs) - missed, len(pairs), confidence) if probe.must_notice else None,
        p_value=_misses_p(missed, len(pairs)) if probe.must_notice else _shift_p(samples, differences),
    )


def order_result(favoured: Sequence[str | None], *, unscored: int, confidence: float) -> ProbeResult:
    """Whether a pairwise judge prefers a place to an answer.

    Args:
        favoured: For each pair that was shown in both orders, the place that won both times, `both` where neither did
            and the verdicts differ, or None where the verdicts agree.
        unscored: Pairs that lack a score.
        confidence: The level of the intervals.
    """
    first, second = favoured.count("first"), favoured.count("second")
    leans = np.array([{"first": 1.0, "second": -1.0}.get(str(place), 0.0) for place in favoured])
    return ProbeResult(
        what="the two answers in the other order",
        pairs=len(favoured),
        samples=len(favoured),
        not_applicable=0,
        unscored=unscored,
        flips=_share(sum(place is not None for place in favoured), len(favoured), confidence),
        to_pass=first,
        to_fail=second,
        shift=_difference(np.arange(len(leans)), leans, confidence),
        right_move=None,
        wrong_move=None,
        p_value=(mcnemar(first, second).p_value or 1.0 if first + second else 1.0) if len(favoured) else None,
    )


def option_order_result(shown: Sequence[ShownOption], *, confidence: float) -> ProbeResult | None:
    """Whether a judge that chooses among shuffled options prefers a place to an option; None without such a choice.

    Every text is shown once, with the options in a random order. So nothing can flip; the shift is how much more often
    the first half of the list is chosen than the second, from -1 to 1.

    Args:
        shown: Where each chosen option stood.
        confidence: The level of the intervals.
    """
    bias = option_order_bias(shown, confidence=confidence)
    if bias is None:
        return None
    mean = bias.mean_place
    ends = [None if end is None else 1 - 2 * end for end in (mean.high, mean.low)]
    return ProbeResult(
        what="the options in another order",
        pairs=bias.n,
        samples=bias.n,
        not_applicable=0,
        unscored=0,
        flips=Estimate(value=None, n=0),
        to_pass=bias.first,
        to_fail=bias.last,
        shift=Estimate(value=None if mean.value is None else 1 - 2 * mean.value, low=ends[0], high=ends[1], n=mean.n),
        right_move=None,
        wrong_move=None,
        p_value=bias.p_value,
    )


def flag_biases(found: dict[str, dict[str, ProbeResult]], *, level: float) -> dict[str, dict[str, ProbeResult]]:
    """The same results with flags: p-values are corrected by Holm over all probes of all metrics.

    Args:
        found: The results by metric and probe.
        level: The chance of any false flag.
    """
    places = [(metric, name) for metric, probes in found.items() for name in probes]
    corrected = holm([found[metric][name].p_value for metric, name in places], level=level)
    flagged: dict[str, dict[str, ProbeResult]] = {metric: {} for metric in found}
    for (metric, name), p_value, is_flagged in zip(places, corrected.adjusted, corrected.rejected, strict=True):
        one = found[metric][name]
        flagged[metric][name] = msgspec.structs.replace(one, adjusted_p=p_value, is_flagged=is_flagged)
    return flagged


def fewest_samples(tests: int, *, level: float) -> int:
    """How many samples it takes to flag a bias that shows on each of them: 2·2^-n is at most level/tests.

    >>> fewest_samples(9, level=0.05), fewest_samples(1, level=0.05)
    (9, 6)
    """
    n = 1
    while 2.0 ** (1 - n) > level / max(tests, 1):
        n += 1
    return n


def _by_sample(samples: Any, values: Floats) -> tuple[Floats, Floats]:
    """The sum of the values of each sample, and how many it has: two pairs of one sample are no two samples."""
    _, codes = np.unique(samples, return_inverse=True)
    return unit_sums(values, codes)


def _difference(samples: Any, differences: Floats, confidence: float) -> Estimate:
    totals, sizes = _by_sample(samples, differences)
    found = paired_difference(totals, sizes, confidence=confidence)
    return _estimate(found.value, found.interval, found.n)


def _move(pairs: Sequence[ProbedPair], moves: Floats, base: Base, confidence: float) -> Estimate:
    here = [place for place, pair in enumerate(pairs) if pair.base == base]
    return _difference(np.array([pairs[place].sample for place in here], dtype=np.int64), moves[here], confidence)


def _shift_p(samples: Any, differences: Floats) -> float | None:
    """The sign-flip test over samples; rounding is no difference."""
    if not len(differences):
        return None
    moved = np.where(np.abs(differences) < _NOTHING, 0.0, differences)
    return sign_flip(moved, clusters=samples, seed=0).p_value


def _misses_p(missed: int, n: int) -> float | None:
    """The chance of so many misses or more, where a judge misses no more than it may: a binomial tail."""
    if not n:
        return None
    from scipy.special import bdtrc  # noqa: PLC0415 - scipy takes a tenth of a second to load

    return 1.0 if missed == 0 else float(bdtrc(missed - 1, n, MISSES_ALLOWED))


def _share(successes: int, n: int, confidence: float) -> Estimate:
    found = wilson(successes, n, confidence=confidence)
    return _estimate(found.value, found.interval, n)


def _estimate(value: float | None, interval: Any, n: int) -> Estimate:
    low, high = interval_ends(interval) or (None, None)
    return Estimate(value=value, low=low, high=high, n=n)
