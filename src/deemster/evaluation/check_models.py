"""Sends each model of a suite one small request, and explains what is wrong where that fails."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from deemster.errors import DeemsterError
from deemster.evaluation.suite import Suite
from deemster.evaluation.suite_parts import suite_metrics, suite_models
from deemster.judges.reply_parser import UnreadableReplyError, parse_json_object
from deemster.models import CallContext, Gateway, Role
from deemster.models.clock import Clock
from deemster.models.failure_advice import advise_on_variable, find_advice, find_status, model_name
from deemster.models.http_chat import HttpChat
from deemster.models.model_roles import missing_role_message
from deemster.models.providers import with_preset
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
# What a role is asked that answers samples: nobody reads JSON there.
_TARGET_ASK = Ask(
    messages=(Message("user", "Reply with the word `ready` and nothing else."),),
    temperature=None,
    seed=None,
    max_tokens=512,
    parameters={},
)
_EMBED = Embed(texts=("ready",))
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
        reasons: Whether the model reasons before it answers.
        issue: What is wrong; None where it can be used.
        advice: What to do about that, where it can be told.
    """

    role: str
    model: str | None = None
    works: str = ""
    usage: Usage | None = None
    is_free: bool = False
    reasons: bool = False
    issue: str | None = None
    advice: str | None = None


async def check_models(suite: Suite, *, clock: Clock, answering: Collection[str] = ()) -> list[RoleCheck]:
    """Check every role of a suite, and every other role that its metrics ask.

    Args:
        suite: The suite.
        clock: Measures how long the replies take.
        answering: Further roles that answer samples, beside that of the suite's target.

    Raises:
        ConfigurationError: A metric cannot be made, or the section is no map of roles.
    """
    if suite.models is not None and not isinstance(suite.models, Mapping):
        suite_models(suite)
    section: Mapping[str, Any] = suite.models or {}
    metrics = suite_metrics(suite) if suite.metrics else ()
    asked = dict.fromkeys(role for metric in metrics for role in getattr(metric, "roles", ()))
    targets = set(answering)
    if suite.target is not None and suite.target.kind == "chat":
        targets.add(suite.target.main)
    names = dict.fromkeys([*section, *asked, *sorted(targets)])
    # One after the other, so that the time one takes is not that of another.
    return [
        await _check_role(suite, name, section, clock, is_asked=name in asked, is_target=name in targets)
        for name in names
    ]


async def _check_role(
    suite: Suite, name: str, section: Mapping[str, Any], clock: Clock, *, is_asked: bool, is_target: bool
) -> RoleCheck:
    entry = with_preset(section.get(name), os.environ)
    embeds = name.partition(":")[0] == EMBEDDING
    if name not in section and name != EMBEDDING:
        return RoleCheck(name, issue=missing_role_message(name, section, embeds=embeds))
    try:
        role = suite_models(suite._replace(models={name: entry} if name in section else None)).roles[name]
        if (is_asked or is_target) and (role.kind == "embedding") != embeds:
            return RoleCheck(name, model_name(entry), issue=missing_role_message(name, section, embeds=embeds))
        if role.client is None:
            return await _check_recording(name, role)
        role = msgspec.structs.replace(role, retries=0, recording=None)
        return await _call_model(name, role, entry or {}, clock, judges=is_asked or not is_target)
    except DeemsterError as error:
        return RoleCheck(name, model_name(entry), issue=str(error), advice=advise_on_variable(str(error)))


async def _check_recording(name: str, role: Role) -> RoleCheck:
    async with Gateway({name: role}):
        return RoleCheck(name, role.model, works="answers from a recording", is_free=True)


async def _call_model(name: str, role: Role, entry: Mapping[str, Any], clock: Clock, *, judges: bool) -> RoleCheck:
    async with Gateway({name: role}, CallContext(clock)) as gateway:
        if role.kind == "embedding":
            (reply,) = await gateway.answers([msgspec.structs.replace(_EMBED, role=name)])
        elif judges:
            reply = await _chat(gateway, msgspec.structs.replace(_ASK, role=name))
        else:
            (reply,) = await gateway.answers([msgspec.structs.replace(_TARGET_ASK, role=name)])
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
    return _read_answer(check, reply, role.client) if judges else check._replace(works="text, as the target")


async def _chat(gateway: Gateway, ask: Ask) -> Reply:
    """The reply to a request.

    One that a model's reasoning cut off is sent again: the client has learned to give it more tokens. One that fails is
    sent again without log-probabilities, which few judges need.
    """
    (reply,) = await gateway.answers([ask])
    if isinstance(reply, NoAnswer) and "cut off" in reply.message:
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
    usage = answer.usage
    tokens = "log-probabilities" if answer.tokens else "no log-probabilities"
    if not isinstance(client, HttpChat):
        return check._replace(works=f"JSON, {tokens}")
    refused = client.lacks | client.capabilities.refused
    missing = [f"no {name}" for name in ("temperature", "seed") if name in refused]
    reasons = bool(answer.thinking or client.capabilities.reasoning_room or (usage and usage.reasoning_tokens))
    return check._replace(works=", ".join([_FORMS[client.capabilities.form], tokens, *missing]), reasons=reasons)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
