"""The comment under a pull request: verdict, checks, and the samples that newly fail, below the limit of GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from deemster.datasets import SelectedPart
from deemster.errors import plural
from deemster.report.comparison_sections import comparison_sections, comparison_verdict, describe_change
from deemster.report.failing_samples import count_failing, describe_sample, failing_samples
from deemster.report.report_sections import gate_section, gate_verdict, panel_lines
from deemster.results import GateDecision
from deemster.text.markdown_layout import join_line, markdown_blocks, markdown_table
from deemster.text.number_format import format_number
from deemster.text.text_sections import DataText, PassageText, TextDetail, TextField, TextLine, TextSection, with_keys

if TYPE_CHECKING:
    from deemster.report.comparison import Comparison
    from deemster.report.report_document import Report

# The most bytes of a comment. GitHub counts characters, which are never more than the bytes.
LIMIT = 65_535
# Bytes that samples leave for the lines after them.
_RESERVE = 2_000
_MOST_ROWS = 40
_OPEN_ROWS = 12
_MOST_WARNINGS = 10
_MOST_SAMPLES = 50
# A text of a sample or model, and a word difference, are cut sooner than in a report.
_PASSAGE = 600
_PARTS = 60
_SIGNS = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️"}
_ORDER = {"fail": 0, "inconclusive": 1, "pass": 2, "skipped": 3}
_NOT_IN_MARKER = re.compile(r"[^A-Za-z0-9._]+")


def comment_marker(name: str) -> str:
    """The hidden first line by which the comment of a suite is found again.

    >>> comment_marker("refunds --> x")
    '<!-- deemster comment: refunds-x -->'
    """
    return f"<!-- deemster comment: {_NOT_IN_MARKER.sub('-', name).strip('-')[:80]} -->"


class _Content(NamedTuple):
    """What a comment says.

    Attributes:
        suite: By which it is found again.
        gate: What the gate decided.
        part: The part of the dataset that was run; None for the whole.
        verdict: The sentence beside the gate's.
        notes: Warnings, and which runs these are.
        tables: Tables that are folded away.
        title: What the samples are.
        total: How many there are.
        samples: The first of them.
        run: The run, and the version of this package.
    """

    suite: str
    gate: GateDecision | None
    part: SelectedPart | None
    verdict: str
    notes: Sequence[TextLine]
    tables: Sequence[TextSection]
    title: str
    total: int
    samples: Sequence[TextDetail]
    run: tuple[str, str]


def pull_request_comment(report: Report, comparison: Comparison | None = None) -> str:
    """What a run says, and its comparison with a baseline, as Markdown for a pull request.

    Text from data is escaped and stands inside code elements: it mentions nobody, links nowhere and is no command.

    Args:
        report: The report of the run, which has the decision of the gate.
        comparison: The comparison with the baseline, where there is one.
    """
    run = report.run
    lines: list[TextLine] = []
    if run.status != "complete":
        lines.append((f"Warning: this run is {run.status}: ", DataText(run.reason or "no reason is known")))
    lines += panel_lines(report)
    if comparison is not None:
        found = _compared(msgspec.structs.replace(comparison, gate=report.gate))
        return _render(found._replace(notes=[*lines, *found.notes]))
    samples = [
        describe_sample(report, failing.sample, failing.executions)
        for failing in islice(failing_samples(report), _MOST_SAMPLES)
    ]
    verdict = f"Macro-F1 is {format_number(report.macro_f1)} over {plural(report.totals.samples, 'sample')}."
    content = _Content(
        suite=run.suite or report.dataset.name,
        gate=report.gate,
        part=run.part,
        verdict=verdict,
        notes=lines,
        tables=(),
        title="Samples that did not pass",
        total=count_failing(report),
        samples=samples,
        run=(run.id, report.tool_version),
    )
    return _render(content)


def comparison_comment(comparison: Comparison) -> str:
    """What a comparison says, as Markdown for a pull request."""
    return _render(_compared(comparison))


def _compared(comparison: Comparison) -> _Content:
    run = comparison.candidate
    headline, *parts = comparison_sections(comparison, full=False)
    lines = [line for line in headline.lines if not line[0].startswith("Gate:")]
    warnings = [line for line in lines if line[0].startswith("Warning:")]
    runs = tuple(part for line in lines if line not in warnings for part in (*line, " "))[:-1]
    broken = [example for example in comparison.examples if example.status == "newly_failing"]
    return _Content(
        suite=run.suite or run.dataset,
        gate=comparison.gate,
        part=run.part,
        verdict=comparison_verdict(comparison),
        notes=[*warnings[:_MOST_WARNINGS], runs],
        tables=with_keys(parts, ("pass-rates", "cohorts")),
        title="Newly failing samples",
        total=comparison.statuses.get("newly_failing", 0),
        samples=[describe_change(comparison, example) for example in broken],
        run=(run.id, comparison.tool_version),
    )


def _render(content: _Content) -> str:
    blocks = [comment_marker(content.suite), _verdict(content)]
    blocks += map(join_line, content.notes)
    if content.gate is not None and content.gate.checks:
        blocks += _checks(content.gate, content.part)
    if content.tables:
        blocks += ["<details><summary>Pass-rates and cohorts</summary>", *_tables(content.tables), "</details>"]
    if content.total:
        blocks.append(f"#### {content.title}: {content.total:,}")
        shown = list(_fitting(content.samples, LIMIT - _RESERVE - _size(blocks)))
        rest = content.total - len(shown)
        blocks += [*shown, f"... and {rest:,} more: see the report."] if rest else shown
    blocks.append(f"<sub>{join_line(('Run ', DataText(content.run[0]), ', deemster ', content.run[1], '.'))}</sub>")
    return "\n\n".join(blocks) + "\n"


def _verdict(content: _Content) -> str:
    """The one line that a reviewer reads."""
    gate = content.gate
    if gate is None or not gate.checks:
        return f"**{content.verdict}**"
    return f"**{_SIGNS[gate.decision]} {gate_verdict(gate, content.part)} {content.verdict}**"


def _checks(gate: GateDecision, part: SelectedPart | None) -> Iterator[str]:
    """The table of checks, what needs attention first; later checks, and the reasons, are folded away."""
    table = gate_section(gate, part).table
    if table is None:
        return
    rows = sorted(table.rows, key=lambda row: _ORDER.get(row[0], 0))[:_MOST_ROWS]
    narrow = table._replace(head=table.head[:-1], rows=[row[:-1] for row in rows])
    yield markdown_table(narrow._replace(rows=narrow.rows[:_OPEN_ROWS]))
    if len(table.rows) > _OPEN_ROWS:
        yield f"<details><summary>{plural(len(table.rows) - _OPEN_ROWS, 'more check')}</summary>"
        yield markdown_table(narrow._replace(rows=narrow.rows[_OPEN_ROWS:]))
        yield from (f"... and {rest:,} more." for rest in (len(table.rows) - _MOST_ROWS,) if rest > 0)
        yield "</details>"
    if reasons := [("- ", row[1], ": ", row[-1]) for row in rows if row[0] != "pass"]:
        yield "<details><summary>Why a check did not pass</summary>"
        yield "\n".join(map(join_line, reasons))
        yield "</details>"


def _tables(sections: Sequence[TextSection]) -> Iterator[str]:
    """The tables of some sections; long ones are cut."""
    for section in sections:
        if section.table is None:
            continue
        rows = section.table.rows
        yield markdown_table(section.table._replace(rows=rows[:_MOST_ROWS]))
        if len(rows) > _MOST_ROWS:
            yield f"... and {len(rows) - _MOST_ROWS:,} more."


def _fitting(samples: Sequence[TextDetail], room: int) -> Iterator[str]:
    """As many samples as there is room for."""
    for sample in samples:
        _, *blocks = markdown_blocks(TextSection((), details=[_shorten(sample)]), 0)
        room -= _size(blocks)
        if room < 0:
            return
        yield "\n\n".join(blocks)


def _shorten(detail: TextDetail) -> TextDetail:
    """A detail with its texts cut."""
    fields = [TextField(field.label, tuple(map(_cut, field.line[:_PARTS]))) for field in detail.fields]
    return TextDetail(detail.title, fields)


def _cut(part: str) -> str:
    return type(part)(f"{part[: _PASSAGE - 1]}…") if isinstance(part, PassageText) and len(part) > _PASSAGE else part


def _size(blocks: Sequence[str]) -> int:
    return sum(len(block.encode()) + 2 for block in blocks)
