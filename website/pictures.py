"""The pictures of README.md, docs/statistics-background.md and docs/benchmarks.md: docs/pictures/*.svg.

`pytest tests/test_pictures.py --refresh-golden -n 0` draws them; without the flag the test compares them. The results
of simulations come from the tables of bench/README.md, those of other tools from bench/peers/results.json. What a
formula gives is computed here. The picture of a decision is what `deemster demo` prints.
"""

from __future__ import annotations

import contextlib
import math
import re
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import deemster as dm
from deemster.cli import app
from website.benchmark_page import OURS, PEAK, load_results, work_rows

BENCHMARKS = Path(__file__).parent.parent / "bench" / "README.md"
SERIES = ("ours", "other", "third", "fourth")
STYLE = """
.dm-picture { --ink: #1f2933; --soft: #52606d; --edge: #c3cad2; --ours: #1f6f78; --other: #b45309; --third: #7c6bb0;
--fourth: #4b8a3a; --band: #d7ecea; font-family: system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .dm-picture { --ink: #e4e7eb; --soft: #cbd2d9; --edge: #4b5563; --ours: #4fc3c7;
--other: #f0a35e; --third: #b6a6e9; --fourth: #94cf7f; --band: #1d3c40; } }
.dm-picture text { font-size: 12.5px; fill: var(--soft); }
.dm-picture .title { font-size: 14px; font-weight: 600; fill: var(--ink); }
.dm-picture .end { text-anchor: end; }
.dm-picture .middle { text-anchor: middle; }
.dm-picture .grid { stroke: var(--edge); stroke-width: 0.7; }
.dm-picture .goal { stroke: var(--ink); stroke-dasharray: 5 4; }
.dm-picture .band { fill: var(--band); }
"""
STYLE += "".join(f".dm-picture .{name} {{ stroke: var(--{name}); fill: var(--{name}); }}\n" for name in SERIES)
STYLE += ".dm-picture polyline { fill: none !important; }\n"
TERMINAL_STYLE = """
.dm-picture .terminal text { font-family: ui-monospace, monospace; font-size: 13px; white-space: pre; }
.dm-picture .command { font-weight: 600; fill: var(--ink) !important; }
.dm-picture .added { fill: var(--fourth); }
.dm-picture .removed { fill: var(--other); text-decoration: line-through; }
.dm-picture .good { fill: var(--ours) !important; font-weight: 600; }
.dm-picture .bad { fill: var(--other) !important; font-weight: 600; }
"""


def pictures() -> dict[str, str]:
    """Every picture by file name."""
    return {
        "decision.svg": _decision(),
        "forty-intervals.svg": _forty_intervals(),
        "interval-by-samples.svg": _interval_by_samples(),
        "coverage.svg": _coverage(),
        "gate-errors.svg": _gate_errors(),
        **benchmark_pictures(load_results()),
    }


def benchmark_pictures(results: dict[str, Any]) -> dict[str, str]:
    """The pictures of the benchmarks by file name.

    Args:
        results: What bench/peers measured.
    """
    return {"benchmark-times.svg": _benchmark_times(results), "benchmark-footprint.svg": _benchmark_footprint(results)}


def _picture(name: str, title: str, size: tuple[int, int], parts: Iterator[str]) -> str:
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dm-picture" viewBox="0 0 {size[0]} {size[1]}" role="img" '
        f'aria-labelledby="{name}-title">\n<title id="{name}-title">{escape(title)}</title>\n<style>{STYLE}</style>\n'
        f"{inside}\n</svg>\n"
    )


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'


def _line(*points: tuple[float, float], kind: str, width: float = 1) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{places}" class="{kind}" stroke-width="{width}"/>'


def _dot(x: float, y: float, kind: str, radius: float = 3.5) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{kind}"/>'


def _legend(x: float, y: float, names: Sequence[str]) -> Iterator[str]:
    for kind, name in zip(SERIES, names, strict=False):
        yield _dot(x, y - 4, kind, 4.5)
        yield _text(x + 10, y, name)
        x += 26 + 7 * len(name)


