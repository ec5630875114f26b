"""Roles: which model answers under which name, with which limits, timeouts and prices."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from deemster.errors import did_you_mean
from deemster.models.price import FREE, Price, PriceTable, exact_price
from deemster.models.retry_policy import RetryPolicy
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records.model_requests import EMBEDDING

RoleKind: TypeAlias = Literal["chat", "embedding"]
CONCURRENCY = "5-64"
BATCH, LOCAL_BATCH = 128, 1024
_RANGE = re.compile(r"\s*([0-9]{1,6})\s*(?:-\s*([0-9]{1,6})\s*)?")


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """A model under a name, with its limits, timeouts and prices.

    Attributes:
        client: The client that answers; None where only a recording does.
        kind: Whether it chats or embeds.
        concurrency: How many requests may be under way: from few to many, such as `5-64`, or never more than a number.
        rpm: Requests a minute.
        tpm: Tokens a minute.
        retries: How often a request is repeated after transport failures and 429.
        timeout_s: The longest attempt, body included.
        total_timeout_s: The longest call, from its first attempt, retries and waits included.
        max_retry_after_s: The longest wait a provider may ask for.
        prices: US dollars for a million tokens, by the beginning of the model's name.
        batch: How many texts go in one request; None for what suits the client.
        model: The model's name, where the client does not say it with its answers.
        recording: A file that is looked in first, and in which answers are recorded.
        hidden: What must be shown nowhere, beside the secrets that its client names.
        anchors: A file of cases that every run judges anew, so that a drift of the model is seen.

    Raises:
        ValueError: A setting is out of range.
    """

    client: Any
    kind: RoleKind = "chat"
    concurrency: str | int = CONCURRENCY
    rpm: int | None = None
    tpm: int | None = None
    retries: int = 3
    timeout_s: float = 60.0
    total_timeout_s: float = 300.0
    max_retry_after_s: float = 60.0
    prices: Mapping[str, Price] = {}
    batch: int | None = None
    model: str | None = None
    recording: str | None = None
    hidden: Secrets = NO_SECRETS
    anchors: str | None = None

    def __post_init__(self) -> None:
        concurrency_bounds(self.concurrency)
        for name, least in (("rpm", 1), ("tpm", 1), ("batch", 1), ("retries", 0)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise ValueError(f"`{name}` is a whole number of at least {least}, not {value!r}.")
        for name in ("timeout_s", "total_timeout_s", "max_retry_after_s"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
                raise ValueError(f"`{name}` is a number of seconds above 0, not {value!r}.")
        prices = {prefix: exact_price(price) for prefix, price in self.prices.items()}
        msgspec.structs.force_setattr(self, "prices", prices)

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest number of requests under way."""
        return concurrency_bounds(self.concurrency)

    @property
    def policy(self) -> RetryPolicy:
        """How patient it is."""
        return RetryPolicy(self.retries, self.timeout_s, self.total_timeout_s, self.max_retry_after_s)

    @property
    def price_table(self) -> PriceTable:
        """Its prices; a model that reaches no network is free."""
        return PriceTable(self.prices or ({"": FREE} if self.is_local else {}))

    @property
    def batch_size(self) -> int:
        """How many texts go in one request."""
        return self.batch or (LOCAL_BATCH if self.is_local else BATCH)

    @property
    def is_local(self) -> bool:
        """Whether it reaches no network."""
        return getattr(self.client, "is_local", False) is True

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """Everything that can change an answer beside the request; None where the client does not say."""
        identity: Mapping[str, Any] | None = getattr(self.client, "identity", None)
        return self.hidden.hash_in(identity) if self.hidden else identity

    @property
    def secrets(self) -> Secrets:
        """What must be shown nowhere."""
        found = getattr(self.client, "secrets", None)
        if isinstance(found, (list, tuple, set, frozenset)):
            found = Secrets(value for value in found if isinstance(value, str))
        own = found if isinstance(found, Secrets) else NO_SECRETS
        return own + self.hidden if self.hidden else own


def concurrency_bounds(concurrency: str | int) -> tuple[int, int]:
    """The smallest and the largest number of requests under way.

    >>> concurrency_bounds("5-64"), concurrency_bounds(8)
    ((5, 64), (8, 8))

    Raises:
        ValueError: It is neither a number nor a range.
    """
    found = _RANGE.fullmatch(str(concurrency)) if type(concurrency) in (str, int) else None
    if found is not None:
        low = int(found[1])
        high = int(found[2] or found[1])
        if 1 <= low <= high:
            return low, high
    raise ValueError(f"`concurrency` is a number of at least 1, or a range such as `5-64`, not {concurrency!r}.")


def role_kind(name: str) -> RoleKind:
    """The kind of a role by its name: one that begins with `embedding` embeds."""
    return "embedding" if name.startswith(EMBEDDING) else "chat"


def as_role(name: str, given: Any) -> Role:
    """A role as it is, or a client as a role with default settings.

    Args:
        name: The role's name.
        given: A ``Role``, or a client.

    Raises:
        TypeError: It is neither.
    """
    if isinstance(given, Role):
        return given
    if isinstance(given, type):
        raise TypeError(
            f"`models.{name}` is a client, not the class {given.__name__}: make one, `{given.__name__}(...)`."
        )
    chats, embeds = callable(getattr(given, "complete", None)), callable(getattr(given, "embed_many", None))
    if not chats and not embeds:
        raise TypeError(f"`models.{name}` is a client with `complete` or `embed_many`, not a {type(given).__name__}.")
    kind = role_kind(name) if chats and embeds else "chat" if chats else "embedding"
    return Role(client=given, kind=kind, model=_text(getattr(given, "model", None)))


def missing_role_message(name: str, known: Iterable[str], *, embeds: bool) -> str:
    """The message where a metric asks a model that the suite does not name.

    Args:
        name: The role it asks.
        known: The roles there are.
        embeds: Whether an embedding model is asked.
    """
    names = list(known)
    if name in names:
        verb = "embeds" if not embeds else "chats"
        return f"The role `{name}` {verb}, and it is asked to {'embed' if embeds else 'chat'}: `kind` says which."
    near = f" {did_you_mean(name, names)}" if names else ""
    what = "{embedded: true}" if embeds else "{provider: openai, model: ...}"
    return f"This asks the model `{name}`, which is not there. Write `models: {{{name}: {what}}}`.{near}"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
