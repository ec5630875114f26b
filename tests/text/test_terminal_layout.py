import html
import re
from itertools import pairwise

import pytest
from rich.cells import cell_len

from deemster.report.github_summary import github_job_summary
from deemster.report.report_sections import report_sections
from tests.builders.printed import printed
from tests.report.runs import full_report


@pytest.fixture
def quickstart(monkeypatch):
    import deemster as dm

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1750000000")
    folder = "examples/quickstart"
    return dm.evaluate(
        f"{folder}/golden.yml",
        outputs=f"{folder}/answers.yml",
        metrics=["exact-match", {"rouge-l": {"threshold": 0.6}}, {"length-within": {"max": 40, "unit": "words"}}],
        gate={"min_macro_f1": 0.5, "cohorts": {"policy": {"min_macro_f1": 0.1}}},
    )


def shown(report, width):
    return printed(report_sections(report), width=width, color_system=None, highlight=False)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_width_cuts_a_name_or_a_number(quickstart, width):
    text = shown(quickstart, width)
    for name, figures in quickstart.metrics.items():
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert f"{figures.mean:.4f}" in line
        assert f"{figures.pass_rate_interval.low:.4f} - {figures.pass_rate_interval.high:.4f}" in line


@pytest.mark.parametrize("width", [20, 40])
def test_table_without_room_is_printed_row_by_row_with_every_number(quickstart, width):
    words = shown(quickstart, width).replace("\u00a0", " ").split()
    for figures in quickstart.metrics.values():
        low, high = figures.pass_rate_interval
        for number in (figures.mean, figures.p5, figures.p95, figures.pass_rate, low, high):
            assert any(word.strip(",") == f"{number:.4f}" for word in words)


def test_narrow_terminal_drops_the_percentiles_first_and_says_so(quickstart):
    heads = {
        width: next(line for line in shown(quickstart, width).splitlines() if line.startswith("metric"))
        for width in (70, 120)
    }
    assert "p50" in heads[120]
    assert "p50" not in heads[70]
    assert "pass-rate" in heads[70]
    assert "No room for: p5, p50, p95" in shown(quickstart, 70)
    assert "No room for" not in shown(quickstart, 120)


def test_table_is_not_wider_than_terminal(quickstart):
    assert max(len(line.rstrip()) for line in shown(quickstart, 100).splitlines()) <= 100


def test_failed_samples_are_shown_with_outputs_and_what_differs(quickstart):
    text = " ".join(shown(quickstart, 200).split())
    assert "expected: You can return an item within 30 days of delivery." in text
    assert "output: You have 14 days to change your mind." in text
    assert "exact-match: 0.0000, passes with >= 0.5 rouge-l: 0.2222, passes with >= 0.6" in text
    assert "[-; choose it in the basket-]" in text


@pytest.mark.parametrize("width", [80, 120])
def test_report_of_a_run_matches_golden_file_in_a_wide_and_a_narrow_terminal(golden, width):
    golden(f"report/terminal-{width}.txt", shown(full_report(), width))


def test_narrow_terminal_breaks_no_number_and_loses_no_column_silently():
    narrow, wide = (shown(full_report(), width) for width in (80, 120))
    assert max(map(cell_len, narrow.splitlines())) <= 80
    assert set(re.findall(r"\d+\.\d{4}", narrow)) <= set(re.findall(r"\d+\.\d{4}", wide))
    for title in ("Gate", "Per-metric aggregates", "Cohorts by metadata.tags", "Usage and cost"):
        # The plots of a table are a table of their own below it; the next section begins with a capital letter.
        few, all_columns = (re.split(r"\n\n(?=[A-Z])", text.split(f"\n{title}\n")[1])[0] for text in (narrow, wide))
        head = next(above for above, line in pairwise(all_columns.splitlines()) if line.startswith("──"))
        # The name of a column stands in the head, in the line below the table, or beside each of its values.
        assert [name for name in re.split(r"\s{2,}", head.strip())[1:] if name not in " ".join(few.split())] == []


def test_every_renderer_says_once_beside_macro_f1_that_it_is_the_mean_pass_rate():
    report = full_report()
    said = f"acro-F1 (avg pass-rate across all metrics): {report.macro_f1:.4f}"
    texts = {
        "terminal": shown(report, 120),
        "md": report.to_markdown(),
        "html": report.to_html(),
        "github": github_job_summary(report),
    }
    plain = {name: html.unescape(re.sub(r"<[^>]*>|[*`]", "", text)) for name, text in texts.items()}
    assert {name: text.count(said) for name, text in plain.items()} == dict.fromkeys(texts, 1)
