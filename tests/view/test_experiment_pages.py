"""The page of an experiment: its variants, and the grid of their outputs."""

from __future__ import annotations

import json
import warnings

import pytest

import deemster as dm
from deemster.comparison.experiment_source import stored_experiment
from deemster.models import Role
from deemster.models.fake_models import FakeChat
from deemster.store import open_store
from tests.builders.experiments import store_experiment
from tests.view.viewer_client import running_viewer

EXPERIMENT = "latest"
SAMPLES = [
    {"id": f"q{place}", "input": {"question": f"How many is {place}?"}, "expected_output": f"It is {place}."}
    for place in range(8)
]
LONG = "line\n" * 2000


def number(given):
    return int(given["question"].split()[-1].rstrip("?"))


def right(given):
    return f"It is {number(given)}."


def odd_is_wrong(given):
    return right(given) if number(given) % 2 == 0 else "No idea."


def breaks_at_six(given):
    if number(given) == 6:
        raise ValueError("six is closed")
    return LONG if number(given) == 7 else "No idea." if number(given) == 3 else right(given)


TARGETS = {"short / mini": right, "polite, mini": odd_is_wrong, "<b>terse</b>": breaks_at_six}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("experiment") / "runs.db"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store_experiment(place, dm.Dataset(SAMPLES, name="n"), TARGETS, metrics=["exact-match", "rouge-l"])
        dm.evaluate(dm.Dataset(SAMPLES, name="n"), target=right, metrics=["exact-match"], storage=str(place))
    return place


@pytest.fixture(scope="module")
def client(place):
    with open_store(place) as store, running_viewer(store) as client:
        yield client


def grid(client, query=""):
    return client.get(f"experiments/{EXPERIMENT}/samples?{query}")


def test_page_names_variants_in_their_order_with_what_their_runs_came_to(client):
    page = client.get(f"experiments/{EXPERIMENT}")
    assert [variant["name"] for variant in page["columns"]] == list(TARGETS)
    assert [variant["run"]["pass_rate"] for variant in page["columns"]] == [1.0, 0.5, 0.625]
    assert (page["samples"], page["metrics"], page["judged"]) == (8, ["exact-match", "rouge-l"], [])


def test_column_has_the_prompt_and_settings_of_its_target_and_nothing_else_of_it(tmp_path):
    chat = dm.ChatTarget("chat", "Say {{input.question}}", temperature=0.5)
    models = {"chat": Role(client=FakeChat("It is 1."))}
    targets = {"model": chat, "function": right}
    store_experiment(tmp_path / "runs.db", SAMPLES[:2], targets, metrics=["exact-match"], models=models)
    with open_store(tmp_path / "runs.db") as store, running_viewer(store) as client:
        model, function = [column["target"] for column in client.get("experiments/latest")["columns"]]
    assert model["prompt"] == [{"role": "user", "content": "Say {{input.question}}"}]
    assert (model["chat"], model["parameters"]) == ("chat", {"temperature": 0.5})
    assert set(model) <= {"prompt", "chat", "parameters", "settings"}
    assert function == {}


def test_answer_is_that_of_the_command_with_its_sentences(client, place):
    answer = client.get(f"experiments/{EXPERIMENT}/answer")
    with open_store(place) as store:
        wanted = stored_experiment(store, store.find_experiment(EXPERIMENT))
    assert answer | json.loads(wanted.to_json()) == answer
    assert answer["verdict"] == wanted.verdict
    assert [entry["run"]["label"] for entry in answer["ranking"]["runs"]] == list(TARGETS)


def test_row_has_the_sample_and_whole_outputs_with_their_scores(client):
    found = grid(client)
    assert (found["total"], found["matched"], len(found["rows"])) == (8, 8, 8)
    row = found["rows"][3]
    assert (row["id"], row["input"], row["expected"]) == ("q3", "How many is 3?", "It is 3.")
    assert [cell["output"] for cell in row["cells"]] == ["It is 3.", "No idea.", "No idea."]
    assert [cell["passed"] for cell in row["cells"]] == [1.0, 0.0, 0.0]
    assert row["cells"][1]["scores"]["exact-match"]["score"] == 0.0
    failed = found["rows"][6]["cells"][2]
    assert (failed["output"], failed["scores"]["exact-match"]["cause"]) == (None, "target_failed")


