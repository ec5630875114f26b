"""`deemster run` of a suite with variants: an experiment of ordinary runs, side by side, resumed as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deemster.store import open_store
from tests.cli.workspace import called, written

SAMPLES = [
    {"id": f"s{n}", "input": {"question": f"Question {n}?"}, "expected_output": f"answer {n}"} for n in range(12)
]
APP = """\
import pathlib

def note(name, input):
    with open("calls.txt", "a") as file:
        file.write(f"{name} {input['question']}\\n")

def number(input):
    return int(input["question"].split()[1][:-1])

def right(input):
    note("right", input)
    return f"answer {number(input)}"

async def half(input):
    note("half", input)
    if pathlib.Path("down").exists() and number(input) > 4:
        raise OSError("down")
    return f"answer {number(input) if number(input) % 2 else 'unknown'}"
"""
SUITE = """\
name: trial
dataset: golden.json
target: { python: "app:right" }
variants:
  right: {}
  half: { python: "app:half" }
  saved: { outputs: saved.json }
metrics: [exact-match]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outputs = {sample["id"]: "answer 1" for sample in SAMPLES}
    files = {"golden.json": {"name": "towns", "samples": SAMPLES}, "saved.json": {"outputs": outputs}}
    written(tmp_path, {"app.py": APP, "suite.yml": SUITE, **{name: json.dumps(text) for name, text in files.items()}})
    return tmp_path


def rows():
    with open_store(".deemster/runs.db", create=False) as store:
        return list(reversed(store.runs()))


def answer(*flags):
    result = called("run", "suite.yml", "--to", "answer.json", *flags)
    return result, json.loads(Path("answer.json").read_text(encoding="utf-8"))


def test_every_variant_is_a_stored_run_of_one_experiment(folder):
    result, found = answer()
    assert result.exit_code == 0, result.stderr
    assert [variant["name"] for variant in found["variants"]] == ["right", "half", "saved"]
    assert "right" in result.stdout.splitlines()[0]

    runs = rows()
    assert {row.experiment for row in runs} == {found["id"]}
    assert [(row.facts["label"], row.facts["target"], row.status, row.done) for row in runs] == [
        ("right", "app:right", "complete", 12),
        ("half", "app:half", "complete", 12),
        ("saved", "saved.json", "complete", 12),
    ]
    assert [row.facts["variant"] for row in runs] == [
        {"name": name, "levels": {}, "place": place} for place, name in enumerate(["right", "half", "saved"])
    ]
    for name in ("right", "half", "saved"):
        report = json.loads(called("show", f"latest/{name}", "--to", "-").stdout)
        assert report["run"]["label"] == name
    assert called("compare", "latest/right", "latest/half").exit_code == 0


def test_answer_says_whose_gate_passed_and_what_to_type_next(folder):
    (folder / "suite.yml").write_text(SUITE + "gate: { variants: [right], min_pass_rate: 0.5 }\n")
    assert "1 gate rule" in called("check", "suite.yml").stdout

    result = called("run", "suite.yml")
    assert result.stdout.splitlines()[1] == "Gate: pass for right."
    assert "Gate: pass" not in result.stderr
    assert "Gate: pass for right.\n" in called("run", "suite.yml", "--to", "-").stderr
    commands = [line.removeprefix("Next:").strip() for line in result.stdout.split("\n\n")[-1].splitlines()]
    assert commands == ["deemster view", "deemster show latest/right", "deemster compare latest/right latest/half"]
    assert result.stdout == called("show", "latest").stdout
    not_stored = called("run", "suite.yml", "--store", "none").stdout
    assert not_stored == result.stdout.partition("\nNext:")[0]


def test_list_of_runs_names_an_experiment_once(folder):
    called("run", "suite.yml")
    (experiment,) = {row.experiment for row in rows()}
    listed = called("show").stdout
    assert listed.count(experiment) == 1
    assert [line.split()[2] for line in listed.splitlines()[1:]] == [experiment, '"', '"']


