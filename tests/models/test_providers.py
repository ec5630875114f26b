"""Presets of providers: where a request goes, with which key, before anything is known of the model."""

from __future__ import annotations

import pytest

from deemster.errors import ConfigurationError
from deemster.models import AnthropicChat, OpenAIChat, OpenAIEmbedding
from deemster.models.models_section import read_models
from deemster.models.providers import PROVIDERS

KEY = "sk-test-0123456789abcdef"
ENVIRON = {
    "AZURE_OPENAI_ENDPOINT": "https://ours.openai.azure.com/",
    "AWS_REGION": "eu-west-1",
    **{provider.api_key_env: KEY for provider in PROVIDERS.values() if provider.api_key_env is not None},
}
ADDRESSES = {
    "openai": "https://api.openai.com/v1/chat/completions",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "google": "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
    "azure": "https://ours.openai.azure.com/openai/v1/chat/completions",
    "bedrock": "https://bedrock-mantle.eu-west-1.api.aws/v1/chat/completions",
    "mistral": "https://api.mistral.ai/v1/chat/completions",
    "openrouter": "https://openrouter.ai/api/v1/chat/completions",
    "groq": "https://api.groq.com/openai/v1/chat/completions",
    "together": "https://api.together.ai/v1/chat/completions",
    "fireworks": "https://api.fireworks.ai/inference/v1/chat/completions",
    "deepseek": "https://api.deepseek.com/chat/completions",
    "xai": "https://api.x.ai/v1/chat/completions",
    "ollama": "http://127.0.0.1:11434/v1/chat/completions",
    "vllm": "http://127.0.0.1:8000/v1/chat/completions",
    "lmstudio": "http://127.0.0.1:1234/v1/chat/completions",
    "llamacpp": "http://127.0.0.1:8080/v1/chat/completions",
}
KEY_HEADERS = {"anthropic": ("x-api-key", KEY), "azure": ("api-key", KEY)}


def read(entry, *, environ=ENVIRON, name="judge", calls=True):
    embedding = {"base_url": "http://127.0.0.1:9/v1", "model": "e"}
    return read_models(
        {"embedding": embedding, name: entry},
        place=lambda path: "suite.yml:" + "/".join(map(str, path)),
        environ=environ,
        load=lambda _: None,
        calls=calls,
    )[name]


def said_of(entry, **options):
    with pytest.raises(ConfigurationError) as raised:
        read(entry, **options)
    return str(raised.value)


def test_every_preset_has_its_address():
    assert PROVIDERS.keys() == ADDRESSES.keys()


@pytest.mark.parametrize("name", PROVIDERS)
def test_preset_says_address_protocol_and_key(name):
    client = read({"provider": name, "model": "m"}).client
    assert type(client) is (AnthropicChat if name == "anthropic" else OpenAIChat)
    assert client._endpoint.url == ADDRESSES[name]
    header, value = KEY_HEADERS.get(name, ("Authorization", f"Bearer {KEY}"))
    assert client._endpoint._headers.get(header) == (value if PROVIDERS[name].api_key_env else None)
    assert KEY not in repr(client.identity)


def test_provider_is_the_same_judge_as_its_address():
    named = read({"provider": "openai", "model": "m"})
    spelled = read({"base_url": "https://api.openai.com/v1", "model": "m", "api_key_env": "OPENAI_API_KEY"})
    assert named.identity == spelled.identity


def test_every_key_of_a_preset_can_be_given():
    entry = {"provider": "mistral", "model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "MY_KEY"}
    client = read(entry, environ={"MY_KEY": "my-own-key"}).client
    assert client._endpoint.url == "http://127.0.0.1:9/v1/chat/completions"
    assert client._endpoint._headers["Authorization"] == "Bearer my-own-key"


@pytest.mark.parametrize("name", ["ollama", "lmstudio", "llamacpp"])
def test_server_for_one_machine_is_asked_patiently(name):
    role = read({"provider": name, "model": "m", "timeout_s": 20})
    assert (role.bounds, role.timeout_s, role.total_timeout_s) == ((1, 8), 20, 3600)
    assert read({"provider": "vllm", "model": "m"}).bounds == (5, 64)


def test_claude_on_bedrock_takes_the_key_as_bearer_token():
    entry = {"provider": "anthropic", "model": "m", "base_url": "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1"}
    endpoint = read({**entry, "api_key_env": "AWS_BEARER_TOKEN_BEDROCK"}).client._endpoint
    assert endpoint.url == "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages"
    assert endpoint._headers["Authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in endpoint._headers


def test_embedding_model_has_a_provider_too():
    client = read({"provider": "mistral", "model": "e"}, name="embedding").client
    assert type(client) is OpenAIEmbedding
    assert client._endpoint.url == "https://api.mistral.ai/v1/embeddings"


def test_what_a_preset_lacks_is_said():
    unknown = said_of({"provider": "mistrall", "model": "m"})
    assert "Did you mean `mistral`?" in unknown
    assert "exactly one of" not in unknown
    assert "needs `model`" in said_of({"provider": "groq"})
    assert "no variable `GROQ_API_KEY`, which holds the key" in said_of({"provider": "groq", "model": "m"}, environ={})
    endpoint = said_of({"provider": "azure", "model": "m"}, environ={"AZURE_OPENAI_API_KEY": KEY})
    assert "models/judge/provider: The address of `azure` needs the variable `AZURE_OPENAI_ENDPOINT`" in endpoint
    other = said_of({"provider": "azure", "model": "${DEPLOYMENT}"})
    assert "no variable `DEPLOYMENT`" in other
    assert "has no embedding models" in said_of({"provider": "anthropic", "model": "m"}, name="embedding")
    mixed = said_of({"provider": "groq", "embedded": True})
    assert "`models.judge.provider` is for models with a `base_url`." in mixed


@pytest.mark.parametrize("name", PROVIDERS)
def test_no_variable_is_needed_where_no_model_is_asked(name):
    assert read({"provider": name, "model": "m"}, environ={}, calls=False).model == "m"
