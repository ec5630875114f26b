"""Finds the tests that hold the reproductions of an audit."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
_TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


@functools.cache
def names_of_tests() -> frozenset[str]:
    """The names of all tests. A test may move to another file, and still holds what it holds."""
    return frozenset(name for file in TESTS.rglob("test_*.py") for name in _TEST.findall(file.read_text("utf-8")))


def missing_tests(names: Iterable[str]) -> list[str]:
    """The names that no test has."""
    return sorted(set(names) - names_of_tests())
