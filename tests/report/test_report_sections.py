"""Hostile text in Markdown, HTML, JUnit, CSV and on a terminal: shown, and never more than text."""

from __future__ import annotations

import csv
import functools
import html
import io
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import deemster as dm
from deemster.errors import visible
from deemster.report.report_sections import report_sections
from deemster.text.escaping import escape_csv_cell, escape_markup
from tests.builders.printed import printed
from tests.builders.report_formats import FORMATS
from tests.report.runs import CLOCK

NASTY = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</code></td><a href='http://evil.example'>x</a>",
    "a|b||c",
    "`code` ``two`` ```",
    "**bold** __bold__ *em* _em_ ~~gone~~",
    "[link](http://evil.example) ![image](http://evil.example/i.png)",
    "<http://evil.example> http://evil.example https://evil.example www.evil.example WWW.evil.example",
    "mail@evil.example <mail@evil.example> @octocat #1 GH-1",
    "$x^2$ $$y$$ \\(z\\)",
    "[^1] [^1]: note",
    "&lt;b&gt; &amp; &#60; &copy",
    "\u202eevil\u2066 \u200b\ufeff\u061c",
    "\x1b[31mred\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x9b2J",
    "::error file=x::text",
    "a\n::error::b\r\n::warning::c",
    "# heading\n\n## another\n- list\n1. list\n> quote\n---\n",
    "| a | b |\n|---|---|\n| c | d |",
    "\\| \\` \\<b>",
    "\"double\" 'single'",
    "\U000e0041\U000e0042 tags",
    "\ud800 lone \udfff",
    "x" * 300,
    "<!-- comment -->",
    "<![CDATA[ x ]]>",
    "=1+1",
    "\uff1d1+1",
    " ",
    "\ufffe\uffff\x00\x0b",
)
TEXT = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=()), min_size=1, max_size=60)
NAMES = TEXT.filter(lambda text: bool(text.strip()))
QUICK = settings(suppress_health_check=[HealthCheck.too_slow])


class Named:
    """A metric with any name, that fails with any message."""

    def __init__(self, name, message):
        self.name, self.message = name, message

    def score(self, sample, output):
        if sample.id.endswith("!"):
            raise ValueError(self.message)
        return 0.25


@functools.cache
def plain_report():
    """A report with a tag, a model, a failed target and a failed metric, in two repetitions."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost_usd": 1}
    return dm.evaluate(
        dm.Dataset(
            [dm.Sample("a", {}, "x", {"tags": ["t"]}), dm.Sample("a!", {}, "x"), dm.Sample("b", {}, "x")], name="d"
        ),
        outputs=[
            {"id": "a", "outputs": ["x", "y"], "usage": usage, "model": "m"},
            {"id": "a!", "outputs": ["x", "y"]},
            *({"id": "b", "error": "failed", "repetition": number} for number in (0, 1)),
        ],
        metrics=[Named("named", "broken"), "exact-match"],
        gate={"cohorts": {"t": {"min_pass_rate": 0.5}}},
        settings=dm.EvaluationSettings(clock=CLOCK),
    )


def hostile(name):
    """A report that has the same text at every place where data text may appear."""
    report, replace = plain_report(), msgspec.structs.replace
    renamed = {"named": name}

    def keys(found):
        return {renamed.get(key, key): value for key, value in found.items()}

    return replace(
        report,
        run=replace(report.run, suite=name, status="incomplete", reason=name, id=name),
        dataset=replace(report.dataset, name=name),
        metric_order=(name, "exact-match"),
        metrics=keys(report.metrics),
        histograms=keys(report.histograms),
        cohort_list=tuple(
            replace(cohort, name=name, label=name, metrics=keys(cohort.metrics)) for cohort in report.cohort_list
        ),
        samples=[
            replace(entry, id=name, tags=(name, name), metrics=keys(entry.metrics), unstable=True)
            for entry in report.samples
        ],
        executions=[replace(entry, id=name, marks=_messages(keys(entry.marks), name)) for entry in report.executions],
        failure_list=[replace(entry, id=name, message=name, metric=name) for entry in report.failure_list],
        cost=replace(report.cost, models=tuple(replace(model, model=name) for model in report.cost.models)),
        gate=replace(
            report.gate, checks=tuple(replace(check, name=name, because=name) for check in report.gate.checks)
        ),
        precision=replace(report.precision, unstable=3),
    )


def _messages(marks, text):
    replace = msgspec.structs.replace
    return {
        name: replace(mark, unscored=replace(mark.unscored, message=text)) if hasattr(mark, "unscored") else mark
        for name, mark in marks.items()
    }


class Page(HTMLParser):
    """Collects the elements of a page, their attributes, and the text of code elements."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.codes, self.odd = set(), set(), [], []
        self._inside = False

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes.update((tag, *pair) for pair in attrs)
        if tag == "code":
            self._inside = True
            self.codes.append("")

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "code"

    def handle_data(self, data):
        if self._inside:
            self.codes[-1] += data

    def handle_comment(self, data):
        self.odd.append(data)

    def handle_pi(self, data):
        self.odd.append(data)

    def unknown_decl(self, data):
        self.odd.append(data)


