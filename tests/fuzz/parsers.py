"""Every parser of external data, with its inputs and its allowed errors."""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deemster.agreement.metrics_result import MetricsResult
from deemster.comparison import load_report
from deemster.datasets import Dataset, RubricDataset, Votes, read_spreadsheets
from deemster.errors import ConfigurationError, DeemsterError, InputError
from deemster.evaluation.suite import load_suite
from deemster.gate import read_gate
from deemster.judges import metric_catalog as catalog
from deemster.judges._grading_prompt import CriterionView
from deemster.judges._grading_questions import CriterionReply, Question, ask_questions
from deemster.judges.judge_panel import Seat
from deemster.judges.reply_parser import (
    UnreadableReplyError,
    choice_entry,
    integer_entry,
    number_entry,
    reply_entries,
    text_entry,
)
from deemster.metrics.regex_match import Regex
from deemster.models._record_replay import Recording
from deemster.models._retry_after import LONGEST_S, retry_after_s
from deemster.models.answer_cache import Cache
from deemster.models.models_section import read_models
from deemster.models.secret_redaction import Secrets
from deemster.records import Answer, Ask, Message, MetricScore, NoAnswer, Output, Sample, Unscored
from deemster.results.aggregator_section import build_aggregator
from deemster.rubrics import Rubric
from deemster.targets.saved_outputs import SavedOutputs

SECONDS = 1.0
MEGABYTES = 256
CORPUS = Path(__file__).parent / "corpus"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_NAME = re.compile(rb'"key":"([0-9a-f]{64})"')
_HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_CRITERIA = Rubric.load(
    [
        {"name": "facts", "requirement": "Is it right?"},
        {
            "name": "depth",
            "requirement": "How deep?",
            "options": [{"label": "a", "value": 0}, {"label": "b", "value": 1}],
        },
    ]
).criteria
_ASK = Ask(messages=(Message("user", "hi"),))


class Parser(NamedTuple):
    """A parser under test.

    Attributes:
        kind: How its inputs are made: `json`, `jsonl` and `yaml` have trees, others are text.
        suffix: What its files end with.
        feed: Reads one input, and looks at what comes of it; whether it was read.
        pieces: What its grammar is made of.
    """

    kind: str
    suffix: str
    feed: Callable[[Path, bytes], bool]
    pieces: tuple[bytes, ...] = ()


def typed(read: Callable[[Path], Any]) -> Callable[[Path, bytes], bool]:
    """Feed a file. Only a `DeemsterError` may be raised, and its text must be printable."""

    def feed(path: Path, data: bytes) -> bool:
        path.write_bytes(data)
        try:
            read(path)
        except DeemsterError as error:
            _is_fit_to_show(error)
            return False
        return True

    return feed


def _is_fit_to_show(error: DeemsterError) -> None:
    shown = str(error)
    assert shown.strip(), "an error without words"
    _is_plain(shown)
    assert not isinstance(error, InputError) or error.issues, "an error without a fault"


def _is_plain(text: str) -> None:
    assert not _HIDDEN.search(text), f"a control character reaches the terminal: {text!r}"
    text.encode()


def _dataset(path: Path) -> None:
    dataset = Dataset.load(path)
    assert [row.id for row in dataset] == [dataset[at].id for at in range(len(dataset))]
    assert len(dataset.fingerprint) >= 64
    assert len({row.id for row in dataset}) == len(dataset)


def _outputs(path: Path) -> None:
    saved = SavedOutputs.load(path)
    assert len(saved) >= 1
    assert saved.repetitions >= 1
    try:
        saved.check(["a", "b"], 2)
    except DeemsterError as error:
        _is_fit_to_show(error)


def _unimported(path: str) -> Any:
    raise ConfigurationError(f"`{path}` is not imported here.")


def _models(section: Any) -> None:
    read_models(section, place=lambda path: ".".join(map(str, path)), environ={}, load=_unimported, calls=False)


def _models_file(path: Path) -> None:
    from deemster.formats import read_document

    _models(read_document(path).value)


