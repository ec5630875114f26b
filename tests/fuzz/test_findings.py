"""What fuzzing has found, each by its name."""

from __future__ import annotations

import json

import pytest

from deemster.comparison import load_report
from deemster.datasets import RubricDataset, Votes
from deemster.errors import ConfigurationError, DatasetError, OutputsError, ReportError, VotesError
from deemster.models._record_replay import Recording
from deemster.models.answer_cache import Cache
from deemster.models.models_section import read_models
from deemster.models.secret_redaction import Secrets
from deemster.records import Answer
from deemster.targets import SavedOutputs
from tests.fuzz.parsers import CORPUS, check_sum

WHOLE = b"k" * 32


def cached(path, key, body):
    """A cache with one good line, and one whose check sum is right though its key or body is not."""
    cache = Cache(path)
    cache.keep(WHOLE, Answer(text="yes"))
    cache.close()
    with path.open("ab") as file:
        file.write(b'{"key":"' + key + b'","check":"' + check_sum(key, body) + b'","value":' + body + b"}\n")
    return Cache(path)


def test_cached_line_with_invalid_key_is_skipped(tmp_path):
    cache = cached(tmp_path / "cache.jsonl", b"x" * 64, b'{"text":"no"}')
    assert len(cache) == 1
    assert cache.answer(WHOLE).text == "yes"
    assert "1 line cannot be read" in cache.notes[0]
    cache.close()


@pytest.mark.parametrize(
    "body", [b'{"text":"\xef"}', b'{"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}"], ids=["bytes", "depth"]
)
def test_undecodable_cached_answer_is_requested_again(tmp_path, body):
    cache = cached(tmp_path / "cache.jsonl", b"ab" * 32, body)
    assert cache.answer(b"\xab" * 32) is None
    assert "is damaged and is asked for again" in cache.notes[0]
    cache.close()


@pytest.mark.parametrize(
    "line",
    [b'{"key":"\xf2"}', b'{"key":"a","request":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"],
    ids=["bytes", "depth"],
)
def test_undecodable_recorded_line_is_error_with_line(tmp_path, line):
    path = tmp_path / "recording.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(ConfigurationError, match=r"recording\.jsonl:1: this is not a recorded answer"):
        Recording(path, secrets=Secrets())


def test_replay_with_invalid_file_name_is_missing_file_error():
    with pytest.raises(ConfigurationError, match="There is no file"):
        read_models({"judge": {"replay": "r.jsonl" * 500}}, place=lambda _: None, environ={}, load=str)


@pytest.mark.parametrize("settings", [{"timeout_s": 10**400}, {"price": {"input": 10**400}}])
def test_model_setting_beyond_float_is_issue(settings):
    judge = {"base_url": "http://127.0.0.1:1/v1", "model": "m", **settings}
    with pytest.raises(ConfigurationError, match="out of range"):
        read_models({"judge": judge}, place=lambda _: None, environ={}, load=str)


def test_file_of_form_feeds_is_empty(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\x0c\n\x0b")
    with pytest.raises(DatasetError, match="The file is empty"):
        RubricDataset.load(path)
    with pytest.raises(VotesError, match="The file is empty"):
        Votes.load(path)


def report_with(tmp_path, change):
    value = json.loads((CORPUS / "report" / "small.json").read_bytes())
    change(value)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(value))
    return path


def test_report_with_billion_repetitions_is_error_at_once(tmp_path):
    path = report_with(tmp_path, lambda value: value["samples"][0].update(repetitions=10**9))
    with pytest.raises(ReportError, match="do not fit each other"):
        load_report(path)


def test_report_whose_total_is_not_that_of_its_executions_is_refused(tmp_path):
    path = report_with(tmp_path, lambda value: value["totals"].update(executions=10**400))
    with pytest.raises(ReportError, match="do not fit each other"):
        load_report(path)


def test_cost_that_is_a_lone_surrogate_is_an_issue(tmp_path):
    path = tmp_path / "outputs.jsonl"
    path.write_text('{"id": "a", "output": "x", "usage": {"cost_usd": "\\ud800"}}\n')

    with pytest.raises(OutputsError, match="lone surrogate"):
        SavedOutputs.load(path)
