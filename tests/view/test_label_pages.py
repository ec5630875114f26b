"""People label samples: hidden verdicts, several authors, undo, skips, exports."""

from __future__ import annotations

import csv
import io
import json
import warnings

import pytest

import deemster as dm
from deemster.calibration.people_labels import LabelTask, label_tasks, labelled_votes, labels_csv
from deemster.engine.model_access import build_model_access
from deemster.engine.run_sync import run_sync
from deemster.errors import ReportError
from deemster.evaluation.rescore_run import rescore
from deemster.judges.rubric_metric import RubricMetric
from deemster.models import FakeChat
from deemster.rubrics.criterion import Criterion
from deemster.store import open_store
from tests.judges.make_grader import DEPTH, FACTS, reply, subject
from tests.view.conftest import evaluate
from tests.view.viewer_client import running_viewer


@pytest.fixture
def store(tmp_path):
    evaluate(tmp_path / "runs.db", name="only")
    with open_store(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture
def desks(store):
    """Two people who label the same run, each at a viewer."""
    with running_viewer(store, author="ada") as ada, running_viewer(store, author="bert") as bert:
        yield ada, bert


def label(client, position, verdict, **other):
    request = {
        "run": "only",
        "position": position,
        "metric": "exact-match",
        "metrics": ["exact-match"],
        "verdict": verdict,
    }
    return client.post("labels", {**request, **other})


def test_queue_is_drawn_at_random_with_its_probability(desks):
    queue = desks[0].get("labels/queue?run=only&n=6&seed=3")
    assert (queue["total"], queue["done"], len(set(queue["positions"]))) == (6, 0, 6)
    assert queue["next"] == {"position": queue["positions"][0], "probability": 6 / 23}
    assert "at random" in queue["said"]
    assert queue == desks[1].get("labels/queue?run=only&n=6&seed=3")
    assert queue["positions"] != desks[0].get("labels/queue?run=only&n=6&seed=4")["positions"]


def test_efficient_queue_draws_doubtful_samples_more_often_and_records_their_probabilities(desks, store):
    path = "labels/queue?run=only&order=efficient&metric=exact-match&n=8"
    queue = desks[0].get(path)
    assert queue == desks[0].get(path)
    assert (queue["total"], len(set(queue["positions"]))) == (8, 8)
    assert "more of those of which the judge is not sure" in queue["said"]
    # The repetitions of sample 8 disagree.
    often = sum(8 in desks[0].get(f"{path}&seed={seed}")["positions"] for seed in range(60))
    seldom = sum(3 in desks[0].get(f"{path}&seed={seed}")["positions"] for seed in range(60))
    assert often > seldom
    position, chance = queue["next"]["position"], queue["next"]["probability"]
    assert 0 < chance < 1
    assert label(desks[0], position, "pass", order="efficient", n=8).status == 200
    (stored,) = store.labels(store.run("only").id)
    assert (stored.order, stored.probability, stored.is_drawn) == ("efficient", chance, True)


@pytest.mark.parametrize(
    ("first", "then", "is_done"),
    [
        ("random", "efficient", True),
        ("efficient", "random", False),
        ("uncertain", "random", False),
        ("uncertain", "efficient", False),
        ("efficient", "uncertain", True),
    ],
)
def test_random_draw_asks_again_what_was_labelled_since_it_was_more_likely_to_be_seen(desks, first, then, is_done):
    ada = desks[0]
    path = "labels/queue?run=only&metric=exact-match&n=22&order="
    shared = set(ada.get(path + first)["positions"]) & set(ada.get(path + then)["positions"])
    position = min(shared)
    assert label(ada, position, "pass", order=first, n=22).status == 200
    assert ada.get(path + then)["done"] == is_done
    seen = ada.get(f"labels/sample?run=only&metric=exact-match&n=22&order={then}&position={position}")
    assert bool(seen["decided"]) == is_done


def test_sample_that_an_unequal_draw_left_out_was_chosen(desks, store):
    positions = desks[0].get("labels/queue?run=only&order=efficient&n=6&metric=exact-match")["positions"]
    left_out = next(position for position in range(20) if position not in positions)
    assert label(desks[0], left_out, "pass", order="efficient", n=6).status == 200
    (stored,) = store.labels(store.run("only").id)
    assert (stored.order, stored.probability, stored.is_drawn) == ("chosen", None, False)


def test_queue_that_is_not_random_says_so(desks):
    uncertain = desks[0].get("labels/queue?run=only&order=uncertain&metric=rouge-l&n=24")
    assert "not drawn at random" in uncertain["said"]
    assert uncertain["next"]["probability"] is None
    disputed = desks[0].get("labels/queue?run=only&order=disputed&metric=exact-match&n=24")
    # Its repetitions disagree.
    assert disputed["positions"][0] == 8
    assert label(desks[0], 2, "fail").status == 200
    assert desks[0].get("labels/queue?run=only&order=disputed&metric=exact-match&n=24")["positions"][0] == 2


def test_verdict_of_the_judge_is_hidden_until_the_person_decides(desks):
    ada, bert = desks
    path = "labels/sample?run=only&position=9&metric=exact-match"
    before = ada.get(path)
    assert before["output"].startswith("Perhaps")
    assert (before["revealed"], before["decided"]) == (None, [])
    assert not {"score", "marks", "scores", "success", "votes"} & set(json.dumps(before).replace('"', " ").split())
    answer = label(ada, 9, "pass", note="close enough").json
    assert answer["revealed"]["verdict"] == "fail"
    assert answer["label"]["author"] == "ada"
    after = ada.get(path)
    assert after["revealed"][0]["score"] == 0.0
    assert after["decided"][0]["note"] == "close enough"
    assert bert.get(path)["revealed"] is None


def test_label_records_how_the_sample_was_drawn(desks, store):
    first = desks[0].get("labels/queue?run=only&n=6&seed=3&metric=exact-match")["positions"][0]
    assert label(desks[0], first, "pass", n=6, seed=3).status == 200
    (stored,) = store.labels(store.run("only").id)
    assert (stored.order, stored.probability, stored.seed) == ("random", 6 / 23, 3)
    outside = next(at for at in range(24) if at not in desks[0].get("labels/queue?run=only&n=6&seed=3")["positions"])
    label(desks[0], outside, "pass", n=6, seed=3)
    assert [each.probability for each in store.labels(store.run("only").id) if each.position == outside] == [None]


def test_skip_needs_a_reason_and_undo_takes_the_last_label_back(desks):
    ada, bert = desks
    assert label(ada, 1, None).status == 400
    assert label(ada, 1, "pass", skip_reason="both").status == 400
    assert label(ada, 1, None, skip_reason="unreadable").json["label"]["skip_reason"] == "unreadable"
    label(bert, 1, "pass")
    label(ada, 2, "fail")
    undone = ada.post("labels/undo", {"run": "only"}).json
    assert undone["undone"]["position"] == 2
    assert [author["name"] for author in ada.get("labels?run=only")["authors"]] == ["ada", "bert"]
    ada.post("labels/undo", {"run": "only"})
    assert ada.post("labels/undo", {"run": "only"}).json == {"undone": None}
    queue = ada.get("labels/queue?run=only")
    assert (queue["total"], queue["done"]) == (23, 0)
    assert [author["name"] for author in ada.get("labels?run=only")["authors"]] == ["bert"]


def test_agreement_of_two_people_is_cohens_kappa(desks):
    ada, bert = desks
    answers = [
        ("pass", "pass"),
        ("fail", "fail"),
        ("pass", "fail"),
        ("pass", "pass"),
        ("fail", "fail"),
        ("fail", "pass"),
    ]
    for position, (first, second) in enumerate(answers):
        label(ada, position, first)
        label(bert, position, second)
    label(ada, 10, "pass")
    found = ada.get("labels?run=only")
    wanted = dm.stats.cohen_kappa(*map(list, zip(*answers, strict=True)))
    (agreement,) = found["agreement"]
    assert (agreement["statistic"], agreement["n"], agreement["value"]) == ("kappa", 6, pytest.approx(wanted.value))
    assert agreement["interval"] == pytest.approx([wanted.interval.lower, wanted.interval.upper])
    assert found["authors"] == [{"name": "ada", "labels": 7}, {"name": "bert", "labels": 6}]
    (needed,) = found["needed"]
    assert needed["have"] == 7
    assert needed["more"] == 24 - 7


def test_agreement_of_people_says_nothing_by_samples_on_which_they_differ(desks):
    ada, bert = desks
    for position in range(4):
        label(ada, position, "pass", order="disputed")
        label(bert, position, "fail", order="disputed")
    (agreement,) = ada.get("labels?run=only")["agreement"]
    assert (agreement["n"], agreement["value"], agreement["interval"]) == (0, None, None)
    assert agreement["because"] == "No sample that was drawn at random was labelled by two people."
    for position in range(4, 8):
        label(ada, position, "pass" if position % 2 else "fail")
        label(bert, position, "pass" if position % 2 else "fail")
    (agreement,) = ada.get("labels?run=only")["agreement"]
    assert (agreement["n"], agreement["value"]) == (4, 1.0)


def test_agreement_of_three_people_is_alpha_with_an_interval(desks, store):
    rows = ["pppppffffp", "ppppffffpp", "ppppfffffp"]
    with running_viewer(store, author="cleo") as cleo:
        for client, row in zip((*desks, cleo), rows, strict=True):
            for position, verdict in enumerate(row):
                label(client, position, {"p": "pass", "f": "fail"}[verdict])
            (agreement,) = client.get("labels?run=only")["agreement"]
    wanted = dm.stats.krippendorff_alpha([list(row) for row in rows]).value
    assert (agreement["statistic"], agreement["because"]) == ("alpha", None)
    assert agreement["value"] == pytest.approx(wanted)
    # Units, weights and imagined units are those of the agreement page.
    votes = labelled_votes(store, store.run("only")).to_dict()
    for item in votes["items"]:
        # The target failed for one sample, which the agreement leaves out; people labelled it.
        item["votes"]["judge"] = ["MET"]
    align = dm.compute_metrics(dm.Votes.parse(votes), bootstrap=dm.agreement.BootstrapSettings()).human.intervals[
        "krippendorff_alpha"
    ]
    assert agreement["interval"] == pytest.approx([align.ci.lower, align.ci.upper], abs=0.1)
    assert agreement["interval"][0] < agreement["value"] < agreement["interval"][1]


def test_alpha_of_one_answer_throughout_is_undefined_and_says_why(desks, store):
    with running_viewer(store, author="cleo") as cleo:
        for client in (*desks, cleo):
            label(client, 1, "pass")
        (agreement,) = cleo.get("labels?run=only")["agreement"]
        assert (agreement["value"], agreement["interval"]) == (None, None)
        assert "Only one sample" in agreement["because"]
        for client in (*desks, cleo):
            label(client, 2, "pass")
        (agreement,) = cleo.get("labels?run=only")["agreement"]
    assert (agreement["value"], agreement["interval"]) == (None, None)
    assert "one same answer" in agreement["because"]


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "maybe"},
        {"metric": "rogue-l"},
        {"position": 99},
        {"position": -1},
        {"repetition": 7},
        {"run": "nowhere"},
        {"order": "best"},
        {"author": "eve"},
        {"note": "x" * 20_000},
        {"position": "1"},
    ],
)
def test_what_is_no_label_is_refused(desks, store, change):
    assert label(desks[0], **{"position": 1, "verdict": "pass", **change}).status in (400, 404)
    assert store.labels(store.run("only").id) == []


