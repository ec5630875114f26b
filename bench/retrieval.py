"""CPU time of hit, recall, mrr and ndcg, against pytrec_eval and ranx on the same rankings.

All sides start from the same plain lists of ids and maps of gains, and build their own inputs from them. A peer gives
numbers. "marks" measures what a run does: it builds samples and outputs, checks every ranking, and makes a mark with
details for each query and metric. "numbers" is the same without the last step.

Usage: .venv/bin/python bench/retrieval.py [queries] [depth]
"""

import gc
import importlib.metadata
import random
import subprocess
import sys
import time

import environments
from measured_rows import OURS, record_row

REPEATS = 3
BATCH = 512


def data(queries, depth):
    """Rankings of `depth` ids of a corpus of 100,000, with five relevant ids each, three of them retrieved."""
    rng = random.Random(7)
    corpus = [f"doc{number}" for number in range(100_000)]
    rankings = [rng.sample(corpus, depth) for _ in range(queries)]
    gains = [
        {name: rng.randint(1, 3) for name in (*rng.sample(ranking, 3), *rng.sample(corpus, 2))} for ranking in rankings
    ]
    return rankings, gains


def raced(*functions):
    """The least CPU time and the result of a few calls of each, in turns, so that a busy neighbour slows all alike."""
    times = [[] for _ in functions]
    for _ in range(REPEATS):
        results = []
        for spent, function in zip(times, functions, strict=True):
            start = time.process_time()
            results.append(function())
            spent.append(time.process_time() - start)
    return [(min(spent), result) for spent, result in zip(times, results, strict=True)]


def ours(rankings, gains):
    """What makes our means from numbers, and what makes them from marks."""
    from deemster.metrics.batch_ranking import ranked_columns, score_rankings
    from deemster.metrics.retrieval_metrics import RetrievalHitAtK, RetrievalMrr, RetrievalNdcgAtK, RetrievalRecallAtK
    from deemster.records import Output, Sample

    metrics = [RetrievalHitAtK(k=10), RetrievalRecallAtK(k=10), RetrievalMrr(), RetrievalNdcgAtK(k=10)]

    def means(batch_sums):
        """The mean of each metric, from batches that are made and dropped, as the engine does."""
        sums = [0.0] * len(metrics)
        for start in range(0, len(rankings), BATCH):
            part = slice(start, start + BATCH)
            samples = [
                Sample(f"q{number}", {}, None, {"relevant": wanted}) for number, wanted in enumerate(gains[part])
            ]
            outputs = [Output("", ranking) for ranking in rankings[part]]
            sums = [total + more for total, more in zip(sums, batch_sums(samples, outputs), strict=True)]
        return [total / len(rankings) for total in sums]

    def numbers(samples, outputs):
        return [float(column.scores.sum()) for column in ranked_columns(metrics, samples, outputs)]

    def marks(samples, outputs):
        return [sum(mark.score for mark in column) for column in score_rankings(metrics, samples, outputs)]

    return lambda: means(numbers), lambda: means(marks)


def pytrec(rankings, gains):
    """What makes the means of pytrec_eval."""
    import pytrec_eval

    names = ("success_10", "recall_10", "recip_rank", "ndcg_cut_10")

    def build():
        qrel = {f"q{number}": relevant for number, relevant in enumerate(gains)}
        run = {
            f"q{number}": {name: float(-rank) for rank, name in enumerate(ranking)}
            for number, ranking in enumerate(rankings)
        }
        return qrel, run

    def score(qrel, run):
        measures = {"success.10", "recall.10", "recip_rank", "ndcg_cut.10"}
        return pytrec_eval.RelevanceEvaluator(qrel, measures).evaluate(run)

    def means():
        results = score(*build())
        return [sum(result[name] for result in results.values()) / len(results) for name in names]

    return means


def ranx(rankings, gains):
    """Runs inside the environment of ranx."""
    from ranx import Qrels, Run, evaluate

    measures = ["hit_rate@10", "recall@10", "mrr", "ndcg@10"]

    def score(rankings, gains):
        qrels = Qrels({f"q{number}": relevant for number, relevant in enumerate(gains)})
        run = Run(
            {
                f"q{number}": {name: float(len(ranking) - rank) for rank, name in enumerate(ranking)}
                for number, ranking in enumerate(rankings)
            }
        )
        return evaluate(qrels, run, measures)

    score(rankings[:100], gains[:100])
    [(whole, results)] = raced(lambda: score(rankings, gains))
    return whole, [float(results[name]) for name in measures]


def hand_over(queries, depth, seconds, peers):
    """The rows of both of our ways and of the peers."""
    for words, mine in seconds.items():
        work = f"retrieval metrics of rankings of {depth} ids, {words}"
        tools = [(OURS, importlib.metadata.version("deemster"), mine, None), *peers]
        for tool, release, spent, goal in tools:
            each = spent / queries * 1e6
            record_row(work, tool, each, "µs a ranking", version=release, samples=queries, cpu_s=spent, goal=goal)


def line(case, mine, theirs, peer, goal):
    print(f"{case}: deemster {mine:.2f} s, {peer} {theirs:.2f} s, {theirs / mine:.1f} times (goal {goal})", flush=True)


def main(queries=100_000, depth=100, *only):
    if only:
        rankings, gains = data(queries, depth)
        gc.freeze()
        whole, means = ranx(rankings, gains)
        print(whole, *means)
        return
    rankings, gains = data(queries, depth)
    gc.freeze()  # the input belongs to neither side
    (numbers_s, means), (marks_s, again), (pytrec_s, pytrec_means) = raced(
        *ours(rankings, gains), pytrec(rankings, gains)
    )
    if max(abs(a - b) for a, b in zip(means, again, strict=True)) > 1e-12:
        raise SystemExit("the marks and the numbers differ")
    environments.environment("ranx")
    command = [str(environments.python("ranx")), __file__, str(queries), str(depth), "1"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ranx_s, *ranx_means = map(float, told.split())
    case = f"{queries} x {depth}"
    for peer, theirs, peer_means, goal in (
        ("pytrec_eval", pytrec_s, pytrec_means, 5),
        ("ranx", ranx_s, ranx_means, 10),
    ):
        line(f"{case}, numbers", numbers_s, theirs, peer, goal)
        line(f"{case}, marks", marks_s, theirs, peer, goal)
        apart = max(abs(a - b) for a, b in zip(means, peer_means, strict=True))
        print(f"largest difference of a mean to {peer}: {apart:.1e}")
        if apart > 1e-9:
            sys.exit(f"the means of {peer} differ")
    peers = [
        ("pytrec_eval", importlib.metadata.version("pytrec-eval-terrier"), pytrec_s, 5),
        ("ranx", environments.version("ranx"), ranx_s, 10),
    ]
    hand_over(queries, depth, {"numbers": numbers_s, "marks": marks_s}, peers)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
