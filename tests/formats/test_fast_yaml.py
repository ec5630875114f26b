"""The fast YAML reader gives the same values as the strict reader, or declines."""

from __future__ import annotations

import contextlib
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.datasets import Dataset
from deemster.errors import DatasetError
from deemster.formats import _fast_yaml as quickyaml
from deemster.formats._fast_yaml import yaml_value
from deemster.formats.canonical_json import is_plain
from deemster.formats.document import Reading
from deemster.formats.strict_yaml import yaml_document

ATOMS = [
    "a", "1", "017", "-0x1F", "+0x1", "0b1", "0o17", "0x1F", ".5", "+.5", "1e3", "1e400", "1E999", "-1.5e-7", "yes",
    "true", "True", "~", "null", "", "2024-01-01", "12:30", "1_000", "'it''s'",
    '"q\\n"', '"a\n      b"', "'x\n\n      y'",
    "|\n      x\n      y\n", "|+\n      x\n\n\n", ">-\n      p\n      q\n", "[1, 2,]", "{x: 1,}", "{x}", "[x: 1]",
    "[a, [b, {c: d}]]", "x #y", "x#y", "\n      - p\n      - q", "\n      k: v\n      l: 2", "!t x", "&a x", "*a", "<<",
    "é", "\u2028z", "😀", "00", "-007", "+01", "1.", "1.e3", "9" * 19, "9" * 25, "9" * 45, "0x" + "f" * 20,
    "0x" + "f" * 40, "0o" + "7" * 30, "-0", "-0.0", "007.5", "0_1", ".", "-", ".e3", "-.inf", ".NaN", "0x", "0X1F",
    "0o8", "a:b", "a: b", "'", '"', "[", "}", "#c", "%x", "@x", "x\ty", "\tx", "|2\n       t", "\r", "---", "+", "1e",
    "1e-400", "0e999", "5e0000001", "1.5e+0003", "0" * 30, "- - a", "! b", "nULL", "=", "0x_1", "12e03", "08", "09.1",
    "+-1", "inf", "nan", "0x1p3", "a, b", "[007, 0b1]", "{007: x}", "{1: x}", "{a: 1, a: 2}", '"\\ud800"', '"\\0"',
    "\ufeff", "\x07", '"x\n  - id: y"', "[a,\n  - b]", "'p\n- q'", "|\n    - deep\n      x",
]  # fmt: skip
KEYS = ["id", "input", "expected_output", "metadata", "1", "'q'", '"w"', "007", "true", "? k"]
lines = st.builds(
    lambda key, gap, atom, end: (key, f":{gap}{atom}{end}"),
    st.sampled_from(KEYS),
    st.sampled_from([" ", " ", "  ", "\t", ""]),
    st.sampled_from(ATOMS) | st.text(max_size=6),
    st.sampled_from(["\n", "\n", " # c\n", "\r\n", " \n", "\n\n", "\n# c\n"]),
)
entries = st.lists(st.lists(lines, min_size=1, max_size=3), min_size=1, max_size=4)


def text_of(rows, indent, head):
    body = ""
    for row in rows:
        for number, (key, rest) in enumerate(row):
            body += indent + ("  " if number else "- ") + key + rest
    return f"{head}samples:\n{body}"


def agree(text):
    try:
        fast = yaml_value(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return False
    if not is_plain(fast, 100, []):
        return False
    slow = yaml_document(text.removeprefix("\ufeff"), Reading("f.yml", error=DatasetError)).value
    assert repr(fast) == repr(slow)
    return True


@settings(max_examples=1500, deadline=None)
@given(entries, st.sampled_from(["", "  ", " "]), st.sampled_from(["", "name: n\n", "# c\n", "---\n", 'name: "\n']),
       st.sampled_from([1, 40, 8192]))  # fmt: skip
def test_fast_reader_agrees_with_strict_reader_or_declines(rows, indent, head, piece):
    before = quickyaml.PIECE
    quickyaml.PIECE = piece
    try:
        agree(text_of(rows, indent, head))
    finally:
        quickyaml.PIECE = before


@pytest.mark.parametrize("shape", ["  - id: {}\n  - id: x\n", "  - {{id: {}}}\n", "- {}\n- x\n", "  - [{}, x]\n"])
def test_each_scalar_agrees_in_each_position(shape, monkeypatch):
    monkeypatch.setattr(quickyaml, "PIECE", 1)
    for atom in ATOMS:
        agree("name: n\nsamples:\n" + shape.format(atom))


@pytest.mark.parametrize(
    "body",
    [
        "  - id: a\n    input: {question: 'Is it open?', lang: en}\n    expected_output: Yes! It is & was *so*.\n",
        "- id: a\n  n: 1\n  f: 2.5\n  when: 2024-01-01\n- id: b\n  text: |\n    one\n    two\n",
        "  # first\n\n  - id: a\n    x: ~\n",
    ],
)
def test_ordinary_samples_use_fast_reader(body):
    assert agree(f"name: n\nsamples:\n{body}")


@pytest.mark.parametrize("unit", ["{a: ", '{"}": ', '["\n- ",', "[", "- "])
def test_deep_entry_never_blocks_fast_reader(unit, monkeypatch):
    pytest.importorskip("ryaml")
    seen = []
    monkeypatch.setattr("ryaml.loads", lambda text: seen.append(len(text)) or [])
    text = "name: n\nsamples:\n  - " + unit * 100_000
    with contextlib.suppress(ValueError):
        yaml_value(text.encode())
    assert all(size < 200_000 or unit == "- " for size in seen)


def test_without_ryaml_strict_reader_is_used(tmp_path, monkeypatch):
    (tmp_path / "a.yml").write_text("name: n\nsamples:\n  - {id: a, input: {}, expected_output: 017}\n")
    monkeypatch.setitem(sys.modules, "ryaml", None)
    assert [sample.expected_output for sample in Dataset.load(tmp_path / "a.yml")] == [17]
