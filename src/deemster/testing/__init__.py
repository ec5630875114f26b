"""A model server that misbehaves on demand, for tests of everything that talks to a model.

>>> from deemster.testing import ModelServer
>>> with ModelServer() as server:
...     server.play(["500", "429=2", "reset"])  # the next three requests fail in these ways
...     server.url.startswith("http://127.0.0.1:")
True
"""

from deemster import lazy_names

_FILES = {
    "deemster.testing.model_server": ("ModelServer", "ReceivedRequest"),
    "deemster.testing.obedient_model": ("ObedientModel",),
    "deemster.testing.server_faults": ("FAULTS",),
    "deemster.testing.server_replies": ("ChatMessages",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