def test_viewer_without_author_changes_nothing(store):
    with running_viewer(store) as client:
        assert label(client, 1, "pass").status == 405
        assert client.get("session")["reads_only"] is True
        assert client.get("labels/queue?run=only")["done"] == 0


def test_labels_leave_as_csv_and_votes(desks, store):
    ada, bert = desks
    for position in range(12):
        for client in (ada, bert):
            label(client, position, "fail" if position in (1, 2, 5, 9) else "pass", note="=1+1")
    answer = ada.send("/api/labels/export?run=only&format=csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.body.decode("utf-8-sig"))))
    assert len(rows) == 24
    assert rows[0] | {"labelled_at": ""} == {
        "id": "q00", "criterion": "exact-match", "annotator": "ada", "verdict": "pass", "repetition": "0",
        "note": "'=1+1", "skip_reason": "", "labelled_at": "", "order": "random", "seed": "0",
        "inclusion_probability": "1",
    }  # fmt: skip
    votes = dm.Votes.parse(ada.get("labels/export?run=only&format=votes"))
    result = dm.compute_metrics(votes, bootstrap=dm.agreement.BootstrapSettings(replicates=50))
    # The target failed for q05. Of the others, people fail q02 alone where the metric passes.
    assert (result.n_items, result.criterion_accuracy) == (11, pytest.approx(10 / 11))
    assert result.per_criterion[0].name == "exact-match"
    assert labels_csv(store, store.run("only")).encode() == answer.body


def test_run_without_labels_has_no_votes(store):
    with pytest.raises(ReportError, match="Nobody has labelled"):
        labelled_votes(store, store.run("only"))


def test_agreement_page_is_what_align_says(desks, store):
    ada, bert = desks
    assert ada.get("runs/only/agreement")["available"] is False
    for position in range(12):
        for client in (ada, bert):
            label(client, position, "fail" if position in (1, 2, 9) else "pass")
    found = ada.get("runs/only/agreement")
    wanted = dm.compute_metrics(labelled_votes(store, store.run("only")), bootstrap=dm.agreement.BootstrapSettings())
    assert (found["source"], found["result"]) == ("labels", json.loads(wanted.to_json()))


ESSAY = {"criteria": [FACTS, DEPTH]}


def judge(ask):
    good = "Text 1." in ask.messages[1].content
    return reply(ask, {"facts": "MET" if good else "UNMET", "depth": "good" if good else "poor"}[subject(ask, ESSAY)])


@pytest.fixture
def essays(tmp_path):
    """A viewer for ada over an evaluation by the metric `rubric`, and its store."""
    # A metric that could score none of the samples is refused.
    expected = [None, None, "Text."]
    samples = [
        {"id": f"s{at}", "input": {"question": "?"}, "expected_output": text} for at, text in enumerate(expected)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dm.evaluate(
            samples,
            outputs={f"s{at}": f"Text {at}." for at in range(3)},
            metrics=[RubricMetric(rubric=ESSAY, judges=["a"], name="essay"), "exact-match"],
            models={"a": FakeChat(judge)},
            gate={"metrics": {"essay/depth": {"min_mean": 0.6}}},
            name="only",
            storage=str(tmp_path / "runs.db"),
        )
    with open_store(tmp_path / "runs.db") as store, running_viewer(store, author="ada") as client:
        yield client, store


def test_criteria_of_a_metric_are_labelled_one_by_one(essays):
    client, store = essays
    queue = client.get("labels/queue?run=only&n=3")
    asked = {task["title"]: (task["requirement"], [one["value"] for one in task["options"]]) for task in queue["tasks"]}
    assert asked == {
        "essay/facts": ("Every claim is supported.", ["MET", "UNMET", "CANNOT_ASSESS"]),
        "essay/depth": ("How deep is it?", ["poor", "fair", "good", "n-a"]),
        "essay": (None, ["pass", "fail"]),
    }
    request = {"metric": "essay", "metrics": ["essay"]}
    answer = label(client, 1, "fair", criterion="depth", **request).json
    shown = answer["revealed"]
    assert (shown["verdict"], shown["score"], shown["reason"]) == ("good", 1.0, "Because.")
    assert label(client, 1, "maybe", criterion="depth", **request).status == 400
    for position, facts in enumerate(("UNMET", "MET", "MET")):
        label(client, position, facts, criterion="facts", **request)
    votes = labelled_votes(store, store.run("only"))
    found = dm.compute_metrics(votes, bootstrap=dm.agreement.BootstrapSettings(replicates=0))
    assert [(one.name, one.n_samples) for one in found.per_criterion] == [("essay/facts", 3), ("essay/depth", 1)]
    assert found.per_criterion[0].accuracy == pytest.approx(2 / 3)
    lines = list(csv.DictReader(io.StringIO(labels_csv(store, store.run("only")))))
    assert {line["criterion"] for line in lines} == {"essay/facts", "essay/depth"}


def test_each_judge_of_a_panel_is_a_judge_of_the_alignment(tmp_path):
    samples = [{"id": f"s{at}", "input": {"question": "?"}, "expected_output": "Text 1."} for at in range(3)]
    score = {"mild": lambda text: 1.0, "strict": lambda text: 1.0 if "Text 1." in text else 0.0}

    def judge_of(name):
        def answer(ask):
            text = ask.messages[1].content.rpartition("Text ")[2]
            return json.dumps({"reason": name, "score": score[name](f"Text {text}")})

        return FakeChat(answer)

    dm.evaluate(
        samples,
        outputs={f"s{at}": f"Text {at}." for at in range(3)},
        metrics=[{"llm-as-judge": {"models": ["mild", "strict"]}}, "exact-match"],
        models={name: judge_of(name) for name in score},
        name="only",
        storage=str(tmp_path / "runs.db"),
    )
    with open_store(tmp_path / "runs.db") as store, running_viewer(store, author="ada") as client:
        for position in range(3):
            for metric in ("llm-as-judge", "exact-match"):
                verdict = "pass" if position == 1 else "fail"
                label(client, position, verdict, metric=metric, metrics=["llm-as-judge", "exact-match"])
        page = client.get("runs/only/agreement")
        votes = labelled_votes(store, store.run("only")).to_dict()
    assert [each["id"] for each in votes["judges"]] == ["mild", "strict", "judge"]
    assert votes["items"][0]["votes"] == {"mild": ["MET", None], "strict": ["UNMET", None], "judge": [None, "UNMET"]}
    # Half of the panel passes s0, and its mean reaches the pass mark.
    assert votes["items"][0]["final"][0] == "MET"
    accuracy = {name: one["criterion_accuracy"] for name, one in page["result"]["per_judge"].items()}
    assert accuracy == {"mild": pytest.approx(1 / 3), "strict": 1, "judge": 1}


def test_rule_on_a_criterion_waits_for_labels(essays):
    client, _ = essays
    label(client, 0, "good", criterion="depth", metric="essay", metrics=["essay"])
    (need,) = client.get("labels?run=only")["needed"]
    assert "people's mean value of essay/depth reaches 0.6" in need["what"]
    assert (need["have"], need["more"]) == (1, 2)


def test_run_without_its_rubrics_is_labelled_as_a_whole(essays):
    client, store = essays
    name = store.run("only").id
    store.lease(name)
    store.amend(name, facts={"rubrics": {}})
    queue = client.get("labels/queue?run=only&n=3")
    assert [task["title"] for task in queue["tasks"]] == ["essay"]


def test_criteria_of_a_later_scoring_are_labelled_too(store):
    metric = RubricMetric(rubric={"criteria": [FACTS]}, judges=["a"], name="essay")
    access = build_model_access({"a": FakeChat(lambda ask: reply(ask, "MET"))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_sync(rescore(store, "only", metrics=[metric], access=access, warn=lambda _: None))
    titles = [task.title for task in label_tasks(store, store.run("only"))]
    assert titles == ["exact-match", "rouge-l", "essay/facts", "essay"]


def test_number_within_the_range_of_a_criterion_is_an_answer():
    task = LabelTask("", "length", Criterion("How long does it feel?", name="length", minimum=1, maximum=5))
    assert [task.takes(said) for said in ("1", "3.5", "5.1", "nan", "long", "CANNOT_ASSESS")] == [
        *(True, True, False, False, False, True)
    ]
    assert (task.worth("4"), task.worth("CANNOT_ASSESS")) == (0.75, None)


def test_only_samples_with_an_output_are_offered_for_labels(tmp_path):
    outputs = [{"id": f"s{at}", "output": "Yes."} for at in range(6)] + [{"id": "s6", "error": "down"}]
    samples = [{"id": f"s{at}", "input": {"question": "?"}, "expected_output": "Yes."} for at in range(7)]
    store_file = str(tmp_path / "runs.db")
    dm.evaluate(samples, outputs=outputs, metrics=["exact-match"], name="only", storage=store_file)
    with open_store(store_file) as store, running_viewer(store, author="ada") as client:
        for order in ("random", "efficient", "disputed", "uncertain"):
            queue = client.get(f"labels/queue?run=only&n=7&order={order}")
            assert sorted(queue["positions"]) == [0, 1, 2, 3, 4, 5], order
