"""compute_metrics against autorubric on the same votes: CPU seconds of both, their ratio, and peak memory.

Both sides start from loaded votes, in separate processes, and compute the metrics of every judge. With replicates,
autorubric gives three intervals and deemster gives all. CPU seconds count all threads and children. The first
call and the best of three more are rows of their own, on both sides. Numbers with the same definition
must be equal, or the script stops.

Usage: .venv/bin/python bench/alignment.py [--full | --quick]
       (--full: 10,000 items with 1,000 replicates, some ten minutes, in place of 1,000 items; --quick: few items)
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import environments
import panels
from measured_rows import OURS, record_row, run_measured

import deemster as dm

HERE = Path(__file__).parent
REPEATS = 3
REPLICATES = 1_000
PROMISE_MB = 300
SAME = ("macro_accuracy", "mean_kappa", "criterion_f1", "score_rmse", "n_items", "n_samples")
# Items, replicates, how many times less CPU than autorubric is the goal.
STATISTICS, BOOTSTRAP, FULL = (10_000, 0, 20), (1_000, REPLICATES, 700), (10_000, REPLICATES, 1_000)
QUICK = (200, 0, 20), (100, 20, 700)


def ours(path, replicates):
    """Runs in a separate process: prints CPU seconds, peak memory and headline numbers."""
    from deemster.agreement import compute_metrics
    from deemster.datasets import Votes

    def measured(votes):
        start = time.process_time()
        result = compute_metrics(
            votes,
            None,
            bootstrap=dm.agreement.BootstrapSettings(replicates=replicates, seed=42),
            per_judge=True,
        )
        return time.process_time() - start, result

    start = time.process_time()
    votes = Votes.load(path)
    loading = time.process_time() - start
    loaded_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    first, result = measured(votes)
    runs = [measured(votes) for _ in range(REPEATS)]
    told = {"first": first, "cpu": min(spent for spent, _ in runs), "loading": loading, "loaded_mb": loaded_mb}
    told |= {name: getattr(result, name) for name in SAME} | {"intervals": intervals(json.loads(result.to_json()))}
    if result.bootstrap is not None:
        told |= {name: getattr(result.bootstrap, name) for name in ("accuracy_ci", "kappa_ci", "rmse_ci")}
    print(json.dumps(told))


def intervals(value):
    """How many numbers of a result, as a plain value, have an interval."""
    if isinstance(value, list):
        return sum(map(intervals, value))
    if not isinstance(value, dict):
        return 0
    here = sum(one["ci"] is not None for one in (value.get("intervals") or {}).values())
    return here + sum(intervals(one) for name, one in value.items() if name != "intervals")


def answer(*command):
    done = run_measured(*command)
    return json.loads(done.printed) | {"peak_mb": done.peak_mb}


def race(items, replicates, goal, folder):
    path = folder / f"votes-{items}.json"
    path.write_text(json.dumps(panels.votes_value(items)))
    mine = answer(sys.executable, __file__, "--ours", path, replicates)
    peer = answer(environments.python("autorubric"), HERE / "peers" / "alignment_autorubric.py", path, replicates)
    for name in SAME:
        if abs(mine[name] - peer[name]) > 1e-9:
            sys.exit(f"{name}: ours {mine[name]}, autorubric {peer[name]}")
    form = f"{replicates:,} replicates, {mine['intervals']} intervals" if replicates else "no bootstrap"
    print(
        f"{items:,} items x {len(panels.KINDS)} criteria x {len(panels.SKILLS)} judges, {form}: "
        f"deemster {mine['cpu']:.3f} CPU s, {mine['first']:.3f} in the first call, "
        f"autorubric {peer['cpu']:.1f}, {peer['cpu'] / mine['cpu']:,.0f} times "
        f"(goal {goal:,}), first call {peer['first'] / mine['first']:,.0f} times; "
        f"peak {mine['peak_mb']:.0f} MB, {mine['loaded_mb']:.0f} of them after loading "
        f"(promise {PROMISE_MB}), autorubric {peer['peak_mb']:.0f} MB; loading {mine['loading']:.2f} CPU s",
        flush=True,
    )
    form = f"{replicates:,} replicates" if replicates else "no bootstrap"
    work = f"judges against people, {len(panels.KINDS)} criteria, {form}"
    for tool, release, told in ((OURS, dm.__version__, mine), ("autorubric", environments.version("autorubric"), peer)):
        more = {"samples": items, "cpu_s": told["cpu"], "peak_mb": told["peak_mb"]}
        record_row(work, tool, told["cpu"] * 1e3, "ms", version=release, goal=None if tool == OURS else goal, **more)
        first_ms = told["first"] * 1e3
        record_row(f"{work}, first call in a process", tool, first_ms, "ms", version=release, samples=items)
    for name in ("accuracy_ci", "kappa_ci", "rmse_ci") if replicates else ():
        ends = [", ".join(f"{end:.4f}" for end in side[name]) for side in (mine, peer)]
        print(f"  {name}: [{ends[0]}], autorubric [{ends[1]}]", flush=True)


def main():
    if "--ours" in sys.argv:
        ours(Path(sys.argv[2]), int(sys.argv[3]))
        return
    environments.environment("autorubric")
    with tempfile.TemporaryDirectory(prefix="deemster-alignment-") as folder:
        usual = STATISTICS, FULL if "--full" in sys.argv else BOOTSTRAP
        for form in QUICK if "--quick" in sys.argv else usual:
            race(*form, Path(folder))


if __name__ == "__main__":
    main()
