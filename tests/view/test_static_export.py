"""Exports hold the answers of the viewer as static files, and nothing that a privacy level hides."""

from __future__ import annotations

import json
import re
import sys
import warnings

import pytest

import deemster as dm
from deemster.errors import ReportError
from deemster.store import open_store
from deemster.view.static_export import export_viewer
from tests.builders.experiments import store_experiment
from tests.cli.workspace import called
from tests.view.viewer_client import running_viewer
from tests.view.xss_payloads import PAYLOADS

_CALL = re.compile(r"deemsterData\((\".*?\"), JSON\.parse\((\".*\")\)\);\n", re.DOTALL)


def read(folder, name):
    """The key and the value that a file of an export gives."""
    key, text = _CALL.fullmatch((folder / "data" / name).read_text(encoding="utf-8")).groups()
    return json.loads(key), json.loads(json.loads(text))


@pytest.fixture(scope="module")
def exported(numbers, tmp_path_factory):
    """An export of two runs, with their ids."""
    folder = tmp_path_factory.mktemp("export") / "out"
    store, reports = numbers
    export_viewer(store, ["before", "after"], folder)
    return folder, [report.run.id for report in reports]


def test_export_holds_the_answers_of_the_viewer(exported, viewer):
    folder, (before, after) = exported
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert '<script defer src="data/manifest.js"></script>' in page
    assert (folder / "app.js").is_file()
    key, run = read(folder, f"runs/{after}.js")
    assert key == f"runs/{after}"
    served = viewer.get(f"runs/{after}")
    # Of metadata an export holds nothing, and it may be without the run to compare with.
    left_out = {"metadata_keys": 0, "compare_with": 0}
    assert {**run, **left_out} == {**served, **left_out}
    _, comparison = read(folder, f"compare/{before},{after}.js")
    assert comparison == viewer.get(f"compare?runs={before},{after}")
    _, session = read(folder, "session.js")
    assert session["mode"] == "export"
    assert read(folder, "runs.js")[1]["total"] == 2


def test_samples_are_those_of_the_viewer_without_metadata(exported, viewer):
    folder, (_, after) = exported
    _, chunk = read(folder, f"runs/{after}/samples/0.js")
    assert len(chunk["samples"]) == 24
    for place in (5, 8):
        shown, served = chunk["samples"][place], viewer.get(f"runs/{after}/samples/{place}")
        for name in ("id", "input", "expected_output", "scores", "passed", "unstable", "tags"):
            assert shown[name] == served[name]
        assert shown["executions"][0]["marks"] == served["executions"][0]["marks"]
        assert shown["metadata"] is None
    _, columns = read(folder, f"runs/{after}/columns.js")
    rows = viewer.get(f"runs/{after}/samples?limit=500")["rows"]
    assert columns["rows"]["id"] == [row["id"] for row in rows]
    assert columns["rows"]["scores"]["rouge-l"]["score"] == [row["scores"]["rouge-l"]["score"] for row in rows]
    assert read(folder, f"runs/{after}/previews/0.js")[1] == [row["preview"] for row in rows]
    _, texts = read(folder, f"runs/{after}/texts.js")
    assert "perhaps" in texts["output"][9]
    assert "no answer for five" in texts["messages"][5]


CANARIES = {
    name: f"canary {name} kxqz" for name in ("input", "expected", "output", "passage", "metadata", "label", "reason")
}


@pytest.fixture(scope="module")
def canaries(tmp_path_factory):
    place = tmp_path_factory.mktemp("canaries") / "runs.db"

    def answer(given):
        if given["n"] == 1:
            raise ValueError(CANARIES["reason"])
        return dm.Output(CANARIES["output"], retrieved=[{"id": "d", "text": CANARIES["passage"]}])

    samples = [
        {
            "id": str(n),
            "input": {"n": n, "text": CANARIES["input"]},
            "expected_output": CANARIES["expected"],
            "metadata": {"secret": CANARIES["metadata"]},
        }
        for n in range(3)
    ]
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dm.evaluate(
                samples, target=answer, metrics=["exact-match", "rouge-l"], storage=str(place), name=CANARIES["label"]
            )
    with open_store(place) as store:
        yield store


@pytest.mark.parametrize(
    ("without_text", "shown"),
    [(False, {"input", "expected", "output", "passage", "label", "reason"}), (True, set())],
)
def test_texts_are_shown_unless_they_are_left_out(canaries, tmp_path, without_text, shown):
    ids = [row.id for row in canaries.runs()]
    export_viewer(canaries, ids, tmp_path / "out", without_text=without_text)
    text = "\n".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "data").rglob("*.js")).lower()
    assert {name for name, canary in CANARIES.items() if canary in text} == shown