def _suite(path: Path) -> None:
    suite = load_suite(path, calls_target=False)
    entries = [entry for entry in suite.metrics if ":" not in str(entry)[:40] or isinstance(entry, dict)]
    metrics = catalog.resolve_all(entries)
    names = {metric.name: metric.name for metric in metrics}
    read_gate(suite.gate)
    if suite.aggregator is not None:
        build_aggregator(suite.aggregator, metrics=names)
    _models(suite.models)


def _report(path: Path) -> None:
    report = load_report(path)
    report.to_markdown().encode()
    assert msgspec.json.decode(report.to_json())


def _recording(path: Path) -> None:
    recording = Recording(path, secrets=Secrets())
    recording.answer(_ASK)
    recording.vector("embedding", "text")
    if recording.notes:
        # A damaged line is passed over with a note; here that counts as refused.
        raise ConfigurationError(recording.notes[0])


def check_sum(name: bytes, body: bytes) -> bytes:
    """The check sum of a line of a cache."""
    return b"%08x" % binascii.crc32(body, binascii.crc32(name))


def _cache(path: Path, data: bytes) -> bool:
    """Feed a cache, every second time with its check sums put right, so that what they guard is read too."""
    if len(data) % 2:
        data = b"\n".join(
            line[:83] + check_sum(line[8:72], line[101:-1]) + line[91:] if len(line) > 102 else line
            for line in data.split(b"\n")
        )
    path.write_bytes(data)
    cache = Cache(path)
    try:
        keys = [binascii.unhexlify(name) for name in _NAME.findall(data)]
        found = [look(key) for key in keys for look in (cache.answer, cache.vector)]
    finally:
        cache.close()
    return any(each is not None for each in found)


def _reply(_: Path, data: bytes) -> bool:
    answer = Answer(text=data.decode("utf-8", "surrogateescape"))
    readable = False
    for keys in (
        ("reason", "score"),
        ("reason", "score", "verdict"),
        ("reason", "label", "claims", "n"),
        ("verdicts",),
    ):
        try:
            entries = reply_entries(answer, keys)
            readable = True
        except UnreadableReplyError as error:
            _is_plain(error.message)
            continue
        for read in (
            lambda key, entries=entries: number_entry(entries, key, low=0, high=1),
            lambda key, entries=entries: integer_entry(entries, key, low=1, high=5),
            lambda key, entries=entries: text_entry(entries, key),
            lambda key, entries=entries: choice_entry(entries, key, ("MET", "UNMET")),
        ):
            for key in keys:
                try:
                    read(key)
                except UnreadableReplyError as error:
                    _is_plain(error.message)
    return readable


def _hearing(_: Path, data: bytes) -> bool:
    binary, option = CriterionView(0, _CRITERIA[0], ()), CriterionView(1, _CRITERIA[1], (1, 0))
    answer = Answer(text=data.decode("utf-8", "surrogateescape"), thinking=data[:9].decode("latin-1"))
    questions = [
        Question(_ASK, Seat("a", "a"), (binary,), False),
        Question(_ASK, Seat("a", "a"), (option,), False),
        Question(_ASK, Seat("a", "a"), (binary, option), True),
    ]
    script = ask_questions(questions)
    asked = next(script)
    while True:
        try:
            asked = script.send([answer] * len(asked))
        except StopIteration as end:
            found = [heard for said in end.value for heard in said.parts]
            break
    assert len(found) == 4
    for heard in found:
        assert isinstance(heard, (CriterionReply, NoAnswer))
        assert isinstance(heard, NoAnswer) or 0 <= heard.code < 3
        (heard.message if isinstance(heard, NoAnswer) else heard.reason).encode()
    return any(isinstance(heard, CriterionReply) for heard in found)


def _retry_after(_: Path, data: bytes) -> bool:
    lines = [line.partition(":") for line in data.decode("latin-1").split("\n")]
    wait = retry_after_s({name.strip(): value for name, _, value in lines}, now=NOW)
    assert wait is None or (math.isfinite(wait) and 0 <= wait <= LONGEST_S), wait
    return wait is not None


