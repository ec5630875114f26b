"""The example of judge validation matches its generator and its README."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from deemster.agreement import BootstrapSettings, annotator_tests, compare_judges, compute_metrics
from deemster.cli import app

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "judge_validation"
VOTES = FOLDER / "votes.json"
FLAGS = ("--set", "seed=7", "--set", "cluster=conversation", "--per-judge", "--set", "per_slice=true")


@pytest.fixture(scope="module")
def result():
    return compute_metrics(
        VOTES, bootstrap=BootstrapSettings(seed=7), cluster="conversation", per_judge=True, per_slice=True
    )


def test_example_files_match_generator(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "make_votes.py", tmp_path],
        env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": "5"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    for name in ("votes.json", "labels.csv", "verdicts.csv"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), f"run make_votes.py to refresh {name}"


def test_spreadsheet_holds_the_labels_of_the_votes_file():
    value = json.loads(VOTES.read_text("utf-8"))
    names = [criterion["name"] for criterion in value["rubric"]["criteria"]]
    sheet = defaultdict(dict)
    with (FOLDER / "labels.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            sheet[row["id"]][row["person"]] = [row[name] for name in names]
    assert sheet == {item["id"]: item["annotations"] for item in value["items"] if "annotations" in item}


def test_log_holds_the_verdicts_of_the_votes_file():
    value = json.loads(VOTES.read_text("utf-8"))
    names = [criterion["name"] for criterion in value["rubric"]["criteria"]]
    log = defaultdict(list)
    with (FOLDER / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            log[row["id"], row["judge"] or row["error"]].append([row[name] for name in names])
    words = {
        key: [[word for word in column if word] for column in zip(*attempts, strict=True)]
        for key, attempts in log.items()
    }
    wanted = {(item["id"], item["error"]): [[] for _ in names] for item in value["items"] if "error" in item}
    for item in value["items"]:
        for judge, cells in item.get("votes", {}).items():
            plain = [cell.get("verdict", "error") if isinstance(cell, dict) else cell for cell in cells]
            wanted[item["id"], judge] = [cell if isinstance(cell, list) else [cell] for cell in plain]
    assert words == wanted


def test_example_has_documented_contents():
    value = json.loads(VOTES.read_text("utf-8"))
    items = value["items"]
    cells = [cell for item in items for row in item.get("votes", {}).values() for cell in row]
    assert len(items) == 240
    assert len({item["metadata"]["conversation"] for item in items}) == 60
    assert [judge["id"] for judge in value["judges"]] == ["atlas", "breeze", "cinder"]
    assert sorted("weight" in one and one["weight"] < 0 for one in value["rubric"]["criteria"]) == [False] * 6 + [True]
    assert 20 < sum("annotations" not in item for item in items) < 80
    assert 0 < sum("error" in item for item in items) < 10
    assert sum(cell == "CANNOT_ASSESS" for cell in cells) > 50
    assert sum(isinstance(cell, list) for cell in cells) > 100
    assert sum(isinstance(cell, dict) and "failure" in cell for cell in cells) > 10


def test_votes_file_is_valid_without_a_warning():
    done = CliRunner().invoke(app, ["check", str(VOTES)])
    assert (done.exit_code, done.stderr) == (0, "")


def test_command_of_the_readme_gives_the_same_bytes_for_every_hash_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    command = ["agreement", "examples/judge_validation/votes.json", *FLAGS]
    flags = {seed: ["--to", f"{tmp_path}/{seed}.json", "--to", f"{tmp_path}/{seed}.md"] for seed in ("own", "other")}
    own = CliRunner().invoke(app, [*command, *flags["own"]])
    other = subprocess.run(
        [sys.executable, "-m", "deemster", *command, *flags["other"]],
        env={**os.environ, "PYTHONHASHSEED": "4294967295", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        check=False,
    )
    assert (own.exit_code, other.returncode) == (0, 0), own.output + other.stderr.decode()
    assert own.stdout_bytes == other.stdout
    for ending in ("json", "md"):
        assert (tmp_path / f"own.{ending}").read_bytes() == (tmp_path / f"other.{ending}").read_bytes()


def test_best_judge_is_better_than_the_panel(result):
    kappas = {name: judge.mean_kappa for name, judge in result.per_judge.items()}
    assert max(kappas, key=kappas.get) == "atlas"
    assert kappas["atlas"] > result.mean_kappa
    best = result.per_judge["atlas"]
    assert result.intervals["mean_kappa"].ci.lower < best.intervals["mean_kappa"].ci.lower < 0.61 < best.mean_kappa


def test_lenient_judge_correlates_with_people_and_is_biased(result):
    breeze = result.per_judge["breeze"]
    assert breeze.score_spearman.coefficient == pytest.approx(0.74, abs=0.005)
    assert breeze.bias.mean_bias == pytest.approx(0.15, abs=0.005)
    assert breeze.bias.is_significant


def test_noisy_judge_contradicts_itself_on_every_fourth_cell(result):
    (cinder,) = result.consistency
    assert cinder.judge_id == "cinder"
    assert 1 - cinder.stable_share == pytest.approx(0.25, abs=0.03)


def test_agreement_of_people_is_the_ceiling(result):
    assert result.human.ceiling_kappa == pytest.approx(0.77, abs=0.005)
    assert all(judge.mean_kappa < result.human.ceiling_kappa for judge in result.human.judges)


def test_heated_slice_is_weaker_and_account_slice_may_not_be(result):
    ends = {one.tag: one.intervals["kappa_difference"].ci for one in result.slices}
    assert ends["heated"].upper < 0 < ends["account"].upper


def test_probabilities_of_good_judge_are_overconfident(result):
    (many,) = [one for one in result.calibration if one.scale == "multi-choice"]
    assert many.judge_id == "atlas"
    assert many.curve[-1].observed_share == pytest.approx(0.8, abs=0.005)


def test_corrected_rates_differ_from_judged_rates(result):
    (rate,) = [one for one in result.corrected.met_rates if one.name == "asks-back"]
    assert (rate.observed_rate, rate.value) == pytest.approx((0.38, 0.27), abs=0.005)


def test_clusters_widen_the_interval(result):
    alone = compute_metrics(VOTES, bootstrap=BootstrapSettings(seed=7))
    wide, narrow = (one.intervals["mean_kappa"].ci.width for one in (result, alone))
    assert wide > narrow


def test_better_judge_is_significantly_better_and_can_replace_a_person():
    pair = compare_judges(VOTES, None, "atlas", "breeze", bootstrap=BootstrapSettings(seed=7), cluster="conversation")
    ends = pair.mean_kappa.difference.ci
    assert (ends.lower, ends.upper) == pytest.approx((0.13, 0.26), abs=0.005)
    failing = {name for name, test in annotator_tests(VOTES, judge="atlas").items() if not test.passes}
    assert failing == {"completeness"}
