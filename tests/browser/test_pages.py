"""Every page of the viewer in Chromium: what it shows, its filters, its keys, its address."""

from __future__ import annotations

import re
import threading

import pytest
from playwright.sync_api import expect

import deemster as dm
from tests.browser.chromium import viewer_process
from tests.browser.conftest import SAMPLES, answer_for

pytestmark = pytest.mark.xdist_group("browser")

PHONE = {"viewport": {"width": 400, "height": 800}}


def run_ids(page):
    """The ids of the three runs, by label."""
    rows = page.request.get(f"{page.url.split('#')[0]}api/runs").json()["runs"]
    return {row["label"]: row["id"] for row in rows}


def test_runs_are_listed_with_trend_and_can_be_searched_and_compared(browser_thread, visit, address):
    page = visit(address)
    expect(page.get_by_role("row")).to_have_count(4)
    expect(page.get_by_label("Trend of desk").get_by_role("link")).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("sec")
    expect(page.get_by_role("row")).to_have_count(2)
    assert "q=sec" in page.url
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").fill("")
    expect(page.get_by_role("row")).to_have_count(4)
    page.keyboard.press("Escape")
    for key in ("j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Comparison")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("2 runs selected")).to_be_visible()


def test_run_shows_numbers_with_intervals_cohorts_causes_and_gate(browser_thread, visit, address):
    page = visit(address)
    found = run_ids(page)["second"]
    page.goto(f"{address}/#/runs/{found}")
    report = page.request.get(f"{address}/api/runs/{found}").json()
    low, high = report["macro_f1_interval"]
    headline = page.locator(".headline")
    expect(headline).to_contain_text(f"{report['macro_f1']:.2f}")
    expect(headline).to_contain_text(f"{low:.2f} to {high:.2f}")
    expect(page.get_by_role("heading", name="Unscored, by cause")).to_be_visible()
    expect(page.get_by_role("heading", name="Repetitions")).to_be_visible()
    # Of the three attacks, the one at 4 got through both times.
    expect(page.get_by_role("heading", name="Attacks: 0.33 succeed")).to_be_visible()
    expect(page.get_by_role("row", name="jailbreak")).to_contain_text("high")
    page.locator(".heatmap tbody tr", has_text="urgent").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"/samples\?only=tag(:|%3A)urgent&metric=exact-match&passed=no"))
    page.go_back()
    expect(headline).to_be_visible()
    page.get_by_role("link", name="Gate", exact=True).wait_for()
    page.keyboard.press("g")
    page.keyboard.press("t")
    for check in report["gate"]["checks"]:
        role = "listitem" if check["status"] == "fail" else "row"
        expect(page.get_by_role(role).filter(has_text=check["name"])).to_contain_text(check["because"])


def test_run_begins_with_the_broken_rule_and_links_to_what_broke_it(browser_thread, visit, address):
    page = visit(address)
    ids = run_ids(page)
    page.goto(f"{address}/#/runs/{ids['second']}")
    verdict = page.get_by_label("Verdict")
    expect(verdict.get_by_role("heading", name="Gate: fail")).to_be_visible()
    expect(verdict).to_contain_text("6 of 40 samples did not pass.")
    rule = verdict.get_by_role("listitem").filter(has_text="metrics.exact-match.min_pass_rate")
    expect(rule.get_by_role("link", name="Show all 6 samples")).to_be_visible()
    rule.get_by_role("link", name=SAMPLES[4]["id"]).click()
    expect(page.get_by_role("heading", name=SAMPLES[4]["id"])).to_be_visible()
    expect(page.get_by_text(re.compile("[1-6] of 6"))).to_be_visible()
    page.go_back()
    # The worst are those that failed in both repetitions; 9 failed in one.
    worst = page.locator(".failing")
    expect(worst).to_have_count(5)
    expect(page.locator(".failing-list")).not_to_contain_text(SAMPLES[9]["id"])
    verdict.get_by_role("link", name="Compare with the run before").click()
    expect(page).to_have_url(re.compile(f"runs={ids['first']}(,|%2C){ids['second']}"))


