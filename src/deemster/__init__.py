"""deemster judges what language-model applications produce, and judges the judges.

    import deemster as dm

    report = dm.evaluate("golden.yml", outputs="answers.yml", metrics=["exact-match", "rouge-l"])
    print(report.to_markdown())

The root holds the verbs and the main nouns; families such as `dm.metrics`, `dm.judges` and `dm.stats` hold the rest.
Every name is loaded when it is first used: importing the package loads nothing but this file.
"""

import importlib
import sys

__version__ = "0.1.0"

_FILES = {
    "deemster.alignment": ("MetricsResult", "align", "calibrate_cascade", "compare_judges", "compute_metrics"),
    "deemster.datasets": ("Dataset", "RubricDataset", "RubricItem", "Votes"),
    "deemster.errors": ("ConfigurationError", "DeemsterError", "InputError", "Issue", "StoreError"),
    "deemster.judges": ("CriterionGrader", "Grading", "Judge", "Vote"),
    "deemster.metrics": ("metric",),
    "deemster.records": ("Invocation", "Metric", "MetricScore", "Output", "Sample", "Scorer", "Unscored", "Usage"),
    "deemster.report": ("Report", "load_comparison", "load_report"),
    "deemster.rubrics": ("Criterion", "Option", "Rubric"),
    "deemster.runs.calibrate_run": ("calibrate",),
    "deemster.runs.compare_runs": ("compare",),
    "deemster.runs.evaluate_dataset": ("evaluate", "evaluate_async"),
    "deemster.runs.grade_dataset": ("grade", "grade_async"),
    "deemster.runs.improve_rubric": ("improve_rubric",),
    "deemster.runs.metric_catalog": ("parse_metric",),
    "deemster.runs.monitor_traffic": ("monitor",),
    "deemster.runs.recorder": ("Recorder",),
    "deemster.runs.recording_writer": ("Record",),
    "deemster.runs.rubric_metric": ("RubricMetric",),
}
FAMILIES = (
    "alignment",
    "audit",
    "errors",
    "judges",
    "metrics",
    "models",
    "records",
    "report",
    "results",
    "rubrics",
    "stats",
    "targets",
    "testing",
)


def lazy_names(package: str, files: dict[str, tuple[str, ...]]) -> tuple[object, list[str]]:
    """Make a package load each of its names when it is first used.

    Args:
        package: The package's own name.
        files: The names of each module.

    Returns:
        The package's `__getattr__` and its `__all__`. A stub, `__init__.pyi`, tells type checkers the same.
    """
    modules = {name: module for module, names in files.items() for name in names}

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        value = getattr(importlib.import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, sorted(modules)


_load_name, __all__ = lazy_names(__name__, _FILES)


def __getattr__(name: str) -> object:
    return importlib.import_module(f"deemster.{name}") if name in FAMILIES else _load_name(name)


def __dir__() -> list[str]:
    return [*__all__, *FAMILIES, "__version__"]
