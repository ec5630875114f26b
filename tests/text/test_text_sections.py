"""Layouts select and order sections by their keys."""

from __future__ import annotations

import html
import re
from functools import partial

import pytest

from deemster.agreement import agreement_page, metrics_result
from deemster.comparison import _comparison_page, comparison
from deemster.monitoring import monitoring_page, pass_rate_over_time
from deemster.monitoring.monitoring_report import drift_words
from deemster.report import _grading_page, _report_page, grading_result, report_document
from deemster.text.terminal_layout import plain_text
from deemster.text.text_sections import TextSection, in_order, with_keys, without_keys
from tests.agreement.make_results import full_result
from tests.report.comparisons import helpdesk
from tests.report.pages import grading, history
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


def test_short_form_keeps_what_it_does_not_know():
    assert titles(without_keys(SECTIONS, ("metrics", "gate"))) == ["headline", "new", "no key"]


RESULTS = {
    "report": (full_report, report_document, "report_sections"),
    "overview": (full_report, _report_page, "overview_sections"),
    "comparison": (helpdesk, comparison, "comparison_sections"),
    "alignment": (full_result, metrics_result, "agreement_sections"),
    "grading": (partial(grading, "facts"), grading_result, "grading_sections"),
    "monitoring": (partial(history, "shop"), pass_rate_over_time, "monitoring_sections"),
    "monitoring page": (partial(history, "shop"), monitoring_page, "monitoring_sections"),
    "grading page": (partial(grading, "facts"), _grading_page, "grading_sections"),
    "short alignment": (full_result, agreement_page, "short_agreement_sections"),
}
PAGES = ("grading", "monitoring")
DOORS = {
    ("report", "notebook"): "overview",
    ("alignment", "notebook"): "short alignment",
    **{(name, "page"): f"{name} page" for name in PAGES},
}
FORMS = {
    "terminal": lambda result: plain_text(result.sections(), width=120),
    "Markdown": lambda result: result.to_markdown(),
    "page": lambda result: result.to_html(),
    "notebook": lambda result: result._repr_html_(),
}


@pytest.mark.parametrize("key", ["", "tomorrow"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["report", "comparison", "alignment", "grading", "monitoring"])
def test_unknown_section_is_shown_and_ends_no_form(monkeypatch, kind, form, key):
    # A section that a later version adds; it has no other door.
    make, module, name = RESULTS[DOORS.get((kind, form), kind)]
    known, show = getattr(module, name), FORMS[form]
    usual = show(make())

    def with_weather(*arguments, **options):
        headline, *rest = known(*arguments, **options)
        return [headline, TextSection(("Weather",), [("It rains.",)], key=key), *rest]

    monkeypatch.setattr(module, name, with_weather)
    shown = show(make())
    assert shown.count("It rains.") == 1
    assert len(shown) > len(usual)
    lines = {line for line in usual.splitlines() if "part-" not in line}
    assert lines <= set(shown.splitlines())


# What each form names; what a page of monitoring adds itself stands before all other sections.
ORDERS = {
    ("comparison", "page"): _comparison_page._ORDER,
    ("comparison", "notebook"): _comparison_page._IN_NOTEBOOK,
    ("alignment", "page"): agreement_page._ORDER,
    ("alignment", "notebook"): agreement_page._SHORT,
    ("report", "page"): _report_page._ORDER,
    ("grading", "page"): _grading_page._ORDER,
    ("monitoring", "page"): (),
}


@pytest.mark.parametrize(("kind", "form"), ORDERS)
def test_unknown_section_comes_after_every_section_that_the_order_names(monkeypatch, kind, form):
    make, module, name = RESULTS[DOORS.get((kind, form), kind)]
    known = getattr(module, name)
    unknown_titles = set()

    def with_weather(*arguments, **options):
        headline, *rest = known(*arguments, **options)
        unknown_titles.update("".join(section.title) for section in rest if section.key not in ORDERS[kind, form])
        return [headline, TextSection(("Weather",), key="tomorrow"), *rest]

    monkeypatch.setattr(module, name, with_weather)
    headings = re.findall("<h2[^>]*>(.*?)</h2>", FORMS[form](make()))
    _, *later = headings[headings.index("Weather") :]
    assert set(later) <= unknown_titles, (
        f"a section that no order names stands before {sorted(set(later) - unknown_titles)}: `in_order` puts it after "
        "every section that the order names"
    )


def test_notebook_of_a_report_begins_with_the_decision_of_its_gate():
    headline, *_ = re.findall("<h2[^>]*>(.*?)</h2>", full_report()._repr_html_())
    assert headline.startswith("Gate: fail (1 passed, 3 failed, 1 skipped).")


def test_monitoring_page_says_each_thing_once():
    shown = history("shop")
    page = html.unescape(shown.to_html())
    verdict, _, evidence = drift_words(shown).partition(". ")
    for sentence in (f"{verdict}.", evidence, "a fall from"):
        assert page.count(sentence) == (2 if sentence == "a fall from" else 1), sentence
