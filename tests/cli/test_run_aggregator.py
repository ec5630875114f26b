"""A suite with an aggregator, from the file to the exit code."""

from __future__ import annotations

import json

import pytest

from tests.cli.workspace import SUITE, called

SCORING = """\
import deemster as dm


class Tone:
    name = "tone"

    def score(self, sample, output):
        grade = 3 if "days" in output.text else 2
        return dm.MetricScore((grade - 1) / 2, rubric_score=grade)


class Padding:
    name = "padding"

    def score(self, sample, output):
        grade = 1 if len(output.text) < 8 else 2
        return dm.MetricScore((grade - 1) / 2, rubric_score=grade, threshold=0.5, higher_is_better=False)
"""
METRICS = SUITE.replace("[exact-match]", "['scoring:Tone', 'scoring:Padding']")
WEIGHTED = """\
aggregator:
  kind: weighted
  weights: { tone: 2, padding: 1 }
  score_mapping:
    tone: { "1": 0, "2": 0.5, "3": 1 }
    padding: { "1": 1, "2": 0.5, "3": 0 }
"""


@pytest.fixture
def suite(world):
    def change(text):
        world(suite_yml=text, scoring_py=SCORING)

    return change


def test_weighted_suite_reports_and_gates_its_aggregate(suite):
    suite(METRICS + WEIGHTED + "gate: { min_aggregate_success: 1, min_aggregate_score: 0.76 }\n")
    result = called("run", "suite.yml", "--to", "-")
    report = json.loads(result.stdout)
    # `window` has the grades 3 and 1: (2 + 1) / 3; `fee` has 2 and 2: (1 + 0.5) / 3.
    assert [entry["aggregate"] for entry in report["samples"]] == [
        {"success": True, "score": 1.0},
        {"success": True, "score": 0.5},
    ]
    assert report["aggregate"]["aggregator"] == "weighted tone 2 (1: 0, 2: 0.5, 3: 1), padding 1 (1: 1, 2: 0.5, 3: 0)"
    assert (report["aggregate"]["success_rate"], report["aggregate"]["mean_score"]) == (1.0, 0.75)
    assert [(cohort["label"], cohort["aggregate"]["mean_score"]) for cohort in report["cohorts"]] == [
        ("policy", 1.0),
        ("(untagged)", 0.5),
    ]
    assert [(check["name"], check["status"], check["observed"]) for check in report["gate"]["checks"]] == [
        ("min_aggregate_success", "pass", 1.0),
        ("min_aggregate_score", "fail", 0.75),
    ]
    assert result.exit_code == 1


AGGS = """\
from deemster.results import MetricsAggregator


class Forgiving(MetricsAggregator):
    def compute_success(self, named_results):
        return any(result.success for result in named_results.values())

    def compute_score(self, named_results):
        return max(result.quality for result in named_results.values())


class Bare:
    def aggregate(self, named_results):
        return Forgiving().aggregate(named_results)


class Needy(MetricsAggregator):
    def __init__(self, k):
        self.k = k


class Raising(MetricsAggregator):
    def compute_score(self, named_results):
        return 1 / 0


def fading(grade):
    return (3 - grade) / 2


GRADES = {1: 0, 2: 0.25, 3: 1}
bare, three = Bare(), 3
"""


@pytest.fixture
def code(world):
    def change(section):
        world(suite_yml=METRICS + section, scoring_py=SCORING, aggs_py=AGGS)

    return change


@pytest.mark.parametrize(("path", "name"), [("Forgiving", "Forgiving"), ("Bare", "Bare"), ("bare", "Bare")])
def test_import_path_of_aggregator_is_used_with_its_hooks(code, path, name):
    code(f'aggregator: "aggs:{path}"\ngate: {{ min_aggregate_success: 1 }}\n')
    assert called("check", "suite.yml").exit_code == 0
    result = called("run", "suite.yml", "--to", "-")
    assert result.exit_code == 0, result.stderr
    aggregate = json.loads(result.stdout)["aggregate"]
    # The qualities are 1 and 1 of `window`, 0.5 and 0.5 of `fee`.
    assert (aggregate["aggregator"], aggregate["success_rate"], aggregate["mean_score"]) == (f"aggs:{name}", 1.0, 0.75)


