"""Renders a report as one HTML page that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from deemster.report._escaping import SENTENCE_LIMIT, code_element, escape_markup, passage_element
from deemster.report.report_sections import report_sections
from deemster.report.text_sections import DataText, PassageText, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.report.report_document import Report

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th, td { vertical-align: top; }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 8rem; }
td.sentence { white-space: normal; min-width: 16rem; }
th { color: var(--dim); font-weight: 500; }
code { font-size: .92em; }
.pass { color: #1a7f37; } .fail { color: #cf222e; font-weight: 600; } .inconclusive { color: #9a6700; }
details { border-bottom: 1px solid var(--line); padding: .3rem 0; } summary { cursor: pointer; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem .8rem; margin: .5rem 0 .5rem 1rem; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; }
del code { background: #cf222e33; } ins code { background: #1a7f3733; } ins { text-decoration: none; }
.skipped { color: var(--dim); } .warning { border-left: 4px solid #9a6700; padding-left: .8rem; font-weight: 600; }
"""
# Only pages with figures have it.
_FIGURE_STYLE = """
figure { margin: 1.5rem 0; } figcaption { color: var(--dim); margin-bottom: .5rem; }
svg { max-width: 100%; height: auto; font: 12px system-ui, sans-serif; } svg text { fill: currentColor; }
.grid { stroke: var(--line); } .zero { stroke: var(--dim); } .margin { stroke: #9a6700; stroke-dasharray: 4 3; }
.bar { stroke: currentColor; stroke-width: 2; } .dot, .point { fill: currentColor; } .point { fill-opacity: .6; }
.bar, .dot, .point { color: var(--dim); } .better * { color: #1a7f37; } .worse * { color: #cf222e; }
"""
_STATUSES = frozenset({"pass", "fail", "inconclusive", "skipped"})


class Figure(str):
    """A drawing as SVG; what it shows of data is escaped."""

    __slots__ = ()


def html_page(report: Report) -> str:
    """The whole report as a page; text from data is escaped and stands inside code elements."""
    return render_page(f"deemster report: {report.dataset.name}", report_sections(report))


def render_page(title: str, parts: Sequence[TextSection | Figure]) -> str:
    """Sections and figures as a page that loads nothing; text from data is escaped.

    Args:
        title: The title of the page.
        parts: What is on it, in order; the first has the heading of the whole.
    """
    body = "\n".join(block for level, part in enumerate(parts) for block in _blocks(part, level))
    style = _STYLE + (_FIGURE_STYLE if any(isinstance(part, Figure) for part in parts) else "")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape_markup(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


_NOTEBOOK = ("Gate", "Per-metric", "Macro-F1", "Aggregate success-rate", "Cohorts", "Failures", "Samples that did not")


def notebook_html(report: Report) -> str:
    """The report as a part of a page, for a notebook: what a reader looks for first."""
    head, *others = report_sections(report)
    parts = [head, *(section for section in others if section.title[0].startswith(_NOTEBOOK))]
    return render_part(parts)


def render_part(parts: Sequence[TextSection]) -> str:
    """Sections as a part of a page, for a notebook."""
    return "\n".join(["<div>", *(block for section in parts for block in _blocks(section, 1)), "</div>"])


def _blocks(section: TextSection | Figure, level: int) -> Iterator[str]:
    if isinstance(section, Figure):
        yield f"<figure>{section}</figure>"
        return
    heading = "h1" if level == 0 else "h2"
    yield f"<{heading}>{_joined(section.title)}</{heading}>"
    for line in section.lines:
        yield f"<p{_kind(line[0])}>{_joined(line)}</p>"
    if section.table is not None:
        yield _table(section.table)
    for detail in section.details:
        fields = "\n".join(f"<dt>{_part(field.label)}</dt><dd>{_joined(field.line)}</dd>" for field in detail.fields)
        yield f"<details><summary>{_joined(detail.title)}</summary>\n<dl>\n{fields}\n</dl>\n</details>"
    for line in section.after:
        yield f"<p>{_joined(line)}</p>"


def _kind(opening: str) -> str:
    """The class of a paragraph that a reader looks for first: a warning, or the gate's verdict."""
    word = opening.partition(" (")[0].removeprefix("Gate: ")
    kind = "warning" if opening.startswith("Warning:") else word
    return f' class="{kind}"' if kind == "warning" or (opening.startswith("Gate: ") and kind in _STATUSES) else ""


def _joined(line: TextLine) -> str:
    return "".join(map(_part, line))


def _part(part: str) -> str:
    if isinstance(part, PassageText):
        return passage_element(part)
    return code_element(part) if isinstance(part, DataText) else escape_markup(part)


def _table(content: TextTable) -> str:
    head = "".join(f'<th scope="col">{escape_markup(name)}</th>' for name in content.head)
    rows = "\n".join(f"<tr>{''.join(_cell(part) for part in row)}</tr>" for row in content.rows)
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'


def _cell(part: str) -> str:
    if isinstance(part, SentenceText):
        return f'<td class="sentence">{escape_markup(part, limit=SENTENCE_LIMIT)}</td>'
    if isinstance(part, DataText):
        return f'<td class="text">{code_element(part)}</td>'
    kind = f' class="{part}"' if part in _STATUSES else ""
    return f"<td{kind}>{escape_markup(part)}</td>"
