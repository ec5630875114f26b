"""The strict reader of YAML."""

from __future__ import annotations

import pytest

from deemster.errors import DatasetError, InputError
from deemster.formats.document import Document, Reading
from deemster.formats.strict_yaml import yaml_document


def read(text: str) -> Document:
    return yaml_document(text, Reading("f.yml", error=DatasetError))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01", "2024-01-01"), ("12:30", "12:30"), ("yes", "yes"), ("no", "no"), ("on", "on"),
        ("1_000", "1_000"),
        ("true", True), ("True", True), ("TRUE", True), ("tRUE", "tRUE"), ("False", False), ("null", None), ("~", None),
        ("", None), ("nULL", "nULL"), ("0o17", 15), ("017", 17), ("0x1F", 31), ("0X1F", "0X1F"), ("-0x1F", "-0x1F"),
        ("0b1", "0b1"), ("+1", 1), ("-0", 0), ("1e3", 1000.0), (".5", 0.5), ("+.5", 0.5), ("1.", 1.0), (".", "."),
        ("123456789012345678901234567890", 123456789012345678901234567890), ("'1'", "1"), ('"~"', "~"), ("1:2", "1:2"),
        ("x\u2028y", "x\u2028y"), ('"x\u0085  y"', "x\u0085  y"), ("\u2029\ue000", "\u2029\ue000"),
        ("|\n  x\n  y\n", "x\ny\n"), (">-\n  p\n  q\n", "p q"), ("[1, {x: y}]", [1, {"x": "y"}]),
    ],
)  # fmt: skip
def test_scalars_have_the_meaning_of_the_core_schema(text, value):
    found = read(f"a: {text}").value["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x: 1\na: !!python/object/apply:os.system [ls]", 2, "Tags are not read"),
        ("a: !!str 1", 1, "Tags are not read"),
        ("a: !foo {}", 1, "Tags are not read"),
        ("a: ! 1", 1, "Tags are not read"),
        ("a: 1\nb: 2\na: 3", 3, "The key `a` is given twice"),
        ("a: {b: 1, b: 2}", 1, "The key `b` is given twice"),
        ("<<: {a: 1}", 1, "Merge keys"),
        ("a:\n  1: x", 2, "The key `1` is not text. Quote it."),
        ("true: x", 1, "is not text"),
        ("[a]: x", 1, "A key is text, not a map or a list"),
        ("a: .nan", 1, "not a finite number"),
        ("a: -.INF", 1, "not a finite number"),
        ("a: 1e400", 1, "too large"),
        ("a: " + "9" * 5000, 1, "digits"),
        ("---\na: 1\n---\nb: 2", 3, "second document"),
        ("%YAML 1.1\n---\na: 1", 1, "Directives"),
        ("%TAG ! tag:x,2000:\n---\na: 1", 1, "Directives"),
        ("a: *x", 1, "No anchor"),
        ("a: &x [*x]", 1, "inside its own anchor"),
        ("a: b: c", 1, "a value with a colon and a space in it is put in quotes"),
        ("a: 1\n\tb: 2", 2, "this line is indented with a tab; YAML takes spaces only"),
        ("a: 1\n  b: 2", 2, "this line is not indented like its neighbours"),
        ("a:\n  - b\n - c", 3, "this line is not indented like its neighbours"),
        ("a:\n    b: 1\n  c: 2", 3, "this line is not indented like its neighbours"),
        ("a: { b: 1\nc: 2", 2, "the `{` of line 1 is not closed"),
        ("a: [b\nc: 2", 2, "the `[` of line 1 is not closed"),
        ("a: 'b\nc: 2", 2, "the quotation mark of line 1 is not closed"),
        ("a: @b", 1, "a value that begins with `@` is put in quotes"),
        ("a: 1\nb\nc: 2", 3, "the key of line 2 needs a colon after it"),
        ("a: - b", 1, "the first item of a list begins on a line of its own"),
        ('a: "\\q"', 1, "a backslash in double quotes begins an escape"),
        ("x: 1\na: \x07", 2, "U+0007"),
        ('a: "\\ud800"', 1, "lone surrogate"),
        ("# only", None, "empty"),
    ],
)
def test_refused_input_is_error_with_line(text, line, said):
    with pytest.raises(DatasetError) as caught:
        read(text)
    (fault,) = caught.value.issues
    assert said in fault.message
    assert fault.where is not None
    assert fault.where.split(":")[:2] == (["f.yml"] if line is None else ["f.yml", str(line)])


def test_quoted_merge_key_is_ordinary_key():
    assert read('"<<": 1').value == {"<<": 1}


def test_few_aliases_are_read():
    assert read("a: &x [1, 2]\nb: *x\nc: &k key\n*k : 3").value == {"a": [1, 2], "b": [1, 2], "c": "key", "key": 3}


def test_alias_bomb_is_error():
    rows = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join(['*' + old] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    with pytest.raises(DatasetError, match="Too many aliases"):
        read("\n".join(rows))


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "? " * 100_000, '["\n- ",' * 50_000])
def test_depth_bomb_is_error(text):
    with pytest.raises(InputError):
        read(text)


def test_nesting_of_a_hundred_is_read_and_one_more_is_refused():
    assert read("[" * 100 + "]" * 100).value
    with pytest.raises(DatasetError, match="deeper than 100"):
        read("[" * 101 + "]" * 101)
    with pytest.raises(DatasetError, match="deeper than 100"):
        read("- &a " + "[" * 60 + "]" * 60 + "\n- " + "[" * 60 + "*a" + "]" * 60)


def test_every_part_has_its_line():
    document = read("a:\n  - x\n  - b:\n      c: 1\nd: |\n  t\n")
    assert document.where(("a", 1, "b", "c")) == "f.yml:4"
    assert document.where(("a", 0)) == "f.yml:2"
    assert document.where(("d",)) == "f.yml:5"
    assert document.where(("a", 1, "absent")) == "f.yml:3"
    assert document.where() == "f.yml:1"
