from __future__ import annotations

import json

import pytest
import yaml

import deemster as dm
from deemster.errors import InputError
from deemster.integrations.import_promptfoo_config import is_promptfoo_config, read_promptfoo_config
from deemster.integrations.import_run import read_runs
from deemster.integrations.source_file import SourceFile
from deemster.judges import metric_catalog as catalog
from deemster.records import MetricScore
from tests.cli.workspace import called
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
    metrics = yaml.safe_load((folder / "suite.yml").read_text())["metrics"]
    report = dm.evaluate(dataset, outputs=outputs, metrics=metrics, settings=dm.EvaluationSettings(max_unscored="100%"))
    names = [card.name for card in run.cards]
    pairs = {name: name for name in ("equals", "mentions", "not-contains", "is-json", "icontains")}
    compared = 0
    for entry in report.executions:
        for ours, theirs in pairs.items():
            execution = next(e for e in run.executions if e.id == samples_id(dataset, samples, entry.id))
            mark = execution.marks[names.index(theirs)]
            if ours in entry.marks and isinstance(mark, MetricScore):
                assert entry.marks[ours].success is mark.success, (entry.id, ours)
                compared += 1
    assert compared == 6


def samples_id(dataset, samples, name):
    return samples[tuple(next(sample for sample in dataset if sample.id == name).input.items())]


def test_suite_is_valid_and_metrics_apply_where_a_test_asserts_them(folder):
    text = (folder / "suite.yml").read_text()
    assert '- exact-match: {"name": "equals", "expected": "equals", "where": "auto"}' in text
    outputs = folder / "outputs.yml"
    outputs.write_text("outputs: {France: a, test-2: a, test-3: a, test-4: a, test-5: a}\n")
    suite = folder / "whole.yml"
    suite.write_text(text + "target: {outputs: outputs.yml}\n")
    checked = called("check", str(suite))
    assert checked.exit_code == 0, checked.output
    assert "5 samples x 1" in checked.stdout


def test_what_has_no_metric_is_listed():
    left_out = read_promptfoo_config(SourceFile(CONFIG)).left_out
    assert "an assertion `javascript`: there is no such metric (code is not run), line 33" in left_out
    assert "an assertion `rouge-n`: there is no such metric, line 24" in left_out
    assert "a provider: `file://provider.js` has no counterpart here, lines 5, 7" in left_out


def test_lists_of_values_and_templates_are_as_in_promptfoo(tmp_path):
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "prompts: [p]\nproviders: [echo]\ntests:\n"
        "  - vars: {q: [a, b], expected: 'is {{q}}'}\n    assert: [{type: equals, value: '{{q}}!'}]\n"
    )
    found = read_promptfoo_config(SourceFile(path))
    assert [(sample.input["q"], sample.expected_output) for sample in found.dataset] == [("a", "a!"), ("b", "b!")]


def converted(tmp_path, tests, **config):
    """What a config becomes: the samples, the metrics by name, and what is left out."""
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(json.dumps({"prompts": ["p"], "providers": ["echo"], "tests": tests, **config}))
    found = read_promptfoo_config(SourceFile(path))
    metrics = [next(iter(each.items())) for each in yaml.safe_load(found.suite)["metrics"]]
    for name, options in metrics:
        catalog.resolve({name: options})
    return list(found.dataset), metrics, found.left_out


