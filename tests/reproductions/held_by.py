"""Finds the tests that hold the reproductions of an audit."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]


@functools.cache
def tests_of(file: str) -> frozenset[str]:
    """The names of the tests of a file."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def missing_tests(references: tuple[str, ...]) -> list[str]:
    """The references, `room/test_file.py::test_name`, that name no test."""
    return [
        reference
        for reference in references
        if (parts := reference.split("::"))
        and not ((ROOT / "tests" / parts[0]).is_file() and parts[1] in tests_of(parts[0]))
    ]
