"""What to do about a failure of a model: a key that is missing, an address that is wrong, a limit."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from deemster.errors import visible

_PROXY = re.compile(r"^[^ ]+: (?:The proxy answered |No connection to the proxy |The address, or the proxy )")
_STATUS = re.compile(r" answered ([0-9]{3})\b")


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
        404: f"Either no model there is called `{model_name(entry)}`, or `base_url` is wrong.{under}",
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


def advise_on_variable(message: str) -> str | None:
    """What to do about a variable of the environment that is named and not set; else None."""
    found = re.search(r"has no variable `(\w+)`", message)
    return None if found is None else f"Set it first: export {found[1]}=..."


def model_name(entry: Any) -> str | None:
    """The name of the model that an entry of `models` asks for, as a message shows it."""
    model = entry.get("model") if isinstance(entry, Mapping) else None
    return None if model is None else visible(str(model), limit=80)
