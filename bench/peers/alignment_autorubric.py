"""autorubric's compute_metrics on a votes file: prints CPU seconds of the first call and of the
best of three more, and its headline numbers, as JSON.

Building its dataset and results is left out of the time. CPU seconds count all threads and child processes.

Usage: .envs/autorubric/bin/python bench/peers/alignment_autorubric.py VOTES.json REPLICATES
"""

import json
import resource
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "differential" / "autorubric"))

from gradings import compute_metrics, inputs

REPEATS = 3
FIELDS = ("criterion_accuracy", "macro_accuracy", "mean_kappa", "criterion_f1", "score_rmse", "n_items", "n_samples")


def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main():
    warnings.simplefilter("ignore")
    replicates = int(sys.argv[2])
    dataset, result, _ = inputs(json.loads(Path(sys.argv[1]).read_text()))
    times = []
    for _ in range(1 + REPEATS):
        start = spent()
        metrics = compute_metrics(
            result, dataset, bootstrap=replicates > 0, n_bootstrap=max(replicates, 1), per_judge=True, seed=42
        )
        times.append(spent() - start)
    told = {"first": times[0], "cpu": min(times[1:])}
    told |= {name: getattr(metrics, name) for name in FIELDS}
    if metrics.bootstrap is not None:
        told |= {name: getattr(metrics.bootstrap, name) for name in ("accuracy_ci", "kappa_ci", "rmse_ci")}
    print(json.dumps(told))


main()
