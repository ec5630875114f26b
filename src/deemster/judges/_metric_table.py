"""Every metric by family, with its class; made from the classes: see website/metric_declarations.py."""

from __future__ import annotations

TABLE: dict[str, dict[str, str]] = {
    "lexical": {
        "exact-match": "metrics.text_match:ExactMatch",
        "contains": "metrics.text_match:Contains",
        "contains-any": "metrics.text_match:ContainsAny",
        "contains-all": "metrics.text_match:ContainsAll",
        "starts-with": "metrics.text_match:StartsWith",
        "regex": "metrics.regex_match:Regex",
        "rouge-l": "metrics.rouge_and_token_f1:RougeL",
        "token-f1": "metrics.rouge_and_token_f1:TokenF1",
        "bleu": "metrics.bleu_and_chrf:Bleu",
        "chrf": "metrics.bleu_and_chrf:Chrf",
        "levenshtein": "metrics.text_match:Levenshtein",
        "length-within": "metrics.text_match:LengthWithin",
        "json-valid": "metrics.json_validity:JsonValid",
        "json-schema": "metrics.json_validity:JsonSchema",
        "json-match": "metrics.json_match:JsonMatch",
        "numeric-close": "metrics.numeric_close:NumericClose",
    },
    "retrieval": {
        "retrieval-hit-at-k": "metrics.retrieval_metrics:RetrievalHitAtK",
        "retrieval-recall-at-k": "metrics.retrieval_metrics:RetrievalRecallAtK",
        "retrieval-precision-at-k": "metrics.retrieval_metrics:RetrievalPrecisionAtK",
        "retrieval-f1-at-k": "metrics.retrieval_metrics:RetrievalF1AtK",
        "retrieval-mrr": "metrics.retrieval_metrics:RetrievalMrr",
        "retrieval-map": "metrics.retrieval_metrics:RetrievalMap",
        "retrieval-r-precision": "metrics.retrieval_metrics:RetrievalRPrecision",
        "retrieval-ndcg-at-k": "metrics.retrieval_metrics:RetrievalNdcgAtK",
        "answer-containment-at-k": "metrics.answer_containment:AnswerContainmentAtK",
    },
    "ordinal-citation": {
        "ordinal-distance": "metrics.ordinal_distance:OrdinalDistance",
        "citation-groundedness": "metrics.citation_groundedness:CitationGroundedness",
    },
    "limits": {
        "latency-below": "metrics.latency_and_cost:LatencyBelow",
        "cost-below": "metrics.latency_and_cost:CostBelow",
    },
    "trajectory": {
        "tool-called": "metrics.trajectory_metrics:ToolCalled",
        "tool-not-called": "metrics.trajectory_metrics:ToolNotCalled",
        "tool-called-with": "metrics.trajectory_metrics:ToolCalledWith",
        "tool-call-order": "metrics.trajectory_metrics:ToolCallOrder",
        "steps-below": "metrics.trajectory_metrics:StepsBelow",
        "no-pending-approvals": "metrics.trajectory_metrics:NoPendingApprovals",
        "approval-gated": "metrics.trajectory_metrics:ApprovalGated",
    },
    "safety": {
        "attack-resisted": "metrics.attack_resisted:AttackResisted",
    },
    "semantic": {
        "cosine-embedding": "metrics.semantic_similarity:CosineEmbedding",
        "bertscore-like": "metrics.semantic_similarity:BertscoreLike",
    },
    "judge": {
        "llm-as-judge": "judges.llm_as_judge:LlmAsJudge",
        "refusal-quality": "judges.refusal_quality:RefusalQuality",
        "pairwise": "judges.pairwise:Pairwise",
        "g-eval": "judges.geval:GEval",
        "claim-faithfulness": "judges.claim_faithfulness:ClaimFaithfulness",
        "rubric": "judges.rubric_metric:RubricMetric",
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
PLACES = {alias: place for group in TABLE.values() for alias, place in group.items()}
