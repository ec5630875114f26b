"""Build the documents as a site: python website/build_site.py [FOLDER], by default build/site. It needs no network.

The documents are written for GitHub and for the tests that run their code. Before Sphinx reads them they are copied to
one tree, in which `docs/` is the root and `README.md` is the index of its folder:

- Links follow their targets, also those to pages outside `docs/`.
- Index pages make the navigation: a link that begins a table row or list item is an entry with that text.
- The file name after the language of a code block becomes the caption of the block.
- Each chapter of `reference/python.md` gets a page with the signature and docstring of its names; those of `dm.stats`
  stand in `reference/statistics.md`.
- The help of every command is one page, and so is the list of the files of the package, room by room.
- `llms.txt` tells a coding assistant what `deemster init` writes as AGENTS.md, and lists the pages.

Any warning of Sphinx is an error: a dead link, a dead anchor, a page that no index links.
"""

from __future__ import annotations

import ast
import inspect
import os
import pydoc
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import click
from click.testing import CliRunner
from sphinx.cmd.build import build_main

from deemster.cli import app
from deemster.cli.init import AGENTS
from deemster.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
WEBSITE = ROOT / "website"
SOURCE = ROOT / "src" / "deemster"
LAYERS = re.compile(r"^layers = \[\n(.*?)^\]", re.MULTILINE | re.DOTALL)
# Pages outside docs/ that belong to the site, and the names of their copies.
OTHER_PAGES = {
    "CHANGELOG.md": "about/changelog.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "SECURITY.md": "about/security.md",
    "bench/README.md": "about/benchmark-scripts.md",
}
# Chapters of the Python reference whose names have pages of their own: metrics/.
DESCRIBED_ELSEWHERE = frozenset({"dm.metrics"})
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
ENTRY = re.compile(r"^(?:\| |- )\[([^\]]+)\]\(([^)#\s]+\.md)\)", re.MULTILINE)
# An entry of an index page with what it answers.
DESCRIBED_ENTRY = re.compile(r"^\| \[([^\]]+)\]\(([^)#\s]+\.md)\) \| (.+) \|$", re.MULTILINE)
LISTED_FOR_ASSISTANTS = ("docs/README.md", "docs/guide/README.md", "docs/reference/README.md")
CHAPTER = re.compile(r"^## (.*?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
NAMED_FENCE = re.compile(r"^```(\w+) (\S+\.\w+).*$", re.MULTILINE)


def site_path(path: PurePosixPath) -> PurePosixPath:
    """The place of a file of the repository in the site, both relative to their roots."""
    if str(path) in OTHER_PAGES:
        return PurePosixPath(OTHER_PAGES[str(path)])
    place = path.relative_to("docs") if path.parts[0] == "docs" else path
    return place.with_name("index.md") if place.name == "README.md" else place


def site_text(text: str, page: PurePosixPath) -> str:
    """A page as Sphinx reads it: links, captions and navigation.

    Args:
        text: The page as it stands in the repository.
        page: Its path in the repository.
    """

    def moved(match: re.Match[str]) -> str:
        target = PurePosixPath(os.path.normpath(page.parent / match[1]))
        if (ROOT / target / "README.md").exists():
            target /= "README.md"
        return os.path.relpath(site_path(target), site_path(page).parent) + (match[2] or "")

    text = LINK.sub(moved, text)
    if page.name == "README.md" and (entries := ENTRY.findall(text)):
        lines = [f"{title} <{link}>" for title, link in entries]
        text += "\n".join(["\n```{toctree}", ":hidden:", "", *lines, "```", ""])
    return NAMED_FENCE.sub(r"```{code-block} \1\n:caption: \2\n", text)


def stage(source: Path) -> None:
    """Copy everything that the site is made of, as Sphinx reads it.

    Args:
        source: An empty folder.
    """
    folders = [file for name in ("docs", "examples") for file in sorted((ROOT / name).rglob("*")) if file.is_file()]
    for file in (*folders, *(ROOT / name for name in OTHER_PAGES)):
        path = PurePosixPath(file.relative_to(ROOT).as_posix())
        if "__pycache__" in path.parts:
            continue
        copy = source / site_path(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            copy.write_text(site_text(file.read_text(encoding="utf-8"), path), encoding="utf-8")
        else:
            shutil.copyfile(file, copy)


def write_docstring_pages(source: Path) -> None:
    """Write a page of signatures and docstrings for each chapter of the Python reference, and its navigation.

    Args:
        source: The folder that Sphinx reads.
    """
    index = source / "reference" / "python.md"
    text = index.read_text(encoding="utf-8")
    pages = []
    described: set[object] = set()
    for title, body in CHAPTER.findall(text):
        listing = index.with_name("statistics.md").read_text(encoding="utf-8") if title == "dm.stats" else body
        names = re.findall(r"^\| `(\w+)` \|", listing, re.MULTILINE)
        room = f"deemster.{title[3:]}" if title.startswith("dm.") else "deemster"
        if names and title not in DESCRIBED_ELSEWHERE:
            pages.append(f"{title} <python-{re.sub(r'[^a-z]+', '-', title.lower())}>")
            things = {name: pydoc.locate(f"{room}.{name}") for name in names}
            entries = "\n\n".join(
                _directive(f"{room}.{name}", thing, is_first=thing not in described) for name, thing in things.items()
            )
            described |= set(things.values())
            file = index.with_name(f"{pages[-1].partition('<')[2][:-1]}.md")
            file.write_text(f"# {title}\n\n```{{eval-rst}}\n{entries}\n```\n", encoding="utf-8")
    add_to_navigation(index, pages)


def add_to_navigation(index: Path, entries: Sequence[str]) -> None:
    """Let a page lead to further pages, each written as `TITLE <NAME>`."""
    toctree = "\n".join(["\n```{toctree}", ":hidden:", "", *entries, "```", ""])
    index.write_text(index.read_text(encoding="utf-8") + toctree, encoding="utf-8")


def write_command_page(source: Path) -> None:
    """Write the page with the help of every command.

    Args:
        source: The folder that Sphinx reads.
    """
    lines = ["# Command line", "", "```text", help_text(), "```", ""]
    for name in COMMANDS:
        lines += [f"## deemster {name}", ""]
        for words in (name, *verbs(name)):
            lines += ["```text", help_text(*words.split()), "```", ""]
    (source / "reference" / "cli.md").write_text("\n".join(lines), encoding="utf-8")
    add_to_navigation(source / "reference" / "index.md", ["Command line <cli.md>"])


def verbs(name: str) -> list[str]:
    """The commands below a command, as words of the command line."""
    command = app.get_command(click.Context(app), name)
    return [f"{name} {verb}" for verb in sorted(command.commands)] if isinstance(command, click.Group) else []


def help_text(*words: str) -> str:
    """The help of a command, as it prints it."""
    return CliRunner().invoke(app, [*words, "--help"], prog_name="deemster").output.rstrip()


def write_file_listing(source: Path) -> None:
    """Write the page that lists the files of the package: rooms from top to bottom, in each its files by name.

    Args:
        source: The folder that Sphinx reads.
    """
    lines = ["# The files of the package", ""]
    for room in rooms():
        files = sorted((SOURCE / room).glob("*.py"), key=lambda path: (path.stem.startswith("_"), path.stem))
        lines += [
            f"## {room}",
            "",
            f"{summary(SOURCE / room / '__init__.py')}.",
            "",
            "| file | what it does |",
            "|---|---|",
        ]
        lines += [f"| `{path.name}` | {summary(path)} |" for path in files if path.stem != "__init__"] + [""]
    (source / "files.md").write_text("\n".join(lines), encoding="utf-8")
    add_to_navigation(source / "architecture.md", ["The files of the package <files.md>"])


def llms_text() -> str:
    """What an assistant reads first: what deemster is, how one works with it, and what each page answers."""
    title, summary = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[:2]
    how = (SOURCE / "cli" / "templates" / AGENTS).read_text(encoding="utf-8")
    lines = [title, "", f"> {summary}", "", "`deemster init` writes a suite that runs offline.", ""]
    lines += [re.sub("^#", "##", how, flags=re.MULTILINE), "## Documents", ""]
    for index in LISTED_FOR_ASSISTANTS:
        for name, link, about in DESCRIBED_ENTRY.findall((ROOT / index).read_text(encoding="utf-8")):
            page = site_path(PurePosixPath(os.path.normpath(PurePosixPath(index).parent / link)))
            lines.append(f"- [{name}]({page.with_suffix('.html')}): {about}")
    return "\n".join(lines) + "\n"


def rooms() -> list[str]:
    """The rooms from top to bottom, in the layers of import-linter."""
    layers = LAYERS.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    return [room for room in re.findall(r"\w+", layers) if (SOURCE / room).is_dir()]


def summary(path: Path) -> str:
    """The first line of a file's docstring, without its full stop."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0].rstrip(".")


def _directive(name: str, thing: object, *, is_first: bool) -> str:
    kind, options = ("autoclass", [":members:"]) if inspect.isclass(thing) else ("autofunction", [])
    if not is_first:
        options.append(":no-index:")
    return "\n   ".join([f".. {kind}:: {name}", *options])


def main(folder: Path) -> int:
    """Build the site into a folder.

    Args:
        folder: Its files are replaced.

    Returns:
        The exit code of Sphinx; 0 if there was no warning.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        stage(source)
        write_docstring_pages(source)
        write_command_page(source)
        write_file_listing(source)
        shutil.rmtree(folder, ignore_errors=True)
        settings = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", str(WEBSITE)]
        code = build_main([*settings, "--doctree-dir", f"{scratch}/doctrees", str(source), str(folder)])
        (folder / "llms.txt").write_text(llms_text(), encoding="utf-8")
        return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"))
