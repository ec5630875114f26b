"""Rubrics in every shape, and the messages for bad ones."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from deemster.errors import RubricError
from deemster.formats import read_document
from deemster.rubrics import Criterion, Rubric, Section
from deemster.rubrics.rubric_definition import read_rubric
from tests.rubrics.bad_rubrics import MISTAKES

A, B, C = ({"name": name, "requirement": f"It is {name}."} for name in "abc")
ABC = tuple(Criterion(f"It is {name}.", name=name) for name in "abc")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ([A, B, C], Rubric(ABC)),
        ({"criteria": [A, B, C]}, Rubric(ABC)),
        ((A, B, C), Rubric(ABC)),
        ({"rubric": [A, B, C]}, Rubric(ABC)),
        ({"rubric": {"criteria": [A, B, C]}, "guidelines": "g"}, Rubric(ABC, guidelines="g")),
        ({"rubric": {"criteria": [A, B, C], "guidelines": "g"}}, Rubric(ABC, guidelines="g")),
        (
            {"schema_version": "deemster.rubric.v1", "criteria": [A, B, C], "name": "n", "version": "2"},
            Rubric(ABC, name="n", version="2"),
        ),
        (
            [{"name": "s", "criteria": [A]}, {"criteria": [B, C]}],
            Rubric(sections=(Section(ABC[:1], "s"), Section(ABC[1:]))),
        ),
        ([A, B, {"name": "s", "criteria": [C]}], Rubric(sections=(Section(ABC[:2]), Section(ABC[2:], "s")))),
        (
            [A, {"name": "s", "criteria": [B]}, C],
            Rubric(sections=(Section(ABC[:1]), Section(ABC[1:2], "s"), Section(ABC[2:]))),
        ),
        (
            {"sections": [{"name": "s", "description": "d", "criteria": [A, B, C]}]},
            Rubric(sections=(Section(ABC, "s", "d"),)),
        ),
        ({"rubric": {"sections": [{"criteria": [A, B, C]}]}}, Rubric(sections=(Section(ABC),))),
        ({"rubric": [{"criteria": [A, B, C]}]}, Rubric(sections=(Section(ABC),))),
    ],
)
def test_every_shape_is_read(source, expected):
    found = Rubric.load(source)
    assert found == expected
    assert found.criteria == ABC


def test_null_is_the_same_as_absent_where_a_field_may_be_absent():
    nothing = dict.fromkeys(("name", "options", "scale_type", "order", "aggregation", "check"))
    source = {"criteria": [{"requirement": "x", **nothing}], "guidelines": None, "name": None, "version": None}
    assert Rubric.load(source) == Rubric((Criterion("x"),))


def test_rubric_is_loaded_from_a_path_and_from_an_open_file(tmp_path):
    path = tmp_path / "r.yml"
    path.write_text("- requirement: x\n", encoding="utf-8")
    expected = Rubric((Criterion("x"),))
    assert Rubric.load(path) == Rubric.load(str(path)) == expected
    with path.open(encoding="utf-8") as file:
        assert Rubric.load(file) == expected
    assert Rubric.load(io.StringIO("- requirement: x\n")) == expected
    assert Rubric.load(io.StringIO('\ufeff [{"requirement": "x"}]')) == expected


def test_open_file_is_read_by_its_extension(tmp_path):
    path = tmp_path / "r.json"
    path.write_text("- requirement: x\n", encoding="utf-8")
    with path.open(encoding="utf-8") as file, pytest.raises(RubricError, match=r"r\.json:1"):
        Rubric.load(file)


def test_text_is_parsed_in_given_format():
    text = '[{"requirement": "x"}]'
    assert Rubric.parse(text) == Rubric.parse(text, format="json") == Rubric.parse(text, format="yaml")
    with pytest.raises(RubricError, match="<text>:1"):
        Rubric.parse("- requirement: x", format="json")


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Rubric.load(3), "A rubric is loaded from a path, an open text file, a map or a list, not a number."),
        (lambda: Rubric.load(io.BytesIO(b"[]")), "<file>: The file is open as bytes; open it as text."),
        (lambda: Rubric.parse("x", format="yml"), "<text>: `yml` is no format. Did you mean `yaml`?"),
        (lambda: Rubric.parse(b"[]"), "<text>: A rubric is parsed from text, not a bytes."),
        (lambda: Rubric.parse("\n"), "<text>: The text is empty."),
        (lambda: Rubric.load([]), "The rubric is empty: it has at least one criterion."),
        (
            lambda: Rubric.load([{"requirement": "a\ud800"}]),
            "[0].requirement holds a lone surrogate, which is no character.",
        ),
        (
            lambda: Rubric.load([{"requirement": "x", "weight": 10**400}]),
            "[0].weight: number out of range.",
        ),
        (
            lambda: Rubric.load([{"requirement": "x", "check": {"metric": "m", "args": {"y": [1, object()]}}}]),
            "[0].check.args.y[1] is a object, which is not a JSON value.",
        ),
    ],
)
def test_non_rubric_source_is_error(act, message):
    with pytest.raises(RubricError) as error:
        act()
    assert str(error.value) == message


def test_issues_of_an_embedded_rubric_have_their_place_in_the_outer_file(tmp_path):
    path = tmp_path / "votes.yaml"
    path.write_text("name: x\nrubrics:\n  short:\n    criteria:\n      - requirement: x\n        weight: no\n", "utf-8")
    document = read_document(path)
    rubric, issues = read_rubric(document.value["rubrics"]["short"], document, ("rubrics", "short"))
    assert rubric is None
    assert [(issue.message, issue.where) for issue in issues] == [
        ("rubrics.short.criteria[0].weight must be a number, not text.", f"{path}:6")
    ]


def test_embedded_rubric_without_issues_is_read():
    assert read_rubric([A, B, C], None, ("rubric",)) == (Rubric(ABC), [])


def test_every_bad_rubric_gets_its_issues_with_their_places(folder, golden):
    told = []
    for mistake in MISTAKES:
        if mistake.text is not None:
            data = mistake.text.encode() if isinstance(mistake.text, str) else mistake.text
            Path(mistake.file).write_bytes(data)
        with pytest.raises(RubricError) as error:
            Rubric.load(mistake.file)
        told.append(f"# {mistake.name}\n{error.value}\n")
        if mistake.text is not None:
            Path(mistake.file).unlink()
    golden("errors/rubrics.txt", "\n".join(told))
