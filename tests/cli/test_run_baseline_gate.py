"""`deemster run` with a gate against a baseline: every exit code, and what it prints."""

from __future__ import annotations

import json

import pytest

from tests.cli.make_baselines import answers, dataset, decision, ran, ready, suite
from tests.cli.workspace import called, written

FAILING = "outputs:\n" + "".join(f"  s{number:03d}: {{ error: down }}\n" for number in range(200))


@pytest.fixture
def folder(world):
    return world()


def checks(*argv):
    report = json.loads(called("show", *(argv or ("latest",)), "--to", "-").stdout)
    return {check["name"]: check for check in report["gate"]["checks"]}


CODES = {
    "pass": (0, {"wrong": {3}}),
    "fail": (1, {"wrong": range(40)}),
    "bad input": (2, {"golden_yml": dataset().replace("Question", "Another")}),
    "incomplete": (3, {"answers_yml": FAILING}),
    "inconclusive": (4, {"wrong": range(1, 12)}),
}


@pytest.mark.parametrize("name", CODES)
def test_every_exit_code_is_reached_and_its_decision_printed(folder, golden, name):
    code, change = CODES[name]
    ready(folder, "margin: 0.05, max_newly_failing: 15", wrong={1, 2})
    result = ran(folder, **change)
    assert result.exit_code == code
    golden(f"cli/baseline-gate-{name.replace(' ', '-')}.txt", decision(result))


def test_gate_table_of_a_report_is_printed(folder, golden):
    ready(folder, 'margin: 0.05, cohorts: "*", max_single_drop: 0.5', wrong={1}, metrics="exact-match, token-f1")
    ran(folder, wrong=range(1, 12))
    shown = called("show", "latest", "--full", COLUMNS="200").stdout
    golden("cli/baseline-gate-report.txt", shown[: shown.index("Per-metric")])


def test_report_from_the_store_has_the_same_bytes(folder):
    ready(folder, 'margin: 0.05, cohorts: "*"')
    ran(folder, "--to", "first.json", wrong={5, 6})
    assert called("show", "latest", "--to", "again.json").exit_code == 0
    first = (folder / "first.json").read_bytes()
    assert (folder / "again.json").read_bytes() == first
    called("baseline", "--clear")
    oldest = called("show").stdout.splitlines()[-1].split()[0]
    assert called("store", "rm", "--yes", oldest).exit_code == 0
    called("show", "latest", "--to", "later.json")
    assert (folder / "later.json").read_bytes() == first
    assert b"baseline.margin.cohorts.price.metrics.exact-match" in first


def test_nothing_flipping_on_twenty_samples_is_no_pass_at_two_percent(folder):
    ready(folder, "margin: 0.02", count=20)
    result = ran(folder, count=20)
    assert result.exit_code == 4
    assert (
        "about 180 samples would show it four times out of five; these 20 samples rule out a drop of more than 0.1631"
        in result.stderr
    )
    assert "too small for the 20 samples: if nothing changes, they rule out a drop of more than 0.1630." in (
        called("check", "suite.yml").stderr
    )


def test_one_sample_is_spoken_of_in_the_singular(folder):
    ready(folder, "margin: 0.02", count=1)
    assert "; this sample rules out a drop of more than" in ran(folder, count=1).stderr


def test_only_the_first_checks_of_many_are_printed_with_their_intervals(folder):
    ready(folder, 'margin: 0.05, cohorts: "*"', count=90)
    tagged = dataset(90, tags=[f"t{place}" for place in range(30)])
    result = ran(folder, count=90, wrong=set(range(80)), golden_yml=tagged)
    lines = [line for line in result.stderr.splitlines() if line.startswith("  ")]
    assert lines[0].startswith("  fail: baseline.margin.metrics.exact-match: -0.89 (interval -0.94 to")
    assert (len(lines), lines[-1]) == (21, "  ... and 11 more; `deemster show RUN` shows all.")


def test_removed_samples_do_not_pass_quietly(folder):
    ready(folder, "margin: 0.05", wrong={3, 4})
    result = ran(folder, wrong={3, 4}, without={3, 4})
    assert result.exit_code == 1
    # The samples after a missing one still stand beside their own partners.
    assert checks()["baseline.margin.metrics.exact-match"]["observed"] == 0.0
    assert "fail: baseline.max_removed: 2, required 0: 2 samples of the baseline are gone or edited" in (result.stderr)
    assert ran(folder, suite_yml=suite("margin: 0.05, max_removed: 2"), without={3, 4}).exit_code == 0