def test_part_that_all_variants_ran_is_told_once(folder):
    text = called("run", "suite.yml", "--limit", "5").stdout
    assert text.count("Warning:") == text.count("Warning: All ran the same part of the dataset: 5 of 12 samples.") == 1


def test_live_variants_are_called_sample_by_sample(folder):
    called("run", "suite.yml", "--concurrency", "1")
    calls = (folder / "calls.txt").read_text().splitlines()
    pairs = [{calls[place].split()[0], calls[place + 1].split()[0]} for place in range(0, 24, 2)]
    numbers = [[calls[place].split()[2], calls[place + 1].split()[2]] for place in range(0, 24, 2)]
    assert pairs == [{"right", "half"}] * 12
    assert numbers == [[f"{number}?"] * 2 for number in range(12)]
    assert {calls[place].split()[0] for place in range(0, 24, 2)} == {"right", "half"}


def test_variants_are_chosen_by_name_and_one_alone_is_an_ordinary_run(folder):
    result = called("run", "suite.yml", "--variant", "h*", "--variant", "saved")
    assert [row.facts["label"] for row in rows()] == ["half", "saved"]
    assert "half" in result.stdout

    result = called("run", "suite.yml", "--variant", "half", "--to", "one.json", "--as-baseline")
    assert json.loads((folder / "one.json").read_text())["schema_version"] == "deemster.report.v1"
    assert rows()[-1].facts["label"] == "half"
    with open_store(".deemster/runs.db") as store:
        assert store.baseline("trial", "towns").run == rows()[-1].id


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--variant", "rihgt"], "There is no variant `rihgt`. Did you mean `right`?"),
        (
            ["--as-baseline"],
            "`--as-baseline` is for one variant: `--variant NAME`. There are `right`, `half`, `saved`.",
        ),
        (["--confirm", "2"], "`--confirm` is for one variant"),
        (["--outputs", "saved.json"], "`--outputs` is for one variant"),
        (["--to", "r.xml"], "`--to junit:FILE` is for one variant"),
        (["--name", "x", "--verbose"], "`--name`, `--verbose` are for one variant"),
    ],
)
def test_what_is_for_one_variant_is_refused_for_several(folder, flags, message):
    result = called("run", "suite.yml", *flags)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (folder / ".deemster").exists()


def test_variant_of_a_suite_without_any_is_refused(folder):
    written(folder, {"suite.yml": "dataset: golden.json\ntarget: { python: 'app:right' }\nmetrics: [exact-match]\n"})
    result = called("run", "suite.yml", "--variant", "right")
    assert result.exit_code == 2
    assert "This suite has no `variants`." in result.stderr


def test_parts_hold_for_all_variants(folder):
    called("run", "suite.yml", "--limit", "5")
    assert [(row.samples, row.done) for row in rows()] == [(5, 5)] * 3
    result = called("run", "suite.yml", "--only", "failed")
    assert result.exit_code == 0, result.stderr
    # What failed in any of them: half fails the even ones, saved all but the second.
    assert [row.samples for row in rows()[3:]] == [4] * 3


def test_gate_holds_for_each_variant_and_decides_the_exit_code(folder):
    written(folder, {"suite.yml": SUITE + "gate: { min_pass_rate: 0.4 }\n"})
    result = called("run", "suite.yml")
    assert result.exit_code == 1
    assert "saved:" in result.stderr.splitlines()
    assert "right:" not in result.stderr.splitlines()
    gate_line = result.stdout.splitlines()[1]
    assert gate_line == "Gate: pass for right and half; fail for saved (min_pass_rate)."
    in_memory = called("run", "suite.yml", "--store", "none")
    assert gate_line in in_memory.stdout.splitlines()
    assert gate_line in called("run", "suite.yml", "--quiet").stderr.splitlines()
    answer = json.loads(called("show", "latest", "--to", "-").stdout)
    assert answer["gates"]["right"] == {"status": "pass", "checks": []}
    written(folder, {"suite.yml": SUITE + "gate: { min_pass_rate: 0.4, variants: [right, half] }\n"})
    assert called("run", "suite.yml").exit_code == 0
    written(folder, {"suite.yml": SUITE + "gate: { min_pass_rate: 0.4, variants: [rihgt] }\n"})
    result = called("run", "suite.yml")
    assert result.exit_code == 2
    assert "`gate.variants`: there is no variant `rihgt`. Did you mean `right`?" in result.stderr


