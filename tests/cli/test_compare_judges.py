"""A new judge of the same outputs: judged anew, compared with the old one, made the baseline."""

from __future__ import annotations

import json
import re
import signal
import zlib
from pathlib import Path

import pytest

import deemster as dm
from deemster.comparison.report_loader import load_comparison
from tests.cli.workspace import called, started

SUITE = """\
name: shop
dataset: golden.yml
target: { outputs: answers.yml }
metrics: [{ llm-as-judge: { threshold: %s } }]
models: { judge: { client: "tests.cli.test_compare_judges:%s" } }
gate: { decision: three-way, min_macro_f1: 0.2, baseline: { margin: 0.05 } }
"""
N = 240


def quality(ask):
    said = re.findall(r"answer \d+", ask.messages[-1].content)[-1]
    return zlib.crc32(said.encode()) % 1000 / 1000


def judge(name, shift):
    def answer(ask):
        return {"reason": f"{name} read it.", "score": round(min(1.0, max(0.0, quality(ask) + shift)), 3)}

    return dm.models.FakeChat(answer, model=name, identity={"model": name})


kind = judge("kind-1", 0.0)
twin = judge("twin-1", 0.0)
strict = judge("strict-1", -0.12)
upside = dm.models.FakeChat(
    lambda ask: {"reason": "Upside down.", "score": round(1 - quality(ask), 3)},
    model="up-1",
    identity={"model": "up-1"},
)


def suite(name, threshold=0.7):
    Path(f"{name}.yml").write_text(SUITE % (threshold, name))


@pytest.fixture
def shop(folder):
    tags = ("policy", "price")
    samples = "".join(
        f"  - {{id: s{n}, input: {{question: Why {n}?}}, expected_output: word, metadata: {{tags: [{tags[n % 2]}]}}}}\n"
        for n in range(N)
    )
    Path("golden.yml").write_text(f"name: shop\nsamples:\n{samples}")
    Path("answers.yml").write_text("outputs:\n" + "".join(f"  s{n}: answer {n}\n" for n in range(N)))
    for name in ("kind", "twin", "strict"):
        suite(name)
    assert called("run", "kind.yml", "--quiet", "--name", "old", "--as-baseline").exit_code == 0
    return folder


def change(*argv):
    done = called("compare", *argv, "--to", "comparison.json")
    assert Path("comparison.json").exists(), done.stderr
    return json.loads(Path("comparison.json").read_text())["judge_change"]


def first_line(*argv):
    return called("compare", *argv).stdout.splitlines()[0]


def test_change_of_judge_from_an_open_gate_to_a_green_one(shop):
    gated = called("run", "strict.yml", "--name", "live")
    assert gated.exit_code == 4
    assert "deemster run SUITE --outputs" in " ".join((gated.stdout + gated.stderr).split())

    called("run", "strict.yml", "--outputs", "old", "--quiet", "--name", "new")
    assert re.fullmatch(
        r"Linked: for llm-as-judge use threshold 0\.5\d* in place of 0\.70\.", first_line("old", "new")
    ), first_line("old", "new")
    assert change("old", "new")["answer"] == "linked"

    mark = change("old", "new")["metrics"]["llm-as-judge"]["exchange"]["mark"]
    suite("strict", mark)
    called("run", "strict.yml", "--outputs", "old", "--quiet", "--name", "linked")
    assert called("baseline", "linked").exit_code == 0
    assert called("run", "strict.yml", "--quiet").exit_code == 0


@pytest.mark.parametrize(
    ("judge_name", "requirement", "code"),
    [("twin", "interchangeable", 0), ("twin", "linked", 0), ("strict", "linked", 0), ("strict", "interchangeable", 1)],
)
def test_what_is_required_of_a_new_judge_is_the_exit_code(shop, judge_name, requirement, code):
    called("run", f"{judge_name}.yml", "--outputs", "old", "--quiet", "--name", "new", "--only", "tag:policy")
    called("run", f"{judge_name}.yml", "--outputs", "old", "--quiet", "--name", "new")
    done = called("compare", "old", "new", "--require", requirement)
    assert done.exit_code == code
    assert (f"What `--require {requirement}` asks for is not shown: exit code 1." in done.stderr) is (code == 1)


