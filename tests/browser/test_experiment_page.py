"""The page of an experiment in Chromium: its answer, the grid, its keys, thumbs, an export, hostile text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings

import pytest
from playwright.sync_api import expect

import deemster as dm
from deemster.models import Role
from deemster.models.fake_models import FakeChat
from deemster.store import open_store
from tests.browser.chromium import viewer_process
from tests.browser.conftest import SAMPLES, answer_for, judge_reply
from tests.browser.test_accessibility import AUDIT
from tests.builders.experiments import store_experiment
from tests.view.xss_payloads import PAYLOADS

pytestmark = pytest.mark.xdist_group("browser")

PAGE = "#/experiments/latest"
PHONE = {"viewport": {"width": 400, "height": 800}}
WRONG = {"short / mini": {4, 12}, "polite / mini": set(), "short / local": {4, 12, 15, 16}, "polite / local": {20}}
LONG_ANSWER = 5


def answer_of(name):
    """What a variant answers: polite ones greet, and one sample gets a long answer."""
    answer = answer_for(WRONG[name])

    def answer_politely(given):
        output = answer(given)
        if given["question"].startswith(f"Question {LONG_ANSWER}:"):
            return f"{output.text}\n" + "".join(f"Step {step}.\n" for step in range(900)) + "The end."
        return f"Good morning. {output.text}" if name.startswith("polite") else output.text

    return answer_politely


def exported_page(place, site):
    """The address of the page of the only experiment of a store in an export of it."""
    command = [sys.executable, "-m", "deemster", "view", "--store", place, "--export", site, "latest"]
    subprocess.run(command, check=True, capture_output=True)
    with open_store(place) as store:
        return f"{site.as_uri()}/index.html#/experiments/{store.find_experiment('latest')}"


def make_experiment(place, dataset, targets, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return store_experiment(place, dataset, targets, concurrency=1, **options)


@pytest.fixture(scope="session")
def experiment_store(tmp_path_factory):
    """A store with an experiment of two prompts and two models over the forty samples, judged."""
    place = tmp_path_factory.mktemp("experiment") / "runs.db"
    make_experiment(
        place,
        dm.Dataset(SAMPLES, name="desk"),
        {name: answer_of(name) for name in WRONG},
        levels={name: dict(zip(("prompt", "chat"), name.split(" / "), strict=True)) for name in WRONG},
        metrics=["token-f1", "llm-as-judge"],
        models={"judge": Role(client=FakeChat(judge_reply))},
    )
    return place


@pytest.fixture(scope="session")
def grids(experiment_store):
    """The address of a viewer over the experiment, in which Ada labels."""
    with viewer_process(experiment_store, "--annotator", "ada") as found:
        yield found


def cell(page, row, column):
    return page.locator(f"#cell-{row}-{column}")


def heads(page, name=None):
    """The heads of the grid's columns, or the one of a name."""
    return page.get_by_role("grid").get_by_role("columnheader", name=name)


def sample_ids(page):
    """The ids of the samples on screen, from the first."""
    return page.locator(".outputs .sample b").all_inner_texts()


def test_page_begins_with_the_answer_and_its_matrix(browser_thread, visit, grids):
    page = visit(grids, PAGE)
    answer = page.request.get(f"{grids}/api/experiments/latest/answer").json()
    ranking = page.get_by_label("Ranking")
    expect(ranking).to_contain_text(answer["verdict"])
    rows = ranking.locator(".ranks tbody tr")
    expect(rows).to_have_count(4)
    rates = [entry["run"]["pass_rate"] for entry in answer["ranking"]["runs"]]
    expect(rows.first).to_contain_text(f"{max(rates):.2f}")
    matrix = page.get_by_role("table", name="Pass-rate by prompt and chat")
    expect(matrix.locator(".cell")).to_have_count(4)
    rows.first.get_by_role("link").click()
    expect(page.get_by_label("Verdict")).to_be_visible()
    page.get_by_role("link", name="All variants").click()
    expect(rows).to_have_count(4)


def test_grid_shows_whole_outputs_and_why_they_got_their_scores(browser_thread, visit, grids):
    page = visit(grids, f"{PAGE}?row=4")
    expect(heads(page)).to_have_text([re.compile(name) for name in ("Sample", *WRONG)])
    wrong = cell(page, 4, 0)
    expect(wrong).to_contain_text("I believe your warranty is lost.")
    wrong.get_by_role("button", name="llm-as-judge 0").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It does not say where.")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)

    # The row holds the beginning of a long answer; the rest is asked for.
    long = cell(page, LONG_ANSWER, 0)
    expect(long).not_to_contain_text("The end.")
    low = long.bounding_box()["height"]
    long.get_by_role("button", name="show all").click()
    expect(long).to_contain_text("The end.")
    assert long.bounding_box()["height"] > 10 * low
    long.get_by_role("button", name="less").click()
    expect(long.get_by_role("button", name="show all")).to_be_visible()
    assert long.bounding_box()["height"] == low


