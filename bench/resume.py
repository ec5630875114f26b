"""How many finished answers a tool asks for again after kill -9 in the middle of a run, and whether it ends right.

An answer takes 100 to 300 ms, 20 at a time. The process that answers writes the id of a sample to a file when its
answer is finished. When half of the ids are there, the tool and its children get SIGKILL. Then the tool resumes, in the
way its documents name, with the settings that store most often. Counted are the samples whose answer was finished
before the kill and is asked for again, on average over three runs. Where the tool cannot resume, all of them count.
Answers that were under way are lost everywhere and are not counted. All tools must count the same passes in the end.

DeepEval and autorubric evaluate answers that exist. There the metric, or the grader, takes the time.

Usage: .venv/bin/python bench/resume.py [samples] [kills]     (default: 200 samples, 3 kills)
"""

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from end_to_end import cases
from environments import ASKED, environment, exists, python, version
from measured_rows import OURS, other_tool, record_row

import deemster as dm

HERE = Path(__file__).parent
KILLED_AT = 0.5
AT_ONCE = 20
PEERS = ("inspect-ai", "promptfoo", "deepeval", "autorubric")
# Their documents name no way to go on with a run that was killed.
WITHOUT_RESUME = ("pydantic-evals", "ragas")
WORK = "finished answers asked for again after kill -9 at half of a run"
TARGET = """
import asyncio
import os

async def answer(input):
    await asyncio.sleep(input["seconds"])
    with open(os.environ["FINISHED"], "a") as file:
        file.write(input["id"] + "\\n")
    return input["output"]
"""
SUITE = """\
durable: true
name: resume
dataset: golden.jsonl
target: { python: "app:answer" }
metrics: [exact-match]
"""
PROMPTFOO = {
    "PROMPTFOO_CONFIG_DIR": "promptfoo",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_CACHE_ENABLED": "false",
    "PROMPTFOO_FAILED_TEST_EXIT_CODE": "0",
}


def ours(given, folder):
    """The commands that begin and resume, and what counts the passes of the end."""
    rows = [{"id": one["id"], "input": one, "expected_output": one["expected"]} for one in given]
    (folder / "golden.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "app.py").write_text(TARGET)
    (folder / "suite.yml").write_text(SUITE)
    run = [sys.executable, "-m", "deemster", "run", "suite.yml", "--quiet", "--to", "report.json"]
    run += ["--concurrency", str(AT_ONCE)]

    def passes(_printed):
        return json.loads((folder / "report.json").read_text())["metrics"]["exact-match"]["n_passed"]

    return run, [*run, "--resume"], passes


def promptfoo(given, folder):
    config = {
        "prompts": ["{{output}}"],
        "providers": [f"file://{HERE / 'peers' / 'resume_promptfoo.cjs'}"],
        "tests": [
            {
                "vars": one,
                "assert": [{"type": "equals", "value": one["expected"]}],
            }
            for one in given
        ],
    }
    (folder / "config.json").write_text(json.dumps(config))
    program = environment("promptfoo") / "node_modules" / "promptfoo" / "dist" / "src" / "entrypoint.js"
    run = ["node", program, "eval", "-c", "config.json", "-j", str(AT_ONCE), "--no-cache", "--no-table"]
    run += ["--no-progress-bar", "-o", "results.json"]

    def passes(_printed):
        # Its own total leaves out samples after a resume; the results are complete.
        return sum(one["success"] for one in json.loads((folder / "results.json").read_text())["results"]["results"])

    return run, [*run, "--resume"], passes


def other(tool, given, folder):
    path = folder / "cases.json"
    path.write_text(json.dumps(given))
    run = [python(tool), HERE / "peers" / f"resume_{tool.replace('-', '_')}.py", path, str(AT_ONCE)]
    return [*run, "begin"], [*run, "resume"], lambda printed: int(printed.split()[-1])


def killed_and_resumed(tool, given, folder):
    """How many answers were finished at the kill, how many of these are asked for again, and what went wrong."""
    make = {OURS: ours, "promptfoo": promptfoo}.get(tool)
    begin, resume, passes = make(given, folder) if make else other(tool, given, folder)
    finished = folder / "finished.txt"
    finished.touch()
    started = {"cwd": folder, "env": os.environ | PROMPTFOO | {"FINISHED": str(finished)}, "text": True}
    started |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # In a group of its own, so that its children die with it.
    process = subprocess.Popen(begin, start_new_session=True, **started)
    try:
        while process.poll() is None and len(finished.read_text().split()) < KILLED_AT * len(given):
            time.sleep(0.01)
        # Not just after an answer, when every tool is busy with storing it.
        time.sleep(0.05)
        process.poll()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        _, said = process.communicate()
    if process.returncode != -signal.SIGKILL:
        sys.exit(f"{tool} ended before it was killed: {said[-600:]}")
    before = finished.read_text().split()
    done = subprocess.run(resume, check=False, **started)
    if done.returncode:
        return len(before), len(before), done.stderr.strip().splitlines()[-1]
    asked = Counter(finished.read_text().split())
    right, told = sum(one["output"] == one["expected"] for one in given), passes(done.stdout)
    if told != right or len(asked) != len(given):
        sys.exit(f"{tool} says that {told} of {len(given)} passed; {right} did, and {len(asked)} were answered")
    return len(before), sum(asked[name] > 1 for name in set(before)), ""


def measured(tool, given, kills):
    """The row of a tool."""
    # It installs the tool where it is missing.
    release = dm.__version__ if tool == OURS else version(tool)
    found = []
    for _ in range(kills):
        with tempfile.TemporaryDirectory(prefix="deemster-resume-") as name:
            found.append(killed_and_resumed(tool, given, Path(name)))
    again = statistics.mean(lost for _, lost, _ in found)
    faults = [fault for *_, fault in found if fault]
    note = f"did not resume after {len(faults)} of {kills} kills: {faults[0]}" if faults else ""
    at = ", ".join(f"{lost} of {before}" for before, lost, _ in found)
    print(f"{tool:<14} {release}: asked again for {at} finished answers of {len(given)}; {note}", flush=True)
    record_row(WORK, tool, again, "answers", version=release, samples=len(given), note=note)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    # Not all in step, so that a kill finds every tool in the middle of its work.
    given = [one | {"seconds": 0.1 + number * 7 % 20 / 100} for number, one in enumerate(cases(count))]
    for tool in (OURS, *PEERS):
        if tool in ASKED and not exists(tool):
            print(f"{tool}: not measured; `python3 bench/environments.py {tool}` installs it")
            record_row(WORK, tool, None, "answers", note="is not installed")
            continue
        with contextlib.nullcontext() if tool == OURS else other_tool(WORK, tool, "answers"):
            measured(tool, given, kills)
    for tool in WITHOUT_RESUME:
        print(f"{tool}: has no resume, it starts again")
        record_row(WORK, tool, KILLED_AT * count, "answers", samples=count, note="has no resume: it starts again")


if __name__ == "__main__":
    main()
