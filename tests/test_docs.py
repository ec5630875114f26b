"""Every code block of the documents runs, and its shown output is real."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from click.testing import CliRunner, Result
from markdown_it import MarkdownIt

from deemster.cli import app
from deemster.errors import InputError
from deemster.formats import read_document

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
EPOCH = "1767225600"
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    )
)
KINDS = frozenset({"python", "bash", "console", "yaml", "text", "csv", "jsonl", "json"})
SHELL = frozenset("|&;<>()$`*?~{}[]")
DATA = frozenset({"yaml", "csv", "jsonl", "json"})
# A process of `deemster` takes a second, so in a shell it is a function that asks the process of the tests.
DEEMSTER = """
exec 9> "$EXCHANGE/calls"
deemster() {
  local call code
  call=$(mktemp -d -p "$EXCHANGE")
  mkfifo "$call/code"
  printf '%s\\0' "$@" > "$call/arguments"
  env -0 > "$call/environment"
  echo "$call" >&9
  read -r code < "$call/code"
  # Where standard output goes on through a pipe, what it becomes there comes after the messages.
  if [ /dev/fd/1 -ef /dev/fd/2 ]; then cat "$call/output"; else cat "$call/stderr" >&2; cat "$call/stdout"; fi
  return "$code"
}
"""
CI_RUNS = frozenset({"make demo", "make quick", "make test", "make setup", "make check"})


class Block(NamedTuple):
    """A fenced block: its language, the words after it, its text, and the lines of the page it fills."""

    kind: str
    words: tuple[str, ...]
    text: str
    first: int
    last: int


@functools.cache
def blocks(page: str) -> tuple[Block, ...]:
    tokens = MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8"))
    found = []
    for token in tokens:
        if token.type == "fence":
            kind, *words = token.info.split()
            first, after = token.map
            found.append(Block(kind, tuple(words), token.content, first + 1, after - 1))
    return tuple(found)


def environment() -> dict[str, str]:
    # Ray reads its settings when it is imported, and the tests of the cluster need theirs in this process.
    guard = {name: value for name, value in os.environ.items() if name.startswith(("DEEMSTER_TESTS_", "RAY_"))}
    return {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "SOURCE_DATE_EPOCH": EPOCH,
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
        **{f"GIT_{role}_{key}": "reader@example.com" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")},
        **guard,
    }


def trimmed(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@contextlib.contextmanager
def inside(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """A block in a folder with its environment, which forgets the modules that were imported there."""
    with contextlib.chdir(folder), mock.patch.dict(os.environ, variables, clear=True):
        try:
            yield
        finally:
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", None)).startswith(f"{folder}{os.sep}"):
                    del sys.modules[name]


def invoke(arguments: list[str], folder: Path, variables: Mapping[str, str]) -> Result:
    """What `deemster` does in this process."""
    with inside(folder, variables):
        # The width of help in a terminal of 80 columns.
        done = CliRunner().invoke(app, arguments, prog_name="deemster", terminal_width=78)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def run_commands(command: str, folder: Path, *flags: str, codes: tuple[int, ...] = (0,), both: bool = False) -> str:
    """The output of commands without trailing blanks: `deemster` runs in this process, everything else in a shell."""
    lines = command.replace("\\\n", "").splitlines()
    if not all(line.startswith("deemster ") and not set(line) & SHELL for line in lines):
        return run_shell(command, folder, *flags, codes=codes, both=both)
    said = []
    for line in lines:
        done = invoke(shlex.split(line, comments=True)[1:], folder, environment())
        assert done.exit_code in codes, f"{line}\n{done.output}"
        said.append(trimmed(done.output if both else done.stdout))
    return "".join(said)


def run_shell(command: str, folder: Path, *flags: str, codes: tuple[int, ...], both: bool) -> str:
    """The output of a shell without trailing blanks."""
    with tempfile.TemporaryDirectory() as exchange:
        os.mkfifo(f"{exchange}/calls")
        with subprocess.Popen(
            ["bash", *flags, "-c", f"{DEEMSTER}\n{command}"],
            cwd=folder,
            env={**environment(), "EXCHANGE": exchange},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if both else subprocess.PIPE,
            text=True,
        ) as shell:
            try:
                # The shell keeps this pipe open, so the loop ends with the shell.
                with Path(exchange, "calls").open(encoding="utf-8") as calls:
                    for line in calls:
                        answer_call(Path(line.strip()))
                out, err = shell.communicate(timeout=60)
            except BaseException:
                shell.kill()
                raise
    assert shell.returncode in codes, f"{command}\n{out}\n{err}"
    return trimmed(out)


def answer_call(call: Path) -> None:
    """Do what the shell's `deemster` function asks."""
    arguments, entries = (
        (call / name).read_text(encoding="utf-8").split("\0")[:-1] for name in ("arguments", "environment")
    )
    variables = dict(entry.split("=", 1) for entry in entries)
    done = invoke(arguments, Path(variables["PWD"]), variables)
    for name in ("stdout", "stderr", "output"):
        (call / name).write_text(getattr(done, name), encoding="utf-8")
    (call / "code").write_text(f"{done.exit_code}\n", encoding="utf-8")


