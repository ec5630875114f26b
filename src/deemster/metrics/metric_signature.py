"""What the parameters of a custom metric say: whether it reads an output, or only its text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import NoneType
from typing import Any, get_args

from deemster.errors import ConfigurationError
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.records import Output, Sample

# Names that say that a parameter is the output's text.
TEXT_NAMES = frozenset({"actual", "actual_output", "output_text", "text"})
_BY_NAME = "A function that reads `expected` and `actual` becomes a metric with `@deemster.metric`."


def reads_output_text(metric: Any) -> bool:
    """Whether the second parameter of a metric's `score` or `script` is the output's text.

    Args:
        metric: A custom metric.

    Raises:
        ConfigurationError: The parameters do not say that they are a sample and its output.
    """
    called = "script" if callable(getattr(metric, "script", None)) else "score"
    try:
        signature = resolved_signature(getattr(metric, called))
    except (TypeError, ValueError):
        # What does not tell its parameters is called as the protocol says.
        return False
    positional = [each for each in signature.parameters.values() if each.kind is not each.KEYWORD_ONLY]
    if any(each.kind is each.VAR_POSITIONAL for each in positional[:2]):
        return False
    wanted = f"`{called}` of metric `{metric.name}` takes a sample and an output: `{called}(self, sample, output)`"
    try:
        signature.bind(None, None)
    except TypeError:
        raise ConfigurationError(f"{wanted}, not `{called}{signature}`.") from None
    sample, output = positional[:2]
    if not _says(sample, Sample):
        raise ConfigurationError(f"{wanted}. Its parameter `{sample}` is no sample. {_BY_NAME}")
    if is_annotated_as_text(output):
        return True
    if _says(output, Output):
        return False
    if output.name in TEXT_NAMES and _is_vague(output):
        return True
    raise ConfigurationError(
        f"{wanted}, or the output's text as `actual_output: str`. Its parameter `{output}` is neither."
    )


def _says(parameter: inspect.Parameter, kind: type) -> bool:
    """Whether a parameter stands for a record: by its annotation, else by its name or the beginning of it."""
    annotation = parameter.annotation
    if annotation is kind or (isinstance(annotation, str) and annotation.rpartition(".")[2] == kind.__name__):
        return True
    return _is_vague(parameter) and kind.__name__.lower().startswith(parameter.name.strip("_"))


def _is_vague(parameter: inspect.Parameter) -> bool:
    """Whether the annotation of a parameter leaves open what it is."""
    annotation = parameter.annotation
    builtin = isinstance(annotation, type) and annotation.__module__ == "builtins"
    return annotation in (parameter.empty, object) or not builtin


def resolved_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function; annotations that are text are looked up where that is possible.

    Args:
        function: Any callable.

    Raises:
        ValueError: The callable does not tell its parameters.
        TypeError: It is no callable.
    """
    with UserCodeGuard():
        return inspect.signature(function, eval_str=True)
    return inspect.signature(function)


def is_annotated_as_text(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is annotated as text, or as text or None.

    Args:
        parameter: A parameter of a resolved signature.
    """
    annotation = parameter.annotation
    return annotation in (str, "str") or {*get_args(annotation)} - {NoneType} == {str}
