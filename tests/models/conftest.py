"""Tests of models that are coroutines run in a loop where nothing really waits."""

from __future__ import annotations

import pytest

from tests.conftest import as_function
from tests.models.fake_clock import run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Have a coroutine run in fake time, also one that is called with drawn examples."""
    drawn = getattr(pyfuncitem.obj, "hypothesis", None)
    if drawn is None:
        pyfuncitem.obj = as_function(pyfuncitem.obj, run)
    else:
        drawn.inner_test = as_function(drawn.inner_test, run)
