"""Layouts select and order sections by their keys."""

from __future__ import annotations

import pytest

from deemster.report import report_document
from deemster.text.text_sections import TextSection, in_order, with_keys
from tests.report.runs import full_report

SECTIONS = [TextSection((key or "no key",), key=key) for key in ("headline", "new", "gate", "", "metrics")]


def titles(sections):
    return ["".join(section.title) for section in sections]


def test_what_a_page_does_not_name_comes_last_in_its_own_order():
    assert titles(in_order(SECTIONS, ("metrics", "gate", "headline"))) == [
        "metrics",
        "gate",
        "headline",
        "new",
        "no key",
    ]


def test_short_layout_shows_what_it_names_in_the_order_of_the_sections():
    assert titles(with_keys(SECTIONS, ("metrics", "gate"))) == ["gate", "metrics"]


@pytest.mark.parametrize("key", ["", "tomorrow"])
def test_unknown_section_comes_last_and_does_not_end_the_page(monkeypatch, key):
    # A section that a later version adds; it has no other door.
    module = report_document.Report.to_html.__globals__["html_page"].__globals__
    known = module["report_sections"]
    monkeypatch.setitem(
        module,
        "report_sections",
        lambda report: [*known(report)[:3], TextSection(("Weather",), [("It rains.",)], key=key), *known(report)[3:]],
    )
    page = full_report().to_html()
    *_, last = page.split("<section ")
    assert "<h2" in last
    assert "Weather" in last
    assert page.count("<section ") == page.count('<li><a href="#part-')