def test_hostile_names_are_file_names_and_hostile_texts_stay_data(tmp_path):
    place = tmp_path / "runs.db"
    samples = [
        {"id": f"{at} {text}", "input": {"q": text}, "expected_output": text} for at, text in enumerate(PAYLOADS)
    ]
    dm.evaluate(
        dm.Dataset(samples, name="x"),
        target=lambda given: given["q"],
        metrics=[dm.metric("../../a b</script>")(lambda expected, actual: 1.0)],
        storage=str(place),
    )
    with open_store(place) as store:
        export_viewer(store, ["latest"], tmp_path / "out")
        run = store.run("latest").id
    inside = sorted(path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.js"))
    assert not [path for path in tmp_path.rglob("*.js") if tmp_path / "out" not in path.parents]
    names = [path.name for path in inside if "score-length" in path.parts]
    assert names == ["..%2F..%2Fa%20b%3C%2Fscript%3E.js"]
    for path in inside:
        assert "</script" not in (tmp_path / "out" / path).read_text(encoding="utf-8") or path.name == "app.js"
    _, chunk = read(tmp_path / "out", f"runs/{run}/samples/0.js")
    assert [sample["executions"][0]["output"] for sample in chunk["samples"]] == list(PAYLOADS)


def test_export_is_replaced_and_nothing_else_is(numbers, tmp_path):
    store = numbers[0]
    (tmp_path / "empty").mkdir()
    export_viewer(store, ["after"], tmp_path / "empty")
    (tmp_path / "empty" / "data" / "old.js").write_text("old")
    export_viewer(store, ["after"], tmp_path / "empty")
    assert not (tmp_path / "empty" / "data" / "old.js").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for taken in ("mine", "file"):
        with pytest.raises(ReportError, match="no export of the viewer"):
            export_viewer(store, ["after"], tmp_path / taken)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_command_exports(numbers, tmp_path):
    store = numbers[0].where
    done = called("view", "--store", store, "--export", str(tmp_path / "out"), "after")
    assert (done.exit_code, "index.html in a browser" in done.stderr) == (0, True)
    for argv in (("--export", str(tmp_path / "out")), ("after",), ("--export", str(tmp_path), "after")):
        assert called("view", "--store", store, *argv).exit_code == 2


def test_missing_extra_is_named(numbers, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    done = called("view", "--store", numbers[0].where, "--port", "0")
    assert done.exit_code == 2
    assert "deemster[view]" in done.stderr


@pytest.fixture(scope="module")
def two_tones(tmp_path_factory):
    """A store with an experiment of two variants, whose texts are canaries."""
    place = tmp_path_factory.mktemp("tones") / "runs.db"
    samples = [
        {"id": str(n), "input": {"text": CANARIES["input"], "n": n}, "expected_output": CANARIES["expected"]}
        for n in range(60)
    ]
    targets = {"calm": lambda _: CANARIES["output"], "loud": lambda given: f"{CANARIES['output']} {given['n']}"}
    store_experiment(place, dm.Dataset(samples, name="tones"), targets, metrics=["exact-match", "rouge-l"])
    with open_store(place) as store:
        yield store


def test_export_of_an_experiment_holds_its_page(two_tones, tmp_path):
    export_viewer(two_tones, ["latest"], tmp_path / "out")
    at = f"experiments/{two_tones.find_experiment('latest')}"
    with running_viewer(two_tones) as client:
        for name in ("", "/answer"):
            assert read(tmp_path / "out", f"{at}{name}.js")[1] == client.get(f"{at}{name}")
        rows = client.get(f"{at}/samples?limit=60")["rows"]
    exported = [row for chunk in (0, 1) for row in read(tmp_path / "out", f"{at}/rows/{chunk}.js")[1]]
    assert exported == rows
    assert {run["experiment"] for run in read(tmp_path / "out", "runs.js")[1]["runs"]} == {at.split("/")[1]}
    assert not (tmp_path / "out" / "data" / "compare").exists()


def test_runs_of_an_experiment_that_is_not_exported_do_not_name_it(two_tones, tmp_path):
    export_viewer(two_tones, ["latest/calm", "latest/loud"], tmp_path / "out")
    runs = read(tmp_path / "out", "runs.js")[1]["runs"]
    assert [run["experiment"] for run in runs] == [None, None]
    assert read(tmp_path / "out", f"runs/{runs[0]['id']}.js")[1]["experiment"] is None
    assert not (tmp_path / "out" / "data" / "experiments").exists()


@pytest.mark.parametrize(("without_text", "shown"), [(False, {"input", "expected", "output"}), (True, set())])
def test_texts_of_an_experiment_are_shown_unless_they_are_left_out(two_tones, tmp_path, without_text, shown):
    export_viewer(two_tones, [two_tones.find_experiment("latest")], tmp_path / "out", without_text=without_text)
    text = "\n".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out" / "data").rglob("*.js")).lower()
    assert {name for name, canary in CANARIES.items() if canary in text} == shown
    assert "calm" in text
