"""Several votes on a criterion made one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.errors import ConfigurationError, Issue, RubricError
from deemster.formats.schema_validation import decode_struct
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING, NUMBER, Criterion
from deemster.rubrics.rubric_format import BinaryRule, Kind, NominalRule, NumericRule, OrdinalRule, rule_issues

Codes = NDArray[np.int16]
Floats = NDArray[np.float64]

TIE: Final = 1e-9
NUMERIC_RULE: Final = "numeric_aggregation"
_KEYS: Final[dict[Kind, str]] = {
    "binary": "aggregation",
    "ordinal": "ordinal_aggregation",
    "nominal": "nominal_aggregation",
    "numeric": NUMERIC_RULE,
}
_WEIGHTED: Final = frozenset({"weighted", "weighted_mean", "weighted_mode"})
_LOWEST: Final = FAILED_WORST


class Rules(msgspec.Struct, frozen=True):
    """How a panel's votes become one verdict, by kind of criterion.

    Attributes:
        aggregation: The rule of binary criteria.
        ordinal_aggregation: The rule of ordinal criteria.
        nominal_aggregation: The rule of nominal criteria.
        numeric_aggregation: The rule of numeric criteria.

    Raises:
        ConfigurationError: A rule is none of its kind.
    """

    aggregation: BinaryRule = "majority"
    ordinal_aggregation: OrdinalRule = "mean"
    nominal_aggregation: NominalRule = "mode"
    numeric_aggregation: NumericRule = "mean"

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)

    def rule_for(self, criterion: Criterion) -> str:
        """The rule of a criterion: its own, else that of its kind."""
        rule: str = criterion.aggregation or getattr(self, _KEYS[criterion.kind])
        return rule


def weighs_votes(rule: str) -> bool:
    """Whether a rule heeds the weights of judges."""
    return rule in _WEIGHTED


class Aggregated(NamedTuple):
    """One verdict for each row of votes.

    Attributes:
        codes: A verdict; `MISSING` where no vote was asked for, `FAILED` or `FAILED_WORST` where every call failed.
        values: The value before it was snapped to an option; NaN where the verdict has none.
    """

    codes: Codes
    values: Floats


def aggregate(
    criterion: Criterion,
    codes: ArrayLike,
    numbers: ArrayLike | None = None,
    *,
    rule: str,
    weights: Sequence[float] | Floats | None = None,
) -> Aggregated:
    """Make the votes of each row one verdict.

    Abstentions are set aside; where no vote is left the verdict is the abstention that most voted for. A tie goes to
    the worst case by the sign of the weight. A failed call votes by its stand-in unless every call of the row failed.
    Numbers come to their mean, median, weighted mean, lowest or highest; the stand-in of one that failed for its own
    fault is the worst end of the range.

    Args:
        criterion: What was voted on.
        codes: Votes, rows by voters.
        numbers: Of a numeric criterion the numbers, rows by voters; NaN where there is none.
        rule: A rule of the criterion's kind.
        weights: The weight of each voter, for the weighted rules; equal where absent.

    Raises:
        RubricError: The rule is none of this kind, a code is none of this criterion, or a weight is not positive.

    >>> aggregate(Criterion("Is it right?"), [[0, 1, 0], [0, 1, 2]], rule="majority").codes.tolist()
    [0, 1]
    """
    given = whole_numbers(codes)
    issues = [Issue(message) for message in rule_issues(rule, criterion.kind)]
    if issues:
        raise RubricError(issues)
    if given.ndim != 2:
        raise RubricError(f"Votes are rows by voters, two dimensions, not {given.ndim}.")
    heads = _voter_weights(weights if weighs_votes(rule) else None, given.shape[1])
    if numbers is not None:
        return _aggregate_numbers(criterion, given, np.asarray(numbers, dtype=np.float64), rule, heads)
    confirm_codes(criterion, given)
    votes = given.astype(np.int16, copy=False)
    n, voters = votes.shape
    kinds = len(criterion.labels) - _LOWEST
    # Few voters and few verdicts: every row there can be is aggregated once, and the rows look theirs up.
    if kinds**voters > n:
        return _aggregate_rows(criterion, votes, rule, heads)
    powers = kinds ** np.arange(voters)[::-1]
    every = (np.arange(kinds**voters)[:, None] // powers % kinds + _LOWEST).astype(np.int16)
    table = _aggregate_rows(criterion, every, rule, heads)
    row = np.zeros(n, dtype=np.intp)
    for column in votes.T:
        row *= kinds
        row += column
        row -= _LOWEST
    return Aggregated(table.codes.take(row), table.values.take(row))


def split_cells(cells: ArrayLike | Sequence[Any]) -> tuple[Codes, Floats]:
    """The codes and the numbers of cells, in which a float is a number on a numeric criterion; NaN is no number.

    >>> split_cells([3.5, -1, 1])[0].tolist(), split_cells([3.5, -1, 1])[1].tolist()
    ([0, -1, 1], [3.5, nan, nan])
    """
    given = np.asarray(cells, dtype=object)
    is_number = np.frompyfunc(lambda cell: isinstance(cell, float), 1, 1)(given).astype(np.bool_)
    codes = np.where(is_number, NUMBER, given).astype(np.int16)
    return codes, np.where(is_number, given, np.nan).astype(np.float64)


def is_missing(cell: float) -> bool:
    """Whether a cell holds nothing: the number -1 is not the code of a missing cell.

    >>> is_missing(-1), is_missing(-1.0)
    (True, False)
    """
    return not isinstance(cell, float) and cell == MISSING


def aggregate_cells(
    criterion: Criterion, cells: Sequence[float], *, rule: str, weights: Sequence[float] | None = None
) -> tuple[int | float, float | None]:
    """Make the votes of one row one cell, a code or a number, and the value before it was snapped to an option.

    Args:
        criterion: What was voted on.
        cells: Codes, and numbers on a numeric criterion.
        rule: A rule of the criterion's kind.
        weights: The weight of each voter, for the weighted rules; equal where absent.

    Raises:
        RubricError: The rule is none of this kind, or a code is none of this criterion.
    """
    found = aggregate(criterion, *_one_row(criterion, cells), rule=rule, weights=weights)
    cell, value = _cell(criterion, found), float(found.values[0])
    if isinstance(cell, float):
        return cell, criterion.share(cell)
    return cell, None if np.isnan(value) else value


def merge_repeated_cells(criterion: Criterion, cells: Sequence[float], *, rule: str) -> int | float:
    """Make the answers that one judge gave to one question one cell: a code, or a number on a numeric criterion.

    Args:
        criterion: What was voted on.
        cells: Its answers.
        rule: A rule of the criterion's kind.

    Raises:
        RubricError: The rule is none of this kind, or a code is none of this criterion.
    """
    return _cell(criterion, merge_repeats(criterion, *_one_row(criterion, cells), rule=rule))


def _one_row(criterion: Criterion, cells: Sequence[float]) -> tuple[ArrayLike, Floats | None]:
    return split_cells([cells]) if criterion.kind == "numeric" else ([cells], None)


def _cell(criterion: Criterion, found: Aggregated) -> int | float:
    code = int(found.codes[0])
    return float(found.values[0]) if criterion.kind == "numeric" and code == NUMBER else code


def merge_repeats(criterion: Criterion, codes: ArrayLike, numbers: ArrayLike | None = None, *, rule: str) -> Aggregated:
    """Make the answers that one judge gave to one question one vote, row by row.

    Failed answers are dropped and the rest follow the rule with equal weights; where all failed, the vote failed.

    Args:
        criterion: What was voted on.
        codes: Answers, rows by repeats; `MISSING` where a row has fewer.
        numbers: Of a numeric criterion the numbers; NaN where there is none.
        rule: A rule of the criterion's kind.

    Raises:
        RubricError: The rule is none of this kind, or a code is none of this criterion.

    >>> answers = [[0, FAILED, 0], [FAILED, FAILED_WORST, MISSING]]
    >>> merge_repeats(Criterion("Is it right?"), answers, rule="any").codes.tolist()
    [0, -3]
    """
    given = whole_numbers(codes)
    failed, worst = (given == FAILED) | (given == FAILED_WORST), (given == FAILED_WORST).any(axis=1)
    usable = np.where(failed, MISSING, given)
    merged = aggregate(criterion, usable, numbers, rule=rule)
    lost = failed.any(axis=1) & (usable == MISSING).all(axis=1)
    found = np.where(lost, np.where(worst, FAILED_WORST, FAILED), merged.codes).astype(np.int16)
    return Aggregated(found, merged.values)


def whole_numbers(codes: ArrayLike) -> NDArray[Any]:
    """Codes as an array of whole numbers, as wide as they were given: a narrower one could turn a wrong code right.

    Raises:
        RubricError: They are something else.
    """
    found = np.asarray(codes)
    if found.dtype.kind not in "iu":
        if found.size:
            raise RubricError(f"Codes are whole numbers, not of the type {found.dtype}.")
        found = found.astype(np.int16)
    return found


def confirm_codes(criterion: Criterion, codes: NDArray[Any]) -> None:
    """Refuse codes that the criterion does not have.

    Raises:
        RubricError: There is one.
    """
    if codes.size and not _LOWEST <= (low := int(codes.min())) <= (high := int(codes.max())) < len(criterion.labels):
        wrong = low if low < _LOWEST else high
        name = f" of `{criterion.name}`" if criterion.name else ""
        raise RubricError(f"{wrong} is no code{name}; its verdicts are 0 to {len(criterion.labels) - 1}.")


def _voter_weights(weights: Any, voters: int) -> Floats | None:
    if weights is None:
        return None
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (voters,):
        raise RubricError(f"Each of the {voters} voters has one weight, and {found.size} were given.")
    if not (np.isfinite(found) & (found > 0)).all():
        raise RubricError("The weight of a voter is finite and above 0.")
    # Shares, so that what counts as a tie does not depend on the unit.
    share: Floats = found / found.max()
    return share / np.sort(share).sum() if voters else share


def _aggregate_rows(criterion: Criterion, votes: Codes, rule: str, heads: Floats | None) -> Aggregated:
    there = votes != MISSING
    stood_in = np.where(votes == FAILED, criterion.abstention, votes)
    stood_in = np.where(votes == FAILED_WORST, criterion.worst, stood_in)
    mass = _mass(criterion, stood_in, heads)
    place, raw = _by_rule(criterion, mass, rule)
    scored = np.asarray(criterion.scored, dtype=np.int16)
    values = np.asarray([criterion.values[code] for code in criterion.scored], dtype=np.float64)
    abstains = (place < 0) | ~mass.any(axis=1)
    codes = np.where(abstains, _chosen_abstention(criterion, votes), scored[place]).astype(np.int16)
    numbers = np.where(abstains, np.nan, raw)
    if votes.shape[1]:
        first = np.where(there, votes, len(criterion.labels)).min(axis=1)
        last = np.where(there, votes, _LOWEST).max(axis=1)
        # Options of equal value cannot be told apart by it, so what all agree on is not left to a snap.
        agreed = (first == last) & (first >= 0)
        codes[agreed] = first[agreed]
        known = np.full(len(criterion.labels), np.nan)
        known[scored] = values
        numbers[agreed] = known[first[agreed]]
    return _without_lost(votes, codes, numbers)


def _chosen_abstention(criterion: Criterion, votes: Codes) -> Codes:
    """The abstention that most votes of each row name, the first of equal ones; where none names one, the usual."""
    codes = np.asarray(sorted(criterion.abstentions), dtype=np.int16)
    named = (votes[:, :, None] == codes).sum(axis=1)
    return np.where(named.any(axis=1), codes[named.argmax(axis=1)], criterion.abstention).astype(np.int16)


def _aggregate_numbers(
    criterion: Criterion, votes: NDArray[Any], given: Floats, rule: str, heads: Floats | None
) -> Aggregated:
    """The numbers of each row made one, in the unit of the criterion."""
    given = np.where(votes == FAILED_WORST, criterion.worst_number or 0.0, given)
    known = ~np.isnan(given)
    shares = known * (np.ones(votes.shape[1]) if heads is None else heads)
    some = known.any(axis=1)
    found = np.full(len(votes), np.nan)
    if rule in {"mean", "weighted_mean"}:
        # Sorted, so that the order of voters cannot change the last bit.
        total = np.sort(np.where(known, given * shares, 0.0), axis=1).sum(axis=1)
        np.divide(total, np.sort(shares, axis=1).sum(axis=1), out=found, where=some)
    elif some.any():
        functions: dict[str, Any] = {"median": np.nanmedian, "min": np.nanmin, "max": np.nanmax}
        found[some] = functions[rule](given[some], axis=1)
    # A mean of equal numbers is that number, whatever the last bit of a sum says.
    low = np.where(known, given, np.inf).min(axis=1, initial=np.inf)
    high = np.where(known, given, -np.inf).max(axis=1, initial=-np.inf)
    found = np.where(some, np.clip(found, low, high), found)
    return _without_lost(votes, np.where(some, NUMBER, criterion.abstention).astype(np.int16), found)


def _without_lost(votes: NDArray[Any], codes: Codes, values: Floats) -> Aggregated:
    """The verdicts, where rows that no judge answered failed or are missing."""
    there = votes != MISSING
    answered = there & (votes != FAILED) & (votes != FAILED_WORST)
    lost = there.any(axis=1) & ~answered.any(axis=1)
    codes[lost] = np.where((votes[lost] == FAILED_WORST).any(axis=1), FAILED_WORST, FAILED)
    codes[~there.any(axis=1)] = MISSING
    values[~answered.any(axis=1)] = np.nan
    return Aggregated(codes, values)


def _mass(criterion: Criterion, votes: NDArray[Any], heads: Floats | None) -> Floats:
    """How much of the vote each scored option has, rows by options; a sum that the order of voters cannot change."""
    chosen = votes[:, :, None] == np.asarray(criterion.scored)
    if heads is None:
        return np.asarray(chosen.sum(axis=1), dtype=np.float64)
    shares: Floats = np.sort(np.where(chosen, heads[None, :, None], 0.0), axis=1).sum(axis=1)
    return shares


def _by_rule(criterion: Criterion, mass: Floats, rule: str) -> tuple[NDArray[np.intp], Floats]:
    """The place of the verdict among the scored options, -1 for an abstention, and the value before snapping."""
    values = np.asarray([criterion.values[code] for code in criterion.scored], dtype=np.float64)
    # Worst case first, as `Criterion.worst_among` has it.
    worth = np.nan_to_num(values)
    worst = np.argsort(-worth if criterion.weight < 0 else worth, kind="stable")
    voted = mass > 0
    if rule in {"mean", "weighted_mean"}:
        total = mass.sum(axis=1)
        raw = np.divide(mass @ values, total, out=np.full(len(mass), np.nan), where=total > 0)
        return _snap(raw, values, worst), raw
    if rule == "median":
        raw = _median(mass, values)
        return _snap(raw, values, worst), raw
    if criterion.kind == "nominal" and rule == "unanimous":
        place = np.where(voted.sum(axis=1) == 1, voted.argmax(axis=1), -1)
    elif rule in {"min", "max"}:
        end = values if rule == "min" else -values
        among = np.where(voted, end, np.inf)
        place = _first(among <= among.min(axis=1, keepdims=True), worst)
    elif rule == "unanimous":
        place = np.where(voted[:, 1], 1, 0)
    elif rule == "any":
        place = np.where(voted[:, 0], 0, 1)
    else:
        place = _first(mass >= mass.max(axis=1, keepdims=True) - TIE, worst)
    return place, values[place]


def _first(candidates: NDArray[np.bool_], ranked: NDArray[np.intp]) -> NDArray[np.intp]:
    found: NDArray[np.intp] = ranked[candidates[:, ranked].argmax(axis=1)]
    return found


def _snap(raw: Floats, values: Floats, ranked: NDArray[np.intp]) -> NDArray[np.intp]:
    distance = np.abs(np.nan_to_num(raw)[:, None] - values)
    return _first(distance <= distance.min(axis=1, keepdims=True) + TIE, ranked)


def _median(counts: Floats, values: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(counts[:, order], axis=1)
    total = reached[:, -1:]
    low = (reached >= (total + 1) // 2).argmax(axis=1)
    high = (reached >= total // 2 + 1).argmax(axis=1)
    middle: Floats = (values[order][low] + values[order][high]) / 2
    return np.where(total[:, 0] > 0, middle, np.nan)
