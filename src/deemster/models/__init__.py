"""Everything that talks to a chat or embedding model: clients, gateway, cache, limits, retries, price."""

from deemster import lazy_names

_FILES = {
    "deemster.models.answer_cache": ("Cache",),
    "deemster.models.budget": ("Budget",),
    "deemster.models.fake_models": ("FakeChat", "FakeEmbedding"),
    "deemster.models.gateway": ("Gateway",),
    "deemster.models.model_client": ("ChatClient", "EmbeddingClient", "ModelFailure"),
    "deemster.models.model_roles": ("Role", "as_role", "missing_role_message"),
    "deemster.models.models_section": ("read_models",),
    "deemster.models.openai_client": ("OpenAIChat", "OpenAIEmbedding"),
    "deemster.models.price": ("Price",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
