"""`deemster init`: writes a small suite to begin with, a GitHub workflow, and what assistants and editors read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from deemster.cli._command import Verb
from deemster.cli._packaged_files import packaged_files, write_files
from deemster.errors import ConfigurationError, Issue

TEMPLATES = {
    "qa": "questions with expected answers",
    "rag": "answers from retrieved passages: retrieval, citations, similarity",
    "agent": "tasks for an agent: which tools it calls, in which order, with which approvals",
    "judge": "answers that a model judges; a stand-in for the model is included",
    "ab": "an agent with and without a skill, side by side over repeated tasks",
    "prompts": "prompts and models side by side: which is best, and what it costs",
    "grading": "replies graded by a rubric, and labels of a person to check the judge with",
}
# Those whose suite is several runs side by side, of which there is no JUnit file.
_SIDE_BY_SIDE = ("ab", "prompts")
WORKFLOW = Path(".github", "workflows", "deemster.yml")
AGENTS = "AGENTS.md"
# What an editor knows the keys of a suite by; the first line of the suite names it.
SCHEMA = "suite.schema.json"
IGNORED = ".deemster/"
# The usual names of reports, and what Python writes beside an application.
ALSO_IGNORED = ("report.html", "report.md", "report.xml", "__pycache__/")


@click.command(
    "init",
    cls=Verb,
    examples=["deemster init", "deemster init shop --template rag"],
    see_also=["check", "run"],
)
@click.argument("directory", default=".", type=click.Path())
@click.option("--template", type=click.Choice(list(TEMPLATES)), help="What kind of suite; asked for on a terminal.")
def command(*, directory: str, template: str | None) -> None:
    """Write a small suite that runs offline, and a GitHub workflow.

    DIRECTORY (default: here) gets a suite, a golden dataset, and what stands for your application and your models.
    Without `--template`, and where nobody can be asked, the template is `qa`. No existing file is changed.

    `AGENTS.md` tells a coding assistant how to run, read and fix the evaluation. At the root of the git repository,
    else in DIRECTORY, are written the workflow `.github/workflows/deemster.yml` and a `.gitignore` for the runs.
    """
    folder = Path(directory)
    template = template or _ask_for_template()
    content = {**packaged_files(f"templates/{template}"), SCHEMA: _suite_schema()}
    taken = [name for name in content if (folder / name).exists()]
    if taken:
        raise ConfigurationError(Issue("There is such a file already; nothing was written.", str(folder / taken[0])))
    root = _repository_root(folder)
    shared = {
        folder / AGENTS: (packaged_files("templates")[AGENTS], "`deemster help assistants` has what to add"),
        root / ".gitignore": ("\n".join([IGNORED, *ALSO_IGNORED, ""]).encode(), f"`{IGNORED}` belongs into it"),
        root / WORKFLOW: (
            _workflow(folder, root, has_junit=template not in _SIDE_BY_SIDE),
            f"add a step that runs {folder / 'suite.yml'}",
        ),
    }
    kept = {path: advice for path, (_, advice) in shared.items() if path.exists()}
    written = {folder / name: data for name, data in content.items()}
    written |= {path: data for path, (data, _) in shared.items() if path not in kept}

    write_files(written)
    click.echo(f"Wrote {', '.join(map(str, written))}.")
    for path, advice in kept.items():
        click.echo(f"Kept {path}: {advice}.")
    click.echo(f"Next: deemster run {folder / 'suite.yml'}")


def _ask_for_template() -> str:
    """The template that the user chooses on the terminal; the first one where there is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return next(iter(TEMPLATES))
    click.echo("What do you want to evaluate?")
    for name, about in TEMPLATES.items():
        click.echo(f"  {name:8} {about}")
    chosen: str = click.prompt("Template", type=click.Choice(list(TEMPLATES)), default=next(iter(TEMPLATES)))
    return chosen


def _repository_root(folder: Path) -> Path:
    """The root of the git repository that a folder is in, relative to the current folder where it can be."""
    place = folder.resolve()
    root = next((above for above in (place, *place.parents) if (above / ".git").exists()), None)
    if root is None or root == place:
        return folder
    here = Path.cwd().resolve()
    return root.relative_to(here) if root.is_relative_to(here) else root


def _suite_schema() -> bytes:
    """The JSON Schema of a suite."""
    from deemster.evaluation.suite import SuiteFile
    from deemster.formats.schema_validation import json_schema

    return json.dumps(json_schema(SuiteFile), indent=2).encode()


def _workflow(folder: Path, root: Path, *, has_junit: bool) -> bytes:
    """The workflow that runs the suite from the root of the repository."""
    text = packaged_files("templates")["workflow.yml"].decode()
    if not has_junit:
        text = text.replace(" --to report.xml", "")
    suite = folder.resolve().relative_to(root.resolve()) / "suite.yml"
    return text.replace("SUITE: suite.yml", f"SUITE: {_as_yaml(suite.as_posix())}").encode()


def _as_yaml(path: str) -> str:
    """A path as a YAML scalar: quoted where a plain one could mean something else."""
    return path if all(letter.isalnum() or letter in "-_./" for letter in path) else json.dumps(path)
