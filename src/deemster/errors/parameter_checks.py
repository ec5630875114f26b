"""Checks what a public function is given: parameters of an earlier version, and settings that are no such object."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from deemster.errors.exceptions import ConfigurationError, Issue
from deemster.errors.message_text import show_value

_P = ParamSpec("_P")
_T = TypeVar("_T")
_CALLS = ("cache", "budget_usd", "budget_tokens", "offline", "keep_prompts")
_SETTINGS = ("thresholds", "delta", "strict", "max_unscored", "calibration", "confirm", "clock")
# What is written now; until 1.0.
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


def checks_parameters(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Have a function say where its earlier parameters went, and what its settings are.

    Args:
        function: The function. A parameter counts as moved where it has none of that name, and has the new one; it is
            a settings object where its default is one.
    """
    parameters = inspect.signature(function).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    settings = {name: type(default) for name, default in defaults.items() if hasattr(default, "_fields")}

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        unknown = [(name, _MOVED[name]) for name in kwargs if name not in parameters and name in _MOVED]
        moved = [(name, now) for name, now in unknown if now.partition("=")[0] in parameters]
        if moved:
            raise ConfigurationError(Issue(f"The parameter `{name}` has moved: write `{now}`.") for name, now in moved)
        for name, kind in settings.items():
            if name in kwargs and not isinstance(kwargs[name], kind):
                raise ConfigurationError(f"`{name}` is `{kind.__name__}(...)`, not {show_value(kwargs[name])[:60]}.")
        return function(*args, **kwargs)

    return call
