"""What the comparisons with other tools share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest


def quiet(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What a call of another tool gives, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments, **options)


def approx(value: Any) -> Any:
    """A number as near as two implementations come; none where there is none."""
    return value if value is None else pytest.approx(value, abs=1e-12)
