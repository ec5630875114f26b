"""Everything that talks to a chat or embedding model: clients, gateway, cache, limits, retries, price."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
