"""The score that verdicts come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.errors import ConfigurationError, Issue, RubricError
from deemster.formats.schema_validation import Share, decode_struct
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING, NUMBER, Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import confirm_codes, split_cells, whole_numbers

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

Strategy = Literal["skip", "zero", "partial", "fail"]
_SHIFT: Final = -FAILED_WORST


class Scoring(msgspec.Struct, frozen=True):
    """How verdicts become a score.

    Attributes:
        abstention: What an abstention does: `skip`, `zero`, `partial` or `fail`.
        partial_credit: The share of a positive weight that `partial` grants.
        normalize: Whether the score is brought to [0, 1].

    Raises:
        ConfigurationError: A setting is none of these.
    """

    abstention: Strategy = "skip"
    partial_credit: Share = 0.5
    normalize: bool = True

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)


class Scores(NamedTuple):
    """The scores of many submissions.

    Attributes:
        score: NaN where nothing is left to score.
        raw_score: The weighted sum; NaN where the score is undefined.
        failed_fatal: Which fatal criteria failed, by submission and criterion.
        unresolved_fatal: Which fatal criteria no verdict decides.
    """

    score: Floats
    raw_score: Floats
    failed_fatal: Flags
    unresolved_fatal: Flags


class RubricScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one submission.

    Attributes:
        score: None where nothing is left to score.
        raw_score: The weighted sum; None where there is nothing to add.
        failed_fatal: The names of the fatal criteria that failed.
        unresolved_fatal: The names of the fatal criteria that no verdict decides.
    """

    score: float | None
    raw_score: float | None
    failed_fatal: tuple[str, ...] = ()
    unresolved_fatal: tuple[str, ...] = ()


class _Tables(NamedTuple):
    """What each code of each criterion adds, criteria by shifted codes."""

    gain: Floats
    positive: Floats
    negative: Floats
    fails: Flags
    open: Flags


@lru_cache(maxsize=64)
def _tables(rubric: Rubric, scoring: Scoring) -> _Tables:
    width = max(len(criterion.labels) for criterion in rubric.criteria) + _SHIFT
    shape = (len(rubric.criteria), width)
    gain, positive, negative = np.zeros((3, *shape))
    fails, unresolved = np.zeros((2, *shape), dtype=np.bool_)
    tables = _Tables(gain, positive, negative, fails, unresolved)
    for row, criterion in enumerate(rubric.criteria):
        for code in range(FAILED_WORST, len(criterion.labels)):
            _fill(tables, row, criterion, code, scoring)
    return tables


def _fill(tables: _Tables, row: int, criterion: Criterion, code: int, scoring: Scoring) -> None:
    at = (row, code + _SHIFT)
    weight = criterion.weight
    if not criterion.is_scored:
        return
    worst = criterion.worst_scored_option()[1].value
    if criterion.worst_number is not None:
        worst = criterion.share(criterion.worst_number)
    abstains = code == FAILED or code in criterion.abstentions
    if code == MISSING or (abstains and scoring.abstention == "skip"):
        tables.open[at] = criterion.fatal
        return
    tables.positive[at] = max(weight, 0.0)
    tables.negative[at] = max(-weight, 0.0)
    value: float | None
    if not abstains:
        value = worst if code == FAILED_WORST else criterion.values[code]
    elif scoring.abstention == "partial":
        value = scoring.partial_credit if weight > 0 else 0.0
    else:
        value = worst if scoring.abstention == "fail" else 0.0
    tables.gain[at] = weight * (value or 0.0)
    if criterion.fatal:
        decided = not abstains or scoring.abstention == "fail"
        tables.fails[at] = decided and value == worst
        tables.open[at] = not decided


def rubric_scores(
    rubric: Rubric,
    codes: ArrayLike,
    *,
    scoring: Scoring,
    penalties: ArrayLike | None = None,
    numbers: Mapping[int, ArrayLike] | None = None,
) -> Scores:
    """Score many lists of verdicts at once.

    With S the sum of weight times value, P that of the positive weights and N that of the negative ones without their
    sign, the score is S / P, or 1 + S / N where only faults are left, brought to [0, 1]; it is S where it is not to be
    normalised, and undefined where no weight is left or every call failed. A failed fatal criterion makes it 0. A
    number is worth its share of the range. A nominal criterion whose options have no values is left out.

    Args:
        rubric: What the verdicts are about.
        codes: Verdicts, submissions by criteria; more dimensions may stand before these.
        scoring: The settings.
        penalties: What is subtracted from each score, by submission.
        numbers: The numbers of each numeric criterion, by its place and submission; NaN where there is none.

    Raises:
        RubricError: There is not one code for each criterion, a criterion does not have it, or a penalty is impossible.
    """
    verdicts = whole_numbers(codes)
    count = len(rubric.criteria)
    if verdicts.ndim < 2 or verdicts.shape[-1] != count:
        raise RubricError(f"Verdicts are submissions by {count} criteria, not of the shape {verdicts.shape}.")
    tables, shape = _tables(rubric, scoring), verdicts.shape[:-1]
    positive, negative = np.zeros((2, *shape))
    gains, known = np.empty(verdicts.shape), np.zeros(shape, dtype=np.bool_)
    failed, unresolved = np.zeros((2, *verdicts.shape), dtype=np.bool_)
    # By weight, so that weights add up in the same order wherever their criteria stand.
    for index in sorted(range(count), key=lambda place: rubric.criteria[place].weight):
        criterion, column = rubric.criteria[index], verdicts[..., index]
        confirm_codes(criterion, column)
        place = column.astype(np.intp) + _SHIFT
        gains[..., index] = tables.gain[index].take(place)
        positive += tables.positive[index].take(place)
        negative += tables.negative[index].take(place)
        known |= column >= 0
        if criterion.fatal:
            failed[..., index] = tables.fails[index].take(place)
            unresolved[..., index] = tables.open[index].take(place)
        if criterion.worst_number is not None:
            shares = _shares(criterion, column, (numbers or {})[index])
            gains[..., index] = np.where(np.isnan(shares), gains[..., index], criterion.weight * shares)
            failed[..., index] |= criterion.fatal & (shares == criterion.share(criterion.worst_number))
    total = _sum(gains)
    undefined = ~known | ((positive == 0) & (negative == 0))
    score = _normalize(total, positive, negative) if scoring.normalize else total.copy()
    if penalties is not None:
        score = np.maximum(score - _penalties(penalties, shape), 0.0 if scoring.normalize else -np.inf)
    score[undefined] = total[undefined] = np.nan
    # Where nothing was judged no gate has failed, and none is passed.
    unresolved |= ~known[..., None] & np.asarray([criterion.fatal for criterion in rubric.criteria])
    failed &= known[..., None]
    score[failed.any(axis=-1)] = 0.0
    return Scores(score, total, failed, unresolved)


