"""A notebook shows results as tables and progress as a bar: nbclient runs one as a user would."""

from __future__ import annotations

import html
import re
import warnings

import pytest

from deemster.engine.notebook_progress import notebook_progress

# They share one notebook, which takes three seconds.
pytestmark = pytest.mark.xdist_group("notebook")
CELLS = (
    """
import pandas as pd
import deemster as dm

rows = [{"id": at, "input.q": f"{at} + 1", "expected_output": str(at + 1), "tags": "sum"} for at in range(4)]
report = dm.evaluate(
    pd.DataFrame(rows), target=lambda given: "1" if given["q"] == "0 + 1" else "<b>3</b>", metrics=["exact-match"]
)
report
""",
    """
print(len(report.to_dataframe()), list(report.to_dataframe("samples")["passed"]), len(report.failures()))
""",
    """
def broken(given):
    raise ConnectionError("connection refused")

failed = dm.evaluate(pd.DataFrame(rows), target=broken, metrics=["exact-match"])
""",
    """
votes = dm.Votes.parse({
    "schema_version": "deemster.votes.v1",
    "rubric": [{"name": "facts", "requirement": "It is right."}],
    "judges": [{"id": "a"}],
    "items": [
        {"id": f"q{at}", "ground_truth": ["MET" if at % 2 else "UNMET"], "votes": {"a": ["MET" if at % 3 else "UNMET"]}}
        for at in range(12)
    ],
})
result = dm.compute_metrics(votes, bootstrap=dm.agreement.BootstrapSettings(seed=1))
result
""",
    """
import json
from deemster.testing import ModelServer

items = [{"id": f"i{at}", "submission": f"Text {at}."} for at in range(3)]
dataset = dm.RubricDataset(items, rubric=[{"name": "facts", "requirement": "It is <right>."}])
with ModelServer(answer=lambda chat: json.dumps({"reason": "Seen.", "verdict": "MET"})) as server:
    judge = {"base_url": server.url, "model": "m"}
    grading = dm.grade(dataset, dm.CriterionGrader(judges=[dm.Judge("judge", "judge")]), models={"judge": judge})
grading
""",
    """
print(grading.to_dataframe().shape, list(grading.to_dataframe("items")["facts"]))
""",
)


@pytest.fixture(scope="module")
def cells():
    import nbclient
    from nbformat import v4

    notebook = v4.new_notebook(cells=[v4.new_code_cell(text.strip()) for text in CELLS])
    with warnings.catch_warnings():
        # Its own client warns of what it will do in a later version.
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [cell.outputs for cell in notebook.cells]


def shown(outputs):
    return "\n".join(output.data["text/html"] for output in outputs if "text/html" in output.get("data", {}))


def printed(outputs, stream="stdout"):
    return "".join(output.text for output in outputs if output.output_type == "stream" and output.name == stream)


def test_data_frame_is_evaluated_and_the_report_is_a_table(cells):
    page = shown(cells[0])
    assert "exact-match" in page
    assert "<b>3</b>" not in page
    assert printed(cells[1]) == "4 [1, 0, 0, 0] 3\n"


def test_progress_is_one_bar_that_reaches_the_end(cells):
    bars = [output for output in cells[0] if "<progress" in output.get("data", {}).get("text/html", "")]
    assert [bar.data["text/html"] for bar in bars] == [
        '<progress value="4" max="4"></progress> 4 of 4 done, 0 unscored'
    ]


def test_message_says_why_every_sample_failed(cells):
    said = printed(cells[2], "stderr")
    assert "Every sample failed: the target gave no answer. 4 times: " in said
    assert "connection refused" in said


def words(page):
    """What a page says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_alignment_result_is_shown_with_its_answer(cells):
    page = shown(cells[3])
    assert "Can this judge be trusted?" in page
    assert re.search(r"facts\b.*\bbinary\b.*\b12\b", words(page))


def test_grading_is_shown_and_becomes_data_frames(cells):
    assert "Grading The dataset: 3 items, 3 scored" in words(shown(cells[4]))
    assert "3 of 3 done" in shown(cells[4])
    assert printed(cells[5]) == "(3, 9) ['MET', 'MET', 'MET']\n"


def test_outside_of_a_notebook_there_is_no_bar():
    assert notebook_progress() is None
