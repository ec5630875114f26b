from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deemster as dm
from deemster.engine.progress import Progress
from deemster.engine.run_sync import run_sync
from deemster.errors import MissingExtraError
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models.clock import FrozenClock
from deemster.remote.cluster_backend import OnCluster
from deemster.runs.run_storage import build_storage
from tests.cli.workspace import FILES, called, written
from tests.remote.conftest import Meeting, TwoNodes

pytestmark = pytest.mark.xdist_group("cluster")
METRICS = ["exact-match", "contains", "rouge-l", "token-f1"]
CLOCK = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
WORDS = ["refund", "order", "policy", "parcel", "answer", "within", "fourteen", "days", "contact", "return"]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """4,000 samples and their saved outputs, in JSONL."""
    folder, draw = tmp_path_factory.mktemp("saved"), random.Random(7)
    golden, outputs = folder / "golden.jsonl", folder / "outputs.jsonl"
    with golden.open("w") as samples, outputs.open("w") as answers:
        for number in range(4000):
            words = [draw.choice(WORDS) for _ in range(20)]
            sample = {"id": f"s{number}", "input": {"q": number}, "expected_output": " ".join(words)}
            samples.write(json.dumps(sample) + "\n")
            words[draw.randrange(20)] = draw.choice(WORDS)
            answers.write(json.dumps({"id": f"s{number}", "output": " ".join(words)}) + "\n")
    return golden, outputs


def test_node_killed_in_the_middle_gives_the_report_of_a_local_run(
    nodes: TwoNodes, files: tuple[Path, Path], tmp_path: Path
) -> None:
    meeting = Meeting(tmp_path, nodes, stay=True)

    @dm.metric("both-nodes")
    def both_nodes(expected: str, actual: str) -> float:
        meeting.attend()
        return 1.0

    job = resolve_arguments(files[0], outputs=files[1], metrics=[*METRICS, both_nodes])
    local = run_sync(run_evaluation(job, clock=CLOCK, warn=print))
    warnings: list[str] = []
    killed_at: list[int] = []

    def kill_once(progress: Progress) -> None:
        if not killed_at and 0 < progress.done < progress.total:
            killed_at.append(progress.done)
            nodes.kill_second_node()

    storage = build_storage(tmp_path / "runs.db")
    report = run_sync(
        run_evaluation(
            job,
            clock=CLOCK,
            warn=warnings.append,
            progress=kill_once,
            storage=storage,
            backend=OnCluster(nodes.address),
        )
    )
    assert killed_at
    assert report.to_json() == local.to_json()
    assert storage is not None
    assert len(list(storage.store.executions(report.run.id))) == 4000
    assert any("died" in warning for warning in warnings)


def test_parquet_that_workers_read_gives_the_report_of_a_local_run(
    nodes: TwoNodes, files: tuple[Path, Path], tmp_path: Path
) -> None:
    golden, outputs = tmp_path / "golden.parquet", tmp_path / "outputs.parquet"
    for lines, table in zip(files, (golden, outputs), strict=True):
        rows = [json.loads(line) for line in lines.read_text().splitlines()[:400]]
        pq.write_table(pa.Table.from_pylist(rows), table, row_group_size=100)
    job = resolve_arguments(golden, outputs=outputs, metrics=METRICS)
    local = run_sync(run_evaluation(job, clock=CLOCK, warn=print))
    assert len(job.plan.dataset) == 400
    report = run_sync(run_evaluation(job, clock=CLOCK, warn=print, backend=OnCluster(nodes.address)))
    assert report.to_json() == local.to_json()


@pytest.mark.parametrize(
    ("address", "message"), [("127.0.0.1:1", "No Ray cluster can be used at"), ("ray://127.0.0.1:1", "cannot stream")]
)
def test_address_that_cannot_be_used_is_error(address: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    samples = [{"id": "a", "input": {}, "expected_output": "x"}]
    with pytest.raises(dm.ConfigurationError, match=message):
        dm.evaluate(samples, outputs={"a": "x"}, metrics=["exact-match"], settings=dm.EvaluationSettings(on=address))


def test_missing_ray_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    samples = [{"id": "a", "input": {}, "expected_output": "x"}]
    with pytest.raises(MissingExtraError, match=r"deemster\[ray\]"):
        dm.evaluate(
            samples, outputs={"a": "x"}, metrics=["exact-match"], settings=dm.EvaluationSettings(on="local-cluster")
        )
    written(folder, {**FILES, "suite.yml": f"on: local-cluster\n{FILES['suite.yml']}"})
    result = called("run", "suite.yml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: A run on a cluster needs the `ray` extra: pip install 'deemster[ray]'\n"
