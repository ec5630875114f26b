"""Renders sections and plots as one HTML page that loads nothing and runs no script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deemster import __version__
from deemster.errors import plural
from deemster.text._page_style import STYLE
from deemster.text.escaping import (
    PASSAGE_LIMIT,
    SENTENCE_LIMIT,
    code_element,
    escape_markup,
    passage_element,
    split_indent,
)
from deemster.text.svg_plots import axis_drawing, cell_drawing
from deemster.text.table_plots import HistogramCell, IntervalCell, PlotColumn
from deemster.text.text_sections import (
    DataText,
    DiffText,
    Figure,
    MetricName,
    PassageText,
    SentenceText,
    ShadedNumber,
    TextDetail,
    TextLine,
    TextSection,
    TextTable,
    is_numeric_cell,
)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# The same as that of the viewer and of the site.
_LOGO = (
    '<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#2a5bd7"/>'
    '<path d="M6 16h20M6 11.5v9M26 11.5v9" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/>'
    '<circle cx="18" cy="16" r="4.6" fill="#fff"/></svg>'
)
# A name that is no longer stays on one line.
_SHORT = 28
# A table with more rows scrolls in its own box, under its head.
_LONG = 30
# So many of the details of a section are open: what comes first matters most.
_OPENED = 3
_STATUSES = frozenset({"pass", "fail", "inconclusive", "skipped"})


class Tile(NamedTuple):
    """A number that a reader looks for first.

    Attributes:
        label: What it is.
        value: The number.
        about: What stands below it, such as its interval.
        plot: Its interval as a drawing; None for none.
    """

    label: str
    value: str
    about: str = ""
    plot: PlotColumn | None = None


class PageHead(NamedTuple):
    """The first screen of a page.

    Attributes:
        section: The title of the page, and the facts about what it shows.
        kind: How it came out: `pass`, `fail` or `inconclusive`; empty where nothing is decided.
        verdict: The answer in one sentence; empty where the title says it.
        tiles: The main numbers.
        question: The heading of the findings.
        findings: What failed, and why.
    """

    section: TextSection
    kind: str = ""
    verdict: TextLine = ()
    tiles: Sequence[Tile] = ()
    question: str = ""
    findings: Sequence[TextLine] = ()


def rate_tile(label: str, value: float | None, ends: tuple[float, float] | None, *, shown: str, about: str) -> Tile:
    """A share with its interval.

    Args:
        label: What it is.
        value: The share; None where it is undefined.
        ends: Its interval.
        shown: The share as text.
        about: The interval as text.
    """
    plot = None if ends is None else PlotColumn(label, [IntervalCell(value, ends)], label)
    return Tile(label, shown, about, plot)


def render_page(title: str, head: PageHead, sections: Sequence[TextSection]) -> str:
    """A page that loads nothing; text from data is escaped and stands inside code elements.

    Args:
        title: The title of the window.
        head: The first screen.
        sections: What follows, in order.
    """
    links = "".join(
        f'<li><a href="#part-{number}">{_short_title(section.title)}</a></li>'
        for number, section in enumerate(sections, 1)
    )
    body = "\n".join(block for number, section in enumerate(sections, 1) for block in _section(section, number))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape_markup(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{_head(head)}\n"
        f'<nav aria-label="Contents">\n<ul>{links}</ul>\n</nav>\n'
        f"<main>\n{body}\n</main>\n"
        f"<footer>\n<p>Written by deemster {escape_markup(__version__)}. "
        "This page loads nothing and runs no script.</p>\n</footer>\n"
        "</body>\n</html>\n"
    )


def plain_page(parts: Sequence[TextSection]) -> str:
    """A page of sections alone: the lines of the first stand in its head."""
    overview, *rest = parts
    if overview.table is not None:
        rest.insert(0, overview._replace(title=("Overview",), lines=()))
    head = PageHead(TextSection(overview.title, overview.lines))
    return render_page(f"deemster: {''.join(overview.title)}", head, rest)


def render_part(parts: Sequence[TextSection]) -> str:
    """Sections as a part of a page, for a notebook."""
    blocks = (block for section in parts for block in (*_heading(section), *_blocks(section)))
    return "\n".join(["<div>", *blocks, "</div>"])


def _heading(section: TextSection) -> Iterator[str]:
    if section.title:
        yield f"<h2>{_joined(section.title)}</h2>"


def _head(head: PageHead) -> str:
    kind = f" {head.kind}" if head.kind else ""
    blocks = [f'<header class="head{kind}">', f"<h1>{_LOGO}{_joined(head.section.title)}</h1>"]
    if head.verdict:
        blocks.append(f'<p class="verdict">{_joined(head.verdict)}</p>')
    blocks += (f'<p class="warning">{_joined(line)}</p>' for line in head.section.lines if _is_warning(line))
    if head.tiles:
        blocks.append(f'<dl class="tiles">\n{chr(10).join(map(_tile, head.tiles))}\n</dl>')
    if head.findings:
        found = "\n".join(f"<li>{_joined(line)}</li>" for line in head.findings)
        blocks.append(f"<h2>{escape_markup(head.question)}</h2>\n<ul>\n{found}\n</ul>")
    facts = [line for line in head.section.lines if not _is_warning(line) and line != head.verdict]
    blocks += (f'<p class="fact">{_joined(line)}</p>' for line in facts)
    return "\n".join([*blocks, "</header>"])


def _short_title(title: TextLine) -> str:
    """A title without its numbers and names, for the list of contents."""
    return escape_markup(re.split(r"[(:]", title[0])[0].strip(", "))


def _is_warning(line: TextLine) -> bool:
    return line[0].startswith(("Warning:", "Flag:"))


def _tile(tile: Tile) -> str:
    plot = "" if tile.plot is None else cell_drawing(tile.plot.cells[0], tile.plot)
    about = f'<dd class="about">{escape_markup(tile.about)}</dd>' if tile.about else ""
    drawn = f"<dd>{plot}</dd>" if plot else ""
    return f"<div><dt>{escape_markup(tile.label)}</dt><dd>{escape_markup(tile.value)}</dd>{drawn}{about}</div>"


def _section(section: TextSection, number: int) -> Iterator[str]:
    yield f'<section aria-labelledby="part-{number}">\n<h2 id="part-{number}">{_joined(section.title)}</h2>'
    yield from _blocks(section)
    if section.figures:
        yield '<div class="figures">'
        for figure in section.figures:
            yield from _figure(figure)
        yield "</div>"
    yield "</section>"


def _figure(figure: Figure) -> Iterator[str]:
    kind = ' class="square"' if figure.is_square else "" if figure.svg else ' class="matrix"'
    caption = escape_markup(figure.caption, limit=SENTENCE_LIMIT)
    yield f"<figure{kind}>\n<figcaption>{caption}</figcaption>\n{figure.svg}"
    if figure.table is not None:
        table = _table(figure.table, figure.caption)
        yield _fold("The same as a table", table) if figure.svg else table
    yield "</figure>"


def _fold(summary: str, content: str) -> str:
    return f"<details>\n<summary>{escape_markup(summary)}</summary>\n{content}\n</details>"


def _blocks(section: TextSection) -> Iterator[str]:
    for line in section.lines:
        if isinstance(line[0], DiffText):
            rows = map(split_indent, line[0].splitlines())
            shown = (indent + escape_markup(text, limit=PASSAGE_LIMIT) for indent, text in rows)
            yield f"<pre>{chr(10).join(shown)}</pre>"
        else:
            yield f"<p>{_joined(line)}</p>"
    if section.table is not None:
        table = _table(section.table, "".join(section.title))
        yield _fold(f"Table of {plural(len(section.table.rows), 'row')}", table) if section.folds else table
    for place, detail in enumerate(section.details):
        yield _detail(detail, is_open=place < _OPENED)
    for line in section.after:
        yield f"<p>{_joined(line)}</p>"


def _detail(detail: TextDetail, *, is_open: bool) -> str:
    fields = "\n".join(f"<dt>{_part(field.label)}</dt><dd>{_joined(field.line)}</dd>" for field in detail.fields)
    metrics = [escape_markup(field.label) for field in detail.fields if isinstance(field.label, MetricName)]
    named = f' <span class="fact">{", ".join(metrics)}</span>' if metrics else ""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{_joined(detail.title)}{named}</summary>\n<dl>\n{fields}\n</dl>\n</details>"


def _joined(line: TextLine) -> str:
    return "".join(map(_part, line))


def _part(part: str) -> str:
    if isinstance(part, PassageText):
        return passage_element(part)
    if isinstance(part, SentenceText):
        return escape_markup(part, limit=SENTENCE_LIMIT)
    return code_element(part) if isinstance(part, DataText) else escape_markup(part, limit=SENTENCE_LIMIT)


def _table(content: TextTable, name: str) -> str:
    """A table in a box that scrolls; the plots stand after the column that names the rows."""
    numeric = [all(is_numeric_cell(row[place]) for row in content.rows) for place in range(len(content.head))]
    naming = _naming_column(content)
    heads = [f'<th scope="col"{_numbers(numeric[place])}>{_part(cell)}</th>' for place, cell in enumerate(content.head)]
    heads[naming + 1 : naming + 1] = map(_plot_head, content.plots)
    rows = []
    for place, row in enumerate(content.rows):
        cells = [
            _row_head(cell) if column == naming else _cell(cell, is_number=numeric[column])
            for column, cell in enumerate(row)
        ]
        cells[naming + 1 : naming + 1] = (
            f'<td class="plot">{cell_drawing(plot.cells[place], plot)}</td>' for plot in content.plots
        )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(rows)
    kind = "scroll long" if len(rows) > _LONG else "scroll"
    return (
        f'<div class="{kind}" role="group" tabindex="0" aria-label="Table: {escape_markup(name)}">'
        f"<table>\n<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _row_head(cell: str) -> str:
    short = ' class="short"' if len(cell) <= _SHORT else ""
    return f'<th scope="row"{short}>{_part(cell)}</th>'


def _naming_column(content: TextTable) -> int:
    """The column that says what a row is about: the first with text from data, else the first."""
    first = content.rows[0] if content.rows else ()
    return next((place for place, cell in enumerate(first) if isinstance(cell, DataText)), 0)


def _numbers(is_number: bool) -> str:  # noqa: FBT001 - one question
    return ' class="number"' if is_number else ""


def _plot_head(plot: PlotColumn) -> str:
    axis = axis_drawing(plot) if isinstance(plot.cells[0], (IntervalCell, HistogramCell)) else ""
    return f'<th scope="col" class="plot">{escape_markup(plot.name)}{axis}</th>'


def _cell(part: str, *, is_number: bool) -> str:
    if isinstance(part, SentenceText):
        return f'<td class="sentence">{escape_markup(part, limit=SENTENCE_LIMIT)}</td>'
    if isinstance(part, DataText):
        return f'<td class="text">{code_element(part)}</td>'
    if isinstance(part, ShadedNumber) and part.share is not None:
        shade = f"{'rate' if part.is_rate else 'share'}-{round(10 * part.share)}"
        return f'<td class="number {shade}">{escape_markup(part)}</td>'
    if part in _STATUSES:
        return f'<td class="{part}">{part}</td>'
    return f"<td{_numbers(is_number)}>{escape_markup(part)}</td>"