def _regex(_: Path, data: bytes) -> bool:
    pattern, _, text = data.decode("utf-8", "surrogateescape").partition("\n")
    mark = Regex().score(Sample(id="s", input={}, expected_output=pattern), Output(text * 50))
    assert isinstance(mark, (MetricScore, Unscored))
    try:
        Regex(pattern=pattern)
    except ConfigurationError as error:
        _is_fit_to_show(error)
        assert isinstance(mark, Unscored)
        return False
    return isinstance(mark, MetricScore)


_PATTERNS = (
    rb"\p{Lu}",
    rb"(?i)",
    rb"(?:",
    rb"[^",
    rb"]",
    rb"{1000}",
    rb"{1,1000}",
    rb"{2}",
    rb"\C",
    rb"\b",
    rb"|",
    rb"(?P<n>",
)
_HEADERS = (
    b"retry-after: ",
    b"date: ",
    b"\nx-ratelimit-reset: ",
    b"GMT",
    b"-0000",
    b"99999999999999999999",
    b"1h",
    b"ms",
    b"Feb 30",
)
_CELLS = (
    b'""',
    b'"',
    b",",
    b"\n",
    b"\t",
    b";",
    b"input.q",
    b"input:json",
    b"metadata.",
    b"expected_output",
    b'{"a": 1}',
)


def _spreadsheet(path: Path) -> None:
    """One file as labels and as verdicts."""
    read_spreadsheets(labels=path, verdicts=path)


PARSERS: dict[str, Parser] = {
    "dataset-yaml": Parser("yaml", ".yml", typed(_dataset)),
    "dataset-json": Parser("json", ".json", typed(_dataset)),
    "dataset-jsonl": Parser("jsonl", ".jsonl", typed(_dataset)),
    "dataset-csv": Parser("text", ".csv", typed(_dataset), _CELLS),
    "outputs-yaml": Parser("yaml", ".yml", typed(_outputs)),
    "outputs-json": Parser("json", ".json", typed(_outputs)),
    "outputs-jsonl": Parser("jsonl", ".jsonl", typed(_outputs)),
    "outputs-csv": Parser("text", ".csv", typed(_outputs), _CELLS),
    "suite": Parser("yaml", ".yml", typed(_suite)),
    "models": Parser("json", ".json", typed(_models_file)),
    "rubric-yaml": Parser("yaml", ".yml", typed(Rubric.load)),
    "rubric-json": Parser("json", ".json", typed(Rubric.load)),
    "rubric-dataset-yaml": Parser("yaml", ".yml", typed(RubricDataset.load)),
    "rubric-dataset-json": Parser("json", ".json", typed(RubricDataset.load)),
    "rubric-dataset-jsonl": Parser("jsonl", ".jsonl", typed(RubricDataset.load)),
    "votes-json": Parser("json", ".json", typed(Votes.load)),
    "votes-jsonl": Parser("jsonl", ".jsonl", typed(Votes.load)),
    "spreadsheet-csv": Parser("text", ".csv", typed(_spreadsheet), _CELLS),
    "alignment": Parser("json", ".json", typed(MetricsResult.from_file)),
    "report": Parser("json", ".json", typed(_report)),
    "recording": Parser("jsonl", ".jsonl", typed(_recording)),
    "cache": Parser("jsonl", ".jsonl", _cache),
    "reply": Parser("json", ".txt", _reply, (b"```json\n", b"\n```", b'"score": ', b'"reason": ')),
    "hearing": Parser("json", ".txt", _hearing, (b"```json\n", b"\n```", b'"option": ', b'"verdict": "MET"')),
    "retry-after": Parser("text", ".txt", _retry_after, _HEADERS),
    "regex": Parser("text", ".txt", _regex, _PATTERNS),
}


def corpus(name: str) -> list[bytes]:
    """The documents kept for a parser: valid ones, and those that once broke it."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
