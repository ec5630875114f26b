"""`deemster agreement` from spreadsheets: labels and verdicts to an answer, without Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from deemster.datasets import Votes
from tests.cli.workspace import called

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "judge_validation"
FLAGS = ("--set", "seed=7", "--set", "n_bootstrap=50")
SHEETS = ("verdicts.csv", "--labels", "labels.csv")


@pytest.fixture(autouse=True)
def folder(folder):
    for name in ("labels.csv", "verdicts.csv", "votes.json"):
        shutil.copy(EXAMPLE / name, folder / name)
    (folder / "rubric.json").write_text(json.dumps(json.loads((EXAMPLE / "votes.json").read_text())["rubric"]))
    return folder


def numbers(*argv):
    done = called("agreement", *argv, *FLAGS, "--to", "-")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    return {
        key: found[key] for key in ("n_items", "mean_kappa", "accuracy_micro", "verdict", "intervals") if key in found
    }


def test_spreadsheets_give_the_numbers_of_the_votes_file():
    rubric = ("--rubric", "rubric.json", "--set", "cluster=conversation")
    assert numbers(*SHEETS, *rubric) == numbers("votes.json", "--set", "cluster=conversation")


def test_semicolons_and_byte_order_mark_change_no_number(folder):
    wanted = numbers(*SHEETS, "--rubric", "rubric.json")
    for name in ("labels.csv", "verdicts.csv"):
        text = (folder / name).read_text("utf-8").replace(",", ";").replace("\n", "\r\n")
        (folder / name).write_text("\ufeff" + text, "utf-8", newline="")
    assert numbers(*SHEETS, "--rubric", "rubric.json") == wanted


def test_without_a_rubric_it_says_what_the_values_are():
    done = called("agreement", *SHEETS, *FLAGS, "--columns", "metadata=conversation")
    assert done.exit_code == 0
    assert "no --rubric: by their values `grounded` is binary," in done.stderr
    assert "`tone` is nominal." in done.stderr
    assert "Can this judge be trusted?" in done.stdout


def test_votes_option_writes_labels_and_verdicts():
    done = called("agreement", *SHEETS, *FLAGS, "--rubric", "rubric.json", "--to", "votes:all.json")
    assert done.exit_code == 0
    assert numbers("all.json") == numbers(*SHEETS, "--rubric", "rubric.json")
    assert len(Votes.load("all.json")) == 240


def test_labels_win_over_those_of_a_votes_file(folder):
    bare = json.loads((folder / "votes.json").read_text())
    for item in bare["items"]:
        item.pop("annotations", None)
    (folder / "bare.json").write_text(json.dumps(bare))
    assert numbers("bare.json", "--labels", "labels.csv") == numbers("votes.json")


def draw_column(name, value_of):
    """Add a column to the sheet of labels, as the viewer or `deemster labels sheet` writes it."""
    head, *lines = Path("labels.csv").read_text().splitlines()
    lines = [f"{line},{value_of(place)}" for place, line in enumerate(lines)]
    Path("labels.csv").write_text("\n".join([f"{head},{name}", *lines]) + "\n")


@pytest.mark.parametrize(
    ("column", "value_of"),
    [
        ("order", lambda _: "uncertain"),
        ("order", lambda place: ("uncertain", "disputed")[place % 2]),
        ("inclusion_probability", lambda place: (0.1, 0.9)[place % 2]),
    ],
)
def test_sheet_of_labels_that_were_not_drawn_alike_gives_no_answer(column, value_of):
    draw_column(column, value_of)
    done = called("agreement", *SHEETS, *FLAGS, "--rubric", "rubric.json")
    assert done.exit_code == 0
    assert "Can this judge be trusted? These labels give no answer." in done.stdout
    assert "drawn at random" in done.stdout
    assert numbers(*SHEETS, "--rubric", "rubric.json")["intervals"] is None


def test_picked_labels_of_a_sheet_are_left_out_beside_random_ones():
    names = [line.partition(",")[0] for line in Path("labels.csv").read_text().splitlines()[1:]]
    picked = set(dict.fromkeys(names[: len(names) // 3]))
    draw_column("order", lambda place: "disputed" if names[place] in picked else "random")
    found = numbers(*SHEETS, "--rubric", "rubric.json")
    head, *lines = Path("labels.csv").read_text().splitlines()
    Path("labels.csv").write_text("\n".join([head, *(line for line in lines if line.endswith(",random"))]) + "\n")
    assert found["verdict"]["answer"] is not None
    assert found == numbers(*SHEETS, "--rubric", "rubric.json")


def test_sheet_whose_samples_were_equally_likely_is_drawn_at_random():
    plain = numbers(*SHEETS, "--rubric", "rubric.json")
    draw_column("inclusion_probability", lambda _: 0.25)
    assert numbers(*SHEETS, "--rubric", "rubric.json") == plain


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "Missing argument 'VOTES|RUN|CASES'."),
        (("votes.json", "--rubric", "rubric.json"), "A votes file has its rubric"),
        (("votes.json", "--columns", "id=ID"), "`--columns` needs a spreadsheet"),
        (("verdicts.csv", "--labels", "d.json"), "A rubric dataset of labels goes with a votes file or a run"),
        ((*SHEETS, "--columns", "id"), "write WHAT=COLUMN, such as id=ID, not `id`"),
        ((*SHEETS, "--columns", "id=Id,jugde=x"), "Did you mean `judge`?"),
        ((*SHEETS, "--to", "votes:labels.csv"), "Votes are written as .json or .jsonl."),
        (("votes.json", "--to", "votes.json"), "would overwrite the file that it is made from"),
        (("no.csv",), "no.csv: There is no such file."),
        (SHEETS, "labels.csv:1: `conversation` has 60 different values, more than 20."),
    ],
)
def test_bad_input_is_error(argv, message):
    done = called("agreement", *argv)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