def test_run_without_a_gate_says_so_and_how_to_write_one(browser_thread, visit, tmp_path):
    dm.evaluate(
        dm.Dataset(SAMPLES[:3], name="desk"),
        outputs={sample["id"]: "so" for sample in SAMPLES[:3]},
        metrics=["exact-match"],
        storage=dm.Storage(str(tmp_path / "runs.db")),
    )
    with viewer_process(tmp_path / "runs.db") as address:
        page = visit(address, "#/runs/latest")
        verdict = page.get_by_label("Verdict")
        expect(verdict.get_by_role("heading", name="No gate")).to_be_visible()
        expect(verdict).to_contain_text("3 of 3 samples did not pass.")
        expect(page.get_by_text("gate: pass")).to_have_count(0)
        verdict.get_by_role("link", name="How to write one").click()
        expect(page.get_by_text("min_macro_f1: 0.8")).to_be_visible()


def test_samples_are_filtered_sorted_and_the_address_holds_it_all(browser_thread, visit, address):
    page = visit(address)
    found = run_ids(page)["second"]
    page.goto(f"{address}/#/runs/{found}/samples")
    grid = page.get_by_role("grid")
    expect(page.get_by_text("40 samples", exact=True)).to_be_visible()
    page.get_by_role("combobox", name="Metric").select_option("exact-match")
    page.get_by_role("combobox", name="Passed").select_option("no")
    # Wrong at 4, 12, 15, 16; failed at 7; unstable at 9.
    expect(page.get_by_text("6 of 40 samples", exact=True)).to_be_visible()
    page.get_by_role("combobox", name="Tag").select_option("tag:urgent")
    expect(page.get_by_text("3 of 40 samples", exact=True)).to_be_visible()
    again = visit(address, page.url.removeprefix(f"{address}/"))
    expect(again.get_by_text("3 of 40 samples", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_text("6 of 40 samples", exact=True)).to_be_visible()
    page.get_by_role("button", name="clear all").click()
    page.get_by_role("searchbox").fill("no address of")
    expect(page.get_by_text("Nothing matches. Remove a filter")).to_be_visible()
    page.get_by_role("searchbox").fill("does not say where")
    # The reasons of the judge: 4, 9, 12, 15 and 16 were judged lost.
    expect(page.get_by_text("5 of 40 samples", exact=True)).to_be_visible()
    page.get_by_role("button", name="clear all").click()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="latency", exact=True).check()
    page.get_by_text("Columns", exact=True).click()
    grid.get_by_role("button", name="latency").click()
    grid.get_by_role("button", name="latency").click()
    expect(page.locator("#row-0")).to_contain_text(SAMPLES[39]["id"])
    expect(grid.get_by_role("columnheader", name="latency")).to_have_attribute("aria-sort", "descending")


def test_tables_are_cards_on_a_phone(browser_thread, visit, address):
    page = visit(address, **PHONE)
    found = run_ids(page)["second"]
    page.goto(f"{address}/#/runs/{found}/samples?passed=no&sort=worst")
    card = page.locator(".grid-card").first
    expect(card).to_contain_text("expected")
    expect(card).to_contain_text("exact-match")
    expect(page.get_by_role("columnheader")).to_have_count(0)
    page.get_by_label("Sort by").select_option("llm-as-judge")
    expect(page).to_have_url(re.compile("sort=llm-as-judge"))
    card.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Expected output")).to_be_visible()


def test_runs_are_found_by_their_gate(browser_thread, visit, address):
    page = visit(address)
    rows = page.request.get(f"{address}/api/runs").json()["runs"]
    failed = [row for row in rows if row["gate"] == "fail"]
    page.get_by_role("combobox", name="Status").select_option("gate: fail")
    expect(page.get_by_role("row")).to_have_count(1 + len(failed))
    assert "status=fail" in page.url


def test_columns_of_samples_are_chosen_and_pinned(browser_thread, visit, address):
    page = visit(address)
    page.goto(f"{address}/#/runs/{run_ids(page)['first']}/samples")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="team", exact=True).check()
    page.get_by_role("checkbox", name="Pin output").check()
    page.get_by_role("checkbox", name="input", exact=True).uncheck()
    heads = page.get_by_role("grid").get_by_role("columnheader")
    expect(heads.nth(1)).to_have_text("output")
    expect(heads.last).to_have_text("team")
    expect(page.locator("#row-0")).to_contain_text("north")
    page.reload()
    expect(heads.last).to_have_text("team")


