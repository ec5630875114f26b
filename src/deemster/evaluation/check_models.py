"""Sends each model of a suite one small request, and explains what is wrong where that fails."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from deemster.errors import DeemsterError, visible
from deemster.evaluation.resolve_evaluation import suite_metrics, suite_models
from deemster.evaluation.suite import Suite
from deemster.judges.reply_parser import UnreadableReplyError, parse_json_object
from deemster.models import CallContext, Gateway, Role
from deemster.models.clock import Clock
from deemster.models.model_roles import missing_role_message
from deemster.records import Answer, Ask, Embed, Message, NoAnswer, Reply, Usage, Vectors
from deemster.records.model_requests import EMBEDDING

_SCHEMA = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}
_ASK = Ask(
    messages=(Message("user", 'Reply with this JSON object and nothing else: {"ready": true}'),),
    schema=_SCHEMA,
    # Much more than the reply needs: a model that reasons does it within the same allowance.
    max_tokens=512,
    logprobs=2,
)
_EMBED = Embed(texts=("ready",))
_STATUS = re.compile(r" answered ([0-9]{3})\b")
# As the client says it; a server may speak of proxies of its own.
_PROXY = re.compile(r"^[^ ]+: (?:The proxy answered |No connection to the proxy |The address, or the proxy )")
# In the order in which a client tries them.
_FORMS = ("JSON by schema", "JSON, but not by schema", "JSON in plain text")


class RoleCheck(NamedTuple):
    """What a request to one role showed.

    Attributes:
        role: Its name.
        model: The model, as far as it is known.
        works: What it can do.
        usage: What the request used.
        is_free: Whether it costs nothing.
        issue: What is wrong; None where it can be used.
        advice: What to do about that, where it can be told.
    """

    role: str
    model: str | None = None
    works: str = ""
    usage: Usage | None = None
    is_free: bool = False
    issue: str | None = None
    advice: str | None = None


async def check_models(suite: Suite, *, clock: Clock) -> list[RoleCheck]:
    """Check every role of a suite, and every other role that its metrics ask.

    Args:
        suite: The suite.
        clock: Measures how long the replies take.

    Raises:
        ConfigurationError: A metric cannot be made, or the section is no map of roles.
    """
    if suite.models is not None and not isinstance(suite.models, Mapping):
        suite_models(suite)
    section: Mapping[str, Any] = suite.models or {}
    metrics = suite_metrics(suite) if suite.metrics else ()
    asked = dict.fromkeys(role for metric in metrics for role in getattr(metric, "roles", ()))
    names = dict.fromkeys([*section, *asked])
    # One after the other, so that the time one takes is not that of another.
    return [await _check_role(suite, name, section, clock, is_asked=name in asked) for name in names]


async def _check_role(
    suite: Suite, name: str, section: Mapping[str, Any], clock: Clock, *, is_asked: bool
) -> RoleCheck:
    entry = section.get(name)
    embeds = name.partition(":")[0] == EMBEDDING
    if name not in section and name != EMBEDDING:
        return RoleCheck(name, issue=missing_role_message(name, section, embeds=embeds))
    try:
        role = suite_models(suite._replace(models={name: entry} if name in section else None)).roles[name]
        if is_asked and (role.kind == "embedding") != embeds:
            return RoleCheck(name, _model_name(entry), issue=missing_role_message(name, section, embeds=embeds))
        if role.client is None:
            return await _check_recording(name, role)
        return await _call_model(name, msgspec.structs.replace(role, retries=0, recording=None), entry or {}, clock)
    except DeemsterError as error:
        return RoleCheck(name, _model_name(entry), issue=str(error), advice=_advise_on_variable(str(error)))


async def _check_recording(name: str, role: Role) -> RoleCheck:
    async with Gateway({name: role}):
        return RoleCheck(name, role.model, works="answers from a recording", is_free=True)


async def _call_model(name: str, role: Role, entry: Mapping[str, Any], clock: Clock) -> RoleCheck:
    async with Gateway({name: role}, CallContext(clock)) as gateway:
        if role.kind == "embedding":
            (reply,) = await gateway.answers([msgspec.structs.replace(_EMBED, role=name)])
        else:
            reply = await _chat(gateway, msgspec.structs.replace(_ASK, role=name))
    model = getattr(reply, "model", None) or role.model or _text(getattr(role.client, "model", None))
    # A model of this process bills nothing with its vectors; what it took is worth seeing here.
    usage = reply.usage or gateway.spent.get(name)
    check = RoleCheck(name, model, usage=usage, is_free=role.is_local)
    if isinstance(reply, NoAnswer):
        address = str((role.identity or {}).get("base_url", ""))
        hint = find_advice(reply.message, entry, address=address, timeout_s=role.timeout_s)
        return check._replace(issue=reply.message, advice=hint)
    if isinstance(reply, Vectors):
        return check._replace(works=f"vectors of dimension {len(reply.values[0])}")
    return _read_answer(check, reply, role.client)


async def _chat(gateway: Gateway, ask: Ask) -> Reply:
    """The reply to a request. One that fails is sent again without log-probabilities, which few judges need."""
    (reply,) = await gateway.answers([ask])
    if isinstance(reply, NoAnswer) and find_status(reply.message) in (400, 422, 500):
        (plain,) = await gateway.answers([msgspec.structs.replace(ask, logprobs=0)])
        return reply if isinstance(plain, NoAnswer) else plain
    return reply


def _read_answer(check: RoleCheck, answer: Answer, client: Any) -> RoleCheck:
    try:
        parse_json_object(answer.text)
    except UnreadableReplyError as error:
        why = f" (it stopped because of `{answer.finish}`)" if answer.finish not in (None, "stop") else ""
        return check._replace(
            issue=f"It answers, but not with JSON{why}: {error.message}",
            advice="Judges need a reply that is one JSON object: take a model that follows such an order.",
        )
    capabilities = getattr(client, "capabilities", None)
    form = "JSON" if capabilities is None else _FORMS[capabilities.form]
    return check._replace(works=f"{form}, {'log-probabilities' if answer.tokens else 'no log-probabilities'}")


def find_status(message: str) -> int | None:
    """The HTTP status in a message.

    >>> find_status("api.example.com answered 404 Not Found: No such model."), find_status("No connection.")
    (404, None)
    """
    found = _STATUS.search(message)
    return None if found is None else int(found[1])


def find_advice(message: str, entry: Mapping[str, Any], *, address: str, timeout_s: float) -> str | None:
    """What to do about a failure; None where that is not known.

    Args:
        message: What happened.
        entry: The role's part of the `models` section.
        address: Where the request went.
        timeout_s: How long a reply may take.
    """
    if "base_url" not in entry:
        return f"Look at the client `{entry['client']}`." if "client" in entry else None
    if _PROXY.search(message):
        return "HTTP_PROXY and HTTPS_PROXY name the proxy, NO_PROXY the hosts that are reached without one."
    status = find_status(message)
    under = "" if "/v1" in address else " Most servers have it under /v1: `base_url: .../v1`."
    if status is not None:
        return _advise_on_status(status, message, entry, under)
    if "by TLS" in message:
        return "If the server speaks plain HTTP there, `base_url` begins with http:// and not https://."
    if "No connection" in message:
        return "Look whether the server runs, and whether host and port of `base_url` are right."
    if "certificate" in message:
        return "This machine trusts no signer of the server's certificate: SSL_CERT_FILE names further ones."
    if "No reply came" in message or "No complete reply" in message:
        return f"Nothing came within {timeout_s:g} s. If the model is only slow, raise `timeout_s`."
    if "closed before a reply" in message or "not HTTP" in message:
        secure = " If it speaks TLS, `base_url` begins with https://." if address.startswith("http:") else ""
        return f"What listens there does not answer as a server of HTTP does.{secure}"
    if "cut off" in message:
        return "A model that reasons needs more room for it: `extra: {max_tokens: 4096}`, or less effort in reasoning."
    if "no JSON" in message or "wrong shape" in message or "has no" in message:
        return f"What answers there does not speak the OpenAI protocol.{under}"
    return None


def _advise_on_status(status: int, message: str, entry: Mapping[str, Any], under: str) -> str | None:
    variable = entry.get("api_key_env")
    if status in (401, 403) and variable is None:
        return "No key was sent. Name the variable that holds it: `api_key_env: OPENAI_API_KEY`."
    if status in (401, 403) and not os.environ.get(str(variable)):
        return f"No key was sent, for {variable} is not set: export {variable}=..."
    if "quota" in message or status == 402:
        return "The account has no credit left."
    known = {
        401: f"The key in {variable} is not accepted. Look whether it is whole, and for this provider.",
        403: f"The key in {variable} may not use this model.",
        404: f"Either no model there is called `{_model_name(entry)}`, or `base_url` is wrong.{under}",
        405: f"`base_url` is wrong.{under}",
        429: "The provider limits requests at the moment. Wait, or set `rpm` and `tpm` to what your account allows.",
    }
    if status in known:
        return known[status]
    if 300 <= status < 400:
        return "Write the address it redirects to as `base_url`: a redirect is not followed, for the key goes with it."
    if status >= 500:
        return "That is the server's own failure: try again, and look at its log if it is yours."
    return "The server refuses a parameter: `extra: {name: null}` takes one out of every request."


def _advise_on_variable(message: str) -> str | None:
    found = re.search(r"has no variable `(\w+)`", message)
    return None if found is None else f"Set it first: export {found[1]}=..."


def _model_name(entry: Any) -> str | None:
    model = entry.get("model") if isinstance(entry, Mapping) else None
    return None if model is None else visible(str(model), limit=80)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
