"""Answers a parameter of an earlier version with what is written now; until 1.0."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from deemster.errors.exceptions import ConfigurationError, Issue

_P = ParamSpec("_P")
_T = TypeVar("_T")
_CALLS = ("cache", "budget_usd", "budget_tokens", "offline", "keep_prompts")
_SETTINGS = ("thresholds", "delta", "strict", "max_unscored", "calibration", "confirm", "clock")
_MOVED = {
    **{name: f"calls=dm.ModelCalls({name}=...)" for name in _CALLS},
    **{name: f"settings=dm.EvaluationSettings({name}=...)" for name in _SETTINGS},
    "limits": "calls=dm.ModelCalls(...)",
    "cluster": "settings=dm.EvaluationSettings(on=...)",
    "partial": "settings=dm.EvaluationSettings(only_answered=True)",
    "group": 'metrics=["group:generation"]',
    "label": 'name="..."',
    "progress_file": 'storage="progress.db"',
    "store": 'storage="runs.db"',
    "resume": 'storage=dm.Storage("runs.db", resume=True)',
    "allow_changed": 'storage=dm.Storage("runs.db", resume=True, allow_changed=True)',
}


def names_moved_parameters(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Have a function say where its earlier parameters went.

    Args:
        function: The function. A parameter counts as moved where it has none of that name, and has the new one.
    """
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        unknown = [(name, _MOVED[name]) for name in kwargs if name not in parameters and name in _MOVED]
        moved = [(name, now) for name, now in unknown if now.partition("=")[0] in parameters]
        if moved:
            raise ConfigurationError(Issue(f"The parameter `{name}` has moved: write `{now}`.") for name, now in moved)
        return function(*args, **kwargs)

    return call
