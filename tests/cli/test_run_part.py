"""`deemster run` over a part of the dataset: the flags, the marks of a part, what failed before, resuming."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.workspace import SUITE, called, report_of, written

GOLDEN = """\
name: support
samples:
  - { id: window, input: { question: How long? }, expected_output: 30 days, metadata: { tags: [policy], lang: en } }
  - { id: frist, input: { question: Wie lange? }, expected_output: 30 Tage, metadata: { tags: [policy], lang: de } }
  - { id: fee, input: { question: What fee? }, expected_output: none, metadata: { tags: [money], lang: en } }
  - { id: tax, input: { question: What tax? }, expected_output: none, metadata: { lang: en } }
"""
ANSWERS = "outputs: { window: 30 days, frist: 30 Tage, fee: ten euros, tax: none }\n"
GATE = "gate: { min_macro_f1: 0.9, cohorts: { policy: { min_macro_f1: 0.9 }, money: { min_macro_f1: 0.0 } } }\n"
LIVE = SUITE.replace("{ outputs: answers.yml }", "{ python: 'app:answer' }")
# Answers nothing before there is a file `ready`.
APP = """\
from pathlib import Path

def answer(input):
    with open("asked.txt", "a") as file:
        file.write(input["question"] + "\\n")
    if not Path("ready").exists():
        raise ValueError("not ready")
    return {"How long?": "30 days", "Wie lange?": "30 Tage"}.get(input["question"], "none")