def test_sample_shows_difference_marks_reasons_trace_and_neighbours(browser_thread, visit, address):
    page = visit(address)
    found = run_ids(page)["second"]
    page.goto(f"{address}/#/runs/{found}/samples?metric=exact-match&passed=no")
    page.get_by_role("grid").wait_for()
    page.locator("#row-0 a").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=SAMPLES[4]["id"])).to_be_visible()
    expect(page.get_by_text("1 of 6")).to_be_visible()
    expect(page.locator("ins").first).to_contain_text("I believe")
    expect(page.get_by_text("It does not say where.").first).to_be_visible()
    expect(page.get_by_text("Desk 4 keeps every warranty.")).to_be_visible()
    expect(page.locator(".timeline")).to_contain_text("no address")
    page.get_by_text("Prompt and reply").click()
    expect(page.locator(".message").first).to_be_visible()
    expect(page.get_by_role("heading", name="The same sample in other runs")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("repetition=1"))
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name=SAMPLES[7]["id"])).to_be_visible()
    expect(page.get_by_text("desk seven is closed").first).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_text("6 of 40 samples", exact=True)).to_be_visible()


def test_comparison_shows_differences_changes_and_outputs_side_by_side(browser_thread, visit, address):
    page = visit(address)
    ids = run_ids(page)
    page.goto(f"{address}/#/compare?runs={ids['first']},{ids['second']}")
    comparison = page.request.get(f"{address}/api/compare?runs={ids['first']},{ids['second']}").json()
    expect(page.get_by_text(comparison["verdict"])).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^score of second against score of first, 40|39"))).to_be_visible()
    # What broke comes first, with the words that differ in both cells.
    first = page.locator("#row-0")
    expect(first).to_contain_text("newly failing")
    expect(first.locator("ins").first).to_contain_text("I believe")
    expect(first.locator("del").first).to_contain_text("Your")
    expect(page.get_by_role("combobox", name="Status").locator("option")).to_contain_text(
        ["all", "newly failing", "fails in both", "passes in both"]
    )
    page.get_by_role("combobox", name="Status").select_option("newly_failing")
    expect(page.locator("#row-1")).to_be_visible()
    expect(page.locator("#row-2")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=SAMPLES[15]["id"])).to_be_visible()
    expect(page.get_by_label("Output of second").locator("ins").first).to_contain_text("I believe")
    expect(page.get_by_label("Output of first").locator(".timeline")).to_be_visible()
    for side, score in (("first", "0.9"), ("second", "0.1")):
        output = page.get_by_label(f"Output of {side}")
        output.get_by_text("Scores in full").click()
        output.get_by_text("Prompt and reply").click()
        expect(output.locator(".message").last).to_contain_text(f'"score":{score}')
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name=SAMPLES[16]["id"])).to_be_visible()
    page.goto(f"{address}/#/compare?runs={','.join(ids.values())}")
    expect(page.get_by_role("heading", name="Ranking")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("third.*1 to 3"))).to_be_visible()


def test_progress_of_a_run_is_live(browser_thread, visit, address, store):
    page = visit(address)
    expect(page.get_by_role("row")).to_have_count(4)
    gates = [threading.Event() for _ in range(3)]
    started = threading.Event()

    def answer(given):
        started.set()
        place = int(given["question"].split()[1].rstrip(":"))
        if place in (10, 20, 30):
            gates[place // 10 - 1].wait(20)
        return answer_for(set())(given) if place != 7 else "closed"

    def run():
        samples = [{**one, "id": f"live-{one['id']}"} for one in SAMPLES]
        dataset = dm.Dataset(samples, name="live")
        dm.evaluate(dataset, target=answer, metrics=["exact-match"], concurrency=1, storage=str(store), name="live")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert started.wait(20)
        page.reload()
        page.get_by_role("link", name="live").click()
        expect(page.get_by_text("10 of 40 executions")).to_be_visible()
        gates[0].set()
        expect(page.get_by_text("20 of 40 executions")).to_be_visible()
        expect(page.get_by_label("Progress")).to_contain_text("So far 19 calls")
    finally:
        for gate in gates:
            gate.set()
        thread.join()
    expect(page.locator(".headline")).to_contain_text("40")
    expect(page.get_by_text("of 40 executions")).to_have_count(0)


def test_keyboard_help_lists_the_keys_of_the_page(browser_thread, visit, address):
    page = visit(address)
    page.get_by_role("heading", name="Runs").wait_for()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Compare the selected runs")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_nothing_overflows_on_a_phone(browser_thread, visit, address):
    page = visit(address, **PHONE)
    ids = run_ids(page)
    one = ids["second"]
    pair = f"{ids['first']},{one}"
    for place in ("runs", f"runs/{one}", f"runs/{one}/samples", f"runs/{one}/samples/4", f"compare?runs={pair}"):
        page.goto("about:blank")
        page.goto(f"{address}/#/{place}")
        page.locator("main[aria-busy=false]").wait_for()
        wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert (place, wide) == (place, 0)
