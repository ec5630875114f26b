import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from deemster.text._text_plots import draw_cell
from deemster.text.table_plots import BarCell, HistogramCell, IntervalCell, PlotColumn, scale_around_zero
from deemster.text.terminal_layout import print_sections
from deemster.text.text_sections import TextSection, TextTable

COLUMN = PlotColumn("rate", [], "interval")
CHANGES = PlotColumn("change", [], "interval", (-0.2, 0.2), -0.1)


@pytest.mark.parametrize(
    ("cell", "column", "unicode", "other"),
    [
        (IntervalCell(0.5, (0.0, 1.0)), COLUMN, "├────●────┤", "|----o----|"),
        (IntervalCell(0.0, (0.0, 0.4)), COLUMN, "●───┤", "o---|"),
        (IntervalCell(1.0, None), COLUMN, "          ●", "          o"),
        (IntervalCell(None, None), COLUMN, "", ""),
        (IntervalCell(0.12, (-0.2, 0.2)), CHANGES, "├─┼──┼──●─┤", None),
        (IntervalCell(0.2, None), CHANGES, "  ┊  ┊    ●", None),
        (BarCell(0.5), COLUMN, "█████▌", "######"),
        (BarCell(None), COLUMN, "", ""),
        (HistogramCell((0, 1, 50, 100)), COLUMN, " ▁▄█", " .=#"),
    ],
)
def test_drawing_in_unicode_and_ascii(cell, column, unicode, other):
    assert draw_cell(cell, column, width=11, plain=False) == unicode
    plain = draw_cell(cell, column, width=11, plain=True)
    assert plain.isascii()
    assert cell_len(plain) == cell_len(unicode)
    assert other is None or plain == other


def shown(width, *, encoding="utf-8", rows=2):
    names = [f"metric {place}" for place in range(rows)]
    cells = [IntervalCell(0.5, (0.25, 0.75))] * rows
    table = TextTable(
        ("metric", "rate", "interval"),
        [(name, "0.5000", "0.2500 - 0.7500") for name in names],
        plots=[PlotColumn("rate", cells, "interval")],
    )
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_sections([TextSection(("Rates",), table=table)], Console(file=file, width=width, color_system=None))
    file.flush()
    return file.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize(("width", "drawn"), [(120, "├────●────┤"), (80, "├────●────┤"), (50, "├──●──┤")])
def test_plot_takes_the_room_beside_the_numbers(width, drawn):
    line = next(line for line in shown(width).splitlines() if line.startswith("metric 0"))
    assert line.split("0.2500 - 0.7500")[1].strip() == drawn


def test_plot_without_room_beside_the_numbers_stands_below_them():
    lines = [line for line in shown(38).splitlines() if line.startswith("metric 0")]
    assert len(lines) == 2
    assert "●" not in lines[0]
    assert "├─────●─────┤" in lines[1]


def test_no_plot_stands_below_a_long_table():
    assert "●" not in shown(38, rows=13)


def test_terminal_that_cannot_show_unicode_gets_ascii():
    assert "|----o----|" in shown(80, encoding="ascii")


def test_dumb_terminal_gets_ascii(monkeypatch):
    text = io.StringIO()
    table = TextTable(("m", "interval"), [("a", "x")], plots=[PlotColumn("r", [IntervalCell(0.5, (0.0, 1.0))], "m")])
    console = Console(file=text, width=80, force_terminal=True, _environ={"TERM": "dumb"})
    print_sections([TextSection(("Rates",), table=table)], console)
    assert "●" not in text.getvalue()
    assert "|---------o---------|" in text.getvalue()


def test_scale_holds_every_value_and_is_symmetric():
    for values in ([0.004], [-0.5, 0.1], [0.099999], [1.0], [0.1], [-0.05]):
        low, high = scale_around_zero(values)
        assert low == -high
        assert max(map(abs, values)) <= high <= 1
