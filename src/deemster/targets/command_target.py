"""A command as the target: input on standard input, answer on standard output."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from deemster.errors import ConfigurationError, Issue, did_you_mean, visible
from deemster.formats.json_values import name_kind
from deemster.models.clock import Clock
from deemster.models.secret_redaction import Secrets, is_secret_name, named_secrets
from deemster.records import Invocation, Output, TargetFailure
from deemster.targets._run_subprocess import CommandResult, run_command
from deemster.targets._target_retry import Answer, TargetRetry
from deemster.targets._target_settings import as_variables, check_settings, settings_identity, variable_issues

TIMEOUT_S = 300.0
Form: TypeAlias = Literal["auto", "text", "json"]
FORMS: tuple[Form, ...] = get_args(Form)
# What programs need to be found, and to know their folder and language.
ALWAYS = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_KEYS = ("text", "retrieved", "trajectory", "usage", "model")
_LONGEST_PROGRAM = 16 * 2**20
_SHOWN = 300
_encode = msgspec.json.Encoder().encode


class CommandTarget:
    """Runs a command for every sample: the input as JSON on its standard input, the answer on its standard output.

    No shell is involved. The command is killed, with everything it started, when its time is over, when it has written
    more than 64 MiB, and when the run stops; what it leaves running is killed when it ends.

    Args:
        argv: The program and its arguments.
        timeout_s: The longest attempt.
        retries: How often a command that failed is run again.
        concurrency: How many commands may run at once; what the run says unless given.
        env: Names of the variables of the environment that it gets, beside `PATH`, `HOME`, `LANG`, `LC_ALL` and
            `TMPDIR`; all there are unless given.
        cwd: Where it runs; the current folder unless given.
        output: How the answer is read. `text` is text as it is; `json` is a map with `text` and, where there is more,
            `retrieved`, `trajectory`, `usage`, `model`; `auto` is such a map where the whole answer is a JSON object
            with the key `text`, and text otherwise.
        settings: Further variables of its environment, by name: text as it is, other values as JSON.

    Attributes:
        identity: What can change an answer beside the input.

    Raises:
        ConfigurationError: The program is not there, or something else given cannot be used.
    """

    is_async = True

    def __init__(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = 0,
        concurrency: int | None = None,
        env: Sequence[str] | None = None,
        cwd: str | Path | None = None,
        output: Form = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._settings = check_settings(settings)
        folder = None if cwd is None else str(cwd)
        issues = [*argv_issues(argv), *env_issues(env, os.environ), *form_issues(output)]
        issues += [("settings", message) for message in variable_issues(self._settings)]
        issues = issues or list(program_issues(argv[0], folder))
        if issues:
            raise ConfigurationError(Issue(message) for _, message in issues)
        self._trying = TargetRetry(retries=retries, timeout_s=timeout_s, concurrency=concurrency)
        self._argv, self._folder, self._timeout_s, self._form = tuple(argv), folder, timeout_s, output
        self.concurrency = concurrency
        self._env = None if env is None else tuple(env)
        environ = self._environ()
        hidden = [value for name, value in environ.items() if is_secret_name(name)]
        self.secrets = Secrets([*hidden, *named_secrets(self._settings)])
        self.identity: Mapping[str, Any] = {"command": self._identity(), **settings_identity(self._settings)}

    def __repr__(self) -> str:
        return f"CommandTarget({self.secrets.redact(repr(list(self._argv)))})"

    async def open(self, *, clock: Clock | None = None) -> None:
        """Make ready for a run.

        Args:
            clock: Measures how long commands take; one that stands still measures nothing.
        """
        self._trying.open(clock)

    def halt(self, _: str) -> None:
        """Run nothing again; what is running goes on."""
        self._trying.halt()

    async def call_async(self, invocation: Invocation) -> Answer:
        """What the command says, or how it failed."""
        try:
            data = _encode(invocation.input) + b"\n"
        except UnicodeEncodeError:
            return TargetFailure("The input holds a lone surrogate, which no command can be given.")
        return await self._trying.answer(lambda: self._run(data, invocation), invocation)

    async def _run(self, data: bytes, invocation: Invocation) -> Answer:
        try:
            done = await run_command(
                self._argv,
                data,
                timeout_s=self._timeout_s,
                environ=self._environ() | _sample_variables(invocation),
                folder=self._folder,
            )
        except OSError as error:
            return TargetFailure(f"`{self._argv[0]}` cannot be started: {error.strerror or error}.")
        if done.issue is not None or done.code != 0:
            return TargetFailure(self._failure(done))
        try:
            return parse_command_output(done.output, form=self._form, secrets=self.secrets)
        except ValueError as error:
            return TargetFailure(visible(self.secrets.redact(str(error), shapes=True), limit=_SHOWN))

    def _failure(self, done: CommandResult) -> str:
        said = done.issue or _end(done.code or 0)
        tail = visible(self.secrets.redact(done.stderr.decode("utf-8", "replace"), shapes=True)).strip()
        if len(tail) > _SHOWN:
            tail = "…" + tail[1 - _SHOWN :]
        return f"{said} It said: {tail}" if tail else said

    def _environ(self) -> dict[str, str]:
        settings = as_variables(self._settings)
        if self._env is None:
            return dict(os.environ) | settings
        return {name: os.environ[name] for name in (*ALWAYS, *self._env) if name in os.environ} | settings

    def _identity(self) -> dict[str, Any]:
        """The command, and a digest of every file it names: a program that changed is another one."""
        files = {}
        for part in self._argv:
            file = Path(self._folder or "") / part
            # A program that is looked up on the PATH belongs to the machine.
            if (os.sep in part or part != self._argv[0]) and (digest := _digest(file)) is not None:
                files[part] = digest
        identity = {
            "argv": [self.secrets.redact(part) for part in self._argv],
            "files": files,
            "env": self._env if self._env is None else sorted(self._env),
            "output": self._form,
        }
        return {name: value for name, value in identity.items() if value not in (None, {})}


def parse_command_output(data: bytes, *, form: Form, secrets: Secrets) -> Output:
    """What a command wrote, as an output; one line end at its end is not part of it.

    Args:
        data: What it wrote.
        form: How it is read.
        secrets: Removed from it first.

    Raises:
        ValueError: It is not UTF-8, or not the JSON it should be.
    """
    try:
        text = secrets.redact(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"The answer is not UTF-8: byte 0x{data[error.start]:02x} at {error.start}.") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if form == "text":
        return Output(text)
    parts = _object(text)
    if parts is None or "text" not in parts:
        if form == "json":
            raise ValueError(f'The answer is a JSON object such as {{"text": "..."}}, not {visible(text, limit=80)!r}.')
        return Output(text)
    hint = "" if form == "json" else " `output: text` takes such an answer as text."
    for key in parts:
        if key not in _KEYS:
            raise ValueError(f"`{key}` is no key of an output. {did_you_mean(key, _KEYS)}{hint}")
    try:
        return Output(**parts)
    except ValueError as error:
        raise ValueError(f"{error}{hint}") from None


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, or None."""
    stripped = text.strip(" \t\r\n")
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return None
    try:
        value = msgspec.json.decode(stripped)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def argv_issues(argv: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with a command, with the key it is about."""
    if isinstance(argv, str) or not isinstance(argv, (list, tuple)) or not argv:
        given = f"not {name_kind(argv)}" if not isinstance(argv, (list, tuple)) else "and it is empty"
        yield "argv", f"A command is a list of the program and its arguments, such as [python, app.py], {given}."
        return
    for part in argv:
        if not isinstance(part, str) or "\0" in part:
            yield (
                "argv",
                f"A command is a list of texts; {name_kind(part)} is none{': quote it' * isinstance(part, int)}.",
            )
            return


def program_issues(program: str, folder: str | None) -> Iterator[tuple[str, str]]:
    """What is missing for a command to be started, with the key it is about."""
    if folder is not None and not Path(folder).is_dir():
        yield "cwd", f"There is no folder `{folder}`."
    elif not program.strip() or not _is_there(program, folder):
        yield "argv", f"There is no program `{visible(program, limit=80)}` that can be run."


def env_issues(env: Any, environ: Mapping[str, str] | None) -> Iterator[tuple[str, str]]:
    """What is wrong with the names of variables that a command gets; without an environment, they need not be set."""
    if env is None:
        return
    if isinstance(env, str) or not isinstance(env, (list, tuple)) or not all(isinstance(name, str) for name in env):
        yield "env", f"`env` is a list of names of variables, such as [OPENAI_API_KEY], not {name_kind(env)}."
        return
    for name in env:
        if environ is not None and name not in environ:
            yield "env", f"The environment has no variable `{visible(name, limit=80)}`."


def form_issues(form: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with how an answer is to be read."""
    if form not in FORMS:
        yield "output", f"`output` is `auto`, `text` or `json`, not {form!r:.40}. {did_you_mean(str(form), FORMS)}"


def _is_there(program: str, folder: str | None) -> bool:
    if os.sep in program:
        return shutil.which(str(Path(folder or "").absolute() / program)) is not None
    return shutil.which(program) is not None


def _digest(file: Path) -> str | None:
    try:
        if file.is_file() and file.stat().st_size <= _LONGEST_PROGRAM:
            return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
    return None


def _sample_variables(invocation: Invocation) -> dict[str, str]:
    """The variables that name the sample. An id that no environment can hold is left out."""
    variables = {"DEEMSTER_REPETITION": str(invocation.repetition)}
    try:
        invocation.id.encode()
    except UnicodeEncodeError:
        return variables
    return variables if "\0" in invocation.id else variables | {"DEEMSTER_SAMPLE": invocation.id}


def _end(code: int) -> str:
    if code >= 0:
        return f"The command ended with exit code {code}."
    try:
        return f"The command was killed by {signal.Signals(-code).name}."
    except ValueError:
        return f"The command was killed by signal {-code}."
