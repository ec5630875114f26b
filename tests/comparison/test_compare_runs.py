"""Runs compared by name: from a store, from report files, from reports in memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import deemster as dm
from deemster.comparison.compare_runs import SHOWN
from deemster.engine.model_access import ModelCalls, build_model_access
from deemster.errors import ReportError, StoreError
from deemster.models.clock import FrozenClock
from deemster.runs.run_identity import model_identity
from tests.builders.arguments import arguments
from tests.builders.json_lines import json_lines

CLOCK = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
SAMPLES = [
    {
        "id": f"q{place}",
        "input": {"question": f"What is {place}?"},
        "expected_output": f"It is {place}.",
        "metadata": {"tags": ["even" if place % 2 == 0 else "odd"], "doc": place // 4},
    }
    for place in range(12)
]
GOOD = {sample["id"]: sample["expected_output"] for sample in SAMPLES}
BAD = GOOD | {"q1": "No idea.", "q3": "No idea.", "q4": "It is 44."}


def evaluate(outputs, *, samples=SAMPLES, **options):
    dataset = dm.Dataset(samples, name="numbers")
    return dm.evaluate(
        dataset, outputs=outputs, metrics=["exact-match", "token-f1"], **arguments(clock=CLOCK, **options)
    )


@pytest.fixture
def store(tmp_path):
    place = str(tmp_path / "runs.db")
    evaluate(GOOD, storage=place, name="before")
    evaluate(BAD, storage=place, name="now")
    return place


def numbers(comparison):
    """Everything that does not name a run or read its usage."""
    plain = json.loads(comparison.to_json())
    return {key: value for key, value in plain.items() if key not in ("baseline", "candidate", "examples")}


def test_stored_runs_are_compared_by_label(store):
    found = dm.compare("before", "now", store=store)
    assert (found.baseline.label, found.candidate.label) == ("before", "now")
    assert found.macro_f1.difference == pytest.approx(-5 / 24)
    assert found.table.newly_failing == 3
    assert [change.candidate.id for change in found.changes] == ["q1", "q3", "q4"]
    assert found.cohorts[1].label == "odd"
    assert found.cohorts[1].pass_rate.difference == pytest.approx(-2 / 6)


def test_previous_and_latest_are_the_last_two_runs(store):
    assert numbers(dm.compare("previous", "latest", store=store)) == numbers(dm.compare("before", "now", store=store))


def test_report_document_files_and_reports_give_the_same_numbers_as_the_store(store, tmp_path):
    reports = evaluate(GOOD), evaluate(BAD)
    files = [str(tmp_path / name) for name in ("before.json", "now.json")]
    for report, file in zip(reports, files, strict=True):
        report.save(file)
    stored = numbers(dm.compare("before", "now", store=store))
    assert numbers(dm.compare(*reports)) == stored
    assert numbers(dm.compare(*files)) == stored
    assert numbers(dm.compare(files[0], "now", store=store)) == stored


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda plain: plain["samples"][1].update(row_hash="abc"), "`row_hash` of the sample `q1` is no SHA-256"),
        (lambda plain: plain["executions"][0]["marks"]["token-f1"].update(score=2.0), "<= 1.0"),
        (lambda plain: plain["executions"].pop(), "do not fit each other"),
    ],
)
def test_damaged_report_file_is_refused_with_the_reason(tmp_path, change, said):
    plain = json.loads(evaluate(GOOD).to_json())
    change(plain)
    (tmp_path / "damaged.json").write_text(json.dumps(plain))
    with pytest.raises(ReportError, match=said):
        dm.compare(evaluate(BAD), str(tmp_path / "damaged.json"))


def test_report_document_files_compare_cost_as_the_store_does(tmp_path):
    place = str(tmp_path / "runs.db")
    for label, cents in (("before", 1), ("now", 3)):
        entries = [
            {"id": name, "output": text, "usage": {"prompt_tokens": 10, "cost_usd": cents / 100, "latency_ms": 2.0}}
            for name, text in GOOD.items()
        ]
        (tmp_path / f"{label}.jsonl").write_text(json_lines(*entries))
        evaluate(tmp_path / f"{label}.jsonl", storage=place, name=label).save(tmp_path / f"{label}.json")
    stored = dm.compare("before", "now", store=place)
    assert (stored.usage["cost_usd"].difference, stored.usage["cost_usd"].n) == (pytest.approx(0.02), 12)
    assert numbers(dm.compare(tmp_path / "before.json", tmp_path / "now.json")) == numbers(stored)


def test_recording_that_is_looked_in_first_leaves_the_identity_of_the_judge(tmp_path):
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "small"}
    (tmp_path / "answers.jsonl").write_text("")
    sources = (judge, judge | {"record": str(tmp_path / "answers.jsonl")}, {"replay": str(tmp_path / "answers.jsonl")})
    live, recorded, replayed = (
        model_identity(build_model_access({"judge": source}, ModelCalls()).roles["judge"]) for source in sources
    )
    assert live == recorded != replayed


def test_example_shows_the_question_and_both_answers(store):
    (first, *_) = dm.compare("before", "now", store=store).examples
    assert (first.id, first.status, first.tags) == ("q1", "newly_failing", ("odd",))
    assert first.input == {"question": "What is 1?"}
    assert (first.baseline.output, first.candidate.output) == ("It is 1.", "No idea.")
    assert first.candidate.marks["exact-match"].success is False


def test_comparison_can_be_read_after_the_store_is_closed(store):
    found = dm.compare("before", "now", store=store)
    assert len(list(found.changes)) == len(list(found.changes)) == 3
    assert found.to_json() == found.to_json()


def test_first_samples_of_each_status_are_shown_with_their_texts(tmp_path):
    broken, fixed = SHOWN["newly_failing"] + 9, SHOWN["newly_passing"] + 9
    samples = [{"id": f"q{place}", "input": {"n": place}, "expected_output": "yes"} for place in range(broken + fixed)]
    words = ("yes", "no"), ("no", "yes")
    sides = ({s["id"]: pair[place >= broken] for place, s in enumerate(samples)} for pair in words)
    found = dm.compare(*(evaluate(side, samples=samples) for side in sides))
    shown = [example.status for example in found.examples]
    assert [shown.count(status) for status in ("newly_failing", "newly_passing")] == [broken - 9, fixed - 9]
    assert len(list(found.changes)) == broken + fixed


def test_clusters_come_from_metadata(store):
    found = dm.compare("before", "now", store=store, cluster="doc")
    assert (found.macro_f1.n, found.macro_f1.units, found.cluster) == (12, 3, "doc")


def test_cluster_that_a_sample_lacks_is_refused(store):
    with pytest.raises(ReportError, match=r"`q0` has no `metadata.page`"):
        dm.compare("before", "now", store=store, cluster="page")


def test_clusters_of_a_report_are_refused():
    with pytest.raises(ReportError, match="compare stored runs"):
        dm.compare(evaluate(GOOD), evaluate(BAD), cluster="doc")


def test_unknown_run_is_refused_with_the_nearest_name(store):
    with pytest.raises(StoreError, match="holds no run `latst`"):
        dm.compare("latst", "now", store=store)


def test_edited_sample_is_removed_and_added(store):
    edited = [*SAMPLES[:-1], SAMPLES[-1] | {"expected_output": "It is eleven."}]
    evaluate(GOOD, samples=edited, storage=store, name="edited")
    found = dm.compare("before", "edited", store=store)
    assert (found.samples.paired, found.samples.added, found.samples.removed) == (11, 1, 1)
    assert found.macro_f1.difference == 0.0
    assert found.macro_f1_origin.dataset == pytest.approx(found.macro_f1_origin.total)
    assert found.macro_f1_origin.total < 0


def test_renamed_and_retagged_sample_stays_the_same(store):
    renamed = [SAMPLES[0] | {"id": "zero", "metadata": {"tags": ["new"]}}, *SAMPLES[1:]]
    outputs = {sample["id"]: sample["expected_output"] for sample in renamed}
    evaluate(outputs, samples=renamed, storage=store, name="renamed")
    found = dm.compare("before", "renamed", store=store)
    assert (found.samples.paired, found.statuses["stable"]) == (12, 12)
    assert found.cohorts[1].label == "new"


def test_other_threshold_is_not_compared(store):
    dataset = dm.Dataset(SAMPLES, name="numbers")
    metrics = ["exact-match", "token-f1"]
    dm.evaluate(
        dataset,
        outputs=GOOD,
        metrics=metrics,
        settings=dm.EvaluationSettings(thresholds={"token-f1": 0.9}),
        storage=store,
        name="strict",
    )
    assert dm.compare("before", "strict", store=store).not_comparable == {
        "token-f1": "its threshold was 0.5, and is 0.9"
    }