def test_errored_sample_never_raises_a_score(folder):
    ready(folder, "margin: 0.05", wrong={3, 4}, further=", max_unscored: 5")
    failed = answers({3}).replace("s004: answer 4", "s004: { error: down }")
    result = ran(folder, answers_yml=failed)
    check = checks()["baseline.margin.metrics.exact-match"]
    assert (result.exit_code, check["observed"]) == (0, 0.0)
    three = answers({3, 4}).replace("s005: answer 5", "s005: { error: down }")
    ran(folder, answers_yml=three)
    assert checks()["baseline.margin.metrics.exact-match"]["observed"] == -0.005


def test_two_way_counts_inconclusive_as_passed_and_warns(folder):
    ready(folder, "margin: 0.01", decision="two-way")
    result = ran(folder)
    assert result.exit_code == 0
    assert (
        "warning: the gate counts baseline.margin.metrics.exact-match as passed, though it is inconclusive"
        in result.stderr
    )


@pytest.mark.parametrize(("missing", "code"), [("warn", 0), ("fail", 1)])
def test_missing_baseline_is_a_warning_or_a_failure(folder, missing, code):
    written(
        folder,
        {"golden.yml": dataset(), "answers.yml": answers(), "suite.yml": suite(f"margin: 0.05, missing: {missing}")},
    )
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == code
    because = "nothing was compared: there is no baseline yet; `deemster baseline RUN` makes one"
    assert because in result.stderr
    if code:
        assert called("baseline", "latest").exit_code == 0
        assert called("run", "suite.yml", "--quiet").exit_code == 0
    else:
        assert f"warning: the gate skips baseline: {because}" in result.stderr


@pytest.mark.parametrize("compare", ["previous", "latest", "first", "report.json", "run.jsonl"])
def test_gate_compares_with_any_run(folder, compare):
    written(
        folder,
        {"golden.yml": dataset(), "answers.yml": answers(), "suite.yml": suite(f"compare: {compare}, margin: 0.05")},
    )
    first = called("run", "suite.yml", "--quiet", "--name", "first", "--to", "report.json")
    assert "nothing was compared" in first.stderr
    assert called("export", "first", "--to", "run.jsonl").exit_code == 0
    assert ran(folder, wrong=range(30)).exit_code == 1
    if compare in ("previous", "latest"):
        # The run before is now the bad one.
        assert ran(folder).exit_code == 0
    else:
        assert ran(folder, "--store", "none", wrong=range(30)).exit_code == (1 if "." in compare else 0)


def test_custom_metric_is_compared_with_a_report_file(folder):
    code = "def same(expected, actual):\n    return float(expected == actual)\n"
    files = {
        "golden.yml": dataset(),
        "answers.yml": answers(),
        "baseline_metric.py": f"import deemster as dm\n\n\n@dm.metric('same')\n{code}",
        "suite.yml": suite("compare: report.json, margin: 0.05", metrics="baseline_metric:same"),
    }
    written(folder, files)
    called("run", "suite.yml", "--quiet", "--to", "report.json")
    assert ran(folder).exit_code == 0
    assert checks()["baseline.margin.metrics.same"]["status"] == "pass"


def test_changed_metric_is_inconclusive_and_says_what_differs(folder):
    ready(folder, "margin: 0.05")
    result = ran(folder, "--threshold", "exact-match=0.7")
    assert result.exit_code == 4
    assert "it cannot be compared: its threshold was 0.5, and is 0.7" in result.stderr


def test_metric_that_is_gone_does_not_pass_quietly(folder):
    ready(folder, "margin: 0.05", metrics="exact-match, token-f1")
    result = ran(folder, suite_yml=suite("margin: 0.05"))
    assert result.exit_code == 4
    assert "baseline.margin.metrics.token-f1: n/a, required -0.05: it cannot be compared: only the baseline has it" in (
        result.stderr
    )
    assert ran(folder, "--metric", "exact-match", suite_yml=suite(metrics="exact-match, token-f1")).exit_code == 0
    assert checks()["baseline.margin.metrics.token-f1"]["status"] == "skipped"


def test_part_is_judged_as_a_part(folder):
    ready(folder, 'margin: 0.2, cohorts: "*"')
    result = ran(folder, "--only", "tag:policy", "--to", "-")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    found = {check["name"]: check["status"] for check in report["gate"]["checks"]}
    assert found["baseline.max_removed"] == "skipped"
    assert "baseline.margin.cohorts.price.metrics.exact-match" not in found
    assert found["baseline.margin.cohorts.policy.metrics.exact-match"] == "pass"


