"""Imports a `promptfooconfig.yaml`: its tests become a golden dataset, its assertions the metrics of a suite."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deemster.datasets import Dataset
from deemster.errors import InputError, Issue, visible
from deemster.formats.atomic_write import write_aside
from deemster.formats.canonical_json import flow
from deemster.formats.json_values import is_number
from deemster.integrations.run_builder import as_map, as_text
from deemster.integrations.source_file import SourceFile

DATASET, SUITE = "dataset.yml", "suite.yml"
# Assertions whose value is the expected output, with the metric that says the same.
_BY_REFERENCE: dict[str, tuple[str, dict[str, Any]]] = {
    "equals": ("exact-match", {}),
    "contains": ("contains", {}),
    "icontains": ("contains", {"normalize": ["casefold"]}),
    "starts-with": ("starts-with", {}),
    "regex": ("regex", {"syntax": "plain"}),
    "similar": ("cosine-embedding", {}),
    "factuality": ("llm-as-judge", {}),
    "model-graded-factuality": ("llm-as-judge", {}),
}
_RUBRICS = ("llm-rubric", "g-eval")
_TEST_KEYS = frozenset({"description", "vars", "assert", "metadata", "options"})
_CONFIG_KEYS = frozenset({"description", "tests", "defaultTest"})
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_MOST_TESTS = 100_000


class SuiteFiles(NamedTuple):
    """What a config became.

    Attributes:
        dataset: The samples.
        suite: The text of the suite file.
        left_out: What the config has and no file holds, one sentence each.
    """

    dataset: Dataset
    suite: str
    left_out: tuple[str, ...]

    def write(self, folder: str | Path) -> list[Path]:
        """Write `dataset.yml` and `suite.yml`; the paths.

        Raises:
            InputError: One of them is there already, or cannot be written.
        """
        paths = [Path(folder, DATASET), Path(folder, SUITE)]
        for path in paths:
            if path.exists():
                raise InputError(Issue("This file is there already, and is not changed.", str(path)))
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.dataset.save(paths[0])
            write_aside(paths[1], [self.suite.encode()])
        except OSError as error:
            raise InputError(Issue(f"It cannot be written: {error.strerror or error}.", str(folder))) from None
        return paths


def is_promptfoo_config(source: SourceFile) -> bool:
    """Whether a file is a config of promptfoo."""
    value = None if source.is_folder or source.is_zip else source.value
    return isinstance(value, dict) and "results" not in value and "prompts" in value and "providers" in value


def read_promptfoo_config(source: SourceFile) -> SuiteFiles:
    """The dataset and the suite of a config.

    Raises:
        InputError: It has no tests of its own, or something in them cannot be kept.
    """
    config = as_map(source.value)
    reader = _ConfigReader(as_text(config.get("description")) or source.path.stem)
    for key in config:
        if key not in _CONFIG_KEYS:
            reader.left_out[f"`{visible(str(key), limit=80)}` of the config"] += 1
    tests = config.get("tests")
    for test in tests if isinstance(tests, list) else [tests]:
        if isinstance(test, dict):
            reader.add_test(test, as_map(config.get("defaultTest")))
        elif test is not None:
            reader.left_out[f"tests in another file, {visible(str(test), limit=80)}"] += 1
    if not reader.samples:
        raise InputError(
            Issue("The config has no tests of its own. Tests in other files are not read.", source.reading.file)
        )
    return reader.files()


class _ConfigReader:
    """Collects samples and metrics."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.samples: list[dict[str, Any]] = []
        self.left_out: Counter[str] = Counter()
        self._metrics: dict[str, tuple[str, dict[str, Any]]] = {}
        self._rubrics: dict[str, str] = {}
        self._ids: Counter[str] = Counter()

    def add_test(self, test: Mapping[str, Any], default: Mapping[str, Any]) -> None:
        """Add a test: a sample for each combination of its variables' values."""
        for key in test:
            if key not in _TEST_KEYS:
                self.left_out[f"`{visible(str(key), limit=80)}` of a test"] += 1
        variables = {**as_map(default.get("vars")), **as_map(test.get("vars"))}
        asserted = [
            each
            for part in (default, test)
            for each in (part.get("assert") or ())
            if isinstance(part.get("assert"), list)
        ]
        for values in _combinations(variables):
            if len(self.samples) >= _MOST_TESTS:
                raise InputError(f"The tests and the lists in their variables make more than {_MOST_TESTS:,} samples.")
            named = as_text(test.get("description")) or f"test-{len(self.samples) + 1}"
            self._ids[named] += 1
            sample: dict[str, Any] = {
                "id": named if self._ids[named] == 1 else f"{named}-{self._ids[named]}",
                "input": values,
                "metadata": {**as_map(default.get("metadata")), **as_map(test.get("metadata"))},
            }
            for assertion in map(as_map, asserted):
                self._add_assertion(sample, assertion)
            self.samples.append({"expected_output": None, **sample})

    def _add_assertion(self, sample: dict[str, Any], assertion: Mapping[str, Any]) -> None:
        kind, value = str(assertion.get("type")), _render(assertion.get("value"), sample["input"])
        metadata = sample["metadata"]
        threshold: Any = assertion.get("threshold")
        if kind in _BY_REFERENCE:
            if sample.setdefault("expected_output", value) != value:
                self.left_out[f"an assertion `{kind}` with a second expected output: a sample has one"] += 1
                return
            metric, options = _BY_REFERENCE[kind]
            bound = {"threshold": threshold} if is_number(threshold) and 0 <= threshold <= 1 else {}
            self._declare(sample, kind, metric, {**options, **bound})
        elif kind == "is-json" and isinstance(value, dict):
            metadata["json_schema"] = value
            self._metrics["json-schema"] = "json-schema", {"where": "auto"}
        elif kind == "is-json" and value is None:
            self._declare(sample, kind, "json-valid", {})
        elif kind in ("latency", "cost") and is_number(threshold):
            key = "max_latency_ms" if kind == "latency" else "max_cost_usd"
            metadata[key] = threshold
            self._metrics[kind] = f"{kind}-below", {"where": "auto"}
        elif kind in _RUBRICS and isinstance(value, str):
            called = self._rubrics.setdefault(value, f"{kind}-{len(self._rubrics) + 1}")
            self._declare(sample, called, "g-eval", {"criteria": value, "fields": ["input", "actual_output"]})
        else:
            why = " (code is not run)" if kind in ("javascript", "python", "ruby", "webhook") else ""
            self.left_out[f"an assertion `{visible(kind, limit=40)}`: there is no such metric{why}"] += 1

    def _declare(self, sample: dict[str, Any], called: str, metric: str, options: Mapping[str, Any]) -> None:
        """Note a metric, and that it applies to a sample."""
        flag = f"assert_{re.sub(r'[^a-z0-9]+', '_', called.lower())}"
        sample["metadata"][flag] = True
        self._metrics[called] = metric, {"name": called, **options, "where": {"has": [flag]}}

    def files(self) -> SuiteFiles:
        """The dataset and the suite."""
        dataset = Dataset(self.samples, name=self.name)
        lines = [
            "# Made from a config of promptfoo. Add your application as `target`, or run it with `--outputs FILE`.",
            "schema_version: deemster.suite.v1",
            f"name: {flow(self.name)}",
            f"dataset: {DATASET}",
            "metrics:",
            *(f"  - {metric}: {flow(options)}" for metric, options in self._metrics.values()),
        ]
        if not self._metrics:
            raise InputError("No assertion of the config has a metric here, so there is no suite to write.")
        left_out = (what if count == 1 else f"{what} ({count:,} times)" for what, count in self.left_out.items())
        return SuiteFiles(dataset, "\n".join(lines) + "\n", tuple(left_out))


def _combinations(variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """As promptfoo does, a test for each combination of the values of variables that are lists."""
    values = [value if isinstance(value, list) and value else [value] for value in variables.values()]
    for chosen in itertools.product(*values):
        yield dict(zip(map(str, variables), chosen, strict=True))


def _render(value: Any, variables: Mapping[str, Any]) -> Any:
    """A value with `{{name}}` replaced by the variable of that name, once; other templates stay as they are."""
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        found = variables.get(match[1])
        return str(found) if isinstance(found, (str, int, float)) else match[0]

    return _PLACE.sub(replace, value)
