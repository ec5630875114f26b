"""Bad votes files and bad rubric datasets: each a name, a file name, and the text of the file."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

RUBRIC = {
    "criteria": [
        {"name": "facts", "requirement": "Every claim is supported."},
        {
            "name": "depth",
            "requirement": "How deep is it?",
            "options": [{"label": "poor", "value": 0}, {"label": "fair", "value": 0.5}, {"label": "good", "value": 1}],
        },
        {"name": "cited", "requirement": "It names a source.", "check": {"metric": "contains", "args": {"text": "["}}},
    ]
}
ITEM = {"id": "q1", "votes": {"a": ["MET", "fair", None], "b": ["UNMET", "good", None]}}
VOTES = {
    "schema_version": "deemster.votes.v1",
    "rubric": RUBRIC,
    "judges": [{"id": "a"}, {"id": "b"}],
    "items": [ITEM],
}
ESSAY = {"id": "e1", "submission": "It rained.", "ground_truth": ["MET", "good", None]}
ESSAYS = {"name": "essays", "rubric": RUBRIC, "items": [ESSAY]}
LEFT_OUT = object()


class Mistake(NamedTuple):
    """One bad file."""

    name: str
    file: str
    text: str | bytes


def lines(value: Any) -> str:
    """A root with one item per line, so that line numbers differ."""
    root = {key: entry for key, entry in value.items() if key != "items"}
    text = json.dumps(root)[:-1]
    items = value.get("items")
    if not isinstance(items, list):
        return json.dumps(value)
    return text + ', "items": [\n' + ",\n".join(json.dumps(item) for item in items) + "\n]}\n"


def _changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: entry for key, entry in {**value, **changes}.items() if entry is not LEFT_OUT}


def _root(name: str, /, **changes: Any) -> Mistake:
    return Mistake(name, "votes.json", lines(_changed(VOTES, changes)))


def _item(name: str, /, **changes: Any) -> Mistake:
    return _root(name, items=[{**ITEM, "id": "q0"}, _changed(ITEM, changes)])


def _cell(name: str, cell: Any, position: int = 0) -> Mistake:
    cells: list[Any] = ["MET", "fair", None]
    cells[position] = cell
    return _item(name, votes={"a": cells})


VOTES_FILES = [
    Mistake("empty", "votes.json", " \n"),
    Mistake("not JSON", "votes.json", '{"items": [,]}'),
    Mistake("NaN", "votes.json", lines(VOTES).replace('"judges"', '"grading": {"partial_credit": NaN}, "judges"')),
    Mistake(
        "NaN among other faults, all told",
        "votes.json",
        lines(
            {
                **VOTES,
                "nmae": "pilot",
                "items": [
                    {**ITEM, "ground_truth": ["MTE", "fair"], "penalty": float("nan")},
                    {**ITEM, "votes": {"z": ["MET", "fair", None]}, "metadata": {"size": float("inf")}},
                ],
            }
        ),
    ),
    Mistake("a key twice", "votes.json", lines(VOTES).replace('"id": "q1"', '"id": "q1", "id": "q2"')),
    Mistake("YAML", "votes.yaml", "items: []\n"),
    Mistake("a list as root", "votes.json", "[]"),
    Mistake("JSONL without a header", "votes.jsonl", json.dumps(ITEM) + "\n"),
    Mistake("JSONL whose header is a list", "votes.jsonl", "[]\n"),
    Mistake("JSONL whose header has items", "votes.jsonl", json.dumps(VOTES) + "\n"),
    Mistake(
        "JSONL with faults on several lines",
        "votes.jsonl",
        "\n".join(
            [
                json.dumps(_changed(VOTES, {"items": LEFT_OUT})),
                json.dumps(ITEM),
                "",
                json.dumps({**ITEM, "votes": {"a": ["MTE", "fair", None]}}),
            ]
        ),
    ),
    Mistake("JSONL with lines that are not JSON", "votes.jsonl", '{"judges": []}\n{"id"\n{]\n'),
    Mistake("JSONL that is not UTF-8", "votes.jsonl", b'{"judges": []}\n{"id": "\xff"}\n'),
    _root("no schema_version", schema_version=LEFT_OUT),
    _root("another schema_version", schema_version="deemster.votes.v2"),
    _root("schema_version is a number", schema_version=1),
    _root("an unknown key", judge=[]),
    _root("a name that is no text", name=7),
    _root("no rubric", rubric=LEFT_OUT),
    _root("rubric beside rubrics", rubrics={"r": RUBRIC}),
    _root("no rubrics in rubrics", rubric=LEFT_OUT, rubrics={}),
    _root("rubrics is a list", rubric=LEFT_OUT, rubrics=[RUBRIC]),
    _root("a rubric with faults", rubric={"criteria": [{"requirement": " ", "wieght": 3}]}),
    _root("no judges", judges=LEFT_OUT),
    _root("judges is empty", judges=[]),
    _root("judges is a map", judges={"a": 1}),
    _root(
        "bad judges",
        judges=[
            {"id": "a"},
            {"id": "a", "weight": 2},
            {"id": "b", "weight": 0},
            {"id": "c", "wieght": 1},
            {"weight": 1},
            {"id": "check:contains"},
            {"id": "d", "model": 4, "weight": True},
            "e",
        ],
    ),
    _root("grading is a list", grading=[]),
    _root("bad grading", grading={"aggregation": "mean", "abstain": "skip", "abstention": "ignore", "normalize": 1}),
    _root("no items", items=LEFT_OUT),
    _root("items is empty", items=[]),
    _root("items is a map", items={}),
    _root("an item that is no map", items=["q1"]),
    _root("the same id twice", items=[ITEM, {**ITEM, "id": "q2"}, ITEM]),
    _item("no id", id=LEFT_OUT),
    _item("an id that is a number", id=7),
    _item("an unknown key of an item", vote={}),
    _item("a rubric key without rubrics", rubric="r"),
    _root("no rubric key", rubric=LEFT_OUT, rubrics={"essay": RUBRIC}),
    _root("an unknown rubric key", rubric=LEFT_OUT, rubrics={"essay": RUBRIC}, items=[{**ITEM, "rubric": "esay"}]),
    _root("a rubric key that is no text", rubric=LEFT_OUT, rubrics={"essay": RUBRIC}, items=[{**ITEM, "rubric": 1}]),
    _item("neither votes nor error", votes=LEFT_OUT),
    _item("votes beside error", error="timed out"),
    _item("error that is no text", votes=LEFT_OUT, error=None),
    _item("votes is a list", votes=[["MET"]]),
    _item("an unknown judge", votes={"aa": ["MET", "fair", None]}),
    _item("too few cells", votes={"a": ["MET"]}),
    _item("too many cells", votes={"a": ["MET", "fair", None, "MET"]}),
    _item("cells as text", votes={"a": "MET"}),
    _item("three unknown labels", votes={"a": ["MTE", "far", None], "b": ["MET", "excellent", None]}),
    _cell("a cell that is a number", 3),
    _cell("an unknown key of a vote", {"verdict": "MET", "prob": 0.5}),
    _cell("a vote without a verdict", {"p": 0.5}),
    _cell("a verdict that is null", {"verdict": None}),
    _cell("an unknown verdict in a vote", {"verdict": "MEET"}),
    _cell("a reason that is no text", {"verdict": "MET", "reason": 3}),
    _cell("p above 1", {"verdict": "MET", "p": 1.5}),
    _cell("p as a list on a binary criterion", {"verdict": "MET", "p": [0.5, 0.5]}),
    _cell("p as a boolean", {"verdict": "MET", "p": True}),
    _cell("p as a number on an ordinal criterion", {"verdict": "fair", "p": 0.5}, 1),
    _cell("p of the wrong length", {"verdict": "fair", "p": [0.5, 0.5]}, 1),
    _cell("p below 0", {"verdict": "fair", "p": [-0.5, 0.5, 1]}, 1),
    _cell("p that does not sum to 1", {"verdict": "fair", "p": [0.2, 0.2, 0.2]}, 1),
    _cell("an unknown failure", {"failure": "parsing"}),
    _cell("a failure that is no text", {"failure": True}),
    _cell("an unknown key of a failure", {"failure": "parse", "reason": "?"}),
    _cell("a failure with a verdict", {"failure": "parse", "verdict": "MET"}),
    _cell("no repeats", []),
    _cell("nested repeats", ["MET", ["MET"]]),
    _cell("a bad label among repeats", ["MET", "NOT MET AT ALL"]),
    _item("a check of another criterion", votes={"check:contains": ["MET", None, None]}),
    _item("a check by another metric", votes={"check:regex": [None, None, "MET"]}),
    _item("a check that repeats", votes={"check:contains": [None, None, ["MET", "MET"]]}),
    _item("bad ground truth", ground_truth=["MET", {"verdict": "fair"}, "MAYBE"]),
    _item("ground truth of the wrong length", ground_truth=["MET"]),
    _item("ground truth as text", ground_truth="MET"),
    _item("annotations is a list", annotations=[["MET", "fair", None]]),
    _item("annotations is an empty list", annotations=[]),
    _item("bad annotations", annotations={"ann": ["MET", "fare", None], " ": ["MET", "fair", None], "bob": 1}),
    _item("bad final", final=["MET", "fair", 3]),
    _item("bad numbers", penalty=-0.1, score="high"),
    _item("a score above 1", score=1.4),
    _item("bad tags", tags=["a", 1, " ", "a"]),
    _item("tags as text", tags="a, b"),
    _item("metadata that is not flat", metadata={"doc": {"id": 1}, "parts": [1]}),
    _item("metadata is a list", metadata=[]),
]


def _set(name: str, /, **changes: Any) -> Mistake:
    return Mistake(name, "essays.json", lines(_changed(ESSAYS, changes)))


def _essay(name: str, /, **changes: Any) -> Mistake:
    return _set(name, items=[{**ESSAY, "id": "e0"}, _changed(ESSAY, changes)])


RUBRIC_DATASETS = [
    Mistake("empty", "essays.json", ""),
    Mistake("an unknown extension", "essays.txt", "id\n"),
    Mistake("a spreadsheet without a rubric", "essays.csv", "id\n"),
    Mistake("not YAML", "essays.yaml", "items: [\n"),
    Mistake("a YAML item", "essays.yaml", "rubric:\n- requirement: x\nitems:\n- id: 7\n  submision: It rained.\n"),
    Mistake("JSONL", "essays.jsonl", json.dumps({"name": "x"}) + "\n" + json.dumps(ESSAY) + "\n" + '{"id": "e1"}'),
    Mistake("JSONL without a header", "essays.jsonl", json.dumps(ESSAY) + "\n"),
    Mistake("a list as root", "essays.json", "[]"),
    _set("another schema_version", schema_version="deemster.rubric.v1"),
    _set("unknown keys", rubrik=RUBRIC, item=[]),
    _set("texts that are none", name=1, prompt=[], reference_submission={}),
    _set("a rubric with faults", rubric=[{"requirement": "x", "weight": "heavy"}]),
    _set("no items", items=LEFT_OUT),
    _set("items is empty", items=[]),
    _set("items is a map", items={}),
    _set("an item that is no map", items=["It rained."]),
    _set("no rubric anywhere", rubric=LEFT_OUT),
    _set("the same id twice", items=[ESSAY, {**ESSAY, "id": "e2"}, ESSAY]),
    _set("a default id that is taken", items=[{**ESSAY, "id": "item-0002"}, _changed(ESSAY, {"id": LEFT_OUT})]),
    _essay("a blank id", id=" "),
    _essay("no submission", submission=LEFT_OUT),
    _essay("a submission that is a list", submission=["It rained."]),
    _essay("a submission without an output", submission={"thinking": "Hm."}),
    _essay("an unknown part of a submission", submission={"output": "It rained.", "thoughts": "Hm.", "thinking": 1}),
    _essay("texts of an item that are none", description=1, prompt=2, reference_submission=3),
    _essay("an unknown key of an item", ground_trut=["MET"]),
    _essay("unknown labels", ground_truth=["MAYBE", "grate", "MET"]),
    _essay("ground truth of the wrong length", ground_truth=["MET", "good"]),
    _essay("reasons of the wrong kind", ground_truth_reasons=["because", 3]),
    _essay("reasons as text", ground_truth_reasons="because"),
    _essay("bad annotations", annotations={"ann": ["MET"], "bob": ["MET", "nice", None]}),
    _essay("a rubric of its own with faults", rubric={"criteria": []}),
    _essay("bad tags and metadata", tags={"a": 1}, metadata={"doc": [1]}),
]
