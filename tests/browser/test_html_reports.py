"""HTML pages in a real Chromium: hostile text stays text, nothing is loaded, and axe finds no serious fault."""

from __future__ import annotations

import re

import pytest

from deemster.errors import visible
from tests.browser.test_accessibility import AUDIT
from tests.report.pages import PAGES
from tests.view.xss_payloads import PAYLOADS

pytestmark = pytest.mark.xdist_group("browser")

FORBIDDEN = "script,img,iframe,object,embed,link,base,form,input,video,audio,math,template,textarea,noscript,xmp"
HANDLERS = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => n.startsWith('on'))"


@pytest.fixture
def show(visit, tmp_path):
    """Opens a page from the disk; that it asks for nothing and logs nothing is checked at the end."""

    def open_file(text, **options):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        return visit(tmp_path.as_uri(), "page.html", **options)

    return open_file


def together(pages):
    """Pages one after the other in one document, under the policy of the first."""
    first, *others = pages
    bodies = [re.search(r"<body>(.*)</body>", page, re.DOTALL)[1] for page in others]
    return first.replace("</body>", "".join(bodies) + "</body>")


@pytest.mark.parametrize("kind", PAGES)
def test_hostile_text_in_every_field_runs_nothing_loads_nothing_and_is_shown(browser_thread, show, kind):
    page = show(together([PAGES[kind](payload) for payload in PAYLOADS]))
    assert page.evaluate("window.xss") is None
    assert page.evaluate(f"document.querySelectorAll({FORBIDDEN!r}).length") == 0
    assert page.evaluate(HANDLERS) == []
    shown = page.evaluate("document.body.textContent")
    assert [payload for payload in PAYLOADS if visible(payload, limit=200) not in shown] == []


@pytest.mark.parametrize("kind", PAGES)
def test_page_fits_a_narrow_screen_and_opens_without_script(browser_thread, show, kind):
    page = show(PAGES[kind]("plain " * 8), viewport={"width": 400, "height": 800}, java_script_enabled=False)
    box = page.locator("main").bounding_box()
    assert box["x"] + box["width"] <= 400
    assert page.locator("h1").bounding_box()["y"] < 100


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", PAGES)
def test_axe_finds_no_serious_fault(browser_thread, show, axe, kind, scheme):
    page = show(PAGES[kind]("plain"), color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.evaluate(axe)
    assert page.evaluate(AUDIT) == []
