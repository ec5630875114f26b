"""Asks a provider that is code as promptfoo does: for suites that were made from its configs."""

from __future__ import annotations

import asyncio
import inspect
import json
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from deemster.metrics.import_user_code import import_object
from deemster.targets.chat_prompt import ChatPrompt, read_prompt

AskProvider: TypeAlias = Callable[[Mapping[str, Any]], Any]


def python_provider(file: str | Path, function: str, *, prompt: str | Path, config: Mapping[str, Any]) -> AskProvider:
    """A target that calls a function of a Python file, `call_api(prompt, options, context)`.

    Args:
        file: The file.
        function: The name of the function.
        prompt: The file of the prompt.
        config: What the function gets as `options["config"]`.

    Raises:
        ConfigurationError: There is no such function, or the prompt cannot be read.
    """
    messages = read_prompt(Path(prompt))
    call = import_object(f"{Path(file).stem}:{function}", called="The provider", search=Path(file).parent)

    def ask(sample_input: Mapping[str, Any]) -> Any:
        result = call(_prompt_text(messages, sample_input), {"config": dict(config)}, {"vars": dict(sample_input)})
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        if not isinstance(result, Mapping):
            return result
        if result.get("error"):
            raise RuntimeError(str(result["error"]))
        return result.get("output")

    return ask


def command_provider(command: str, *, folder: str | Path, prompt: str | Path, config: Mapping[str, Any]) -> AskProvider:
    """A target that runs a command with three more arguments: the prompt, the options and the variables, as JSON.

    Args:
        command: The command.
        folder: Where it runs.
        prompt: The file of the prompt.
        config: What the command gets as `config` of its options.
    """
    messages = read_prompt(Path(prompt))

    def ask(sample_input: Mapping[str, Any]) -> str:
        options = json.dumps({"config": dict(config)})
        context = json.dumps({"vars": dict(sample_input)})
        argv = [*shlex.split(command), _prompt_text(messages, sample_input), options, context]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - the user's
        if done.returncode or (done.stderr.strip() and not done.stdout.strip()):
            raise RuntimeError(done.stderr.strip() or f"The command ended with {done.returncode}.")
        return done.stdout.strip()

    return ask


def echo_provider(*, prompt: str | Path, config: Mapping[str, Any]) -> AskProvider:  # noqa: ARG001 - as the others
    """A target that answers with the prompt itself.

    Args:
        prompt: The file of the prompt.
        config: What changes nothing.
    """
    messages = read_prompt(Path(prompt))
    return lambda sample_input: _prompt_text(messages, sample_input)


def _prompt_text(prompt: ChatPrompt, sample_input: Mapping[str, Any]) -> str:
    """A prompt as one text: of several messages their JSON."""
    messages = prompt.fill(sample_input)
    if len(messages) == 1 and messages[0].role == "user":
        return messages[0].content
    return json.dumps([message._asdict() for message in messages], ensure_ascii=False)