def test_gate_compares_with_a_variant_of_the_same_experiment(folder):
    gate = "gate: { baseline: { compare: right, max_newly_failing: 7 } }\n"
    written(folder, {"suite.yml": SUITE + gate})
    for _ in range(2):
        result = called("run", "suite.yml")
        assert result.exit_code == 1
        right, half, saved = rows()[-3:]
        assert "baseline" not in right.facts or right.facts["baseline"] is None
        assert [row.facts["baseline"]["run"] for row in (half, saved)] == [right.id] * 2
        gates = [json.loads(called("show", row.id, "--to", "-").stdout)["gate"]["decision"] for row in (half, saved)]
        assert gates == ["pass", "fail"]


def test_previous_run_is_that_of_the_same_variant(folder):
    written(folder, {"suite.yml": SUITE + "gate: { baseline: { compare: previous, margin: 0.5 } }\n"})
    for _ in range(2):
        called("run", "suite.yml")
    first, second = rows()[:3], rows()[3:]
    assert [row.facts["baseline"]["run"] for row in second] == [row.id for row in first]


def test_history_of_a_gate_is_that_of_one_variant(folder):
    written(folder, {"suite.yml": SUITE + "gate: { baseline: { margin: 0.5 } }\n"})
    for _ in range(2):
        called("run", "suite.yml")
    result = called("audit", "gate", "suite.yml", "--to", "-")
    read = json.loads(result.stdout)
    assert "left out" not in result.stdout
    assert read["runs"] == [row.id for row in rows() if row.facts["label"] == "saved"][::-1]


def test_failing_variant_leaves_the_others_whole_and_a_resume_runs_only_what_is_missing(folder):
    written(folder, {"down": ""})
    result, found = answer("--concurrency", "2")
    assert result.exit_code == 3
    assert "half:" in result.stderr.splitlines()
    assert "To continue: deemster run suite.yml --resume" in result.stderr
    before = rows()
    assert [row.status for row in before] == ["complete", "incomplete", "complete"]

    (folder / "down").unlink()
    (folder / "calls.txt").unlink()
    result, again = answer("--resume")
    assert (result.exit_code, again["id"]) == (0, found["id"])
    calls = (folder / "calls.txt").read_text().splitlines()
    assert sorted(calls) == sorted(f"half Question {number}?" for number in range(5, 12))
    after = rows()
    assert [row.status for row in after] == ["complete"] * 3
    assert [after[place] for place in (0, 2)] == [before[place] for place in (0, 2)]


def test_resume_begins_the_variants_that_were_not_begun(folder):
    called("run", "suite.yml", "--variant", "right", "--variant", "half")
    experiment = rows()[0].experiment
    result = called("run", "suite.yml", f"--resume={experiment}")
    assert result.exit_code == 0, result.stderr
    assert [(row.facts["label"], row.experiment) for row in rows()] == [
        (name, experiment) for name in ("right", "half", "saved")
    ]
    assert called("run", "suite.yml", f"--resume={rows()[1].id}").exit_code == 0
    assert len(rows()) == 3
    result = called("run", "suite.yml", "--resume=nothing")
    assert (result.exit_code, "holds no run `nothing`" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "command",
    [
        "show latest/half s3",
        "show latest/half --failed",
        "run --outputs latest/half --metric contains",
        "audit metrics suite.yml --outputs latest/half",
        "plan detect latest/half",
        "labels sheet latest/half --n 5 --to sheet.csv",
        "export latest/half --to run.jsonl",
        "baseline latest/half",
        "compare latest/half latest/right",
    ],
)
def test_commands_take_the_run_of_a_variant(folder, command):
    written(folder, {"suite.yml": SUITE + "gate: { baseline: { margin: 0.5 }, variants: [half] }\n"})
    called("run", "suite.yml")
    result = called(*command.split())
    assert result.exit_code in (0, 1), result.stderr
    assert "rror" not in result.stderr


