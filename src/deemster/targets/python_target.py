"""A Python function as the target."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from deemster.errors import ConfigurationError, visible
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats.json_values import to_json_value
from deemster.models.clock import Clock
from deemster.models.secret_redaction import Secrets, named_secrets
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Invocation, Output, TargetFailure, freeze
from deemster.targets._target_retry import TargetRetry
from deemster.targets._target_settings import check_settings, settings_identity

_AT_ONCE = 64


class PythonTarget:
    """Calls a function, sync or async, with a sample's input (or the whole ``Invocation``).

    Args:
        function: Takes the input as a dict; or an ``Invocation``, where its first parameter is called `invocation` or
            is annotated so. Returns text, an ``Output``, or data that can be written as JSON.
        timeout_s: The longest attempt; None for as long as it takes. A sync function that is late is left behind in its
            thread.
        retries: How often a call that raised is made again.
        concurrency: How many calls may be under way; what the run says unless given.
        settings: What the function gets beside the input: as its parameter `settings`, or as ``invocation.settings``.

    Raises:
        ConfigurationError: It cannot be called with one argument, takes no settings although there are some, or a
            setting is out of range.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        timeout_s: float | None = None,
        retries: int = 0,
        concurrency: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        if not callable(function):
            raise ConfigurationError(f"A target is a function, not {visible(repr(function), limit=80)}.")
        self.function = function
        self._is_coroutine = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method itself is looked at, not whether there is one
        )
        self.takes_invocation = _takes_invocation(function)
        self._settings = check_settings(settings)
        parameter = _settings_parameter(function)
        has_default = parameter is not None and parameter.default is not inspect.Parameter.empty
        self._takes_settings = parameter is not None and (settings is not None or not has_default)
        if self._settings and not (self.takes_invocation or self._takes_settings):
            raise ConfigurationError(
                "The target takes no `settings`: give its function a second parameter of that name, or let it take "
                "the `invocation`, which has them."
            )
        self.secrets = Secrets(named_secrets(self._settings))
        self.concurrency = concurrency
        self._timeout_s = timeout_s
        self._trying = TargetRetry(retries=retries, timeout_s=timeout_s, concurrency=concurrency)
        self._is_tried = timeout_s is not None or retries > 0
        # Timeouts and retries wait in the event loop.
        self.is_async = self._is_coroutine or self._is_tried
        self._threads: WorkerThreads | None = None

    @property
    def identity(self) -> Mapping[str, Any]:
        """The function's name, the digest of the file it is written in, and its settings."""
        return {**function_identity(self.function), **settings_identity(self._settings)}

    async def open(self, *, clock: Clock | None = None) -> None:
        """Make ready for a run.

        Args:
            clock: Measures how long calls take; one that stands still measures nothing.
        """
        self._trying.open(clock)

    async def close(self) -> None:
        """Let go of the threads."""
        if self._threads is not None:
            self._threads.close()
            self._threads = None

    def halt(self, _: str) -> None:
        """Call nothing again; what is under way goes on."""
        self._trying.halt()

    def _called(self, invocation: Invocation) -> Any:
        # A target that changes its input must not change the sample for metrics and later repetitions.
        own = to_json_value(invocation.input)
        settings = to_json_value(self._settings)
        if self.takes_invocation:
            own = Invocation(invocation.id, own, invocation.repetition, settings)
        return self.function(own, settings=settings) if self._takes_settings else self.function(own)

    def call(self, invocation: Invocation) -> Output:
        """The output of a sync function.

        Raises:
            TypeError: It returned something that is neither text, an output, nor JSON data.
        """
        return as_output(self._called(invocation))

    async def call_async(self, invocation: Invocation) -> Output | TargetFailure:
        """The output of an async function, or of one that has a time-out or retries.

        Raises:
            TypeError: It returned something that is neither text, an output, nor JSON data.
        """
        if not self._is_tried:
            return await self._awaited(invocation)
        return await self._trying.answer(lambda: self._attempt(invocation), invocation)

    async def _awaited(self, invocation: Invocation) -> Output:
        if self._is_coroutine:
            return as_output(await cast("Awaitable[Any]", self._called(invocation)))
        if self._threads is None:
            self._threads = WorkerThreads("deemster-target", at_once=self.concurrency or _AT_ONCE)
        return await self._threads.call(self.call, invocation)

    async def _attempt(self, invocation: Invocation) -> Output | TargetFailure:
        limit = asyncio.timeout(self._timeout_s)
        with UserCodeGuard() as caught:
            async with limit:
                return await self._awaited(invocation)
        if limit.expired():
            return TargetFailure(f"The target did not answer within {self._timeout_s:g} s.")
        return TargetFailure(caught.message_with_place, caught.traceback)


def as_target(given: Any) -> Any:
    """A target as it is; anything else that can be called, as one.

    Args:
        given: Something with `is_async` and `call_async` or `call`, something with `script` and `roles`, or a function.

    Raises:
        ConfigurationError: It is neither.
    """
    is_called = hasattr(given, "is_async") and (hasattr(given, "call_async") or hasattr(given, "call"))
    is_target = is_called or (hasattr(given, "script") and hasattr(given, "roles"))
    if isinstance(given, type) and (hasattr(given, "is_async") or hasattr(given, "script")):
        raise ConfigurationError(f"A target is an object, not the class {given.__name__}: make one.")
    return given if is_target else PythonTarget(given)


def function_identity(function: Any) -> dict[str, str]:
    """What a function is: where it lives, and the SHA-256 of the file it is written in, where there is one.

    >>> function_identity(as_target)["python"]
    'deemster.targets.python_target:as_target'
    """
    while isinstance(function, functools.partial):
        function = function.func
    written = function if hasattr(function, "__qualname__") else type(function)
    identity = {"python": f"{written.__module__}:{written.__qualname__}"}
    file = getattr(sys.modules.get(written.__module__), "__file__", None)
    try:
        return identity if file is None else {**identity, "source": hashlib.sha256(Path(file).read_bytes()).hexdigest()}
    except OSError:
        return identity


def as_output(value: Any) -> Output:
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
        # They would become base64, which is not what the target returned.
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
        signature.bind({}, **({} if _settings_parameter(function) is None else {"settings": {}}))
    except TypeError as error:
        raise ConfigurationError(f"A target takes one argument, the input: {error}.") from None
    for parameter in signature.parameters.values():
        annotation = parameter.annotation
        return parameter.name == "invocation" or annotation is Invocation or str(annotation).endswith("Invocation")
    return False


def _settings_parameter(function: Callable[..., Any]) -> inspect.Parameter | None:
    """The parameter `settings` of a function, beside its first one; None where it has none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [parameter for parameter in parameters[1:] if parameter.name == "settings" and parameter.kind in by_name]
    return named[0] if named else None
