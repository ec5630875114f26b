"""The privacy table, row by row, and text that must not leak."""

from __future__ import annotations

import io
import json

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rich.console import Console

import deemster as dm
from deemster.comparison import LEVELS, redact_report
from deemster.engine.run_sync import run_sync
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.report.report_sections import report_sections
from deemster.text.terminal_layout import print_sections
from tests.builders.report_formats import FORMATS
from tests.report.runs import CANARIES, CLOCK, full_report, quotes_of, small_report

YES, NO = True, False
SHOWN = {
    "input": (NO, NO, NO, NO, NO),
    "output": (YES, NO, YES, NO, NO),
    "retrieved": (YES, NO, YES, NO, NO),
    "trajectory": (YES, NO, YES, NO, NO),
    "expected": (YES, YES, NO, NO, NO),
    "metadata": (NO, NO, NO, NO, NO),
    "target error": (YES, NO, NO, NO, NO),
    "metric failure": (YES, NO, NO, NO, NO),
    "quoting detail": (YES, NO, NO, NO, NO),
    "unknown detail": (YES, NO, NO, NO, NO),
    "other detail": (YES, YES, YES, YES, NO),
}


def at(level, report=None, **options):
    return redact_report(report or full_report(), level=level, quotes=quotes_of, **options)


def terminal(report):
    text = io.StringIO()
    print_sections(report_sections(report), Console(file=text, width=240))
    return text.getvalue()


def everything(report):
    """The report in every format and on a terminal, as one text."""
    pieces = [b"".join(render(report)).decode() for render in FORMATS.values()]
    return "\n".join([*pieces, terminal(report)])


def test_privacy_levels_match_table():
    assert LEVELS == ("default", "outputs", "expected", "all", "publish-safe")


@pytest.mark.parametrize("content", SHOWN)
@pytest.mark.parametrize("level", LEVELS)
def test_privacy_level_shows_what_table_says(content, level):
    assert (CANARIES[content] in at(level).to_json()) is SHOWN[content][LEVELS.index(level)]


@pytest.mark.parametrize("level", LEVELS)
def test_content_removed_from_json_is_in_no_other_format(level):
    text = everything(at(level))
    hidden = [CANARIES[content] for content, row in SHOWN.items() if not row[LEVELS.index(level)]]
    assert [canary for canary in hidden if canary in text] == []


@pytest.mark.parametrize("level", LEVELS)
def test_ids_tags_names_scores_counts_and_causes_are_always_shown(level):
    value, whole = json.loads(at(level).to_json()), json.loads(full_report().to_json())
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


@pytest.mark.parametrize("level", LEVELS)
def test_only_publish_safe_leaves_out_the_hashes(level):
    value = json.loads(at(level).to_json())
    shown = [value["dataset"]["fingerprint"], *(entry["row_hash"] for entry in value["samples"])]
    assert all((text is None) is (level == "publish-safe") for text in shown)


def test_publish_safe_keeps_numbers_and_booleans_of_details():
    marks = json.loads(at("publish-safe").to_json())["executions"][0]["marks"]
    assert marks["quoting"]["details"] == {"length": 3, "long": False}
    assert marks["silent"]["details"] == {}, "nobody said what it quotes, and the names of details may quote too"


def test_redacting_outputs_keeps_details_that_quote_nothing():
    marks = json.loads(at("outputs").to_json())["executions"][0]["marks"]
    assert marks["quoting"]["details"] == {"kind": CANARIES["other detail"], "length": 3, "long": False}
    assert marks["silent"]["details"] == {"share": 0.333333333}


@pytest.mark.parametrize("level", LEVELS)
def test_removed_content_is_null_and_listed(level):
    value = json.loads(at(level).to_json())
    assert value["privacy"]["level"] == level
    for name in value["privacy"]["removed"]:
        section, dot, field = name.partition(".")
        if dot:
            found = value[section] if isinstance(value[section], list) else [value[section]]
            assert all(entry[field] is None for entry in found), name
    assert ("messages" in value["privacy"]["removed"]) is (level != "default")
    assert all((entry["message"] is None) is (level != "default") for entry in value["failures"])


def whole():
    """The report before anything is left out, as the command line has it."""
    report = full_report()
    entries = [msgspec.structs.replace(entry, input={"question": CANARIES["input"]}) for entry in report.samples]
    return msgspec.structs.replace(report, samples=entries)


@pytest.mark.parametrize("level", LEVELS)
def test_input_is_shown_on_request_but_never_publish_safe(level):
    shown = at(level, whole(), include_input=True).to_json()
    assert (CANARIES["input"] in shown) is (level != "publish-safe")
    assert CANARIES["input"] not in at(level, whole()).to_json()


@pytest.mark.parametrize("second", LEVELS)
@pytest.mark.parametrize("first", LEVELS)
def test_second_level_never_restores_removed_content(first, second):
    once, twice = at(first), at(second, at(first))
    assert set(twice.privacy.removed) == set(once.privacy.removed) | set(at(second).privacy.removed)
    text = twice.to_json()
    for content, row in SHOWN.items():
        expected = row[LEVELS.index(first)] and row[LEVELS.index(second)]
        assert (CANARIES[content] in text) is expected, content


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
def test_planted_text_is_in_no_format_of_a_publish_safe_report(given, expected, said, found):
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
    job = resolve_arguments(
        dm.Dataset([dm.Sample("a", given, expected, metadata), dm.Sample("b", given, said, {})], name="planted"),
        outputs=[
            {"id": "a", "output": f"{said} [{said}]", "retrieved": found, "trajectory": trajectory},
            {"id": "b", "error": said},
        ],
        metrics=[*BUILT_IN, _Leaky()],
    )
    report = run_sync(run_evaluation(job, clock=CLOCK, warn=[].append))
    safe = redact_report(report, level="publish-safe", quotes=lambda _: None)
    assert CANARY not in everything(safe)


class _Leaky:
    name = "leaky"

    def score(self, sample, output):
        if len(output.text) % 2:
            raise ValueError(output.text)
        return dm.MetricScore(1.0, {"text": output.text, "list": [output.text], "map": {output.text: 1}})


def test_evaluate_shows_no_input_by_default():
    assert all(entry.input is None for entry in small_report("a", "b").samples)