def test_named_cohort_outside_of_a_part_is_skipped(folder):
    ready(folder, "margin: 0.2, cohorts: [price]")
    assert ran(folder, "--only", "tag:policy").exit_code == 0
    assert checks()["baseline.margin.cohorts.price"]["because"] == "this run has no sample of the cohort"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("margn: 0.1", "`margn` is no key of the rules about a baseline. Did you mean `margin`?"),
        ("margin: 1.5", "a drop of at least 0 and below 1"),
        ("confidence: 0.3", "a level above 0.5 and below 1"),
        (
            "cohorts: [polcy]",
            "The gate names the cohort `polcy`, which the dataset does not have. Did you mean `policy`?",
        ),
        ("missing: maybe", "maybe"),
        ("cluster: docment", "it has no `metadata.docment`, by which samples are clustered"),
    ],
)
def test_rule_that_cannot_be_used_is_bad_input_before_anything_runs(folder, rules, said):
    written(folder, {"golden.yml": dataset(), "answers.yml": answers(), "suite.yml": suite(rules)})
    for command in (("run", "suite.yml"), ("check", "suite.yml")):
        result = called(*command)
        assert result.exit_code == 2
        assert said in result.stderr
    assert not (folder / ".deemster" / "runs.db").exists() or "No run" in called("show").stdout


def test_clusters_count_as_units(folder):
    ready(folder, "margin: 0.05, cluster: document")
    assert ran(folder).exit_code == 4
    assert "200 samples in 40 clusters" in called("check", "suite.yml").stderr


def test_one_sample_that_loses_too_much_fails(folder):
    ready(folder, "margin: 0.05, max_single_drop: 0.6")
    result = ran(folder, wrong={7})
    assert result.exit_code == 1
    assert "baseline.max_single_drop: 1.0000, required 0.6: `s007` lost most, of exact-match" in result.stderr
    assert ran(folder, wrong=()).exit_code == 0


def test_resumed_run_keeps_the_baseline_it_began_with(folder):
    ready(folder, "compare: previous, margin: 0.05", wrong={1})
    first = called("show").stdout.splitlines()[-1].split()[0]
    assert ran(folder, answers_yml=FAILING).exit_code == 3
    unfinished = called("show").stdout.splitlines()[1].split()[0]
    ran(folder, wrong=range(100))
    again = ran(folder, f"--resume={unfinished}", "--allow-changed")
    stored = json.loads(called("show", "--to", "-").stdout)[1]
    assert stored["facts"]["baseline"]["run"] == first
    assert stored["facts"]["baseline"]["evidence"]["baseline"]["id"] == first
    assert again.exit_code in (1, 3)


def test_compare_decides_by_a_margin_or_by_the_rules_of_a_suite(folder, golden):
    ready(folder, "margin: 0.05, max_newly_failing: 0", wrong={1})
    ran(folder, wrong={1, 2})
    assert called("compare", "baseline", "latest").exit_code == 0
    passed = called("compare", "baseline", "latest", "--margin", "0.05")
    assert passed.exit_code == 0
    assert called("compare", "baseline", "latest", "--margin", "0.01").exit_code == 4
    failed = called("compare", "baseline", "latest", "--gate", "suite.yml")
    assert failed.exit_code == 1
    ran(folder, wrong=range(40))
    assert called("compare", "baseline", "latest", "--margin", "0.05").exit_code == 1
    written(folder, {"other.yml": suite(None)})
    none = called("compare", "baseline", "latest", "--gate", "other.yml")
    assert (none.exit_code, "has no section `baseline`" in none.stderr) == (2, True)


def test_same_seed_gives_the_same_interval(folder):
    ready(folder, "margin: 0.05", wrong={1})
    ran(folder, wrong={2, 3})
    first, second = (
        called("compare", "baseline", "latest", "--margin", "0.05", "--set", "seed=5", "--to", "-").stdout
        for _ in range(2)
    )
    assert first == second
    assert json.loads(first)["gate"]["checks"][0]["low"] < 0


def test_rescored_run_is_compared_again(folder):
    ready(folder, "margin: 0.05", metrics="exact-match, token-f1")
    ran(folder, wrong=range(40))
    assert called("run", "--outputs", "latest", "--metric", "token-f1").exit_code == 1
    found = checks()
    assert found["baseline.margin.metrics.exact-match"]["status"] == "fail"
    assert found["baseline.margin.metrics.token-f1"]["status"] == "fail"
