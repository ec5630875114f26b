"""Counts room changes along the functions of one command, in the order of their first call.

`sys.setprofile` records every function of deemster that is called, without module bodies. The functions are listed in
the order of their first call. A room change is a function whose room differs from that of the function before it.

Usage: python bench/reading_paths.py [--files] [--functions]

--files prints the files in order of first touch, --functions the functions of every room, by file.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import deemster as dm
from deemster.cli import app

PACKAGE = f"{Path(dm.__file__).parent}{os.sep}"
EXAMPLES = Path(__file__).parent.parent / "examples"
# Measured with this script's counting on the code before the rooms were rebuilt (commit 1dffbe6).
BEFORE = {"one sample, `deemster run`": 147, "one judge call": 20, "one `deemster agreement`": 90}


def run_to_the_end(act: Callable[[], object]) -> None:
    """Run an act; a command that fails has another path than the one that is asked for."""
    try:
        act()
    except SystemExit as end:
        if end.code:
            raise


def functions_called(act: Callable[[], object]) -> list[tuple[str, str]]:
    """The file and the name of every function that an act calls, in the order of first calls.

    The act runs once before, so that what an import runs (class bodies, decorators) is not part of the path.
    """
    run_to_the_end(act)
    order: list[tuple[str, str]] = []
    seen: set[tuple[str, str]] = set()

    def note(frame, event, _):
        name, function = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and name.startswith(PACKAGE) and function != "<module>" and (name, function) not in seen:
            seen.add((name, function))
            order.append((name.removeprefix(PACKAGE), function))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run_to_the_end(act)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return order


def command(*arguments: str) -> Callable[[], object]:
    return lambda: app(list(arguments), prog_name="deemster")


def one_sample(folder: Path) -> Callable[[], object]:
    (folder / "golden.yml").write_text(
        "schema_version: deemster.dataset.v1\nname: one\nsamples:\n"
        "  - {id: a, input: {question: Capital of France?}, expected_output: Paris}\n"
    )
    (folder / "app.py").write_text("def answer(input):\n    return 'Paris'\n")
    suite = "dataset: golden.yml\ntarget: {python: 'app:answer'}\nmetrics: [exact-match]\n"
    (folder / "suite.yml").write_text(f"schema_version: deemster.suite.v1\n{suite}")
    return command("run", str(folder / "suite.yml"), "--quiet", "--to", str(folder / "report.json"))


def one_judge_call() -> Callable[[], object]:
    models = getattr(dm, "models", dm)
    sample = {"id": "a", "input": {"question": "Capital of France?"}, "expected_output": "Paris"}
    judge = models.FakeChat({"Paris": {"score": 1.0, "reason": "Both say Paris."}})
    return lambda: dm.evaluate([sample], outputs={"a": "Paris"}, metrics=["llm-as-judge"], models={"judge": judge})


def without_a_judge() -> Callable[[], object]:
    sample = {"id": "a", "input": {"question": "Capital of France?"}, "expected_output": "Paris"}
    return lambda: dm.evaluate([sample], outputs={"a": "Paris"}, metrics=["exact-match"])


def room_changes(order: list[tuple[str, str]]) -> int:
    rooms = [Path(name).parts[0] for name, _ in order]
    return sum(before != after for before, after in itertools.pairwise(rooms))


def by_room(order: list[tuple[str, str]]) -> str:
    """The functions of every file, the files of every room together, each room with its count."""
    rooms: dict[str, dict[str, list[str]]] = {}
    for name, function in order:
        rooms.setdefault(Path(name).parts[0], {}).setdefault(name, []).append(function)

    lines = []
    for room, files in rooms.items():
        lines.append(f"{room}: {sum(map(len, files.values()))} functions, {len(files)} files")
        lines += [f"  {name}: {', '.join(functions)}" for name, functions in files.items()]
    return "\n".join(lines)


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    paths = {"one sample, `deemster run`": functions_called(one_sample(folder))}
    # What a run calls without a judge is no part of the judge's path.
    shared_files = {name for name, _ in functions_called(without_a_judge())}
    paths["one judge call"] = [called for called in functions_called(one_judge_call()) if called[0] not in shared_files]
    votes = str(EXAMPLES / "judge_validation" / "votes.json")
    paths["one `deemster agreement`"] = functions_called(command("agreement", votes, "--to", str(folder / "a.json")))
    for name, order in paths.items():
        files = list(dict.fromkeys(name for name, _ in order))
        print(
            f"{name}: {room_changes(order)} room changes (before: {BEFORE[name]}), "
            f"{len(order)} functions, {len(files)} files",
            file=sys.stderr,
        )
        if "--files" in sys.argv:
            print(json.dumps(files, indent=1), file=sys.stderr)
        if "--functions" in sys.argv:
            print(by_room(order), file=sys.stderr)


if __name__ == "__main__":
    main()
