"""Published examples of statistics: what goes in, what is known to come out, and how near a result must be to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[1] / "fixtures" / "statistics.json"
PUBLISHED: dict[str, dict[str, Any]] = {entry["id"]: entry for entry in json.loads(FILE.read_text("utf-8"))}


def near(name: str, expected: Any = None) -> Any:
    """What is published under a name, or a part of that, with the tolerance of the publication."""
    entry = PUBLISHED[name]
    return pytest.approx(entry["expected"] if expected is None else expected, abs=entry["abs_tol"], rel=0)


def ends(result: Any) -> list[float]:
    """The two ends of the interval of a result."""
    return [result.interval.lower, result.interval.upper]
