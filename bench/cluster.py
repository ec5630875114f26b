"""Saved outputs scored on a cluster of two nodes on this machine, one of which is killed; then judges under limits.

Part one scores saved outputs with five metrics in one process, and on the cluster, where the second node is killed in
the middle. It compares the reports byte by byte and prints what the cluster costs for each sample, the speed-up, and
what the measured serial part allows on more workers. CPU time, since other work on the machine changes wall time.

Part two asks a judge on the cluster, at most 50 times a second, first without and then with a budget.

Usage: .venv/bin/python bench/cluster.py [samples] [calls]
"""

import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import deque
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from deemster.engine.model_access import ModelCalls
from deemster.engine.run_sync import run_sync
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models.clock import FrozenClock
from deemster.remote.cluster_backend import OnCluster
from deemster.remote.ray_cluster import without_api_server
from deemster.runs.run_storage import build_storage
from deemster.testing import ModelServer
from deemster.testing.server_replies import verdict

METRICS = ["exact-match", "rouge-l", "token-f1", "levenshtein", "contains"]
CLOCK = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
WORDS = ["refund", "order", "policy", "parcel", "answer", "within", "fourteen", "days", "contact", "return"]
PER_SECOND = 50
PRICE = {"input": 1, "output": 2}
NODE = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


def write_files(folder, count):
    """A dataset and its saved outputs: answers of 30 words, of which up to five are wrong."""
    draw = random.Random(1)
    with (folder / "golden.jsonl").open("w") as golden, (folder / "outputs.jsonl").open("w") as outputs:
        for number in range(count):
            words = [draw.choice(WORDS) for _ in range(30)]
            sample = {"id": f"s{number:07d}", "input": {"q": number}, "expected_output": " ".join(words)}
            golden.write(json.dumps(sample) + "\n")
            for _ in range(draw.randrange(6)):
                words[draw.randrange(30)] = draw.choice(WORDS)
            outputs.write(json.dumps({"id": sample["id"], "output": " ".join(words)}) + "\n")


def cpu_s():
    """CPU seconds of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class WorkerTimes:
    """CPU seconds of the workers of Ray on this machine, those that were killed included."""

    def __init__(self):
        self.seen = {}

    def look(self):
        """Note the times of the workers that live."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "cmdline").read_bytes().startswith(b"ray::"):
                    fields = (folder / "stat").read_text().rpartition(")")[2].split()
                    self.seen[folder.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            except OSError:
                continue
        return sum(self.seen.values())


def run(job, **given):
    """One run with its CPU and wall seconds."""
    wall, cpu = time.perf_counter(), cpu_s()
    report = run_sync(run_evaluation(job, clock=CLOCK, warn=lambda text: print(f"  {text}"), **given))
    return report, cpu_s() - cpu, time.perf_counter() - wall


def score(folder, nodes, count):
    """Part one."""
    write_files(folder, count)
    job = resolve_arguments(folder / "golden.jsonl", outputs=folder / "outputs.jsonl", metrics=METRICS)
    local, alone, alone_wall = run(job, storage=build_storage(folder / "local.db"))
    times, killed = WorkerTimes(), []

    def watch(progress):
        if not killed and progress.done > progress.total // 3:
            killed.append(progress.done)
            times.look()
            nodes.kill()

    given = {"progress": watch, "storage": build_storage(folder / "cluster.db"), "cluster": nodes.address}
    before = times.look()
    report, driver, wall = run(job, **given)
    workers = times.look() - before
    assert report.to_json() == local.to_json(), "the reports differ"
    serial, parallel = driver / count * 1e6, workers / count * 1e6
    print(f"{count:,} saved outputs, {len(METRICS)} metrics; a node killed after {killed[0]:,}; the reports are equal")
    print(f"  one process    {alone / count * 1e6:8.1f} us CPU a sample   {alone_wall:6.1f} s")
    print(f"  cluster        {serial + parallel:8.1f} us CPU a sample   {wall:6.1f} s")
    print(f"    driver       {serial:8.1f} us: the serial part")
    print(f"    workers      {parallel:8.1f} us: divided among them")
    print(
        f"  overhead       {serial + parallel - alone / count * 1e6:8.1f} us CPU a sample, starts of workers included"
    )
    print(f"  speed-up by wall time here, with the kill: {alone_wall / wall:.2f}")
    for slots in (1, 2, 4, 8):
        estimate = alone / count * 1e6 / max(serial, parallel / slots)
        print(f"  estimate with a core for the driver and {slots} for workers: {estimate:.2f} times one process")
    print(f"  a metric of 1 ms and 64 workers: {(1000 + serial) / max(serial, (1000 + parallel) / 64):.1f} times")


def most_within(arrived, seconds):
    """The most requests that came within so many seconds."""
    window, most = deque(), 0
    for moment in arrived:
        window.append(moment)
        while window[0] <= moment - seconds:
            window.popleft()
        most = max(most, len(window))
    return most


def ask(folder, nodes, count):
    """Part two."""
    arrived = []
    with ModelServer(keep=False) as server:

        def answer(messages):
            arrived.append(time.monotonic())
            return verdict(messages, seed=0)

        server.answer = answer
        judge = {"base_url": server.url, "model": "m", "price": PRICE, "rpm": PER_SECOND * 60}
        samples = [{"id": f"s{n}", "input": {"q": n}, "expected_output": f"Answer {n}."} for n in range(count)]
        outputs = {sample["id"]: f"It is {sample['input']['q']}." for sample in samples}
        given = {"outputs": outputs, "metrics": ["llm-as-judge"], "models": {"judge": judge}}
        report, _, wall = run(resolve_arguments(samples, **given), backend=OnCluster(nodes.address))
        whole = Decimal(str(report.cost.total_usd))
        assert len(arrived) == count
        most = f"the most in any minute {most_within(arrived, 60.0):,}, in any second {most_within(arrived, 1.0)}"
        print(f"{len(arrived):,} judge calls in {wall:.0f} s; {most}")
        limit = (whole / 2).quantize(Decimal("0.01"))
        arrived.clear()
        storage = build_storage(folder / "judge.db")
        report, _, _ = run(
            resolve_arguments(samples, calls=ModelCalls(budget_usd=limit), **given),
            backend=OnCluster(nodes.address),
            storage=storage,
        )
        spent, paid = report.budget.spent_usd, Decimal(str(report.cost.total_usd))
        print(f"budget {limit} USD of {whole} USD: {len(arrived):,} calls, spent {spent} USD, in the report {paid} USD")
        assert spent <= limit
        assert spent == paid


class Nodes:
    """Two nodes, of which the second is killed once."""

    def __init__(self):
        os.environ.update(SETTINGS)
        import ray
        from ray.cluster_utils import Cluster

        with without_api_server():
            self.cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self.address = self.cluster.address
        # Before there is a second node, so that the first one serves this process.
        ray.init(self.address, log_to_driver=False)
        self.start()

    def kill(self):
        self.cluster.remove_node(self.second, allow_graceful=False)

    def shut_down(self):
        import ray

        ray.shutdown()
        self.cluster.shutdown()

    def start(self):
        self.second = self.cluster.add_node(**NODE)


def main(samples=200_000, calls=5_000):
    """Both parts."""
    nodes = Nodes()
    try:
        with tempfile.TemporaryDirectory() as name:
            score(Path(name), nodes, samples)
            if calls:
                nodes.start()
                ask(Path(name), nodes, calls)
    finally:
        nodes.shut_down()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
