from collections.abc import Callable

from deemster import agreement as agreement
from deemster import audit as audit
from deemster import comparison as comparison
from deemster import errors as errors
from deemster import grading as grading
from deemster import judges as judges
from deemster import metrics as metrics
from deemster import models as models
from deemster import records as records
from deemster import report as report
from deemster import results as results
from deemster import rubrics as rubrics
from deemster import stats as stats
from deemster import targets as targets
from deemster import testing as testing
from deemster.agreement import MetricsResult as MetricsResult
from deemster.agreement import align as align
from deemster.agreement import calibrate_cascade as calibrate_cascade
from deemster.agreement import compare_judges as compare_judges
from deemster.agreement import compute_metrics as compute_metrics
from deemster.calibration.calibrate_run import calibrate as calibrate
from deemster.comparison import load_comparison as load_comparison
from deemster.comparison import load_report as load_report
from deemster.comparison.compare_runs import compare as compare
from deemster.datasets import Dataset as Dataset
from deemster.datasets import RubricDataset as RubricDataset
from deemster.datasets import RubricItem as RubricItem
from deemster.datasets import Votes as Votes
from deemster.errors import ConfigurationError as ConfigurationError
from deemster.errors import DeemsterError as DeemsterError
from deemster.errors import InputError as InputError
from deemster.errors import Issue as Issue
from deemster.errors import StoreError as StoreError
from deemster.evaluation.evaluate_dataset import evaluate as evaluate
from deemster.evaluation.evaluate_dataset import evaluate_async as evaluate_async
from deemster.grading.grade_dataset import grade as grade
from deemster.grading.grade_dataset import grade_async as grade_async
from deemster.grading.improve_rubric import improve_rubric as improve_rubric
from deemster.judges import CriterionGrader as CriterionGrader
from deemster.judges import Judge as Judge
from deemster.judges import Vote as Vote
from deemster.judges.metric_catalog import parse_metric as parse_metric
from deemster.judges.rubric_metric import RubricMetric as RubricMetric
from deemster.metrics import metric as metric
from deemster.monitoring.monitor_traffic import monitor as monitor
from deemster.monitoring.recorder import Recorder as Recorder
from deemster.monitoring.recording_writer import Record as Record
from deemster.records import Invocation as Invocation
from deemster.records import Metric as Metric
from deemster.records import MetricScore as MetricScore
from deemster.records import Output as Output
from deemster.records import Sample as Sample
from deemster.records import Scorer as Scorer
from deemster.records import Unscored as Unscored
from deemster.records import Usage as Usage
from deemster.report import Grading as Grading
from deemster.report import Report as Report
from deemster.rubrics import Criterion as Criterion
from deemster.rubrics import Option as Option
from deemster.rubrics import Rubric as Rubric

__version__: str

def declared_names(package: str) -> dict[str, str]: ...
def lazy_names(package: str) -> Callable[[str], object]: ...
