"""The site of the documents builds without a warning, asks no other host for anything, and has no dead link."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deemster.cli.init import AGENTS
from deemster.cli.main import COMMANDS
from tests.browser.chromium import CHROMIUM
from tests.cli.test_init import commands_of

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "src" / "deemster" / "cli" / "templates"
# What a browser loads by itself; an `a` is followed only by its reader.
LOADS = {"src", "srcset", "href", "poster", "data", "action", "style"}
ELSEWHERE = re.compile(r"(?:https?:)?//")
STYLE_LOADS = re.compile(r"""(?:url\(|@import)\s*['"]?(?:https?:)?//""")


class Page(HTMLParser):
    """A page of the site: what it links, what it loads, which anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value)
            elif name == "href" and tag == "a":
                self.links.append(value)
            elif name in LOADS:
                self.loads.append(value)


def dead_links(pages: dict[Path, Page]) -> Iterator[str]:
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or link == "#":
                continue
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                yield f"{path.name}: {link}"


def reachable(pages: dict[Path, Page], start: Path) -> set[Path]:
    seen, ahead = set(), [start]
    while ahead:
        path = ahead.pop()
        if path in pages and path not in seen:
            seen.add(path)
            ahead += [(path.parent / unquote(urlsplit(link).path)).resolve() for link in pages[path].links]
    return seen


def searched(site: Path, word: str, profile: Path) -> str:
    """The page of results in a browser that opened the site from disk."""
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    page = f"{(site / 'search.html').as_uri()}?q={word}"
    command = [str(CHROMIUM), *quiet, f"--user-data-dir={profile}", "--virtual-time-budget=20000", "--dump-dom", page]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_site_has_no_warning_no_dead_link_nothing_from_elsewhere_and_a_search(tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, str(ROOT / "website" / "build_site.py"), str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    assert {"index.html", "guide/gates.html", "metrics/index.html", "reference/python-evaluating.html"} <= {
        path.relative_to(site).as_posix() for path in pages
    }
    assert {f"deemster-{name}" for name in COMMANDS} <= pages[site / "reference" / "cli.html"].anchors
    assert {"cli", "runs", "errors"} <= pages[site / "files.html"].anchors
    loads = {(path.name, load) for path, page in pages.items() for load in page.loads}
    assert [each for each in loads if ELSEWHERE.match(each[1]) or STYLE_LOADS.search(each[1])] == []
    assert [path.name for path in site.rglob("*.css") if STYLE_LOADS.search(path.read_text(encoding="utf-8"))] == []

    assert list(dead_links(pages)) == []
    for_assistants = (site / "llms.txt").read_text(encoding="utf-8")
    assert commands_of((TEMPLATES / AGENTS).read_text(encoding="utf-8")) == commands_of(for_assistants)
    named = re.findall(r"^- \[.+\]\((\S+)\): \w", for_assistants, re.MULTILINE)
    assert set(named) >= {"getting-started.html", "guide/gates.html", "metrics/index.html"}
    assert [name for name in named if site / name not in pages] == []
    # The search box leads to its page.
    unreached = pages.keys() - reachable(pages, site / "index.html") - {site / "search.html"}
    assert sorted(path.name for path in unreached) == []

    assert 'href="metrics/retrieval.html' in searched(site, "ndcg", tmp_path / "profile")
