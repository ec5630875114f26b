"""Imports a `promptfooconfig.yaml`: its tests become a golden dataset, its assertions the metrics of a suite."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deemster.datasets import Dataset
from deemster.errors import InputError, Issue, visible
from deemster.formats.atomic_write import write_aside
from deemster.formats.json_values import is_number
from deemster.formats.yaml_flow import yaml_flow
from deemster.integrations.run_builder import as_map, as_text
from deemster.integrations.source_file import SourceFile

DATASET, SUITE = "dataset.yml", "suite.yml"
_FOLDED = {"normalize": ["casefold"]}
_ANY_SCORE = {"threshold": 0}
# Assertions whose value is the expected output, with the metric that says the same and their defaults there.
_BY_REFERENCE: dict[str, tuple[str, dict[str, Any]]] = {
    "equals": ("exact-match", {}),
    "contains": ("contains", {}),
    "icontains": ("contains", _FOLDED),
    "contains-any": ("contains-any", {}),
    "icontains-any": ("contains-any", _FOLDED),
    "contains-all": ("contains-all", {}),
    "icontains-all": ("contains-all", _FOLDED),
    "starts-with": ("starts-with", {}),
    "regex": ("regex", {"syntax": "plain"}),
    "similar": ("cosine-embedding", {"threshold": 0.75}),
    "factuality": ("llm-as-judge", {}),
    "model-graded-factuality": ("llm-as-judge", {}),
    "context-recall": ("context-recall", _ANY_SCORE),
}
# Assertions that read the question and the context, and have no value.
_BY_CONTEXT: dict[str, tuple[str, dict[str, Any]]] = {
    "answer-relevance": ("answer-relevancy", _ANY_SCORE),
    "context-faithfulness": ("claim-faithfulness", _ANY_SCORE),
    "context-relevance": ("context-precision", _ANY_SCORE),
}
_LISTS = frozenset({"contains-any", "icontains-any", "contains-all", "icontains-all"})
_RUBRICS: dict[str, dict[str, Any]] = {"llm-rubric": {}, "g-eval": {"threshold": 0.7}}
_CODE = frozenset({"javascript", "python", "ruby", "webhook"})
_CONFIG_KEYS = frozenset({"description", "tests", "defaultTest", "assertionTemplates"})
_TEST_KEYS = frozenset({"description", "vars", "assert", "metadata", "options"})
_SET_KEYS = frozenset({"type", "assert"})
_ASSERTION_KEYS = frozenset({"type", "value", "threshold", "metric"})
# What changes the text that an assertion looks at: without it, another text would be judged.
_CHANGES_TEXT = ("transform", "contextTransform")
_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_PLACE = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.\w+|\[\d+\])*)\s*-?\}\}")
_VARIABLES = "A name in {{double braces}} stands for that value of the input."
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
    if not isinstance(value, dict) or "results" in value or not ("providers" in value or "targets" in value):
        return False
    return "prompts" in value or "tests" in value or "redteam" in value


def read_promptfoo_config(source: SourceFile) -> SuiteFiles:
    """The dataset and the suite of a config.

    Raises:
        InputError: It has no tests of its own, or something in them cannot be kept.
    """
    config = as_map(source.value)
    reader = _ConfigReader(source, config)
    reader.leave_out_keys(config, _CONFIG_KEYS, (), of="the config")
    tests = config.get("tests")
    if isinstance(tests, list):
        for position, test in enumerate(tests):
            reader.add_test(test, ("tests", position))
    elif tests is not None:
        reader.add_test(tests, ("tests",))
    if reader.samples:
        return reader.files()

    why = "The config has no tests of its own. Tests in other files are not read."
    if "redteam" in config:
        why = (
            "The config asks promptfoo to make attacks when it runs (`redteam`), and has no tests of its own. "
            "`deemster attack` runs attacks here."
        )
    raise InputError(Issue(why, source.reading.file))


class _LeftOutError(Exception):
    """Why an assertion is not taken in."""


class _ConfigReader:
    """Collects samples and metrics, and what cannot be taken in with the lines on which it stands."""

    def __init__(self, source: SourceFile, config: Mapping[str, Any]) -> None:
        self.name = as_text(config.get("description")) or source.path.stem
        self.samples: list[dict[str, Any]] = []
        self._source = source
        self._templates = as_map(config.get("assertionTemplates"))
        self._default = as_map(config.get("defaultTest"))
        self._left_out: dict[str, set[int]] = {}
        self._metrics: dict[str, tuple[str, dict[str, Any]]] = {}
        self._ids: dict[str, int] = {}
        if config.get("defaultTest") is not None and not self._default:
            self._leave_out("a default test in another file", ("defaultTest",))
        self._leave_out_of_test(self._default, ("defaultTest",))

    def _leave_out(self, what: str, path: Sequence[str | int]) -> None:
        self._left_out.setdefault(what, set()).add(self._source.document.line(path))

    def leave_out_keys(
        self, found: Mapping[str, Any], known: frozenset[str], path: Sequence[str | int], *, of: str
    ) -> None:
        """Note the keys of a map that mean nothing here."""
        for key in found:
            if key not in known:
                self._leave_out(f"`{visible(str(key), limit=80)}` of {of}", (*path, key))

    def _leave_out_of_test(self, test: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
        self.leave_out_keys(test, _TEST_KEYS, path, of="a test")
        self.leave_out_keys(
            as_map(test.get("options")), frozenset({"disableVarExpansion"}), (*path, "options"), of="a test's options"
        )
        for key, kind in (("vars", dict), ("assert", list)):
            if test.get(key) is not None and not isinstance(test[key], kind):
                self._leave_out(f"`{key}` of a test that stands in another file", (*path, key))

    def add_test(self, test: Any, path: tuple[str | int, ...]) -> None:
        """Add a test: a sample for each combination of its variables' values."""
        if not isinstance(test, dict):
            self._leave_out(f"tests in another file, {visible(str(test), limit=80)}", path)
            return
        self._leave_out_of_test(test, path)
        options = {**as_map(self._default.get("options")), **as_map(test.get("options"))}
        variables = {**as_map(self._default.get("vars")), **as_map(test.get("vars"))}
        is_expanded = options.get("disableVarExpansion") is not True
        for values in _combinations(variables) if is_expanded else [variables]:
            if len(self.samples) >= _MOST_TESTS:
                raise InputError(f"The tests and the lists in their variables make more than {_MOST_TESTS:,} samples.")
            self._add_sample(test, self._read_variables(values, (*path, "vars")), path)

    def _read_variables(self, values: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        """The variables of a sample, with the templates in them filled in."""
        found = {}
        for name, value in values.items():
            found[name] = value
            if isinstance(value, str) and value.startswith("file://"):
                self._leave_out("the file that a variable names: its path stays", (*path, name))
                continue
            try:
                found[name] = _render(value, values)
            except _LeftOutError:
                self._leave_out("a template in a variable: it stays as it is written", (*path, name))
        return found

    def _add_sample(self, test: Mapping[str, Any], variables: dict[str, Any], path: tuple[str | int, ...]) -> None:
        named = as_text(test.get("description")) or f"test-{len(self.samples) + 1}"
        self._ids[named] = self._ids.get(named, 0) + 1
        sample: dict[str, Any] = {
            "id": named if self._ids[named] == 1 else f"{named}-{self._ids[named]}",
            "input": variables,
            "metadata": {**as_map(self._default.get("metadata")), **as_map(test.get("metadata"))},
        }
        for owner, start in ((self._default, ("defaultTest",)), (test, path)):
            asserted = owner.get("assert")
            for position, assertion in enumerate(asserted if isinstance(asserted, list) else ()):
                self._add_assertion(sample, as_map(assertion), (*start, "assert", position))
        self.samples.append({"expected_output": None, **sample})

    def _add_assertion(self, sample: dict[str, Any], assertion: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
        reference = str(assertion.get("$ref", ""))
        if reference.startswith("#/assertionTemplates/"):
            assertion = as_map(self._templates.get(reference.rpartition("/")[2]))
        kind, parts = str(assertion.get("type")), assertion.get("assert")
        if kind == "assert-set" and isinstance(parts, list) and assertion.get("threshold") is None:
            for position, part in enumerate(parts):
                self._add_assertion(sample, as_map(part), (*path, "assert", position))
            self.leave_out_keys(assertion, _SET_KEYS, path, of="a set of assertions")
            return
        try:
            self._take_in(kind, sample, assertion)
        except _LeftOutError as error:
            self._leave_out(f"an assertion `{visible(kind, limit=40)}`: {error}", path)
            return
        if is_number(assertion.get("weight")) and not assertion["weight"]:
            self._leave_out("`weight: 0` of an assertion: it does not count there, and counts here", path)
            assertion = {key: value for key, value in assertion.items() if key != "weight"}
        self.leave_out_keys(assertion, _ASSERTION_KEYS, path, of="an assertion")

    def _take_in(self, kind: str, sample: dict[str, Any], assertion: Mapping[str, Any]) -> None:
        """Make an assertion a metric that applies to the sample.

        Raises:
            _LeftOutError: There is no metric for it, or it cannot be read.
        """
        for key in _CHANGES_TEXT:
            if key in assertion:
                raise _LeftOutError(f"its `{key}` is code, which is not run")
        value = assertion.get("value")
        threshold: Any = assertion.get("threshold")
        if kind in _CODE:
            raise _LeftOutError("there is no such metric (code is not run)")
        if isinstance(value, str) and value.startswith("file://"):
            raise _LeftOutError("its value is in another file, which is not opened")

        in_other_units = kind in ("latency", "cost")
        if threshold is not None and not (is_number(threshold) and (in_other_units or 0 <= threshold <= 1)):
            raise _LeftOutError("its threshold is no number from 0 to 1")

        bound = {} if threshold is None else {"threshold": threshold}
        called = as_text(assertion.get("metric")) or kind
        if kind in _RUBRICS and isinstance(value, str):
            self._add_rubric(sample, called, value, {**_RUBRICS[kind], **bound})
            return

        value = _render(value, sample["input"])
        if kind in _BY_REFERENCE:
            if value is None:
                raise _LeftOutError("it has no value")
            metric, options = _BY_REFERENCE[kind]
            expected = _texts(value) if kind in _LISTS else value
            if sample.setdefault("expected_output", expected) != expected:
                raise _LeftOutError("it has a second expected output, and a sample has one")
            self._declare(sample, called, metric, {**options, **bound})
        elif kind in _BY_CONTEXT:
            metric, options = _BY_CONTEXT[kind]
            self._declare(sample, called, metric, {**options, **bound})
        elif kind == "is-json" and isinstance(value, dict):
            self._expect(sample, "json_schema", value)
            self._declare_where_expected("json-schema", assertion)
        elif kind == "is-json" and value is None:
            self._declare(sample, called, "json-valid", {})
        elif kind in ("latency", "cost") and is_number(threshold):
            self._expect(sample, "max_latency_ms" if kind == "latency" else "max_cost_usd", threshold)
            self._declare_where_expected(f"{kind}-below", assertion)
        elif kind.startswith("trajectory:"):
            metric, key, expectation = _trajectory_metric(kind, value)
            self._expect(sample, key, expectation, inside="trajectory")
            self._declare_where_expected(metric, assertion)
        else:
            raise _LeftOutError("there is no such metric")

    def _add_rubric(self, sample: dict[str, Any], called: str, criteria: str, options: dict[str, Any]) -> None:
        """One text is one metric, whatever the variables in it; the judge sees them in the input."""
        if _TEMPLATE.search(criteria):
            # Of an input with a question the judge sees no other variable.
            _render(criteria, sample["input"])
            if "question" in sample["input"]:
                criteria = _render(criteria, sample["input"])
            else:
                options = {**options, "info": _VARIABLES}
        fields = ["input", "actual_output"]
        self._declare(sample, called, "g-eval", {"criteria": criteria, "fields": fields, **options})

    @staticmethod
    def _expect(sample: dict[str, Any], key: str, value: Any, *, inside: str | None = None) -> None:
        """Note what a metric expects of a sample; tools and their calls add up.

        Raises:
            _LeftOutError: The sample expects something else already.
        """
        expected = sample["metadata"]
        if inside is not None:
            # The test's own metadata belongs to other samples too.
            own = expected.get(inside, {})
            if not isinstance(own, dict):
                raise _LeftOutError(f"the test has another `{inside}` in its metadata")
            expected[inside] = dict(own)
            expected = expected[inside]

        held = expected.get(key)
        if key in ("tools", "tool_arguments") and (held is None or isinstance(held, list)):
            value = [*(held or ()), *(each for each in value if each not in (held or ()))]
        elif held is not None and held != value:
            raise _LeftOutError("the test has another one of its kind, and a sample has one")
        expected[key] = value

    def _declare_where_expected(self, metric: str, assertion: Mapping[str, Any]) -> None:
        """Note a metric that applies to the samples that have what it reads."""
        named = as_text(assertion.get("metric"))
        options = {} if named is None else {"name": named}
        self._metrics[named or metric] = metric, {**options, "where": "auto"}

    def _declare(self, sample: dict[str, Any], called: str, metric: str, options: Mapping[str, Any]) -> None:
        """Note a metric, and that it applies to a sample; another one of the same name gets a number."""
        name = called
        for number in itertools.count(2):
            flag = f"assert_{re.sub(r'[^a-z0-9]+', '_', name.lower())}"
            declared = metric, {"name": name, **options, "where": {"has": [flag]}}
            if self._metrics.setdefault(name, declared) == declared and flag not in sample["metadata"]:
                sample["metadata"][flag] = True
                return
            name = f"{called}-{number}"

    def files(self) -> SuiteFiles:
        """The dataset and the suite."""
        dataset = Dataset(self.samples, name=self.name)
        lines = [
            "# Made from a config of promptfoo. Add your application as `target`, or run it with `--outputs FILE`.",
            "schema_version: deemster.suite.v1",
            f"name: {yaml_flow(self.name)}",
            f"dataset: {DATASET}",
            "metrics:",
            *(f"  - {metric}: {yaml_flow(options)}" for metric, options in self._metrics.values()),
        ]
        if not self._metrics:
            raise InputError("No assertion of the config has a metric here, so there is no suite to write.")
        left_out = (f"{what}, {_lines(sorted(numbers))}" for what, numbers in self._left_out.items())
        return SuiteFiles(dataset, "\n".join(lines) + "\n", tuple(left_out))


def _lines(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    more = f" and {len(numbers) - 5:,} more" if len(numbers) > 5 else ""
    return f"lines {', '.join(map(str, numbers[:5]))}{more}"


def _texts(value: Any) -> list[Any]:
    """The texts that an assertion looks for: a list, or a text with commas between them."""
    found = value if isinstance(value, list) else [part.strip() for part in str(value).split(",")]
    if not found or not all(isinstance(text, (str, int, float)) and str(text) for text in found):
        raise _LeftOutError("its value is no list of texts")
    return found


def _trajectory_metric(kind: str, value: Any) -> tuple[str, str, Any]:
    """The metric of an assertion on a trajectory, and what it expects, by its key.

    Raises:
        _LeftOutError: It asks for what no metric looks at.
    """
    asked = value if isinstance(value, dict) else {}
    if kind == "trajectory:tool-used":
        tools = asked["name"] if set(asked) == {"name"} else value
        if isinstance(tools, (str, list)):
            return "tool-called", "tools", [tools] if isinstance(tools, str) else tools
    elif kind == "trajectory:tool-args-match" and asked.get("mode", "partial") == "partial" and "name" in asked:
        arguments = asked.get("args", asked.get("arguments"))
        if isinstance(arguments, dict):
            return "tool-called-with", "tool_arguments", [{"tool": asked["name"], "arguments": arguments}]
    elif kind == "trajectory:tool-sequence" and asked.get("mode", "in_order") == "in_order":
        steps = asked.get("steps", value)
        if isinstance(steps, list) and all(isinstance(step, str) for step in steps):
            return "tool-call-order", "order", steps
    elif kind == "trajectory:step-count" and set(asked) == {"max"}:
        return "steps-below", "max_steps", asked["max"]
    raise _LeftOutError("no metric here looks at all that it asks for")


def _combinations(variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """As promptfoo does, a test for each combination of the values of variables that are lists."""
    values = [value if isinstance(value, list) and value else [value] for value in variables.values()]
    for chosen in itertools.product(*values):
        yield dict(zip(map(str, variables), chosen, strict=True))


def _render(value: Any, variables: Mapping[str, Any]) -> Any:
    """A value with `{{name}}` and `{{name.key[0]}}` replaced by the variable, once.

    Raises:
        _LeftOutError: It holds a template of another kind, or names no variable.
    """
    if isinstance(value, list):
        return [_render(part, variables) for part in value]
    if isinstance(value, dict):
        return {key: _render(part, variables) for key, part in value.items()}
    return _TEMPLATE.sub(lambda template: _value_of(template[0], variables), value) if isinstance(value, str) else value


def _value_of(template: str, variables: Mapping[str, Any]) -> str:
    place = _PLACE.fullmatch(template)
    found: Any = variables
    for step in re.findall(r"\w+", place[1]) if place else ():
        if isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, dict) and step in found:
            found = found[step]
        else:
            place = None
            break
    if place is None or not isinstance(found, (str, int, float)):
        raise _LeftOutError(f"the template `{visible(template, limit=60)}` is not filled in")
    return str(found).lower() if isinstance(found, bool) else str(found)
