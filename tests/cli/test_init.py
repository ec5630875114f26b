"""`deemster init`: every template runs offline at once, and its workflow runs the suite."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from click.testing import Result

from deemster.cli.init import AGENTS, SCHEMA, TEMPLATES, WORKFLOW
from tests.cli.workspace import EPOCH, called, written

FILES = {
    "qa": ["app.py", "golden.yml", "suite.yml"],
    "rag": ["app.py", "golden.yml", "suite.yml"],
    "agent": ["app.py", "golden.yml", "suite.yml"],
    "judge": ["app.py", "golden.yml", "stand_in_judge.py", "suite.yml"],
    "ab": ["agent.py", "golden.yml", "recorded.yml", "suite.yml"],
    "prompts": ["golden.yml", "grounded.yml", "plain.txt", "stand_in_models.py", "suite.yml"],
    "grading": ["golden.yml", "labelled.yml", "replies.yml", "rubric.yaml", "stand_in_judge.py", "suite.yml"],
}
# Those that compare variants; the others run one target.
VARIANTS = {
    "ab": ("with-skill is best: ", 2),
    "prompts": ("grounded / large or grounded / small is best: ", 4),
}
SINGLE = [template for template in FILES if template not in VARIANTS]


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def in_folder(template: str) -> list[str]:
    """What stands in the folder of a suite that `init` wrote."""
    return sorted([*FILES[template], AGENTS, SCHEMA])


def steps(workflow: Path) -> dict[str, str]:
    """The commands of a workflow by the name of their step, and the variable `SUITE` of its job."""
    job = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]["evaluate"]
    return {step["name"]: step["run"] for step in job["steps"] if "run" in step} | {"SUITE": job["env"]["SUITE"]}


def test_every_template_has_its_files():
    found = files("deemster.cli") / "templates"
    assert list(TEMPLATES) == list(FILES)
    assert sorted(entry.name for entry in found.iterdir() if entry.is_dir() and entry.name[0] != "_") == sorted(FILES)


@pytest.mark.parametrize("template", SINGLE)
def test_template_runs_offline_at_once(template, folder):
    made = called("init", "fresh", "--template", template)
    assert made.exit_code == 0
    assert made.stdout.endswith("Next: deemster run fresh/suite.yml\n")
    assert files_of(folder / "fresh") == [str(WORKFLOW), ".gitignore", *in_folder(template)]
    for named in files_of(folder / "fresh"):
        assert f"fresh/{named}" in made.stdout
    done = called("run", "fresh/suite.yml", "--offline", "--to", "-")
    assert done.exit_code == 0, done.stderr
    assert "warning" not in done.stderr
    report = json.loads(done.stdout)
    assert (report["gate"]["decision"], report["totals"]["unscored"]) == ("pass", 0)
    # One sample that does not pass shows a newcomer what that looks like.
    assert sum(sample["passed"] == 0 for sample in report["samples"]) == 1


@pytest.mark.parametrize("template", VARIANTS)
def test_template_with_variants_runs_offline_and_says_which_is_best(template, folder):
    answer, variants = VARIANTS[template]
    assert called("init", "fresh", "--template", template).exit_code == 0
    assert files_of(folder / "fresh") == [str(WORKFLOW), ".gitignore", *in_folder(template)]
    done = called("run", "fresh/suite.yml", "--offline")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(answer), done.stdout
    shown = called("show", "latest", "--to", "-")
    experiment = json.loads(shown.stdout)
    assert (len(experiment["variants"]), experiment["schema_version"]) == (variants, "deemster.experiment.v1")


@pytest.mark.parametrize("template", VARIANTS)
def test_workflow_of_a_template_with_variants_runs_them(template, folder, monkeypatch):
    called("init", "--template", template)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    _, *words = shlex.split(steps(folder / WORKFLOW)["Evaluate"].replace("$SUITE", "suite.yml"))
    done = called(*words)
    assert done.exit_code == 0, done.output
    assert "is best" in (folder / "summary.md").read_text()
    assert (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("template", "file", "good", "bad"),
    [
        ("ab", "suite.yml", "skill: true", "skill: false"),
        ("prompts", "grounded.yml", "Passage: {{input.passage}}", "Passage: none."),
    ],
)
def test_gate_of_a_template_with_variants_stops_a_worse_variant(template, file, good, bad, folder):
    called("init", "--template", template)
    text = (folder / file).read_text()
    assert good in text
    (folder / file).write_text(text.replace(good, bad))
    done = called("run", "suite.yml", "--offline", "--quiet")
    assert done.exit_code == 1, done.output


@pytest.mark.parametrize("template", FILES)
def test_every_file_of_a_template_is_valid_without_a_warning(template, folder):
    called("init", "--template", template)
    done = called("check", ".")
    assert (done.exit_code, "with issues" in done.stderr) == (0, True), done.stderr
    assert "warning" not in done.stderr
    assert "suite.yml: suite" in done.stdout


@pytest.mark.parametrize("template", SINGLE)
def test_gate_of_a_template_stops_a_worse_application(template, folder):
    called("init", "--template", template)
    if (folder / "app.py").exists():
        worse = "\n\ndef mute(input):\n    return ''\n"
        (folder / "app.py").write_text((folder / "app.py").read_text() + worse)
        suite = (folder / "suite.yml").read_text()
        (folder / "suite.yml").write_text(suite.replace("app:answer", "app:mute").replace("app:run_agent", "app:mute"))
    else:
        written(folder, {"replies.yml": "outputs: {too-small: No., changed-mind: No., broken: No.}\n"})
    suite = (folder / "suite.yml").read_text()
    (folder / "suite.yml").write_text(suite.replace("gate:\n", "gate:\n  max_unscored: 100%\n"))
    done = called("run", "suite.yml", "--offline", "--quiet")
    assert done.exit_code == 1, done.output


def test_judge_of_the_grading_template_can_be_compared_with_a_person(folder):
    called("init", "--template", "grading")
    advised = [line[2:].strip() for line in (folder / "labelled.yml").read_text().splitlines() if "  deemster " in line]
    assert len(advised) == 2
    graded, aligned = (called(*command.split()[1:]) for command in advised)
    assert (graded.exit_code, aligned.exit_code) == (0, 0), graded.output
    assert "The numbers rest on 18 pairs of truth and verdict: 6 items, 3 criteria, 1 judge." in aligned.stdout


def test_without_terminal_and_template_the_template_is_qa(folder):
    assert called("init").exit_code == 0
    assert (folder / "suite.yml").read_text().splitlines()[3] == "name: qa"


def test_unknown_template_is_bad_input(folder):
    done = called("init", "--template", "rga")
    assert done.exit_code == 2
    assert "'rag'" in done.stderr
    assert files_of(folder) == []


def test_on_a_terminal_the_template_is_asked_for(folder):
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "deemster", "init", "fresh"], cwd=folder, stdin=child, stdout=child, stderr=child
    )
    os.close(child)
    os.write(parent, b"no such\nagent\n")
    shown = b""
    try:
        while piece := os.read(parent, 4096):
            shown += piece
    except OSError:
        # The terminal of a process that has ended cannot be read.
        pass
    finally:
        os.close(parent)
    assert process.wait() == 0
    for template, about in TEMPLATES.items():
        assert f"{template:8} {about}".encode() in shown
    assert b"Template (qa, rag, agent, judge, ab, prompts, grading) [qa]: " in shown
    assert shown.count(b"Template (") == 2
    assert (folder / "fresh" / "suite.yml").read_text().splitlines()[3] == "name: agent"


@pytest.mark.parametrize("taken", ["app.py", "suite.yml"])
def test_init_overwrites_no_file(taken, folder):
    written(folder, {taken: "mine\n"})
    done = called("init")
    assert done.exit_code == 2
    assert f"{taken}: There is such a file already; nothing was written." in done.stderr
    assert files_of(folder) == [taken]
    assert (folder / taken).read_text() == "mine\n"


def test_in_a_repository_the_workflow_is_written_at_its_root(folder):
    (folder / ".git").mkdir()
    done = called("init", "evals/shop 1")
    assert f"{WORKFLOW}." in done.stdout
    assert steps(folder / WORKFLOW)["SUITE"] == "evals/shop 1/suite.yml"
    assert (folder / ".gitignore").exists()
    assert files_of(folder / "evals") == [f"shop 1/{name}" for name in in_folder("qa")]


@pytest.mark.parametrize(
    ("taken", "advice"),
    [
        (str(WORKFLOW), "add a step that runs suite.yml"),
        (AGENTS, "`deemster help assistants` has what to add"),
        (".gitignore", "`.deemster/` belongs into it"),
    ],
)
def test_existing_file_that_others_use_too_is_kept(taken, advice, folder):
    written(folder, {taken: "mine\n"})
    done = called("init")
    assert done.exit_code == 0
    assert f"Kept {taken}: {advice}.\n" in done.stdout
    assert (folder / taken).read_text() == "mine\n"
    assert "suite.yml" in files_of(folder)


@pytest.mark.parametrize(("answer", "code"), [("30 days", 0), ("14 days", 1)])
def test_steps_of_the_workflow_pass_or_fail_with_the_gate(answer, code, folder):
    called("init")
    app = (folder / "app.py").read_text()
    (folder / "app.py").write_text(app.replace("30 days", answer))
    commands = steps(folder / WORKFLOW)
    assert commands["Install"].startswith("pip install deemster")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    summary = folder / "summary.md"
    env = {"PATH": path, "SUITE": commands["SUITE"], "GITHUB_STEP_SUMMARY": str(summary), "SOURCE_DATE_EPOCH": EPOCH}
    codes = [
        subprocess.run(["bash", "-e", "-c", commands[step]], cwd=folder, env=env, check=False).returncode
        for step in ("Check", "Evaluate")
    ]
    assert codes == [0, code]
    assert ("fail" in summary.read_text().lower()) is bool(code)
    assert {"report.html", "report.xml"} <= set(files_of(folder))


def untracked() -> list[str]:
    """The files that git would take."""
    listed = subprocess.run(["git", "ls-files", "--others", "--exclude-standard"], capture_output=True, check=True)
    return listed.stdout.decode().splitlines()


def test_git_ignores_what_a_run_leaves(folder, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    subprocess.run(["git", "init", "--quiet"], check=True)
    called("init", "evals")
    before = untracked()
    assert "evals/suite.yml" in before
    files = [word for ending in ("html", "md", "xml") for word in ("--to", f"report.{ending}")]
    run = [sys.executable, "-m", "deemster", "run", "evals/suite.yml", *files]
    subprocess.run(run, capture_output=True, check=True)
    assert Path("evals/__pycache__").exists()
    assert untracked() == before


@pytest.mark.parametrize("template", FILES)
def test_editor_finds_the_schema_of_the_suite(template, folder):
    called("init", "--template", template)
    first, *_ = (folder / "suite.yml").read_text().splitlines()
    named = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)[1]
    schema = jsonschema_rs.validator_for(json.loads((folder / named).read_text()))
    suite = yaml.safe_load((folder / "suite.yml").read_text())
    assert schema.is_valid(suite)
    assert not schema.is_valid({**suite, "metrisc": []})


def commands_of(page: str) -> list[str]:
    """The commands in the blocks of a page."""
    return [line for block in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("template", SINGLE)
def test_assistant_that_follows_the_page_runs_reads_and_mends(template, folder, monkeypatch):
    called("init", "fresh", "--template", template)
    monkeypatch.chdir(folder / "fresh")
    answers = Path("app.py") if Path("app.py").exists() else Path("replies.yml")
    good = answers.read_text()
    answers.write_text(spoilt(good))

    outcomes = {}
    for command in commands_of(Path(AGENTS).read_text()):
        if "--only failed" in command:
            answers.write_text(good)
            # A new process would import it anew.
            sys.modules.pop("app", None)
        done = called(*command.replace("SAMPLE", failed_sample(outcomes)).split()[1:])
        outcomes[command] = done
        assert done.exit_code in (0, 1, 3), command + done.output

    codes = {command: done.exit_code for command, done in outcomes.items()}
    assert codes["deemster run suite.yml --quiet --name before"] in (1, 3)
    assert codes["deemster run suite.yml --quiet"] == 0
    assert "fail" not in outcomes["deemster compare before latest"].stdout.splitlines()[0].lower()


def spoilt(text: str) -> str:
    """An application, or a file of replies, whose answers are of no use."""
    if "outputs:" in text:
        return re.sub(r'^(  [\w-]+): ".*"$', r'\1: "No."', text, flags=re.MULTILINE)
    names = re.findall(r"^def (\w+)\(input", text, re.MULTILINE)
    return text + "".join(f"\n\ndef {name}(input):\n    return 'No.'\n" for name in names)


def failed_sample(outcomes: Mapping[str, Result]) -> str:
    """The first sample that a brief names; before there is one, what stands for it."""
    brief = outcomes.get("deemster show latest --failed")
    return "SAMPLE" if brief is None else re.search(r"^### `([\w-]+)`", brief.stdout, re.MULTILINE)[1]
