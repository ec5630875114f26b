"""The report of a stored run is made again from the facts, to the byte."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import deemster as dm
from deemster.comparison import report_without_text
from deemster.errors import ReportError, StoreError
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.report.report_settings import settings_facts, stored_settings, without_secrets
from deemster.report.stored_report import StoredSamples, computed_report, quoted_details, stored_report
from deemster.results.metric_aggregators import SubsetAggregator
from deemster.runs.run_storage import NOT_STORED, RunStorage
from deemster.store import RunFacts, open_store
from tests.builders.arguments import arguments
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK

MAPPING = {0.0: 0.0, 1.0: 1.0}


@dm.metric("graded")
def graded(expected, actual):
    grade = 1.0 if expected == actual else 0.0
    return dm.MetricScore(grade, rubric_score=grade, details={"said": actual})


def dataset(**more):
    rows = [
        dm.Sample("one", {"q": "1", "deep": {"b": [1, 2.5], "a": None}}, "first", {"tags": ["x", "y"], "note": 1}),
        dm.Sample("two", {"q": "2"}, "second"),
        dm.Sample("twin", {"q": "2"}, "second", {"tags": "y"}),
        dm.Sample("wild", {"q": "\u202e"}, {"answer": [1, 1.0, 1e-7]}, {"tags": ["z"]}),
    ]
    return dm.Dataset(rows, name="d", **more)


OUTPUTS = {
    "one": {"outputs": ["first", "frist"], "usage": {"prompt_tokens": 3, "cost_usd": 0.25}, "model": "m"},
    "two": ["second", "\ud800 broken"],
    "twin": {"outputs": ["x" * 70_000, "second"]},
    "wild": {"outputs": ['{"answer": [1, 1.0, 1e-7]}'] * 2, "retrieved": ["doc", {"id": "d2", "text": "t"}]},
}


def job(**more):
    given = {"outputs": OUTPUTS, "metrics": ["exact-match", "rouge-l", graded], "max_unscored": "50%"}
    return resolve_arguments(dataset(), **arguments(**{**given, **more}))


def ran(what, store=None, **more):
    keeping = NOT_STORED if store is None else RunStorage(store)
    return ran_in(keeping, what, clock=CLOCK, warn=lambda _: None, **more)


def test_report_from_store_has_same_bytes(store):
    gate = {
        "min_macro_f1": 0.2,
        "cohorts": {"*": {"min_pass_rate": 0.1}},
        "max_unscored": "50%",
        "decision": "three-way",
    }
    what = job(gate=gate, aggregator={"critical": ["graded"]})
    report = ran(what, store)
    assert stored_report(store, report.run.id).to_json() == report.to_json() == ran(what).to_json()
    assert computed_report(store, report.run.id).to_json() == report.to_json()
    assert stored_report(store, report.run.id[:-2]).to_json() == report.to_json()


def test_report_from_store_has_same_bytes_without_text(store):
    direct = ran(job())
    ran(job(), store)
    again = stored_report(store, "latest")
    quotes = quoted_details(store, again.run.id)
    shown = report_without_text(again, quotes=quotes.__getitem__)
    assert shown.to_json() == report_without_text(direct, quotes=quotes.__getitem__).to_json()


@pytest.mark.parametrize(
    "aggregator",
    [
        "and",
        "min",
        "geometric",
        {"at-least": 2},
        {"critical": ["rouge-l"]},
        {"kind": "weighted", "weights": {"graded": 0.5}, "score_mapping": {"graded": {"0": 0, "1": 0.75}}},
        dm.results.WeightedMetricsAggregator({"graded": 2}, {"graded": MAPPING}),
        SubsetAggregator(dm.results.AtLeast(1), ["graded"]),
    ],
    ids=str,
)
def test_built_in_aggregator_is_restored(tmp_path, aggregator):
    # A grade that is unscored is an error of the aggregate, not a hole in its mapping.
    what = job(aggregator=aggregator, metrics=[graded] if "eight" in str(aggregator) else job().plan.metrics)
    with open_store(tmp_path / "runs.db") as store:
        report = ran(what, store)
        assert report.aggregate is not None
        assert stored_report(store, "latest").to_json() == report.to_json()


class Forgiving(dm.results.MetricsAggregator):
    def compute_success(self, named_results):
        return True


def test_custom_aggregator_is_reported_missing(tmp_path):
    gate = {"min_aggregate_success": 0.5}
    with open_store(tmp_path / "runs.db") as store:
        report = ran(job(aggregator=Forgiving(), gate=gate), store)
        told = []
        bare = stored_report(store, "latest", warn=told.append)
        assert (bare.aggregate, bare.gate) == (None, None)
        assert bare.metrics == report.metrics
        (message,) = told
        assert "Forgiving`, an object of the program that ran this" in message
        assert "nor the gate" in message


def stored_run(facts):
    return RunFacts(id="x", dataset="d", fingerprint="", samples=1, started_at="", tool_version="", facts=facts)


def test_report_settings_survive_storage():
    gate = {
        "metrics": {"rouge-l": {"min_mean": 0.2, "on": "lower"}},
        "cohorts": {"x": {"min_samples": 3}},
        "max_unscored": 2,
    }
    what = job(gate=gate, aggregator="geometric")
    kept = msgspec.json.decode(msgspec.json.encode(settings_facts(what.report_settings, what.plan, origin=what.origin)))
    terms = stored_settings(stored_run(kept))
    assert terms._replace(aggregator=None) == what.report_settings._replace(aggregator=None)
    assert str(terms.aggregator) == "geometric"


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"gate": [1], "allowance": [0.0, False], "delta": 0.05, "aggregator": None, "varied": None},
        {"gate": None, "allowance": "2%", "delta": 0.05, "aggregator": None, "varied": None},
        {
            "gate": None,
            "allowance": [0.0, False],
            "delta": 0.05,
            "aggregator": {"kind": "at-least", "k": 0},
            "varied": None,
        },
        {"gate": None, "allowance": [0.0, False], "delta": 0.05, "aggregator": {}, "varied": None},
    ],
)
def test_invalid_stored_facts_are_error(broken):
    with pytest.raises(StoreError, match="The stored report settings cannot be read"):
        stored_settings(stored_run(broken))


def test_stored_samples_equal_dataset(store):
    ran(job(), store)
    kept, given = StoredSamples(store, store.run("latest")), dataset()
    assert [msgspec.to_builtins(each) for each in kept] == [
        msgspec.to_builtins(msgspec.structs.replace(each, metadata=dict(each.metadata))) for each in given
    ]
    assert list(kept.row_hashes) == list(given.row_hashes)
    assert kept.duplicates == given.duplicates == [["two", "twin"]]
    assert (len(kept), kept.name, kept.fingerprint) == (4, "d", given.fingerprint)


def test_cut_output_reports_full_length(tmp_path):
    outputs = {"one": "x" * 2_000_000, "two": "second", "twin": "second", "wild": "w"}
    with open_store(tmp_path / "runs.db") as store:
        report = ran(job(outputs=outputs), store)
        assert stored_report(store, "latest").to_json() == report.to_json() == ran(job(outputs=outputs)).to_json()
        assert (report.executions[0].output_chars, report.executions[0].output_cut) == (2_000_000, True)


@pytest.mark.filterwarnings("ignore:exact-match. 1 of 4 samples")
def test_python_report_reads_from_open_store(tmp_path):
    given = {"outputs": OUTPUTS, "metrics": ["exact-match"], "clock": CLOCK, "max_unscored": "50%"}
    report = dm.evaluate(dataset(), **arguments(where=tmp_path / "runs.db", **given))
    assert [entry.id for entry in report.samples] == ["one", "two", "twin", "wild"]
    assert report.to_json() == asyncio.run(dm.evaluate_async(dataset(), **arguments(**given))).to_json()


@pytest.mark.parametrize("kind", ["grading", "recording"])
def test_grading_and_recording_without_marks_have_no_report(tmp_path, kind):
    with open_store(tmp_path / "runs.db") as store:
        facts = RunFacts(
            id="r",
            kind=kind,
            dataset="d",
            fingerprint="f",
            samples=0,
            started_at="2026-01-01T00:00:00.000Z",
            tool_version="0",
        )
        store.begin(facts, [], cards=[]).release()
        with pytest.raises(ReportError, match=r"`r` (is a grading|has no scores to report on)"):
            stored_report(store, "r")


def test_store_keeps_variable_names_but_no_keys():
    given = {
        "api_key_env": "KEY",
        "base_url": "https://user:pass@host/v1",
        "headers": {"Authorization": "Bearer abc", "X-Api-Key": "${KEY}", "Accept": "text"},
        "max_tokens": 7,
        "passwords": ["a"],
    }
    assert without_secrets(given) == {
        "api_key_env": "KEY",
        "base_url": "https://host/v1",
        "headers": {"Authorization": "(not kept)", "X-Api-Key": "${KEY}", "Accept": "text"},
        "max_tokens": 7,
        "passwords": ["(not kept)"],
    }


def test_kept_numbers_are_those_that_the_facts_give_to_the_last_digit(store):
    report = ran(job(gate={"min_macro_f1": 0.2}), store)
    streams = {"samples": (), "executions": (), "failure_list": ()}
    kept, computed = (
        msgspec.structs.replace(made(store, report.run.id), **streams) for made in (stored_report, computed_report)
    )
    assert kept == computed


def test_kept_numbers_that_cannot_be_read_are_computed(store):
    report = ran(job(), store)
    row = store.run(report.run.id)
    with store.lease(row.id):
        store.write_columns(row.id, [b"\xde not a report"])
    assert stored_report(store, row.id).to_json() == report.to_json()
