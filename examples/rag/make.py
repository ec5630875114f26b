"""Writes `answers.jsonl` and the replies of the scripted judge: `python make.py [FOLDER]`.

No model takes part. The answers and what the judge says of them are those of `written.py`; the judge's replies are
recorded under the very requests that the metrics of `suite.yml` make, so they have to be written again when a prompt
changes.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from written import CASES, Case

import deemster as dm

HERE = Path(__file__).parent
DATASET = HERE / "golden.yml"


def answers() -> list[dict[str, Any]]:
    """The lines of the outputs file: the answers of the assistant and the retrieved passages."""
    with (HERE / "passages.csv").open(encoding="utf-8", newline="") as file:
        texts = {row["id"]: row["text"] for row in csv.DictReader(file)}
    lines: list[dict[str, Any]] = [{"schema_version": "deemster.outputs.v1"}]
    for name, case in CASES.items():
        retrieved = [{"id": passage, "text": texts[passage]} for passage in case.retrieved]
        lines.append({"id": name, "output": case.answer, "retrieved": retrieved})
    return lines


def graded(score_of: Callable[[Case], tuple[int, str]]) -> Callable[[dm.records.Ask], Any]:
    """A judge that grades. It finds the case by the answer in the question."""

    def reply(ask: dm.records.Ask) -> dict[str, Any]:
        case = next(case for case in CASES.values() if case.answer in ask.messages[-1].content)
        score, reason = score_of(case)
        return {"reason": reason, "score": score}

    return reply


def claiming(ask: dm.records.Ask) -> dict[str, Any]:
    """A judge that splits answers into claims, and says whether the passages support each claim."""
    case_text = ask.messages[-1].content
    if "Claim:" not in case_text:
        case = next(case for case in CASES.values() if case.answer in case_text)
        return {"claims": [claim for claim, _, _ in case.claims]}
    for case in CASES.values():
        for claim, verdict, reason in case.claims:
            if f"\n{claim}\n" in case_text:
                return {"reason": reason, "verdict": verdict}
    raise ValueError(case_text)


JUDGES: dict[str, Callable[[dm.records.Ask], Any]] = {
    "claim-faithfulness(without_claims=best)": claiming,
    "answer-relevancy": graded(lambda case: case.relevancy),
    "redundancy": graded(lambda case: case.redundancy),
}


def main(folder: Path) -> None:
    """Write both files into a folder."""
    outputs, recording = folder / "answers.jsonl", folder / "replies" / "scripted.jsonl"
    written = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in answers())
    outputs.write_text(written, encoding="utf-8", newline="\n")
    recording.unlink(missing_ok=True)
    for metric, judge in JUDGES.items():
        role = dm.models.Role(client=dm.models.FakeChat(judge, model="scripted"), recording=str(recording))
        dm.evaluate(DATASET, outputs=outputs, metrics=[metric], models={"judge": role})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
