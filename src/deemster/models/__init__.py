"""Everything that talks to a chat or embedding model: clients, gateway, cache, limits, retries, price."""

from deemster import load_lazily

load_lazily(__name__)