def test_few_outputs_drawn_at_random_are_inconclusive_and_cost_that_many_calls(shop):
    done = called("run", "twin.yml", "--outputs", "old", "--sample", "30", "--name", "few", "--to", "few.json")
    assert json.loads(Path("few.json").read_text())["usage"]["total"]["calls"] == 30, done.stderr
    assert called("compare", "old", "few", "--require", "linked").exit_code == 4
    assert re.match(
        r"Not enough data: judge about \d+ outputs; 30 outputs were judged by both\.", first_line("old", "few")
    )


def test_part_that_is_not_comparable_names_no_command_that_would_be_refused(shop):
    Path("upside.yml").write_text(Path("kind.yml").read_text().replace(":kind", ":upside"))
    called("run", "upside.yml", "--outputs", "old", "--sample", "120", "--quiet", "--name", "part")
    assert first_line("old", "part") == (
        "Not comparable: let the new judge judge all outputs, and make that the new baseline."
    )
    called("run", "upside.yml", "--outputs", "old", "--quiet", "--name", "whole")
    assert first_line("old", "whole").startswith("Not comparable: start a new baseline: `deemster baseline 2")


def test_requirement_needs_another_judge(shop):
    done = called("compare", "old", "old", "--require", "linked")
    assert (done.exit_code, "two judges that scored the same outputs" in done.stderr) == (2, True)


def test_comparison_of_one_judge_has_no_word_about_judges(shop):
    called("run", "kind.yml", "--quiet", "--name", "again")
    called("compare", "old", "again", "--to", "comparison.json")
    assert "judge_change" not in json.loads(Path("comparison.json").read_text())
    assert dm.compare("old", "again").judge_change is None


def test_every_form_of_a_comparison_says_what_the_old_numbers_are_worth(shop):
    called("run", "strict.yml", "--outputs", "old", "--quiet", "--name", "new")
    called("compare", "old", "new", "--to", "c.json", "--to", "c.md", "--to", "c.html", "--to", "pr-comment.md")
    for file in ("c.md", "c.html", "pr-comment.md"):
        text = Path(file).read_text()
        assert "Linked: for" in text
        assert "in place of 0.70" in text
        assert "old judge" in text
        assert "n/a" not in text
    page = Path("c.html").read_text()
    assert "strict-1 read it." in page
    assert "pass under the old judge only" in page

    assert load_comparison("c.json").to_json() == Path("c.json").read_text() == dm.compare("old", "new").to_json()

    shared = called("compare", "old", "new", "--without-text", "--to", "-").stdout
    assert "read it." not in shared


KILLED = """\
import os, signal, zlib
from pathlib import Path

import deemster as dm

def answer(ask):
    with open("calls", "a") as file:
        file.write("called\\n")
    if Path("calls").read_text().count("called") == 100 and not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"reason": "r", "score": 0.5}

judge = dm.models.FakeChat(answer, model="killed-1", identity={"model": "killed-1"})
"""


def test_new_judging_that_is_killed_is_resumed_without_judging_again(shop):
    Path("killed_judge.py").write_text(KILLED)
    Path("killed.yml").write_text(
        Path("kind.yml").read_text().replace("tests.cli.test_compare_judges:kind", "killed_judge:judge")
    )
    Path("killed.yml").write_text(f"durable: true\nlimits: {{ concurrency: 4 }}\n{Path('killed.yml').read_text()}")
    process = started(shop, "run", "killed.yml", "--outputs", "old", "--quiet", "--cache", "none")
    process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL

    done = called("run", "killed.yml", "--outputs", "old", "--resume", "--cache", "none", "--to", "done.json")
    assert json.loads(Path("done.json").read_text())["totals"]["scored"] == N, done.stderr
    assert N <= Path("calls").read_text().count("called") < N + 60
    assert change("old", "latest")["metrics"]["llm-as-judge"]["outputs"] == N


