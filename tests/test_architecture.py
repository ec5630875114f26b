"""`docs/architecture.md` lists every file of the package, and names no file that does not exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deemster"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- files: begin -->\n", "<!-- files: end -->\n"
LAYERS = re.compile(r"^layers = \[\n(.*?)^\]", re.MULTILINE | re.DOTALL)


def rooms() -> list[str]:
    """The rooms from top to bottom, in the layers of import-linter."""
    lines = LAYERS.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    return [room for room in re.findall(r"\w+", re.sub(r"\(\w+\)", "", lines)) if (SOURCE / room).is_dir()]


def summary(path: Path) -> str:
    """The first line of a file's docstring, without its full stop."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0].rstrip(".")


def listing() -> str:
    """The table of contents: rooms from top to bottom, in each room first the files that other rooms may import."""
    parts = []
    for room in rooms():
        files = [path for path in (SOURCE / room).glob("*.py") if path.stem != "__init__"]
        files.sort(key=lambda path: (path.stem.startswith("_"), path.stem))
        rows = "".join(f"| `{path.name}` | {summary(path)} |\n" for path in files)
        parts.append(
            f"### {room}\n\n{summary(SOURCE / room / '__init__.py')}.\n\n| file | what it does |\n|---|---|\n{rows}\n"
        )
    return "".join(parts)


def test_listing_of_files_matches_package(refresh_golden):
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    fresh = f"{head}{BEGIN}\n{listing()}{END}{tail}"
    if refresh_golden:
        PAGE.write_text(fresh, encoding="utf-8")
    assert refresh_golden or text == fresh, (
        "Refresh the listing with `pytest tests/test_architecture.py --refresh-golden`."
    )


def test_every_file_that_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    named = set(re.findall(r"`([a-z_]+/[a-z_]+\.py)`", text))
    assert named
    assert sorted(name for name in named if not (SOURCE / name).is_file()) == []
