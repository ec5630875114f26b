"""`deemster audit`: whether judges and metrics notice what is planted, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deemster.audit.audit_dataset import HealthSettings
from deemster.audit.audit_judge import BiasSettings
from deemster.audit.audit_metrics import DefectSettings
from deemster.audit.gate_error_rates import TrialSettings
from deemster.store import LabelFacts, open_store
from tests.cli.workspace import called, written

pytestmark = pytest.mark.usefixtures("folder")

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
QUICKSTART = str(EXAMPLES / "quickstart" / "suite.yml")


def audit_metrics(*argv):
    return called("audit", "metrics", QUICKSTART, "--quiet", "--set", "draws=0", *argv)


@pytest.mark.parametrize(
    ("verb", "settings", "said"),
    [
        ("judge", BiasSettings, "max_samples=50 (the most samples that pairs are made from, drawn at random)"),
        ("metrics", DefectSettings, "max_samples (the most samples whose outputs are taken, drawn at random; null for"),
        ("gate", TrialSettings, "flip_rate (the share of samples that flip from run to run"),
        ("dataset", HealthSettings, "near=0.95 (the cosine from which two inputs are near copies)"),
    ],
)
def test_help_has_every_setting_with_its_default_and_meaning(verb, settings, said):
    shown = " ".join(called("audit", verb, "--help").stdout.split())
    flags = {"probes": "--probe", "defects": "--defect"}
    missing = [name for name in settings.__struct_fields__ if flags.get(name, name) not in shown]
    assert missing == []
    assert said in shown


def test_defects_that_a_metric_misses_are_named():
    done = called(
        "audit", "metrics", QUICKSTART, "--set", "draws=0", "--metric", "rouge-l", "--defect", "number-changed"
    )
    assert done.exit_code == 0
    assert "No metric notices: number-changed." in done.stdout


def test_exit_code_is_1_where_fewer_defects_are_noticed_than_asked_for():
    flags = ("--metric", "rouge-l", "--defect", "number-changed", "--min-killed")
    assert audit_metrics(*flags, "0.5").exit_code == 1
    assert audit_metrics(*flags, "0").exit_code == 0


def test_outputs_of_a_stored_run_take_the_place_of_expected_outputs():
    assert called("run", QUICKSTART, "--quiet", "--store", "runs.db").exit_code == 0
    done = audit_metrics("--outputs", "latest", "--store", "runs.db", "--to", "audit.json")
    assert done.exit_code == 0
    found = json.loads(Path("audit.json").read_bytes())
    assert found["source"].startswith("run ")
    # The quickstart's target gets some samples wrong.
    assert found["references"]["killed"] == len(found["faults"]) > 0


JUDGE = """\
from tests.builders.biased_judges import biased_judge

RIGHT = {f"How long does trip {n} take?": f"Trip {n} takes {n + 2} days." for n in range(10)}
judge = biased_judge("authority", RIGHT)
# A model that costs nothing has no budget.
judge.is_local = False
"""
SUITE = """\
name: trips
dataset: golden.yml
target: { outputs: answers.yml }
models:
  judge: { client: "audited_judge:judge" }