def test_one_screen_shows_the_metric_that_decides_and_names_the_others(shop):
    for name in ("kind", "strict"):
        text = Path(f"{name}.yml").read_text()
        mark = 0.1 if name == "kind" else 0.2
        Path(f"{name}.yml").write_text(
            text.replace("metrics: [", f"metrics: [{{ rouge-l: {{ threshold: {mark} }} }}, ")
        )
        called("run", f"{name}.yml", "--quiet", "--name", f"two-{name}")
    screen = called("compare", "two-kind", "two-strict").stdout
    assert screen.startswith("Linked: for llm-as-judge")
    assert "rouge-l: interchangeable, since no number moves beyond its margin." in screen
    assert "rouge-l: 240 outputs that both judges scored" not in screen
    assert (
        "rouge-l: 240 outputs that both judges scored" in called("compare", "two-kind", "two-strict", "--full").stdout
    )


def test_interchangeable_judge_may_give_the_baseline(shop):
    called("run", "twin.yml", "--outputs", "old", "--quiet", "--name", "new")
    screen = called("compare", "old", "new").stdout
    assert screen.startswith("Interchangeable: old numbers stand beside those of the new judge.")
    assert "deemster baseline new" in screen


def test_two_scorings_of_one_run_are_compared_where_it_is_named_twice(shop):
    lines = Path("strict.yml").read_text().splitlines(keepends=True)
    Path("scorer.yml").write_text("".join(lines[3:5]))
    assert called("run", "scorer.yml", "--outputs", "old", "--quiet").exit_code in (0, 1, 4)
    found = change("old", "old")["metrics"]["llm-as-judge"]
    assert (found["answer"], found["outputs"], found["only_now"]) == ("linked", N, 0)
    assert found["flips"][0]["baseline"]["marks"]["llm-as-judge"]["details"]["judge_reason"] == "kind-1 read it."


def test_labels_say_which_judge_is_the_better_one(shop):
    called("run", "strict.yml", "--outputs", "old", "--quiet", "--name", "new")
    rows = []
    for n in range(N):
        score = zlib.crc32(f"answer {n}".encode()) % 1000 / 1000
        rows.append(f"s{n},{'pass' if score >= 0.82 else 'fail'}\n")
    Path("labels.csv").write_text("id,verdict\n" + "".join(rows))
    people = change("old", "new", "--labels", "labels.csv")["metrics"]["llm-as-judge"]["people"]
    assert (people["labels"], people["now"], people["closer"]) == (N, 0.0, "now")
    assert people["passes_failed"][0] > people["passes_failed"][1] == 0.0
    assert "The new judge is closer to people" in called("compare", "old", "new", "--labels", "labels.csv").stdout


def test_past_decisions_are_told_where_both_judges_judged_the_outputs(shop):
    Path("strict.yml").write_text(Path("strict.yml").read_text().replace("min_macro_f1: 0.2", "min_macro_f1: 0.25"))
    called("run", "strict.yml", "--outputs", "old", "--quiet", "--name", "new")
    (decision,) = change("old", "new")["past_decisions"]
    assert (decision["before"], decision["now"]) == ("pass", "fail")
    assert "0 same, 1 changed" in called("compare", "old", "new").stdout


def test_outputs_that_were_judged_twice_say_how_the_old_judge_agrees_with_itself(shop):
    called("run", "kind.yml", "--outputs", "old", "--quiet", "--name", "twice", "--repetitions", "2")
    called("run", "strict.yml", "--outputs", "old", "--quiet", "--name", "new")
    agreement = change("twice", "new")["metrics"]["llm-as-judge"]["agreement"]
    assert (agreement["retests"], agreement["retest_kappa"]) == (N, 1.0)


def test_other_outputs_are_no_change_of_judge(shop):
    Path("answers.yml").write_text(Path("answers.yml").read_text().replace("answer 7\n", "answer 9999\n"))
    called("run", "strict.yml", "--quiet", "--name", "other")
    called("compare", "old", "other", "--to", "comparison.json")
    assert "judge_change" not in json.loads(Path("comparison.json").read_text())
