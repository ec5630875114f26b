"""`deemster labels sheet`: from a run to labels of people to an alignment answer, without Python."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from deemster.store import LabelFacts, open_store
from tests.cli.workspace import called

SUITE = Path(__file__).parent.parent.parent / "examples" / "quickstart" / "suite.yml"


@pytest.fixture(autouse=True)
def folder(folder):
    assert called("run", str(SUITE), "--quiet", "--store", "runs.db").exit_code == 0
    return folder


def sheet(*argv):
    return called("labels", "sheet", "latest", "--store", "runs.db", *argv)


def rows(name="labels.csv"):
    with open(name, encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
        return list(csv.DictReader(file))


def test_sheet_shows_samples_and_hides_verdicts():
    done = sheet("--n", "6", "--metric", "exact-match")
    assert (done.exit_code, done.stderr) == (0, "6 of 12 samples are in labels.csv.\n")
    assert Path("labels.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    found = rows()
    assert len(found) == 6
    assert {row["inclusion_probability"] for row in found} == {"0.5"}
    assert not any(row["verdict"] or row["annotator"] for row in found)
    assert not {"score", "success", "reason"} & set(found[0])


def test_draw_depends_on_the_seed_alone():
    for name, seed in (("a.csv", "1"), ("b.csv", "1"), ("c.csv", "2")):
        assert sheet("--n", "5", "--seed", seed, "--to", name).exit_code == 0
    first, same, other = (Path(name).read_bytes() for name in ("a.csv", "b.csv", "c.csv"))
    assert first == same != other


def test_strata_give_equal_parts_with_their_probabilities():
    assert sheet("--n", "8", "--stratify", "--metric", "rouge-l").exit_code == 0
    found = rows()
    assert sorted(row["stratum"] for row in found) == ["1", "1", "2", "2", "3", "3", "4", "4"]
    assert {row["inclusion_probability"] for row in found} == {"0.666667"}


def test_efficient_sheet_has_probabilities_that_are_weights():
    assert sheet("--n", "8", "--efficient", "--metric", "rouge-l").exit_code == 0
    chances = [float(row["inclusion_probability"]) for row in rows()]
    assert len(chances) == 8
    assert min(chances) < max(chances) <= 1
    filled = [
        f"{row['id']},{'yes' if at % 3 else 'no'},{row['inclusion_probability']}" for at, row in enumerate(rows())
    ]
    Path("filled.csv").write_text("\n".join(["id,verdict,inclusion_probability", *filled]))
    done = called("agreement", "latest", "--labels", "filled.csv", "--metric", "rouge-l", "--store", "runs.db")
    assert done.exit_code == 0, done.stderr
    assert "weighted by their inclusion probabilities" in done.stdout
    assert "8 labels; a random sample would have needed about" in " ".join(done.stdout.split())


def test_filled_sheet_is_compared_with_the_marks_of_the_run():
    assert sheet("--n", "100", "--metric", "exact-match").exit_code == 0
    found = rows()
    assert len(found) == 12
    for row in found:
        row["verdict"] = "yes" if row["output"] == row["expected_output"] else "no"
    with open("labels.csv", "w", encoding="utf-8", newline="") as file:  # noqa: PTH123
        writer = csv.DictWriter(file, list(found[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(found)
    assert called("show", "latest", "--store", "runs.db", "--to", "marks.csv").exit_code == 0
    done = called("agreement", "marks.csv", "--labels", "labels.csv", "--set", "n_bootstrap=50")
    assert done.exit_code == 0, done.stderr
    assert "no --rubric: by their values `exact-match` is binary." in done.stderr
    assert "12 pairs of truth and verdict: 12 items, 1 criterion" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--metric", "exact-mach"), "The run has no metric `exact-mach`. Did you mean `exact-match`?"),
        (("--to", "csv:runs.db"), "runs.db: The file exists, and may hold labels."),
        (("--n", "0"), "Invalid value for '--n'"),
    ],
)
def test_bad_input_is_error(argv, message):
    done = sheet(*argv)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.fixture
def labelled():
    """The run, whose exact matches two people have labelled in the viewer; they disagree with the metric on one."""
    with open_store("runs.db") as store:
        row = store.run("latest")
        for position, execution in enumerate(store.executions(row.id)):
            passed = execution.marks[0].success != (position == 0)
            for author in ("ada", "bert"):
                label = LabelFacts(
                    position=position,
                    metric="exact-match",
                    author=author,
                    at="2026-01-01T00:00:00.000000Z",
                    verdict="pass" if passed else "fail",
                )
                store.put_label(row.id, label)


def test_labels_of_the_viewer_are_compared_with_the_run(labelled):
    done = called("agreement", "latest", "--store", "runs.db", "--set", "n_bootstrap=50", "--to", "by-run.json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(Path("by-run.json").read_text(encoding="utf-8"))
    assert (found["n_items"], round(found["criterion_accuracy"], 6)) == (12, round(11 / 12, 6))
    assert called("labels", "export", "latest", "--store", "runs.db", "--to", "labels.csv").exit_code == 0
    assert called("show", "latest", "--store", "runs.db", "--to", "marks.csv").exit_code == 0
    argv = ("marks.csv", "--labels", "labels.csv", "--set", "n_bootstrap=50", "--to", "by-file.json")
    assert called("agreement", *argv).exit_code == 0
    other = json.loads(Path("by-file.json").read_text(encoding="utf-8"))
    assert [found[name] for name in ("criterion_accuracy", "micro_kappa", "n_items")] == [
        other[name] for name in ("criterion_accuracy", "micro_kappa", "n_items")
    ]


def test_labels_of_the_efficient_queue_are_weighted_where_they_correct_and_nowhere_counted_evenly():
    with open_store("runs.db") as store:
        row = store.run("latest")
        for position in range(12):
            label = LabelFacts(
                position=position,
                metric="exact-match",
                author="ada",
                at="2026-01-01T00:00:00.000000Z",
                verdict="pass" if position % 3 else "fail",
                order="efficient",
                probability=0.9 if position % 2 else 0.3,
            )
            store.put_label(row.id, label)
    corrected = called("agreement", "latest", "--labels", "viewer", "--store", "runs.db", "--to", "calibration.json")
    assert "12 labelled samples (pass or fail), weighted by their inclusion probabilities." in corrected.stdout
    found = json.loads(Path("calibration.json").read_text(encoding="utf-8"))["metrics"]["exact-match"]["pass_rate"]
    # Six labels stand for twenty samples, six for seven.
    assert found["people"]["value"] == pytest.approx((4 / 0.9 + 4 / 0.3) / (6 / 0.9 + 6 / 0.3))
    assert 0 < found["equal_labels"] < 12
    compared = called("agreement", "latest", "--store", "runs.db", "--set", "n_bootstrap=50")
    assert "are weighted by `deemster agreement RUN --labels viewer`" in " ".join(compared.stdout.split())


def test_votes_of_a_labelled_run_are_a_votes_file(labelled):
    argv = ("--store", "runs.db", "--to", "votes.json")
    assert called("labels", "export", "latest", *argv).exit_code == 0
    assert called("check", "votes.json").exit_code == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("latest",), "Nobody has labelled the run"),
        (("latest", "--rubric", "x.yml"), "A run has its verdicts: leave out `--rubric`."),
        (("latest", "--suite", "x.yml"), "`--suite` is for a file of cases."),
        (("latest", "--min-kappa", "0.5"), "`--min-kappa` is for cases, or a run with `--labels`."),
        (("latest", "--labels", "viewer", "--per-judge"), "`--per-judge` is for votes."),
        (("nowhere",), "nowhere"),
    ],
)
def test_run_that_cannot_be_aligned_is_error(argv, message):
    done = called("agreement", *argv, "--store", "runs.db")
    assert done.exit_code == 2
    assert message in done.stderr
