"""Arguments of `evaluate` and `grade`, where a test gives some of them by the names that they have in their objects."""

from __future__ import annotations

from typing import Any

import deemster as dm


def arguments(**given: Any) -> dict[str, Any]:
    """What is said of models, of storage and rarely, each in its object; the rest as it is."""
    calls = {name: given.pop(name) for name in dm.ModelCalls._fields if name in given}
    rare = {name: given.pop(name) for name in dm.EvaluationSettings._fields if name in given}
    if calls:
        given["calls"] = given.get("calls", dm.ModelCalls())._replace(**calls)
    if rare:
        given["settings"] = given.get("settings", dm.EvaluationSettings())._replace(**rare)
    if given.get("where") is not None:
        given["storage"] = dm.Storage(**{name: given.pop(name) for name in dm.Storage._fields if name in given})
    given.pop("where", None)
    return given
