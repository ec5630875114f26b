"""The `models:` section of a suite."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats.environment_variables import Keys, expand_variables, unset_variable_message
from deemster.formats.json_values import kind_of
from deemster.models.model_roles import Role, RoleKind, as_role, concurrency_bounds, role_kind
from deemster.models.price import Price
from deemster.models.secret_redaction import Secrets, looks_like_key, named_secrets
from deemster.records.model_requests import EMBEDDING

GROUP = "deemster.models"
KEYS = (
    "base_url",
    "model",
    "api_key_env",
    "kind",
    "concurrency",
    "rpm",
    "tpm",
    "retries",
    "timeout_s",
    "total_timeout_s",
    "max_retry_after_s",
    "price",
    "prices",
    "batch",
    "extra",
    "client",
    "embedded",
    "replay",
    "record",
)
SOURCES = ("base_url", "client", "embedded", "replay")
# The embedded judge answers one question at a time, and takes its time.
LOCAL = {"concurrency": 1, "timeout_s": 300.0, "total_timeout_s": 3600.0}
_COUNTS = {"rpm": 1, "tpm": 1, "batch": 1, "retries": 0}
_SPANS = ("timeout_s", "total_timeout_s", "max_retry_after_s")
_LOOPBACK = re.compile(r"https?://(?:localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?(?:/|$)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
_LARGEST = 1e300


def read_models(
    section: Any,
    *,
    place: Callable[[Keys], str | None],
    environ: Mapping[str, str],
    folder: Path | None = None,
    load: Callable[[str], Any] | None = None,
    calls: bool = True,
) -> dict[str, Role]:
    """The roles of a suite; without a section, the embedded embedding model.

    `${VAR}` and `${VAR:-default}` in its texts are replaced.

    Args:
        section: The section as plain data; None where there is none.
        place: Gives the place of a value by its path, `models` first.
        environ: Where variables and keys are looked up.
        folder: What the paths of recordings are relative to.
        load: Imports what a path such as `app.models:Judge` names.
        calls: Whether models are going to be asked; otherwise keys and variables need not be set.

    Raises:
        ConfigurationError: Something in it cannot be used; all issues are listed.
    """
    reader = _Reader(place, environ, folder or Path(), load or _imported, calls=calls)
    roles: dict[str, Role] = {}
    if section is not None and not isinstance(section, Mapping):
        reader.issue((), f"`models` is a map of roles such as `judge`, not {kind_of(section)}.")
    elif section is not None:
        for name, entry in section.items():
            if (role := reader.role(name, entry)) is not None:
                roles[name] = role
    if reader.issues:
        raise ConfigurationError(reader.issues)
    if EMBEDDING not in roles:
        roles[EMBEDDING] = default_embedding()
    return roles


def default_embedding() -> Role:
    """The embedding model that comes with the installation."""
    return Role(client=_embedded("embedding"), kind="embedding")


class _Reader:
    """Reads roles and collects what is wrong with them."""

    def __init__(
        self,
        place: Callable[[Keys], str | None],
        environ: Mapping[str, str],
        folder: Path,
        load: Callable[[str], Any],
        *,
        calls: bool,
    ) -> None:
        self.issues: list[Issue] = []
        self._place, self._environ, self._folder, self._load, self._calls = place, environ, folder, load, calls

    def issue(self, path: Keys, message: str) -> None:
        self.issues.append(Issue(message, self._place(("models", *path))))

    def role(self, name: Any, entry: Any) -> Role | None:
        before = len(self.issues)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self.issue((name,), f"A role is a word such as `judge` or `judge:strict`, not {name!r:.80}.")
            return None
        if not isinstance(entry, Mapping):
            self.issue((name,), f"`models.{name}` is a map with keys such as `base_url`, not {kind_of(entry)}.")
            return None
        for key in entry:
            if key not in KEYS:
                hint = " Keys come from the environment: name the variable." if str(key).startswith("api_key") else ""
                self.issue((name, key), f"`{key}` is no key of a model. {did_you_mean(str(key), KEYS)}{hint}")
        given = {key: self._expanded(value, (name, key)) for key, value in entry.items() if key in KEYS}
        settings = self._settings(name, given)
        self._check_sources(name, given)
        if len(self.issues) > before:
            return None
        try:
            client = self._client(name, given, settings)
        except ConfigurationError as error:
            self.issues += [
                Issue(issue.message, issue.where or self._place(("models", name))) for issue in error.issues
            ]
            return None
        recording = given.get("replay") or given.get("record")
        if recording is not None:
            settings["recording"] = str(self._folder / recording)
        if "client" in given:
            settings["hidden"] = Secrets(named_secrets(given.get("extra", {})))
        return Role(client=client, **settings)

    def _settings(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        settings: dict[str, Any] = {"kind": self._kind(name, given)}
        for key in ("base_url", "model", "api_key_env", "client", "replay", "record"):
            value = given.get(key, "x")
            if not isinstance(value, str) or not value.strip():
                self.issue((name, key), f"`models.{name}.{key}` is non-blank text, not {_shown(value)}.")
        variable = given.get("api_key_env")
        if isinstance(variable, str) and variable.strip() and not self._is_variable(variable):
            # Not shown: whoever mistakes it puts the key itself here.
            message = "is the name of the environment variable that holds the key, such as `OPENAI_API_KEY`."
            self.issue((name, "api_key_env"), f"`models.{name}.api_key_env` {message} No file holds the key itself.")
        for key, least in _COUNTS.items():
            if key in given:
                settings[key] = given[key]
                if type(given[key]) is not int or given[key] < least:
                    message = f"is a whole number of at least {least}, not {_shown(given[key])}."
                    self.issue((name, key), f"`models.{name}.{key}` {message}")
        for key in _SPANS:
            if key in given:
                settings[key] = given[key]
                if not _is_number(given[key]) or given[key] <= 0:
                    message = f"is a number of seconds above 0, not {_shown(given[key])}."
                    self.issue((name, key), f"`models.{name}.{key}` {message}")
        if "concurrency" in given:
            settings["concurrency"] = given["concurrency"]
            try:
                concurrency_bounds(given["concurrency"])
            except ValueError as error:
                self.issue((name, "concurrency"), str(error))
        if not isinstance(given.get("extra", {}), Mapping):
            self.issue((name, "extra"), f"`models.{name}.extra` is a map, not {_shown(given['extra'])}.")
        if "model" in given:
            settings["model"] = given["model"]
        settings["prices"] = self._prices(name, given)
        if settings["kind"] == "chat" and given.get("embedded", False) is not False:
            settings = {**LOCAL, **settings}
        return settings

    def _kind(self, name: str, given: Mapping[str, Any]) -> RoleKind:
        kind = given.get("kind", role_kind(name))
        if kind == "chat":
            return "chat"
        if kind != "embedding":
            near = did_you_mean(str(kind), ("chat", "embedding"))
            self.issue((name, "kind"), f"`models.{name}.kind` is `chat` or `embedding`, not {_shown(kind)}. {near}")
        return "embedding"

    def _prices(self, name: str, given: Mapping[str, Any]) -> dict[str, Price]:
        prices = {}
        if "price" in given and (price := self._price((name, "price"), given["price"])) is not None:
            prices[""] = price
        table = given.get("prices", {})
        if not isinstance(table, Mapping):
            self.issue((name, "prices"), f"`models.{name}.prices` is a map of models, not {_shown(table)}.")
            return prices
        for prefix, entry in table.items():
            if (price := self._price((name, "prices", prefix), entry)) is not None:
                prices[str(prefix)] = price
        return prices

    def _price(self, path: Keys, entry: Any) -> Price | None:
        called = f"`models.{'.'.join(map(str, path))}`"
        if not isinstance(entry, Mapping) or "input" not in entry:
            self.issue(path, f"{called} is a map with `input` and `output`, USD for a million tokens.")
            return None
        before = len(self.issues)
        for key, value in entry.items():
            if key not in ("input", "output"):
                self.issue((*path, key), f"`{key}` is no price. {did_you_mean(str(key), ('input', 'output'))}")
            elif not _is_number(value) or value < 0:
                self.issue((*path, key), f"{called}: `{key}` is USD for a million tokens, not {_shown(value)}.")
        if len(self.issues) > before:
            return None
        return Price(Decimal(str(entry["input"])), Decimal(str(entry.get("output", 0))))

    def _check_sources(self, name: str, given: Mapping[str, Any]) -> None:
        sources = [key for key in SOURCES if key in given and given[key] is not False]
        if len(sources) != 1:
            found = f", not {' and '.join(f'`{key}`' for key in sources)}" if sources else ""
            listed = ", ".join(f"`{key}`" for key in SOURCES)
            self.issue((name,), f"`models.{name}` has exactly one of {listed}{found}.")
        elif sources == ["base_url"] and "model" not in given:
            self.issue((name,), f"`models.{name}` needs `model`, the name of the model at its `base_url`.")
        if "replay" in given and "record" in given:
            self.issue((name, "record"), f"`models.{name}` has `replay` or `record`, not both.")
        for key in ("api_key_env",) if sources and "base_url" not in sources else ():
            if key in given:
                self.issue((name, key), f"`models.{name}.{key}` is for models with a `base_url`.")

    def _client(self, name: str, given: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
        kind: RoleKind = settings["kind"]
        extra = given.get("extra", {})
        if "replay" in given:
            if not _is_file(self._folder / given["replay"]):
                raise ConfigurationError(
                    Issue(f"There is no recording {given['replay']!r}.", self._place(("models", name, "replay")))
                )
            return None
        if given.get("embedded", False) is not False:
            return _embedded(kind, self._weights(name, kind, given["embedded"]))
        if "client" in given:
            path = given["client"]
            found = self._load(path) if ":" in path else _plugged(path)
            return self._made(name, found, extra)
        key = self._key(name, given)
        from deemster.models.openai_client import OpenAIChat, OpenAIEmbedding  # noqa: PLC0415 - loads the HTTP client

        # A variable that need not be set leaves no address; the client that is made here is never called.
        address = given["base_url"] if self._calls or "://" in given["base_url"] else "http://unset.invalid"
        made = OpenAIChat if kind == "chat" else OpenAIEmbedding
        return made(address, given["model"], api_key=key, extra=extra)

    def _made(self, name: str, found: Any, extra: Mapping[str, Any]) -> Any:
        """A client of the user's own; a class is made one with `extra`."""
        with UserCodeGuard() as caught:
            client = found(**extra) if isinstance(found, type) else found
            as_role(name, client)
            return client
        # Outside the handler, so that no traceback shows what the class was given.
        told = caught.message.removeprefix("TypeError: ").removeprefix("ValueError: ")
        clean = Secrets(named_secrets(extra)).redact(told, shapes=True)
        raise ConfigurationError(Issue(clean, self._place(("models", name, "client"))))

    def _is_variable(self, name: str) -> bool:
        """Whether a text is the name of a variable, and not the key that belongs in one."""
        return _WORD.fullmatch(name) is not None and (name in self._environ or not looks_like_key(name))

    def _weights(self, name: str, kind: RoleKind, which: Any) -> Path | None:
        """The file of weights that is named; None for those that come with the installation."""
        if which is True:
            return None
        if kind == "chat" and isinstance(which, str) and which.strip():
            return self._folder / which
        allowed = "`true`, or the path of a GGUF file" if kind == "chat" else "`true`"
        message = f"`models.{name}.embedded` is {allowed}, not {_shown(which)}."
        raise ConfigurationError(Issue(message, self._place(("models", name, "embedded"))))

    def _key(self, name: str, given: Mapping[str, Any]) -> str | None:
        variable = given.get("api_key_env")
        if variable is None:
            return None
        key = self._environ.get(variable)
        if not key and self._calls and not self._needs_none(given):
            message = f"The environment has no variable `{variable}`, which holds the key of `{name}`."
            raise ConfigurationError(Issue(message, self._place(("models", name, "api_key_env"))))
        return key or None

    def _needs_none(self, given: Mapping[str, Any]) -> bool:
        """Whether a role may well do without its key: its answers are recorded, or its server is on this machine."""
        recorded = "record" in given and _is_file(self._folder / given["record"])
        return recorded or _LOOPBACK.match(given["base_url"]) is not None

    def _expanded(self, value: Any, path: Keys) -> Any:
        def missing(path: Keys, variable: str) -> str:
            if self._calls:
                self.issue(path, unset_variable_message(variable))
            return "unset"

        return expand_variables(value, environ=self._environ, path=path, missing=missing)


