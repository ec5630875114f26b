"""`deemster agreement`: from a filled sheet or cases to agreement, biases and corrected numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from deemster.comparison import load_comparison
from deemster.store import LabelFacts, open_store
from tests.cli.workspace import called
from tests.runs.calibration_shop import fill_in, write_shop
from tests.test_schemas import validator


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Two runs of a shop, and a filled sheet of each."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_shop(folder)
        assert called("run", "suite.yml", "--quiet", "--name", "before").exit_code == 0
        assert called("run", "suite.yml", "--quiet", "--name", "after", "--outputs", "after.jsonl").exit_code == 0
        for name in ("before", "after"):
            assert called("labels", "sheet", name, "--n", "100", "--to", f"{name}.csv").exit_code == 0
            fill_in(f"{name}.csv")
    return folder


@pytest.fixture(autouse=True)
def here(shop, monkeypatch):
    monkeypatch.chdir(shop)


def calibrated(*argv):
    done = called("agreement", *argv, "--to", "-")
    assert done.exit_code in (0, 1), done.stderr
    found = json.loads(done.stdout)
    validator("calibration_report").validate(found)
    return found


def test_filled_sheet_gives_agreement_errors_and_a_corrected_rate():
    found = calibrated("after", "--labels", "after.csv")
    judge = found["metrics"]["llm-as-judge"]

    counts = judge["confusion"]
    assert sum(counts.values()) == judge["n"] == 100
    assert judge["agreement"]["value"] == pytest.approx((counts["both_pass"] + counts["both_fail"]) / 100)
    assert judge["agreement"]["low"] < judge["agreement"]["value"] < judge["agreement"]["high"]
    assert judge["kappa"]["low"] < judge["kappa"]["value"] < judge["kappa"]["high"]
    assert judge["specificity"]["value"] < 0.75 < judge["sensitivity"]["low"]
    rate = judge["pass_rate"]
    # The bot is right in 65 of 100; the judge passes wrong answers that are long.
    assert rate["low"] < 0.65 < rate["high"]
    assert rate["value"] < rate["naive"]
    assert {tag["tag"] for tag in judge["tags"]} == {"express", "standard"}


def test_report_is_printed_and_written_as_markdown(tmp_path):
    file = tmp_path / "calibration.md"
    done = called("agreement", "after", "--labels", "after.csv", "--to", f"md:{file}")
    assert done.exit_code == 0
    for part in ("Judges against people", "kappa", "Corrected numbers", "Length:", "by tag", "people pass"):
        assert part in done.stdout
        assert part in file.read_text()


def test_calibration_of_a_report_file_is_that_of_the_stored_run(tmp_path):
    file = str(tmp_path / "report.json")
    assert called("show", "after", "--to", f"json:{file}").exit_code == 0
    assert calibrated(file, "--labels", "after.csv") == calibrated("after", "--labels", "after.csv")


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--min-agreement", "0.5", "--min-kappa", "0.2"), 0),
        (("--min-agreement", "0.99"), 1),
        (("--min-kappa", "0.99"), 1),
        (("--max-length-bias", "0.01"), 1),
    ],
)
def test_bounds_decide_the_exit_code(flags, code):
    done = called("agreement", "after", "--labels", "after.csv", *flags)
    assert done.exit_code == code
    assert ("Gate: fail" in done.stdout) == bool(code)


def test_length_bias_is_warned_of_without_a_bound(tmp_path):
    # Among answers that people judge alike, the long ones score higher.
    done = called("agreement", "after", "--labels", "after.csv")
    assert "prefers longer outputs among those that people judge alike" in done.stdout


def test_unequal_probabilities_weight_every_number(tmp_path):
    sheet = str(tmp_path / "balanced.csv")
    assert called("labels", "sheet", "after", "--n", "80", "--balance", "llm-as-judge", "--to", sheet).exit_code == 0
    rows = fill_in(sheet)
    assert len({row["inclusion_probability"] for row in rows}) == 2
    judge = calibrated("after", "--labels", sheet)["metrics"]["llm-as-judge"]
    assert judge["is_weighted"]
    rate = judge["pass_rate"]
    assert rate["low"] < 0.65 < rate["high"]
    assert abs(rate["people"]["value"] - 0.65) < 0.12
    plain = calibrated("after", "--labels", sheet, "--columns", "metadata=inclusion_probability")
    assert not plain["metrics"]["llm-as-judge"]["is_weighted"]


def test_scores_of_people_correct_the_mean(tmp_path):
    sheet = tmp_path / "scores.csv"
    sheet.write_bytes(Path("after.csv").read_bytes())
    fill_in(sheet, verdict=lambda row, right: "0.7" if right else "0.05")
    judge = calibrated("after", "--labels", str(sheet))["metrics"]["llm-as-judge"]
    assert (judge["kind"], judge["threshold"]) == ("score", None)
    mean = judge["mean"]
    assert mean["low"] < mean["value"] < mean["high"]
    assert judge["score_bias"]["value"] > 0
    assert judge["score_spearman"]["value"] > 0.3


def test_several_annotators_are_joined_and_their_ties_counted(tmp_path):
    sheet = tmp_path / "two.csv"
    with open("after.csv", encoding="utf-8-sig", newline="") as file:  # noqa: PTH123
        rows = list(csv.DictReader(file))
    lines = ["id,metric,annotator,verdict"]
    for place, row in enumerate(rows):
        other = row["verdict"] if place >= 5 else {"pass": "fail", "fail": "pass"}[row["verdict"]]
        lines += [f"{row['id']},llm-as-judge,ana,{row['verdict']}", f"{row['id']},llm-as-judge,ben,{other}"]
    sheet.write_text("\n".join(lines))
    judge = calibrated("after", "--labels", str(sheet))["metrics"]["llm-as-judge"]
    assert judge["n"] == 95
    assert (judge["people"]["annotators"], judge["people"]["disputed"], judge["people"]["n"]) == (2, 5, 100)
    assert judge["people"]["agreement"] == pytest.approx(0.95)
    assert any("tied on 5" in warning for warning in judge["warnings"])
    assert any("without inclusion probability" in warning for warning in judge["warnings"])


def test_judge_at_chance_is_told_and_adds_nothing_to_the_labels(tmp_path):
    sheet = tmp_path / "coin.csv"
    sheet.write_bytes(Path("before.csv").read_bytes())
    place = iter(range(1000))
    fill_in(sheet, verdict=lambda row, right: "pass" if next(place) % 2 else "fail")
    judge = calibrated("before", "--labels", str(sheet))["metrics"]["llm-as-judge"]
    assert judge["is_informative"] is False
    rate = judge["pass_rate"]
    assert rate["value"] == pytest.approx(rate["people"]["value"], abs=0.02)
    assert any("tell the judge from chance" in warning for warning in judge["warnings"])


def compared(*argv):
    done = called("compare", "before", "after", *argv, "--to", "-")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    validator("comparison").validate(found)
    return found


def test_labels_on_both_runs_turn_the_sign_that_the_judge_gives(tmp_path):
    file = str(tmp_path / "both.json")
    both = ("--labels", "before.csv", "--labels", "after.csv")
    done = called("compare", "before", "after", *both, "--to", f"json:{file}")
    assert done.exit_code == 0
    assert "the uncorrected comparison of llm-as-judge misleads" in " ".join(done.stdout.split())
    assert compared(*both)["corrected"]["llm-as-judge"]["labels"] == [100, 100]
    found = load_comparison(file).corrected["llm-as-judge"]
    # The second bot is right in 65 of 100 where the first one is in 80.
    assert found.interval.low < -0.15 < found.interval.high < 0
    assert found.difference < found.naive - 0.05
    assert found.is_error_different


def test_comparison_without_labels_says_nothing_of_them():
    assert "corrected" not in compared()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--labels", "before.csv"), "Give `--labels` twice"),
        (("--labels", "before.csv", "--labels", "strange.csv"), "no sample `zz`"),
        (("--labels", "before.csv", "--labels", "options.csv"), "neither pass, fail nor a score"),
    ],
)
def test_labels_that_do_not_fit_both_runs_are_refused(flags, said, shop):
    (shop / "strange.csv").write_text("id,verdict\nzz,pass\n")
    (shop / "options.csv").write_text("id,verdict\nq001,polite\n")
    done = called("compare", "before", "after", *flags)
    assert done.exit_code == 2
    assert said in done.stderr


def test_judge_that_is_the_model_under_test_is_warned_of(shop):
    answers = [json.loads(line) for line in (shop / "before.jsonl").read_text().splitlines()]
    lines = [json.dumps({**answer, "model": "made-up-1"}) for answer in answers]
    (shop / "own.jsonl").write_text("\n".join(lines))
    assert called("run", "suite.yml", "--quiet", "--name", "own", "--outputs", "own.jsonl").exit_code == 0
    for run, is_own in (("own", True), ("before", False)):
        warnings = calibrated(run, "--labels", "before.csv")["metrics"]["llm-as-judge"]["warnings"]
        assert any("The judge is the model under test (made-up-1)" in warning for warning in warnings) == is_own


def viewed(position, verdict, **facts):
    known = {"metric": "llm-as-judge", "author": "ana", "at": "2026-01-01T00:00:00.000000Z", "probability": 0.5}
    return LabelFacts(position=position, verdict=verdict, **{**known, **facts})


@pytest.fixture(scope="module")
def labelled_runs(shop):
    """What people said in the viewer of the first 100 outputs of both runs."""
    with open_store(shop / ".deemster" / "runs.db") as store:
        for name in ("before", "after"):
            run = store.run(name).id
            answers = [json.loads(line)["output"] for line in (shop / f"{name}.jsonl").read_text().splitlines()]
            for place in range(100):
                is_right = f"in {place % 9 + 1} days" in answers[place]
                store.put_label(run, viewed(place, "pass" if is_right else "fail"))
            store.put_label(run, viewed(150, "fail", order="disputed", probability=None))
            store.put_label(run, viewed(151, None, skip_reason="I do not know."))


def test_labels_of_the_viewer_are_read_without_those_that_were_not_drawn(labelled_runs):
    done = called("agreement", "after", "--labels", "viewer", "--to", "viewed.json")
    assert done.exit_code == 0
    assert "1 label of samples that were not drawn at random left out" in done.stderr
    judge = json.loads(Path("viewed.json").read_text())["metrics"]["llm-as-judge"]
    assert (judge["n"], judge["is_weighted"]) == (100, False)
    assert judge["pass_rate"]["low"] < 0.65 < judge["pass_rate"]["high"]


def test_two_runs_are_compared_by_the_labels_of_the_viewer(labelled_runs):
    found = compared("--labels", "viewer")["corrected"]["llm-as-judge"]
    assert found["labels"] == [100, 100]
    assert found["interval"][1] < 0


def test_run_that_nobody_labelled_in_the_viewer_says_how(shop):
    assert called("run", "suite.yml", "--quiet", "--name", "third").exit_code == 0
    done = called("agreement", "third", "--labels", "viewer")
    assert done.exit_code == 2
    assert "deemster view --annotator YOUR_NAME" in done.stderr


def test_page_shows_the_main_numbers(tmp_path):
    file = tmp_path / "calibration.html"
    argv = ("after", "--labels", "after.csv", "--min-kappa", "0.99", "--to", f"html:{file}", "--quiet")
    assert called("agreement", *argv).exit_code == 1
    page = file.read_text()
    assert "1 of 1 bounds are missed" in page
    assert "corrected pass-rate" in page
    assert "<script" not in page


CASES = """\
schema_version: deemster.calibration.v1
cases:
"""


def case(place, *, right, long=False, verdict=None):
    said = "pass" if right else "fail"
    output = f"It arrives in {5 if right else 8} days."
    padding = " We are glad to help you with any question about your order, today and on every other day."
    return (
        f"  - id: c{place}\n    input: {{question: When does order q{place:03} arrive?}}\n"
        f"    expected_output: It arrives in 5 days.\n    actual_output: {output}{padding if long else ''}\n"
        f"    human_verdict: {verdict or said}\n    tags: [{'long' if long else 'short'}]\n"
    )


def test_cases_are_judged_now_and_repeated(tmp_path):
    file = tmp_path / "cases.yml"
    file.write_text(CASES + "".join(case(place, right=place % 3 > 0, long=place % 2 == 0) for place in range(40)))
    assert called("check", str(file)).exit_code == 0
    found = calibrated(str(file), "--suite", "suite.yml", "--set", "repetitions=2")
    judge = found["metrics"]["llm-as-judge"]
    assert judge["n"] == 40
    assert judge["pass_rate"] is None
    assert judge["consistency"]["stable_share"] == 1.0
    assert {tag["tag"]: tag["agreement"]["n"] for tag in judge["tags"]} == {"long": 20, "short": 20}


def test_cases_of_eval_harness_give_the_calibration_of_ours(tmp_path):
    cases = CASES + "".join(case(place, right=place % 3 > 0) for place in range(12))
    (tmp_path / "ours.yml").write_text(cases)
    renamed = cases.replace("expected_output", "expected").replace("actual_output", "actual")
    (tmp_path / "theirs.yml").write_text(renamed.replace("deemster.calibration", "eval-harness.calibration"))
    assert called("check", str(tmp_path / "theirs.yml")).exit_code == 0
    theirs, ours = (calibrated(str(tmp_path / name), "--suite", "suite.yml") for name in ("theirs.yml", "ours.yml"))
    assert theirs["metrics"] == ours["metrics"]


def test_cases_may_have_several_annotators(tmp_path):
    file = tmp_path / "cases.yml"
    verdicts = "{ana: pass, ben: pass, cy: fail}"
    file.write_text(CASES + "".join(case(place, right=True, verdict=verdicts) for place in range(3)))
    judge = calibrated(str(file), "--suite", "suite.yml")["metrics"]["llm-as-judge"]
    assert judge["people"]["annotators"] == 3
    assert judge["confusion"]["both_fail"] == judge["confusion"]["only_judge_passes"] == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("report.json",), "name a sheet of them by `--labels FILE`"),
        (("after", "--labels", "nowhere.csv"), "nowhere.csv"),
        (("after", "--labels", "nowhere.csv", "--to", "votes.json"), "A votes file is written of votes"),
        (("after", "--labels", "unknown.csv"), "no sample `zz`"),
        (("after", "--labels", "metric.csv"), "no metric or criterion `llm-as-juge`"),
        (("after", "--labels", "twice.csv"), "given twice, first at twice.csv:2"),
        (("after", "--labels", "chance.csv"), "inclusion probability lies above 0"),
        (("after", "--labels", "range.csv"), "A score lies between 0 and 1"),
        (("after", "--labels", "mixed.csv"), "neither pass, fail nor a score"),
        (("after", "--labels", "blank.csv"), "No line holds a verdict"),
        (("after", "--labels", "after.csv", "--metric", "rouge"), "no metric `rouge`"),
        (("after", "--labels", "after.csv", "--set", "repetitions=2"), "`repetitions` are for cases"),
        (("cases.yml",), "--suite FILE"),
        (("cases.yml", "--labels", "after.csv"), "Cases hold the labels"),
        (("bad.yml", "--suite", "suite.yml"), "actual_output"),
    ],
)
def test_bad_input_is_refused(argv, said, shop):
    sheets = {
        "unknown": "id,verdict\nzz,pass\n",
        "metric": "id,metric,verdict\nq001,llm-as-juge,pass\n",
        "twice": "id,verdict\nq001,pass\nq001,fail\n",
        "chance": "id,verdict,inclusion_probability\nq001,pass,0\n",
        "range": "id,verdict\nq001,4\nq002,2\n",
        "mixed": "id,verdict\nq001,0.5\nq002,polite\n",
        "blank": "id,verdict\nq001,\n",
    }
    for name, text in sheets.items():
        (shop / f"{name}.csv").write_text(text)
    (shop / "cases.yml").write_text(CASES + case(1, right=True))
    (shop / "bad.yml").write_text(CASES + "  - {id: a, input: {question: q}}\n")
    called("show", "after", "--to", "report.json")
    done = called("agreement", *argv)
    assert done.exit_code == 2, done.stdout
    assert said in done.stderr


@pytest.fixture
def passes_a_and_fails_b(world):
    folder = world()
    suite = "name: w\ndataset: d.yml\ntarget: { outputs: o.yml }\nmetrics: [exact-match]\n"
    samples = "".join(f"- {{ id: {name}, input: {{ q: x }}, expected_output: x{name} }}\n" for name in "ab")
    (folder / "s.yml").write_text(suite)
    (folder / "d.yml").write_text("name: d\nsamples:\n" + samples)
    (folder / "o.yml").write_text("outputs: { a: xa, b: other }\n")
    assert called("run", "s.yml", "--quiet").exit_code == 0
    return folder


@pytest.mark.parametrize(
    ("good", "bad"), [("correct", "incorrect"), ("Good", "bad"), ("ok", "NOK"), ("👍", "👎"), ("right", "wrong")]
)
def test_pairs_of_words_that_people_use_are_pass_and_fail(passes_a_and_fails_b, good, bad):
    (passes_a_and_fails_b / "l.csv").write_text(f"id,metric,verdict\na,exact-match,{good}\nb,exact-match,{bad}\n")
    assert calibrated("latest", "--labels", "l.csv")["metrics"]["exact-match"]["agreement"]["value"] == 1.0


def test_words_that_stand_for_nothing_are_an_error_that_lists_them(passes_a_and_fails_b):
    (passes_a_and_fails_b / "l.csv").write_text("id,metric,verdict\na,exact-match,banana\nb,exact-match,kiwi\n")
    done = called("agreement", "latest", "--labels", "l.csv")
    assert done.exit_code == 2
    assert "2 labels cannot be read: `banana`, `kiwi`." in done.stderr
    assert "pass or fail" in done.stderr
    assert "l.csv:2" in done.stderr


def test_sheet_of_picked_samples_gives_no_interval_and_fails_its_bound(passes_a_and_fails_b):
    (passes_a_and_fails_b / "l.csv").write_text("id,verdict,order\na,pass,uncertain\nb,fail,uncertain\n")
    done = called("agreement", "latest", "--labels", "l.csv", "--min-agreement", "0.5")
    assert done.exit_code == 1
    assert "picked because they looked hard" in done.stdout
    assert "not drawn at random" in done.stdout
    judge = calibrated("latest", "--labels", "l.csv")["metrics"]["exact-match"]
    assert (judge["sampling"], judge["agreement"]["low"], judge["pass_rate"]) == ("chosen", None, None)


def test_labels_of_picked_samples_correct_no_comparison(shop):
    for name in ("before", "after"):
        head, *lines = (shop / f"{name}.csv").read_text().splitlines()
        (shop / f"picked-{name}.csv").write_text("\n".join([f"{head},order", *(f"{line},disputed" for line in lines)]))
    done = called("compare", "before", "after", "--labels", "picked-before.csv", "--labels", "picked-after.csv")
    assert done.exit_code == 2
    assert "Labels of picked samples cannot correct a comparison" in done.stderr
