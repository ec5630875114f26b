"""Everything that talks to a chat or embedding model: clients, and the gateway through which every request goes."""

from deemster.model.budget import Budget
from deemster.model.cache import Cache
from deemster.model.client import ChatClient, EmbeddingClient
from deemster.model.fake import FakeChat, FakeEmbedding
from deemster.model.gateway import Gateway
from deemster.model.price import Price
from deemster.model.roles import Role, missing_role, role_of
from deemster.model.section import read_models
from deemster.model.trouble import Trouble

__all__ = [
    "Budget",
    "Cache",
    "ChatClient",
    "EmbeddingClient",
    "FakeChat",
    "FakeEmbedding",
    "Gateway",
    "Price",
    "Role",
    "Trouble",
    "missing_role",
    "read_models",
    "role_of",
]
