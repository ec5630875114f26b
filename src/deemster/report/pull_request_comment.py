"""The comment under a pull request: verdict, checks, and the samples that newly fail, below the limit of GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from deemster.datasets import SelectedPart
from deemster.errors import plural
from deemster.gate import GateDecision
from deemster.report.failing_samples import count_failing, describe_passed, describe_sample, worst_samples
from deemster.report.gate_sections import gate_section, gate_verdict
from deemster.report.panel_lines import panel_lines
from deemster.text.markdown_layout import join_line, markdown_blocks, markdown_table
from deemster.text.number_format import format_percent
from deemster.text.text_sections import DataText, PassageText, TextDetail, TextField, TextLine, TextSection

if TYPE_CHECKING:
    from deemster.report.report_document import Report

# The most bytes of a comment. GitHub counts characters, which are never more than the bytes.
LIMIT = 65_535
# Bytes that samples leave for the lines after them.
_RESERVE = 2_000
_MOST_ROWS = 40
_OPEN_ROWS = 12
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


class CommentContent(NamedTuple):
    """What a comment says.

    Attributes:
        suite: By which it is found again.
        gate: What the gate decided.
        part: The part of the dataset that was run; None for the whole.
        verdict: What became of samples, in one sentence.
        meaning: What that means, in one sentence.
        notes: Warnings, and which runs these are.
        tables: Tables that are folded away.
        title: What the samples are.
        total: How many there are.
        samples: The first of them.
        run: The run, and the version of this package.
        tables_title: What the folded tables are.
    """

    suite: str
    gate: GateDecision | None
    part: SelectedPart | None
    verdict: TextLine
    meaning: str
    notes: Sequence[TextLine]
    tables: Sequence[TextSection]
    title: str
    total: int
    samples: Sequence[TextDetail]
    run: tuple[str, str]
    tables_title: str = "Pass-rates and cohorts"


def pull_request_comment(report: Report) -> str:
    """What a run says, as Markdown for a pull request.

    Text from data is escaped and stands inside code elements: it mentions nobody, links nowhere and is no command.

    Args:
        report: The report of the run, which has the decision of the gate.
    """
    run = report.run
    samples = [
        describe_sample(report, failing.sample, failing.executions) for failing in worst_samples(report, _MOST_SAMPLES)
    ]
    content = CommentContent(
        suite=run.suite or report.dataset.name,
        gate=report.gate,
        part=run.part,
        verdict=describe_passed(report),
        meaning=f"The mean pass-rate is {format_percent(report.macro_f1)}.",
        notes=run_notes(report),
        tables=(),
        title="Samples that did not pass",
        total=count_failing(report),
        samples=samples,
        run=(run.id, report.tool_version),
    )
    return render_comment(content)


def run_notes(report: Report) -> list[TextLine]:
    """What a reader must know of a run before believing its numbers."""
    lines: list[TextLine] = []
    if report.run.status != "complete":
        reason = DataText(report.run.reason or "no reason is known")
        lines.append((f"Warning: this run is {report.run.status}: ", reason))
    return [*lines, *panel_lines(report)]


def render_comment(content: CommentContent) -> str:
    """A comment as Markdown, below the limit of GitHub."""
    blocks = [comment_marker(content.suite), _verdict(content)]
    blocks += map(join_line, content.notes)
    if content.gate is not None and content.gate.checks:
        blocks += _checks(content.gate, content.part)
    if content.tables:
        blocks += [f"<details><summary>{content.tables_title}</summary>", *_tables(content.tables), "</details>"]
    if content.total:
        blocks.append(f"#### {content.title}: {content.total:,}")
        shown = list(_fitting(content.samples, LIMIT - _RESERVE - _size(blocks)))
        rest = content.total - len(shown)
        blocks += [*shown, f"... and {rest:,} more: see the report."] if rest else shown
    blocks.append(f"<sub>{join_line(('Run ', DataText(content.run[0]), ', deemster ', content.run[1], '.'))}</sub>")
    return "\n\n".join(blocks) + "\n"


def _verdict(content: CommentContent) -> str:
    """The line that a reviewer reads: what became of samples, what that means, what the gate decides."""
    gate, happened = content.gate, join_line(content.verdict)
    if gate is None or not gate.checks:
        return f"**{happened}** {content.meaning}".rstrip()
    sign = f"{_SIGNS[gate.decision]} " if gate.is_decided else ""
    sentences = [f"**{sign}{happened}**", content.meaning, gate_verdict(gate, content.part)]
    return " ".join(filter(None, sentences))


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