def run_script(file: Path, folder: Path) -> str:
    """The output of a script."""
    out = io.StringIO()
    with (
        inside(folder, environment()),
        contextlib.redirect_stdout(out),
        mock.patch.multiple(sys, argv=[file.name], path=[str(folder), *sys.path], stdin=io.StringIO()),
    ):
        runpy.run_path(file.name, run_name="__main__")
    return trimmed(out.getvalue())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder of a page's blocks, with a copy of the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_expected_pages_exist():
    assert {"README.md", "docs/guide/gates.md", "examples/agent/README.md"} <= set(PAGES)


def test_every_block_has_a_language_that_is_tested():
    others = [f"{page}:{block.first}" for page in PAGES for block in blocks(page) if block.kind not in KINDS]
    assert others == []


# Its recipes change the package itself: `tests/test_recipes.py` follows them in a copy.
RECIPES = "CONTRIBUTING.md"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page) and page != RECIPES])
def test_every_block_runs_and_prints_shown_output(page, folder, refresh_golden):
    said = ""
    shown = []
    for number, block in enumerate(blocks(page)):
        if block.kind == "text":
            if block.words == ("output",):
                shown.append((block, said))
        elif block.kind in DATA:
            check_data(block, folder)
        elif block.kind == "console":
            shown.append((block, "".join(console(block, folder))))
        elif block.kind == "python":
            file = folder / (block.words[0] if block.words else f"block_{number}.py")
            file.write_text(block.text, encoding="utf-8")
            said = run_script(file, folder)
        elif not set(block.text.splitlines()) <= CI_RUNS:
            said = run_commands(block.text, folder, "-euo", "pipefail")
    if refresh_golden:
        rewrite(page, shown)
    for block, text in shown:
        assert refresh_golden or block.text == text, f"{page}:{block.first}"


def console(block: Block, folder: Path) -> Iterator[str]:
    """Each command of a transcript with its output."""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            yield f"{line}\n"
            yield run_commands(line[2:], folder, codes=(0, 1, 2), both=True)


def check_data(block: Block, folder: Path) -> None:
    """A whole file is validated; a section of a suite is validated inside the quickstart's suite."""
    if block.words:
        file = folder / block.words[0]
        file.write_text(block.text, encoding="utf-8")
        expected = 2 if "invalid" in block.words else 0
    else:
        file = folder / "section.yml"
        file.write_text(block.text, encoding="utf-8")
        section = read_document(file, error=InputError).value
        assert set(section) <= {"attack", "metrics", "gate", "models", "prompts", "target", "variants"}
        suite = (ROOT / "examples/quickstart/suite.yml").read_text(encoding="utf-8")
        for key in section:
            suite = re.sub(rf"^{key}:.*\n(?:[ ].*\n)*", "", suite, flags=re.MULTILINE)
        if "gate" not in section:
            suite = re.sub(r"^gate:.*\n(?:[ ].*\n)*", "", suite, flags=re.MULTILINE)
        file = folder / "examples" / "quickstart" / "whole.yml"
        file.write_text(f"{suite}{block.text}", encoding="utf-8")
        expected = 0
    done = CliRunner().invoke(app, ["check", "--offline", str(file)])
    assert done.exit_code == expected, done.output


def rewrite(page: str, shown: list[tuple[Block, str]]) -> None:
    """Put the output into the page, last block first, so that line numbers stay valid."""
    lines = (ROOT / page).read_text(encoding="utf-8").split("\n")
    for block, text in reversed(shown):
        lines[block.first : block.last] = text.removesuffix("\n").split("\n") if text else []
    (ROOT / page).write_text("\n".join(lines), encoding="utf-8")
    blocks.cache_clear()


def test_readme_begins_with_two_commands():
    first = blocks("README.md")[0]
    assert (first.kind, first.text) == ("bash", "make demo\nmake test\n")
    above = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[: first.first - 1] if line]
    assert above[0] == "# deemster"
    assert " ".join(above[1:]).count(". ") == 0


def test_readme_is_read_in_three_minutes():
    text = re.sub(r"\]\([^)]*\)|```.*?```", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(text.split()) <= 3 * 230


def test_readme_lists_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name for row in rows for name in re.findall("`([a-z-]+)`", row)}
    assert listed == {*project["optional-dependencies"]} - {"test", "docs", "dev"}


def test_every_link_between_documents_has_target():
    assert [f"{page}: {target}" for page in PAGES for target in missing_targets(page)] == []


def missing_targets(page: str) -> Iterator[str]:
    """The links of a page to files that do not exist, and those that are none, as a space breaks them."""
    for token in MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8")):
        for child in token.children or ():
            if child.type == "text" and "](" in child.content:
                yield child.content
            target = str(child.attrGet("href") or "")
            is_file = child.type == "link_open" and not target.startswith("http")
            if is_file and not ((ROOT / page).parent / target.partition("#")[0]).exists():
                yield target
