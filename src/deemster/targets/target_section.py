"""The `target:` section of a suite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.errors import ConfigurationError, Issue, list_names
from deemster.formats import missing_file
from deemster.formats.environment_variables import Keys, read_section
from deemster.formats.json_values import to_json_value
from deemster.formats.schema_validation import NonBlank, Places, check_shape
from deemster.models.model_roles import concurrency_bounds
from deemster.models.models_section import PriceEntry
from deemster.models.price import Price
from deemster.models.secret_redaction import is_secret_name
from deemster.targets._json_path import parse_path
from deemster.targets._request_template import template_issues
from deemster.targets.chat_prompt import ChatPrompt, PromptSource, WrittenPrompt, read_prompt
from deemster.targets.chat_target import ChatParameters, ChatTarget
from deemster.targets.command_target import CommandTarget, argv_issues, env_issues, program_issues
from deemster.targets.python_target import PythonTarget
from deemster.targets.saved_outputs import SavedOutputs

Kind: TypeAlias = Literal["python", "chat", "http", "command", "outputs"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_PATHS = ("output", "retrieved", "trajectory", "usage", "model")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_Count: TypeAlias = Annotated[int, Meta(ge=1)] | None
_Retries: TypeAlias = Annotated[int, Meta(ge=0)] | None
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, title="a number of seconds above 0")] | None
_JsonPath: TypeAlias = str | list[str | int] | None


PromptsSection: TypeAlias = dict[str, WrittenPrompt]


class PythonSection(msgspec.Struct, forbid_unknown_fields=True):
    """A Python function."""

    function: NonBlank
    timeout_s: _Seconds = None
    retries: _Retries = None
    concurrency: _Count = None


class HttpSection(msgspec.Struct, forbid_unknown_fields=True):
    """An HTTP endpoint."""

    url: NonBlank
    method: Literal["POST", "GET", "PUT", "PATCH"] | None = None
    headers: dict[str, str] | None = None
    body: Any = None
    output: _JsonPath = None
    retrieved: _JsonPath = None
    trajectory: _JsonPath = None
    usage: _JsonPath = None
    model: _JsonPath = None
    timeout_s: _Seconds = None
    retries: _Retries = None
    concurrency: int | str | None = None
    total_timeout_s: _Seconds = None
    max_retry_after_s: _Seconds = None
    rpm: _Count = None
    api_key_env: str | None = None
    price: PriceEntry | None = None
    cache: bool | None = None


class CommandSection(msgspec.Struct, forbid_unknown_fields=True):
    """A command."""

    argv: Annotated[list[str], Meta(min_length=1)]
    timeout_s: _Seconds = None
    retries: _Retries = None
    concurrency: _Count = None
    env: list[str] | None = None
    cwd: str | None = None
    output: Literal["auto", "text", "json"] | None = None


class OutputsSection(msgspec.Struct, forbid_unknown_fields=True):
    """A file of saved outputs."""

    file: NonBlank


class TargetSection(ChatParameters, forbid_unknown_fields=True, kw_only=True):
    """A target."""

    one_of: ClassVar = _KINDS

    python: str | PythonSection | UnsetType = UNSET
    http: str | HttpSection | UnsetType = UNSET
    command: list[str] | CommandSection | UnsetType = UNSET
    outputs: str | OutputsSection | UnsetType = UNSET
    chat: NonBlank | UnsetType = UNSET
    prompt: WrittenPrompt = UNSET
    settings: dict[str, Any] | UnsetType = UNSET


# By kind: the shape of the long form, and the key of it that the short form gives.
SHAPES: Mapping[str, tuple[type[msgspec.Struct], str]] = {
    "python": (PythonSection, "function"),
    "http": (HttpSection, "url"),
    "command": (CommandSection, "argv"),
    "outputs": (OutputsSection, "file"),
}

# What stands beside the kind of a target, and the kinds that it is for.
_BESIDE: Mapping[str, tuple[Kind, ...]] = {
    "settings": ("python", "http", "command"),
    "prompt": ("chat",),
    **dict.fromkeys(ChatParameters.__struct_fields__, ("chat",)),
}


class DeclaredTarget(NamedTuple):
    """A target as a suite declares it, checked; what it holds may be secret, so it is neither shown nor stored.

    Attributes:
        kind: What kind of target.
        main: What it is of that kind: the import path, the address, the program and its arguments, the file, the model.
        settings: Its other settings, variables replaced.
        hidden: Values that must be shown nowhere.
        locate: Finds its place in the file.
        unset: The variables it names that are not set, where it is not going to be called.
        missing: What to say of its file of saved outputs, where there is no such file.
    """

    kind: Kind
    main: Any
    settings: Mapping[str, Any] = {}
    hidden: frozenset[str] = frozenset()
    locate: Callable[[], str | None] = lambda: None
    unset: tuple[Issue, ...] = ()
    missing: str | None = None

    def __repr__(self) -> str:
        return f"DeclaredTarget({self.kind!r})"


def read_target(
    section: Any,
    *,
    place: Callable[[Keys], str | None],
    environ: Mapping[str, str],
    folder: Path,
    prompts: Any = None,
    calls: bool = True,
) -> tuple[DeclaredTarget | None, list[Issue]]:
    """The target that a section declares, and everything that is wrong with it.

    Args:
        section: The section as plain data.
        place: Gives the place of a value by its path, `target` first.
        environ: Where variables are looked up.
        folder: What its paths are relative to.
        prompts: The prompts that it may name, as plain data; None where there are none.
        calls: Whether it is going to be called; otherwise variables need not be set.
    """
    source = PromptSource(prompts if isinstance(prompts, Mapping) else {}, folder)
    reader = _Reader(place, environ, source, calls=calls)
    declared = reader.declared(section)
    return (None if reader.issues else declared), reader.issues


def build_target(declared: DeclaredTarget, *, load: Callable[[str], Any]) -> Any:
    """The target that was declared.

    Args:
        declared: What a section says.
        load: Imports what a path such as `app:answer` names.

    Raises:
        InputError: It cannot be imported, found or read.
    """
    if declared.unset and declared.kind != "http":
        raise ConfigurationError(declared.unset)
    if declared.missing is not None:
        raise ConfigurationError(Issue(declared.missing, declared.locate()))
    if declared.kind == "outputs":
        return SavedOutputs.load(declared.main)
    try:
        if declared.kind == "python":
            return PythonTarget(load(declared.main), **declared.settings)
        if declared.kind == "command":
            return CommandTarget(declared.main, **declared.settings)
        if declared.kind == "chat":
            return ChatTarget(declared.main, **declared.settings)
        return _http_target(declared)
    except ConfigurationError as error:
        issues = [issue._replace(where=issue.where or declared.locate()) for issue in error.issues]
        raise ConfigurationError(issues) from None


def _http_target(declared: DeclaredTarget) -> Any:
    # These load the network's modules.
    from deemster.targets._http_reply import ReplyPaths  # noqa: PLC0415
    from deemster.targets.http_target import HttpLimits, HttpTarget  # noqa: PLC0415

    request = dict(declared.settings)
    reply = ReplyPaths(**{name: request.pop(name) for name in ReplyPaths._fields if name in request})
    limits = HttpLimits(**{name: request.pop(name) for name in HttpLimits._fields if name in request})
    if "price" in request:
        request["price"] = Price(**request["price"])
    return HttpTarget(declared.main, reply=reply, limits=limits, hidden=declared.hidden, **request)


class _Reader:
    """Reads a section and collects what is wrong with it."""

    def __init__(
        self, place: Callable[[Keys], str | None], environ: Mapping[str, str], prompts: PromptSource, *, calls: bool
    ) -> None:
        self.issues: list[Issue] = []
        self._place, self._environ, self._prompts, self._calls = place, environ, prompts, calls
        self._folder = prompts.folder

    def declared(self, section: Any) -> DeclaredTarget | None:
        """The target of a section; what is wrong is among the issues."""
        kinds = [kind for kind in _KINDS if isinstance(section, Mapping) and kind in section]
        if len(kinds) != 1 or len(section) > 1:
            places = Places(self._place)
            self.issues += check_shape(to_json_value(section), TargetSection, document=places, path=("target",))
        if len(kinds) != 1:
            return None

        kind = kinds[0]
        for key in section:
            if kind not in _BESIDE.get(key, (kind,)):
                message = f"`{key}` is not for a target of the kind `{kind}`, but for {list_names(_BESIDE[key])}."
                self.issues.append(Issue(message, self._place(("target", key))))
        if kind == "chat":
            return self._chat(section)
        return self._single(kind, section)

    def _chat(self, section: Mapping[str, Any]) -> DeclaredTarget | None:
        """A chat target; its prompt keeps what looks like a variable of the environment."""
        plain = {key: value for key, value in _without_nulls(section).items() if key != "prompt"}
        read = read_section(plain, dict[str, Any], path=("target",), environ=self._environ, place=self._place)
        self.issues += read.unset if self._calls else ()
        prompt = self._prompt(section.get("prompt"))
        if prompt is None:
            return None
        role = read.value.pop("chat")
        return DeclaredTarget("chat", role, {"prompt": prompt, **read.value}, locate=lambda: self._place(("target",)))

    def _prompt(self, written: Any) -> ChatPrompt | None:
        """The prompt of a chat target; what is wrong is among the issues."""
        if written is None:
            message = "A `chat` target has a `prompt`: a name of `prompts`, a path, or text with `{{input.KEY}}`."
            self.issues.append(Issue(message, self._place(("target",))))
            return None
        try:
            return read_prompt(written, self._prompts)
        except ConfigurationError as error:
            is_named = isinstance(written, str) and written in self._prompts.prompts
            where = self._place(("prompts", written) if is_named else ("target", "prompt"))
            self.issues += [issue._replace(where=issue.where or where) for issue in error.issues]
            return None

    def _single(self, kind: Kind, section: Mapping[str, Any]) -> DeclaredTarget | None:
        """A target that is declared under one key, with settings beside it."""
        shape, main = SHAPES[kind]
        types = {field.name: field.type for field in msgspec.structs.fields(shape)}
        written = section[kind]
        is_long = isinstance(written, Mapping)
        path: Keys = ("target", kind)
        main_path: Keys = (*path, main) if is_long else path
        read = read_section(
            _without_nulls(written) if is_long else written,
            shape if is_long else types[main],
            path=path,
            environ=self._environ,
            place=self._place,
        )
        self.issues += [*(read.unset if self._calls else ()), *read.issues]
        given = read.value if is_long else {main: read.value}
        fitting = {key: value for key, value in given.items() if _fits(value, types.get(key))}
        if main not in fitting:
            return None
        if isinstance(given.get("headers"), dict):
            fitting["headers"] = given["headers"]
        for key, message in self._setting_issues(kind, fitting):
            within = key if isinstance(key, tuple) else (key,)
            at = main_path if within == (main,) else (*path, *within)
            self.issues.append(Issue(message, self._place(at)))
        settings = {key: value for key, value in given.items() if key != main}
        if isinstance(section.get("settings"), Mapping):
            settings["settings"] = to_json_value(section["settings"])
        if kind == "http":
            settings = self._with_key(settings)
        elif kind == "command":
            settings["cwd"] = self._cwd(given)
            if not self._calls and isinstance(given.get("env"), list):
                settings["env"] = [name for name in given["env"] if name in self._environ]
        target, missing = given[main], None
        if kind == "http" and read.unset and "://" not in target:
            target = f"http://{target}"
        elif kind == "outputs":
            target = str(self._folder / target)
            missing = missing_file(given[main], folder=self._folder)
        # What comes from the environment into a header is a secret, whatever it is called.
        hidden = {value for at, name, value in read.variables if is_secret_name(name) or "headers" in at[2:3]}
        unset = () if self._calls else tuple(read.unset)
        return DeclaredTarget(kind, target, settings, frozenset(hidden), lambda: self._place(main_path), unset, missing)

    def _setting_issues(self, kind: Kind, given: Mapping[str, Any]) -> Iterator[tuple[str | Keys, str]]:
        if kind == "http" and "concurrency" in given:
            try:
                concurrency_bounds(given["concurrency"])
            except ValueError as error:
                yield "concurrency", str(error)
        if kind == "http":
            yield from self._http_issues(given)
        if kind == "command":
            yield from argv_issues(given["argv"])
            if self._calls and not any(argv_issues(given["argv"])):
                yield from program_issues(given["argv"][0], self._cwd(given))
            yield from env_issues(given.get("env"), self._environ if self._calls else None)

    def _http_issues(self, given: Mapping[str, Any]) -> Iterator[tuple[str | Keys, str]]:
        from deemster.targets.http_target import header_issues, method_issues, url_issues  # noqa: PLC0415 - loads the network's modules

        yield from url_issues(given["url"])
        yield from method_issues(given.get("method", "POST"), given.get("body"))
        texts = {name: value for name, value in given.get("headers", {}).items() if isinstance(value, str)}
        for name, message in header_issues(texts):
            yield ("headers",) if name is None else ("headers", name), message
        yield from template_issues(given.get("body"))
        for key in _PATHS:
            try:
                parse_path(given.get(key, "$"))
            except ValueError as error:
                yield key, f"`target.http.{key}`: {error}"
        variable = given.get("api_key_env")
        if variable is None:
            return
        if not _WORD.fullmatch(variable):
            # The value is not shown: it may be the key itself.
            message = "is the name of the environment variable that holds the key, such as `APP_API_KEY`."
            yield "api_key_env", f"`target.http.api_key_env` {message} No file holds the key itself."
        elif self._calls and not self._environ.get(variable):
            yield "api_key_env", f"The environment has no variable `{variable}`, which holds the key of the target."

    def _cwd(self, given: Mapping[str, Any]) -> str:
        """Where a command runs: the suite's folder, unless it says otherwise."""
        return str(self._folder / str(given.get("cwd", "")))

    def _with_key(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings with the key itself in place of the variable that holds it."""
        changed = dict(settings)
        variable = changed.pop("api_key_env", None)
        if isinstance(variable, str):
            changed["api_key"] = self._environ.get(variable) or None
        return changed


def _without_nulls(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are given: null is the default."""
    return {key: value for key, value in entries.items() if value is not None}


def _fits(value: Any, shape: Any) -> bool:
    """Whether a value has its declared shape, so that other checks can look at it."""
    try:
        return shape is not None and msgspec.convert(value, shape) is not UNSET
    except msgspec.ValidationError:
        return False