metrics: [llm-as-judge, exact-match]
"""


def write_suite(folder):
    samples = [
        {
            "id": f"t{n}",
            "input": {"question": f"How long does trip {n} take?"},
            "expected_output": f"Trip {n} takes {n + 2} days.",
        }
        for n in range(10)
    ]
    (folder / "golden.yml").write_text(json.dumps({"name": "trips", "samples": samples}))
    (folder / "audited_judge.py").write_text(JUDGE)
    (folder / "suite.yml").write_text(SUITE)


def test_bias_of_the_judge_of_a_suite_is_flagged(folder):
    write_suite(folder)
    done = called("audit", "judge", "--cache", "none", "--to", "audit.json", "--to", "audit.html", "--to", "audit.md")
    assert done.exit_code == 0
    assert "Flag: llm-as-judge: authority (the claim that professors say so): the judge prefers it." in done.stdout
    found = json.loads(Path("audit.json").read_bytes())
    assert [name for name, one in found["metrics"]["llm-as-judge"].items() if one["is_flagged"]] == ["authority"]
    assert "exact-match" not in found["metrics"]
    assert "Flag:" in Path("audit.html").read_text()
    assert "Flag:" in Path("audit.md").read_text()
    flags = ("--cache", "none", "--quiet", "--fail-on-flag")
    assert called("audit", "judge", "judge", "--suite", "suite.yml", *flags).exit_code == 1
    assert called("audit", "judge", *flags, "--probe", "length").exit_code == 0


def test_judge_that_never_answers_leaves_the_audit_incomplete(folder):
    write_suite(folder)
    model = "judge: { base_url: 'http://127.0.0.1:9/v1', model: none, retries: 0 }"
    (folder / "suite.yml").write_text(SUITE.replace('judge: { client: "audited_judge:judge" }', model))
    done = called("audit", "judge", "--cache", "none", "--set", "max_samples=2", "--probe", "length")
    assert done.exit_code == 3
    assert "Nothing is known." in done.stdout
    assert "8 scores could not be made. The first, by llm-as-judge: " in done.stderr


def test_budget_that_is_spent_leaves_the_audit_incomplete(folder):
    write_suite(folder)
    done = called("audit", "judge", "--cache", "none", "--budget", "1tokens")
    assert done.exit_code == 3
    assert "The audit is incomplete: " in done.stdout


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--defect", "negatoin"), "No defect is called `negatoin`. Did you mean `negation`?"),
        (("--metric", "rogue-l"), "The suite has no metric `rogue-l`. Did you mean `rouge-l`?"),
        (("--outputs", "nobody"), "There is no store here."),
        (("--defect", "negation", "--set", 'defects=["negation"]'), "says what a flag of this command says already"),
    ],
)
def test_bad_input_is_exit_code_2(flags, said):
    done = audit_metrics(*flags)
    assert done.exit_code == 2
    assert said in done.stderr


def gate_suite(folder):
    rows = [
        f"  - {{ id: s{at}, input: {{ question: Question {at}? }}, expected_output: answer {at} }}" for at in range(20)
    ]
    written(
        folder,
        {
            "suite.yml": """\
