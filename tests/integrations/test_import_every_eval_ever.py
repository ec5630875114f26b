from __future__ import annotations

import json

import pytest

from deemster.errors import InputError
from deemster.integrations.import_run import read_runs
from tests.integrations.imported import FIXTURES

FOLDER = FIXTURES / "every_eval_ever"


@pytest.mark.parametrize("suffix", [".json", "_samples.jsonl"])
def test_scores_are_those_of_the_rows_and_their_mean_that_of_the_evaluation(suffix):
    seen = set()
    for facts in sorted(FOLDER.glob("*.json")):
        stated = json.loads(facts.read_text())
        (run,) = read_runs(facts.with_name(f"{facts.stem}{suffix}"))
        for place, card in enumerate(run.cards):
            scores = [execution.marks[place].score for execution in run.executions]
            (result,) = [each for each in stated["evaluation_results"] if each["evaluation_result_id"] == card.name]
            assert sum(scores) / len(scores) == pytest.approx(result["score_details"]["score"])
            seen.add(card.name)
        assert run.target == "deemster/table"
        assert run.tool == "lm_eval 0.4.13"
    assert seen == {"acc", "exact_match"}


def test_sample_has_input_reference_and_output():
    (run,) = [run for file in FOLDER.glob("*.json") for run in read_runs(file) if run.dataset.name == "capitals"]
    first = next(iter(run.dataset))
    assert first.input == {"input": "Q: What is the capital of France?\nA:"}
    assert first.expected_output == "lol"
    assert run.executions[0].answer.text == "lol"


def test_score_on_a_stated_scale_has_its_place_on_it(tmp_path):
    facts = json.loads(next(FOLDER.glob("0*.json")).read_text())
    rows = [json.loads(line) for line in next(FOLDER.glob("0*.jsonl")).read_text().splitlines()]
    facts["evaluation_results"][0]["metric_config"] |= {"min_score": 0, "max_score": 100}
    for row in rows:
        row["evaluation"] = {"score": 80.0, "is_correct": True}
    (tmp_path / "e.json").write_text(json.dumps(facts))
    (tmp_path / "e_samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = read_runs(tmp_path / "e_samples.jsonl")
    assert {execution.marks[0].score for execution in run.executions} == {0.8}


def test_path_in_the_file_does_not_leave_its_folder(tmp_path):
    facts = json.loads(next(FOLDER.glob("0*.json")).read_text())
    secret = tmp_path / "secret.jsonl"
    secret.write_text(next(FOLDER.glob("0*.jsonl")).read_text())
    folder = tmp_path / "inner"
    folder.mkdir()
    facts["detailed_evaluation_results"]["file_path"] = "../secret.jsonl"
    (folder / "e.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match="no samples beside it"):
        read_runs(folder / "e.json")
