"""Everything that talks to a chat or embedding model: clients, and the gateway through which every request goes."""

from deemster.models.answer_cache import Cache
from deemster.models.budget import Budget
from deemster.models.fake_models import FakeChat, FakeEmbedding
from deemster.models.gateway import Gateway
from deemster.models.model_client import ChatClient, EmbeddingClient, ModelFailure
from deemster.models.model_roles import Role, as_role, missing_role_message
from deemster.models.models_section import read_models
from deemster.models.price import Price

__all__ = [
    "Budget",
    "Cache",
    "ChatClient",
    "EmbeddingClient",
    "FakeChat",
    "FakeEmbedding",
    "Gateway",
    "ModelFailure",
    "Price",
    "Role",
    "as_role",
    "missing_role_message",
    "read_models",
]
