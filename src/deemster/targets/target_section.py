"""The `target:` section of a suite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.formats.environment_variables import Keys, expand_variables, unset_variable_message
from deemster.formats.json_values import kind_of
from deemster.models.model_roles import Role
from deemster.models.secret_redaction import is_secret_name
from deemster.targets._json_path import parse_path
from deemster.targets._request_template import template_issues
from deemster.targets.command_target import CommandTarget, argv_issues, env_issues, form_issues, program_issues
from deemster.targets.python_target import PythonTarget
from deemster.targets.saved_outputs import SavedOutputs

Kind: TypeAlias = Literal["python", "outputs", "http", "command"]
KINDS: Mapping[Kind, str] = {
    "python": "module:function",
    "http": "an address",
    "command": "a program and its arguments",
    "outputs": "a file",
}
# The key that stands for the whole where an entry is no map.
MAIN: Mapping[Kind, str] = {"python": "function", "http": "url", "command": "argv", "outputs": "file"}
_PATHS = ("output", "retrieved", "trajectory", "usage", "model")
_SETTINGS = ("timeout_s", "retries", "concurrency")
KEYS: Mapping[Kind, tuple[str, ...]] = {
    "python": ("function", *_SETTINGS),
    "http": (
        *("url", "method", "headers", "body", *_PATHS, *_SETTINGS),
        *("total_timeout_s", "max_retry_after_s", "rpm", "api_key_env"),
    ),
    "command": ("argv", *_SETTINGS, "env", "cwd", "output"),
    "outputs": ("file",),
}
_NUMBERS = (*_SETTINGS, "total_timeout_s", "max_retry_after_s", "rpm")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Declared(NamedTuple):
    """A target as a suite declares it, checked; what it holds may be secret, so it is neither shown nor stored.

    Attributes:
        kind: What kind of target.
        main: What it is of that kind: the import path, the address, the program and its arguments, the file.
        settings: Its other settings, variables replaced.
        hidden: Values that must be shown nowhere.
        where: Its place in the file.
        unset: The variables it names that are not set, where it is not going to be called.
    """

    kind: Kind
    main: Any
    settings: Mapping[str, Any] = {}
    hidden: frozenset[str] = frozenset()
    where: str | None = None
    unset: tuple[Issue, ...] = ()

    def __repr__(self) -> str:
        return f"Declared({self.kind!r})"


def read_target(
    section: Any,
    *,
    place: Callable[[Keys], str | None],
    environ: Mapping[str, str],
    folder: Path,
    calls: bool = True,
) -> tuple[Declared | None, list[Issue]]:
    """The target that a section declares, and everything that is wrong with it.

    Args:
        section: The section as plain data.
        place: Gives the place of a value by its path, `target` first.
        environ: Where variables are looked up.
        folder: What its paths are relative to.
        calls: Whether it is going to be called; otherwise variables need not be set.
    """
    reader = _Reader(place, environ, folder, calls=calls)
    declared = reader.declared(section)
    return (None if reader.issues else declared), reader.issues


def target_made(declared: Declared, *, load: Callable[[str], Any]) -> Any:
    """The target that was declared.

    Args:
        declared: What a section says.
        load: Imports what a path such as `app:answer` names.

    Raises:
        InputError: It cannot be imported, found or read.
    """
    if declared.unset and declared.kind != "http":
        raise ConfigurationError(declared.unset)
    if declared.kind == "outputs":
        return SavedOutputs.load(declared.main)
    try:
        if declared.kind == "python":
            return PythonTarget(load(declared.main), **declared.settings)
        if declared.kind == "command":
            return CommandTarget(declared.main, **declared.settings)
        from deemster.targets.http_target import HttpTarget  # noqa: PLC0415 - loads the network's modules

        return HttpTarget(declared.main, hidden=declared.hidden, **declared.settings)
    except ConfigurationError as error:
        issues = [issue._replace(where=issue.where or declared.where) for issue in error.issues]
        raise ConfigurationError(issues) from None


class _Reader:
    """Reads a section and collects what is wrong with it."""

    def __init__(
        self, place: Callable[[Keys], str | None], environ: Mapping[str, str], folder: Path, *, calls: bool
    ) -> None:
        self.issues: list[Issue] = []
        self._place, self._environ, self._folder, self._calls = place, environ, folder, calls
        self._hidden: set[str] = set()
        self._unset: list[Issue] = []

    def issue(self, path: Keys, message: str) -> None:
        self.issues.append(Issue(message, self._place(("target", *path))))

    def declared(self, section: Any) -> Declared | None:
        kind = self._kind(section)
        if kind is None:
            return None
        given = self._entry(kind, section[kind])
        if given is None:
            return None
        main = MAIN[kind]
        path: Keys = (kind,) if main not in self._written(section[kind]) else (kind, main)
        if main not in given:
            self.issue((kind,), f"`target.{kind}` has no `{main}`: {KINDS[kind]}.")
            return None
        if kind != "command" and (not isinstance(given[main], str) or not given[main].strip()):
            self.issue(path, f"`target.{'.'.join(map(str, path))}` is text, not {_shown(given[main])}.")
            return None
        for key, message in self._setting_issues(kind, given):
            within = key if isinstance(key, tuple) else (key,)
            self.issue(path if within == (main,) else (kind, *within), message)
        settings = {key: value for key, value in given.items() if key != main}
        if kind == "http":
            settings = self._with_key(settings)
        elif kind == "command":
            settings["cwd"] = self._cwd(given)
            if not self._calls and isinstance(given.get("env"), list):
                settings["env"] = [name for name in given["env"] if name in self._environ]
        where = self._place(("target", *path))
        return Declared(
            kind, self._main(kind, given[main]), settings, frozenset(self._hidden), where, tuple(self._unset)
        )

    def _main(self, kind: Kind, value: Any) -> Any:
        if kind == "http" and self._unset and "://" not in value:
            return f"http://{value}"
        return str(self._folder / value) if kind == "outputs" else value

    def _kind(self, section: Any) -> Kind | None:
        listed = ", ".join(f"`{kind}` ({what})" for kind, what in KINDS.items())
        if not isinstance(section, Mapping):
            self.issue((), f"`target` is a map with keys such as `python`, not {_shown(section)}.")
            return None
        for key in section:
            if key not in KINDS:
                self.issue((key,), f"`{key}` is no key of `target`. {did_you_mean(str(key), KINDS)}")
        known = [kind for kind in KINDS if kind in section]
        if len(known) == 1:
            return known[0]
        if known or not section:
            self.issue((), f"`target` names one of {listed}.")
        return None

    @staticmethod
    def _written(entry: Any) -> Mapping[str, Any]:
        return entry if isinstance(entry, Mapping) else {}

    def _entry(self, kind: Kind, entry: Any) -> dict[str, Any] | None:
        """The entry as a map, its variables replaced."""
        if not isinstance(entry, Mapping):
            return {MAIN[kind]: self._expanded(entry, (kind,))}
        for key in entry:
            if key not in KEYS[kind]:
                hint = " Keys come from the environment: name the variable." if str(key).startswith("api_key") else ""
                near = did_you_mean(str(key), KEYS[kind])
                self.issue((kind, key), f"`{key}` is no key of `target.{kind}`. {near}{hint}")
        known = {key: value for key, value in entry.items() if key in KEYS[kind] and value is not None}
        return {key: self._expanded(value, (kind, key)) for key, value in known.items()}

    def _expanded(self, value: Any, path: Keys) -> Any:
        def missing(path: Keys, name: str) -> str:
            issue = Issue(unset_variable_message(name), self._place(("target", *path)))
            (self.issues if self._calls else self._unset).append(issue)
            return "unset"

        def found(name: str, value: str) -> None:
            # What comes from the environment into a header is a secret, whatever it is called.
            if is_secret_name(name) or path[-1] == "headers":
                self._hidden.add(value)

        return expand_variables(value, environ=self._environ, path=path, missing=missing, found=found)

    def _setting_issues(self, kind: Kind, given: Mapping[str, Any]) -> Iterator[tuple[str | Keys, str]]:
        for key in _NUMBERS:
            if key in given and (message := _number_issue(kind, key, given[key])) is not None:
                yield key, message
        if kind == "http":
            yield from self._http_issues(given)
        if kind == "command":
            yield from argv_issues(given["argv"])
            if not isinstance(given.get("cwd", ""), str):
                yield "cwd", f"`cwd` is the path of a folder, not {_shown(given['cwd'])}."
            elif self._calls and not any(argv_issues(given["argv"])):
                yield from program_issues(given["argv"][0], self._cwd(given))
            yield from env_issues(given.get("env"), self._environ if self._calls else None)
            yield from form_issues(given.get("output", "auto"))

    def _http_issues(self, given: Mapping[str, Any]) -> Iterator[tuple[str | Keys, str]]:
        from deemster.targets.http_target import header_issues, method_issues, url_issues  # noqa: PLC0415 - loads the network's modules

        yield from url_issues(given["url"])
        yield from method_issues(given.get("method", "POST"), given.get("body"))
        for name, message in header_issues(given.get("headers", {})):
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
        if not isinstance(variable, str) or not _WORD.fullmatch(variable):
            # Not shown: whoever mistakes it puts the key itself here.
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


def _number_issue(kind: Kind, key: str, value: Any) -> str | None:
    """What is wrong with a setting that is a number, by the rules that models have."""
    if key == "concurrency" and kind != "http" and type(value) is not int:
        return f"`concurrency` is a whole number of at least 1, not {_shown(value)}."
    try:
        settings: dict[str, Any] = {key: value}
        Role(client=None, **settings)
    except ValueError as error:
        return str(error)
    return None


def _shown(value: Any) -> str:
    return repr(value)[:80] if isinstance(value, (str, int, float)) else kind_of(value)
