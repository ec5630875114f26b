import json
import sys
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from hypothesis import given

from deemster.datasets import RubricDataset, Votes
from deemster.rubrics import Rubric
from tests.datasets import bad_votes as mistakes
from tests.datasets.bad_votes import ESSAYS
from tests.datasets.loop_reference import votes_files

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "schemas"))

import make  # noqa: E402

KINDS = {"golden": "dataset", "dataset": "dataset", "suite": "suite", "answers": "outputs", "outputs": "outputs"}


def validator(kind):
    schema = json.loads((ROOT / "schemas" / f"deemster.{kind}.v1.json").read_text(encoding="utf-8"))
    return jsonschema_rs.validator_for(schema)


@pytest.mark.parametrize("name", sorted(make.schemas()))
def test_schemas_are_those_of_the_records(name):
    written = (ROOT / "schemas" / name).read_text(encoding="utf-8")
    assert make.schemas()[name] == written, "run `python schemas/make.py`"


EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").rglob("*"))
    if path.suffix in (".yml", ".yaml", ".json") and path.stem in KINDS
]


def test_there_are_examples():
    assert len(EXAMPLES) > 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_file_fits_its_schema(path):
    validator(KINDS[path.stem]).validate(yaml.safe_load(path.read_text(encoding="utf-8")))


REPORTS = sorted((ROOT / "tests" / "golden" / "examples").rglob("*.json"))


def test_there_are_reports():
    assert REPORTS


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_every_golden_report_fits_its_schema(path):
    validator("report").validate(json.loads(path.read_text(encoding="utf-8")))


SHAPES = [
    [{"requirement": "It is right."}],
    [{"name": "style", "criteria": [{"requirement": "It is short."}]}, {"requirement": "It is right."}],
    {"criteria": [{"requirement": "It is right.", "check": {"metric": "contains", "args": {"text": "x"}}}]},
    {"sections": [{"criteria": [{"requirement": "It is right."}]}], "guidelines": "Be strict."},
    {"rubric": [{"requirement": "It is right."}], "guidelines": "Be strict."},
    {"rubric": {"criteria": [{"requirement": "It is right."}]}, "schema_version": "deemster.rubric.v1"},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_of_a_rubric_fits_its_schema_and_so_does_what_is_written_of_it(shape):
    validator("rubric").validate(shape)
    validator("rubric").validate(Rubric.load(shape).to_dict())


@given(votes_files())
def test_votes_and_what_is_written_of_them_fit_their_schema(value):
    validator("votes").validate(value)
    validator("votes").validate(Votes.parse(value).to_dict())


def test_rubric_dataset_and_what_is_written_of_it_fit_their_schema():
    validator("rubric_dataset").validate(ESSAYS)
    own = {"id": "own", "submission": {"output": "x"}, "rubric": SHAPES[0], "metadata": {"doc": 1}, "tags": ["a"]}
    dataset = RubricDataset([*ESSAYS["items"], own], rubric=ESSAYS["rubric"])
    validator("rubric_dataset").validate(dataset.to_dict())


BEYOND = {
    # A JSON Schema cannot express that labels depend on the rubric, ids on other items, and scores on the grading.
    "votes": {
        "an unknown rubric key", "no rubric key", "an unknown judge", "too few cells", "too many cells",
        "three unknown labels", "an unknown verdict in a vote", "p as a list on a binary criterion",
        "p as a number on an ordinal criterion", "p of the wrong length", "p that does not sum to 1",
        "a bad label among repeats", "a check of another criterion", "a check by another metric",
        "a check that repeats", "ground truth of the wrong length", "the same id twice", "a rubric key without rubrics",
        "a score above 1", "a cell that is a number", "bad final",
    },
    "rubric_dataset": {
        "no rubric anywhere", "the same id twice", "a default id that is taken", "unknown labels",
        "ground truth of the wrong length", "bad annotations",
    },
}  # fmt: skip


FILES = {"votes": mistakes.VOTES_FILES, "rubric_dataset": mistakes.RUBRIC_DATASETS}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in BEYOND for name in sorted(BEYOND[kind])])
def test_rules_beyond_json_schema_are_checked_by_reader(kind, name):
    (mistake,) = [mistake for mistake in FILES[kind] if mistake.name == name]
    assert validator(kind).is_valid(json.loads(mistake.text))


def mistaken(kind, files):
    return [
        (kind, mistake)
        for mistake in files
        if mistake.file.endswith(".json") and mistake.name not in BEYOND[kind] | {"empty", "not JSON", "a key twice"}
    ]


@pytest.mark.parametrize(
    ("kind", "mistake"),
    [*mistaken("votes", mistakes.VOTES_FILES), *mistaken("rubric_dataset", mistakes.RUBRIC_DATASETS)],
    ids=lambda value: getattr(value, "name", value),
)
def test_shape_rejected_by_reader_is_rejected_by_schema(kind, mistake):
    assert not validator(kind).is_valid(json.loads(mistake.text, parse_constant=str))
