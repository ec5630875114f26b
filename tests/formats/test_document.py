"""Missing files: the nearest name, as the file that names it writes paths."""

from __future__ import annotations

import pytest

from deemster.formats.mistyped_path import missing_file, nearest_file


@pytest.fixture
def folder(folder):
    for name in ("golden.yml", "golden.csv", "Labels.YML", "votes.json", "data/answers.jsonl"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    return folder


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("goldn.yml", "golden.yml"),
        ("goldn.csv", "golden.csv"),
        ("golden.parquet", "golden.csv"),
        ("golden", "golden.csv"),
        ("labels.yml", "Labels.YML"),
        ("LABELS.json", "Labels.YML"),
        ("labels.json", "Labels.YML"),
        ("words.json", None),
        ("data/answer.jsonl", "data/answers.jsonl"),
        ("nowhere/deep/votes.json", "votes.json"),
        ("data/golden.yml", None),
        ("", None),
        ("a\0b", None),
        ("x" * 5000, None),
    ],
)
def test_nearest_file_is_found_by_its_stem_then_by_its_extension(folder, path, near):
    assert nearest_file(path) == near


def test_absolute_path_stays_absolute(folder):
    assert nearest_file(folder / "vote.json") == str(folder / "votes.json")
    assert missing_file(str(folder / "vote.json"), folder=folder) == (
        f"There is no file `{folder / 'vote.json'}`. Did you mean `{folder / 'votes.json'}`?"
    )


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("answers.jsonl", None),
        ("answer.jsonl", "There is no file `answer.jsonl`. Did you mean `answers.jsonl`?"),
        ("../vote.json", "There is no file `../vote.json`. Did you mean `../votes.json`?"),
        ("data/answers.jsonl", "There is no file `data/answers.jsonl`. Did you mean `answers.jsonl`?"),
        ("\x1b[31m.yml", "There is no file `\\x1b[31m.yml`."),
        (".", None),
        ("a\0b", None),
        ("x" * 5000, None),
    ],
)
def test_missing_file_is_told_as_it_is_written(folder, written, told):
    assert missing_file(written, folder="data") == told