def test_failed_target_says_so_in_its_cell(browser_thread, visit, grids):
    page = visit(grids, f"{PAGE}?row=7")
    expect(cell(page, 7, 1)).to_contain_text("No output: target failed.")
    cell(page, 7, 1).get_by_role("button", name="token-f1").click()
    expect(page.get_by_role("dialog")).to_contain_text("desk seven is closed")


def test_words_that_differ_from_a_chosen_column_are_marked(browser_thread, visit, grids):
    page = visit(grids, PAGE)
    cell(page, 0, 0).wait_for()
    expect(page.locator(".outputs ins")).to_have_count(0)
    heads(page, "short / mini").get_by_role("button", name="mark against").click()
    expect(cell(page, 0, 1).locator("ins")).to_have_text("Good morning. ")
    expect(cell(page, 0, 2)).to_contain_text("the same")
    expect(cell(page, 0, 0).locator("ins, del")).to_have_count(0)
    page.reload()
    expect(cell(page, 0, 1).locator("ins")).to_have_text("Good morning. ")


def test_samples_are_filtered_and_the_most_disputed_come_first(browser_thread, visit, grids):
    page = visit(grids, PAGE)
    count = page.locator(".chips", has_text="samples")
    expect(count).to_contain_text("40 samples")
    page.keyboard.press("d")
    # 4, 12, 15, 16 and 20 are wrong for some; 7 fails for all.
    expect(count).to_contain_text("5 of 40 samples")
    assert sample_ids(page)[:2] == [SAMPLES[4]["id"], SAMPLES[12]["id"]]
    page.get_by_role("combobox", name="Show").select_option("failing everywhere")
    expect(count).to_contain_text("2 of 40 samples")
    expect(page.locator(".outputs .sample b")).to_have_text([SAMPLES[LONG_ANSWER]["id"], SAMPLES[7]["id"]])
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    expect(count).not_to_contain_text("of 40 samples")
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile("sort=disagreement"))
    # Two of four is more disputed than one of four.
    expect(page.locator(".outputs .sample b").first).to_have_text(SAMPLES[4]["id"])
    heads(page, "polite / local").get_by_role("link", name="what fails").click()
    expect(count).to_contain_text("3 of 40 samples")
    page.get_by_role("searchbox").fill("is lost")
    expect(count).to_contain_text("1 of 40 samples")


def test_columns_are_chosen(browser_thread, visit, grids):
    page = visit(grids, PAGE)
    cell(page, 0, 3).wait_for()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="short / local").uncheck()
    expect(heads(page)).to_have_count(4)
    expect(page.get_by_text("3 of 4 variants are shown")).to_be_visible()
    page.reload()
    expect(heads(page)).to_have_count(4)


def test_keys_move_open_and_explain(browser_thread, visit, grids):
    page = visit(grids, PAGE)
    grid = page.get_by_role("grid")
    cell(page, 0, 0).wait_for()
    for key in ("j", "j", "j", "j", "l", "l", "h"):
        page.keyboard.press(key)
    expect(grid).to_have_attribute("aria-activedescendant", "cell-4-1")
    expect(cell(page, 4, 1)).to_be_in_viewport()
    page.keyboard.press("w")
    expect(page.get_by_role("dialog")).to_contain_text("It names the desk.")
    page.keyboard.press("Escape")
    grid.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    expect(grid).to_have_attribute("aria-activedescendant", "cell-5-0")
    page.keyboard.press("e")
    expect(cell(page, 5, 0)).to_contain_text("The end.")
    page.keyboard.press("G")
    expect(cell(page, 39, 0)).to_contain_text("desk 39")
    expect(cell(page, 39, 0)).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=SAMPLES[39]["id"])).to_be_visible()
    page.go_back()
    expect(cell(page, 39, 0)).to_be_in_viewport()