def _shares(criterion: Criterion, codes: NDArray[Any], numbers: ArrayLike) -> Floats:
    """What the numbers on a numeric criterion are worth; NaN where there is none."""
    found: Floats = np.where(codes == NUMBER, criterion.share(np.asarray(numbers, dtype=np.float64)), np.nan)  # type: ignore[arg-type]
    return found


def _sum(terms: Floats) -> Floats:
    """Sums over the last axis, the same to the last bit in every order of the terms."""
    terms.sort(axis=-1)
    total: Floats = np.zeros(terms.shape[:-1])
    for place in range(terms.shape[-1]):
        total += terms[..., place]
    return total


def _normalize(total: Floats, positive: Floats, negative: Floats) -> Floats:
    gains = positive > 0
    scale = np.where(gains, positive, np.where(negative > 0, negative, 1.0))
    # A huge fault beside a tiny gain overflows, to the side the clip cuts off.
    with np.errstate(over="ignore"):
        share = np.where(gains, 0.0, 1.0) + total / scale
    return np.clip(share, 0.0, 1.0)


def _penalties(penalties: ArrayLike, shape: tuple[int, ...]) -> Floats:
    found = np.asarray(penalties, dtype=np.float64)
    if not (np.isfinite(found) & (found >= 0)).all():
        raise RubricError("A penalty is a finite number of at least 0.")
    try:
        return np.broadcast_to(found, shape)
    except ValueError:
        raise RubricError(f"Penalties of the shape {found.shape} do not fit scores of the shape {shape}.") from None


def rubric_score(
    rubric: Rubric,
    verdicts: Sequence[str | float | None],
    *,
    scoring: Scoring = Scoring(),  # noqa: B008 - it cannot be changed
    penalty: float = 0.0,
) -> RubricScore:
    """Score one list of verdicts.

    Args:
        rubric: What the verdicts are about.
        verdicts: A label, a code, or None for what was not judged, for each criterion; a number on a numeric one.
        scoring: The settings.
        penalty: What is subtracted from the score.

    Raises:
        RubricError: There is not one verdict for each criterion, or a criterion does not have it; all are listed.

    >>> from deemster.rubrics.criterion import Criterion
    >>> rubric = Rubric((Criterion("It is right."), Criterion("It rambles.", weight=-4)))
    >>> rubric_score(rubric, ["MET", "MET"]).score
    0.6
    """
    if isinstance(verdicts, str) or len(verdicts) != len(rubric.criteria):
        count = "text" if isinstance(verdicts, str) else str(len(verdicts))
        raise RubricError(f"The rubric has {len(rubric.criteria)} criteria and needs a verdict for each, not {count}.")
    cells: list[int | float] = []
    issues: list[Issue] = []
    for criterion, verdict in zip(rubric.criteria, verdicts, strict=True):
        try:
            cells.append(_cell(criterion, verdict))
        except RubricError as error:
            issues.extend(error.issues)
    if issues:
        raise RubricError(issues)
    codes, numbers = split_cells(cells)
    by_place = {place: [number] for place, number in enumerate(numbers.tolist())}
    found = rubric_scores(rubric, [codes], scoring=scoring, penalties=[penalty], numbers=by_place)
    score, raw = float(found.score[0]), float(found.raw_score[0])
    return RubricScore(
        score=None if np.isnan(score) else score,
        raw_score=None if np.isnan(raw) else raw,
        failed_fatal=_names(rubric, found.failed_fatal[0]),
        unresolved_fatal=_names(rubric, found.unresolved_fatal[0]),
    )


def _cell(criterion: Criterion, verdict: Any) -> int | float:
    if verdict is None:
        return MISSING
    if criterion.kind == "numeric":
        return criterion.cell(verdict)
    if isinstance(verdict, (int, np.integer)) and not isinstance(verdict, bool):
        confirm_codes(criterion, np.asarray([verdict]))
        return int(verdict)
    return criterion.code(verdict)


def _names(rubric: Rubric, flags: Flags) -> tuple[str, ...]:
    return tuple(name for name, flag in zip(rubric.names, flags, strict=True) if flag)
