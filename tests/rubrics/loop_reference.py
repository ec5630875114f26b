"""A second opinion: aggregation and scoring written as loops over one row, from the text of the specification."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.rubrics import Criterion, Rubric, Scoring
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING


def lowest_or_highest(criterion: Criterion, codes: Sequence[int]) -> int:
    """The worst of some codes: the lowest value, the highest for a negative weight, the first of equals."""
    best = codes[0]
    for code in sorted(codes):
        value, held = criterion.values[code], criterion.values[best]
        if (value < held if criterion.weight >= 0 else value > held) or (value == held and code < best):
            best = code
    return best


def plain_aggregate(
    criterion: Criterion, votes: Sequence[int], rule: str, weights: Sequence[float]
) -> tuple[int, float | None]:
    """One row of votes as (code, value)."""
    cells = [(vote, weight) for vote, weight in zip(votes, weights, strict=True) if vote != MISSING]
    if not cells:
        return MISSING, None
    if all(vote < 0 for vote, _ in cells):
        return (FAILED_WORST if any(vote == FAILED_WORST for vote, _ in cells) else FAILED), None
    if len({vote for vote, _ in cells}) == 1:
        return cells[0][0], criterion.values[cells[0][0]]
    scored = [code for code, value in enumerate(criterion.values) if value is not None]
    worst = lowest_or_highest(criterion, scored)
    cells = [(worst if vote == FAILED_WORST else vote, weight) for vote, weight in cells]
    left = [(vote, weight) for vote, weight in cells if vote in scored]
    code, value = _by_rule(criterion, left, rule, scored) if left else (criterion.abstention, None)
    if code not in criterion.abstentions:
        return code, value
    named = [vote for vote in votes if vote in criterion.abstentions]
    return (max(sorted(set(named)), key=named.count) if named else code), None


def _by_rule(
    criterion: Criterion, left: list[tuple[int, float]], rule: str, scored: list[int]
) -> tuple[int, float | None]:
    heads = {code: sum(1 for vote, _ in left if vote == code) for code in scored}
    shares = {code: sum(weight for vote, weight in left if vote == code) for code in scored}
    values = sorted(criterion.values[vote] for vote, _ in left)
    if criterion.kind == "binary" and rule in {"unanimous", "any"}:
        met = heads[1] == 0 if rule == "unanimous" else heads[0] > 0
        return (0, 1.0) if met else (1, 0.0)
    if rule == "unanimous":
        voted = {vote for vote, _ in left}
        return (left[0][0], criterion.values[left[0][0]]) if len(voted) == 1 else (criterion.abstention, None)
    if rule in {"min", "max"}:
        end = values[0] if rule == "min" else values[-1]
        code = min(vote for vote, _ in left if criterion.values[vote] == end)
        return code, end
    if rule in {"mean", "median", "weighted_mean"}:
        middle = len(values) // 2
        raw = {
            "mean": sum(values) / len(values),
            "median": values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2,
            "weighted_mean": sum(criterion.values[v] * w for v, w in left) / sum(w for _, w in left),
        }[rule]
        distances = {code: abs(criterion.values[code] - raw) for code in scored}
        near = [code for code in scored if distances[code] <= min(distances.values()) + 1e-9]
        return lowest_or_highest(criterion, near), raw
    counts = shares if rule.startswith("weighted") else heads
    first = [code for code in scored if counts[code] >= max(counts.values()) - 1e-9]
    code = lowest_or_highest(criterion, first)
    return code, criterion.values[code]


def plain_score(
    rubric: Rubric, codes: Sequence[int], scoring: Scoring, penalty: float
) -> tuple[float | None, float | None, list[str], list[str]]:
    """One list of codes as (score, raw score, failed fatal, unresolved fatal)."""
    if all(code < 0 for code in codes):
        return None, None, [], [criterion.name for criterion in rubric.criteria if criterion.fatal]
    total = positive = negative = 0.0
    failed, unresolved = [], []
    for criterion, code in zip(rubric.criteria, codes, strict=True):
        scored = [index for index, value in enumerate(criterion.values) if value is not None]
        worst = criterion.values[lowest_or_highest(criterion, scored)]
        abstains = code == FAILED or (code >= 0 and code not in scored)
        if criterion.fatal and (code == MISSING or (abstains and scoring.abstention != "fail")):
            unresolved.append(criterion.name)
        if code == MISSING or (abstains and scoring.abstention == "skip"):
            continue
        if abstains and scoring.abstention in {"zero", "partial"}:
            partial = scoring.abstention == "partial" and criterion.weight > 0
            value = scoring.partial_credit if partial else 0.0
        else:
            value = worst if abstains or code == FAILED_WORST else criterion.values[code]
            if criterion.fatal and value == worst:
                failed.append(criterion.name)
        total += criterion.weight * value
        positive += criterion.weight if criterion.weight > 0 else 0.0
        negative += -criterion.weight if criterion.weight < 0 else 0.0
    score: float | None
    if positive == negative == 0:
        score = raw = None
    else:
        raw = total
        share = total / positive if positive else 1 + total / negative
        score = max(0.0, min(1.0, max(0.0, share)) - penalty) if scoring.normalize else total - penalty
    return (0.0 if failed else score), raw, failed, unresolved
