"""The presets of providers: where their APIs live, which protocol they speak, and what holds the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a provider before its first reply. What its models refuse is learned from them.

    Attributes:
        base_url: Where its API lives; `${NAME}` is a variable of the environment.
        api_key_env: The variable that holds the key; None for a server of one's own, which needs none.
        is_anthropic: Whether it speaks Anthropic's Messages API, and not that of OpenAI.
        names: What it calls parameters that others call otherwise.
        settings: How a role asks it, unless it says so itself.
        documented: The page of its documentation that says so, as it was in November 2026.
    """

    base_url: str
    api_key_env: str | None = None
    is_anthropic: bool = False
    names: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}
    documented: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that its address is made of."""
        return tuple(_VARIABLE.findall(self.base_url))

    def address(self, environ: Mapping[str, str]) -> str:
        """Where its API lives, by the environment."""
        return _VARIABLE.sub(lambda match: environ.get(match[1]) or "unset", self.base_url)


# Servers for one person's machine answer few questions at once, and others wait.
_FEW_AT_ONCE: Mapping[str, Any] = {"concurrency": "1-8", "timeout_s": 300, "total_timeout_s": 3600}

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        base_url="https://api.openai.com/v1",
        api_key_env="OPENAI_API_KEY",
        names={"max_tokens": "max_completion_tokens"},
        documented="https://developers.openai.com/api/docs/guides/deployment-checklist",
    ),
    "anthropic": Provider(
        base_url="https://api.anthropic.com/v1",
        api_key_env="ANTHROPIC_API_KEY",
        is_anthropic=True,
        documented="https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
    ),
    "google": Provider(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        api_key_env="GEMINI_API_KEY",
        documented="https://ai.google.dev/gemini-api/docs/openai",
    ),
    "azure": Provider(
        # The model is the name of the deployment. This API wants no version.
        base_url="${AZURE_OPENAI_ENDPOINT}/openai/v1",
        api_key_env="AZURE_OPENAI_API_KEY",
        documented="https://learn.microsoft.com/en-us/azure/foundry/openai/api-version-lifecycle",
    ),
    "bedrock": Provider(
        base_url="https://bedrock-mantle.${AWS_REGION}.api.aws/v1",
        api_key_env="AWS_BEARER_TOKEN_BEDROCK",
        documented="https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions-mantle.html",
    ),
    "mistral": Provider(
        base_url="https://api.mistral.ai/v1",
        api_key_env="MISTRAL_API_KEY",
        names={"seed": "random_seed"},
        documented="https://docs.mistral.ai/api/",
    ),
    "openrouter": Provider(
        base_url="https://openrouter.ai/api/v1",
        api_key_env="OPENROUTER_API_KEY",
        documented="https://openrouter.ai/docs/api_reference/overview",
    ),
    "groq": Provider(
        base_url="https://api.groq.com/openai/v1",
        api_key_env="GROQ_API_KEY",
        documented="https://console.groq.com/docs/openai",
    ),
    "together": Provider(
        base_url="https://api.together.ai/v1",
        api_key_env="TOGETHER_API_KEY",
        documented="https://docs.together.ai/docs/inference/openai-compatibility",
    ),
    "fireworks": Provider(
        base_url="https://api.fireworks.ai/inference/v1",
        api_key_env="FIREWORKS_API_KEY",
        documented="https://docs.fireworks.ai/tools-sdks/openai-compatibility",
    ),
    "deepseek": Provider(
        base_url="https://api.deepseek.com",
        api_key_env="DEEPSEEK_API_KEY",
        documented="https://api-docs.deepseek.com/guides/thinking_mode",
    ),
    "xai": Provider(
        base_url="https://api.x.ai/v1",
        api_key_env="XAI_API_KEY",
        documented="https://docs.x.ai/developers/model-capabilities/text/comparison.md",
    ),
    "ollama": Provider(
        base_url="http://127.0.0.1:11434/v1",
        settings=_FEW_AT_ONCE,
        documented="https://docs.ollama.com/api/openai-compatibility",
    ),
    "vllm": Provider(
        base_url="http://127.0.0.1:8000/v1",
        documented="https://docs.vllm.ai/en/stable/serving/openai_compatible_server/",
    ),
    "lmstudio": Provider(
        base_url="http://127.0.0.1:1234/v1",
        settings=_FEW_AT_ONCE,
        documented="https://lmstudio.ai/docs/advanced/structured-output",
    ),
    "llamacpp": Provider(
        base_url="http://127.0.0.1:8080/v1",
        settings=_FEW_AT_ONCE,
        documented="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
    ),
}
# The keys of a role that say by themselves which model answers.
_OTHER_SOURCES = ("client", "embedded", "replay")


def with_preset(entry: Any, environ: Mapping[str, str]) -> Any:
    """A role of the `models` section with what its provider fills in; what the role says itself counts.

    Args:
        entry: The role, as it is written.
        environ: Where the variables of the provider's address are looked up.

    >>> with_preset({"provider": "groq", "model": "m", "api_key_env": "MY_KEY"}, {})["api_key_env"]
    'MY_KEY'
    """
    provider = find_provider(entry)
    if provider is None or any(key in entry for key in _OTHER_SOURCES):
        return entry
    preset = {"base_url": provider.address(environ), **provider.settings}
    if provider.api_key_env is not None:
        preset["api_key_env"] = provider.api_key_env
    return {**preset, **entry}


def find_provider(entry: Any) -> Provider | None:
    """The provider that a role names; None for none, and for one that is not known."""
    name = entry.get("provider") if isinstance(entry, Mapping) else None
    return PROVIDERS.get(name) if isinstance(name, str) else None
