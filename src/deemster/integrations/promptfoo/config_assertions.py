"""The assertions of a promptfoo config, as metrics of a suite and what samples expect of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from deemster.errors import InputError, visible
from deemster.formats import Reading
from deemster.formats.json_values import is_number
from deemster.formats.strict_yaml import yaml_document
from deemster.integrations.promptfoo.config_files import FILE, ConfigFiles, LeftOut, LeftOutError
from deemster.integrations.promptfoo.nunjucks import fill_in
from deemster.integrations.run_builder import as_map, as_text
from deemster.metrics.regex_match import PatternError, compile_pattern

_FOLDED = {"normalize": ["casefold"]}
_ANY_SCORE = {"threshold": 0}
# Assertions that look for texts, with the metric that says the same and its options.
_TEXTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "equals": ("exact-match", {}),
    "contains": ("contains", {}),
    "icontains": ("contains", _FOLDED),
    "contains-any": ("contains-any", {}),
    "icontains-any": ("contains-any", _FOLDED),
    "contains-all": ("contains-all", {}),
    "icontains-all": ("contains-all", _FOLDED),
    "starts-with": ("starts-with", {}),
    "regex": ("regex", {"syntax": "plain"}),
}
_LISTS = frozenset({"contains-any", "icontains-any", "contains-all", "icontains-all"})
# Assertions whose value is what the output should say.
_REFERENCES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "similar": ("cosine-embedding", {"threshold": 0.75}),
    "similar:cosine": ("cosine-embedding", {"threshold": 0.75}),
    "factuality": ("llm-as-judge", {}),
    "model-graded-factuality": ("llm-as-judge", {}),
    "context-recall": ("context-recall", _ANY_SCORE),
}
# Assertions that read the question and the context, and have no value.
_BY_CONTEXT: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "answer-relevance": ("answer-relevancy", _ANY_SCORE),
    "context-faithfulness": ("claim-faithfulness", _ANY_SCORE),
}
# A requirement is a text of the sample, so that one metric judges all of them.
_STEPS = [
    "The expected output is no answer: it is a requirement. Read what it asks for.",
    "Look in the actual output for what fulfils the requirement, and for what goes against it.",
    "Give the highest score where the requirement is fulfilled, and the lowest where it is not.",
]
_REQUIREMENT = {"steps": _STEPS, "fields": ["expected_output", "actual_output"]}
_REQUIREMENTS: Mapping[str, Mapping[str, Any]] = {
    "llm-rubric": _REQUIREMENT,
    "model-graded-closedqa": {**_REQUIREMENT, "fields": ["input", "expected_output", "actual_output"]},
    "g-eval": {**_REQUIREMENT, "fields": ["input", "expected_output", "actual_output"], "threshold": 0.7},
}
_WITH_THRESHOLD = frozenset({*_REFERENCES, *_BY_CONTEXT, *_REQUIREMENTS})
# Metrics that give a share, of which promptfoo wants all.
_ALL_CALLS: Mapping[str, Mapping[str, Any]] = {"tool-called": {"threshold": 1}, "tool-called-with": {"threshold": 1}}
_CODE = frozenset({"javascript", "python", "ruby", "webhook"})
# What changes the text that an assertion looks at: without it, another text would be judged.
_CHANGES_TEXT = ("transform", "contextTransform")
_SET_KEYS = frozenset({"type", "assert"})
_ASSERTION_KEYS = frozenset({"type", "value", "threshold", "metric"})
_FIELD = re.compile(r'\s*(?:"((?:[^"\\]|\\.|"")*)"\s*|([^,]*))(?:,|$)')


class _Declared(NamedTuple):
    """A metric as it was declared, and the samples that it applies to.

    Attributes:
        metric: Its name in the catalog.
        options: Its options.
        has_values: Whether it looks for a value of the sample; otherwise it reads the sample as it is.
        expected: The samples that it applies to, by their indexes, with the values.
    """

    metric: str
    options: Mapping[str, Any]
    has_values: bool
    expected: dict[int, Any]


class SuiteMetrics:
    """Collects the metrics of a suite, and gives samples what the metrics read.

    Args:
        config: The config, for its assertion templates.
        files: The files that it names.
        left_out: Where what is not taken in is noted.
    """

    def __init__(self, config: Mapping[str, Any], files: ConfigFiles, left_out: LeftOut) -> None:
        self._templates = as_map(config.get("assertionTemplates"))
        self._files = files
        self._left_out = left_out
        self._samples: list[dict[str, Any]] = []
        self._declared: dict[str, _Declared] = {}
        self._by_need: dict[str, tuple[str, dict[str, Any]]] = {}

    def add_sample(self, sample: dict[str, Any]) -> None:
        """Begin a sample; the assertions that are added next are its own."""
        self._samples.append(sample)

    def add(self, assertion: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
        """Make an assertion of the last sample a metric, or note why it is none."""
        reference = str(assertion.get("$ref", ""))
        if reference.startswith("#/assertionTemplates/"):
            assertion = as_map(self._templates.get(reference.rpartition("/")[2]))
        kind, parts = str(assertion.get("type")), assertion.get("assert")
        if kind == "assert-set" and isinstance(parts, list) and assertion.get("threshold") is None:
            for position, part in enumerate(parts):
                self.add(as_map(part), (*path, "assert", position))
            self._left_out.note_keys(assertion, _SET_KEYS, path, "a set of assertions")
            return
        try:
            self._take_in(kind, assertion)
        except LeftOutError as error:
            self._left_out.note(f"an assertion `{visible(kind, limit=40)}`: {error}", path)
            return
        if is_number(assertion.get("weight")) and not assertion["weight"]:
            self._left_out.note("`weight: 0` of an assertion: it does not count there, and counts here", path)
            assertion = {key: value for key, value in assertion.items() if key != "weight"}
        self._left_out.note_keys(assertion, _ASSERTION_KEYS, path, "an assertion")

    def _take_in(self, kind: str, assertion: Mapping[str, Any]) -> None:
        """Make an assertion a metric that applies to the last sample.

        Raises:
            LeftOutError: There is no metric for it, or it cannot be read.
        """
        for key in _CHANGES_TEXT:
            if key in assertion:
                raise LeftOutError(f"its `{key}` is code, which is not run")
        if kind in _CODE:
            raise LeftOutError("there is no such metric (code is not run)")

        options = _threshold(kind, assertion)
        called = as_text(assertion.get("metric")) or kind
        value = self._value(assertion.get("value"))
        if kind.removeprefix("not-") in _TEXTS:
            self._add_text(kind, called, value)
        elif kind in _REQUIREMENTS:
            if not isinstance(value, str) or not value.strip():
                raise LeftOutError("its value is no text")
            self._declare(called, "g-eval", {**_REQUIREMENTS[kind], **options}, value)
        elif kind in _REFERENCES:
            if not isinstance(value, (str, int, float)):
                raise LeftOutError("its value is no text")
            sample = self._samples[-1]
            if sample["expected_output"] not in (None, value):
                raise LeftOutError("it has a second expected output, and a sample has one")
            metric, usual = _REFERENCES[kind]
            self._declare(called, metric, {**usual, **options})
            sample["expected_output"] = value
        elif kind in _BY_CONTEXT:
            metric, usual = _BY_CONTEXT[kind]
            self._declare(called, metric, {**usual, **options})
        else:
            self._add_expectation(kind, called, value, assertion)

    def _value(self, value: Any) -> Any:
        """The value of an assertion, from a file too, with its templates filled in."""
        if isinstance(value, str) and value.startswith(FILE):
            value = self._files.content(value)
        return fill_in(value, self._samples[-1]["input"])

    def _add_text(self, kind: str, called: str, value: Any) -> None:
        base = kind.removeprefix("not-")
        metric, usual = _TEXTS[base]
        if base in _LISTS:
            value = _texts(value)
        elif isinstance(value, bool):
            value = str(value).lower()
        elif not isinstance(value, (str, int, float)) or (value == "" and base != "equals"):
            raise LeftOutError("it has no value" if value in (None, "") else "its value is no text")
        if base == "regex":
            try:
                compile_pattern(str(value), "plain")
            except PatternError as error:
                raise LeftOutError(str(error).rstrip(".")) from None

        polarity = {} if kind == base else {"negate": True}
        self._declare(called, metric, {**usual, **polarity}, value)

    def _add_expectation(self, kind: str, called: str, value: Any, assertion: Mapping[str, Any]) -> None:
        """A metric that reads what it expects from a key of the metadata that is its own."""
        threshold = assertion.get("threshold")
        schema = _schema(value) if kind == "is-json" and value is not None else None
        if schema is not None:
            self._expect("json_schema", schema)
            self._declare_where_needed("json-schema", assertion)
        elif kind == "is-json":
            self._declare(called, "json-valid", {})
        elif kind in ("latency", "cost") and is_number(threshold):
            self._expect("max_latency_ms" if kind == "latency" else "max_cost_usd", threshold)
            self._declare_where_needed(f"{kind}-below", assertion)
        elif kind.removeprefix("not-").startswith("trajectory:"):
            metric, key, expectation = _trajectory_metric(kind, value)
            self._expect(key, expectation, inside="trajectory")
            self._declare_where_needed(metric, assertion, **_ALL_CALLS.get(metric, {}))
        else:
            raise LeftOutError("there is no such metric")

    def _expect(self, key: str, value: Any, *, inside: str | None = None) -> None:
        """Note what a metric expects of the last sample; tools and their calls add up.

        Raises:
            LeftOutError: The sample expects something else already.
        """
        expected = self._samples[-1]["metadata"]
        if inside is not None:
            # The test's own metadata belongs to other samples too.
            own = expected.get(inside, {})
            if not isinstance(own, dict):
                raise LeftOutError(f"the test has another `{inside}` in its metadata")
            expected[inside] = dict(own)
            expected = expected[inside]

        before = expected.get(key)
        if key in ("tools", "forbidden_tools", "tool_arguments") and (before is None or isinstance(before, list)):
            value = [*(before or ()), *(part for part in value if part not in (before or ()))]
        elif before is not None and before != value:
            raise LeftOutError("the test has another one of its kind, and a sample has one")
        expected[key] = value

    def _declare_where_needed(self, metric: str, assertion: Mapping[str, Any], **options: Any) -> None:
        """Note a metric that applies to the samples that have what it reads."""
        named = as_text(assertion.get("metric"))
        if named is not None:
            options = {"name": named, **options}
        self._by_need[named or metric] = metric, {**options, "where": "auto"}

    def _declare(self, called: str, metric: str, options: Mapping[str, Any], value: Any = None) -> None:
        """Note that a metric applies to the last sample; another metric of the same name gets a number."""
        index = len(self._samples) - 1
        for number in itertools.count(1):
            name = called if number == 1 else f"{called}-{number}"
            declared = self._declared.setdefault(name, _Declared(metric, options, value is not None, {}))
            if (declared.metric, declared.options) == (metric, options) and index not in declared.expected:
                declared.expected[index] = value
                return

    def entries(self) -> list[tuple[str, dict[str, Any]]]:
        """The metrics with their options; samples get what they read."""
        entries = [
            self._value_entry(name, declared) if declared.has_values else self._flag_entry(name, declared)
            for name, declared in self._declared.items()
        ]
        return [*entries, *self._by_need.values()]

    def _value_entry(self, name: str, declared: _Declared) -> tuple[str, dict[str, Any]]:
        """A metric that looks for a text: the expected output where all samples have one, else one of their own."""
        options = {"name": name, **declared.options}
        samples = self._samples
        is_for_all = len(declared.expected) == len(samples)
        is_expected = declared.metric != "g-eval" and "negate" not in declared.options
        if (
            is_for_all
            and is_expected
            and all(samples[index]["expected_output"] in (None, value) for index, value in declared.expected.items())
        ):
            for index, value in declared.expected.items():
                samples[index]["expected_output"] = value
            return declared.metric, options

        key = self._free_key(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "asserted")
        for index, value in declared.expected.items():
            samples[index]["metadata"][key] = value
        options["expected"] = key
        return declared.metric, options if is_for_all else {**options, "where": "auto"}

    def _flag_entry(self, name: str, declared: _Declared) -> tuple[str, dict[str, Any]]:
        """A metric that reads the sample as it is: a key of the metadata says which samples it applies to."""
        options = {"name": name, **declared.options}
        if len(declared.expected) == len(self._samples):
            return declared.metric, options
        flag = self._free_key(f"assert_{re.sub(r'[^a-z0-9]+', '_', name.lower())}")
        for index in declared.expected:
            self._samples[index]["metadata"][flag] = True
        return declared.metric, {**options, "where": {"has": [flag]}}

    def _free_key(self, key: str) -> str:
        """A key that no sample's metadata has."""
        while any(key in sample["metadata"] for sample in self._samples) or key in ("tags", "context", "trajectory"):
            key = f"{key}_asserted"
        return key