def test_thumbs_are_labels(browser_thread, visit, grids, experiment_store):
    page = visit(grids, f"{PAGE}?row=4&at=0")
    cell(page, 4, 0).wait_for()
    expect(page.get_by_role("combobox", name="Thumbs are about")).to_have_value("llm-as-judge")
    down = cell(page, 4, 0).get_by_role("button", name="Fail by llm-as-judge")
    page.keyboard.press("-")
    expect(down).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(down).to_have_attribute("aria-pressed", "true")
    with open_store(experiment_store) as store:
        run = store.run("latest/short / mini")
        (label,) = store.labels(run.id)
    assert (label.position, label.metric, label.verdict) == (4, "llm-as-judge", "fail")
    assert (label.author, label.order) == ("ada", "chosen")
    down.click()
    expect(down).to_have_attribute("aria-pressed", "false")
    page.reload()
    expect(down).to_have_attribute("aria-pressed", "false")
    # Whatever else a judge says of the run, a thumb can be about any metric.
    page.get_by_role("combobox", name="Thumbs are about").select_option("token-f1")
    up = cell(page, 4, 0).get_by_role("button", name="Pass by token-f1")
    up.click()
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_without_an_author_there_are_no_thumbs(browser_thread, visit, experiment_store):
    with viewer_process(experiment_store) as address:
        page = visit(address, PAGE)
        page.locator(".ranks").wait_for()
        expect(page.get_by_role("button", name="Pass by")).to_have_count(0)


def test_list_of_runs_has_the_experiment_as_one_line(browser_thread, visit, grids):
    page = visit(grids)
    expect(page.get_by_role("row")).to_have_count(6)
    page.get_by_role("button", name="Runs of the experiment").click()
    expect(page.get_by_role("row")).to_have_count(2)
    page.keyboard.press("Enter")
    page.get_by_role("row", name="4 variants").get_by_role("link").click()
    expect(page.get_by_label("Ranking")).to_be_visible()


def test_phone_has_variants_below_each_other(browser_thread, visit, grids):
    page = visit(grids, PAGE, **PHONE)
    expect(page.get_by_text("3 of 4 variants are shown")).to_be_visible()
    first, second = cell(page, 0, 0).bounding_box(), cell(page, 0, 1).bounding_box()
    assert first["x"] == second["x"]
    assert second["y"] >= first["y"] + first["height"]
    page.locator(".ranks").wait_for()
    wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0


