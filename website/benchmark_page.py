"""docs/benchmarks.md, made from bench/peers/results.json.

`python bench/peers` measures and writes both. `pytest tests/test_benchmark_page.py --refresh-golden -n 0` writes the
page again from the results; without the flag the test compares them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "peers" / "results.json"
OURS = "deemster"
Row: TypeAlias = dict[str, Any]
PEAK = "peak memory: "

TEXTS = yaml.safe_load((Path(__file__).parent / "benchmark_texts.yml").read_text(encoding="utf-8"))
NO_REASON = "The reason is not known yet."


def load_results() -> dict[str, Any]:
    """The results that the repository holds."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return results


def work_rows(part: Row) -> dict[str, list[Row]]:
    """The rows of each work of a part, ours first; peak memory is a work of its own.

    Args:
        part: A part of the results.
    """
    found: dict[str, list[Row]] = {}
    for row in sorted(part["rows"], key=lambda row: row["tool"] != OURS):
        found.setdefault(row["work"], []).append(row)
    for work, rows in list(found.items()):
        measured = [row for row in rows if row.get("peak_mb")]
        if len(measured) > 1 and measured[0]["tool"] == OURS:
            mine = measured[0]["peak_mb"]
            found[PEAK + work] = [
                {"work": PEAK + work, "tool": row["tool"], "version": row["version"], "value": row["peak_mb"]}
                | {"unit": "MB", "ratio": None if row["tool"] == OURS else row["peak_mb"] / mine}
                for row in measured
            ]
    return found


def is_behind(row: Row, ours: Row) -> bool:
    """Whether deemster needs more than another tool.

    Args:
        row: Of the other tool.
        ours: Of deemster, for the same work.
    """
    return row["value"] is not None and ours["value"] is not None and row["value"] < ours["value"]


def benchmark_page(results: dict[str, Any]) -> str:
    """The page of the benchmarks.

    Args:
        results: What bench/peers measured.
    """
    machine = results["machine"]
    head = TEXTS["head"].format(
        quick="**The sizes are small and the numbers say nothing.**" if results["is_quick"] else "",
        date=results["date"],
        minutes=max(1, round(results["seconds"] / 60)),
        cpu=machine["cpu"],
        cores=machine["cores"],
        memory=machine["memory_gb"],
        system=machine["system"],
        load=" to ".join(map(str, machine["load"])),
        python=machine["python"],
        node=(machine["node"] or "none").removeprefix("v"),
    )
    lines = [head, "", *(line for part in results["parts"] for line in _section(part))]
    text = "\n".join([*lines, *_behind(results), *_unmeasured(results)])
    return text.replace(" \n", "\n").rstrip() + "\n"


def _section(part: Row) -> Iterator[str]:
    texts = TEXTS["parts"][part["part"]]
    yield f"### {texts['title']}\n\n{texts['words']}\n\n`.venv/bin/python {part['command']}`\n"
    yield "| work | tool | needs | samples | times less |\n|---|---|---:|---:|---:|"
    for work, (ours, *others) in work_rows(part).items():
        if ours["tool"] != OURS:
            continue
        for row in (ours, *others):
            if row["value"] is None:
                continue
            words = work if row is ours else ""
            tool = f"{row['tool']} {row.get('version') or ''}".strip()
            samples = f"{row['samples']:,}" if row.get("samples") else ""
            cells = (words, tool, _amount(row), samples, _times(row, ours))
            yield f"| {' | '.join(cells)} |"
    notes = [f"- {row['tool']}: {row['note']}." for row in part["rows"] if row.get("note") and row["value"] is not None]
    yield "\n".join(["", *notes, ""] if notes else [""])


def _behind(results: dict[str, Any]) -> Iterator[str]:
    yield "## Where deemster is not ahead\n"
    found = [
        (ours, [row for row in others if is_behind(row, ours)])
        for part in results["parts"]
        for ours, *others in work_rows(part).values()
        if ours["tool"] == OURS
    ]
    if not any(rows for _, rows in found):
        yield "Nowhere: every other tool needs at least as much in every row.\n"
        return
    yield "| work | deemster | others | why |\n|---|---:|---|---|"
    for ours, rows in found:
        if rows:
            reasons = (words for begin, words in TEXTS["reasons"].items() if ours["work"].startswith(begin))
            others = ", ".join(f"{row['tool']} {_amount(row)}" for row in rows)
            yield f"| {ours['work']} | {_amount(ours)} | {others} | {next(reasons, NO_REASON)} |"
    yield ""


def _unmeasured(results: dict[str, Any]) -> Iterator[str]:
    """What failed; nothing if nothing did."""
    rows = [row for part in results["parts"] for row in part["rows"] if row["value"] is None]
    if rows:
        yield "## What could not be measured\n"
        yield from (f"- {row['work']}{', ' * bool(row['tool'])}{row['tool']}: {_plain(row['note'])}" for row in rows)
        yield ""


def _plain(note: str) -> str:
    """The end of a message on one line, in which Markdown finds no marks."""
    return f"`{' '.join(note.split())[-300:].replace('`', chr(39))}`"


def _amount(row: Row) -> str:
    return f"{_number(row['value'])} {row['unit']}"


def _number(value: float) -> str:
    """Three digits, or all before the point."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def _times(row: Row, ours: Row) -> str:
    if row is ours or row.get("ratio") is None:
        return ""
    told = _number(row["ratio"])
    return f"**{told}**" if is_behind(row, ours) else told
