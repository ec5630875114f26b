"""The literal table: every metric of this package, by family, and where it lives."""

from __future__ import annotations

TABLE: dict[str, dict[str, str]] = {
    "lexical": {
        "exact-match": "lexical:ExactMatch",
        "contains": "lexical:Contains",
        "contains-any": "lexical:ContainsAny",
        "contains-all": "lexical:ContainsAll",
        "starts-with": "lexical:StartsWith",
        "regex": "regex:Regex",
        "rouge-l": "overlap:RougeL",
        "token-f1": "overlap:TokenF1",
        "bleu": "translation:Bleu",
        "chrf": "translation:Chrf",
        "levenshtein": "lexical:Levenshtein",
        "length-within": "lexical:LengthWithin",
        "json-valid": "structure:JsonValid",
        "json-schema": "structure:JsonSchema",
        "json-match": "leaves:JsonMatch",
        "numeric-close": "number:NumericClose",
    },
    "retrieval": {
        "retrieval-hit-at-k": "retrieval:RetrievalHitAtK",
        "retrieval-recall-at-k": "retrieval:RetrievalRecallAtK",
        "retrieval-precision-at-k": "retrieval:RetrievalPrecisionAtK",
        "retrieval-f1-at-k": "retrieval:RetrievalF1AtK",
        "retrieval-mrr": "retrieval:RetrievalMrr",
        "retrieval-map": "retrieval:RetrievalMap",
        "retrieval-r-precision": "retrieval:RetrievalRPrecision",
        "retrieval-ndcg-at-k": "retrieval:RetrievalNdcgAtK",
        "answer-containment-at-k": "containment:AnswerContainmentAtK",
    },
    "ordinal-citation": {
        "ordinal-distance": "ordinal:OrdinalDistance",
        "citation-groundedness": "citation:CitationGroundedness",
    },
    "limits": {
        "latency-below": "limits:LatencyBelow",
        "cost-below": "limits:CostBelow",
    },
    "trajectory": {
        "tool-called": "trajectory:ToolCalled",
        "tool-not-called": "trajectory:ToolNotCalled",
        "tool-called-with": "trajectory:ToolCalledWith",
        "tool-call-order": "trajectory:ToolCallOrder",
        "steps-below": "trajectory:StepsBelow",
        "no-pending-approvals": "trajectory:NoPendingApprovals",
        "approval-gated": "trajectory:ApprovalGated",
    },
}
SHORT = {
    "hit": "retrieval-hit-at-k",
    "recall": "retrieval-recall-at-k",
    "precision": "retrieval-precision-at-k",
    "f1": "retrieval-f1-at-k",
    "mrr": "retrieval-mrr",
    "map": "retrieval-map",
    "rprec": "retrieval-r-precision",
    "ndcg": "retrieval-ndcg-at-k",
    "containment": "answer-containment-at-k",
}
CORE = frozenset(
    {
        "exact-match",
        "contains",
        "regex",
        "rouge-l",
        "retrieval-hit-at-k",
        "retrieval-recall-at-k",
        "retrieval-mrr",
        "retrieval-ndcg-at-k",
        "answer-containment-at-k",
        "ordinal-distance",
        "citation-groundedness",
    }
)
PLACES = {alias: place for group in TABLE.values() for alias, place in group.items()}
