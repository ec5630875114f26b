from deemster import (
    stats as stats,
)
from deemster.alignment import (
    JudgeComparison as JudgeComparison,
)
from deemster.alignment import (
    MetricsResult as MetricsResult,
)
from deemster.alignment import (
    annotator_tests as annotator_tests,
)
from deemster.alignment import (
    calibrate_cascade as calibrate_cascade,
)
from deemster.alignment import (
    compare_judges as compare_judges,
)
from deemster.alignment import (
    compute_metrics as compute_metrics,
)
from deemster.alignment import (
    latent_truth as latent_truth,
)
from deemster.dataset import (
    Dataset as Dataset,
)
from deemster.dataset import (
    RubricDataset as RubricDataset,
)
from deemster.dataset import (
    RubricItem as RubricItem,
)
from deemster.dataset import (
    Votes as Votes,
)
from deemster.errors import (
    ConfigurationError as ConfigurationError,
)
from deemster.errors import (
    DatasetError as DatasetError,
)
from deemster.errors import (
    DeemsterError as DeemsterError,
)
from deemster.errors import (
    InputError as InputError,
)
from deemster.errors import (
    LeaseError as LeaseError,
)
from deemster.errors import (
    MissingExtraError as MissingExtraError,
)
from deemster.errors import (
    OutputsError as OutputsError,
)
from deemster.errors import (
    ReportError as ReportError,
)
from deemster.errors import (
    RubricError as RubricError,
)
from deemster.errors import (
    StoreError as StoreError,
)
from deemster.errors import (
    VotesError as VotesError,
)
from deemster.evaluation import (
    evaluate as evaluate,
)
from deemster.evaluation import (
    evaluate_async as evaluate_async,
)
from deemster.evaluation.grading import (
    grade as grade,
)
from deemster.evaluation.grading import (
    grade_async as grade_async,
)
from deemster.evaluation.improving import (
    improve_rubric as improve_rubric,
)
from deemster.evaluation.recorder import (
    Recorder as Recorder,
)
from deemster.evaluation.shelf import (
    Record as Record,
)
from deemster.evaluation.traffic import (
    monitor as monitor,
)
from deemster.judges.answer import (
    LlmAsJudge as LlmAsJudge,
)
from deemster.judges.claims import (
    ClaimFaithfulness as ClaimFaithfulness,
)
from deemster.judges.geval import (
    GEval as GEval,
)
from deemster.judges.grading.cascade import (
    Cascade as Cascade,
)
from deemster.judges.grading.fewshot import (
    FewShot as FewShot,
)
from deemster.judges.grading.grader import (
    CriterionGrader as CriterionGrader,
)
from deemster.judges.grading.grades import (
    CriterionGrading as CriterionGrading,
)
from deemster.judges.grading.grades import (
    Grading as Grading,
)
from deemster.judges.grading.grades import (
    ItemGrading as ItemGrading,
)
from deemster.judges.grading.grades import (
    Vote as Vote,
)
from deemster.judges.grading.jury import (
    Judge as Judge,
)
from deemster.judges.pairwise import (
    Pairwise as Pairwise,
)
from deemster.judges.refusal import (
    RefusalQuality as RefusalQuality,
)
from deemster.metrics.citation import (
    CitationGroundedness as CitationGroundedness,
)
from deemster.metrics.containment import (
    AnswerContainmentAtK as AnswerContainmentAtK,
)
from deemster.metrics.function import (
    metric as metric,
)
from deemster.metrics.leaves import (
    JsonMatch as JsonMatch,
)
from deemster.metrics.lexical import (
    Contains as Contains,
)
from deemster.metrics.lexical import (
    ContainsAll as ContainsAll,
)
from deemster.metrics.lexical import (
    ContainsAny as ContainsAny,
)
from deemster.metrics.lexical import (
    ExactMatch as ExactMatch,
)
from deemster.metrics.lexical import (
    LengthWithin as LengthWithin,
)
from deemster.metrics.lexical import (
    Levenshtein as Levenshtein,
)
from deemster.metrics.lexical import (
    StartsWith as StartsWith,
)
from deemster.metrics.limits import (
    CostBelow as CostBelow,
)
from deemster.metrics.limits import (
    LatencyBelow as LatencyBelow,
)
from deemster.metrics.number import (
    NumericClose as NumericClose,
)
from deemster.metrics.ordinal import (
    OrdinalDistance as OrdinalDistance,
)
from deemster.metrics.overlap import (
    RougeL as RougeL,
)
from deemster.metrics.overlap import (
    TokenF1 as TokenF1,
)
from deemster.metrics.regex import (
    Regex as Regex,
)
from deemster.metrics.retrieval import (
    RetrievalF1AtK as RetrievalF1AtK,
)
from deemster.metrics.retrieval import (
    RetrievalHitAtK as RetrievalHitAtK,
)
from deemster.metrics.retrieval import (
    RetrievalMap as RetrievalMap,
)
from deemster.metrics.retrieval import (
    RetrievalMrr as RetrievalMrr,
)
from deemster.metrics.retrieval import (
    RetrievalNdcgAtK as RetrievalNdcgAtK,
)
from deemster.metrics.retrieval import (
    RetrievalPrecisionAtK as RetrievalPrecisionAtK,
)
from deemster.metrics.retrieval import (
    RetrievalRecallAtK as RetrievalRecallAtK,
)
from deemster.metrics.retrieval import (
    RetrievalRPrecision as RetrievalRPrecision,
)
from deemster.metrics.semantic import (
    BertscoreLike as BertscoreLike,
)
from deemster.metrics.semantic import (
    CosineEmbedding as CosineEmbedding,
)
from deemster.metrics.structure import (
    JsonSchema as JsonSchema,
)
from deemster.metrics.structure import (
    JsonValid as JsonValid,
)
from deemster.metrics.trajectory import (
    ApprovalGated as ApprovalGated,
)
from deemster.metrics.trajectory import (
    NoPendingApprovals as NoPendingApprovals,
)
from deemster.metrics.trajectory import (
    StepsBelow as StepsBelow,
)
from deemster.metrics.trajectory import (
    ToolCalled as ToolCalled,
)
from deemster.metrics.trajectory import (
    ToolCalledWith as ToolCalledWith,
)
from deemster.metrics.trajectory import (
    ToolCallOrder as ToolCallOrder,
)
from deemster.metrics.trajectory import (
    ToolNotCalled as ToolNotCalled,
)
from deemster.metrics.translation import (
    Bleu as Bleu,
)
from deemster.metrics.translation import (
    Chrf as Chrf,
)
from deemster.model import (
    ChatClient as ChatClient,
)
from deemster.model import (
    EmbeddingClient as EmbeddingClient,
)
from deemster.model import (
    FakeChat as FakeChat,
)
from deemster.model import (
    FakeEmbedding as FakeEmbedding,
)
from deemster.model import (
    Price as Price,
)
from deemster.model import (
    Role as Role,
)
from deemster.model import (
    Trouble as Trouble,
)
from deemster.model.openai import (
    OpenAIChat as OpenAIChat,
)
from deemster.model.openai import (
    OpenAIEmbedding as OpenAIEmbedding,
)
from deemster.records import (
    Answer as Answer,
)
from deemster.records import (
    Ask as Ask,
)
from deemster.records import (
    Embed as Embed,
)
from deemster.records import (
    Invocation as Invocation,
)
from deemster.records import (
    Message as Message,
)
from deemster.records import (
    Metric as Metric,
)
from deemster.records import (
    MetricScore as MetricScore,
)
from deemster.records import (
    Output as Output,
)
from deemster.records import (
    Problem as Problem,
)
from deemster.records import (
    Sample as Sample,
)
from deemster.records import (
    Scorer as Scorer,
)
from deemster.records import (
    Silence as Silence,
)
from deemster.records import (
    Token as Token,
)
from deemster.records import (
    ToolCall as ToolCall,
)
from deemster.records import (
    Trajectory as Trajectory,
)
from deemster.records import (
    Unscored as Unscored,
)
from deemster.records import (
    Usage as Usage,
)
from deemster.records import (
    Vectors as Vectors,
)
from deemster.report import (
    Report as Report,
)
from deemster.report import (
    load_report as load_report,
)
from deemster.report.improvement import (
    Improvement as Improvement,
)
from deemster.rubrics import (
    Check as Check,
)
from deemster.rubrics import (
    Criterion as Criterion,
)
from deemster.rubrics import (
    LengthPenalty as LengthPenalty,
)
from deemster.rubrics import (
    Option as Option,
)
from deemster.rubrics import (
    Rubric as Rubric,
)
from deemster.rubrics import (
    Scoring as Scoring,
)
from deemster.rubrics import (
    Section as Section,
)
from deemster.rubrics import (
    rubric_score as rubric_score,
)
from deemster.run.catalog import (
    parse as parse,
)
from deemster.run.rubric import (
    RubricMetric as RubricMetric,
)
from deemster.summary import (
    AggregationResult as AggregationResult,
)
from deemster.summary import (
    AtLeast as AtLeast,
)
from deemster.summary import (
    Critical as Critical,
)
from deemster.summary import (
    GeometricAggregator as GeometricAggregator,
)
from deemster.summary import (
    MetricResult as MetricResult,
)
from deemster.summary import (
    MetricsAggregator as MetricsAggregator,
)
from deemster.summary import (
    MinAggregator as MinAggregator,
)
from deemster.summary import (
    WeightedMetricsAggregator as WeightedMetricsAggregator,
)
from deemster.target.command import (
    CommandTarget as CommandTarget,
)
from deemster.target.http import (
    HttpTarget as HttpTarget,
)
from deemster.target.python import (
    PythonTarget as PythonTarget,
)
from deemster.target.saved import (
    SavedOutputs as SavedOutputs,
)

__version__: str
