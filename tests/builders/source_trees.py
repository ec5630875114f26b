"""The syntax trees of the package, parsed once for all rules about its source.

Tests that use them belong to one worker: `pytestmark = ONE_WORKER`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "deemster"
ONE_WORKER = pytest.mark.xdist_group("syntax trees")


@cache
def syntax_tree(name: str) -> ast.Module:
    """The tree of a file, which is named as in `gate/gate_rules.py`."""
    return ast.parse((SOURCE / name).read_text(encoding="utf-8"))
