"""A calibration as an HTML page: whether the bounds hold, the main numbers of each judge, then every table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.stats import Interval
from deemster.text.html_page import PageHead, Tile, rate_tile, render_page
from deemster.text.number_format import format_interval, format_number
from deemster.text.text_sections import TextLine, TextSection

if TYPE_CHECKING:
    from deemster.agreement.calibration_result import Calibration, CorrectedEstimate
    from deemster.agreement.estimate import Estimate


def calibration_page(calibration: Calibration) -> str:
    """A calibration as a page; text from data is escaped and stands inside code elements.

    Args:
        calibration: The calibration.
    """
    overview, *others = calibration.sections()
    failed = sum(check.status == "fail" for check in calibration.checks)
    kind = "" if not calibration.checks else "fail" if failed else "pass"
    verdict: TextLine = ()
    if calibration.checks:
        skipped = sum(check.status == "skipped" for check in calibration.checks)
        held = f"{len(calibration.checks) - skipped} of {len(calibration.checks)} bounds hold, the others are skipped."
        all_held = held if skipped else "All bounds hold."
        verdict = (f"{failed} of {len(calibration.checks)} bounds are missed." if failed else all_held,)
    head = PageHead(TextSection(overview.title, overview.lines), kind, verdict, [*_tiles(calibration)])
    sections = [TextSection(("Judges",), table=overview.table), *others]
    return render_page(f"deemster agreement: {calibration.source}", head, sections)


def _tiles(calibration: Calibration) -> Iterator[Tile]:
    for name, found in calibration.metrics.items():
        yield _tile(f"{name}: agreement", found.agreement, calibration.confidence)
        yield _tile(f"{name}: kappa", found.kappa, calibration.confidence)
        if found.pass_rate is not None:
            yield _tile(f"{name}: corrected pass-rate", found.pass_rate, calibration.confidence)


def _tile(label: str, number: Estimate | CorrectedEstimate, confidence: float) -> Tile:
    ends = None if number.low is None or number.high is None else Interval(number.low, number.high)
    about = f"{100 * confidence:.4g}% interval {format_interval(ends)}"
    # A plot of a share goes from 0 to 1; kappa may lie below.
    drawn = ends if ends is not None and ends.low >= 0 else None
    return rate_tile(label, number.value, drawn, shown=format_number(number.value), about=about)
