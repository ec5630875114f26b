"""What `--without-text` leaves out, and text that must not leak."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import deemster as dm
from deemster.comparison import report_without_text
from deemster.comparison.without_text import PUBLIC_OF_RUN, WITHOUT_TEXT, join_privacy
from deemster.engine.run_sync import run_sync
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.report import Report
from deemster.report.report_entries import (
    DatasetEntry,
    ExecutionEntry,
    FailureEntry,
    PrivacyEntry,
    RunEntry,
    ScoreEntry,
)
from deemster.report.report_sections import report_sections
from deemster.results import SampleEntry
from deemster.results.run_columns import ComparedRun
from tests.builders.printed import printed
from tests.builders.report_formats import FORMATS
from tests.report.runs import CANARIES, CLOCK, full_report, quotes_of

SHOWN = {
    "input": True,
    "output": True,
    "retrieved": True,
    "trajectory": True,
    "expected": True,
    "metadata": False,
    "target error": True,
    "metric failure": True,
    "quoting detail": True,
    "unknown detail": True,
    "other detail": True,
}


def bare():
    return report_without_text(full_report(), quotes=quotes_of)


def everything(report):
    """The report in every format and on a terminal, as one text."""
    pieces = [b"".join(render(report)).decode() for render in FORMATS.values()]
    return "\n".join([*pieces, printed(report_sections(report), width=240)])


@pytest.mark.parametrize("content", SHOWN)
def test_report_shows_every_text_but_metadata_unless_texts_are_left_out(content):
    assert (CANARIES[content] in full_report().to_json()) is SHOWN[content]
    assert CANARIES[content] not in bare().to_json()


def test_what_is_left_out_is_in_no_format():
    text = everything(bare())
    assert [name for name, canary in CANARIES.items() if canary in text] == []


def test_ids_tags_names_scores_counts_and_causes_stay():
    value, whole = json.loads(bare().to_json()), json.loads(full_report().to_json())
    for name in ("totals", "metrics", "cohorts", "histograms", "usage", "gate"):
        assert value[name] == whole[name]
    assert [(entry["id"], entry["tags"]) for entry in value["samples"]] == [
        ("window", ["policy", "refunds"]),
        ("fee", ["policy"]),
        ("broken", []),
        ("silence", []),
    ]
    assert value["executions"][0]["marks"]["silent"]["score"] == 0.666666667
    assert value["executions"][6]["marks"]["silent"]["unscored"]["cause"] == "target_failed"
    assert value["executions"][0]["output_chars"] == len(CANARIES["output"])


def test_cause_without_its_message_ends_a_test_case_of_a_build_server():
    cases = b"".join(FORMATS["junit"](bare())).decode()
    assert 'message="did not pass: target_failed"' in cases
    assert 'message="did not pass: metric_failed"' in cases


def test_numbers_and_booleans_of_details_stay_where_a_metric_says_what_it_quotes():
    marks = json.loads(bare().to_json())["executions"][0]["marks"]
    assert marks["quoting"]["details"] == {"length": 3, "long": False}
    assert marks["silent"]["details"] == {}, "nobody said what it quotes, and the names of details may quote too"


def test_what_is_left_out_is_null_and_listed():
    value = json.loads(bare().to_json())
    assert value["privacy"]["level"] == "without-text"
    for name in value["privacy"]["removed"]:
        section, dot, field = name.partition(".")
        if dot:
            found = value[section] if isinstance(value[section], list) else [value[section]]
            assert all(entry[field] is None for entry in found), name
    assert all(entry["message"] is None for entry in value["failures"])
    assert json.loads(full_report().to_json())["privacy"] == {"level": "default", "removed": []}


def test_texts_that_are_left_out_twice_are_left_out_once():
    assert report_without_text(bare(), quotes=quotes_of).to_json() == bare().to_json()


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (PrivacyEntry(), PrivacyEntry(), PrivacyEntry()),
        (PrivacyEntry(), WITHOUT_TEXT, WITHOUT_TEXT),
        (PrivacyEntry("publish-safe", ("messages",)), PrivacyEntry(), PrivacyEntry("publish-safe", ("messages",))),
    ],
)
def test_two_documents_leave_out_together_what_either_leaves_out(first, second, joined):
    assert join_privacy(first, second) == join_privacy(second, first) == joined


BUILT_IN = [
    "exact-match",
    "contains",
    "starts-with",
    "rouge-l",
    "token-f1",
    "levenshtein",
    "json-valid",
    "json-match",
    "numeric-close",
    "citation-groundedness",
    "retrieval-hit-at-k",
    "retrieval-ndcg-at-k",
    "answer-containment-at-k",
    "tool-called",
    "tool-called-with",
    "tool-call-order",
    {"length-within": {"max": 5}},
    "contains-any",
    "contains-all",
    "json-schema",
    "tool-not-called",
    "steps-below",
    "approval-gated",
    {"ordinal-distance": {"scale": ["low", "high"]}},
]
CANARY = "Zq7"
TEXTS = st.text(max_size=20).map(lambda text: f"{CANARY}{text}")
JSON = st.recursive(
    TEXTS | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=15, deadline=None, phases=[Phase.generate])
@given(given=st.dictionaries(TEXTS, JSON, max_size=2), expected=JSON, said=TEXTS, found=st.lists(TEXTS, max_size=3))
def test_planted_text_is_in_no_format_of_a_report_without_text(given, expected, said, found):
    metadata = {
        "owner": said,
        "relevant": dict.fromkeys(found or [said], 1),
        "citation_evidence": [{"citation": said, "quote": said}],
        "json_schema": {"const": said},
        "trajectory": {
            "tools": [said],
            "order": [said],
            "forbidden_tools": [said],
        },
    }
    trajectory = {"tool_calls": [{"name": said, "arguments": {said: said}, "result": found}], "finish_reason": said}
    asked = {"tool_arguments": [{"tool": said, "arguments": {said: said}}], "max_steps": 3, "requires_approval": [said]}
    samples = [
        dm.Sample("a", given, expected, metadata),
        dm.Sample("b", given, said, {}),
        # A metric that could read no sample is refused.
        dm.Sample("number", given, 1, {"trajectory": asked}),
        dm.Sample("label", given, "low", {}),
    ]
    job = resolve_arguments(
        dm.Dataset(samples, name="planted"),
        outputs=[
            {"id": "a", "output": f"{said} [{said}]", "retrieved": found, "trajectory": trajectory},
            {"id": "b", "error": said},
            {"id": "number", "output": said, "trajectory": trajectory},
            {"id": "label", "output": said},
        ],
        metrics=[*BUILT_IN, _Leaky()],
    )
    report = run_sync(run_evaluation(job, clock=CLOCK, warn=[].append))
    safe = report_without_text(report, quotes=lambda _: None)
    assert CANARY not in everything(safe)


class _Leaky:
    name = "leaky"

    def score(self, sample, output):
        if len(output.text) % 2:
            raise ValueError(output.text)
        return dm.MetricScore(1.0, {"text": output.text, "list": [output.text], "map": {output.text: 1}})


# What `--without-text` keeps of each record: a new field is private until it stands here.
KEPT = {
    Report: "schema_version tool_version privacy totals macro_f1 macro_f1_interval macro_f1_metrics pass_rate "
    "pass_rate_interval metric_order histograms cohort_list aggregate precision usage cost budget gate adversarial "
    "panels",
    DatasetEntry: "name schema_version duplicates cluster",
    SampleEntry: "id tags repetitions passed unscored pass_rate interval unstable score_mean score_stdev metrics "
    "aggregate not_applicable",
    ExecutionEntry: "id repetition output_chars output_valid output_cut usage broken_off",
    ScoreEntry: "score success threshold rubric_score usage",
    FailureEntry: "id repetition metric cause",
    ComparedRun: "id suite dataset started_at status samples repetitions macro_f1 pass_rate",
}
LEFT_OUT = {
    Report: "run dataset metrics samples executions failure_list",
    DatasetEntry: "fingerprint",
    SampleEntry: "row_hash input expected_output",
    ExecutionEntry: "output retrieved trajectory marks",
    ScoreEntry: "details",
    FailureEntry: "message",
    ComparedRun: "fingerprint label target part",
}


@pytest.mark.parametrize("record", KEPT, ids=lambda record: record.__name__)
def test_every_field_is_kept_or_left_out_on_purpose(record):
    decided = {*KEPT[record].split(), *LEFT_OUT[record].split()}
    new = sorted(set(record.__struct_fields__) - decided)
    assert new == [], (
        f"{record.__name__} has {new}: may a report without text show it? If so, add it to KEPT; if it could repeat or "
        "reveal something private, let comparison/without_text.py leave it out, and add it to LEFT_OUT."
    )
    assert decided == set(record.__struct_fields__)


def test_what_is_not_public_of_a_run_is_left_out():
    private = sorted(set(RunEntry.__struct_fields__) - PUBLIC_OF_RUN - {"part"})
    assert {"label", "target", "models"} <= set(private)

    report = full_report()
    filled = msgspec.structs.replace(report.run, **dict.fromkeys(private, "something private"))
    shown = report_without_text(msgspec.structs.replace(report, run=filled), quotes=quotes_of).run
    assert {name: getattr(shown, name) for name in private} == dict.fromkeys(private)
    assert {name: getattr(shown, name) for name in PUBLIC_OF_RUN} == {
        name: getattr(report.run, name) for name in PUBLIC_OF_RUN
    }
