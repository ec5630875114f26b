"""A chat model with a prompt as the target."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.errors import ConfigurationError
from deemster.formats.json_values import name_kind, to_json_value
from deemster.formats.schema_validation import shape_issues
from deemster.models.secret_redaction import Secrets, hash_named_secrets, named_secrets
from deemster.records import Answer, Ask, BrokenOff, Invocation, Message, Output, Reply, Request, TargetFailure
from deemster.targets._gateway_reply import paid_usage, why_no_output
from deemster.targets.chat_prompt import ChatPrompt, read_prompt

# How providers say that an answer was cut, and that a filter stopped it.
_BROKEN_OFF: Mapping[str, BrokenOff] = {
    "length": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
}


class ChatParameters(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a chat target."""

    temperature: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    top_p: Annotated[float, Meta(gt=0, le=1)] | UnsetType = UNSET
    max_tokens: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    stop: str | list[str] | UnsetType = UNSET
    response_format: dict[str, Any] | UnsetType = UNSET
    extra: dict[str, Any] | UnsetType = UNSET


class ChatTarget:
    """Asks one of the models of a run, with a prompt that each sample fills in.

    It asks as judges do: cache, budget, limits, retries and recordings of the model hold.

    Args:
        chat: Which of the run's `models` is asked.
        prompt: The prompt: text with placeholders such as `{{input.question}}`, the path of a file, a map of `system`
            and `user`, or a list of messages.
        temperature: How freely the model chooses; what the model does of itself unless given.
        top_p: The share of the likeliest words that it chooses from.
        max_tokens: The longest answer.
        stop: Where the answer ends.
        response_format: The form of the answer, as the provider's API has it.
        extra: Further parameters, sent as they are.
        concurrency: How many questions may be under way; what the model's role says unless given.

    Attributes:
        roles: The models that it asks.
        prompt: The prompt, with its placeholders.
        identity: What can change an answer beside the input and the model.

    Raises:
        ConfigurationError: Something given cannot be used.
    """

    # How messages about its models call it.
    name = "target"

    def __init__(
        self,
        chat: str,
        prompt: str | Path | Mapping[str, str] | Sequence[Mapping[str, str]] | ChatPrompt,
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        response_format: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        concurrency: int | None = None,
    ) -> None:
        if not isinstance(chat, str) or not chat.strip():
            raise ConfigurationError(f"`chat` is the name of one of the models, not {name_kind(chat)}.")
        self.roles = (chat,)
        self.prompt = prompt if isinstance(prompt, ChatPrompt) else read_prompt(prompt)
        self.concurrency = concurrency

        said = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "top_p": top_p,
            "stop": [stop] if isinstance(stop, str) else stop,
            "response_format": response_format,
            "extra": extra,
        }
        said = to_json_value({name: value for name, value in said.items() if value is not None})
        if issues := shape_issues(said, ChatParameters):
            raise ConfigurationError(issues)

        self.identity: Mapping[str, Any] = {
            "chat": chat,
            "prompt": self.prompt.to_json(),
            "parameters": hash_named_secrets(said),
        }
        self.secrets = Secrets(named_secrets(said))
        self._temperature = temperature
        self._max_tokens = max_tokens
        beside = ("top_p", "stop", "response_format")
        self._parameters = {**{name: said[name] for name in beside if name in said}, **said.get("extra", {})}

    def __repr__(self) -> str:
        return f"ChatTarget({self.roles[0]!r})"

    def messages(self, sample_input: Mapping[str, Any]) -> tuple[Message, ...]:
        """The chat that the model is sent for one sample.

        Args:
            sample_input: What the sample gives the target.

        Raises:
            LookupError: The input lacks something that a placeholder names.
        """
        return self.prompt.fill(sample_input)

    def script(
        self, invocation: Invocation
    ) -> Generator[Sequence[Request], Sequence[Reply], Output | TargetFailure | None]:
        """Asks the model once; its answer as an output, why there is none, or None where it was not asked.

        Args:
            invocation: The sample.
        """
        try:
            messages = self.messages(invocation.input)
        except LookupError as error:
            return TargetFailure(str(error.args[0]))

        ask = Ask(
            messages=messages,
            role=self.roles[0],
            temperature=self._temperature,
            seed=None,
            max_tokens=self._max_tokens,
            subject=invocation.id,
            parameters=self._parameters,
        )
        (reply,) = yield [ask]
        return _as_output(reply) if isinstance(reply, Answer) else why_no_output(reply)


def _as_output(answer: Answer) -> Output:
    return Output(
        answer.text,
        usage=paid_usage(answer),
        model=answer.model,
        broken_off=_BROKEN_OFF.get((answer.finish or "").lower()),
    )