def _decision() -> str:
    """What `deemster demo` prints, from its first command to the samples that broke."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        said = CliRunner().invoke(app, ["demo"], catch_exceptions=False).stdout
    lines = said[said.index("$ ") : said.index("\nThe whole comparison")].splitlines()

    def draw() -> Iterator[str]:
        yield f'<style>{TERMINAL_STYLE}</style><g class="terminal">'
        for row, line in enumerate(lines):
            yield f'<text x="16" y="{28 + 18 * row}" class="{_line_kind(line)}">{_with_changes(line)}</text>'
        yield "</g>"

    size = (32 + 8 * max(map(len, lines)), 40 + 18 * len(lines))
    return _picture("decision", "Two versions are run and compared: the second fails the gate", size, draw())


def _line_kind(line: str) -> str:
    """How a line of a terminal is drawn."""
    kinds = {"$ ": "command", "Gate: pass": "good", "Gate: fail": "bad", "Worse": "bad", "Newly failing": "command"}
    return next((kind for begin, kind in kinds.items() if line.startswith(begin)), "")


def _with_changes(line: str) -> str:
    """The line with the words that went and came in the colours that a terminal gives them."""
    shown = escape(line)
    shown = re.sub(r"\[-(.*?)-\]", r'<tspan class="removed">\1</tspan>', shown)
    return re.sub(r"\{\+(.*?)\+\}", r'<tspan class="added">\1</tspan>', shown)


def _forty_intervals() -> str:
    """Forty runs of fifty samples, whose true pass rate is known."""
    rate, runs, samples = 0.8, 40, 50
    passed = np.random.default_rng(2026).binomial(samples, rate, runs)
    found = [dm.stats.wilson(int(count), samples) for count in passed]
    missed = sum(not one.interval.lower <= rate <= one.interval.upper for one in found)

    def height(value: float) -> float:
        return 250 - (value - 0.5) * 420

    def draw() -> Iterator[str]:
        for value in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            yield _line((50, height(value)), (790, height(value)), kind="goal" if value == rate else "grid")
            yield _text(42, height(value) + 4, f"{value:.1f}", "end")
        for place, one in enumerate(found):
            x = 62 + place * 18.3
            kind = "ours" if one.interval.lower <= rate <= one.interval.upper else "other"
            yield _line((x, height(one.interval.lower)), (x, height(one.interval.upper)), kind=kind, width=2.5)
            yield _dot(x, height(one.value), kind)
        yield _text(50, 22, f"{runs} runs of {samples} samples; true pass rate {rate} (dashed)", "title")
        yield _text(50, 280, f"Intervals that hold the true rate: {runs - missed}. Intervals that miss it: {missed}.")

    return _picture("forty", f"{runs} intervals, of which {missed} miss the true rate", (800, 292), draw())


def _interval_by_samples() -> str:
    """The Wilson interval of a measured pass rate of 0.8, by the number of samples."""
    sizes = (5, 10, 20, 50, 100, 200, 500, 1000, 5000)
    found = [dm.stats.wilson(round(0.8 * n), n).interval for n in sizes]

    def width(value: float) -> float:
        return 90 + value * 560

    def draw() -> Iterator[str]:
        yield _text(90, 22, "Measured pass rate 0.8: where the true rate may be", "title")
        for value in (0, 0.2, 0.4, 0.6, 0.8, 1.0):
            yield _line((width(value), 36), (width(value), 290), kind="goal" if value == 0.8 else "grid")
            yield _text(width(value), 308, f"{value:.1f}", "middle")
        for place, (n, one) in enumerate(zip(sizes, found, strict=True)):
            y = 54 + place * 28
            yield _text(80, y + 4, f"{n:,}", "end")
            yield _line((width(one.lower), y), (width(one.upper), y), kind="ours", width=5)
            yield _dot(width(0.8), y, "ours", 5)
            yield _text(665, y + 4, f"{one.lower:.2f} to {one.upper:.2f}")
        yield _text(80, 36, "samples", "end")

    return _picture("width", "95 % intervals of a pass rate of 0.8 for 5 to 5,000 samples", (800, 320), draw())


def _rows(after: str) -> Iterator[list[str]]:
    """The cells of the first table of the benchmarks after a text, without its head."""
    lines = BENCHMARKS.read_text(encoding="utf-8").partition(after)[2].splitlines()
    is_inside = False
    for line in lines:
        if line.startswith("|"):
            is_inside = True
            yield [cell.strip() for cell in line.strip("|").split("|")]
        elif is_inside:
            return


def _coverage() -> str:
    """The lowest and the highest coverage over 24 designs, of each number by each method."""
    (_, *methods), _, *rows = _rows("`.venv/bin/python bench/coverage.py`")

    def width(value: float) -> float:
        return 330 + (value - 30) * 6.4

    def draw() -> Iterator[str]:
        yield _text(
            10, 22, "How often a 95 % interval holds the truth, in %: from the worst to the best design", "title"
        )
        yield from _legend(330, 44, methods)
        bottom = 62 + 38 * len(rows)
        goal = width(92), width(99) - width(92)
        yield f'<rect x="{goal[0]:.1f}" y="54" width="{goal[1]:.1f}" height="{bottom - 54}" class="band"/>'
        for value in (30, 40, 50, 60, 70, 80, 90, 95, 100):
            yield _line((width(value), 54), (width(value), bottom), kind="goal" if value == 95 else "grid")
            yield _text(width(value), bottom + 16, str(value), "middle")
        for place, (name, *cells) in enumerate(rows):
            y = 70 + 38 * place
            yield _text(320, y + 12, name, "end")
            for kind, cell, step in zip(SERIES, cells, (0, 9, 18), strict=False):
                low, high = map(float, cell.split(" to "))
                yield _line((width(low), y + step), (width(high), y + step), kind=kind, width=5)

    return _picture("coverage", "Coverage of three kinds of intervals", (800, 62 + 38 * len(rows) + 26), draw())


def _gate_errors() -> str:
    """False PASS at the margin by the number of samples, for four kinds of change."""
    shown = ("binary, 5 % newly fail", "binary, 10 % fail, 5 % pass", "sparse, 10 % lose", "clusters of 5")
    (_, *sizes), *rows = [
        row for row in _rows("`.venv/bin/python bench/gate_errors.py`") if not re.fullmatch("-+:?", row[0])
    ]
    names = re.search(r"false PASS, %: (.*)\*\*", rows[0][0])[1].split(" / ")  # type: ignore[index]
    passes: dict[str, list[list[float]]] = {}
    for name, *cells in rows[1:]:
        if name.startswith("**"):
            break
        passes[name] = [[float(value) for value in cell.split(" / ")] for cell in cells]

    def draw() -> Iterator[str]:
        yield _text(10, 22, "A change is worse by exactly the margin: how often does the gate pass it, in %?", "title")
        yield from _legend(10, 44, names)
        for panel, kind in enumerate(shown):
            left, top = 46 + panel % 2 * 390, 84 + panel // 2 * 200
            yield _text(left, top - 12, kind, "title")
            for value in (0, 10, 20, 30, 40):
                y = top + 140 - value * 3.5
                yield _line((left, y), (left + 330, y), kind="grid")
                yield _text(left - 8, y + 4, str(value), "end")
            yield _line((left, top + 122.5), (left + 330, top + 122.5), kind="goal")
            xs = [left + 15 + 75 * place for place in range(len(sizes))]
            for x, size in zip(xs, sizes, strict=True):
                yield _text(x, top + 157, size, "middle")
            for place, series in enumerate(SERIES[: len(names)]):
                points = [(x, top + 140 - cell[place] * 3.5) for x, cell in zip(xs, passes[kind], strict=True)]
                yield _line(*points, kind=series, width=2)
                yield from (_dot(x, y, series) for x, y in points)
        yield _text(10, 480, "Columns: samples in each run. Dashed: the 5 % that are allowed.")

    return _picture("gate", "False passes of four gate rules", (800, 492), draw())


def _benchmark_times(results: dict[str, Any]) -> str:
    """How many times as much CPU time as deemster each other tool needs, on a logarithmic scale."""
    rows = [
        row
        for part in results["parts"]
        for rows in work_rows(part).values()
        for row in rows
        if row["ratio"] and (row["unit"].startswith("µs") or row["unit"] == "ms")
    ]
    bottom = 44 + 21 * len(rows)
    least, most = 0.1, 10_000

    def width(ratio: float) -> float:
        return 480 + 280 * math.log(min(max(ratio, least), most) / least) / math.log(most / least)

    def draw() -> Iterator[str]:
        yield _text(10, 20, "CPU time of the other tool, as a multiple of deemster's", "title")
        for value in (0.1, 1, 10, 100, 1000, 10_000):
            yield _line((width(value), 32), (width(value), bottom), kind="goal" if value == 1 else "grid")
            yield _text(width(value), bottom + 16, f"{value:,}", "middle")
        before = ""
        for place, row in enumerate(rows):
            y = 48 + 21 * place
            if row["work"] != before:
                before = row["work"]
                yield _text(10, y + 4, before)
            yield _text(472, y + 4, row["tool"], "end")
            kind = "ours" if row["ratio"] >= 1 else "other"
            yield _line((width(1), y), (width(row["ratio"]), y), kind=kind, width=5)
            yield _dot(width(row["ratio"]), y, kind, 4)

    title = "How many times less CPU time deemster needs than other tools"
    return _picture("times", title, (800, bottom + 28), draw())


def _benchmark_footprint(results: dict[str, Any]) -> str:
    """Import, start, size and peak memory of each tool."""
    works = {work: rows for part in results["parts"] for work, rows in work_rows(part).items()}
    shown = {
        "CPU time of the import, ms": works.get("import", []),
        "CPU time from the start to a first score, ms": works.get(
            "from the start of a process to the score of one sample", []
        ),
        "Installed size, MB": works.get("installed size", []),
        "Peak memory of the runner, MB": works.get(PEAK + "saved outputs scored with exact-match", []),
    }
    tallest = max(len(rows) for rows in shown.values())

    def draw() -> Iterator[str]:
        for panel, (title, rows) in enumerate(shown.items()):
            left, top = 10 + panel % 2 * 400, 22 + panel // 2 * (44 + 22 * tallest)
            measured = [row for row in rows if row["value"] is not None]
            most = max([row["value"] for row in measured], default=1)
            yield _text(left, top, title, "title")
            for place, row in enumerate(measured):
                y = top + 22 + 22 * place
                yield _text(left + 100, y + 4, row["tool"], "end")
                end = left + 108 + 220 * max(row["value"], 0) / most
                yield _line((left + 108, y), (end, y), kind="ours" if row["tool"] == OURS else "other", width=10)
                yield _text(end + 6, y + 4, f"{row['value']:,.0f}")

    height = 22 + 2 * (44 + 22 * tallest)
    return _picture("footprint", "Import time, start, installed size and peak memory of tools", (800, height), draw())
