from __future__ import annotations

import pytest

import deemster as dm
from deemster.errors import InputError
from deemster.integrations.import_promptfoo_config import is_promptfoo_config, read_promptfoo_config
from deemster.integrations.import_run import read_runs
from deemster.integrations.source_file import SourceFile
from deemster.records import MetricScore
from deemster.runs.check_file import check_file
from tests.integrations.imported import FIXTURES

CONFIG = FIXTURES / "promptfoo" / "promptfooconfig.yaml"


@pytest.fixture
def folder(tmp_path):
    read_promptfoo_config(SourceFile(CONFIG)).write(tmp_path / "suite")
    return tmp_path / "suite"


def test_config_is_told_from_results():
    assert is_promptfoo_config(SourceFile(CONFIG))
    assert not is_promptfoo_config(SourceFile(FIXTURES / "promptfoo" / "results.json"))


def test_suite_gives_the_verdicts_that_promptfoo_gave(folder):
    run = read_runs(FIXTURES / "promptfoo" / "results.json")[0]
    samples = {tuple(sample.input.items()): sample.id for sample in run.dataset}
    dataset = dm.Dataset.load(folder / "dataset.yml")
    said = {execution.id: execution.answer for execution in run.executions if execution.repetition == 0}
    outputs = {}
    for sample in dataset:
        answer = said[samples[tuple(sample.input.items())]]
        outputs[sample.id] = getattr(answer, "text", "")
    metrics = [
        {"exact-match": {"name": "equals", "where": {"has": ["assert_equals"]}}},
        {"contains": {"name": "contains", "where": {"has": ["assert_contains"]}}},
        {"json-valid": {"name": "is-json", "where": {"has": ["assert_is_json"]}}},
    ]
    report = dm.evaluate(dataset, outputs=outputs, metrics=metrics, max_unscored="100%")
    names = [card.name for card in run.cards]
    pairs = {"equals": "equals", "contains": "mentions", "is-json": "is-json"}
    compared = 0
    for entry in report.executions:
        for ours, theirs in pairs.items():
            execution = next(e for e in run.executions if e.id == samples_id(dataset, samples, entry.id))
            mark = execution.marks[names.index(theirs)]
            if ours in entry.marks and isinstance(mark, MetricScore):
                assert entry.marks[ours].success is mark.success, (entry.id, ours)
                compared += 1
    assert compared == 4


def samples_id(dataset, samples, name):
    return samples[tuple(next(sample for sample in dataset if sample.id == name).input.items())]


def test_suite_is_valid_and_metrics_apply_where_a_test_asserts_them(folder):
    text = (folder / "suite.yml").read_text()
    assert '- exact-match: {"name": "equals", "where": {"has": ["assert_equals"]}}' in text
    outputs = folder / "outputs.yml"
    outputs.write_text("outputs: {France: a, test-2: a, test-3: a, test-4: a, test-5: a}\n")
    suite = folder / "whole.yml"
    suite.write_text(text + "target: {outputs: outputs.yml}\n")
    said = check_file(str(suite), None, warn=print)
    assert "5 samples x 1" in said


def test_what_has_no_metric_is_listed():
    left_out = read_promptfoo_config(SourceFile(CONFIG)).left_out
    assert "an assertion `javascript`: there is no such metric (code is not run)" in left_out
    assert "an assertion `rouge-n`: there is no such metric" in left_out
    assert "`providers` of the config" in left_out


def test_lists_of_values_and_templates_are_as_in_promptfoo(tmp_path):
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "prompts: [p]\nproviders: [echo]\ntests:\n"
        "  - vars: {q: [a, b], expected: 'is {{q}}'}\n    assert: [{type: equals, value: '{{q}}!'}]\n"
    )
    found = read_promptfoo_config(SourceFile(path))
    assert [(sample.input["q"], sample.expected_output) for sample in found.dataset] == [("a", "a!"), ("b", "b!")]


def test_file_that_a_config_names_is_not_opened(tmp_path):
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("prompts: [p]\nproviders: [echo]\ntests: file:///etc/passwd\n")
    with pytest.raises(InputError, match="Tests in other files are not read"):
        read_promptfoo_config(SourceFile(path))


def test_existing_file_is_not_changed(folder):
    with pytest.raises(InputError, match="there already"):
        read_promptfoo_config(SourceFile(CONFIG)).write(folder)