def asserting(*assertions, **test):
    return {"vars": {"x": "1"}, "assert": [{"type": "equals", "value": "a"}, *assertions], **test}


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (asserting({"type": "contains", "value": "{{x | upper}}"}), "the template `{{x | upper}}` is not filled in"),
        (asserting({"type": "contains", "value": "{{prompt}}"}), "the template `{{prompt}}` is not filled in"),
        (asserting({"type": "contains", "value": "{% if x %}a{% endif %}"}), "is not filled in"),
        (asserting({"type": "contains", "value": "file://y.txt"}), "there is no file `file://y.txt`"),
        (asserting({"type": "contains", "value": "file://y.js"}), "is code, which is not run"),
        (asserting({"type": "similar", "value": "a"}, {"type": "factuality", "value": "b"}), "second expected output"),
        (asserting({"type": "equals", "value": {"a": 1}}), "its value is no text"),
        (asserting({"type": "regex", "value": "a(?!b)"}), "look-around"),
        (asserting({"type": "contains", "value": "a", "transform": "output.x"}), "`transform` is code"),
        (asserting({"type": "contains", "value": "a", "weight": 0}), "`weight: 0` of an assertion"),
        (asserting({"type": "contains", "value": "a", "weight": 3}), "`weight` of an assertion"),
        (asserting({"type": "contains", "value": "a", "provider": "x"}), "`provider` of an assertion"),
        (asserting({"type": "llm-rubric", "value": "a", "rubricPrompt": "x"}), "`rubricPrompt` of an assertion"),
        (asserting({"type": "similar", "value": "a", "threshold": "{{t}}"}), "threshold is no number from 0 to 1"),
        (asserting({"type": "contains-any"}), "it has no value"),
        (
            asserting({"type": "trajectory:tool-used", "value": "a"}, metadata={"trajectory": 3}),
            "another `trajectory` in its metadata",
        ),
        (
            asserting({"type": "trajectory:tool-used", "value": "a"}, metadata={"trajectory": {"tools": "b"}}),
            "the test has another one of its kind",
        ),
        (asserting({"type": "not-classifier", "value": "a"}), "`not-classifier`: there is no such metric"),
        (asserting({"type": "context-relevance"}), "`context-relevance`: there is no such metric"),
        (asserting({"type": "python", "value": "1"}), "code is not run"),
        (asserting({"type": "assert-set", "threshold": 0.5, "assert": []}), "`assert-set`: there is no such metric"),
        (asserting({"type": "assert-set", "weight": 2, "assert": []}), "`weight` of a set of assertions"),
        (asserting({"type": "trajectory:tool-used", "value": {"name": "a", "min": 2}}), "all that it asks for"),
        (asserting(options={"transform": "output.x"}), "`transform` of a test's options"),
        (asserting(options={"transform": "output.x"}), "the assertions of a test whose output code changes first"),
        (asserting(options={"rubricPrompt": "x"}), "`rubricPrompt` of a test's options"),
        (asserting(threshold=0.5), "`threshold` of a test"),
        ({"vars": {"d": "file://x.md"}, "assert": [{"type": "is-json"}]}, "the file of a variable: there is no file"),
        ({"vars": {"d": "file://../x.md"}, "assert": [{"type": "is-json"}]}, "not below the folder of the config"),
        ({"vars": {"d": "{{ e | upper }}"}, "assert": [{"type": "is-json"}]}, "a template in a variable"),
    ],
)
def test_what_is_not_taken_in_is_said_with_its_line(tmp_path, test, said):
    left_out = converted(tmp_path, [test])[2]
    assert any(said in sentence and sentence.endswith(", line 1") for sentence in left_out), left_out


def test_nested_values_of_variables_are_filled_in(tmp_path):
    test = {
        "vars": {"y": {"z": ["shallow", "deep"]}, "told": "It is {{y.z[1]}}."},
        "assert": [{"type": "contains", "value": "{{y.z[1]}} water"}],
    }
    (sample,), _, left_out = converted(tmp_path, [test])
    assert (sample.expected_output, sample.input["told"]) == ("deep water", "It is deep.")
    assert left_out == ()


def test_defaults_and_names_are_those_of_promptfoo(tmp_path):
    asserted = [
        {"type": "similar", "value": "a"},
        {"type": "g-eval", "value": "It is kind."},
        {"type": "llm-rubric", "value": "It is short.", "metric": "short"},
    ]
    _, metrics, _ = converted(tmp_path, [{"vars": {}, "assert": asserted}])
    assert [(name, options["name"], options.get("threshold")) for name, options in metrics] == [
        ("cosine-embedding", "similar", 0.75),
        ("g-eval", "g-eval", 0.7),
        ("g-eval", "short", None),
    ]


def test_all_rubrics_are_one_metric_that_reads_the_requirement_of_the_sample(tmp_path):
    tests = [
        {"vars": {"language": name}, "assert": [{"type": "llm-rubric", "value": rubric}]}
        for name, rubric in (("French", "It is in {{language}}."), ("German", "It is polite."))
    ]
    samples, metrics, _ = converted(tmp_path, tests)
    assert [sample.metadata["llm_rubric"] for sample in samples] == ["It is in French.", "It is polite."]
    ((name, options),) = metrics
    assert (name, options["name"], options["expected"]) == ("g-eval", "llm-rubric", "llm_rubric")


@pytest.mark.parametrize(
    ("kind", "value", "passes", "fails"),
    [
        ("equals", "Paris", "Paris", "paris"),
        ("not-equals", "Paris", "paris", "Paris"),
        ("contains", "52.5", "It is 52.5.", "It is 52."),
        ("not-contains", "AI", "a person", "an AI"),
        ("not-icontains", "ai", "a person", "an AI"),
        ("contains-any", 'red, "green, blue"', "green, blue", "green and blue"),
        ("contains-all", "red, blue", "blue and red", "red"),
        ("not-contains-any", ["red", "blue"], "green", "blue"),
        ("starts-with", "Yes", "Yes, sure", "Sure, yes"),
        ("regex", "^\\d+$", "52", "a 52"),
    ],
)
def test_text_assertion_decides_as_in_promptfoo(tmp_path, kind, value, passes, fails):
    (sample,), metrics, _ = converted(tmp_path, [{"vars": {}, "assert": [{"type": kind, "value": value}]}])
    for output, expected in ((passes, True), (fails, False)):
        report = dm.evaluate([sample], outputs={sample.id: output}, metrics=[dict(metrics)])
        assert (report.metrics[kind].pass_rate == 1) is expected, output


