"""Hostile text in every field that data can fill: Chromium shows it literally, runs nothing and asks no one."""

from __future__ import annotations

import re
import warnings

import pytest
from playwright.sync_api import expect

import deemster as dm
from deemster.records import ToolCall, Trajectory
from tests.browser.chromium import viewer_process
from tests.view.xss_payloads import PAYLOADS

pytestmark = pytest.mark.xdist_group("browser")


@dm.metric("hostile", quotes=("judge_reason",))
def hostile(expected: str, actual: str) -> dm.MetricScore:
    return dm.MetricScore(score=0.0, details={"judge_reason": actual, "findings": [{"claim": actual}]})


def answer(given):
    text = given["question"]
    call = ToolCall(name=text.strip()[:200] or "x", arguments={"text": text}, result=text, error=text)
    return dm.Output(
        text, retrieved=[{"id": text, "text": text}], trajectory=Trajectory(tool_calls=(call,), finish_reason=text)
    )


@pytest.fixture(scope="session")
def hostile_address(tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile") / "runs.db"
    samples = [
        {
            "id": f"{number} {payload}"[:256],
            "input": {"question": payload, payload[:100]: payload, "messages": [{"role": payload, "content": payload}]},
            "expected_output": f"expected {payload}",
            "metadata": {"tags": [payload], "note": payload},
        }
        for number, payload in enumerate(PAYLOADS)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label in PAYLOADS[:2]:
            dm.evaluate(
                dm.Dataset(samples, name=PAYLOADS[2]), target=answer, metrics=[hostile], storage=str(place), name=label
            )
    with viewer_process(place) as found:
        yield found


def test_payloads_are_shown_literally_and_nothing_happens(browser_thread, visit, hostile_address):
    page = visit(hostile_address)
    for label in PAYLOADS[:2]:
        expect(page.get_by_role("link", name=label, exact=True)).to_be_visible()
    runs = page.request.get(f"{hostile_address}/api/runs").json()["runs"]
    run = runs[0]["id"]
    page.goto(f"{hostile_address}/#/runs/{run}")
    page.get_by_role("heading", name="Cohorts").wait_for()
    page.goto(f"{hostile_address}/#/runs/{run}/samples")
    page.locator("#row-0 a").wait_for()
    for number, payload in enumerate(PAYLOADS):
        page.goto(f"{hostile_address}/#/runs/{run}/samples/{number}")
        main = page.get_by_role("main")
        # From its beginning: the payload of the sample before may hold this number too.
        expect(main.get_by_role("heading", level=2).first).to_have_text(re.compile(rf"^\s*{number} "))
        seen = page.evaluate("() => document.querySelector('main').textContent")
        visible = page.evaluate(VISIBLE, payload)
        assert seen.count(visible) >= 8, payload
    page.goto(f"{hostile_address}/#/compare?runs={runs[1]['id']},{run}")
    page.locator("#row-0 a").click()
    page.get_by_role("heading", name="Expected output").wait_for()
    assert page.locator("main").locator("script, iframe, img, object, embed").count() == 0


# Invisible control characters are written out on purpose; all other characters stay as they are.
VISIBLE = r"""(text) => text.replace(
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
  (one) => one.charCodeAt(0) < 256 ? "\\x" + one.charCodeAt(0).toString(16).padStart(2, "0")
                                   : "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0"))"""
