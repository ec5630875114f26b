"""A Python function as the system under test."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec

from deemster.errors import ConfigurationError
from deemster.records import Invocation, Output, freeze


class PythonTarget:
    """Calls a function, sync or async, with a sample's input (or the whole ``Invocation``).

    Args:
        function: Takes the input as a dict; or an ``Invocation``, where its first parameter is called `invocation` or
            is annotated so. Returns text, an ``Output``, or data that can be written as JSON.

    Raises:
        ConfigurationError: It cannot be called with one argument.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ConfigurationError(f"A target is a function, not {function!r}.")
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at, not whether there is one
        )
        self.takes_invocation = _takes_invocation(function)

    def _argument(self, invocation: Invocation) -> Any:
        # A target that changes its input must not change the sample for metrics and later repetitions.
        own = copy.deepcopy(dict(invocation.input))
        return Invocation(invocation.id, own, invocation.repetition) if self.takes_invocation else own

    def call(self, invocation: Invocation) -> Output:
        """The output of a sync function.

        Raises:
            TypeError: It returned something that is neither text, an output, nor JSON data.
        """
        return output_of(self.function(self._argument(invocation)))

    async def call_async(self, invocation: Invocation) -> Output:
        """The output of an async function.

        Raises:
            TypeError: It returned something that is neither text, an output, nor JSON data.
        """
        return output_of(await cast("Awaitable[Any]", self.function(self._argument(invocation))))


def output_of(value: Any) -> Output:
    """What a target returned, as an output: text stays, an output stays, other data becomes compact JSON.

    Raises:
        TypeError: The value, or something an output holds, cannot be written as JSON.
    """
    if isinstance(value, Output):
        return _finite(value)
    if isinstance(value, str):
        return Output(value)
    if value is None or inspect.isawaitable(value):
        close = getattr(value, "close", None)
        if close is not None:
            close()
        raise TypeError(f"A target returns text, an Output or JSON data, not {type(value).__name__}.")
    try:
        return Output(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain))
    except (TypeError, ValueError) as error:
        raise TypeError(f"A target returns text, an Output or JSON data: {error}") from None


def _plain(value: Any) -> Any:
    """Records, dates and the like as the JSON data they stand for, sets in the same order in every run.

    Raises:
        TypeError: There is no such data.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        # They would become base64, an answer that nobody gave.
        raise TypeError(f"{type(value).__name__} is not JSON data; decode it")
    return msgspec.to_builtins(value, order="deterministic")


def _finite(output: Output) -> Output:
    """An output as it is, once what came with its text is known to be finite JSON."""
    try:
        freeze(output.retrieved, path="retrieved")
        for call in output.trajectory.tool_calls if output.trajectory is not None else ():
            freeze(call.result, path=f"the result of `{call.name}`")
    except (ValueError, RecursionError) as error:
        raise TypeError(f"An Output holds JSON data: {error}") from None
    return output


def _takes_invocation(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    try:
        signature.bind({})
    except TypeError as error:
        raise ConfigurationError(f"A target takes one argument, the input: {error}.") from None
    for parameter in signature.parameters.values():
        annotation = parameter.annotation
        return parameter.name == "invocation" or annotation is Invocation or str(annotation).endswith("Invocation")
    return False
