"""Imports the results of promptfoo: each pair of prompt and provider is a run, each assertion a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deemster.errors import InputError, Issue, visible
from deemster.evaluation.external_run import ExternalRun
from deemster.formats.canonical_json import json_text
from deemster.integrations.run_builder import RunBuilder, as_map, parse_time, read_mark, read_usage
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output, TargetFailure, Unscored

# Assertions whose value is the text that should have come out.
_REFERENCES = ("equals", "similar", "levenshtein", "rouge-n", "bleu", "gleu", "meteor", "factuality")
# Assertions whose threshold is no score.
_OTHER_UNITS = frozenset({"latency", "cost", "levenshtein", "perplexity"})
_ROW_KEYS = frozenset(
    {"cost", "createdAt", "description", "error", "evalId", "failureReason", "gradingResult", "id", "latencyMs"}
    | {"metadata", "namedScores", "prompt", "promptId", "promptIdx", "provider", "response", "score", "success"}
    | {"testCase", "testIdx", "tokenUsage", "updatedAt", "vars"}
)
_RESPONSE_KEYS = frozenset({"output", "error", "tokenUsage", "cost", "cached", "latencyMs", "prompt"})
_TEST_KEYS = frozenset({"description", "vars", "assert", "metadata", "options"})
_CONFIG_KEYS = frozenset(
    {"description", "prompts", "providers", "tests", "defaultTest", "sharing", "commandLineOptions", "outputPath"}
    | {"env", "metadata", "evaluateOptions", "tags"}
)


def is_promptfoo(source: SourceFile) -> bool:
    """Whether a file holds results of promptfoo: the file of `-o results.json`, or its rows as JSON lines."""
    return bool(_rows(source)) or _earlier_version(source) is not None


def _earlier_version(source: SourceFile) -> int | None:
    """The version of results whose rows do not hold their tests, which promptfoo wrote until 2024; None for others."""
    root = as_map(source.value)
    for summary in (root, as_map(root.get("results"))):
        rows, version = summary.get("results"), summary.get("version")
        if version in (1, 2) and isinstance(rows, list) and rows and {"vars", "success"} <= as_map(rows[0]).keys():
            return int(version)
    return None


def _rows(source: SourceFile) -> Sequence[Any]:
    value = source.value
    if isinstance(value, dict):
        summary = value.get("results")
        found = summary.get("results") if isinstance(summary, dict) else None
        return found if isinstance(found, list) and found and _is_row(found[0]) else ()
    return source.rows if source.rows and _is_row(source.rows[0]) else ()


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and "testCase" in row and "provider" in row and "success" in row


def read_promptfoo(source: SourceFile) -> list[ExternalRun]:
    """The runs in a file of promptfoo's results.

    Raises:
        InputError: Something in it cannot be kept, or it is of version 1 or 2.
    """
    if not _rows(source):
        raise InputError(
            Issue(
                f"These are results of promptfoo in version {_earlier_version(source)}, and version 3 is read. Run the "
                "evaluation again with `promptfoo eval -o results.json`.",
                source.reading.file,
            )
        )
    root = source.value if isinstance(source.value, dict) else {}
    config, summary = as_map(root.get("config")), as_map(root.get("results"))
    version = as_map(root.get("metadata")).get("promptfooVersion")
    repeat = as_map(root.get("runtimeOptions")).get("repeat")
    every = sorted((row for row in _rows(source) if _is_row(row)), key=lambda row: _number(row.get("testIdx")))
    columns: dict[Any, list[dict[str, Any]]] = {}
    for row in every:
        columns.setdefault(row.get("promptIdx", _column_name(row)), []).append(row)
    order = sorted(columns) if all(isinstance(key, int) for key in columns) else list(columns)
    runs = []
    for key in order:
        builder = RunBuilder(f"promptfoo {version}" if version else "promptfoo", _name(config, source))
        column = _Column(builder, repeat if type(repeat) is int and repeat > 0 else 1)
        placed = [row for row in every if row.get("testIdx") is not None]
        for row in placed:
            column.place(row)
        for row in columns[key]:
            column.add(row)
        for row in placed:
            column.add_missing(row)
        builder.leave_out_keys(config, _CONFIG_KEYS, of="the config")
        runs.append(builder.build(target=_column_name(columns[key][0]), started=parse_time(summary.get("timestamp"))))
    return runs


def _name(config: Mapping[str, Any], source: SourceFile) -> str:
    description = config.get("description")
    return description.strip() if isinstance(description, str) and description.strip() else source.path.stem


def _number(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _column_name(row: Mapping[str, Any]) -> str:
    """What a column of promptfoo's table is: a provider and a prompt."""
    provider, prompt = row.get("provider"), as_map(row.get("prompt"))
    called = provider if isinstance(provider, str) else as_map(provider).get("label") or as_map(provider).get("id")
    return visible(f"{called or 'provider'} - {prompt.get('label') or prompt.get('raw') or 'prompt'}", limit=120)