@pytest.mark.parametrize(
    "command", ["show latest s3", "baseline latest", "export latest --to run.jsonl", "compare latest x"]
)
def test_commands_that_want_one_run_name_the_variants(folder, command):
    called("run", "suite.yml")
    result = called(*command.split())
    assert result.exit_code == 2
    if command != "compare latest x":
        assert (
            "`latest` is an experiment of 3 runs. Name one: `latest/right`, `latest/half`, `latest/saved`."
            in result.stderr
        )


def test_changed_variant_is_not_resumed(folder):
    called("run", "suite.yml")
    written(folder, {"suite.yml": SUITE.replace("app:half", "app:right")})
    result = called("run", "suite.yml", "--resume")
    assert result.exit_code == 3
    assert "half" in result.stderr
    assert "app:half" in result.stderr


def test_suite_that_no_variant_can_go_on_with_is_an_error(folder):
    called("run", "suite.yml")
    before = rows()
    written(folder, {"suite.yml": SUITE.replace("exact-match", "contains")})
    result = called("run", "suite.yml", "--resume", "--to", "answer.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "error: right: The run" in result.stderr
    assert "error: saved: The run" in result.stderr
    assert "To continue" not in result.stderr
    assert not Path("answer.json").exists()
    assert rows() == before


def test_variant_that_is_new_in_the_suite_is_begun_in_the_newest_experiment_alone(folder):
    for _ in range(2):
        called("run", "suite.yml")
    newest = rows()[-1].experiment
    written(folder, {"suite.yml": SUITE.replace("  saved:", "  third: { python: 'app:half' }\n  saved:")})
    for _ in range(2):
        assert called("run", "suite.yml", "--resume").exit_code == 0
        assert [row.experiment for row in rows() if row.facts["label"] == "third"] == [newest]


def test_experiment_may_be_stored_nowhere(folder):
    result, found = answer("--store", "none")
    assert result.exit_code == 0
    assert [variant["name"] for variant in found["variants"]] == ["right", "half", "saved"]
    assert not (folder / ".deemster" / "runs.db").exists()
    stored = answer()[1]
    assert found["ranking"]["pairs"] == stored["ranking"]["pairs"]


def test_samples_that_a_variant_lacks_end_all_before_anything_runs(folder):
    outputs = {sample["id"]: "answer 1" for sample in SAMPLES[1:]}
    written(folder, {"saved.json": json.dumps({"outputs": outputs})})
    result = called("run", "suite.yml")
    assert result.exit_code == 2
    assert not (folder / "calls.txt").exists()


@pytest.mark.parametrize("command", ["run", "check"])
def test_samples_that_a_prompt_cannot_be_filled_for_are_said_with_its_variant(folder, command):
    chat = "import deemster as dm\nchat = dm.models.FakeChat(lambda ask: 'x', model='f', identity={'model': 'f'})\n"
    text = """\
name: trial
dataset: golden.json
models: { mini: { client: "app:chat" } }
prompts: { short: "{{input.question}}", long: "{{input.questoin}}" }
target: { chat: mini }
variants: { prompt: [short, long] }
metrics: [exact-match]
"""
    written(folder, {"app.py": chat, "suite.yml": text})
    result = called(command, "suite.yml")
    assert result.exit_code == 2
    assert "sample `s0`: `long`: prompt: The input has no `input.questoin`." in result.stderr
