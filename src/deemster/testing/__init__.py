"""What tests of applications and plug-ins need: fake models, a model server that misbehaves, golden files.

>>> from deemster.testing import ModelServer
>>> with ModelServer() as server:
...     server.play(["500", "429=2", "reset"])  # the next three requests fail in these ways
...     server.url.startswith("http://127.0.0.1:")
True
"""

from deemster import load_lazily

load_lazily(__name__)
