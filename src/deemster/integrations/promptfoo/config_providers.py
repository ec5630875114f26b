"""The providers of a promptfoo config, as models and targets of a suite."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from deemster.errors import visible
from deemster.integrations.promptfoo.config_files import FILE, ConfigFiles, LeftOut, LeftOutError
from deemster.integrations.promptfoo.config_prompts import SuitePrompt, unique_name
from deemster.integrations.promptfoo.nunjucks import dotted_path, prompt_text
from deemster.integrations.run_builder import as_map, as_text
from deemster.models.providers import PROVIDERS

# Providers that have another name here.
_OTHER_NAMES: Mapping[str, str] = {"azureopenai": "azure", "togetherai": "together"}
# Others that speak the protocol of OpenAI: where promptfoo finds them, and the variable of their key.
_ENDPOINTS: Mapping[str, Mapping[str, str]] = {
    "aimlapi": {"base_url": "https://api.aimlapi.com/v1", "api_key_env": "AIML_API_KEY"},
    "cerebras": {"base_url": "https://api.cerebras.ai/v1", "api_key_env": "CEREBRAS_API_KEY"},
    "docker": {"base_url": "http://localhost:12434/engines/v1"},
    "github": {"base_url": "https://models.github.ai/inference", "api_key_env": "GITHUB_TOKEN"},
    "hyperbolic": {"base_url": "https://api.hyperbolic.xyz/v1", "api_key_env": "HYPERBOLIC_API_KEY"},
    "perplexity": {"base_url": "https://api.perplexity.ai", "api_key_env": "PERPLEXITY_API_KEY"},
}
_CHAT = frozenset({"chat", "messages", "converse", "mantle", "responses"})
# What comes between the provider and the model where no chat model is asked.
_OTHER_KINDS = frozenset(
    {
        "agent",
        "agents",
        "assistant",
        "chatkit",
        "claude-agent-sdk",
        "codex-app-server",
        "codex-sdk",
        "completion",
        "embedding",
        "embeddings",
        "foundry-agent",
        "image",
        "kb",
        "live",
        "moderation",
        "realtime",
        "transcription",
        "tts",
        "video",
    }
)
_NO_TEXT = re.compile(r"image|imagen|veo-|canvas|nova-reel|nova-sonic|embed|tts|audio|-live|realtime", re.IGNORECASE)
_EMBEDDINGS = frozenset({"embedding", "embeddings"})
# Keys of a provider's config, and the setting of a chat target that says the same.
_SETTINGS: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "num_predict": "max_tokens",
    "stop": "stop",
    "stopSequences": "stop",
    "response_format": "response_format",
}
# Keys that are sent as they are.
_SENT = frozenset(
    {
        "frequency_penalty",
        "presence_penalty",
        "seed",
        "reasoning_effort",
        "verbosity",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "thinking",
        "top_k",
    }
)
_OF_ADDRESS = ("apiBaseUrl", "apiHost", "region")
_OF_KEY = ("apiKey", "apiKeyEnvar")
# Maps of further settings, as Google and Bedrock have them.
_GROUPS = ("generationConfig", "inferenceConfig")
_PROVIDER_KEYS = frozenset({"id", "label", "config", "prompts"})
_HTTP_KEYS = frozenset({"url", "method", "headers", "body", "transformResponse", "responseParser", "maxRetries"})
_VARIABLE = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{?(\w+)\}?")
_OF_ENVIRONMENT = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}")
_CODE = re.compile(
    r"(?:file://|python:)(?:file://)?(?P<file>[^:]+\.py)(?::(?P<function>[A-Za-z_]\w*))?|exec:\s*(?P<command>.+)"
)
_PROMPT = re.compile(r"\{\{\s*prompt\s*\}\}")
_PATH_OF_REPLY = re.compile(r"(?:\(?json(?:, *text)?\)? *=> *)?json\??\.?([\w\[\].?]+)")


class ChatProvider(NamedTuple):
    """A chat model that a prompt is sent to.

    Attributes:
        name: The role of the suite's `models`, and the provider's name.
        model: The entry of `models`.
        settings: The settings of the target.
        prompts: The prompts that it is asked, by their labels; None for all.
        variables: The variables that it names beside the prompt: none.
    """

    name: str
    model: Mapping[str, Any]
    settings: Mapping[str, Any]
    prompts: Sequence[str] | None
    variables: frozenset[str] = frozenset()


class HttpProvider(NamedTuple):
    """An endpoint that a prompt is sent to.

    Attributes:
        name: Its name.
        request: The target of the suite, with the places of promptfoo.
        prompts: The prompts that it is asked, by their labels; None for all.
    """

    name: str
    request: Mapping[str, Any]
    prompts: Sequence[str] | None

    @property
    def variables(self) -> frozenset[str]:
        """The variables that it names beside the prompt."""
        texts = "\n".join(_texts_in(self.request))
        return prompt_text(_PROMPT.sub("", _OF_ENVIRONMENT.sub("", texts))).variables

    def target(self, prompt: SuitePrompt) -> dict[str, Any]:
        """The target that sends a prompt.

        Raises:
            LeftOutError: The prompt is no text with places.
        """
        if prompt.plain is None:
            raise LeftOutError(f"the prompt `{prompt.name}` is a template of Jinja2, which no request has inside")
        return {"http": _with_prompt(self.request, prompt)}


class CodeProvider(NamedTuple):
    """A Python function or a command that a prompt is given to.

    Attributes:
        name: Its name.
        call: The function of `provider_calls` that asks it.
        arguments: What that function is told of it beside prompt and config, as Python source.
        config: Its config.
        prompts: The prompts that it is asked, by their labels; None for all.
        variables: The variables that it names beside the prompt: none.
    """

    name: str
    call: str
    arguments: str
    config: Mapping[str, Any]
    prompts: Sequence[str] | None
    variables: frozenset[str] = frozenset()

    def function(self, prompt: SuitePrompt) -> str:
        """What the function is called that asks it a prompt."""
        return re.sub(r"\W", "_", f"ask_{self.name}_{prompt.name}")

    def source(self, prompt: SuitePrompt) -> str:
        """The line that makes that function."""
        arguments = f"{self.arguments}prompt=HERE / {prompt.path!r}, config={dict(self.config)!r}"
        return f"{self.function(prompt)} = {self.call}({arguments})\n"


Provider = ChatProvider | HttpProvider | CodeProvider


def read_providers(config: Mapping[str, Any], files: ConfigFiles, left_out: LeftOut) -> list[Provider]:
    """The providers that can be asked here; what cannot is noted."""
    key = "providers" if config.get("providers") is not None else "targets"
    entries = config.get(key)
    providers: list[Provider] = []
    for index, entry in enumerate(entries if isinstance(entries, list) else [entries]):
        path = (key, index) if isinstance(entries, list) else (key,)
        if entry is None:
            continue
        try:
            for described in _described(entry, files):
                taken = ["judge", "embedding", *(provider.name for provider in providers)]
                providers.append(_provider(described, taken, files, left_out, path))
                left_out.note_keys(described, _PROVIDER_KEYS, path, "a provider")
        except LeftOutError as error:
            left_out.note(f"a provider: {error}", path)
    return providers


def read_graders(
    entry: Any, files: ConfigFiles, left_out: LeftOut, path: Sequence[str | int]
) -> dict[str, Mapping[str, Any]]:
    """The entries of `models` for the models that grade, `judge` and `embedding`; what has no counterpart is noted."""
    graders = entry if isinstance(entry, dict) and not {"text", "embedding"}.isdisjoint(entry) else {"text": entry}
    left_out.note_keys(graders, frozenset({"text", "embedding"}), path, "the provider that grades")
    models: dict[str, Mapping[str, Any]] = {}
    for kind, role in (("text", "judge"), ("embedding", "embedding")):
        try:
            for described in _described(graders[kind], files) if graders.get(kind) is not None else ():
                models[role] = _grader(described, role, files, left_out, path)
        except LeftOutError as error:
            left_out.note(f"the provider that grades: {error}", path)
    return models


def _grader(
    entry: Mapping[str, Any], role: str, files: ConfigFiles, left_out: LeftOut, path: Sequence[str | int]
) -> Mapping[str, Any]:
    """The model of a provider that grades.

    Raises:
        LeftOutError: It has no counterpart.
    """
    vendor, rest = _vendor_and_rest(entry["id"])
    kind, _, model = rest.partition(":")
    if role == "embedding" and vendor in PROVIDERS and kind in _EMBEDDINGS and model:
        return _model_entry(vendor, model, as_map(entry.get("config")), left_out, (*path, "config"))
    grader = _provider(entry, [], files, left_out, path)
    if role == "judge" and isinstance(grader, ChatProvider):
        left_out.note_keys(grader.settings, frozenset(), (*path, "config"), "the provider that grades")
        return grader.model
    raise LeftOutError(f"`{visible(entry['id'], limit=80)}` has no counterpart here")


def _described(entry: Any, files: ConfigFiles) -> Iterator[dict[str, Any]]:
    """The providers of an entry, each as a map with an `id`."""
    if isinstance(entry, str) and entry.startswith(FILE) and _CODE.fullmatch(entry) is None:
        content = files.content(entry)
        for inside in content if isinstance(content, list) else [content]:
            yield from _described(inside, files)
    elif isinstance(entry, str):
        yield {"id": entry}
    elif isinstance(entry, dict) and isinstance(entry.get("id"), str):
        yield entry
    elif isinstance(entry, dict) and len(entry) == 1:
        ((name, options),) = entry.items()
        yield {"id": name, **as_map(options)}
    else:
        raise LeftOutError("it has no `id`")


def _provider(
    entry: Mapping[str, Any], taken: list[str], files: ConfigFiles, left_out: LeftOut, path: Sequence[str | int]
) -> Provider:
    """A provider with a name that no other has.

    Raises:
        LeftOutError: It has no counterpart.
    """
    identity = entry["id"]
    config = as_map(entry.get("config"))
    prompts = entry.get("prompts")
    if prompts is not None and not isinstance(prompts, list):
        prompts = [prompts]

    vendor, rest = _vendor_and_rest(identity)
    config_path = (*path, "config")
    if vendor in ("http", "https"):
        name = unique_name(as_text(entry.get("label")) or "endpoint", taken, "endpoint")
        left_out.note_keys(config, _HTTP_KEYS, config_path, "a provider's config")
        return HttpProvider(name, _http_request(identity, config), prompts)
    if identity == "echo":
        name = unique_name(as_text(entry.get("label")) or identity, taken, identity)
        return CodeProvider(name, "echo_provider", "", config, prompts)
    if (code := _CODE.fullmatch(identity)) is not None:
        name = unique_name(as_text(entry.get("label")) or PurePosixPath(code["file"] or "command").stem, taken, "code")
        if code["command"] is not None:
            return CodeProvider(name, "command_provider", f"{code['command']!r}, folder=CONFIG, ", config, prompts)
        arguments = f"CONFIG / {code['file']!r}, {code['function'] or 'call_api'!r}, "
        return CodeProvider(name, "python_provider", arguments, config, prompts)

    model = _model_name(vendor, rest, identity)
    name = unique_name(as_text(entry.get("label")) or model.rpartition("/")[2], taken, "model")
    if not name[0].isalpha():
        name = unique_name(f"model-{name}", taken, "model")
    settings = _chat_settings(config, files, left_out, config_path)
    return ChatProvider(name, _model_entry(vendor, model, config, left_out, config_path), settings, prompts)


def _vendor_and_rest(identity: str) -> tuple[str, str]:
    """The provider, by its name here, and what follows."""
    vendor, _, rest = identity.partition(":")
    return _OTHER_NAMES.get(vendor, vendor), rest


def _model_name(vendor: str, rest: str, identity: str) -> str:
    """The model of a chat provider.

    Raises:
        LeftOutError: It is no chat model, or of a provider without a counterpart.
    """
    shown = visible(identity, limit=80)
    if vendor not in PROVIDERS and vendor not in _ENDPOINTS:
        raise LeftOutError(f"`{shown}` has no counterpart here")
    kind, _, model = rest.partition(":")
    if kind in _OTHER_KINDS or _NO_TEXT.search(rest):
        raise LeftOutError(f"`{shown}` is no chat model")
    if kind in _CHAT:
        rest = model
    if not rest or "{{" in rest:
        raise LeftOutError(f"`{shown}` does not name its model")
    return rest


def _model_entry(
    vendor: str, model: str, config: Mapping[str, Any], left_out: LeftOut, path: Sequence[str | int]
) -> dict[str, Any]:
    """The entry of `models`; a key that stands in the config is not copied."""
    entry: dict[str, Any] = {**_ENDPOINTS.get(vendor, {}), "model": model}
    if vendor in PROVIDERS:
        entry = {"provider": vendor, **entry}
    addresses = {"apiBaseUrl": "{}", "apiHost": "https://{}/openai/v1" if vendor == "azure" else "https://{}/v1"}
    if vendor == "bedrock":
        addresses["region"] = "https://bedrock-mantle.{}.api.aws/v1"
    for part in _OF_ADDRESS:
        if part in config and part in addresses and "base_url" not in entry:
            entry["base_url"] = _OF_ENVIRONMENT.sub(r"${\1}", addresses[part].format(config[part]))
        elif part in config:
            left_out.note(f"`{part}` of a provider's config", (*path, part))

    key = as_text(config.get("apiKey"))
    variable = None if key is None else _VARIABLE.fullmatch(key)
    if as_text(config.get("apiKeyEnvar")) is not None:
        entry["api_key_env"] = config["apiKeyEnvar"]
    elif variable is not None:
        entry["api_key_env"] = variable[1] or variable[2]
    elif key is not None:
        left_out.note("a key that stands in the config: set the variable of the environment", (*path, "apiKey"))
    return entry


def _chat_settings(
    config: Mapping[str, Any], files: ConfigFiles, left_out: LeftOut, path: Sequence[str | int]
) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    sent: dict[str, Any] = {}
    nested = {key: value for group in _GROUPS for key, value in as_map(config.get(group)).items()}
    for key, value in {**config, **nested}.items():
        if key in (*_OF_ADDRESS, *_OF_KEY, *_GROUPS):
            continue
        try:
            if key in _SETTINGS and _SETTINGS[key] not in settings:
                settings[_SETTINGS[key]] = _with_files(value, files)
            elif key in _SENT:
                sent[key] = _with_files(value, files)
            elif key == "reasoning" and set(as_map(value)) == {"effort"}:
                sent["reasoning_effort"] = value["effort"]
            else:
                left_out.note(f"`{visible(str(key), limit=80)}` of a provider's config", (*path, key))
        except LeftOutError as error:
            left_out.note(f"`{visible(str(key), limit=80)}` of a provider's config: {error}", (*path, key))
    return {**settings, "extra": sent} if sent else settings


def _with_files(value: Any, files: ConfigFiles) -> Any:
    """A setting, with the files in it that it names.

    Raises:
        LeftOutError: One cannot be read, or is code.
    """
    if isinstance(value, str) and value.startswith(FILE):
        return files.content(value)
    if isinstance(value, str) and "{{" in value:
        raise LeftOutError("it is a template")
    if isinstance(value, list):
        return [_with_files(part, files) for part in value]
    if isinstance(value, dict):
        return {key: _with_files(part, files) for key, part in value.items()}
    return value


def _http_request(identity: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The request of an endpoint, with the places of promptfoo.

    Raises:
        LeftOutError: It is signed, or its reply is read by code.
    """
    url = config.get("url", identity)
    if not isinstance(url, str) or "://" not in url:
        raise LeftOutError("it has no `url`")
    if "signatureAuth" in config or "request" in config:
        raise LeftOutError("its requests are signed or raw, which a target here does not do")

    request = {"url": url, **{key: config[key] for key in ("method", "headers", "body") if key in config}}
    parser = config.get("transformResponse", config.get("responseParser"))
    if parser is not None:
        path = _PATH_OF_REPLY.fullmatch(str(parser).strip())
        if path is None:
            raise LeftOutError("its `transformResponse` is code, which is not run")
        request["output"] = dotted_path(path[1].replace("?", ""))
    if isinstance(config.get("maxRetries"), int):
        request["retries"] = config["maxRetries"]
    return request


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(part)


def _with_prompt(value: Any, prompt: SuitePrompt) -> Any:
    """A part of a request with the prompt in it, and with the places of a suite.

    Raises:
        LeftOutError: It holds what has no counterpart.
    """
    if isinstance(value, list):
        return [_with_prompt(part, prompt) for part in value]
    if isinstance(value, dict):
        return {key: _with_prompt(part, prompt) for key, part in value.items()}
    if not isinstance(value, str):
        return value
    if prompt.ending == "yml" and _PROMPT.fullmatch(value.strip()):
        return json.loads(prompt.plain or "[]")
    parts = [_OF_ENVIRONMENT.split(part) for part in _PROMPT.split(value)]
    return (prompt.plain or "").join(
        "".join(f"${{{text}}}" if index % 2 else prompt_text(text).text for index, text in enumerate(part))
        for part in parts
    )
