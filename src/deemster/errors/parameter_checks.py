"""Checks what a public function is given: parameters of an earlier version, and settings that are no such object."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from deemster.errors.exceptions import ConfigurationError, Issue
from deemster.errors.message_text import show_value

_P = ParamSpec("_P")
_T = TypeVar("_T")
# What is written now in place of a parameter that has another name in its settings; until 1.0.
_RENAMED = {
    "cascade": "judges=dm.judges.Cascade(...)",
    "limits": "calls=dm.ModelCalls(...)",
    "n_bootstrap": "bootstrap=dm.agreement.BootstrapSettings(replicates=...)",
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
        function: The function. A parameter whose default is a settings object takes those objects alone. What is a
            field of one was a parameter once; so was what has another name now, where the function has the new one.
    """
    parameters = inspect.signature(function).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    settings = {name: type(default) for name, default in defaults.items() if _field_names(type(default))}

    def moved(name: str) -> str | None:
        """What is written now in place of a parameter; None where there never was one of that name."""
        for parameter, kind in settings.items():
            if name in _field_names(kind):
                return f"{parameter}={_public_name(kind)}({name}=...)"
        now = _RENAMED.get(name, "")
        return now if now.partition("=")[0] in parameters else None

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        earlier = [(name, moved(name)) for name in kwargs if name not in parameters]
        issues = [Issue(f"The parameter `{name}` has moved: write `{now}`.") for name, now in earlier if now]
        if issues:
            raise ConfigurationError(issues)

        for name, kind in settings.items():
            if name in kwargs and not isinstance(kwargs[name], kind):
                value = show_value(kwargs[name])[:60]
                raise ConfigurationError(f"`{name}` is `{_public_name(kind)}(...)`, not {value}.")
        return function(*args, **kwargs)

    return call


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a settings object, a named tuple or a struct; none of anything else."""
    names: tuple[str, ...] = getattr(kind, "_fields" if issubclass(kind, tuple) else "__struct_fields__", ())
    return names


def _public_name(kind: type) -> str:
    """How users write the name of a settings object: of the root, else of its family."""
    package, room, *_ = kind.__module__.split(".")
    is_of_root = hasattr(sys.modules[package], kind.__name__)
    return f"dm.{kind.__name__}" if is_of_root else f"dm.{room}.{kind.__name__}"