def test_a_long_output_keeps_its_lines_and_is_cut_at_the_limit(client):
    limit = client.get(f"experiments/{EXPERIMENT}")["text_limit"]
    assert grid(client)["rows"][7]["cells"][2]["output"] == f"{LONG[:limit]}…"


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("show=verdicts_differ", "1 3 5 6 7"),
        ("show=outputs_differ", "1 3 5 7"),
        ("show=failing", "1 3 5 6 7"),
        ("show=failing&column=short+/+mini", ""),
        ("show=failing_everywhere&column=polite,+mini&column=<b>terse</b>", "3 7"),
        ("failing=<b>terse</b>", "3 6 7"),
        ("show=verdicts_differ&column=short+/+mini&column=<b>terse</b>", "3 6 7"),
        ("sort=disagreement&show=verdicts_differ", "1 3 5 6 7"),
        ("sort=disagreement&metric=rouge-l&show=failing_everywhere", ""),
        ("sort=worst", "3 7 1 5 6 0 2 4"),
        ("text=no+idea", "1 3 5 7"),
        ("text=no+idea&column=<b>terse</b>", "3"),
        ("text=six+is+closed", "6"),
        ("metric=exact-match&show=verdicts_differ&offset=1&limit=2", "3 5"),
    ],
)
def test_samples_are_found_and_sorted(client, query, ids):
    found = [row["id"] for row in grid(client, query.replace("<", "%3C").replace(">", "%3E"))["rows"]]
    assert found == [f"q{place}" for place in ids.split()]


def test_most_disputed_by_a_metric_come_first(client):
    rows = grid(client, "sort=disagreement&metric=rouge-l")["rows"]
    scores = [[cell["scores"]["rouge-l"]["score"] for cell in row["cells"]] for row in rows]
    # Where one has no score, the verdicts differ: after those whose scores differ, before those that agree.
    assert [row["id"] for row in rows] == ["q1", "q3", "q5", "q7", "q6", "q0", "q2", "q4"]
    assert scores[3:6] == [[1.0, 0.0, 0.0], [1.0, 1.0, None], [1.0, 1.0, 1.0]]


def test_named_columns_are_the_only_cells(client):
    rows = grid(client, "column=polite,+mini")["rows"]
    assert [len(row["cells"]) for row in rows] == [1] * 8


@pytest.mark.parametrize("query", ["show=odd", "sort=up", "column=none", "failing=none", "metric=none", "offset=x"])
def test_bad_question_is_refused(client, query):
    assert client.send(f"/api/experiments/{EXPERIMENT}/samples?{query}").status == 400


def test_unknown_experiment_is_not_found(client):
    answer = client.send("/api/experiments/none")
    assert (answer.status, answer.message) == (404, "The store has no experiment 'none'.")


def test_a_thumb_is_a_label_of_a_chosen_sample_and_comes_back_with_the_row(place):
    with open_store(place) as store, running_viewer(store, author="ada") as client:
        run = client.get(f"experiments/{EXPERIMENT}")["columns"][1]["run"]["id"]
        label = {"run": run, "order": "chosen", "position": 3, "metric": "rouge-l", "verdict": "fail"}
        assert client.post("labels", label).status == 200
        cells = grid(client, "show=failing")["rows"][1]["cells"]
        assert [cell["labels"] for cell in cells] == [{}, {"rouge-l": "fail"}, {}]
        (stored,) = store.labels(run)
        assert (stored.order, stored.probability) == ("chosen", None)
        assert client.post("labels/undo", {"run": run, "order": "chosen"}).json["undone"]["position"] == 3
        assert store.labels(run) == []


def test_list_has_the_runs_of_an_experiment_in_one_line(client):
    found = client.get("runs?limit=1&offset=1")
    assert (found["total"], found["lines"]) == (4, 2)
    assert {run["label"] for run in found["runs"]} == set(TARGETS)
    assert {run["experiment"] for run in found["runs"]} == {client.get(f"experiments/{EXPERIMENT}")["id"]}
    assert [run["experiment"] for run in client.get("runs?limit=1")["runs"]] == [None]


def test_trend_has_the_runs_of_one_variant_alone(client):
    trends = client.get("trends")["suites"]
    assert [(trend["label"], len(trend["runs"])) for trend in trends] == [*((name, 1) for name in TARGETS), (None, 1)]


def test_run_of_an_experiment_is_not_compared_with_the_one_beside_it(client):
    runs = {run["label"]: run["id"] for run in client.get("runs")["runs"]}
    assert client.get(f"runs/{runs['polite, mini']}")["compare_with"] is None
    assert client.get(f"runs/{runs[None]}")["compare_with"] is not None
