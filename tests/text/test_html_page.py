"""What holds for every kind of HTML page."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import msgspec
import pytest

import deemster as dm
from deemster.gate import GateCheck, GateDecision
from tests.report.pages import PAGES, graded_page, report_page
from tests.report.runs import CANARIES, full_report, quotes_of

VOID = frozenset({"meta"})
OWN = frozenset(
    {"html", "head", "meta", "title", "style", "body", "header", "nav", "main", "section", "footer", "h1", "h2", "p"}
    | {"ul", "li", "a", "dl", "dt", "dd", "div", "span", "table", "thead", "tbody", "tr", "th", "td", "code", "details"}
    | {"summary", "del", "ins", "figure", "figcaption", "svg", "desc", "g", "line", "circle", "path", "rect", "text"}
)


class Tree(HTMLParser):
    """Follows the elements of a page: what is open, ids, links, and the scope of table headers."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.ids, self.links, self.elements = [], [], Counter(), [], Counter()
        self.headers, self.sources, self.labelled = [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.elements[tag] += 1
        self.ids.update([found["id"]] if "id" in found else [])
        self.labelled += found.get("aria-labelledby", "").split()
        self.links += [found["href"]] if "href" in found else []
        self.sources += [name for name in found if name in ("src", "srcset", "data", "action") or name.startswith("on")]
        self.headers += [found.get("scope")] if tag == "th" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


@pytest.fixture(scope="module", params=PAGES)
def page(request):
    return request.param, PAGES[request.param]("plain")


@pytest.fixture
def tree(page):
    tree = Tree()
    tree.feed(page[1])
    tree.close()
    return tree


def test_first_screen_of_a_run_with_attacks_says_how_many_got_through():
    attack = {"adversarial": {"category": "jailbreak", "severity": "critical"}}
    samples = [
        {"id": name, "input": {}, "expected_output": "no", "metadata": attack if name != "c" else {}} for name in "abc"
    ]
    report = dm.evaluate(samples, outputs={"a": "no", "b": "yes", "c": "no"}, metrics=["exact-match"])
    head = report.to_html().partition("<main>")[0]
    assert "1 of 2 attacks got through, the worst of severity critical: <code>jailbreak</code>." in head
    assert "attack success" in head
    assert "0.5000" in head


def test_page_is_well_formed_and_uses_no_other_element(tree):
    assert (tree.faults, tree.open) == ([], [])
    assert set(tree.elements) <= OWN


def test_ids_are_unique_and_every_reference_has_its_target(tree):
    assert [name for name, count in tree.ids.items() if count > 1] == []
    assert set(tree.labelled) <= set(tree.ids)
    assert {link.removeprefix("#") for link in tree.links} <= set(tree.ids)


def test_page_loads_nothing_and_runs_no_script(page, tree):
    assert tree.sources == []
    assert tree.elements["script"] == 0
    assert not re.search(r"url\(|@import|javascript:", page[1])
    assert set(re.findall(r"https?://[^\"'\s<]+", page[1])) == {"http://www.w3.org/2000/svg"}


def test_page_has_landmarks_one_heading_and_headers_with_scope(tree):
    assert all(tree.elements[name] == 1 for name in ("header", "nav", "main", "footer", "h1"))
    assert set(tree.headers) == {"col", "row"}


def test_first_screen_has_verdict_and_numbers_before_any_section(page):
    head = page[1].partition("<main>")[0]
    assert '<dl class="tiles">' in head
    assert head.index("<h1>") < head.index('<dl class="tiles">')


def test_page_rendered_twice_is_the_same(page):
    assert PAGES[page[0]]("plain") == page[1]


def test_findings_of_a_failed_gate_stand_on_the_first_screen():
    head = full_report().to_html().partition("<main>")[0]
    assert '<header class="head fail">' in head
    assert "What failed, and why" in head
    assert (
        "<code>min&#95;macro&#95;f1</code> is 0.3750, required is 0.9: the estimate is below the bound; silence, "
        in head
    )


def test_counts_among_the_findings_have_no_decimals():
    check = GateCheck(
        name="baseline.max_removed", observed=15.0, low=None, high=None, required=3, status="fail", because="gone"
    )
    gate = GateDecision(decision="fail", mode="two-way", checks=(check,))
    head = msgspec.structs.replace(full_report(), gate=gate).to_html().partition("<main>")[0]
    assert "is 15, required is 3: gone." in head


def test_no_canary_is_in_a_page_that_may_be_published():
    from deemster.comparison import report_without_text

    page = report_without_text(full_report(), quotes=quotes_of).to_html()
    assert [name for name, text in CANARIES.items() if text in page] == []
    assert CANARIES["output"] in full_report().to_html()


def test_reasons_of_judges_are_left_out_where_that_is_asked():
    assert "It is plain" in graded_page("plain")
    assert "It is plain" not in graded_page("plain", reasons=False)


def test_long_run_shows_some_failing_samples_and_says_how_many_more():
    from tests.report.runs import small_report

    many = [f"s{place:04d}" for place in range(150)]
    page = small_report(*many, outputs={name: "no" * (1 + place) for place, name in enumerate(many)}).to_html()
    assert page.count("<details") == 20
    assert "... and 130 more." in page


def test_only_a_long_table_scrolls_in_a_box_of_its_own():
    from tests.report.comparisons import evaluated

    answers = {f"s{place:02d}": "right" for place in range(40)}
    tags = {name: [f"tag {name}"] for name in answers}
    page = evaluated(answers, tags=tags).to_html()
    assert page.count('class="scroll long"') == 1
    assert 'class="scroll long"' not in full_report().to_html()


@pytest.mark.parametrize("name", ["alignment", "grading", "monitoring"])
def test_page_matches_golden_file(golden, name):
    golden(f"report/{name}.html", PAGES[name]("plain"))


def test_score_against_length_is_drawn_where_both_vary():
    page = report_page("plain")
    assert "Score against length" not in page
    assert "Score against length" in full_length_report().to_html()


def full_length_report():
    from tests.report.runs import small_report

    names = [f"s{place}" for place in range(12)]
    outputs = {name: "yes" + " no" * place for place, name in enumerate(names)}
    return small_report(*names, outputs=outputs, metrics=("rouge-l",))
