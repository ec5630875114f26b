"""The page of benchmarks shows what bench/peers measured, and a failure of one part or peer is a row."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from website.benchmark_page import NO_REASON, benchmark_page, load_results

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"


def row(tool, value, **more):
    return {"work": "installed size", "tool": tool, "version": "1", "value": value, "unit": "MB", "ratio": None} | more


def results(*rows):
    machine = {"cpu": "Abacus", "cores": 2, "memory_gb": 4, "system": "Linux", "python": "3.11", "node": None}
    part = {"part": "footprint", "command": "bench/footprint.py", "seconds": 1, "rows": list(rows)}
    machine["load"] = [0.1, 0.2]
    return {"date": "2026-01-01", "is_quick": False, "machine": machine, "seconds": 60, "parts": [part]}


@pytest.fixture(scope="module")
def peers():
    """bench/peers/__main__.py as a module."""
    spec = importlib.util.spec_from_file_location("bench_peers", ROOT / "bench" / "peers" / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    path = sys.path[:]
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path[:] = path


def test_page_matches_results(refresh_golden):
    fresh = benchmark_page(load_results())
    if refresh_golden:
        PAGE.write_text(fresh, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == fresh


def test_stored_results_are_of_full_size_and_give_a_reason_for_every_row_behind():
    stored = load_results()
    assert not stored["is_quick"]
    assert NO_REASON not in benchmark_page(stored)


def test_tool_that_needs_less_is_listed_with_the_reason():
    page = benchmark_page(
        results(row("small", 50.0, ratio=0.5), row("deemster", 100.0), row("large", 300.0, ratio=3.0))
    )
    behind = page.partition("## Where deemster is not ahead")[2]
    assert "| installed size | 100 MB | small 50.0 MB | deemster brings numpy" in behind
    assert "large" not in behind
    assert "|  | small 1 | 50.0 MB |  | **0.50** |" in page


def test_peer_that_needs_as_much_is_not_listed():
    assert "Nowhere: every other tool" in benchmark_page(results(row("deemster", 0.0), row("equal", 0.0)))


def test_failed_peer_is_named_with_its_message_on_one_line():
    failed = row("broken", None, note="could not be measured: it\nended `badly`")
    page = benchmark_page(results(row("deemster", 1.0), failed))
    assert "- installed size, broken: `could not be measured: it ended 'badly'`" in page


def test_ratio_is_left_out_where_deemster_needs_nothing(peers):
    rows = peers.compared([row("deemster", 0.0), row("other", 3.0)])
    assert [one["ratio"] for one in rows] == [None, None]


def test_ratio_is_that_of_the_same_work(peers):
    rows = [
        row("other", 3.0),
        row("deemster", 2.0),
        row("deemster", 6.0, work="import"),
        row("other", 3.0, work="import"),
    ]
    assert [one["ratio"] for one in peers.compared(rows)] == [1.5, None, None, 0.5]


def test_script_that_fails_is_a_row_with_its_last_words(peers, monkeypatch, tmp_path):
    (tmp_path / "part.py").write_text("raise SystemExit('no numbers today')")
    monkeypatch.setattr(peers, "BENCH", tmp_path)
    monkeypatch.setattr(peers, "PARTS", {"rouge": ("part.py", "", "--quick")})
    part = peers.run_part("rouge", quick=True)
    assert [(one["value"], one["note"]) for one in part["rows"]] == [(None, "could not be measured: no numbers today")]
    assert part["command"] == "bench/part.py --quick"


@pytest.mark.usefixtures("peers")
def test_peer_that_fails_stops_a_script_alone_and_is_a_row_where_rows_are_collected(monkeypatch, tmp_path):
    from measured_rows import ROWS, other_tool

    def measure():
        with other_tool("import", "broken", "ms"):
            sys.exit("no numbers today")

    monkeypatch.delenv(ROWS, raising=False)
    with pytest.raises(SystemExit, match="no numbers today"):
        measure()
    monkeypatch.setenv(ROWS, str(tmp_path / "rows.jsonl"))
    measure()
    [found] = map(json.loads, (tmp_path / "rows.jsonl").read_text().splitlines())
    assert (found["tool"], found["value"], found["note"]) == ("broken", None, "could not be measured: no numbers today")


@pytest.mark.usefixtures("peers")
def test_peak_memory_is_that_of_the_child_alone():
    """A child that starts from here begins with the peak of this process, which holds far more than 40 MB."""
    from measured_rows import run_measured

    done = run_measured(sys.executable, "-S", "-c", "print('done')")
    assert done.printed == "done"
    assert 2 < done.peak_mb < 40