@pytest.mark.parametrize(("scheme", "rules"), [("light", None), ("dark", ["color-contrast"])], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(browser_thread, visit, grids, axe, scheme, rules):
    page = visit(grids, f"{PAGE}?against=short+%2F+mini", color_scheme=scheme, bypass_csp=True)
    page.locator(".ranks").wait_for()
    cell(page, 0, 0).wait_for()
    page.evaluate(axe)
    assert page.evaluate(AUDIT, rules) == []
    page.goto(f"{grids}/#/runs")
    page.get_by_role("row", name="4 variants").wait_for()
    assert page.evaluate(AUDIT, rules) == []


QUERIES = (
    "",
    "show=verdicts_differ",
    "show=outputs_differ&column=short+%2F+mini&column=short+%2F+local",
    "show=failing&metric=llm-as-judge",
    "show=failing_everywhere",
    "failing=short+%2F+local&sort=disagreement",
    "sort=disagreement",
    "sort=disagreement&metric=token-f1",
    "sort=worst&column=polite+%2F+local&column=short+%2F+local",
    "text=lost",
    "text=good+morning&column=short+%2F+mini",
    "text=warranty-04",
)


@pytest.fixture(scope="module")
def export(experiment_store, tmp_path_factory):
    return exported_page(experiment_store, tmp_path_factory.mktemp("export"))


def test_export_answers_as_the_server_does(browser_thread, visit, grids, export):
    online = visit(grids)
    site = export.split("/index.html")[0]
    page = visit(site, "index.html")
    expect(page.locator(".ranks tbody tr")).to_have_count(4)
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("row", name="4 variants").get_by_role("link").click()
    differing = {}
    for query in QUERIES:
        place = f"experiments/latest/samples?{query}"
        wanted = online.request.get(f"{grids}/api/{place}&limit=6").json()
        page.goto("about:blank")
        page.goto(f"{export}?{query}")
        counted = "40 samples" if wanted["matched"] == 40 else f"{wanted['matched']} of 40 samples"
        expect(page.locator(".chips", has_text="samples")).to_contain_text(counted)
        page.locator(".grid[aria-busy=false]").wait_for()
        shown = min(2, wanted["matched"])
        first = [page.locator(".outputs .sample b").nth(row).inner_text() for row in range(shown)]
        if first != [row["id"] for row in wanted["rows"][:shown]]:
            differing[query] = first
    assert differing == {}
    page.goto("about:blank")
    page.goto(f"{export}?row=4")
    expect(page.locator(".ranks tbody tr")).to_have_count(4)
    cell(page, 4, 0).get_by_role("button", name="llm-as-judge 0").click()
    expect(page.get_by_role("dialog")).to_contain_text("It does not say where.")
    expect(page.get_by_role("button", name="Pass by")).to_have_count(0)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A viewer over an experiment whose names, levels, texts, tags and failures are payloads, and an export of it."""
    folder = tmp_path_factory.mktemp("hostile")
    samples = [
        {
            "id": f"{number} {payload}"[:256],
            "input": {"question": payload},
            "expected_output": f"expected {payload}",
            "metadata": {"tags": [payload]},
        }
        for number, payload in enumerate(PAYLOADS)
    ]

    def fail(given):
        raise ValueError(given["question"])

    names = PAYLOADS[:4]
    prompt = {"system": PAYLOADS[17], "user": f"{PAYLOADS[18]} {{{{input.question}}}}"}
    asking = dm.ChatTarget("chat", prompt)
    targets = [lambda given: given["question"], lambda given: f"{given['question']} x", fail, asking]
    make_experiment(
        folder / "runs.db",
        dm.Dataset(samples, name=PAYLOADS[6]),
        dict(zip(names, targets, strict=True)),
        levels={
            name: {PAYLOADS[7]: PAYLOADS[8 + at % 2], PAYLOADS[10]: PAYLOADS[11 + at // 2]}
            for at, name in enumerate(names)
        },
        metrics=[dm.metric(PAYLOADS[13], quotes=("judge_reason",))(quote)],
        models={"chat": Role(client=FakeChat(lambda _: PAYLOADS[5]), model=PAYLOADS[19])},
    )
    exported = exported_page(folder / "runs.db", folder / "site")
    with viewer_process(folder / "runs.db", "--annotator", PAYLOADS[14]) as address:
        yield f"{address}/{PAGE}", exported


def quote(expected: str, actual: str) -> dm.MetricScore:
    return dm.MetricScore(score=0.4, details={"judge_reason": actual, "findings": [{"claim": actual}]})


MARKUP = "script, iframe, img, object, embed, video, math, body, style, template, title"


def test_payloads_are_shown_literally_and_nothing_happens(browser_thread, visit, hostile):
    for start in hostile:
        site, opened = start.split("#")[0].rsplit("/", 1)
        page = visit(site, opened)
        for number in (0, len(PAYLOADS) // 2, len(PAYLOADS) - 1):
            page.goto("about:blank")
            page.goto(f"{start}?row={number}&lines=80")
            page.locator(".ranks").wait_for()
            found = cell(page, number, 0)
            expect(found.locator(".text")).to_have_text(re.compile(re.escape(PAYLOADS[number])))
            expect(heads(page).nth(1)).to_contain_text(PAYLOADS[0])
            page.get_by_text("prompt", exact=True).click()
            for payload in PAYLOADS[17:19]:
                expect(heads(page).nth(4)).to_contain_text(payload)
            found.locator("button.reason").click()
            expect(page.get_by_role("dialog")).to_contain_text(PAYLOADS[13])
            page.keyboard.press("Escape")
            heads(page).nth(1).get_by_role("button").click()
            expect(cell(page, number, 1).locator("ins").first).to_be_visible()
            assert page.locator("main").locator(MARKUP).count() == 0


def test_many_variants_and_samples_make_few_elements(browser_thread, visit, tmp_path):
    samples = [{"id": f"s{place}", "input": {"n": place}, "expected_output": "x"} for place in range(400)]
    targets = {f"variant {at}": (lambda given, at=at: f"{'word ' * 200}{at} {given['n']}") for at in range(12)}
    make_experiment(tmp_path / "runs.db", dm.Dataset(samples, name="many"), targets, metrics=["exact-match"])
    with viewer_process(tmp_path / "runs.db") as address:
        page = visit(address, PAGE)
        cell(page, 0, 0).wait_for()
        page.locator(".ranks").wait_for()
        expect(cell(page, 0, 11)).to_have_count(0)
        for key in ("G", *("l" for _ in range(11))):
            page.keyboard.press(key)
        expect(cell(page, 399, 11)).to_be_in_viewport()
        expect(cell(page, 399, 11)).to_contain_text("11 399")
        expect(cell(page, 399, 0)).to_have_count(0)
        cells = page.locator(".outputs [role=gridcell]").count()
        assert cells < 12 * 12
        assert json.loads(page.evaluate("() => JSON.stringify(document.querySelectorAll('*').length)")) < 2500
