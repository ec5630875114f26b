from __future__ import annotations

import json

import pytest

from deemster.integrations.import_run import read_runs
from tests.builders.json_lines import json_lines
from tests.integrations.imported import FIXTURES

FOLDER = FIXTURES / "lm_eval"


@pytest.fixture(scope="module")
def runs():
    return {run.dataset.name: run for run in read_runs(FOLDER)}


def test_folder_has_a_run_for_each_task_with_the_mean_that_the_harness_states(runs):
    (results,) = FOLDER.glob("results_*.json")
    stated = json.loads(results.read_text())["results"]
    for task, metric in (("capitals", "exact_match"), ("choices", "acc")):
        run = runs[task]
        assert [card.name for card in run.cards] == [metric]
        scores = [execution.marks[0].score for execution in run.executions]
        assert sum(scores) / len(scores) == pytest.approx(stated[task][f"{metric},none"])


def test_document_target_and_answer_are_sample_and_output(runs):
    run = runs["capitals"]
    first = next(iter(run.dataset))
    assert first.input == {"question": "What is the capital of France?", "answer": "lol"}
    assert first.expected_output == "lol"
    assert run.executions[0].answer.text == "lol"
    assert (run.tool, run.target) == ("lm-evaluation-harness 0.4.13", "dummy: pretrained=deemster/table")


def test_likeliest_choice_is_the_output(runs):
    for execution in runs["choices"].executions:
        sample = next(each for each in runs["choices"].dataset if each.id == execution.id)
        assert execution.answer.text in ("lol", "Rome", "Lima")
        is_right = execution.answer.text == sample.expected_output
        assert execution.marks[0].score == float(is_right)


def test_metric_without_a_number_for_a_sample_is_listed(runs):
    assert "the metric `bleu`: it has no number for a single sample (3 times)" in runs["capitals"].left_out


def test_file_alone_is_read_with_the_facts_of_the_results_beside_it():
    (file,) = FOLDER.glob("samples_choices*")
    (run,) = read_runs(file)
    assert run.target == "dummy: pretrained=deemster/table"
    assert run.cards[0].identity == "lm-evaluation-harness:acc(task=choices, version=1.0, shots=0)"


def test_filter_is_part_of_the_metrics_name(tmp_path):
    (file,) = FOLDER.glob("samples_capitals*")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    both = [{**row, "filter": name} for name in ("strict-match", "flexible-extract") for row in rows]
    path = tmp_path / "samples.jsonl"
    path.write_text(json_lines(*both))
    (run,) = read_runs(path)
    assert [card.name for card in run.cards] == ["exact_match,strict-match", "exact_match,flexible-extract"]
    assert len(run.executions) == 3
