"""`deemster grade`: against a model server, stored, resumed, and on to alignment."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deemster.datasets import Votes
from deemster.runs import run_storage
from deemster.store import open_store
from deemster.testing import ModelServer
from tests.cli.workspace import called
from tests.judges.make_grader import DEPTH, FACTS
from tests.test_schemas import validator
from tests.view.viewer_client import running_viewer

RUBRIC = {"criteria": [FACTS, DEPTH]}


def said(chat):
    """MET, and the option `fair` wherever it is shown; the facts of text 2 are not met."""
    if "option" in chat.schema["properties"]:
        lines = chat[1]["content"].splitlines()
        number = next(int(line[0]) for line in lines if line[1:] == ". fair")
        return json.dumps({"reason": "Seen.", "option": number})
    return json.dumps({"reason": "Seen.", "verdict": "UNMET" if "Text 2." in chat[1]["content"] else "MET"})


@pytest.fixture(autouse=True)
def folder(folder):
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    items = [{"id": f"i{at}", "submission": f"Text {at}."} for at in range(4)]
    truth = [["MET", "fair"], ["MET", "good"], ["UNMET", "fair"], ["MET", "fair"]]
    labelled = [{**item, "ground_truth": truth[at]} for at, item in enumerate(items)]
    (folder / "bare.json").write_text(json.dumps({"name": "essays", "items": items}))
    (folder / "labelled.json").write_text(json.dumps({"name": "essays", "rubric": RUBRIC, "items": labelled}))
    return folder


@pytest.fixture
def server():
    with ModelServer(answer=said) as running:
        yield running


def models(folder, **servers):
    section = {
        role: {"base_url": each.url, "model": role, "retries": 0, "concurrency": 4} for role, each in servers.items()
    }
    (folder / "models.json").write_text(json.dumps({"models": section}))
    return "--models", "models.json"


def one_judge(server):
    section = {"judge": {"base_url": server.url, "model": "m"}}
    Path("models.json").write_text(json.dumps({"models": section}))
    return "--models", "models.json"


def test_grade_reports_every_criterion(server):
    result = called("grade", "bare.json", "--rubric", "rubric.json", *one_judge(server))
    assert result.exit_code == 0, result.stderr
    for word in ("Criteria", "facts", "0.7500", "depth", "0.5000", "Judges", "Stored as"):
        assert word in result.stdout
    assert "Can the" not in result.stdout
    assert len(server.requests) == 8


def test_grade_with_labels_reports_alignment(server):
    result = called("grade", "labelled.json", *one_judge(server), "--to", "-")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    validator("grading").validate(found)
    assert (found["schema_version"], found["status"]) == ("deemster.grading.v1", "complete")
    assert found["figures"]["criteria"]["facts"]["mean"] == 0.75
    assert found["alignment"]["criterion_accuracy"] == pytest.approx(7 / 8)
    assert [item["verdicts"]["facts"] for item in found["items"]] == ["MET", "MET", "UNMET", "MET"]
    shown = called("grade", "labelled.json", *one_judge(server), "--store", "none")
    assert "Stored as" not in shown.stdout
    assert "ccuracy" in shown.stdout


def test_html_has_scores_criteria_judges_and_reasons_unless_they_are_left_out(server, folder):
    flags = ("grade", "labelled.json", *one_judge(server), "--quiet", "--to", "g.html")
    assert called(*flags).exit_code == 0
    page = (folder / "g.html").read_text(encoding="utf-8")
    assert all(title in page for title in ("Scores", "Criteria", "Judges", "with the lowest score", "Judge agreement"))
    assert "Seen." in page
    assert called(*flags, "--without-text").exit_code == 0
    assert "Seen." not in (folder / "g.html").read_text(encoding="utf-8")


def test_panel_of_roles_writes_votes_that_align_reads(folder, server):
    flags = models(folder, a=server, b=server)
    result = called("grade", "labelled.json", "--judge", "a", "--judge", "second=b", *flags, "--to", "votes:v.json")
    assert result.exit_code == 0, result.stderr
    assert [judge.id for judge in Votes.load("v.json").judges] == ["a", "second"]
    assert called("agreement", "v.json").exit_code == 0


def test_flags_override_settings_file(folder, server):
    (folder / "s.yaml").write_text("calls: per_criterion\nrepeats: 3\nseed: 7\n")
    result = called(
        "grade", "labelled.json", *one_judge(server), "--settings", "s.yaml", "--set", "repeats=2", "--to", "-"
    )
    settings = json.loads(result.stdout)["settings"]
    assert (settings["repeats"], settings["seed"], settings["temperature"]) == (2, 7, 0.7)
    assert len(server.requests) == 16


def test_cascade_asks_second_judge_if_first_is_unsure(folder, server):
    # The words of the server have a probability of 0.9; its digits leave less than that to other tokens.
    flags = models(folder, small=server, large=server)
    panel = ("--judge", "small", "--judge", "large", *flags, "--cache", "none", "--to", "-")
    sure = json.loads(called("grade", "labelled.json", *panel, "--set", "cascade.unsure_below=0.5").stdout)
    assert [judge["votes"] for judge in sure["figures"]["judges"]] == [8, 0]
    unsure = json.loads(called("grade", "labelled.json", *panel, "--set", "cascade.unsure_below=1").stdout)
    assert unsure["figures"]["judges"][1]["votes"] > 0


def test_dry_run_counts_without_requests(folder, server):
    result = called("grade", "labelled.json", *one_judge(server), "--dry-run")
    assert result.exit_code == 0
    assert "judge: 8 to 16 requests" in result.stdout
    assert server.requests == []
    assert not (folder / ".deemster").exists()


def test_second_grading_is_answered_from_cache(server):
    called("grade", "labelled.json", *one_judge(server), "--store", "none")
    result = called("grade", "labelled.json", *one_judge(server), "--store", "none")
    assert len(server.requests) == 8
    assert "8 answered from a cache" in result.stdout


def test_failed_votes_make_grading_incomplete_and_resumable(folder, server):
    with ModelServer(faults={"500": 1.0}) as dead:
        first = called("grade", "labelled.json", "--judge", "a", *models(folder, a=dead), "--cache", "none")
    assert first.exit_code == 3
    assert first.stderr.count("failed every call") == 1
    assert " items of 4 could not be graded. The first is `" in first.stderr
    with open_store(".deemster/runs.db") as store:
        (row,) = store.runs()
    assert (row.kind, row.status) == ("grading", "incomplete")
    assert f"--resume={row.id}" in first.stderr
    # The address of a server is part of the identity of a model, so a resume with another port is a change.
    refused = called("grade", "labelled.json", "--judge", "a", *models(folder, a=server), "--resume")
    assert refused.exit_code == 2
    assert "base_url" in refused.stderr
    again = called("grade", "labelled.json", "--judge", "a", *models(folder, a=server), "--resume", "--allow-changed")
    assert again.exit_code == 0, again.stderr
    assert "mixed" in again.stdout


def half_said(chat):
    """No readable verdict on the facts; options as always."""
    return said(chat) if "option" in chat.schema["properties"] else "I would rather not say."


@pytest.mark.parametrize(
    ("allowed", "code"),
    [((), 3), (("3",), 3), (("4",), 0), (("49%",), 3), (("50%",), 0), (("half",), 2), (("4 samples",), 2)],
)
def test_failed_verdicts_above_allowance_are_incomplete(allowed, code):
    flags = ("--set", f"max_failed={allowed[0]}") if allowed else ()
    with ModelServer(answer=half_said) as server:
        result = called("grade", "labelled.json", *one_judge(server), "--quiet", *flags)
    assert result.exit_code == code, result.stderr
    why = f"4 of 8 verdicts failed, above the {''.join(allowed) or 0} allowed: `facts` 4 of 4."
    assert (why in result.stderr) is (code == 3)
    assert ("To continue: the same command with --resume=" in result.stderr) is (code == 3)


QUORUM_LINES = (
    "Warning: 4 of 4 scores lack the vote of a judge that failed",
    "A score needs 1 vote on each criterion",
)


def graded_by_two(folder, *flags, quorum=None, **servers):
    settings = {"judges": ["a", "b"], **({} if quorum is None else {"quorum": quorum})}
    (folder / "settings.json").write_text(json.dumps(settings))
    made = models(folder, **servers)
    return called("grade", "labelled.json", "--settings", "settings.json", *made, "--to", "g.json", *flags)


def test_panel_without_a_member_gives_no_score_and_resume_asks_only_that_member(folder, server):
    with ModelServer(answer=half_said) as other:
        result = graded_by_two(folder, a=server, b=other)
        assert result.exit_code == 3
        found = json.loads((folder / "g.json").read_text())
        validator("grading").validate(found)
        assert "Warning: 4 items of 4 got no score: too few judges of the panel answered" in result.stdout
        assert (found["figures"]["n_scored"], found["figures"]["n_below_quorum"]) == (0, 4)
        assert [item["verdicts"]["facts"] for item in found["items"]] == ["MET", "MET", "UNMET", "MET"]
        why = found["items"][0]["unscored"]
        assert why.startswith("facts: 1 of 2 members of the panel spoke; 2 are needed. First: unreadable, ")
        assert why.endswith(" Votes: a MET.")
        asked = len(server.requests)
        with open_store(folder / ".deemster" / "runs.db") as store, running_viewer(store) as client:
            assert client.get("runs/latest")["run"]["reason"].startswith("4 items of 4 got no score: too few judges")
            shown = client.get("runs/latest/samples/0")["grading"]
        assert shown["unscored"] == why
        assert shown["criteria"][0]["votes"][1]["failure"]["cause"] == "unreadable"

        other.answer = said
        assert graded_by_two(folder, "--resume", a=server, b=other).exit_code == 0
    found = json.loads((folder / "g.json").read_text())
    assert (found["figures"]["n_scored"], found["figures"]["panels"]) == (4, None)
    assert len(server.requests) == asked


def test_lower_quorum_and_scores_that_lack_a_vote_are_said_in_every_form_of_the_grading(folder, server):
    with ModelServer(answer=half_said) as other:
        result = graded_by_two(folder, "--to", "g.html", quorum=1, a=server, b=other)
    assert result.exit_code == 0, result.stderr
    found = json.loads((folder / "g.json").read_text())
    panels = {"n": 4, "n_incomplete": 4, "quorum": 1}
    assert (found["figures"]["panels"], found["settings"]["quorum"]) == (panels, 1)
    assert [item["failed_votes"] for item in found["items"]] == [1, 1, 1, 1]
    page = (folder / "g.html").read_text(encoding="utf-8")
    for line in QUORUM_LINES:
        assert line in " ".join(result.stdout.split())
        assert line in page
    with open_store(folder / ".deemster" / "runs.db") as store, running_viewer(store) as client:
        assert client.get("runs/latest")["panels"] == {"score": panels}


def test_resume_of_complete_grading_sends_no_request(server):
    called("grade", "labelled.json", *one_judge(server), "--cache", "none")
    asked = len(server.requests)
    result = called("grade", "labelled.json", *one_judge(server), "--cache", "none", "--resume")
    assert (result.exit_code, len(server.requests)) == (0, asked)
    assert "4 of 4 are done" in result.stderr


def test_report_and_promote_of_grading_are_bad_input(server):
    flags = ("labelled.json", *one_judge(server))
    first = called("grade", *flags)
    report = called("show", "latest")
    assert report.exit_code == 0
    again = report.stderr.partition("`deemster grade DATASET ")[2].partition("`")[0]
    assert called("grade", *flags, *again.split()).stdout == first.stdout
    promoted = called("export", "latest", "--only", "failed", "--to", "golden.yml")
    assert promoted.exit_code == 2
    assert "is a grading by a rubric, whose items neither pass nor fail." in promoted.stderr


def test_exceeded_budget_makes_grading_incomplete(folder, server):
    result = called("grade", "labelled.json", *one_judge(server), "--budget", "0tokens", "--quiet")
    assert result.exit_code == 3
    assert "were not asked for" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["bare.json"], "There is no rubric"),
        (["labelled.json", "--rubric", "none.json"], "none.json"),
        (["labelled.json", "--judge", "strict"], "`strict`"),
        (["labelled.json", "--settings", "rubric.json"], "`criteria` is no key of a grader"),
        (["labelled.json", "--set", "aggregation=majorty"], "majority"),
        (["labelled.json", "--set", "durable=perhaps"], "`durable` is true or false."),
        (["labelled.json", "--set", "repeat=2"], "Did you mean `repeats`?"),
        (["labelled.json", "--set", "repeats"], "`--set` is KEY=VALUE, such as repeats=3, not `repeats`."),
        (["labelled.json", "--set", "repeats=2", "--set", "repeats.x=2"], "`repeats` is no map of settings"),
        (["labelled.json", "--set", "cascade.unsure_below=0.5"], "needs two judges"),
        (["labelled.json", "--to", "votes:v.csv"], ".json or .jsonl"),
        (["labelled.json", "--store", "none", "--resume"], "`--store none` stores none"),
        (["labelled.json", "--resume=nope"], "nope"),
        (["labelled.json", "--budget", "-1usd"], "budget"),
    ],
)
def test_unusable_input_is_error_before_any_request(server, flags, message):
    file, *rest = flags
    result = called("grade", file, *one_judge(server), *rest)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert server.requests == []


@pytest.mark.parametrize(("flags", "durable"), [((), False), (("--set", "durable=true"), True)])
def test_durable_setting_commits_every_vote_by_itself(server, monkeypatch, flags, durable):
    opened = []
    open_store = run_storage.open_store
    monkeypatch.setattr(
        run_storage, "open_store", lambda *given, **how: opened.append(how) or open_store(*given, **how)
    )
    assert called("grade", "labelled.json", *one_judge(server), *flags).exit_code == 0
    assert [how["durable"] for how in opened] == [durable]


def test_missing_model_is_error():
    result = called("grade", "labelled.json")
    assert result.exit_code == 2
    assert "name a file with a `models` section by `--models FILE`" in result.stderr


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_grading_resumes_to_same_result(folder, blow):
    items = [{"id": f"i{at:03d}", "submission": f"Text {at + 10}."} for at in range(60)]
    (folder / "many.json").write_text(json.dumps({"name": "many", "rubric": RUBRIC, "items": items}))
    with ModelServer(answer=said, faults={"slow=0.05": 1.0}) as server:
        flags = [*models(folder, judge=server), "--cache", "none", "--to", "-"]
        argv = [sys.executable, "-m", "deemster", "grade", "many.json", *flags]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(server.requests) < 60:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(blow)
        out, err = process.communicate(timeout=180)
        if blow == signal.SIGINT:
            assert process.returncode == 3, err
            assert json.loads(out)["status"] == "incomplete"
        before = len(server.requests)
        resumed = called("grade", "many.json", *flags, "--resume")
        assert resumed.exit_code == 0, resumed.stderr
        assert len(server.requests) - before < 120
        whole = called("grade", "many.json", *flags, "--store", "none")
    first, second = json.loads(resumed.stdout), json.loads(whole.stdout)
    assert first["items"] == second["items"]
    assert first["figures"]["criteria"] == second["figures"]["criteria"]


def test_labels_of_other_criteria_are_error(folder, server):
    other = {"criteria": [DEPTH, FACTS]}
    (folder / "other.json").write_text(json.dumps(other))
    result = called("grade", "labelled.json", "--rubric", "other.json", *one_judge(server))
    assert result.exit_code == 2
    swapped = {"criteria": [{**FACTS, "name": "style"}, DEPTH]}
    (folder / "other.json").write_text(json.dumps(swapped))
    result = called("grade", "labelled.json", "--rubric", "other.json", *one_judge(server))
    assert result.exit_code == 2
    assert "The labels are about the criteria `facts`, `depth`, and the rubric has `style`, `depth`." in result.stderr
    assert server.requests == []
    reworded = {"criteria": [{**FACTS, "requirement": "No claim is made up."}, DEPTH]}
    (folder / "other.json").write_text(json.dumps(reworded))
    assert called("grade", "labelled.json", "--rubric", "other.json", *one_judge(server)).exit_code == 0


def test_killed_and_resumed_grading_has_same_cost(folder):
    items = [{"id": f"i{at:03d}", "submission": f"Text {at % 20 + 10}."} for at in range(60)]
    (folder / "many.json").write_text(json.dumps({"name": "many", "rubric": RUBRIC, "items": items}))
    with ModelServer(answer=said, faults={"slow=0.05": 1.0}) as server:
        entry = {"base_url": server.url, "model": "m", "concurrency": 4, "price": {"input": 1, "output": 2}}
        (folder / "models.json").write_text(json.dumps({"models": {"judge": entry}}))
        flags = ["--models", "models.json", "--to", "-"]
        argv = [sys.executable, "-m", "deemster", "grade", "many.json", *flags]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while len(server.requests) < 20:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=180)
        resumed = called("grade", "many.json", *flags, "--resume")
        assert resumed.exit_code == 0, resumed.stderr
        # Every question once, but for those that were under way.
        assert 40 <= len(server.requests) <= 44
        whole = called("grade", "many.json", *flags, "--store", "none", "--cache", "other.jsonl")
    first, second = json.loads(resumed.stdout)["figures"], json.loads(whole.stdout)["figures"]
    assert (first["calls"], first["cached_calls"]) == (40, 80)
    assert first == second


def test_spreadsheet_is_graded_and_compared_with_its_labels(server, folder):
    rows = ["Nr;Answer;facts;depth", "i0;Text 0.;yes;fair", "i1;Text 1.;MET;good", "i2;Text 2.;no;fair"]
    (folder / "items.csv").write_text("\ufeff" + "\r\n".join(rows), "utf-8", newline="")
    argv = ("items.csv", "--rubric", "rubric.json", *one_judge(server))
    done = called("grade", *argv, "--columns", "id=Nr,submission=Answer", "--to", "out.json", "--to", "votes.json")
    assert (done.exit_code, "Judge agreement" in done.stdout) == (0, True), done.stderr
    votes = Votes.load("votes.json")
    assert (votes.ids, votes.blocks[0].labelled.tolist()) == (("i0", "i1", "i2"), [True, True, True])
    plain = called("grade", *argv)
    assert plain.exit_code == 2
    assert "items.csv:1: There is no column of ids: it is called `id`, `item`" in plain.stderr
    assert "A spreadsheet has no rubric." in called("grade", "items.csv", *one_judge(server)).stderr
    assert "Only a spreadsheet has columns." in called("grade", "labelled.json", "--columns", "id=x").stderr
