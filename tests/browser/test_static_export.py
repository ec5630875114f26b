"""A static export, opened from disk: the same pages and the same answers to the same queries, without a server."""

from __future__ import annotations

import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SAMPLES
from tests.browser.test_pages import run_ids

pytestmark = pytest.mark.xdist_group("browser")

QUERIES = (
    "",
    "metric=exact-match&passed=no",
    "metric=token-f1&min=0.3&max=0.9",
    "metric=token-f1&max=0.5&sort=token-f1&order=desc",
    "passed=yes&only=tag:urgent",
    "only=tag:(untagged)&sort=id&order=desc",
    "unstable=yes",
    "cause=any",
    "metric=llm-as-judge&cause=target_failed",
    "min_ms=100&max_ms=300&sort=latency&order=desc",
    "text=LOST",
    "text=lost&in=reasons,messages",
    "text=desk+1&in=output&sort=chars",
    "text=closed",
    "sort=pass_rate",
    "sort=exact-match&order=desc",
)
TALL = {"viewport": {"width": 1300, "height": 2400}}


@pytest.fixture(scope="module")
def export(store, tmp_path_factory):
    """The address of an export of two runs."""
    folder = tmp_path_factory.mktemp("export")
    command = [sys.executable, "-m", "deemster", "view", "--store", store, "--export", folder]
    subprocess.run([*command, "first", "second"], check=True, capture_output=True)
    return folder.as_uri()


def open_page(page, address, place):
    page.goto("about:blank")
    page.goto(f"{address}#/{place}")
    page.locator("main[aria-busy=false]").wait_for()


def test_queries_find_the_same_samples_as_on_the_server(browser_thread, visit, address, export):
    online = visit(address, **TALL)
    run = run_ids(online)["second"]
    page = visit(export, "index.html", **TALL)
    differing = {}
    for query in QUERIES:
        place = f"runs/{run}/samples?{query}"
        expected = online.request.get(f"{address}/api/{place}").json()
        open_page(page, f"{export}/index.html", place)
        rows = page.locator(".grid-window [role=row]")
        expect(rows).to_have_count(expected["matched"])
        found = [text.split("\n")[0] for text in rows.all_inner_texts()]
        if found != [row["id"] for row in expected["rows"]]:
            differing[query] = found
    assert differing == {}


def test_pages_of_an_export_open_from_disk(browser_thread, visit, address, export):
    online = visit(address)
    ids = run_ids(online)
    page = visit(export, "index.html")
    expect(page.get_by_text("2 runs").first).to_be_visible()
    page.get_by_role("searchbox").fill("second")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="second", exact=True).click()
    report = online.request.get(f"{address}/api/runs/{ids['second']}").json()
    expect(page.locator(".headline")).to_contain_text(f"{report['macro_f1']:.2f}")
    expect(page.get_by_role("heading", name="Score against length")).to_be_visible()
    page.get_by_role("link", name="Samples", exact=True).click()
    page.locator("#row-4 a").click()
    expect(page.get_by_role("heading", name=SAMPLES[4]["id"])).to_be_visible()
    expect(page.locator("ins").first).to_contain_text("I believe")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name=SAMPLES[5]["id"])).to_be_visible()
    place = f"compare?runs={ids['first']},{ids['second']}&status=newly_failing"
    open_page(page, f"{export}/index.html", place)
    expect(page.locator(".grid-window [role=row]")).to_have_count(2)
    page.locator("#row-0 a").click()
    expect(page.get_by_label("Output of second").locator("ins").first).to_contain_text("I believe")
    expect(page.get_by_role("link", name="Label", exact=True)).to_have_count(0)
