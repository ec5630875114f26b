"""TruLens' compare_runs on records in memory.

Prints CPU seconds of the first call and of the best of three more, and the mean difference of each metric.

Usage: .envs/trulens-core/bin/python bench/peers/comparison_trulens.py SCORES.json
"""

import json
import logging
import resource
import sys
from pathlib import Path

import pandas as pd
from trulens.core.run import compare_runs

REPEATS = 3


class Records:
    """A run that has its records already."""

    run_name = "bench"

    def __init__(self, rows):
        self._frame = pd.DataFrame(rows)

    def get_records(self):
        return self._frame


def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    logging.disable(logging.CRITICAL)
    rows = json.loads(Path(sys.argv[1]).read_text())
    runs = Records(rows["before"]), Records(rows["after"])
    names = [name for name in rows["before"][0] if name not in ("record_id", "input")]
    times = []
    for _ in range(1 + REPEATS):
        start = spent()
        found = compare_runs(*runs, metric_directions=dict.fromkeys(names, True))
        times.append(spent() - start)
    told = {"first": times[0], "cpu": min(times[1:])}
    metrics = found.metrics.items() if isinstance(found.metrics, dict) else ((one.name, one) for one in found.metrics)
    print(json.dumps(told | {"means": {name: metric.mean_delta for name, metric in metrics}}))


main()
