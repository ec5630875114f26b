"""`deemster baseline`: what becomes a baseline, what is refused, and how it is named."""

from __future__ import annotations

import json

import pytest

import deemster as dm
from tests.cli.make_baselines import answers, dataset, ran, ready, suite
from tests.cli.workspace import called, written


@pytest.fixture
def folder(world):
    return world()


def refused(*argv):
    result = called(*argv)
    assert result.exit_code == 2
    return result.stderr


def test_run_becomes_the_baseline_and_is_shown(folder):
    ready(folder, count=20)
    shown = called("baseline").stdout.splitlines()
    assert (
        shown[1].split()
        == (
            "refunds support 20250615T150640Z-"
            + shown[1].split("Z-")[1][:6]
            + " 2025-06-15 15:06 20 1.0000 1.0000 exact-match"
        ).split()
    )
    (entry,) = json.loads(called("baseline", "--to", "-").stdout)
    assert (entry["suite"], entry["facts"]["summary"]["metrics"]) == ("refunds", {"exact-match": 1.0})
    assert set(entry["facts"]["metrics"]["exact-match"]) == {"definition", "threshold"}
    assert len(entry["facts"]["fingerprint"]) == 64


def test_store_without_baseline_says_so(ran):
    assert called("baseline").stdout.startswith("There is no baseline yet.")
    assert "There is no baseline." in refused("baseline", "--clear")
    assert "There is no baseline yet. `deemster baseline RUN`" in refused("show", "baseline")


def test_baseline_is_a_run_for_every_command(folder):
    ready(folder, wrong={1}, count=20)
    ran(folder, wrong={1, 2}, count=20)
    first = called("baseline").stdout.split("support")[1].split()[0]
    assert first in called("show", "baseline").stdout
    assert "s001" in called("show", "baseline", "s001").stdout
    assert first in called("show", "baseline").stdout
    assert f"Baseline: {first}" in called("compare", "baseline", "latest").stdout
    assert (
        "1 run again: none passes now, 1 still fails (s001)."
        in called("run", "suite.yml", "--only", "failed:baseline", "--to", "-").stderr
    )


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--only", "tag:policy"), "it ran a part of its dataset, 10 of 20 samples."),
        (("--outputs", "half.yml"), "samples crashed"),
        (("--outputs", "wrong.yml"), "it failed its gate: min_macro_f1: the estimate is below the bound; s000, s001, "),
    ],
)
def test_run_that_others_must_not_be_measured_by_is_refused(folder, flags, why):
    failing = "outputs:\n" + "".join(f"  s{at:03d}: {{ error: down }}\n" for at in range(20))
    written(
        folder,
        {
            "golden.yml": dataset(20),
            "answers.yml": answers(count=20),
            "half.yml": failing,
            "wrong.yml": answers(range(10), count=20),
            "suite.yml": suite(None, further=", min_macro_f1: 0.9"),
        },
    )
    result = called("run", "suite.yml", "--quiet", "--as-baseline", *flags)
    assert result.exit_code != 0
    assert "cannot become the baseline:" in result.stderr
    assert why in result.stderr
    assert why in refused("baseline", "latest")
    assert called("baseline").stdout.startswith("There is no baseline yet.")


def test_refused_promotion_of_a_run_that_passes_is_bad_input(folder):
    ready(folder, count=20)
    result = called("run", "suite.yml", "--quiet", "--as-baseline", "--only", "tag:policy")
    assert result.exit_code in (2, 4)
    written(folder, {"suite.yml": suite(None)})
    assert called("run", "suite.yml", "--quiet", "--as-baseline", "--only", "tag:policy").exit_code == 2


def test_no_store_has_no_baseline(folder):
    assert "`--as-baseline` is for a stored run" in refused("run", "suite.yml", "--store", "none", "--as-baseline")


def test_grown_dataset_may_replace_a_baseline_and_a_shrunken_one_may_not(folder):
    ready(folder, None, count=20)
    ran(folder, count=25, golden_yml=dataset(25))
    assert called("baseline", "latest").exit_code == 0
    ran(folder, count=25, without={3})
    said = refused("baseline", "latest")
    assert "its dataset lacks 1 sample of the baseline" in said
    assert "`deemster baseline --clear` forgets the baseline" in said
    assert called("baseline", "--clear").exit_code == 0
    assert called("baseline", "latest").exit_code == 0


def test_another_dataset_does_not_replace_a_baseline(folder):
    ready(folder, None, count=20)
    ran(folder, count=20, golden_yml=dataset(20).replace("name: support", "name: other"))
    assert "its dataset is `other`, and that of the baseline is `support`" in refused("baseline", "latest")


def test_checks_against_a_baseline_that_was_cleared_do_not_stop_a_promotion(folder):
    ready(folder, "margin: 0.5")
    result = ran(folder, golden_yml=dataset(200, edited={0, 1}))
    assert result.exit_code == 1
    assert "it failed its gate: baseline.max_removed" in refused("baseline", "latest")
    called("baseline", "--clear", "refunds")
    assert called("baseline", "latest").exit_code == 0


def test_baseline_is_not_removed_or_pruned(folder):
    ready(folder, count=20)
    ran(folder, count=20)
    assert "is a baseline, so it stays. `deemster baseline --clear` forgets it." in refused(
        "store", "rm", "--yes", "baseline"
    )
    assert called("store", "rm", "--keep", "0", "--yes").exit_code == 0
    assert called("show", "baseline").exit_code == 0
    assert len(called("show").stdout.splitlines()) == 2


def test_clear_names_the_nearest_suite(folder):
    ready(folder, count=20)
    assert "There is no baseline of `refund`. Did you mean `refunds`?" in refused("baseline", "--clear", "refund")
    assert "forgot the baseline of refunds" in called("baseline", "--clear", "refunds").stderr


def test_baseline_of_runs_without_a_suite_is_cleared_by_the_name_of_their_dataset(folder):
    ready(folder, count=20)
    run = dm.evaluate(
        dm.Dataset([{"id": "a", "input": {"q": 1}, "expected_output": "x"}], name="loose"),
        outputs={"a": "x"},
        metrics=["exact-match"],
        storage=".deemster/runs.db",
    )
    assert called("baseline", run.run.id).exit_code == 0
    assert "Name the suite: dataset:loose, refunds." in refused("baseline", "--clear")
    assert "There is no baseline of `loose`. Did you mean `dataset:loose`?" in refused("baseline", "--clear", "loose")
    assert "forgot the baseline of loose" in called("baseline", "--clear", "dataset:loose").stderr
    assert "forgot the baseline of refunds" in called("baseline", "--clear").stderr