def parsed(text):
    page = Page()
    page.feed(text)
    page.close()
    return page


COLUMNS = (
    "sample_id",
    "row_hash",
    "repetition",
    "tags",
    "metric",
    "score",
    "threshold",
    "success",
    "cause",
    "message",
)


def cells(name):
    """Everything the hostile report may show as text from data, after the steps that make it one harmless line."""
    shown = [name, f"{name}, {name}", f"{name}, ...", f"{name} mean", "exact-match mean", "x", "y"]
    return {visible(text, limit=limit) for text in shown for limit in (200, 2000)}


MARKDOWN = {"h1", "h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "strong", "ul", "li"}


@pytest.mark.parametrize("flavour", ["md", "github"])
@QUICK
@given(name=NAMES)
def test_hostile_text_makes_no_element_in_markdown(flavour, name):
    text = b"".join(FORMATS[flavour](hostile(name))).decode()
    page = parsed(MarkdownIt("commonmark").enable("table").render(text))
    assert page.elements <= MARKDOWN | {"details", "summary", "del", "ins"}
    assert page.attributes == set()
    assert page.odd == []
    assert {code.strip() for code in page.codes} <= {text.strip() for text in cells(name)}


@QUICK
@given(name=NAMES)
def test_hostile_text_makes_no_element_or_attribute_in_html(name):
    page, plain = (parsed(b"".join(FORMATS["html"](hostile(text))).decode()) for text in (name, "plain"))
    assert page.elements == plain.elements
    # Only these attributes hold text from data.
    assert {each for each in page.attributes if each[:2] != ("div", "aria-label")} == {
        each for each in plain.attributes if each[:2] != ("div", "aria-label")
    }
    assert page.elements.isdisjoint({"script", "link", "img", "iframe", "object", "form", "input", "base"})
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    assert ("meta", "content", policy) in page.attributes
    assert page.odd == []
    assert set(page.codes) <= {*cells(name), "exact-match"}


def test_page_without_hostile_text_uses_the_same_elements():
    ours, theirs = (parsed(b"".join(FORMATS["html"](hostile(name))).decode()) for name in ("plain", NASTY[0]))
    assert ours.elements == theirs.elements


@QUICK
@given(name=NAMES)
def test_junit_is_xml_for_any_text(name):
    root = ET.fromstring(b"".join(FORMATS["junit"](hostile(name))))
    own = {"testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out"}
    assert {element.tag for element in root.iter()} == own
    first = root.find("testsuite[2]/testcase")
    shown = re.sub("[\ufffe\uffff]", "\ufffd", visible(name, limit=600))
    assert first.get("classname") == shown
    assert first.get("name") in (visible(shown + " #0", limit=600), shown[:599] + "…")


@QUICK
@given(name=NAMES)
def test_csv_reads_back_as_the_same_cells(name):
    text = b"".join(FORMATS["csv"](hostile(name))).decode()
    assert "\r" not in text
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert rows[0] == [
        "sample_id",
        "row_hash",
        "repetition",
        "tags",
        "metric",
        "score",
        "threshold",
        "success",
        "cause",
        "message",
    ]
    assert {len(row) for row in rows} == {10}
    assert {row[0] for row in rows[1:]} == {escape_csv_cell(name)}
    assert {row[4] for row in rows[1:]} == {escape_csv_cell(name), "exact-match"}
    assert [row[5] for row in rows[1:3]] == ["0.25", "1.0"]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_csv_formula_is_guarded(sign):
    assert escape_csv_cell(f"{sign}cmd|' /C calc'!A0").startswith("'")


@pytest.mark.parametrize("text", ["a=b", "1-2", "mail@x", "", "'quoted", "(=1)"])
def test_csv_cell_with_only_a_sign_is_unchanged(text):
    assert escape_csv_cell(text) == text


def test_number_columns_are_never_guarded():
    text = hostile("plain").to_csv()
    assert "'" not in text
    assert ",0.25,0.5,false,," in text


HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u2069\ufeff\U000e0000-\U000e007f\ud800-\udfff]"
)


