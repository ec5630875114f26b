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
    "dataset": ("Dataset", "RubricDataset", "RubricItem", "Votes"),
    "errors": (
        "ConfigurationError",
        "DatasetError",
        "DeemsterError",
        "InputError",
        "LeaseError",
        "MissingExtraError",
        "OutputsError",
        "ReportError",
        "RubricError",
        "StoreError",
        "VotesError",
    ),
    "evaluation": ("evaluate", "evaluate_async"),
    "evaluation.grading": ("grade", "grade_async"),
    "evaluation.improving": ("improve_rubric",),
    "evaluation.recorder": ("Recorder",),
    "evaluation.shelf": ("Record",),
    "evaluation.traffic": ("monitor",),
    "judges.answer": ("LlmAsJudge",),
    "judges.claims": ("ClaimFaithfulness",),
    "judges.geval": ("GEval",),
    "judges.grading.cascade": ("Cascade",),
    "judges.grading.fewshot": ("FewShot",),
    "judges.grading.grader": ("CriterionGrader",),
    "judges.grading.grades": ("CriterionGrading", "Grading", "ItemGrading", "Vote"),
    "judges.grading.jury": ("Judge",),
    "judges.pairwise": ("Pairwise",),
    "judges.refusal": ("RefusalQuality",),
    "metrics.citation": ("CitationGroundedness",),
    "metrics.containment": ("AnswerContainmentAtK",),
    "metrics.function": ("metric",),
    "metrics.leaves": ("JsonMatch",),
    "metrics.lexical": (
        "Contains",
        "ContainsAll",
        "ContainsAny",
        "ExactMatch",
        "LengthWithin",
        "Levenshtein",
        "StartsWith",
    ),
    "metrics.limits": ("CostBelow", "LatencyBelow"),
    "metrics.number": ("NumericClose",),
    "metrics.ordinal": ("OrdinalDistance",),
    "metrics.overlap": ("RougeL", "TokenF1"),
    "metrics.regex": ("Regex",),
    "metrics.retrieval": (
        "RetrievalF1AtK",
        "RetrievalHitAtK",
        "RetrievalMap",
        "RetrievalMrr",
        "RetrievalNdcgAtK",
        "RetrievalPrecisionAtK",
        "RetrievalRPrecision",
        "RetrievalRecallAtK",
    ),
    "metrics.semantic": ("BertscoreLike", "CosineEmbedding"),
    "metrics.structure": ("JsonSchema", "JsonValid"),
    "metrics.trajectory": (
        "ApprovalGated",
        "NoPendingApprovals",
        "StepsBelow",
        "ToolCallOrder",
        "ToolCalled",
        "ToolCalledWith",
        "ToolNotCalled",
    ),
    "metrics.translation": ("Bleu", "Chrf"),
    "model": ("ChatClient", "EmbeddingClient", "FakeChat", "FakeEmbedding", "Price", "Role", "Trouble"),
    "model.openai": ("OpenAIChat", "OpenAIEmbedding"),
    "records": (
        "Answer",
        "Ask",
        "Embed",
        "Invocation",
        "Message",
        "Metric",
        "MetricScore",
        "Output",
        "Problem",
        "Sample",
        "Scorer",
        "Silence",
        "Token",
        "ToolCall",
        "Trajectory",
        "Unscored",
        "Usage",
        "Vectors",
    ),
    "report": ("Report", "load_report"),
    "report.improvement": ("Improvement",),
    "rubrics": ("Check", "Criterion", "LengthPenalty", "Option", "Rubric", "Scoring", "Section", "rubric_score"),
    "run.catalog": ("parse",),
    "run.rubric": ("RubricMetric",),
    "summary": (
        "AggregationResult",
        "AtLeast",
        "Critical",
        "GeometricAggregator",
        "MetricResult",
        "MetricsAggregator",
        "MinAggregator",
        "WeightedMetricsAggregator",
    ),
    "target.command": ("CommandTarget",),
    "target.http": ("HttpTarget",),
    "target.python": ("PythonTarget",),
    "target.saved": ("SavedOutputs",),
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
