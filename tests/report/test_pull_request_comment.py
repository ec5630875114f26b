import msgspec
import pytest
from hypothesis import given
from markdown_it import MarkdownIt

from deemster.comparison.comparison_comment import comparison_comment
from deemster.gate import GateCheck, GateDecision
from deemster.report.pull_request_comment import LIMIT, comment_marker, pull_request_comment
from tests.comparison.test_comparison_sections import TEXT, renamed
from tests.report.comparisons import HOSTILE, compared, helpdesk, hostile
from tests.report.runs import full_report, small_report
from tests.report.test_report_sections import MARKDOWN, NAMES, QUICK, parsed
from tests.report.test_report_sections import hostile as hostile_report


def check(number, status, name="metrics.x"):
    because = "it fell" if status == "fail" else "it holds"
    return GateCheck(
        name=f"{name}{number}", observed=0.5, low=0.4, high=0.6, required=0.7, status=status, because=because
    )


def decided(comparison, *statuses):
    decision = "fail" if "fail" in statuses else "pass"
    checks = tuple(check(number, status) for number, status in enumerate(statuses))
    gate = GateDecision(decision=decision, mode="two-way", checks=checks)
    return msgspec.structs.replace(comparison, gate=gate)


def render(text):
    """As GitHub does: tables, strikethrough, and HTML that is written in Markdown."""
    return parsed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))


def test_comment_of_a_comparison(golden):
    golden("report/comment.md", comparison_comment(decided(helpdesk(), "pass", "fail", "skipped")))


def test_comment_of_a_run_without_a_baseline(golden):
    golden("report/comment-run.md", pull_request_comment(full_report()))


def test_comment_of_a_run_with_a_baseline_has_the_gate_of_the_run():
    text = comparison_comment(helpdesk(), full_report())
    assert "**❌ 2 samples broke (<code>refunds-00</code> and <code>shipping-01</code>), and 1 was fixed" in text
    assert " Gate: fail (" in text
    assert "#### Samples that broke: 2" in text


@pytest.mark.parametrize(("status", "sign"), [("pass", "✅"), ("fail", "❌")])
def test_one_line_has_the_verdict(status, sign):
    lines = comparison_comment(decided(helpdesk(), status)).splitlines()
    assert lines[0] == "<!-- deemster comment: support -->"
    assert lines[2].startswith(f"**{sign} 2 samples broke (<code>refunds-00</code> and <code>shipping-01</code>)")
    assert lines[2].endswith(f" Gate: {status} (1 {status}ed).")


def test_comparison_without_a_gate_has_its_verdict():
    happened, _, meaning = comparison_comment(helpdesk()).splitlines()[2].partition(".** ")
    assert happened.startswith("**2 samples broke (")
    assert helpdesk().verdict.endswith(meaning)


def test_incomplete_run_is_a_warning():
    report = small_report("a")
    run = msgspec.structs.replace(report.run, status="incomplete", reason="the budget is spent")
    text = pull_request_comment(msgspec.structs.replace(report, run=run))
    assert "Warning: this run is incomplete: <code>the budget is spent</code>" in text


def test_warning_of_a_comparison_is_a_sentence_and_only_its_names_are_code():
    warning = "The candidate `20261119-a1` is incomplete."
    text = comparison_comment(msgspec.structs.replace(helpdesk(), warnings=(warning,)))
    assert f"Warning: {warning}\n" in text


@pytest.mark.parametrize("link", ["See GH-1.", "See `x` @all.", "See Www.evil.example", "See `x", "See `@all`."])
def test_warning_with_what_could_be_a_link_or_a_mention_stands_in_code(link):
    text = comparison_comment(msgspec.structs.replace(helpdesk(), warnings=(link,)))
    assert "Warning: <code>See " in text


def test_checks_that_fail_come_first_and_many_are_folded_and_cut():
    text = comparison_comment(decided(helpdesk(), *["pass"] * 60, "fail"))
    rows = [line for line in text.splitlines() if line.startswith(("| pass", "| fail"))]
    assert rows[0].startswith("| fail")
    assert len(rows) == 40
    assert "<summary>49 more checks</summary>" in text
    assert "... and 21 more." in text


def test_reasons_of_checks_are_folded():
    text = comparison_comment(decided(helpdesk(), "pass", "fail"))
    assert "<details><summary>Why a check did not pass</summary>\n\n- <code>metrics.x1</code>: it fell\n" in text
    assert "it holds" not in text


@pytest.mark.parametrize("words", [10, 3_000])
def test_comment_stays_below_the_limit_and_says_what_it_leaves_out(words):
    ids = [f"q{place}-{'x' * 150}" for place in range(300)]
    said = " ".join(f"&<{place}>" for place in range(words))
    comparison = compared(
        dict.fromkeys(ids, said), dict.fromkeys(ids, f"{said} not"), expected=dict.fromkeys(ids, said)
    )
    text = comparison_comment(decided(comparison, *["fail"] * 60))
    assert len(text.encode()) <= LIMIT < 65_536
    shown = text.count("<details><summary><code>q")
    assert 0 < shown < 300
    assert f"... and {300 - shown} more: see the report." in text
    assert text.rstrip().endswith("</sub>")


def test_long_report_stays_below_the_limit():
    ids = [f"q{place}" for place in range(200)]
    report = small_report(*ids, outputs=dict.fromkeys(ids, "no " * 3_000))
    assert len(pull_request_comment(report).encode()) <= LIMIT


@QUICK
@given(name=NAMES)
def test_hostile_text_makes_no_element_mention_or_link(name):
    for text in (comparison_comment(decided(renamed(name), "fail")), pull_request_comment(hostile_report(name))):
        page = render(text)
        assert page.elements <= MARKDOWN | TEXT | {"h4", "sub", "s"}
        assert page.attributes == set()
        assert len(page.odd) == 1
        assert page.odd[0].startswith(" deemster comment: ")


def test_attacks_stay_inside_of_code():
    text = comparison_comment(hostile())
    for attack in HOSTILE:
        assert attack not in text
    assert "@" not in text
    assert "https://" not in text
    assert "##vso[" not in text
    assert "a" not in render(text).elements


@pytest.mark.parametrize("name", [*HOSTILE, "--><script>", "--", "", "é", "x" * 500])
def test_marker_is_one_short_comment(name):
    marker = comment_marker(name)
    assert marker.startswith("<!-- deemster comment: ")
    assert marker.endswith(" -->")
    inside = marker.removeprefix("<!--").removesuffix("-->")
    assert "--" not in inside
    assert ">" not in inside
    assert len(marker) < 120


def test_two_suites_have_two_comments():
    assert comment_marker("refunds") != comment_marker("shipping")