@QUICK
@given(name=NAMES, width=st.sampled_from([40, 80, 120]))
@example(name="::error::x", width=40)
@example(name="aaaaaaaaaaaaaaaaaaaaaa ::error::x " * 5, width=40)
def test_no_control_character_and_no_ci_command_reaches_a_terminal(name, width):
    shown = printed(report_sections(hostile(name)), width=width)
    assert not HIDDEN.search(shown)
    assert [line for line in shown.splitlines() if line.lstrip().startswith("::")] == []


@QUICK
@given(TEXT)
def test_escaped_text_unescapes_to_visible_text(text):
    assert html.unescape(escape_markup(text)) == visible(text, limit=200)
    assert not set(escape_markup(text)) & set("<>\"'|`\\*_[]~@!$")


def test_worked_example_is_escaped_as_specified():
    assert escape_markup("<b>a|b</b>`\x1b[31m") == "&lt;b&gt;a&#124;b&lt;/b&gt;&#96;&#92;x1b&#91;31m"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://x.example", "http&#58;//x.example"),
        ("www.x.example", "www&#46;x.example"),
        ("WWW.x.example", "WWW&#46;x.example"),
        ("a:b", "a:b"),
        ("a  \t\n b", "a b"),
        ("x" * 201, "x" * 199 + "…"),
        ("x" * 200, "x" * 200),
        ("\ud800", "\ufffd"),
        ("\u202e", "&#92;u202e"),
        ("\U000e0041", "&#92;U000e0041"),
    ],
)
def test_each_step_of_escaping_gives_specified_text(text, shown):
    assert escape_markup(text) == shown


@pytest.mark.parametrize(
    ("usages", "told"),
    [
        ([{"prompt_tokens": 1}, {"prompt_tokens": 1}], "Cost: not known for 2 calls."),
        ([{"prompt_tokens": 1}, {"prompt_tokens": 1, "cost_usd": 0.5}], "Cost: at least 0.5000 USD for 2 calls."),
    ],
)
def test_unknown_cost_is_not_shown_as_zero(usages, told):
    samples = [{"id": f"s{place}", "input": {}, "expected_output": "a"} for place in range(2)]
    entries = [{"id": f"s{place}", "output": "a", "usage": usage, "model": "m"} for place, usage in enumerate(usages)]
    report = dm.evaluate(samples, outputs=entries, metrics=["exact-match"])
    assert told in report.to_markdown()