def test_import_paths_of_score_mappings_are_used(code):
    code(
        WEIGHTED.replace('{ "1": 1, "2": 0.5, "3": 0 }', '"aggs:fading"').replace(
            '{ "1": 0, "2": 0.5, "3": 1 }', '"aggs:GRADES"'
        )
    )
    result = called("run", "suite.yml", "--to", "-")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    # `window` has the grades 3 and 1: (2 + 1) / 3; `fee` has 2 and 2: (0.5 + 0.5) / 3.
    assert [entry["aggregate"]["score"] for entry in report["samples"]] == pytest.approx([1.0, 1 / 3])
    assert report["aggregate"]["aggregator"] == "weighted tone 2 (1: 0, 2: 0.25, 3: 1), padding 1 (aggs:fading)"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ('"aggs:Forgivin"', "cannot be imported: `aggs` has no `Forgivin`. Did you mean `Forgiving`?"),
        ('"nowhere:Forgiving"', "The aggregator `nowhere:Forgiving` cannot be imported: ModuleNotFoundError"),
        ('"aggs:three"', "`aggs:three` is no aggregator: it needs `aggregate(named_results)`."),
        ('"aggs:Needy"', "`aggs:Needy` cannot be made without arguments: TypeError"),
        ('"aggs:"', "aggregator"),
        ('{ kind: weighted, weights: { tone: 1 }, score_mapping: { tone: "aggs:fadin" } }', "Did you mean `fading`?"),
        (
            '{ kind: weighted, weights: { tone: 1 }, score_mapping: { tone: "aggs:three" } }',
            "The mapping of `tone` is a map",
        ),
        ('"aggs:Raising"', "The aggregator aggs:Raising failed: ZeroDivisionError: division by zero"),
    ],
)
def test_import_path_that_names_no_aggregator_is_bad_input(code, section, message):
    code(f"aggregator: {section}\n")
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Raising" in section or "suite.yml:" in result.stderr


def test_suite_with_an_aggregator_validates(suite):
    suite(METRICS + WEIGHTED + "gate: { min_aggregate_success: 1 }\n")
    result = called("check", "suite.yml")
    assert (result.exit_code, result.stderr) == (0, "")


def test_metric_left_out_by_flag_is_left_out_of_aggregator(suite):
    suite(METRICS + WEIGHTED)
    result = called("run", "suite.yml", "--metric", "scoring:Tone", "--to", "-")
    assert json.loads(result.stdout)["aggregate"]["aggregator"] == "weighted tone 2 (1: 0, 2: 0.5, 3: 1)"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "aggregator: mni\n",
            "suite.yml:5: aggregator must be one of `and`, `geometric`, `min`, not `mni`. Did you mean `min`?",
        ),
        ("aggregator:\n", "suite.yml:5: `aggregator` is empty."),
        ("agregator: min\n", "suite.yml:5: `agregator` is no key of a suite. Did you mean `aggregator`?"),
        (
            "aggregator: { at-least: 3 }\n",
            "suite.yml:5: `at-least` asks for 3 metrics, and this run has 2: it could never succeed.",
        ),
        (
            "aggregator:\n  critical: [tone,\n    pading]\n",
            (
                "suite.yml:7: The aggregator names the metric `pading`, which this run does not have. "
                "Did you mean `padding`?"
            ),
        ),
        (
            WEIGHTED.replace("{ tone: 2", "{ ton: 2").replace("    tone:", "    ton:"),
            "suite.yml:7: The aggregator names the metric `ton`, which this run does not have. Did you mean `tone`?",
        ),
        (
            WEIGHTED.replace('"3": 1 }', '"3": 1.5 }'),
            "suite.yml:9: aggregator.score_mapping.tone.3 must be a number from 0 to 1, not 1.5.",
        ),
        (WEIGHTED.replace('"1": 0,', "1: 0,"), "suite.yml:9: The key `1` is not text. Quote it."),
        (
            WEIGHTED.replace(', "3": 1 }', " }"),
            "sample `window`: The mapping of `tone` does not hold the rubric score 3, but 1, 2.",
        ),
        (
            "gate: { min_aggregate_score: 0.5 }\n",
            "suite.yml:5: The gate has `min_aggregate_score`, and this run has no `aggregator` to hold it to.",
        ),
    ],
)
def test_invalid_aggregator_is_one_message_and_exit_code_2(suite, section, message):
    suite(METRICS + section)
    result = called("run", "suite.yml")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"error: {message}\n")


def test_issues_of_aggregator_metrics_and_gate_are_listed_together(suite):
    suite(SUITE.replace("exact-match", "exact-macth") + "aggregator: mni\ngate: { min_macro: 1 }\n")
    result = called("run", "suite.yml")
    assert result.exit_code == 2
    assert [line.partition(": ")[0].strip() for line in result.stderr.removeprefix("error: ").splitlines()] == [
        "suite.yml:4",
        "suite.yml:5",
        "suite.yml:6",
    ]
