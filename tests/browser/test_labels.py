"""Two people label samples in the viewer: what they see, their keys, their agreement, and what the judge is worth."""

from __future__ import annotations

import csv
import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SAMPLES
from tests.browser.test_pages import run_ids

pytestmark = pytest.mark.xdist_group("browser")

QUEUE = "metric=llm-as-judge&n=12"


def label(page, truth):
    """Label the sample on the screen by keys; returns its id."""
    name = page.locator(".label-page h2").first.inner_text()
    page.keyboard.press("1" if truth(name) else "2")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".label-page h2").first).not_to_have_text(name)
    return name


def is_right(name):
    """Whether the second run answered a sample well, as a person would say."""
    return name not in {SAMPLES[place]["id"] for place in (4, 7, 12, 15, 16)}


def test_two_people_label_and_their_agreement_and_the_judge_are_measured(browser_thread, visit, ada, bert):
    page = visit(ada)
    run = run_ids(page)["second"]
    place = f"#/runs/{run}/label?{QUEUE}"
    page.goto(f"{ada}/{place}")
    expect(page.get_by_text("12 of 39 samples, drawn at random")).to_be_visible()
    expect(page.get_by_text("The judge:")).to_have_count(0)
    expect(page.get_by_text("It names the desk.")).to_have_count(0)
    first = page.locator(".label-page h2").first.inner_text()
    page.keyboard.press("1")
    page.keyboard.press("n")
    page.keyboard.type("u s 2 are letters here")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The judge:")).to_be_visible()
    expect(page.get_by_text("1 of 12 done")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text("The judge:")).to_have_count(0)
    expect(page.get_by_text("0 of 12 done")).to_be_visible()
    assert page.locator(".label-page h2").first.inner_text() == first
    for _ in range(10):
        label(page, is_right)
    expect(page.get_by_text("10 of 12 done")).to_be_visible()
    page.keyboard.press("s")
    page.get_by_label("Why skip it?").fill("I cannot tell")
    page.keyboard.press("Enter")
    expect(page.get_by_text("11 of 12 done")).to_be_visible()

    other = visit(bert, place)
    expect(other.get_by_text("0 of 12 done")).to_be_visible()
    for number in range(6):
        label(other, is_right if number else lambda name: not is_right(name))
    so_far = other.get_by_label("Labels so far")
    expect(so_far).to_contain_text("ada")
    expect(so_far).to_contain_text("6 labels")
    expect(so_far).to_contain_text("agreement")

    # A label that is on its way does not hold the export up.
    saves = []
    other.route(
        "**/api/labels", lambda route: saves.append(route) if route.request.method == "POST" else route.continue_()
    )
    other.keyboard.press("1")
    with other.expect_request(lambda request: request.method == "POST"):
        other.keyboard.press("Control+Enter")
    with other.expect_download() as download:
        so_far.get_by_role("button", name="Export CSV").click()
    saves[0].continue_()
    other.unroute("**/api/labels")
    expect(other.get_by_text("7 of 12 done")).to_be_visible()
    rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    assert len(rows) >= 16
    with other.expect_download() as download:
        so_far.get_by_role("button", name="Export votes").click()
    assert json.loads(download.value.path().read_text(encoding="utf-8"))["schema_version"] == "deemster.votes.v1"

    so_far.get_by_role("link", name="Agreement").click()
    expect(other.get_by_role("heading", name="Can this judge be trusted? Not yet.")).to_be_visible()
    expect(other.get_by_label("Verdict")).to_contain_text("Label at least 30 items")
    expect(other.get_by_role("link", name="Label more")).to_be_visible()
    expect(other.get_by_role("table").first).to_contain_text("llm-as-judge")
    expect(other.get_by_role("heading", name="Confusion matrices")).to_be_visible()
    assert re.search(r"\d\.\d\d to \d\.\d\d", other.locator(".headline").inner_text())


def test_viewer_without_author_gives_no_labels(browser_thread, visit, address):
    page = visit(address)
    page.goto(f"{address}/#/runs/{run_ids(page)['first']}/label")
    expect(page.get_by_text("deemster view --annotator YOUR-NAME")).to_be_visible()
    expect(page.get_by_role("link", name="Label", exact=True)).to_have_count(0)
