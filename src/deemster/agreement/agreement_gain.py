"""Tests whether judges agree better with people by one wording of a criterion than by another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import msgspec

from deemster.rubrics.criterion import Criterion
from deemster.rubrics.vote_aggregation import is_missing
from deemster.stats.means import exact_mean
from deemster.stats.paired_tests import sign_flip


class AgreementGain(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement before and after, on the same items.

    Attributes:
        n: Items with a truth and both verdicts.
        missing: Items with a truth that lack a verdict.
        before: The mean agreement before; None without an item.
        after: The same after.
        better: Items that agree more than before.
        worse: Items that agree less.
        p_value: One-sided: the chance of so large a gain where neither wording is better; None without an item.
        method: The method of the test.
    """

    n: int
    missing: int
    before: float | None
    after: float | None
    better: int
    worse: int
    p_value: float | None
    method: str

    @property
    def difference(self) -> float | None:
        """How much higher the agreement is after; None without an item."""
        return None if self.before is None or self.after is None else self.after - self.before


def verdict_agreement(criterion: Criterion, verdict: float, truth: float) -> float:
    """How far a verdict agrees with the truth, from 0 to 1.

    On an ordinal scale every step away costs the same; a number costs its distance as a share of the range. An
    abstention agrees with an abstention alone, and a reply that could not be read with nothing.

    Args:
        criterion: What was judged.
        verdict: The code of the verdict; a negative one is a reply that could not be read. A float is a number.
        truth: The code or number that people gave.

    >>> verdict_agreement(Criterion("Is it right?"), 0, 0), verdict_agreement(Criterion("Is it right?"), 2, 0)
    (1.0, 0.0)
    """
    if isinstance(verdict, float) and isinstance(truth, float):
        return 1.0 - abs(criterion.share(verdict) - criterion.share(truth))
    if isinstance(verdict, float) or isinstance(truth, float):
        return 0.0
    if verdict < 0 or truth in criterion.abstentions or verdict in criterion.abstentions:
        return float(verdict in criterion.abstentions and truth in criterion.abstentions)
    position, true_position = criterion.positions[verdict], criterion.positions[truth]
    if position is None or true_position is None:
        return float(verdict == truth)
    return 1.0 - abs(position - true_position) / (len(criterion.scored) - 1)


def verdict_agreements(
    criterion: Criterion, verdicts: Sequence[float | None], truths: Sequence[float]
) -> list[float | None]:
    """How far each verdict agrees with its truth; None where either is missing.

    Args:
        criterion: What was judged.
        verdicts: The code of each verdict; None where there is none.
        truths: The code that people gave; `MISSING` where they gave none.
    """
    return [
        None if code is None or is_missing(truth) else verdict_agreement(criterion, code, truth)
        for code, truth in zip(verdicts, truths, strict=True)
    ]


def compare_agreement(
    before: Sequence[float | None],
    after: Sequence[float | None],
    *,
    labelled: int | None = None,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> AgreementGain:
    """Compare the agreement of the same items before and after, and test whether the gain is more than noise.

    The test is the sign-flip permutation test of the paired differences, one-sided. Where agreement is 0 or 1 and items
    are their own clusters it is McNemar's exact test: half the two-sided p-value, if the gain is positive.

    Args:
        before: The agreement of each item before; None where it has none.
        after: The same after.
        labelled: How many of the items have a truth; all unless given.
        clusters: The cluster of each item; the items of one change signs together.
        seed: The seed of the draws, where the test is not exact.

    Raises:
        ValueError: There are not as many agreements after as before, or not one cluster for each.

    >>> compare_agreement([0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1]).p_value
    0.03125
    """
    groups: Sequence[Hashable] = range(len(before)) if clusters is None else clusters
    pairs = [
        (first, second, group)
        for first, second, group in zip(before, after, groups, strict=True)
        if first is not None and second is not None
    ]
    differences = [second - first for first, second, _ in pairs]
    tested = sign_flip(differences, clusters=[group for _, _, group in pairs], alternative="greater", seed=seed)
    return AgreementGain(
        n=len(pairs),
        missing=(len(before) if labelled is None else labelled) - len(pairs),
        before=exact_mean([first for first, _, _ in pairs]),
        after=exact_mean([second for _, second, _ in pairs]),
        better=sum(difference > 0 for difference in differences),
        worse=sum(difference < 0 for difference in differences),
        p_value=tested.p_value,
        method=tested.method,
    )


def lowest_p_value(
    before: Sequence[float | None], *, clusters: Sequence[Hashable] | None = None, seed: int = 0
) -> float:
    """The p-value of a perfect wording, by which every item agrees fully: no wording can reach a lower one.

    Args:
        before: The agreement of each item; None where it has none.
        clusters: The cluster of each item.
        seed: The seed of the draws, where the test is not exact.

    >>> lowest_p_value([1.0, 0.0, 0.0, 0.0, None])
    0.125
    """
    perfect = [None if value is None else 1.0 for value in before]
    found = compare_agreement(before, perfect, clusters=clusters, seed=seed).p_value
    return 1.0 if found is None else found
