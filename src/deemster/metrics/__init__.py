"""Metrics: scorers that need no judge."""

from deemster import lazy_names

_FILES = {
    "deemster.metrics.answer_containment": ("AnswerContainmentAtK",),
    "deemster.metrics.attack_resisted": ("AttackResisted",),
    "deemster.metrics.bleu_and_chrf": ("Bleu", "Chrf"),
    "deemster.metrics.citation_groundedness": ("CitationGroundedness",),
    "deemster.metrics.function_metric": ("metric",),
    "deemster.metrics.json_match": ("JsonMatch",),
    "deemster.metrics.json_validity": ("JsonSchema", "JsonValid"),
    "deemster.metrics.latency_and_cost": ("CostBelow", "LatencyBelow"),
    "deemster.metrics.numeric_close": ("NumericClose",),
    "deemster.metrics.ordinal_distance": ("OrdinalDistance",),
    "deemster.metrics.regex_match": ("Regex",),
    "deemster.metrics.retrieval_metrics": (
        "RetrievalF1AtK",
        "RetrievalHitAtK",
        "RetrievalMap",
        "RetrievalMrr",
        "RetrievalNdcgAtK",
        "RetrievalPrecisionAtK",
        "RetrievalRPrecision",
        "RetrievalRecallAtK",
    ),
    "deemster.metrics.rouge_and_token_f1": ("RougeL", "TokenF1"),
    "deemster.metrics.semantic_similarity": ("BertscoreLike", "CosineEmbedding"),
    "deemster.metrics.text_match": (
        "Contains",
        "ContainsAll",
        "ContainsAny",
        "ExactMatch",
        "LengthWithin",
        "Levenshtein",
        "StartsWith",
    ),
    "deemster.metrics.trajectory_metrics": (
        "ApprovalGated",
        "NoPendingApprovals",
        "StepsBelow",
        "ToolCallOrder",
        "ToolCalled",
        "ToolCalledWith",
        "ToolNotCalled",
    ),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
