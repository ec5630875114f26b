"""The same fifty cases in promptfoo and here: whether each assertion passes in both.

Usage: python bench/promptfoo_verdicts.py [--promptfoo FOLDER] [--record]

Both ask one server on loopback, which repeats a text, and judges by words that begin with an `@`. promptfoo is
installed where it is not (`bench/environments.py`); FOLDER is another installation. --record writes what promptfoo says
beside the cases, for `tests/integrations/test_import_promptfoo_config_verdicts.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from click.testing import CliRunner

from bench.environments import environment
from deemster.cli import app
from deemster.integrations.import_promptfoo_config import read_promptfoo_config
from deemster.integrations.source_file import SourceFile
from deemster.testing import ModelServer

CASES = Path(__file__).parents[1] / "tests" / "fixtures" / "imports" / "promptfoo" / "fifty_cases"
RECORDED = CASES / "verdicts.json"
# Metrics here whose name is not the type of the assertion.
TYPES = {"latency-below": "latency", "json-schema": "is-json", "capital": "equals", "other": "contains"}
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "LOG_LEVEL": "error",
}
_OUTPUTS = re.compile(
    r"<<< actual_output[^\n]*\n(?P<here>.*?)\n>>>"
    r"|<Output>\n(?P<rubric>.*?)\n</Output>"
    r"|\*\*Reply\*\*\n(?P<geval>.*?)\n\n"
    r"|<submitted_answer>\n(?P<factuality>.*?)\n</submitted_answer>"
    r"|\[Submission\]: (?P<closedqa>.*?)\n\*\*\*",
    re.DOTALL,
)
# For each case, whether the assertions of a type pass, in their order.
Verdicts: TypeAlias = list[dict[str, list[bool]]]


def answer(messages: Any) -> str:
    """What the server says: the text that is to be repeated, or whether an output has the words that are asked for."""
    asked = messages[-1]["content"]
    output = _OUTPUTS.search(asked)
    if output is None:
        wants_steps = "generate 3-4 concise evaluation steps" in asked
        return json.dumps({"steps": ["Look for the word."]}) if wants_steps else asked.removeprefix("Repeat: ")

    passes = all(word in output[output.lastgroup or 0] for word in re.findall(r"@\w+", asked.replace(output[0], "")))
    if output.lastgroup == "here":
        is_whole = messages.schema["properties"]["score"]["type"] == "integer"
        return json.dumps({"reason": "r", "score": 10 * passes if is_whole else float(passes)})
    replies: dict[str | None, Any] = {
        "rubric": {"reason": "r", "pass": passes, "score": float(passes)},
        "geval": {"reason": "r", "score": 10 * passes},
        "factuality": {"reason": "r", "category": "C" if passes else "D"},
    }
    return json.dumps(replies[output.lastgroup]) if output.lastgroup in replies else "Y" if passes else "N"


def verdicts_here(url: str) -> Verdicts:
    """What deemster says, asking the server of an address."""
    os.environ |= {"CHAT_URL": url, "OPENAI_API_KEY": "not-a-key"}
    with tempfile.TemporaryDirectory() as made:
        read_promptfoo_config(SourceFile(CASES / "promptfooconfig.yaml")).write(made)
        written = Path(made, "report.json")
        result = CliRunner().invoke(app, ["run", f"{made}/suite.yml", "--store", "none", "--to", str(written)])
        if result.exit_code not in (0, 1):
            sys.exit(result.output)
        report = json.loads(written.read_text(encoding="utf-8"))

    order = {name: index for index, name in enumerate(report["metric_order"])}
    verdicts: Verdicts = []
    for execution in report["executions"]:
        case: dict[str, list[bool]] = {}
        for name in sorted(execution["marks"], key=order.__getitem__):
            kind = re.sub(r"-\d+$", "", name)
            case.setdefault(TYPES.get(kind, kind), []).append(execution["marks"][name]["success"])
        verdicts.append(case)
    return verdicts


def verdicts_of_promptfoo(url: str, installation: Path) -> Verdicts:
    """What promptfoo says, asking the server of an address."""
    node = installation / "node_modules" / "node" / "bin" / "node"
    main = installation / "node_modules" / "promptfoo" / "dist" / "src" / "main.js"
    with tempfile.TemporaryDirectory() as made:
        environ = {**os.environ, **QUIET, "CHAT_URL": url, "OPENAI_API_KEY": "not-a-key", "PROMPTFOO_CONFIG_DIR": made}
        results = Path(made, "results.json")
        command = [str(node) if node.exists() else "node", str(main.resolve()), "eval", "--no-cache", "--no-table"]
        # It ends with 100 where a test fails, as some here do.
        done = subprocess.run(
            [*command, "-o", str(results)], cwd=CASES, env=environ, check=False, timeout=300, capture_output=True
        )
        if not results.exists():
            sys.exit(done.stderr.decode()[-2000:] + done.stdout.decode()[-2000:])
        rows = json.loads(results.read_text(encoding="utf-8"))["results"]["results"]

    verdicts: Verdicts = []
    for row in sorted(rows, key=lambda row: row["testIdx"]):
        case: dict[str, list[bool]] = {}
        for component in row["gradingResult"]["componentResults"]:
            # A set of assertions is counted by its parts.
            if (component.get("assertion") or {}).get("type", "assert-set") != "assert-set":
                case.setdefault(component["assertion"]["type"], []).append(component["pass"])
        verdicts.append(case)
    return verdicts


def differences(ours: Verdicts, theirs: Verdicts) -> list[tuple[int, str, list[bool], list[bool]]]:
    """The cases and types of assertions that differ, with what each says."""
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    return [
        (number, kind, case.get(kind, []), other.get(kind, []))
        for number, (case, other) in enumerate(zip(ours, theirs, strict=True), 1)
        for kind in sorted({*case, *other})
        if case.get(kind) != other.get(kind)
    ]


def counts(verdicts: Verdicts) -> Mapping[str, int]:
    """How many assertions there are, by type."""
    return Counter(kind for case in verdicts for kind, passes in case.items() for _ in passes)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--promptfoo", type=Path)
    parser.add_argument("--record", action="store_true")
    flags = parser.parse_args()
    installation = flags.promptfoo or environment("promptfoo")
    with ModelServer(answer=answer) as server:
        theirs = verdicts_of_promptfoo(server.url, installation)
        ours = verdicts_here(server.url)
    if flags.record:
        lines = ",\n".join(json.dumps(case) for case in theirs)
        RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")

    differing = differences(ours, theirs)
    total = sum(counts(theirs).values())
    passed = sum(sum(passes) for case in theirs for passes in case.values())
    print(f"{len(theirs)} cases, {total} assertions, of which {passed} pass in promptfoo: {len(differing)} differ")
    for kind, count in sorted(counts(theirs).items()):
        print(f"{kind:24} {count:4}")
    for number, kind, here, there in differing:
        print(f"case {number}, {kind}: {here} here, {there} in promptfoo")


if __name__ == "__main__":
    main()
