"""The literal table: every metric of this package, by family, and where it lives."""

from __future__ import annotations

TABLE: dict[str, dict[str, str]] = {
    "lexical": {
        "exact-match": "metrics.lexical:ExactMatch",
        "contains": "metrics.lexical:Contains",
        "contains-any": "metrics.lexical:ContainsAny",
        "contains-all": "metrics.lexical:ContainsAll",
        "starts-with": "metrics.lexical:StartsWith",
        "regex": "metrics.regex:Regex",
        "rouge-l": "metrics.overlap:RougeL",
        "token-f1": "metrics.overlap:TokenF1",
        "bleu": "metrics.translation:Bleu",
        "chrf": "metrics.translation:Chrf",
        "levenshtein": "metrics.lexical:Levenshtein",
        "length-within": "metrics.lexical:LengthWithin",
        "json-valid": "metrics.structure:JsonValid",
        "json-schema": "metrics.structure:JsonSchema",
        "json-match": "metrics.leaves:JsonMatch",
        "numeric-close": "metrics.number:NumericClose",
    },
    "retrieval": {
        "retrieval-hit-at-k": "metrics.retrieval:RetrievalHitAtK",
        "retrieval-recall-at-k": "metrics.retrieval:RetrievalRecallAtK",
        "retrieval-precision-at-k": "metrics.retrieval:RetrievalPrecisionAtK",
        "retrieval-f1-at-k": "metrics.retrieval:RetrievalF1AtK",
        "retrieval-mrr": "metrics.retrieval:RetrievalMrr",
        "retrieval-map": "metrics.retrieval:RetrievalMap",
        "retrieval-r-precision": "metrics.retrieval:RetrievalRPrecision",
        "retrieval-ndcg-at-k": "metrics.retrieval:RetrievalNdcgAtK",
        "answer-containment-at-k": "metrics.containment:AnswerContainmentAtK",
    },
    "ordinal-citation": {
        "ordinal-distance": "metrics.ordinal:OrdinalDistance",
        "citation-groundedness": "metrics.citation:CitationGroundedness",
    },
    "limits": {
        "latency-below": "metrics.limits:LatencyBelow",
        "cost-below": "metrics.limits:CostBelow",
    },
    "trajectory": {
        "tool-called": "metrics.trajectory:ToolCalled",
        "tool-not-called": "metrics.trajectory:ToolNotCalled",
        "tool-called-with": "metrics.trajectory:ToolCalledWith",
        "tool-call-order": "metrics.trajectory:ToolCallOrder",
        "steps-below": "metrics.trajectory:StepsBelow",
        "no-pending-approvals": "metrics.trajectory:NoPendingApprovals",
        "approval-gated": "metrics.trajectory:ApprovalGated",
    },
    "semantic": {
        "cosine-embedding": "metrics.semantic:CosineEmbedding",
        "bertscore-like": "metrics.semantic:BertscoreLike",
    },
    "judge": {
        "llm-as-judge": "judges.answer:LlmAsJudge",
        "refusal-quality": "judges.refusal:RefusalQuality",
        "pairwise": "judges.pairwise:Pairwise",
        "g-eval": "judges.geval:GEval",
        "claim-faithfulness": "judges.claims:ClaimFaithfulness",
        "rubric": "run.rubric:RubricMetric",
    },
}
# Ready-made judges: an alias, and the metric that takes it as its `preset`.
PRESETS: dict[str, str] = {
    "completeness": "g-eval",
    "groundedness": "g-eval",
    "redundancy": "g-eval",
    "language-consistency": "g-eval",
    "refusal-alignment": "g-eval",
    "context-sufficiency": "g-eval",
    "faithfulness": "g-eval",
    "answer-relevancy": "g-eval",
    "context-precision": "g-eval",
    "context-recall": "g-eval",
    "coherence": "g-eval",
    "consistency": "g-eval",
    "fluency": "g-eval",
    "relevance": "g-eval",
    "query-completeness": "g-eval",
    "query-groundedness": "g-eval",
    "query-redundancy": "g-eval",
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
        "cosine-embedding",
        "bertscore-like",
        "retrieval-hit-at-k",
        "retrieval-recall-at-k",
        "retrieval-mrr",
        "retrieval-ndcg-at-k",
        "answer-containment-at-k",
        "ordinal-distance",
        "citation-groundedness",
        "llm-as-judge",
        "refusal-quality",
    }
)
PLACES = {alias: place for group in TABLE.values() for alias, place in group.items()}
