"""The tests of a promptfoo config: in it, in files that it names, and of its scenarios."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deemster.errors import InputError
from deemster.integrations.promptfoo.config_files import FILE, ConfigFiles, LeftOut, LeftOutError
from deemster.integrations.promptfoo.nunjucks import fill_in, has_template
from deemster.integrations.run_builder import as_list, as_map, as_text
from deemster.integrations.source_file import SourceFile

_PARTS = ("vars", "options", "metadata")
_TEST_KEYS = frozenset({"description", "vars", "assert", "metadata", "options"})
_OPTION_KEYS = frozenset({"disableDefaultAsserts", "disableVarExpansion", "provider"})
_CHANGES_OUTPUT = frozenset({"transform", "postprocess"})
_SCENARIO_KEYS = frozenset({"config", "tests"})
# The assertions of promptfoo; in a cell of a table they stand as `not-contains: x` or `similar(0.8): x`.
_ASSERTIONS = (
    "agent-rubric answer-relevance bleu classifier contains contains-all contains-any contains-html contains-json "
    "contains-sql contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost "
    "equals eval factuality finish-reason fn g-eval gleu grade guardrails icontains icontains-all icontains-any "
    "is-html is-json is-refusal is-sql is-valid-function-call is-valid-openai-function-call "
    "is-valid-openai-tools-call is-xml javascript latency levenshtein llm-rubric meteor model-graded-closedqa "
    "model-graded-factuality moderation perplexity perplexity-score pi python regex rouge-n ruby search-rubric similar "
    "similar:cosine similar:dot similar:euclidean skill-used starts-with tool-call-f1 trace-error-spans "
    "trace-span-count trace-span-duration trajectory:goal-success trajectory:step-count trajectory:tool-args-match "
    "trajectory:tool-sequence trajectory:tool-used webhook word-count"
)
_IN_A_CELL = re.compile(rf"((?:not-)?(?:{_ASSERTIONS.replace(' ', '|')}))(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)
_LEGACY = {"fn": "javascript", "eval": "javascript", "grade": "llm-rubric"}
# Thresholds of an assertion in a cell that says none.
_SIMILAR, _OTHERS = 0.8, 0.75
_HAVE_THRESHOLD = frozenset(
    {
        "answer-relevance",
        "context-faithfulness",
        "context-recall",
        "cost",
        "latency",
        "similar",
    }
)
_MOST_TESTS = 100_000


class ConfigTest(NamedTuple):
    """A test, with what the default test gives it.

    Attributes:
        variables: Its variables, one combination of their values.
        assertions: Its assertions, each with the path of it in the config.
        description: What it is called.
        metadata: Its metadata.
    """

    variables: dict[str, Any]
    assertions: list[tuple[Any, tuple[str | int, ...]]]
    description: str | None
    metadata: dict[str, Any]


class _Entry(NamedTuple):
    """A test as it is written, and where: in another file it is where the config names that file."""

    test: dict[str, Any]
    path: tuple[str | int, ...]


def read_tests(config: Mapping[str, Any], files: ConfigFiles, left_out: LeftOut) -> list[ConfigTest]:
    """The tests, one for each combination of the values of variables that are lists; what is not taken in is noted."""
    reader = _TestReader(files, left_out, _Entry(as_map(config.get("defaultTest")), ("defaultTest",)))
    entries = [*reader.entries(config.get("tests"), ("tests",)), *reader.scenarios(config.get("scenarios"))]
    if not entries and not config.get("tests") and "scenarios" not in config:
        # Without tests, promptfoo asks each prompt once.
        entries = [_Entry({}, ())]
    return [test for entry in entries for test in reader.tests(entry)]


def with_default_test(config: Mapping[str, Any], files: ConfigFiles, left_out: LeftOut) -> Mapping[str, Any]:
    """A config with the default test in it, where that stands in another file."""
    default = config.get("defaultTest")
    if not isinstance(default, str):
        return config
    try:
        return {**config, "defaultTest": files.content(default)}
    except LeftOutError as error:
        left_out.note(f"the default test: {error}", ("defaultTest",))
        return config


class _TestReader:
    """Reads tests, and notes what of them is not taken in."""

    def __init__(self, files: ConfigFiles, left_out: LeftOut, default: _Entry) -> None:
        self._files = files
        self._left_out = left_out
        self._default = default
        self._count = 0
        self._note_keys(default)

    def entries(self, tests: Any, path: tuple[str | int, ...]) -> list[_Entry]:
        """The tests of a list, of a file, or of a list of files."""
        if tests is None:
            return []
        entries: list[_Entry] = []
        for index, test in enumerate(tests if isinstance(tests, list) else [tests]):
            test_path = (*path, index) if isinstance(tests, list) else path
            reference = as_map(test).get("path", test)
            try:
                if isinstance(reference, str):
                    self._left_out.note_keys(as_map(test), frozenset({"path"}), test_path, "tests in another file")
                    entries += [_Entry(row, test_path) for row in self._tests_of_files(reference, test_path)]
                elif isinstance(test, dict):
                    entries.append(_Entry(test, test_path))
                else:
                    self._left_out.note("a test that is no map", test_path)
            except LeftOutError as error:
                self._left_out.note(f"tests: {error}", test_path)
        return entries

    def _tests_of_files(self, reference: str, path: tuple[str | int, ...]) -> list[dict[str, Any]]:
        """The tests of all files that a reference names.

        Raises:
            LeftOutError: One of them cannot be read.
        """
        return [test for source in self._files.find(reference) for test in self._tests_of_file(source, path)]

    def _tests_of_file(self, source: SourceFile, path: tuple[str | int, ...]) -> Iterator[dict[str, Any]]:
        try:
            if source.path.suffix.lower() in (".csv", ".tsv"):
                for row in source.table:
                    yield self._test_of_row(row, path)
                return
            value = source.rows if source.path.suffix.lower() == ".jsonl" else source.value
        except InputError as error:
            raise LeftOutError(f"`{source.name}` cannot be read: {error.issues[0].message}") from None
        tests = value if isinstance(value, list) else [value]
        if not tests or not all(isinstance(test, dict) for test in tests):
            raise LeftOutError(f"`{source.name}` is no list of tests")
        yield from tests

    def _test_of_row(self, row: Mapping[str, str], path: tuple[str | int, ...]) -> dict[str, Any]:
        """The test of a row in a table: columns are variables, and those with `__` in front say the rest."""
        test: dict[str, Any] = {"vars": {}, "assert": [], "metadata": {}}
        for column, cell in row.items():
            key = column.strip()
            if key.startswith("__expected"):
                if cell.strip():
                    test["assert"].append(_assertion_in_cell(cell.strip()))
            elif key == "__description":
                test["description"] = cell
            elif key == "__metric":
                test["metric"] = cell
            elif key.startswith("__metadata:"):
                name = key.removeprefix("__metadata:")
                value: Any = cell
                if name.endswith("[]"):
                    value = [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", cell)]
                if cell.strip():
                    test["metadata"][name.removesuffix("[]")] = value
            elif key.startswith("__"):
                self._left_out.note(f"the column `{key}` of a table", path)
            else:
                test["vars"][key] = cell
        if metric := test.pop("metric", None):
            test["assert"] = [{**assertion, "metric": metric} for assertion in test["assert"]]
        return test

    def scenarios(self, scenarios: Any) -> list[_Entry]:
        """Each test of a scenario with each of its configs."""
        entries: list[_Entry] = []
        for index, scenario in enumerate(as_list(scenarios)):
            path = ("scenarios", index)
            if not isinstance(scenario, dict):
                self._left_out.note("a scenario in another file", path)
                continue
            self._left_out.note_keys(scenario, _SCENARIO_KEYS, path, "a scenario")
            configs = self.entries(scenario.get("config"), (*path, "config"))
            tests = self.entries(scenario.get("tests"), (*path, "tests")) or [_Entry({}, path)]
            for (shared, _), (test, test_path) in itertools.product(configs, tests):
                merged = {key: {**as_map(shared.get(key)), **as_map(test.get(key))} for key in _PARTS}
                entries.append(_Entry({**shared, **test, **merged}, test_path))
        return entries

    def _note_keys(self, entry: _Entry) -> None:
        self._left_out.note_keys(entry.test, _TEST_KEYS, entry.path, "a test")
        options = as_map(entry.test.get("options"))
        self._left_out.note_keys(options, _OPTION_KEYS, (*entry.path, "options"), "a test's options")
        if entry.path != ("defaultTest",) and "provider" in options:
            self._left_out.note("`provider` of a test's options", (*entry.path, "options", "provider"))
        if not isinstance(entry.test.get("assert"), list | None):
            self._left_out.note("`assert` of a test that is no list", (*entry.path, "assert"))

    def tests(self, entry: _Entry) -> Iterator[ConfigTest]:
        """A test for each combination of the values of its variables."""
        self._note_keys(entry)
        default = self._default.test
        options = {**as_map(default.get("options")), **as_map(entry.test.get("options"))}
        is_expanded = options.get("disableVarExpansion") is not True
        variables = {**self._variables(self._default), **self._variables(entry)}
        owners = [entry] if options.get("disableDefaultAsserts") is True else [self._default, entry]
        assertions = [
            (assertion, (*owner.path, "assert", position))
            for owner in owners
            for position, assertion in enumerate(as_list(owner.test.get("assert")))
        ]
        if assertions and not _CHANGES_OUTPUT.isdisjoint(options):
            self._left_out.note("the assertions of a test whose output code changes first", (*entry.path, "assert"))
            assertions = []
        for values in self._combinations(variables) if is_expanded else [variables]:
            self._count += 1
            if self._count > _MOST_TESTS:
                raise InputError(f"The tests and the lists in their variables make more than {_MOST_TESTS:,} samples.")
            yield ConfigTest(
                self._filled_in(values, (*entry.path, "vars")),
                assertions,
                as_text(entry.test.get("description")),
                {**as_map(default.get("metadata")), **as_map(entry.test.get("metadata"))},
            )

    def _variables(self, entry: _Entry) -> dict[str, Any]:
        """The variables of a test, from files too."""
        parts = entry.test.get("vars")
        variables: dict[str, Any] = {}
        for part in parts if isinstance(parts, list) else [parts]:
            try:
                content = self._files.content(part) if isinstance(part, str) else part
                variables.update({str(name): value for name, value in as_map(content).items()})
                if content is not None and not isinstance(content, dict):
                    self._left_out.note("variables of a test that are no map", (*entry.path, "vars"))
            except LeftOutError as error:
                self._left_out.note(f"the variables of a test: {error}", (*entry.path, "vars"))
        return variables

    def _combinations(self, variables: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """As promptfoo does, a test for each combination of the values of variables that are lists of texts."""
        choices = [self._choices(value) for value in variables.values()]
        for chosen in itertools.product(*choices):
            yield dict(zip(variables, chosen, strict=True))

    def _choices(self, value: Any) -> list[Any]:
        if isinstance(value, list) and value and isinstance(value[0], str):
            return value
        if isinstance(value, str) and value.startswith(FILE) and "*" in value:
            try:
                return list[Any](self._files.names(value))
            except LeftOutError:
                return [value]
        return [value]

    def _filled_in(self, values: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        """The variables of a sample, with the files and templates in them filled in."""
        loaded = {}
        for name, value in values.items():
            loaded[name] = value
            if isinstance(value, str) and value.startswith(FILE):
                try:
                    loaded[name] = self._files.variable(value)
                except LeftOutError as error:
                    self._left_out.note(f"the file of a variable: {error}; its path stays", (*path, name))
        filled = {}
        for name, value in loaded.items():
            filled[name] = value
            if isinstance(value, str) and has_template(value) and value is values[name]:
                try:
                    filled[name] = fill_in(value, loaded)
                except LeftOutError:
                    self._left_out.note("a template in a variable: it stays as it is written", (*path, name))
        return filled


def _assertion_in_cell(text: str) -> dict[str, Any]:
    """The assertion that a cell of a table says; a text alone is the expected output.

    >>> _assertion_in_cell("similar(0.9): hello")
    {'type': 'similar', 'value': 'hello', 'threshold': 0.9}
    """
    cell = _IN_A_CELL.fullmatch(text)
    if cell is None:
        return {"type": "equals", "value": text}

    kind, threshold, value = cell.groups()
    assertion: dict[str, Any] = {"type": _LEGACY.get(kind, kind)}
    if value is not None:
        assertion["value"] = value.strip()
    base = kind.removeprefix("not-")
    if base in _HAVE_THRESHOLD:
        assertion["threshold"] = float(threshold) if threshold else _SIMILAR if base == "similar" else _OTHERS
    return assertion