"""


@pytest.fixture
def part_world(world):
    return world(golden_yml=GOLDEN, answers_yml=ANSWERS, suite_yml=SUITE + GATE)


def sample_ids(report):
    return [sample["id"] for sample in report["samples"]]


@pytest.mark.parametrize(
    ("flags", "ids"),
    [
        (("--only", "tag:policy"), "window frist"),
        (("--only", "tag:policy", "--only", "tag:money"), "window frist fee"),
        (("--only", "id:f*"), "frist fee"),
        (("--only", "id:tax", "--only", "id:w?ndow"), "window tax"),
        (("--only", "lang=de"), "frist"),
        (("--only", "lang=en", "--only", "input.question=What fee?"), "fee"),
        (("--only", "tag:policy", "--only", "lang=en"), "window"),
        (("--limit", "2"), "window frist"),
    ],
)
def test_flags_select_samples_and_the_report_says_so(part_world, flags, ids):
    report = report_of(*flags)
    assert sample_ids(report) == ids.split()
    part = report["run"]["part"]
    assert (part["samples"], part["of"]) == (len(ids.split()), 4)
    assert all(word in part["selection"] for word in flags[::2])


def test_random_samples_are_the_same_for_a_seed(part_world):
    first = report_of("--sample", "2", "--seed", "1")
    assert first["run"]["part"] == {"samples": 2, "of": 4, "selection": "--sample 2 --seed 1"}
    assert sample_ids(first) == sample_ids(report_of("--sample", "2", "--seed", "1"))
    draws = {tuple(sample_ids(report_of("--sample", "2", "--seed", str(seed), "--store", "none"))) for seed in range(8)}
    assert len(draws) > 1
    assert report_of("--sample", "2")["run"]["part"]["selection"] == "--sample 2 --seed 42"


def test_whole_run_is_no_part(part_world):
    assert report_of()["run"]["part"] is None
    assert report_of("--only", "id:*")["run"]["part"] is None


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("md", "Part: <code>2 of 4 samples, --only tag:policy</code>."),
        ("html", "Part: <code>2 of 4 samples, --only tag:policy</code>."),
        ("github", "Part: <code>2 of 4 samples, --only tag:policy</code>."),
        ("junit", '<testsuite name="gate of a part: 2 of 4 samples, --only tag:policy"'),
    ],
)
def test_every_renderer_says_that_it_is_a_part(part_world, form, expected):
    assert expected in called("run", "suite.yml", "--only", "tag:policy", "--to", f"{form}:-").stdout
    assert expected in called("show", "latest", "--to", f"{form}:-").stdout


def test_terminal_says_that_gate_judged_a_part(part_world):
    lines = called("run", "suite.yml", "--only", "tag:policy").stdout.splitlines()
    assert lines[0].startswith("Gate: pass (2 passed, 1 skipped), for a part of the dataset: 2 of 4 samples. ")
    assert lines[2] == "Part: 2 of 4 samples, --only tag:policy."
    quiet = called("run", "suite.yml", "--only", "tag:policy", "--quiet")
    assert quiet.stderr == "Gate: pass (2 passed, 1 skipped), for a part of the dataset: 2 of 4 samples.\n"


def test_rule_about_a_cohort_outside_the_part_is_skipped_and_a_misspelt_one_is_an_error(part_world):
    checks = {check["name"]: check for check in report_of("--only", "tag:policy")["gate"]["checks"]}
    skipped = checks["cohorts.money.min_macro_f1"]
    assert (skipped["status"], skipped["because"]) == ("skipped", "this run has no sample of the cohort")
    written(part_world, {"suite.yml": SUITE + GATE.replace("money", "monye")})
    result = called("run", "suite.yml", "--only", "tag:policy")
    assert result.exit_code == 2
    assert "Did you mean `money`?" in result.stderr


def test_store_and_list_of_runs_say_that_a_run_is_a_part(part_world):
    called("run", "suite.yml", "--quiet")
    called("run", "suite.yml", "--only", "tag:policy", "--quiet")
    part, whole = json.loads(called("show", "--to", "-").stdout)
    assert part["facts"]["part"] == {"samples": 2, "of": 4, "selection": "--only tag:policy"}
    assert "part" not in whole["facts"]
    assert "part" not in whole["identity"]
    assert "complete part" in called("show").stdout.splitlines()[1]


def test_publish_safe_leaves_out_the_words_that_selected(part_world):
    shown = called("run", "suite.yml", "--only", "lang=de", "--without-text", "--to", "-").stdout
    assert json.loads(shown)["run"]["part"] == {"samples": 1, "of": 4, "selection": None}
    assert "metadata.lang" not in shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--only", "tag:polcy"), "golden.yml: No sample has the tag `polcy`. Did you mean `policy`?"),
        (("--only", "id:windw"), "golden.yml: No sample has the id `windw`. Did you mean `window`?"),
        (("--only", "lang=ed"), "No sample has `ed` as its `metadata.lang`."),
        (("--only", "lang"), "`--only lang` says nothing that is known: `tag:x`, `id:q*`, `KEY=VALUE` for metadata,"),
        (("--only", "tag:money", "--only", "lang=de"), "No sample fits all of `--only tag:money --only lang"),
        (("--limit", "0"), "`limit` is a whole number of at least 1, not 0."),
        (("--seed", "1"), "`--seed` is for `--sample`, which draws samples at random."),
        (("--only", "failed"), "holds no run"),
        (("--resume", "20200101"), "If `20200101` is for `--resume`, write `--resume=20200101`."),
    ],
)
def test_selection_that_cannot_be_is_bad_input(part_world, flags, message):
    result = called("run", "suite.yml", *flags)
    assert result.exit_code == 2
    assert message in result.stderr or "There is no" in result.stderr
    assert not (part_world / ".deemster").exists()


def test_failed_runs_what_did_not_pass_in_the_latest_run_of_the_suite(part_world):
    whole = report_of()
    again = report_of("--only", "failed")
    assert sample_ids(again) == ["fee"]
    assert again["run"]["part"] == {"samples": 1, "of": 4, "selection": f"--only failed:{whole['run']['id']}"}


def test_failed_takes_unscored_samples_too(world):
    folder = world(golden_yml=GOLDEN, suite_yml=LIVE)
    written(folder, {"app.py": APP, "ready": None})
    assert sample_ids(report_of("--limit", "2")) == ["window", "frist"]
    written(folder, {"ready": ""})
    again = report_of("--only", "failed")
    assert (sample_ids(again), again["run"]["status"]) == (["window", "frist"], "complete")


def test_failed_of_a_named_run_is_narrowed_by_other_flags(part_world):
    written(part_world, {"answers.yml": ANSWERS.replace("30 Tage", "no idea")})
    first = report_of()["run"]["id"]
    report_of("--only", "tag:policy")
    again = report_of("--only", f"failed:{first}", "--only", "tag:money")
    assert sample_ids(again) == ["fee"]
    assert again["run"]["part"]["selection"] == f"--only failed:{first} --only tag:money"


def test_failed_is_an_error_where_everything_passed(part_world):
    written(part_world, {"answers.yml": ANSWERS.replace("ten euros", "none")})
    called("run", "suite.yml", "--quiet")
    result = called("run", "suite.yml", "--only", "failed")
    assert result.exit_code == 2
    assert "passed: there is nothing to run." in result.stderr


def test_failed_after_a_part_that_passed_names_the_latest_whole_run(part_world):
    assert called("run", "suite.yml", "--only", "id:window", "--quiet").exit_code == 0
    only_part = called("run", "suite.yml", "--only", "failed")
    assert only_part.stderr.rstrip().endswith("passed, which was a part: 1 of 4 samples.")

    whole = report_of()["run"]["id"]
    part = report_of("--only", "id:window")["run"]["id"]
    result = called("run", "suite.yml", "--only", "failed")
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: Every sample of the run `{part}` passed, which was a part: 1 of 4 samples. "
        f"What failed in the latest whole run: `--only failed:{whole}`.\n"
    )
    assert sample_ids(report_of("--only", f"failed:{whole}")) == ["fee"]


def test_failed_is_an_error_where_the_suite_never_ran(part_world):
    called("run", "suite.yml", "--quiet")
    written(part_world, {"other.yml": SUITE.replace("refunds", "other")})
    result = called("run", "other.yml", "--only", "failed")
    assert result.exit_code == 2
    assert "There is no run of the suite `other`, so nothing has failed yet." in result.stderr


def test_partial_runs_the_samples_that_have_a_saved_output(part_world):
    written(part_world, {"few.yml": "outputs: { window: 30 days, fee: none }\n"})
    refused = called("run", "suite.yml", "--outputs", "few.yml")
    assert refused.exit_code == 2
    assert (
        "2 samples without a saved output: `frist`, `tax`. `--only answered` leaves such samples out." in refused.stderr
    )
    report = report_of("--outputs", "few.yml", "--only", "answered")
    assert sample_ids(report) == ["window", "fee"]
    assert report["run"]["part"] == {"samples": 2, "of": 4, "selection": "--only answered"}
    narrowed = report_of("--outputs", "few.yml", "--only", "answered", "--only", "tag:policy")
    assert (sample_ids(narrowed), narrowed["run"]["part"]["selection"]) == (
        ["window"],
        "--only tag:policy --only answered",
    )
    assert report_of("--only", "answered")["run"]["part"] is None


def test_partial_still_refuses_outputs_for_no_sample(part_world):
    written(part_world, {"few.yml": "outputs: { window: 30 days, fe: none }\n"})
    result = called("run", "suite.yml", "--outputs", "few.yml", "--only", "answered")
    assert result.exit_code == 2
    assert "1 saved output for no sample of the dataset: `fe`." in result.stderr


def test_partial_is_for_saved_outputs(world):
    written(world(suite_yml=LIVE), {"app.py": APP})
    result = called("run", "suite.yml", "--only", "answered")
    assert result.exit_code == 2
    assert "this run has a live target" in result.stderr


@pytest.fixture
def stopped_part(world):
    """A partial run whose target failed on every sample; it works afterwards."""
    folder = world(golden_yml=GOLDEN, suite_yml=LIVE)
    written(folder, {"app.py": APP, "ready": None})
    report = report_of("--only", "tag:policy")
    assert report["run"]["status"] == "incomplete"
    written(folder, {"ready": "", "asked.txt": None})
    return folder, report["run"]["id"]


@pytest.mark.parametrize("flags", [(), ("--only", "tag:policy")])
@pytest.mark.parametrize("is_named", [False, True])
def test_partial_run_is_resumed_with_its_part(stopped_part, flags, is_named):
    folder, run = stopped_part
    report = report_of(*flags, f"--resume={run}" if is_named else "--resume")
    assert (report["run"]["id"], report["run"]["status"]) == (run, "complete")
    assert sample_ids(report) == ["window", "frist"]
    assert report["run"]["part"] == {"samples": 2, "of": 4, "selection": "--only tag:policy"}
    assert sorted((folder / "asked.txt").read_text().split("\n")) == ["", "How long?", "Wie lange?"]


def test_drawn_part_is_resumed_although_the_dataset_grew(world):
    folder = world(golden_yml=GOLDEN, suite_yml=LIVE)
    written(folder, {"app.py": APP, "ready": None})
    before = report_of("--sample", "2", "--seed", "3")
    more = "".join(f"  - {{ id: more-{n}, input: {{ question: '{n}' }}, expected_output: x }}\n" for n in range(9))
    written(folder, {"ready": "", "golden.yml": GOLDEN + more})
    after = report_of("--resume")
    assert (after["run"]["id"], sample_ids(after)) == (before["run"]["id"], sample_ids(before))
    assert after["run"]["part"] == {"samples": 2, "of": 13, "selection": "--sample 2 --seed 3"}


def test_another_part_does_not_resume_an_unfinished_one(stopped_part):
    _, run = stopped_part
    result = called("run", "suite.yml", "--only", "tag:money", "--resume", "--quiet")
    assert "There is no run to resume; this is a new one." in result.stderr
    refused = called("run", "suite.yml", "--only", "tag:money", f"--resume={run}")
    assert refused.exit_code == 2
    assert "part: was --only tag:policy, is --only tag:money" in refused.stderr


def test_failed_beside_resume_names_its_run(stopped_part):
    result = called("run", "suite.yml", "--only", "failed", "--resume")
    assert result.exit_code == 2
    assert "name the run: `--only failed:RUN`" in result.stderr


def test_part_survives_export_and_import(part_world):
    called("run", "suite.yml", "--only", "tag:policy", "--quiet")
    shown = called("show", "latest", "--to", "-").stdout
    assert called("export", "latest", "--to", "run.jsonl").exit_code == 0
    assert called("import", "run.jsonl", "--store", "other.db").exit_code == 0
    assert called("show", "latest", "--to", "-", "--store", "other.db").stdout == shown


def test_what_is_printed_of_a_part_matches_golden_files(part_world, golden):
    called("run", "suite.yml", "--quiet", "--name", "all of it")
    golden("cli/run-part.md", called("run", "suite.yml", "--only", "failed", "--to", "md:-").stdout)
    golden("cli/runs-part.txt", called("show").stdout)


def failing_world(part_world):
    """Three of four samples fail, under a gate of the whole run and one of newly failing samples."""
    gate = "gate: { min_pass_rate: 0.9, metrics: { exact-match: { min_pass_rate: 0.9 } }, max_unscored: 0 }\n"
    wrong = "outputs: { window: 30 days, frist: no, fee: no, tax: no }\n"
    written(part_world, {"suite.yml": SUITE + gate, "answers.yml": wrong})
    assert called("run", "suite.yml", "--quiet").exit_code == 1


def test_what_failed_is_run_again_and_says_what_passes_now(part_world):
    failing_world(part_world)
    written(part_world, {"answers.yml": "outputs: { window: 30 days, frist: 30 Tage, fee: no, tax: no }\n"})
    again = called("run", "suite.yml", "--only", "failed", "--to", "r.json")
    first = "3 run again: 1 now passes, 2 still fail (fee and tax). "
    assert again.stdout.startswith(f"{first}Gate: pass (1 passed, 2 skipped), for what failed before; the whole suite")
    assert again.exit_code == 0
    skipped = json.loads(Path("r.json").read_text())["gate"]["checks"][0]
    assert (skipped["status"], skipped["because"]) == (
        "skipped",
        "only what failed before was run; the whole suite decides",
    )
    quiet = called("run", "suite.yml", "--only", "failed", "--quiet")
    assert quiet.stderr.startswith("2 run again: none passes now, 2 still fail (fee and tax).\nGate: pass (1 passed")


def test_gate_whose_rules_are_all_skipped_is_not_called_passed(part_world):
    gate = "gate: { min_pass_rate: 0.9 }\n"
    wrong = "outputs: { window: 30 days, frist: no, fee: no, tax: no }\n"
    written(part_world, {"suite.yml": SUITE + gate, "answers.yml": wrong})
    called("run", "suite.yml", "--quiet")

    again = called("run", "suite.yml", "--only", "failed", "--to", "r.json")
    assert again.exit_code == 0
    assert "Gate not decided: the whole suite decides it (1 skipped)." in again.stdout
    assert "\nNext: deemster run suite.yml\n      deemster show latest frist\n" in again.stdout
    assert "\nNext: deemster run suite.yml\n" in called("show", "latest").stdout
    assert json.loads(Path("r.json").read_text())["gate"]["decision"] == "pass"

    listed = called("show").stdout.splitlines()
    assert [line.split().count("skipped") for line in listed if "3 of 4" in line] == [1]
    assert not any(" pass " in line for line in listed)


def test_what_failed_and_all_passes_now_says_so(part_world):
    failing_world(part_world)
    written(part_world, {"answers.yml": ANSWERS.replace("ten euros", "none")})
    again = called("run", "suite.yml", "--only", "failed")
    assert again.stdout.startswith("3 run again: 3 now pass, none still fails. ")


def test_part_by_tag_is_held_to_the_bounds(part_world):
    failing_world(part_world)
    assert called("run", "suite.yml", "--only", "tag:money", "--quiet").exit_code == 1
