"""What an endpoint and its model do not take, learned from their refusals: JSON schema, temperature, seed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from deemster.models.http_endpoint import error_message

FORMS = ("json_schema", "json_object", "plain")
# What a model that reasons gets on top of the longest answer: it thinks within the same limit.
REASONING_ROOM = 16_384
# Some answer 403 to those who may not have log-probabilities.
_PARAMETER_ERRORS = frozenset({400, 403, 422})
_LONGER_NAME = "max_completion_tokens"
# What says how the model chooses its words.
_CHOICES = ("temperature", "top_p", "seed")
_FORMAT = re.compile(
    r"response.?(?:format|schema)|json.?(?:schema|object)|structured.?output|additional.?properties|guided|grammar"
    r"|output.?config",
    re.IGNORECASE,
)
_LOGPROBS = re.compile(r"log.?probs?", re.IGNORECASE)
_REFUSES = re.compile(
    r"support|deprecat|unknown|unrecogni|unexpected|extra|permitted|allowed|invalid|only|parameter|removed",
    re.IGNORECASE,
)


class EndpointCapabilities:
    """The parameters that an endpoint has not refused yet. At first all are sent.

    A refusal counts against a parameter only where it names that parameter. Any other refusal stays a refusal.

    Args:
        names: What the endpoint calls parameters that others call otherwise.

    Attributes:
        form: Which of `FORMS` is used where an answer has a schema.
        names: What the endpoint calls parameters.
        refused: What it takes no longer.
        reasoning_room: How many tokens an answer may have beyond what was asked for.
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.form = 0
        self.names = dict(names or {})
        self.refused: set[str] = set()
        self.reasoning_room = 0

    def adapt(self, body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request as this endpoint takes it. An extra parameter that is None removes its field."""
        for name in self.refused:
            body.pop(name, None)
        for name, value in extra.items():
            if value is None:
                body.pop(name, None)
            else:
                body[name] = value
        for name, own_name in self.names.items():
            if name in body:
                body.setdefault(own_name, body.pop(name))
        return body

    def learn(self, status: int, body: bytes, *, sent: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
        """Learn from a refusal.

        Args:
            status: The status of the refusal.
            body: Its body.
            sent: The fields of the refused request.
            extra: The parameters the user set; they may get another name, and are never left out.

        Returns:
            Whether the request can be sent again without what was refused.
        """
        if status not in _PARAMETER_ERRORS:
            return False
        complaint = _complaint(body)
        ours = sent.keys() - extra.keys()

        if "max_tokens" in sent and _LONGER_NAME in complaint:
            self.names["max_tokens"] = _LONGER_NAME
            return True
        if "logprobs" in ours and _LOGPROBS.search(complaint):
            self.refused |= {"logprobs", "top_logprobs"}
            return True
        if ours & {"response_format", "output_config"} and _FORMAT.search(complaint):
            used = sent["response_format"]["type"] if "response_format" in sent else "json_object"
            self.form = max(self.form, FORMS.index(used) + 1)
            return True
        for name in _CHOICES:
            own_name = self.names.get(name, name)
            if own_name in ours and _names(complaint, own_name):
                self.refused.add(name)
                return True
        return False

    def learn_from_cut(self) -> None:
        """Learn from an answer that was cut off before it began: the model reasons first."""
        self.reasoning_room = REASONING_ROOM

    def note(self, model: str) -> str | None:
        """What a person should know of it, because the answers depend on it."""
        missing = [name for name in _CHOICES if name in self.refused]
        return (
            f"`{model}` takes no {' and no '.join(missing)}: it was asked without, so its answers may vary."
            if missing
            else None
        )


def _complaint(body: bytes) -> str:
    """What a refusal says, without the part of the request that some quote."""
    try:
        decoded = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return error_message(body)
    faults = _listed_faults(decoded)
    if not faults:
        return error_message(body)
    return "; ".join(f"{fault.get('loc')}: {fault.get('msg')}" for fault in faults)


def _listed_faults(decoded: Any) -> list[dict[str, Any]]:
    """The faults of a refusal that lists them with their places."""
    while isinstance(decoded, dict):
        decoded = decoded.get("detail", decoded.get("message"))
    faults = decoded if isinstance(decoded, list) else []
    return [fault for fault in faults if isinstance(fault, dict) and "msg" in fault]


def _names(complaint: str, parameter: str) -> bool:
    """Whether a refusal is about a parameter, and does not only happen to hold the word."""
    return re.search(rf"(?<!\w){parameter}(?!\w)", complaint) is not None and _REFUSES.search(complaint) is not None
