import json
import sys
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "schemas"))

import make  # noqa: E402

KINDS = {"golden": "dataset", "dataset": "dataset", "suite": "suite", "answers": "outputs", "outputs": "outputs"}


def validator(kind):
    schema = json.loads((ROOT / "schemas" / f"deemster.{kind}.v1.json").read_text(encoding="utf-8"))
    return jsonschema_rs.validator_for(schema)


@pytest.mark.parametrize("name", sorted(make.schemas()))
def test_the_schemas_are_those_of_the_records(name):
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
