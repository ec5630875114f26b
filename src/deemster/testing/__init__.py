"""What tests of applications and plug-ins need: fake models, a model server that misbehaves, golden files.

>>> from deemster.testing import ModelServer
>>> with ModelServer() as server:
...     server.play(["500", "429=2", "reset"])  # the next three requests fail in these ways
...     server.url.startswith("http://127.0.0.1:")
True
"""

from deemster import lazy_names

_FILES = {
    "deemster.models.clock": ("FrozenClock",),
    "deemster.models.fake_models": ("FakeChat", "FakeEmbedding"),
    "deemster.testing.golden_file": ("compare_with_golden",),
    "deemster.testing.model_server": ("ModelServer", "ReceivedRequest"),
    "deemster.testing.obedient_model": ("ObedientModel",),
    "deemster.testing.server_faults": ("FAULTS",),
    "deemster.testing.server_replies": ("ChatMessages",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