class _Column:
    """One column of promptfoo's table: a prompt for a provider, with a row for each test."""

    def __init__(self, builder: RunBuilder, repeat: int) -> None:
        self._builder, self._repeat = builder, repeat
        self._ids: dict[int, str] = {}
        self._added: set[tuple[str, int]] = set()

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the row of a test."""
        test = as_map(row.get("testCase"))
        sample, repetition = self.place(row)
        self._builder.leave_out_keys(row, _ROW_KEYS, of="a result")
        self._builder.leave_out_keys(row.get("response"), _RESPONSE_KEYS, of="a response")
        answer = _answer(row)
        self._builder.add_execution(sample, answer, self._marks(row, test, answer), repetition=repetition)
        self._added.add((sample, repetition))

    def add_missing(self, row: Mapping[str, Any]) -> None:
        """Note a test of another column that is not in this one: promptfoo leaves out what it could not finish."""
        test = as_map(row.get("testCase"))
        key = self.place(row)
        if key not in self._added:
            self._added.add(key)
            missing = Unscored("not_run", "promptfoo has no result of this test.")
            marks: dict[str, Mark] = dict.fromkeys(self._names(_assertions(test)), missing)
            self._builder.add_execution(key[0], None, marks, repetition=key[1])

    def place(self, row: Mapping[str, Any]) -> tuple[str, int]:
        """The sample and the repetition of a row; one without a number is a sample of its own."""
        index = row.get("testIdx")
        number, repetition = divmod(_number(index), self._repeat) if index is not None else (len(self._ids), 0)
        if number not in self._ids:
            self._ids[number] = self._add_sample(as_map(row.get("testCase")), row, number)
        return self._ids[number], repetition

    def _add_sample(self, test: Mapping[str, Any], row: Mapping[str, Any], number: int) -> str:
        self._builder.leave_out_keys(test, _TEST_KEYS, of="a test")
        variables = as_map(row.get("vars") or test.get("vars"))
        return self._builder.add_sample(
            test.get("description") or f"test-{number + 1}",
            {key: value for key, value in variables.items() if key != "sessionId"},
            expected_output=_expected(_assertions(test)),
            metadata=as_map(test.get("metadata")),
        )

    def _marks(
        self, row: Mapping[str, Any], test: Mapping[str, Any], answer: Output | TargetFailure | None
    ) -> dict[str, Mark]:
        graded = as_map(row.get("gradingResult"))
        parts = [part for part in graded.get("componentResults") or () if isinstance(part, dict)]
        marks: dict[str, Mark] = {}
        if isinstance(answer, TargetFailure):
            for name in self._names(_assertions(test)):
                marks[name] = Unscored("target_failed", answer.message)
        elif parts:
            for name, part in zip(self._names([as_map(part.get("assertion")) for part in parts]), parts, strict=True):
                passed = part.get("pass")
                marks[name] = read_mark(
                    part.get("score"),
                    passed=passed if isinstance(passed, bool) else None,
                    threshold=_score_threshold(as_map(part.get("assertion"))),
                    reason=part.get("reason"),
                )
            # promptfoo can stop a test at its first failure.
            for name in self._names(_assertions(test)):
                marks.setdefault(name, Unscored("metric_failed", "promptfoo has no result of this assertion."))
        else:
            why = row.get("error") or "promptfoo has no result of this assertion."
            for name in self._names(_assertions(test)):
                marks[name] = Unscored("metric_failed", str(why))
        return marks

    def _names(self, assertions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """What the metrics of a test's assertions are called; the second of a name has a number."""
        taken: dict[str, int] = {}
        for assertion in assertions:
            kind = str(assertion.get("type") or "assertion")
            named = str(assertion.get("metric") or kind)
            taken[named] = taken.get(named, 0) + 1
            called = named if taken[named] == 1 else f"{named}-{taken[named]}"
            if is_weighted := assertion.get("weight") not in (None, 1):
                self._builder.leave_out("`weight` of an assertion: every metric counts once", int(is_weighted))
            yield self._builder.add_metric(called, options=_options(assertion, kind, named))


def _options(assertion: Mapping[str, Any], kind: str, named: str) -> str:
    """What makes an assertion what it is, beside its name and what it expects."""
    judge = assertion.get("provider")
    asked = judge if isinstance(judge, str) else as_map(judge).get("id")
    words = [*([f"type={kind}"] if named != kind else []), *([f"judge={asked}"] if asked else [])]
    return visible(", ".join(words), limit=200)


def _score_threshold(assertion: Mapping[str, Any]) -> Any:
    """The threshold of an assertion, where it is one of its score and not of milliseconds, dollars or characters."""
    return None if assertion.get("type") in _OTHER_UNITS else assertion.get("threshold")


def _assertions(test: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = test.get("assert")
    flat: list[Mapping[str, Any]] = []
    for entry in found if isinstance(found, list) else ():
        inner = as_map(entry).get("assert")
        flat += [as_map(part) for part in inner] if isinstance(inner, list) else [as_map(entry)]
    return flat


def _expected(assertions: Sequence[Mapping[str, Any]]) -> Any:
    """What should have come out: the value that the assertions with a reference agree on, else None."""
    values = {json_text(each.get("value")): each.get("value") for each in assertions if each.get("type") in _REFERENCES}
    return next(iter(values.values())) if len(values) == 1 else None


def _answer(row: Mapping[str, Any]) -> Output | TargetFailure:
    response = as_map(row.get("response"))
    said = response.get("output")
    if said is None:
        return TargetFailure(
            visible(str(row.get("error") or response.get("error") or "There is no output."), limit=500)
        )
    tokens = as_map(response.get("tokenUsage"))
    provider = row.get("provider")
    model = provider if isinstance(provider, str) else as_map(provider).get("id")
    usage = read_usage(
        prompt=tokens.get("prompt"),
        completion=tokens.get("completion"),
        total=tokens.get("total"),
        reasoning=as_map(tokens.get("completionDetails")).get("reasoning") or None,
        latency_ms=row.get("latencyMs"),
        cost_usd=response.get("cost"),
        model=model if isinstance(model, str) else None,
        is_cached=response.get("cached") is True,
    )
    return Output(said if isinstance(said, str) else json_text(said), usage=usage)
