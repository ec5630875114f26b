"""Which optional parameters an endpoint understands: JSON schema, log-probabilities, seed, token limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from deemster.models.http_endpoint import error_message
from deemster.records import Ask

FORMATS = ("json_schema", "json_object", "plain")
_FORMAT = re.compile(r"response.?format|json.?schema|json.?object|structured.?output|guided|grammar", re.IGNORECASE)
_LOGPROBS = re.compile(r"log.?probs?|logprobs", re.IGNORECASE)
_SEED = re.compile(r"['\"`(]seed\b|\bseed['\"`)]|\bparameter:? seed\b", re.IGNORECASE)
_PARAMETER_ERRORS = frozenset({400, 422})


class EndpointCapabilities:
    """The parameters that an endpoint has not refused yet. At first all are sent.

    A refusal counts against a parameter only where it names that parameter. Any other refusal stays a refusal.

    Attributes:
        form: Which of `FORMATS` is used where an answer has a schema.
        offers_logprobs: Whether log-probabilities are asked for.
        offers_seed: Whether a seed is sent.
        longest: The name of the parameter that limits the length of an answer.
    """

    def __init__(self) -> None:
        self.form = 0
        self.offers_logprobs = True
        self.offers_seed = True
        self.longest = "max_tokens"

    def fields(self, ask: Ask, *, model: str, extra: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request. An extra parameter that is None removes its field."""
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": role, "content": content} for role, content in ask.messages],
            "temperature": ask.temperature,
        }
        if ask.seed is not None and self.offers_seed:
            # Several answers to one question must be able to differ.
            body["seed"] = ask.seed + ask.sample
        if ask.max_tokens is not None:
            body[self.longest] = ask.max_tokens
        if ask.schema is not None:
            if FORMATS[self.form] == "json_schema":
                schema = {"name": "answer", "strict": True, "schema": ask.schema}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            elif FORMATS[self.form] == "json_object":
                body["response_format"] = {"type": "json_object"}
        if ask.logprobs and self.offers_logprobs:
            body["logprobs"] = True
            body["top_logprobs"] = ask.logprobs
        for name, value in extra.items():
            if value is None:
                body.pop(name, None)
            else:
                body[name] = value
        return body

    def learn(self, status: int, body: bytes, *, sent: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
        """Learn from a refusal.

        Args:
            status: The status of the refusal.
            body: Its body.
            sent: The fields of the refused request.
            extra: The parameters the user set, which stay as they are.

        Returns:
            Whether the request can be sent again without what was refused.
        """
        if status not in _PARAMETER_ERRORS:
            return False
        message = error_message(body)
        if "max_tokens" in sent and "max_tokens" not in extra and "max_completion_tokens" in message:
            self.longest = "max_completion_tokens"
            return True
        if "logprobs" in sent and "logprobs" not in extra and _LOGPROBS.search(message):
            self.offers_logprobs = False
            return True
        if "response_format" in sent and "response_format" not in extra and _FORMAT.search(message):
            self.form = max(self.form, FORMATS.index(sent["response_format"]["type"]) + 1)
            return True
        if "seed" in sent and "seed" not in extra and _SEED.search(message):
            self.offers_seed = False
            return True
        return False