def _embedded(kind: RoleKind, weights: Path | None = None) -> Any:
    """A model that comes with the installation.

    Raises:
        ConfigurationError: There is no such file of weights.
        MissingExtraError: It is not installed.
    """
    if kind == "embedding":
        from deemster.models.embedded_embedding import EmbeddedEmbedding  # noqa: PLC0415 - loads its weights' reader

        return EmbeddedEmbedding()
    from deemster.models._local_judge import LocalJudge  # noqa: PLC0415 - an extra

    return LocalJudge(weights)


def _plugged(name: str) -> Any:
    """What a plug-in offers under a name.

    Raises:
        ConfigurationError: None offers it.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - only a plug-in needs it

    points = entry_points(group=GROUP)
    for point in points:
        if point.name == name:
            return point.load()
    known = sorted(point.name for point in points)
    near = did_you_mean(name, known) if known else "No plug-in offers one."
    raise ConfigurationError(f"`client` is an import path such as `app.models:Judge`, not `{name}`. {near}")


def _imported(path: str) -> Any:
    """What an import path stands for.

    Raises:
        ConfigurationError: There is no such thing.
    """
    module, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for step in names.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"`{path}` cannot be imported: {error}.") from None
    return found


def _is_file(path: Path) -> bool:
    """Whether there is such a file; one whose name no file can have is not there."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_number(value: Any) -> bool:
    # A comparison, since a whole number too long for a float is no error to compare.
    return type(value) in (int, float) and abs(value) <= _LARGEST


def _shown(value: Any) -> str:
    return repr(value)[:80] if isinstance(value, (str, int, float)) else kind_of(value)
