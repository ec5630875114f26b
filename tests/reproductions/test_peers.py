"""The reproductions of the audit of November 2026 that tried other tools' tests and files, and the test of each."""

from __future__ import annotations

import json

import pytest

from deemster.errors import InputError
from deemster.integrations.import_run import read_runs
from tests.reproductions.held_by import ROOT, missing_tests

ROWS = (
    "test_code_of_every_row_gives_what_the_page_says",
    "test_every_line_of_every_table_is_a_row",
    "test_every_name_of_the_other_tool_has_one_row",
)
DIFFERENCES = ("test_deliberate_difference_follows_specification",)
HELD = {
    "1 calibrate gives a wrong number for words that it does not know": (
        "test_pairs_of_words_that_people_use_are_pass_and_fail",
        "test_words_that_stand_for_nothing_are_an_error_that_lists_them",
        "test_sheet_that_names_a_criterion_meets_its_options_and_not_the_metric_of_that_name",
    ),
    "2 content of a promptfoo config is dropped without a word": (
        "test_what_is_not_taken_in_is_said_with_its_line",
        "test_nested_values_of_variables_are_filled_in",
        "test_file_that_a_config_names_is_not_opened",
    ),
    "3 the human ceiling is denied for numeric criteria": (
        "test_people_are_compared_with_the_mean_of_the_others_on_numbers",
        "test_raters_who_agree_on_numbers_reach_the_ceiling_and_the_report_says_so",
    ),
    "4 promptfoo's defaults and types": (
        "test_defaults_and_names_are_those_of_promptfoo",
        "test_number_of_an_assertion_is_compared_as_text",
    ),
    "5 no path from an experiment of autorubric to its labels": ("test_experiment_joins_the_labels_of_its_dataset",),
    "6 assertions whose metric exists": ("test_lists_contexts_and_trajectories_have_their_metrics",),
    "7 `targets:` and red-team configs": (
        "test_targets_are_providers_and_templates_of_assertions_are_looked_up",
        "test_red_team_config_is_refused_by_name",
    ),
    "8 a threshold of dollars is shown as one of the score": (
        "test_threshold_of_dollars_is_no_threshold_of_the_score",
    ),
    "9 results of promptfoo of versions 1 and 2": ("test_results_of_earlier_versions_are_refused_by_name",),
    "10 one template of llm-rubric is one metric per test": (
        "test_all_rubrics_are_one_metric_that_reads_the_requirement_of_the_sample",
    ),
    "11 rows that the guides lack": ROWS,
    "12 no importer for HELM, nor for the sums of lm-eval": (
        "test_file_of_a_tool_without_importer_is_refused_with_the_tools_that_are_known",
    ),
    "13 several judges answer for their majority without a hint": (
        "test_report_on_several_judges_says_that_it_speaks_of_the_panel",
    ),
    "eval-harness: undocumented differences": ROWS,
    "autorubric: undocumented differences": (*ROWS, *DIFFERENCES),
    "gllm-evals: new there": ROWS,
}
# Names of other tools' things that had no row; each must have one now.
NEW_ROWS = {
    "eval-harness": (
        "cosine-embedding: zero vector",
        "malformed citation_evidence",
        "rouge-l: lcs_tokens",
        "no metrics",
        "outputs: numeric keys",
        "outputs without extension",
        "regex: /unterminated",
        "tool-called without expectation",
        "steps-below without expectation",
        "approval-gated",
        "eval-harness.calibration.v1",
    ),
    "autorubric": (
        "OrdinalCriterionMetrics.fleiss_kappa",
        "ordinal fleiss_kappa 0.3043, n_options 4: two judges, votes 0 NA 2 0 and 0 1 2 NA",
        "bootstrap of a perfect judge: accuracy (1.0, 1.0)",
        "score 0.0: all criteria of an item abstain under skip",
        "per_option []: an ordinal criterion without a pair",
        "systematic_bias unpaired: n_samples 1 of one score a side",
        "earth_movers_distance 0.3333: .8 .7 .9 and .7 .6 .8",
    ),
    "gllm-evals": (
        "run aggregators: TPR, TNR, accuracy of an evaluator",
        "turn aggregation: mean",
        "turn aggregation: worst",
    ),
}


@pytest.mark.parametrize("reproduction", HELD)
def test_reproduction_is_held_by_tests_that_exist(reproduction):
    assert missing_tests(HELD[reproduction]) == []


def test_every_defect_of_the_audit_is_here():
    numbers = [name.split(" ")[0] for name in HELD]
    assert [int(number) for number in numbers if number.isdigit()] == list(range(1, 14))


@pytest.mark.parametrize("tool", NEW_ROWS)
def test_difference_that_had_no_row_has_one(tool):
    guide = (ROOT / "docs" / "guide" / f"migrate-from-{tool}.md").read_text(encoding="utf-8")
    assert [name for name in NEW_ROWS[tool] if f"`{name}`" not in guide] == []


def test_threshold_of_dollars_is_no_threshold_of_the_score(tmp_path):
    assertion = {"type": "cost", "threshold": 0.002}
    row = {
        "promptIdx": 0,
        "testIdx": 0,
        "success": True,
        "score": 1,
        "vars": {"q": "a"},
        "testCase": {"vars": {"q": "a"}, "assert": [assertion]},
        "provider": {"id": "x"},
        "prompt": {"raw": "p", "label": "p"},
        "response": {"output": "hi"},
        "gradingResult": {
            "pass": True,
            "score": 1,
            "componentResults": [{"pass": True, "score": 1, "assertion": assertion}],
        },
    }
    results = {"version": 3, "prompts": [{"raw": "p", "label": "p", "provider": "x"}], "results": [row]}
    (tmp_path / "results.json").write_text(json.dumps({"evalId": "e", "results": results, "config": {}}))

    (run,) = read_runs(tmp_path / "results.json")

    (mark,) = run.executions[0].marks
    assert (mark.score, mark.threshold, mark.success) == (1.0, 0.5, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("per_instance_stats.json", [{"instance_id": "id0", "stats": [{"name": {"name": "exact_match"}, "sum": 1}]}]),
        ("scenario_state.json", {"adapter_spec": {}, "request_states": []}),
        ("results_2026.json", {"results": {"arc": {"acc,none": 0.5}}, "configs": {}}),
    ],
)
def test_file_of_a_tool_without_importer_is_refused_with_the_tools_that_are_known(tmp_path, name, value):
    (tmp_path / name).write_text(json.dumps(value))
    with pytest.raises(InputError, match=r"of no tool that is known\. Known are: results of promptfoo"):
        read_runs(tmp_path / name)
