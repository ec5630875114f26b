"""Rubrics written and read again."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from deemster.errors import RubricError
from deemster.rubrics import Check, Criterion, Option, Rubric, Section
from tests.rubrics.make_rubrics import EXAMPLE, rubrics

FULL = Rubric(
    sections=(
        Section((Criterion("Every claim is supported.", name="facts", fatal=True),), "truth", "What must hold."),
        Section(
            (
                Criterion(
                    "How deep: is it?",
                    2.5,
                    "depth",
                    (Option("yes", 1), Option("so, so", 0.5), Option("no", 0), Option("n/a", na=True)),
                    aggregation="median",
                ),
                Criterion("Says sorry.", -4, check=Check("contains", {"any": ["sorry", "très"]}, 0.5)),
                Criterion("Tone", 0, "tone", (Option("a", 0.3), Option("b", 0.3)), "nominal"),
                Criterion("Pace", 10, "pace", (Option("a", 0), Option("b", 0), Option("c", 1)), order=("b", "c", "a")),
            )
        ),
    ),
    guidelines="Be strict.\nBe kind.",
    name="support",
    version="2",
)

FULL_YAML = """\
schema_version: deemster.rubric.v1
name: support
version: "2"
guidelines: "Be strict.\\nBe kind."
sections:
  - name: truth
    description: What must hold.
    criteria:
      - name: facts
        requirement: Every claim is supported.
        fatal: true
  - criteria:
      - name: depth
        weight: 2.5
        requirement: "How deep: is it?"
        options:
          - {label: "yes", value: 1}
          - {label: "so, so", value: 0.5}
          - {label: "no", value: 0}
          - {label: n/a, na: true}
        aggregation: median
      - weight: -4
        requirement: Says sorry.
        check:
          metric: contains
          args: {"any": ["sorry", "très"]}
          threshold: 0.5
      - name: tone
        weight: 0
        requirement: Tone
        scale_type: nominal
        options:
          - {label: a, value: 0.3}
          - {label: b, value: 0.3}
      - name: pace
        requirement: Pace
        options:
          - {label: a, value: 0}
          - {label: b, value: 0}
          - {label: c, value: 1}
        order: ["b", "c", "a"]
"""


def test_yaml_is_written_in_readable_form(tmp_path):
    assert FULL.dump(tmp_path / "r.yaml").read_text("utf-8") == FULL_YAML


def test_defaults_are_left_out_and_keys_have_a_fixed_order():
    assert json.dumps(EXAMPLE.to_dict()["criteria"][:3]) == json.dumps(
        [
            {"name": "facts", "requirement": "Every claim is supported."},
            {"name": "fluff", "weight": -4, "requirement": "The answer repeats itself."},
            {
                "name": "depth",
                "weight": 6,
                "requirement": "How deep is it?",
                "options": [
                    {"label": "poor", "value": 0},
                    {"label": "fair", "value": 0.5},
                    {"label": "good", "value": 1},
                    {"label": "n-a", "na": True},
                ],
            },
        ]
    )


@pytest.mark.parametrize("extension", ["json", "yaml", "yml"])
def test_full_rubric_round_trips_through_file(tmp_path, extension):
    assert Rubric.load(FULL.dump(tmp_path / f"r.{extension}")) == FULL


def test_rubric_round_trips_through_map():
    assert Rubric.load(FULL.to_dict()) == FULL


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rubric=rubrics(hostile=True))
def test_written_rubric_reads_back_and_rewrites_same(tmp_path, rubric):
    for extension in ("json", "yaml"):
        path = rubric.dump(tmp_path / f"r.{extension}")
        first = path.read_bytes()
        again = Rubric.load(path)
        assert again == rubric
        assert hash(again) == hash(rubric)
        assert again.dump(path).read_bytes() == first


def test_unwritable_path_is_error(tmp_path):
    with pytest.raises(RubricError, match=r"`\.jsonl` does not say how to read it"):
        FULL.dump(tmp_path / "r.jsonl")
    with pytest.raises(RubricError, match="cannot be written"):
        FULL.dump(tmp_path / "none" / "r.yaml")
