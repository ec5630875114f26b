"""The `models:` section of a suite."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.errors import ConfigurationError, Issue, show_value, visible
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats import missing_file
from deemster.formats.environment_variables import Keys, read_section
from deemster.formats.json_values import name_kind
from deemster.formats.schema_validation import NonBlank
from deemster.models.model_roles import Role, RoleKind, as_role, concurrency_bounds, role_kind
from deemster.models.price import Price
from deemster.models.providers import PROVIDERS, find_provider, with_preset
from deemster.models.secret_redaction import Secrets, looks_like_key, named_secrets
from deemster.records.model_requests import EMBEDDING

SOURCES = ("base_url", "client", "embedded", "replay")
# The embedded judge answers one question at a time, and takes its time.
LOCAL = {"concurrency": 1, "timeout_s": 300.0, "total_timeout_s": 3600.0}
_LOOPBACK = re.compile(r"https?://(?:localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?(?:/|$)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")
# Settings that a role takes as they are.
_PLAIN = ("rpm", "tpm", "batch", "retries", "timeout_s", "total_timeout_s", "max_retry_after_s", "concurrency", "model")
_Text: TypeAlias = NonBlank | UnsetType
_Count: TypeAlias = Annotated[int, Meta(ge=1)] | UnsetType
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, title="a number of seconds above 0")] | UnsetType
_Provider: TypeAlias = Literal[tuple(PROVIDERS)]  # type: ignore[valid-type]
_Price: TypeAlias = Annotated[float, Meta(ge=0, title="USD for a million tokens")]


class PriceEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A price."""

    input: _Price
    output: _Price = 0


class ModelEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A model."""

    provider: _Provider | UnsetType = UNSET
    base_url: _Text = UNSET
    model: _Text = UNSET
    api_key_env: _Text = UNSET
    kind: RoleKind | UnsetType = UNSET
    concurrency: int | str | UnsetType = UNSET
    rpm: _Count = UNSET
    tpm: _Count = UNSET
    retries: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    timeout_s: _Seconds = UNSET
    total_timeout_s: _Seconds = UNSET
    max_retry_after_s: _Seconds = UNSET
    price: PriceEntry | UnsetType = UNSET
    prices: dict[str, PriceEntry] = {}
    batch: _Count = UNSET
    extra: dict[str, Any] = {}
    client: _Text = UNSET
    embedded: Annotated[bool | str | UnsetType, Meta(title="`true`, or the path of a GGUF file")] = UNSET
    replay: _Text = UNSET
    record: _Text = UNSET
    anchors: _Text = UNSET


def read_models(
    section: Any,
    *,
    place: Callable[[Keys], str | None],
    environ: Mapping[str, str],
    folder: Path | None = None,
    load: Callable[[str], Any],
    calls: bool = True,
) -> dict[str, Role]:
    """The roles of a suite; without a section, the embedded embedding model.

    `${VAR}` and `${VAR:-default}` in its texts are replaced.

    Args:
        section: The section as plain data; None where there is none.
        place: Gives the place of a value by its path, `models` first.
        environ: Where variables and keys are looked up.
        folder: What the paths of recordings are relative to.
        load: Gives what an import path such as `app.models:Judge` names, or what a plug-in offers under a name.
        calls: Whether models are going to be asked; otherwise keys and variables need not be set.

    Raises:
        ConfigurationError: Something in it cannot be used; all issues are listed.
    """
    reader = _Reader(place, environ, folder or Path(), load, calls=calls)
    roles: dict[str, Role] = {}
    if section is not None and not isinstance(section, Mapping):
        reader.issue((), f"`models` is a map of roles such as `judge`, not {name_kind(section)}.")
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
        filled = with_preset(entry, self._environ)
        if self._calls and filled is not entry and "base_url" not in entry:
            self._check_address(name, entry["provider"])
        section = read_section(filled, ModelEntry, path=("models", name), environ=self._environ, place=self._place)
        self.issues += [*(section.unset if self._calls else ()), *section.issues]
        given = section.value
        if not isinstance(given, dict):
            return None
        self._check_settings(name, given)
        self._check_sources(name, given)
        if len(self.issues) > before:
            return None
        # What comes from the environment into `extra` is a secret, whatever it is called.
        variables = [value for at, _, value in section.variables if at[2:3] == ("extra",)]
        settings = {
            **self._settings(name, given),
            "hidden": Secrets([*named_secrets(given.get("extra", {})), *variables]),
        }
        try:
            if "anchors" in given:
                self._require_file(name, "anchors", given["anchors"])
                settings["anchors"] = str(self._folder / given["anchors"])
            client = self._client(name, given, settings)
        except ConfigurationError as error:
            self.issues += [
                Issue(issue.message, issue.where or self._place(("models", name))) for issue in error.issues
            ]
            return None
        recording = given.get("replay") or given.get("record")
        if recording is not None:
            settings["recording"] = str(self._folder / recording)
        return Role(client=client, **settings)

    def _check_address(self, name: str, provider: str) -> None:
        """Check that the environment has what the address of a provider is made of."""
        for variable in PROVIDERS[provider].variables:
            if not self._environ.get(variable):
                message = f"The address of `{provider}` needs the variable `{variable}`; or write `base_url`."
                self.issue((name, "provider"), message)

    def _check_settings(self, name: str, given: Mapping[str, Any]) -> None:
        """Check what the shape cannot say of single settings."""
        variable = given.get("api_key_env")
        if isinstance(variable, str) and variable.strip() and not self._is_variable(variable):
            # The value is not shown: it may be the key itself.
            message = "is the name of the environment variable that holds the key, such as `OPENAI_API_KEY`."
            self.issue((name, "api_key_env"), f"`models.{name}.api_key_env` {message} No file holds the key itself.")
        if isinstance(given.get("concurrency"), (int, str)):
            try:
                concurrency_bounds(given["concurrency"])
            except ValueError as error:
                self.issue((name, "concurrency"), str(error))

    @staticmethod
    def _settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        kind: RoleKind = given.get("kind", role_kind(name))
        prices = {"": given["price"]} if "price" in given else {}
        prices |= given.get("prices", {})
        is_embedded_judge = kind == "chat" and given.get("embedded", False) is not False
        return {
            **(LOCAL if is_embedded_judge else {}),
            **{key: given[key] for key in _PLAIN if key in given},
            "kind": kind,
            "prices": {prefix: Price(**entry) for prefix, entry in prices.items()},
        }

    def _check_sources(self, name: str, given: Mapping[str, Any]) -> None:
        sources = [key for key in SOURCES if key in given and given[key] is not False]
        # A provider that is not known is an issue of its own.
        if len(sources) != 1 and (sources or "provider" not in given):
            found = f", not {' and '.join(f'`{key}`' for key in sources)}" if sources else ""
            listed = ", ".join(f"`{key}`" for key in ("provider", *SOURCES))
            self.issue((name,), f"`models.{name}` has exactly one of {listed}{found}.")
        elif sources == ["base_url"] and "model" not in given:
            self.issue((name,), f"`models.{name}` needs `model`, the name of the model at its `base_url`.")
        if "replay" in given and "record" in given:
            self.issue((name, "record"), f"`models.{name}` has `replay` or `record`, not both.")
        for key in ("provider", "api_key_env") if sources and "base_url" not in sources else ():
            if key in given:
                self.issue((name, key), f"`models.{name}.{key}` is for models with a `base_url`.")

    def _client(self, name: str, given: Mapping[str, Any], settings: Mapping[str, Any]) -> Any:
        kind: RoleKind = settings["kind"]
        extra = given.get("extra", {})
        if "replay" in given:
            self._require_file(name, "replay", given["replay"])
            return None
        if given.get("embedded", False) is not False:
            return _embedded(kind, self._weights(name, kind, given["embedded"]))
        if "client" in given:
            return self._made(name, self._load(given["client"]), extra, settings["hidden"])
        key = self._key(name, given)
        from deemster.models.anthropic_client import AnthropicChat  # noqa: PLC0415 - loads the HTTP client
        from deemster.models.openai_client import OpenAIChat, OpenAIEmbedding  # noqa: PLC0415 - loads the HTTP client

        # A variable that need not be set leaves no address; the client that is made here is never called.
        address = given["base_url"] if self._calls or "://" in given["base_url"] else "http://unset.invalid"
        provider = find_provider(given)
        if kind == "embedding":
            if provider is not None and provider.is_anthropic:
                raise ConfigurationError(f"`{given['provider']}` has no embedding models.")
            return OpenAIEmbedding(address, given["model"], api_key=key, extra=extra)
        if provider is None:
            return OpenAIChat(address, given["model"], api_key=key, extra=extra)
        chat = AnthropicChat if provider.is_anthropic else OpenAIChat
        return chat(address, given["model"], api_key=key, extra=extra, names=provider.names)

    def _require_file(self, name: str, key: str, written: str) -> None:
        path = self._folder / written
        if not _is_file(path):
            message = missing_file(written, folder=self._folder) or f"There is no file `{visible(written, limit=300)}`."
            raise ConfigurationError(Issue(message, self._place(("models", name, key))))

    def _made(self, name: str, found: Any, extra: Mapping[str, Any], hidden: Secrets) -> Any:
        """A client of the user's own; a class is made one with `extra`."""
        with UserCodeGuard() as caught:
            client = found(**extra) if isinstance(found, type) else found
            as_role(name, client)
            return client
        # Outside the handler, so that no traceback shows what the class was given.
        told = caught.message.removeprefix("TypeError: ").removeprefix("ValueError: ")
        clean = hidden.redact(told, shapes=True)
        raise ConfigurationError(Issue(clean, self._place(("models", name, "client"))))

    def _is_variable(self, name: str) -> bool:
        """Whether a text is the name of a variable, and not the key that belongs in one."""
        return _WORD.fullmatch(name) is not None and (name in self._environ or not looks_like_key(name))

    def _weights(self, name: str, kind: RoleKind, which: Any) -> Path | None:
        """The file of weights that is named; None for those that come with the installation."""
        if which is True:
            return None
        if kind == "chat" and isinstance(which, str) and which.strip():
            self._require_file(name, "embedded", which)
            return self._folder / which
        allowed = "`true`, or the path of a GGUF file" if kind == "chat" else "`true`"
        message = f"`models.{name}.embedded` is {allowed}, not {show_value(which)[:80]}."
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


def _is_file(path: Path) -> bool:
    """Whether there is such a file; one whose name no file can have is not there."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
