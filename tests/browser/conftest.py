"""One Chromium and one store for all browser tests of a process.

Playwright keeps an event loop running in its thread, which other tests must not find there. So a thread of its own runs
Playwright, and every test of this folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Response, expect, sync_playwright

import deemster as dm
from deemster.models import Role
from deemster.models.fake_models import FakeChat
from deemster.records import ToolCall, Trajectory, Usage
from tests.browser.chromium import launch, viewer_process
from tests.builders.arguments import arguments

HERE = Path(__file__).parent
# Waiting is no measurement: a busy machine only takes longer.
expect.set_options(timeout=20_000)
WORDS = ("refund", "parcel", "invoice", "password", "warranty", "delivery")
SAMPLES = [
    {
        "id": f"{WORDS[place % 6]}-{place:02}",
        "input": {"question": f"Question {place}: where is my {WORDS[place % 6]}?", "channel": "chat"},
        "expected_output": f"Your {WORDS[place % 6]} is at desk {place}.",
        "metadata": {
            "tags": [["orders"], ["orders", "urgent"], []][place % 3],
            "team": "north" if place < 20 else "south",
            **({"adversarial": {"category": "jailbreak", "severity": "high"}} if place in (4, 5, 6) else {}),
        },
    }
    for place in range(40)
]


def answer_for(wrong, delay=0.0):
    """A target that is wrong for some places, fails for one, and is unstable for another."""
    calls: dict[int, int] = {}

    def answer(given):
        place = int(given["question"].split()[1].rstrip(":"))
        calls[place] = calls.get(place, 0) + 1
        if place == 7:
            raise ValueError("desk seven is closed")
        text = f"Your {WORDS[place % 6]} is at desk {place}."
        if place in wrong or (place == 9 and calls[place] == 2):
            text = f"I believe your {WORDS[place % 6]} is lost."
        tools = (
            ToolCall(name="search", arguments={"desk": place}, result={"found": 1}, duration_ms=120.0),
            ToolCall(name="notify", arguments={}, error="no address", duration_ms=30.0),
        )
        return dm.Output(
            text,
            retrieved=[{"id": f"doc-{place}", "text": f"Desk {place} keeps every {WORDS[place % 6]}."}],
            trajectory=Trajectory(tool_calls=tools, steps=3, finish_reason="stop"),
            usage=Usage(latency_ms=15.0 * place),
        )

    return answer


def judge_reply(ask):
    """The reply of a judge that reads the answer."""
    lost = "is lost" in ask.messages[-1].content
    return {"score": 0.1 if lost else 0.9, "reason": "It does not say where." if lost else "It names the desk."}


def evaluate(store, label, wrong, **options):
    """One stored run over the forty samples, twice each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dm.evaluate(
            dm.Dataset(SAMPLES, name="desk"),
            target=answer_for(wrong),
            metrics=["exact-match", "token-f1", "llm-as-judge"],
            models={"judge": Role(client=FakeChat(judge_reply))},
            repetitions=2,
            concurrency=1,
            name=label,
            gate={"min_macro_f1": 0.5, "metrics": {"exact-match": {"min_pass_rate": 0.95}}},
            **arguments(keep_prompts="all", where=str(store), **options),
        )


@pytest.fixture(scope="session")
def browser_thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the tests of this folder in the thread that Playwright lives in."""
    pool = pyfuncitem.funcargs.get("browser_thread")
    if pool is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    pool.submit(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names}).result()
    return True


@pytest.fixture(scope="session")
def chromium(browser_thread) -> Iterator[Browser]:
    def start():
        playwright = sync_playwright().start()
        return playwright, launch(playwright)

    playwright, browser = browser_thread.submit(start).result()
    yield browser
    browser_thread.submit(browser.close).result()
    browser_thread.submit(playwright.stop).result()


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Path:
    """A store with three runs of one dataset, and what each got wrong."""
    place = tmp_path_factory.mktemp("browser") / "runs.db"
    evaluate(place, "first", {1, 4, 12})
    evaluate(place, "second", {4, 12, 15, 16})
    evaluate(place, "third", {4})
    return place


@pytest.fixture(scope="session")
def address(store) -> Iterator[str]:
    """The address of a viewer over the store that changes nothing."""
    with viewer_process(store) as found:
        yield found


@pytest.fixture(scope="session")
def ada(store) -> Iterator[str]:
    """The address of a viewer in which Ada labels."""
    with viewer_process(store, "--annotator", "ada") as found:
        yield found


@pytest.fixture(scope="session")
def bert(store) -> Iterator[str]:
    """The address of a viewer in which Bert labels."""
    with viewer_process(store, "--annotator", "bert") as found:
        yield found


class Visit:
    """A page of a fresh browser session, and everything that went wrong on it."""

    def __init__(self, browser: Browser, **options) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **options})
        self.page: Page = self.context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda said: self.problems.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("response", self._answered)

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")


@pytest.fixture
def visit(chromium, browser_thread) -> Iterator:
    """Opens pages. At the end of the test none of them may have logged, failed, or asked another host for anything."""
    visits: list[tuple[Visit, str]] = []

    def open_page(address: str, place: str = "", **options) -> Page:
        one = Visit(chromium, **options)
        visits.append((one, address))
        one.page.goto(f"{address}/{place}")
        return one.page

    yield open_page
    for one, address in visits:
        browser_thread.submit(one.context.close).result()
        assert one.problems == []
        assert [url for url in one.requests if not url.startswith((address, "data:", "blob:"))] == []


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, from the packages of the front end, which `make setup` installs."""
    return (HERE.parents[1] / "frontend" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
