"""Adding rows to a file that people wrote."""

from __future__ import annotations

import pytest

from deemster.errors import DatasetError
from deemster.formats import read_document
from deemster.formats.write_rows import extend_rows

NEW = [{"id": "b", "input": {"q": "x: #y"}, "expected_output": None}, {"id": "c", "input": {}, "expected_output": 1}]
YAML = """\
# Golden answers.
name: support
samples:   # by hand

  - id: a   # the first
    input: {q: hi}
    expected_output: yes sir
"""


def extended(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    extend_rows(path, NEW, key="samples", known=("yaml", "json", "jsonl"), error=DatasetError)
    return path


@pytest.mark.parametrize("indent", ["", "  ", "    "])
@pytest.mark.parametrize("end", ["\n", "", "\n\n# the end\n"])
def test_yaml_keeps_its_text_and_gains_the_rows(tmp_path, indent, end):
    text = YAML.replace("\n  ", f"\n{indent}").rstrip("\n") + end
    path = extended(tmp_path, "x.yml", text)
    assert path.read_text().startswith(text)
    value = read_document(path, error=DatasetError).value
    assert value["samples"] == [{"id": "a", "input": {"q": "hi"}, "expected_output": "yes sir"}, *NEW]
    assert value["name"] == "support"


@pytest.mark.parametrize(
    "text",
    [
        "samples: [{id: a, input: {}, expected_output: 1}]\n",
        "samples:\n  - id: a\nname: last\n",
        "name: none\n",
        "- id: a\n",
        "samples:\n  - id: a\n    expected_output: |\n      text\n ...\n",
    ],
)
def test_unextendable_yaml_is_error_and_unchanged(tmp_path, text):
    with pytest.raises(DatasetError):
        extended(tmp_path, "x.yml", text)
    assert (tmp_path / "x.yml").read_text() == text


def test_json_and_jsonl_gain_the_rows(tmp_path):
    path = extended(tmp_path, "x.json", '{"name": "n", "samples": [{"id": "a"}]}')
    assert read_document(path, error=DatasetError).value == {"name": "n", "samples": [{"id": "a"}, *NEW]}
    path = extended(tmp_path, "x.jsonl", '{"id": "a"}')
    assert len(path.read_text().splitlines()) == 3


def test_missing_file_is_error(tmp_path):
    with pytest.raises(DatasetError, match="cannot be extended: No such file"):
        extend_rows(tmp_path / "none.yml", NEW, key="samples", known=("yaml",), error=DatasetError)
