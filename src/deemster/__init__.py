"""deemster judges what language-model applications produce, and judges the judges.

    import deemster as dm

    report = dm.evaluate("golden.yml", outputs="answers.yml", metrics=["exact-match", "rouge-l"])
    print(report.to_markdown())

Every name is loaded when it is first used: importing the package loads nothing but this file.
"""

import importlib

__version__ = "0.1.0"

_ROOMS = {
    "alignment": (
        "JudgeComparison",
        "MetricsResult",
        "annotator_tests",
        "calibrate_cascade",
        "compare_judges",
        "compute_metrics",
        "latent_truth",
    ),
    "datasets": ("Dataset", "RubricDataset", "RubricItem", "Votes"),
    "errors": (
        "ConfigurationError",
        "DatasetError",
        "DeemsterError",
        "InputError",
        "Issue",
        "LeaseError",
        "MissingExtraError",
        "OutputsError",
        "ReportError",
        "RubricError",
        "StoreError",
        "VotesError",
    ),
    "runs.evaluate_dataset": ("evaluate", "evaluate_async"),
    "runs.grade_dataset": ("grade", "grade_async"),
    "runs.improve_rubric": ("improve_rubric",),
    "runs.recorder": ("Recorder",),
    "runs.recording_writer": ("Record",),
    "runs.monitor_traffic": ("monitor",),
    "judges.llm_as_judge": ("LlmAsJudge",),
    "judges.claim_faithfulness": ("ClaimFaithfulness",),
    "judges.geval": ("GEval",),
    "judges.judge_cascade": ("Cascade",),
    "judges.few_shot": ("FewShot",),
    "judges.criterion_grader": ("CriterionGrader",),
    "judges.grading_result": ("CriterionGrading", "Grading", "ItemGrading", "Vote"),
    "judges.grading_judge": ("Judge",),
    "judges.pairwise": ("Pairwise",),
    "judges.refusal_quality": ("RefusalQuality",),
    "metrics.citation_groundedness": ("CitationGroundedness",),
    "metrics.answer_containment": ("AnswerContainmentAtK",),
    "metrics.function_metric": ("metric",),
    "metrics.json_match": ("JsonMatch",),
    "metrics.text_match": (
        "Contains",
        "ContainsAll",
        "ContainsAny",
        "ExactMatch",
        "LengthWithin",
        "Levenshtein",
        "StartsWith",
    ),
    "metrics.latency_and_cost": ("CostBelow", "LatencyBelow"),
    "metrics.numeric_close": ("NumericClose",),
    "metrics.ordinal_distance": ("OrdinalDistance",),
    "metrics.token_overlap": ("RougeL", "TokenF1"),
    "metrics.regex_match": ("Regex",),
    "metrics.retrieval_metrics": (
        "RetrievalF1AtK",
        "RetrievalHitAtK",
        "RetrievalMap",
        "RetrievalMrr",
        "RetrievalNdcgAtK",
        "RetrievalPrecisionAtK",
        "RetrievalRPrecision",
        "RetrievalRecallAtK",
    ),
    "metrics.semantic_similarity": ("BertscoreLike", "CosineEmbedding"),
    "metrics.json_validity": ("JsonSchema", "JsonValid"),
    "metrics.trajectory_metrics": (
        "ApprovalGated",
        "NoPendingApprovals",
        "StepsBelow",
        "ToolCallOrder",
        "ToolCalled",
        "ToolCalledWith",
        "ToolNotCalled",
    ),
    "metrics.bleu_and_chrf": ("Bleu", "Chrf"),
    "models": ("ChatClient", "EmbeddingClient", "FakeChat", "FakeEmbedding", "Price", "Role", "ModelFailure"),
    "models.openai_client": ("OpenAIChat", "OpenAIEmbedding"),
    "records": (
        "Answer",
        "Ask",
        "Embed",
        "Invocation",
        "Message",
        "Metric",
        "MetricScore",
        "NoAnswer",
        "Output",
        "Sample",
        "Scorer",
        "Token",
        "ToolCall",
        "Trajectory",
        "Unscored",
        "Usage",
        "Vectors",
    ),
    "report": ("Report", "load_report"),
    "report.improvement_report": ("Improvement",),
    "rubrics": ("Check", "Criterion", "LengthPenalty", "Option", "Rubric", "Scoring", "Section", "rubric_score"),
    "runs.metric_catalog": ("parse",),
    "runs.rubric_metric": ("RubricMetric",),
    "results": (
        "AggregationResult",
        "AtLeast",
        "Critical",
        "GeometricAggregator",
        "MetricResult",
        "MetricsAggregator",
        "MinAggregator",
        "WeightedMetricsAggregator",
    ),
    "targets.command_target": ("CommandTarget",),
    "targets.http_target": ("HttpTarget",),
    "targets.python_target": ("PythonTarget",),
    "targets.saved_outputs": ("SavedOutputs",),
}
# Rooms whose functions are used under the room's name: `dm.stats.cohen_kappa(a, b)`.
_OPEN = ("stats",)
_PLACES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_PLACES)  # noqa: PLE0605 - `__init__.pyi` spells the names out for type checkers


def __getattr__(name: str) -> object:
    if name in _OPEN:
        return importlib.import_module(f"deemster.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module `deemster` has no attribute `{name}`")
    value = getattr(importlib.import_module(f"deemster.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *_OPEN, "__version__"]