def _threshold(kind: str, assertion: Mapping[str, Any]) -> dict[str, Any]:
    """The threshold of an assertion, as an option.

    Raises:
        LeftOutError: It is no threshold of a metric.
    """
    threshold = assertion.get("threshold")
    if threshold is None or kind.removeprefix("not-") not in _WITH_THRESHOLD:
        return {}
    if not (is_number(threshold) and 0 <= threshold <= 1):
        raise LeftOutError("its threshold is no number from 0 to 1")
    return {"threshold": threshold}


def _schema(value: Any) -> Any:
    """A JSON Schema: a map, or the text of one.

    Raises:
        LeftOutError: It is none.
    """
    try:
        schema = yaml_document(value, Reading("schema", error=InputError)).value if isinstance(value, str) else value
    except InputError:
        schema = None
    if not isinstance(schema, dict):
        raise LeftOutError("its value is no JSON Schema")
    return schema


def _texts(value: Any) -> list[Any]:
    """The texts that an assertion looks for: a list, or a text with commas between them, some of them in quotes."""
    texts = value
    if isinstance(value, str):
        fields = [(quoted, plain) for quoted, plain in _FIELD.findall(value)]
        texts = [re.sub(r'\\(["\\])|""', r"\1", quoted) or plain.strip() for quoted, plain in fields]
        texts = [text for text in texts if text]
    elif not isinstance(value, list):
        texts = [value]
    if not texts or not all(isinstance(text, (str, int, float)) and str(text) for text in texts):
        raise LeftOutError("it has no value" if value is None else "its value is no list of texts")
    return list(texts)


def _trajectory_metric(kind: str, value: Any) -> tuple[str, str, Any]:
    """The metric of an assertion on a trajectory, and what it expects, by its key.

    Raises:
        LeftOutError: It asks for what no metric looks at.
    """
    asked = value if isinstance(value, dict) else {}
    if kind in ("trajectory:tool-used", "not-trajectory:tool-used"):
        tools = asked["name"] if set(asked) == {"name"} else value
        if isinstance(tools, (str, list)):
            names = [tools] if isinstance(tools, str) else tools
            is_used = kind == "trajectory:tool-used"
            return ("tool-called", "tools", names) if is_used else ("tool-not-called", "forbidden_tools", names)
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
    raise LeftOutError("no metric here looks at all that it asks for")
