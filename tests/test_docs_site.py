"""The site of the documents builds without a warning, asks no other host for anything, and has no dead link."""

from __future__ import annotations

import ast
import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright

from deemster.cli.init import AGENTS
from deemster.cli.main import COMMANDS
from tests.browser.chromium import launch
from tests.cli.test_init import commands_of

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "src" / "deemster" / "cli" / "templates"
# What a browser loads by itself; an `a` is followed only by its reader.
LOADS = {"src", "srcset", "href", "poster", "data", "action", "style"}
ELSEWHERE = re.compile(r"(?:https?:)?//")
STYLE_LOADS = re.compile(r"""(?:url\(|@import)\s*['"]?(?:https?:)?//""")


class SitePage(HTMLParser):
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


def dead_links(pages: dict[Path, SitePage]) -> Iterator[str]:
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or link == "#":
                continue
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                yield f"{path.name}: {link}"


def reachable(pages: dict[Path, SitePage], start: Path) -> set[Path]:
    seen, ahead = set(), [start]
    while ahead:
        path = ahead.pop()
        if path in pages and path not in seen:
            seen.add(path)
            ahead += [(path.parent / unquote(urlsplit(link).path)).resolve() for link in pages[path].links]
    return seen


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The site, and what its builder printed."""
    site = tmp_path_factory.mktemp("documents") / "site"
    command = [sys.executable, str(ROOT / "website" / "build_site.py"), str(site)]
    return site, subprocess.run(command, capture_output=True, text=True, check=False)


def test_site_is_built_with_the_packages_of_its_extra_alone():
    """`docutils` and `pygments` come with Sphinx."""
    files = [ROOT / "website" / name for name in ("build_site.py", "conf.py", "search_index.py")]
    names = {name for file in files for name in imported(file)}
    own = {*sys.stdlib_module_names, "deemster"}
    assert names - own == {"click", "docutils", "pygments", "sphinx"}


def imported(file: Path) -> Iterator[str]:
    """The packages that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_site_has_no_warning_no_dead_link_and_nothing_from_elsewhere(build):
    site, done = build
    assert (done.returncode, done.stderr) == (0, "")

    pages = {path: SitePage(path) for path in site.rglob("*.html") if "_static" not in path.parts}
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


# What a newcomer asked the documents, and what is asked often: the page that must come first.
QUESTIONS = {
    "my own csv columns": "faq.html#my-csv-file-has-columns-of-its-own-must-i-rename-them",
    "compare prompts": "faq.html#how-do-i-compare-prompts-and-models-side-by-side",
    "which model is best": "guide/choosing.html",
    "a/b test": "guide/does-this-skill-help.html",
    "pass@k": "guide/does-this-skill-help.html",
    "does my skill help": "guide/does-this-skill-help.html",
    "prompts and models side by side": "faq.html#how-do-i-compare-prompts-and-models-side-by-side",
    "chat model without python": "faq.html#can-i-test-a-chat-model-or-an-application-without-writing-python",
    "what does my target cost": "faq.html#what-does-my-own-application-the-target-cost",
    "run only the failures": "faq.html#how-do-i-run-only-the-samples-that-failed",
    "share report with colleague": "faq.html#how-do-i-share-a-report-with-a-colleague",
    "send results to my team": "faq.html#how-do-i-share-a-report-with-a-colleague",
    "baseline in github": "guide/ci.html#where-the-baseline-is",
    "exit code 3": "faq.html#the-job-failed-with-exit-code-3-what-does-that-mean",
    "multi-turn conversation": "guide/conversations-and-images.html",
    "image input": "guide/conversations-and-images.html",
    "azure api key": "guide/models.html#providers",
    "timeout": "guide/suites-and-targets.html",
    "ndcg": "metrics/retrieval.html#retrieval-ndcg-at-k",
    "cohen_kappa": "reference/python-dm-stats.html#deemster.stats.cohen_kappa",
}


@pytest.fixture(scope="module")
def search(build) -> Iterator[Page]:
    """The search of a site that was opened from disk."""
    with sync_playwright() as playwright, contextlib.closing(launch(playwright)) as browser:
        page = browser.new_page()
        page.goto(f"{(build[0] / 'search.html').as_uri()}?q=resume")
        yield page


@pytest.mark.parametrize("question", QUESTIONS)
def test_search_finds_what_is_asked_first(question, search):
    urls = search.evaluate("question => Search.find(question).map((entry) => entry.url)", question)
    assert urls[0].startswith(QUESTIONS[question]), urls[:5]


@pytest.mark.parametrize("word", ["timeout", "resume", "cache", "judge", "store"])
def test_what_tells_how_comes_before_what_tells_of_the_past(word, search):
    urls = search.evaluate("question => Search.find(question).map((entry) => entry.url)", word)
    seldom = ("about/", "decisions/", "architecture", "files.html")
    assert [url for url in urls[:5] if url.startswith(seldom)] == []


def test_search_shows_results_with_their_text_from_disk(search):
    first = search.locator("#search-results li").first
    assert first.locator("a").get_attribute("href") == "guide/runs.html#resume"
    assert "--resume" in first.inner_text()


def test_search_says_that_nothing_was_found(search):
    assert search.evaluate("Search.find('qwertzuiop')") == []
    assert search.evaluate("Search.find('the')") == []