name: support
dataset: golden.yml
target: { outputs: answers.yml }
metrics: [exact-match]
gate: { min_pass_rate: 0.5, baseline: { margin: 0.2 }, budget: { max_cost_usd: 1 } }
""",
            "golden.yml": "name: support\nsamples:\n" + "\n".join(rows) + "\n",
        },
    )


def answer(folder, wrong):
    said = "\n".join(f"  s{at}: {'wrong' if at in wrong else f'answer {at}'}" for at in range(20))
    written(folder, {"answers.yml": f"outputs:\n{said}\n"})
    assert called("run", "suite.yml", "--quiet").exit_code in (0, 4)


def test_gate_audit_measures_the_noise_on_stored_runs(folder):
    gate_suite(folder)
    answer(folder, {0, 1})
    answer(folder, {1, 2})
    done = called("audit", "gate", "suite.yml", "--set", "draws=5", "--to", "audit.json", "--to", "audit.md")
    assert done.exit_code == 0, done.stderr
    assert "Audit of the gate of support" in done.stdout
    assert "# Audit of the gate of <code>support</code>" in Path("audit.md").read_text(encoding="utf-8")
    found = json.loads(Path("audit.json").read_bytes())
    assert found["schema_version"] == "deemster.gate_audit.v1"
    assert (found["noise"], found["executions"], len(found["runs"])) == ("measured", 2, 2)
    assert found["flip_rate"] == pytest.approx(0.1)
    assert found["unchanged"]["passed"]["n"] == 5
    assert list(found["left_out"]) == ["budget.max_cost_usd"]
    assert (
        called("audit", "gate", "suite.yml", "--set", "draws=5", "--to", "-").stdout_bytes
        == Path("audit.json").read_bytes()
    )


def test_gate_audit_without_runs_needs_stated_noise(folder):
    gate_suite(folder)
    written(folder, {"answers.yml": "outputs: { s0: answer 0 }\n"})
    stated = ("--set", "pass_rate=0.8", "--set", "flip_rate=0.1")
    done = called("audit", "gate", "suite.yml", *stated, "--set", "draws=3", "--to", "-")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert (found["noise"], found["pass_rate"], found["runs"]) == ("stated", 0.8, [])
    assert found["flip_rate"] == pytest.approx(0.1)
    for flags, said in (
        (("--set", "pass_rate=0.8"), "`pass_rate` needs `flip_rate`"),
        (("--set", "flip_rate=0.1", "--set", "sd=0.2"), "Give one of them."),
    ):
        refused = called("audit", "gate", "suite.yml", *flags)
        assert refused.exit_code == 2
        assert said in refused.stderr


def test_gate_audit_of_one_run_says_what_is_missing(folder):
    gate_suite(folder)
    answer(folder, {0, 1})
    done = called("audit", "gate", "suite.yml")
    assert done.exit_code == 2
    assert "One execution of each sample does not say how much runs differ." in done.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("jugde",), "No metric of the suite asks the role `jugde`. They ask `judge`. Did you mean `judge`?"),
        (("--probe", "lenght"), "No probe is called `lenght`. Did you mean `length`?"),
    ],
)
def test_bad_input_of_a_judge_is_exit_code_2(folder, flags, said):
    write_suite(folder)
    done = called("audit", "judge", "--cache", "none", *flags)
    assert done.exit_code == 2
    assert said in done.stderr


def test_dataset_audit_of_a_file_needs_no_run(folder):
    rows = (
        "  - { id: a, input: { question: How long is the window? }, expected_output: 30 days }",
        "  - { id: b, input: { question: How long is the window? }, expected_output: 60 days }",
    )
    written(folder, {"golden.yml": "name: support\nsamples:\n" + "\n".join(rows) + "\n"})
    done = called("audit", "dataset", "golden.yml", "--to", "audit.json", "--to", "audit.md")
    assert done.exit_code == 0, done.stderr
    assert "1 contradiction," in done.stdout
    found = json.loads(Path("audit.json").read_bytes())
    assert found["schema_version"] == "deemster.dataset_audit.v1"
    assert [(one["first"], one["second"], one["same_expected"]) for one in found["similar"]] == [("a", "b", False)]
    assert found["notes"] == ["No complete run of the dataset is stored: nothing is known of how its samples behave."]
    assert Path("golden.yml").read_text(encoding="utf-8").count("id:") == 2


def test_dataset_audit_reads_stored_runs_and_labels(folder):
    gate_suite(folder)
    answer(folder, {0, 1})
    answer(folder, {1, 2})
    with open_store(".deemster/runs.db") as store:
        run = store.runs()[0].id
        label = LabelFacts(
            position=5, metric="exact-match", author="ann", at="2026-01-01T00:00:00.000000Z", verdict="fail"
        )
        store.put_label(run, label)
    flags = ("--to", "-")
    done = called("audit", "dataset", "latest", *flags)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["executions"], found["always_fail"], found["flaky"]) == (2, ["s1"], ["s0", "s2"])
    assert found["disputed"] == [
        {"id": "s5", "metric": "exact-match", "people_pass": 0, "people_fail": 1, "against_mark": 1}
    ]
    assert found["margin"] == 0.2
    assert (
        called("audit", "dataset", "golden.yml", *flags).stdout.replace('"golden.yml"', f'"run {run}"') == done.stdout
    )


def test_dataset_audit_of_something_that_is_not_there_is_exit_code_2(folder):
    assert called("audit", "dataset", "nothing.yml").exit_code == 2


@pytest.mark.parametrize(
    ("words", "setting", "said"),
    [
        (("judge",), "max_samples=0", "max_samples must be a whole number of at least 1, not 0."),
        (("metrics", QUICKSTART), "draws=-1", "draws must be a whole number of at least 0, not -1."),
        (("gate", QUICKSTART), "draws=0", "draws must be a whole number of at least 1, not 0."),
        (("gate", QUICKSTART), "confidence=95", "confidence must be a number above 0 and below 1, not 95."),
        (("dataset", QUICKSTART), "margin=1", "margin must be a number above 0 and below 1, not 1."),
        (("dataset", QUICKSTART), "neer=0.9", "Did you mean `near`?"),
    ],
)
def test_setting_outside_of_its_limits_is_exit_code_2(words, setting, said):
    done = called("audit", *words, "--set", setting)
    assert done.exit_code == 2
    assert said in done.stderr


def test_dataset_and_its_suite_are_audited_alike():
    golden = str(EXAMPLES / "quickstart" / "golden.yml")
    by_suite, by_dataset = (called("audit", "dataset", file) for file in (QUICKSTART, golden))
    assert by_suite.exit_code == 0
    assert by_suite.stdout == by_dataset.stdout

    flags = ("--set", "draws=0", "--defect", "number-changed")
    named = called("audit", "metrics", golden, "--metric", "rouge-l", *flags)
    assert named.exit_code == 0
    assert "No metric notices: number-changed." in named.stdout

    unnamed = called("audit", "metrics", golden, *flags)
    assert unnamed.exit_code == 2
    assert (
        "This is a dataset, which names no metrics: give its suite, or metrics with `--metric SPEC`." in unnamed.stderr
    )