def test_several_texts_of_a_test_are_metrics_of_their_own(tmp_path):
    asserted = [
        {"type": "contains", "value": "a"},
        {"type": "contains", "value": "b"},
        {"type": "not-contains", "value": "c"},
    ]
    tests = [{"vars": {}, "assert": asserted}, {"vars": {}, "assert": asserted[:1]}]
    samples, metrics, left_out = converted(tmp_path, tests)
    assert [sample.expected_output for sample in samples] == ["a", "a"]
    assert [dict(sample.metadata) for sample in samples] == [{"contains_2": "b", "not_contains": "c"}, {}]
    assert metrics == [
        ("contains", {"name": "contains"}),
        ("contains", {"name": "contains-2", "expected": "contains_2", "where": "auto"}),
        (
            "contains",
            {"name": "not-contains", "negate": True, "expected": "not_contains", "where": "auto"},
        ),
    ]
    assert left_out == ()


def test_lists_contexts_and_trajectories_have_their_metrics(tmp_path):
    asserted = [
        {"type": "icontains-any", "value": "red, 52.5"},
        {"type": "context-faithfulness", "threshold": 0.8},
        {"type": "trajectory:tool-used", "value": ["search"]},
        {"type": "trajectory:tool-used", "value": "book"},
        {"type": "trajectory:tool-args-match", "value": {"name": "book", "args": {"day": 2}}},
        {"type": "trajectory:tool-sequence", "value": {"steps": ["search", "book"]}},
        {"type": "trajectory:step-count", "value": {"max": 3}},
    ]
    (sample,), metrics, _ = converted(tmp_path, [{"vars": {"context": "c"}, "assert": asserted}])
    assert list(sample.expected_output) == ["red", "52.5"]
    assert [options.get("threshold") for name, options in metrics if name.startswith("tool-called")] == [1, 1]
    assert sample.metadata["trajectory"] == {
        "tools": ["search", "book"],
        "tool_arguments": [{"tool": "book", "arguments": {"day": 2}}],
        "order": ["search", "book"],
        "max_steps": 3,
    }
    assert [name for name, _ in metrics] == [
        "contains-any",
        "claim-faithfulness",
        "tool-called",
        "tool-called-with",
        "tool-call-order",
        "steps-below",
    ]


def test_number_of_an_assertion_is_compared_as_text(tmp_path):
    (sample,), metrics, _ = converted(tmp_path, [{"vars": {}, "assert": [{"type": "contains", "value": 52.5}]}])
    report = dm.evaluate([sample], outputs={sample.id: "It is 52.5."}, metrics=[dict(metrics)])
    assert report.metrics["contains"].mean == 1


def test_targets_are_providers_and_templates_of_assertions_are_looked_up(tmp_path):
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "targets: [echo]\nassertionTemplates: { short: { type: is-json } }\n"
        "tests:\n  - vars: { a: [1, 2] }\n    options: { disableVarExpansion: true }\n"
        "    assert: [{ $ref: '#/assertionTemplates/short' }]\n"
    )
    assert is_promptfoo_config(SourceFile(path))
    found = read_promptfoo_config(SourceFile(path))
    assert [list(sample.input["a"]) for sample in found.dataset] == [[1, 2]]
    assert "json-valid" in found.suite


def test_assertions_of_the_default_test_may_be_switched_off(tmp_path):
    default = {"assert": [{"type": "contains", "value": "a"}]}
    tests = [{"vars": {"x": 1}, "options": {"disableDefaultAsserts": True}}, {"vars": {"x": 2}}]
    samples, _, left_out = converted(tmp_path, tests, defaultTest=default)
    assert [sample.metadata.get("contains") for sample in samples] == [None, "a"]
    assert left_out == ()


def test_red_team_config_is_refused_by_name(tmp_path):
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("targets: [echo]\nredteam: { plugins: [pii] }\n")
    with pytest.raises(InputError, match="`deemster attack` runs attacks here"):
        read_promptfoo_config(SourceFile(path))


@pytest.mark.parametrize("version", [1, 2])
def test_results_of_earlier_versions_are_refused_by_name(tmp_path, version):
    path = tmp_path / "output.json"
    rows = [{"prompt": {"raw": "p"}, "vars": {}, "success": True, "score": 1}]
    path.write_text(json.dumps({"results": {"version": version, "results": rows}}))
    with pytest.raises(InputError, match=f"results of promptfoo in version {version}, and version 3 is read"):
        read_runs(path)


def test_file_that_a_config_names_is_not_opened(tmp_path):
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("prompts: [p]\nproviders: [echo]\ntests: file:///etc/passwd\n")
    with pytest.raises(InputError, match="`file:///etc/passwd` is not below the folder of the config"):
        read_promptfoo_config(SourceFile(path))


def test_existing_file_is_not_changed(folder):
    with pytest.raises(InputError, match="there already"):
        read_promptfoo_config(SourceFile(CONFIG)).write(folder)
