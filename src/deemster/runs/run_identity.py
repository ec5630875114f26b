"""The identity of a run of any kind: everything that could change its results, as plain JSON."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from deemster.errors import visible
from deemster.formats.canonical_json import canonical
from deemster.judges.metric_catalog import AdjustedMetric
from deemster.models import Role

_LONGEST = 80
_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")


def digest(value: Any) -> str:
    """The SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def plain_json(identity: Mapping[str, Any]) -> dict[str, Any]:
    """An identity as it looks once it is stored and read again."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(identity))
    return found


def identity_differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """How two identities differ, one sentence for each part: what it was, what it is.

    >>> identity_differences({"seed": 1, "metrics": {"a": "a v1"}}, {"seed": 2, "metrics": {"a": "a v1"}})
    ['seed: was 1, is 2']
    >>> identity_differences({"judges": [{"id": "ada"}]}, {"judges": [{"id": "ada"}, {"id": "bert"}]})
    ['judges.1: was not there, is bert']
    """
    return [
        f"{visible(name)}: was {_describe(old)}, is {_describe(new)}"
        for name, old, new in _compare(before, now, path="")
    ]


def differing_parts(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of the parts in which two identities differ.

    >>> differing_parts({"target": {"python": "bot:answer", "source": "1"}}, {"target": {"python": "bot:answer"}})
    ['target.source']
    """
    return [name for name, _, _ in _compare(before, now, path="")]


def run_id(started: datetime, distinction: str) -> str:
    """The id of a run: when it started, and the first six characters of a distinction.

    >>> from datetime import UTC
    >>> run_id(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "bf6474aa")
    '20260102T030405Z-bf6474'
    """
    return f"{started:%Y%m%dT%H%M%SZ}-{distinction[:6]}"


def format_time(at: datetime) -> str:
    """A time as reports write it: RFC 3339, UTC, milliseconds.

    >>> from datetime import UTC
    >>> format_time(datetime(2026, 1, 2, 3, 4, 5, 678900, tzinfo=UTC))
    '2026-01-02T03:04:05.678Z'
    """
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def source_digest(metric: Any) -> str | None:
    """A digest of the file that defines a user's metric; None where there is no file, as in a notebook."""
    inner = metric.metric if isinstance(metric, AdjustedMetric) else metric
    try:
        file = inspect.getsourcefile(getattr(inner, "__wrapped__", None) or type(inner))
        return None if file is None else f"sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()}"
    except (TypeError, OSError):
        return None


def model_identity(role: Role) -> dict[str, Any]:
    """The identity of a model, as plain JSON."""
    if role.identity is not None:
        return dict(role.identity)
    if role.client is None:
        return {"recording": Path(role.recording or "").name}
    return {"client": f"{type(role.client).__module__}:{type(role.client).__qualname__}", "model": role.model}


def _compare(before: Any, now: Any, *, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in [*before, *(key for key in now if key not in before)]:
            yield from _compare(before.get(key), now.get(key), path=f"{path}.{key}" if path else str(key))
    elif _is_list_of_maps(before) and _is_list_of_maps(now):
        for place, (old, new) in enumerate(zip_longest(before, now)):
            yield from _compare(old, new, path=f"{path}.{place}")
    elif before != now:
        yield path, before, now


def _is_list_of_maps(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(each, Mapping) for each in value)


def _describe(value: Any) -> str:
    if value is None:
        return "not there"
    if isinstance(value, Mapping):
        value = value.get("identity", value.get("id", "there"))
    # Twelve characters tell two digests apart.
    return visible(_DIGEST.sub(r"\1…", str(value)), limit=_LONGEST)
