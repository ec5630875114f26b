"""Tests of models that are coroutines run in a loop of their own, where nothing really waits."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.models.fake_clock import run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Have a coroutine run, also one that is called with drawn examples."""
    drawn = getattr(pyfuncitem.obj, "hypothesis", None)
    if drawn is not None:
        drawn.inner_test = in_virtual_time(drawn.inner_test)
    else:
        pyfuncitem.obj = in_virtual_time(pyfuncitem.obj)


def in_virtual_time(test: Callable[..., Any]) -> Callable[..., Any]:
    """A test as it is, or as a function that runs it."""
    if not inspect.iscoroutinefunction(test):
        return test
    coroutine: Callable[..., Coroutine[Any, Any, None]] = test

    @functools.wraps(test)
    def called(*arguments: Any, **named: Any) -> None:
        run(coroutine(*arguments, **named))

    return called
