"""The metric `numeric-close`: is the number in the output within a tolerance?"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any, ClassVar, Literal

from deemster.formats.json_values import name_kind
from deemster.metrics.builtin_metric import BuiltinMetric, no_expected, unscorable_sample
from deemster.metrics.option_checks import Amount
from deemster.records import MetricScore, Output, Sample

_NUMBER = r"[+-]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WHOLE = re.compile(_NUMBER)
# Digits in a word, beside `_` or after a dot are no number. Only ASCII letters count: not every script uses spaces.
_WITHIN = re.compile(rf"(?<![\w.]){_NUMBER}(?![0-9_])", re.ASCII)
# A sign within a word or range (`COVID-19`, `3-5`) is a hyphen.
_WITHIN_WORD = re.compile(r"(?<=\w)-")
# Decimal arithmetic, so that 0.4 lies within 0.1 of 0.3. Without traps, so that nothing raises.
_EXACT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


class NumericClose(BuiltinMetric, frozen=True, kw_only=True):
    """1 if the output's number a lies close to the expected one e: |a - e| <= max(abs_tol, rel_tol * |e|), else 0.

    Reads `expected_output`: a number, or text such as `1,234.5` or `-2e3`. `inf`, `nan` and `1_000` are no numbers. An
    output without a number scores 0 with `valid: false`.
    Options: `rel_tol` (1e-6), `abs_tol` (0), `extract`, `whole` (the output is a number), `first` or `last` (of those
    in its text).
    Details: valid, error (the distance).
    Example: 3.1415 for 3.14159 scores 0, and 1 with `rel_tol: 1e-4`.

    Worked examples:
        - {expected: 3.14159, output: '3.1415'}
        - {expected: 3.14159, output: '3.1415', options: {rel_tol: 0.0001}}
    """

    alias: ClassVar[str] = "numeric-close"
    family: ClassVar[str] = "lexical"

    rel_tol: Amount = 1e-6
    abs_tol: Amount = 0.0
    extract: Literal["whole", "first", "last"] = "whole"

    def expect(self, sample: Sample) -> Decimal:
        """The expected number.

        Raises:
            UnscoredError: There is none.
        """
        expected = sample.expected_output
        if expected is None:
            raise no_expected()
        number = parse_number(expected)
        if number is None:
            shown = "text that is none" if isinstance(expected, str) else name_kind(expected)
            raise unscorable_sample(f"`expected_output` is a number or numeric text here, not {shown}.")
        return number

    def read(self, output: Output) -> Decimal | None:
        """The number of the output's text, or None.

        Raises:
            UnscoredError: The text is not valid Unicode.
        """
        text = BuiltinMetric.read(self, output)
        return parse_number(text) if self.extract == "whole" else find_number(text, last=self.extract == "last")

    def grade(self, expected: Decimal, actual: Decimal | None) -> MetricScore:
        """1 within the tolerance, else 0."""
        if actual is None:
            return self.mark(0.0, {"valid": False, "error": None})
        error = _EXACT.abs(_EXACT.subtract(actual, expected))
        relative = _EXACT.multiply(Decimal(repr(self.rel_tol)), _EXACT.abs(expected))
        close = error <= max(Decimal(repr(self.abs_tol)), relative)
        shown = float(error)
        return self.mark(1.0 if close else 0.0, {"valid": True, "error": shown if shown != float("inf") else None})


def parse_number(value: Any) -> Decimal | None:
    """The number that a JSON number or a whole text is, as it is written, or None.

    >>> parse_number("1,234.5"), parse_number("-2e3"), parse_number("1_000"), parse_number("inf"), parse_number(True)
    (Decimal('1234.5'), Decimal('-2E+3'), None, None, None)
    """
    if isinstance(value, str):
        text = value.strip()
        return _decimal(text) if _WHOLE.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    number = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    return number if number.is_finite() else None


def find_number(text: str, *, last: bool = False) -> Decimal | None:
    """The first or last number in a text, or None.

    >>> find_number("between 3-5 of 1,200 cases."), find_number("between 3-5 of 1,200 cases.", last=True)
    (Decimal('3'), Decimal('1200'))
    """
    found = _WITHIN.findall(_WITHIN_WORD.sub(" ", text))
    return _decimal(found[-1 if last else 0]) if found else None


def _decimal(text: str) -> Decimal | None:
    number = _EXACT.create_decimal(text.replace(",", ""))
    return number if number.is_finite() else None
