"""Renders a comparison as JUnit XML: a suite for the gate's checks, and one for the samples that changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.report.junit_xml import check_outcome, junit_case
from deemster.results.sample_changes import SampleChange

if TYPE_CHECKING:
    from deemster.comparison.comparison import Comparison

_FAILED = ("newly_failing", "unscored_now")
_WORSE = (*_FAILED, "regressed", "removed")


def comparison_junit(comparison: Comparison, *, samples_fail: bool = False) -> Iterator[bytes]:
    """A comparison as JUnit XML, in pieces: the gate decides, and samples that got worse are skipped test cases.

    Args:
        comparison: The comparison.
        samples_fail: Whether samples that are newly failing, or have no score now, are failures too.
    """
    checks = comparison.gate.checks if comparison.gate is not None else ()
    statuses = [check.status for check in checks]
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="deemster">\n'
    yield (
        f'  <testsuite name="gate" tests="{len(checks) + 1}" failures="{statuses.count("fail")}" errors="0" '
        f'skipped="{statuses.count("skipped") + statuses.count("inconclusive")}">\n'
    ).encode()
    yield junit_case("comparison", comparison.verdict, "", "")
    for check in checks:
        yield junit_case("gate", check.name, *check_outcome(check))
    yield b"  </testsuite>\n"
    counts = {name: count for name, count in comparison.statuses.items() if name != "stable"}
    worse = sum(count for name, count in counts.items() if name in _WORSE)
    failed = sum(counts.get(name, 0) for name in _FAILED) if samples_fail else 0
    yield (
        f'  <testsuite name="changed samples" tests="{sum(counts.values())}" failures="{failed}" errors="0" '
        f'skipped="{worse - failed}">\n'
    ).encode()
    for change in comparison.changes:
        outcome = "" if change.status not in _WORSE else "skipped"
        if samples_fail and change.status in _FAILED:
            outcome = "failure"
        yield junit_case(change.status, _sample_id(change), outcome, _describe_sides(change))
    yield b"  </testsuite>\n</testsuites>\n"


def _sample_id(change: SampleChange) -> str:
    return next(side.id for side in (change.candidate, change.baseline) if side is not None)


def _describe_sides(change: SampleChange) -> str:
    told = [
        f"{when} {side.passed} of {side.repetitions} passed"
        + (f", failing: {', '.join(side.failed)}" if side.failed else "")
        for when, side in (("before", change.baseline), ("now", change.candidate))
        if side is not None
    ]
    return f"{change.status.replace('_', ' ')}: {'; '.join(told)}"
