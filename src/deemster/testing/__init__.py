"""A model server that misbehaves on demand, for tests of everything that talks to a model.

>>> from deemster.testing import ModelServer
>>> with ModelServer() as server:
...     server.play(["500", "429=2", "reset"])  # the next three requests fail in these ways
...     server.url.startswith("http://127.0.0.1:")
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deemster.testing.model_server import ModelServer, ReceivedRequest
    from deemster.testing.obedient_model import ObedientModel
    from deemster.testing.server_faults import FAULTS
    from deemster.testing.server_replies import Chat

__all__ = ["FAULTS", "Chat", "ModelServer", "ObedientModel", "ReceivedRequest"]

# Loaded when asked for, so that `python -m deemster.testing.model_server` finds its module not yet loaded.
_PLACES = {
    "FAULTS": "server_faults",
    "Chat": "server_replies",
    "ModelServer": "model_server",
    "ObedientModel": "obedient_model",
    "ReceivedRequest": "model_server",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - only where a name is asked for

    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
