"""Tests that record: what an application said goes to a file first, and is judged at the end of the session."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deemster.datasets import Dataset
from deemster.engine.model_access import ModelCalls
from deemster.errors import ConfigurationError, InputError, did_you_mean, visible
from deemster.evaluation.evaluation_settings import EvaluationSettings
from deemster.evaluation.resolve_evaluation import GROUP, resolve_arguments
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.formats.canonical_json import canonical
from deemster.judges import metric_catalog as catalog
from deemster.records import Output
from deemster.targets.python_target import as_output
from deemster.targets.saved_outputs import SavedOutputs

_SETTINGS = frozenset(
    {"aggregator", "budget_tokens", "budget_usd", "cache", "calibration", "gate", "group", "max_unscored"}
    | {"metrics", "models", "name", "offline", "seed", "thresholds"}
)
_ANY_SAMPLE: dict[str, Any] = {"id": "1", "input": {}, "expected_output": None}
_encode = msgspec.json.Encoder(enc_hook=msgspec.to_builtins).encode


class TestAnswer(msgspec.Struct, kw_only=True):
    """What a test recorded: one answer of an application.

    Attributes:
        test: The node id of the test.
        location: Its file, line and name, as pytest reports them.
        called: How the answer is called among those of the test.
        sample: What was asked and expected, as a dataset has it.
        output: What was said, as a file of saved outputs has it.
    """

    test: str
    location: tuple[str, int | None, str]
    called: str
    sample: dict[str, Any]
    output: dict[str, Any]


class AnswerRecorder:
    """Records the answers of one test.

    Args:
        item: The test.
        file: The file that they are added to.
    """

    def __init__(self, item: pytest.Item, file: Path) -> None:
        self._item, self._file, self._count = item, file, itertools.count(1)

    def record(
        self,
        input: Mapping[str, Any],  # noqa: A002 - the word for it in datasets and targets
        output: Any,
        *,
        expected_output: Any = None,
        id: str | None = None,  # noqa: A002 - the word for it in datasets
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Record one answer. It is on disk when this returns, and judged at the end of the session.

        Args:
            input: What the application was asked.
            output: What it said: text, JSON data or an ``Output``.
            expected_output: What it should have said, where the metrics need that.
            id: The sample's id; the test's own unless given.
            tags: Words to slice by.
            metadata: What the metrics read beside that.

        Raises:
            TypeError: Something given is no JSON data.
        """
        number, test = next(self._count), self._item.nodeid
        # Two colons at the start of a line are a command in a CI log, so they would be escaped in every report.
        own = test.replace("::", ":")
        name = id or (own if number == 1 else f"{own}#{number}")
        known = {**(metadata or {}), "tags": [*tags], "test": test}
        sample = {"id": name, "input": input, "expected_output": expected_output, "metadata": known}
        answer = TestAnswer(
            test=test,
            location=self._item.location,
            called="answer" if id is None and number == 1 else f"answer[{visible(id or str(number))}]",
            sample=sample,
            output=_saved(name, as_output(output)),
        )
        with self._file.open("ab") as lines:
            lines.write(_encode(answer) + b"\n")


def _saved(name: str, output: Output) -> dict[str, Any]:
    parts = {"output": output.text, "retrieved": output.retrieved, "trajectory": output.trajectory}
    parts |= {"usage": output.usage, "model": output.model}
    return {"id": name, **{key: value for key, value in parts.items() if value is not None}}


def load_answers(folder: Path) -> list[TestAnswer]:
    """The answers that the processes of a session recorded; of two of one test and id, as after a rerun, the last.

    Args:
        folder: The folder of the session.
    """
    decode = msgspec.json.Decoder(TestAnswer).decode
    lines = (line for file in sorted(folder.glob("answers-*.jsonl")) for line in file.read_bytes().splitlines())
    answers = {(answer.test, answer.sample["id"]): answer for answer in map(decode, lines)}
    return sorted(answers.values(), key=lambda answer: (answer.test, answer.sample["id"]))


def mark_settings(item: pytest.Item) -> dict[str, Any]:
    """How the answers of a test are judged, as its closest `deemster` mark says.

    Raises:
        UsageError: It has none, or the mark says something that cannot be used.
    """
    mark = item.get_closest_marker("deemster")
    if mark is None:
        raise pytest.UsageError(f"{item.nodeid} records and has no mark `@pytest.mark.deemster(metrics=[...])`.")
    if mark.args:
        raise pytest.UsageError(f"{item.nodeid}: the settings of the mark `deemster` have names, such as `metrics`.")
    for name in mark.kwargs:
        if name not in _SETTINGS:
            known = did_you_mean(name, sorted(_SETTINGS))
            raise pytest.UsageError(f"{item.nodeid}: the mark `deemster` has no setting `{name}`. {known}")
    try:
        return dict(msgspec.json.decode(msgspec.json.encode(mark.kwargs)))
    except (TypeError, UnicodeEncodeError):
        hint = "Name a metric of your own by its import path, such as `app.scoring:Tone`."
        raise pytest.UsageError(f"{item.nodeid}: the settings of the mark `deemster` are JSON data. {hint}") from None


def check_settings(item: pytest.Item, settings: Mapping[str, Any]) -> None:
    """Refuse settings by which nothing can be judged, before anything is recorded.

    Raises:
        UsageError: They cannot be used.
    """
    try:
        _build(settings, [_ANY_SAMPLE], [{"id": "1", "output": ""}], root=item.config.rootpath)
    except InputError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


def answer_jobs(
    answers: Iterable[TestAnswer], marks: Mapping[str, Mapping[str, Any]], *, root: Path
) -> Iterator[tuple[list[TestAnswer], Evaluation]]:
    """A job for all answers that are judged in the same way.

    Args:
        answers: What was recorded.
        marks: By the node id of a test, how its answers are judged; answers of other tests are left out.
        root: The folder in which import paths are looked up.

    Raises:
        InputError: They cannot be judged.
    """
    groups: dict[bytes, list[TestAnswer]] = {}
    for answer in answers:
        if answer.test in marks:
            groups.setdefault(canonical(marks[answer.test]), []).append(answer)
    for group in groups.values():
        settings = marks[group[0].test]
        job = _build(settings, [one.sample for one in group], [one.output for one in group], root=root)
        yield group, job._replace(suite=job.plan.dataset.name)


def _build(settings: Mapping[str, Any], samples: list[Any], outputs: list[Any], *, root: Path) -> Evaluation:
    given = dict(settings)
    name = given.pop("name", "pytest")
    if not isinstance(name, str):
        raise ConfigurationError(f"`name` is text, not {name!r:.80}.")
    metrics: list[Any] = [catalog.resolve(entry, search=root) for entry in given.pop("metrics", ())]
    if (group := given.pop("group", None)) is not None:
        metrics.append(f"{GROUP}{group}")

    calls = ModelCalls(**{key: given.pop(key) for key in ModelCalls._fields if key in given})
    rare = EvaluationSettings(**{key: given.pop(key) for key in EvaluationSettings._fields if key in given})
    dataset = Dataset(samples, name=name)
    return resolve_arguments(
        dataset, outputs=SavedOutputs(outputs), metrics=metrics, calls=calls, settings=rare, **given
    )
