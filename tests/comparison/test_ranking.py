import itertools
import math
import re
from itertools import combinations

import msgspec
import numpy as np
import pytest

import deemster as dm
from deemster.comparison.compare_columns import ComparisonSettings
from deemster.comparison.ranking import rank_columns
from deemster.comparison.ranking_report import ranking_sections
from deemster.stats import paired_difference
from deemster.stats.paired_difference import flip_p_values
from deemster.stats.run_ranking import pair_confidence, rank_ranges
from tests.report.comparisons import evaluated
from tests.results.make_compared_runs import run as made_run


def run(passed, *, total=80, **options):
    answers = {f"q{place:02d}": "right" if place < passed else "wrong" for place in range(total)}
    return evaluated(answers, metrics=("exact-match", "rouge-l"), **options)


def open_ranks(scores):
    """The ranks of runs, a row each, that the statistic of all pairs leaves open."""
    level = pair_confidence(len(scores), 0.95)
    intervals = {}
    for first, second in combinations(range(len(scores)), 2):
        found = paired_difference(scores[second] - scores[first], confidence=level).interval
        intervals[first, second] = (found.lower, found.upper)
    return rank_ranges(len(scores), intervals)


def test_runs_far_apart_have_one_rank_each():
    ranking = dm.rank(run(10), run(70), run(40))
    assert [(entry.best_rank, entry.worst_rank) for entry in ranking.runs] == [(3, 3), (1, 1), (2, 2)]
    assert ranking.verdict.endswith(" is best: 24 to 87 points above the others.")


def test_equal_runs_are_not_told_apart():
    ranking = dm.rank(run(40), run(40), run(40))
    assert [(entry.best_rank, entry.worst_rank) for entry in ranking.runs] == [(1, 3)] * 3
    assert ranking.verdict == "No two of the 3 can be told apart with 80 samples."


@pytest.mark.parametrize("seed", range(12))
def test_sentences_say_of_each_pair_what_its_interval_decides(seed):
    """Every two runs are told apart or not in one sentence, and no sentence contradicts an interval that is shown."""
    counts = np.random.default_rng(seed).integers(20, 45, size=4).tolist()
    ranking = dm.rank(*(run(passed, total=48) for passed in counts))
    names = [f"r{place}" for place in range(4)]
    entries = zip(ranking.runs, names, strict=True)
    named = [msgspec.structs.replace(one, run=msgspec.structs.replace(one.run, label=name)) for one, name in entries]
    headline = ranking_sections(msgspec.structs.replace(ranking, runs=tuple(named)))[0]
    told = "; ".join("".join(line).rstrip(".") for line in (headline.title, *headline.lines, *headline.after)).split(
        "; "
    )
    for first, second in itertools.combinations(range(4), 2):
        low, high = dm.compare(
            run(counts[first], total=48), run(counts[second], total=48), confidence=1 - 0.05 / 6
        ).pass_rate.interval
        worse, better = (names[first], names[second]) if low > 0 else (names[second], names[first])
        if low <= 0 <= high:
            assert any("told apart" in one and (names[first] in one or "No two of" in one) for one in told)
        else:
            assert f"{better} is best" in told[0] or any(
                one.startswith(f"{worse} is worse than ") and better in one.partition(" than ")[2] for one in told
            )
    for place, entry in enumerate(ranking.runs[1:], 1):
        low, high = entry.against_first.pass_rate.interval
        pair = next(one for one in ranking.pairs if (one.first, one.second) == (0, place))
        assert (pair.worse is None) == (low <= 0 <= high)


def test_differences_are_those_of_two_runs_at_the_level_that_holds_for_all():
    first, others = run(40), [run(50), run(44), run(20)]
    ranking = dm.rank(first, *others)
    assert ranking.interval_confidence == pytest.approx(1 - 0.05 / 6)
    for entry, other in zip(ranking.runs[1:], others, strict=True):
        alone = dm.compare(first, other, confidence=ranking.interval_confidence)
        assert entry.against_first.macro_f1 == alone.macro_f1
        assert entry.against_first.table == alone.table
    assert ranking.runs[0].against_first is None


@pytest.mark.parametrize("seed", range(6))
def test_ranks_are_those_of_the_statistic(seed):
    counts = np.random.default_rng(seed).integers(5, 75, size=4).tolist()
    ranking = dm.rank(*map(run, counts))
    scores = np.array([[float(place < passed) for place in range(80)] for passed in counts])
    assert tuple((entry.best_rank, entry.worst_rank) for entry in ranking.runs) == open_ranks(scores)


def test_runs_with_other_samples_are_compared_on_those_that_both_have():
    ranking = dm.rank(run(40), run(40, total=60), run(60))
    assert [entry.against_first.samples.paired for entry in ranking.runs[1:]] == [60, 80]


def test_two_runs_without_a_common_sample_are_refused():
    strange = evaluated({"z": "right"}, expected={"z": "other"})
    with pytest.raises(dm.InputError, match="share no sample"):
        dm.rank(run(40), run(50), strange)


def test_comparing_more_than_two_runs_says_what_ranks_them():
    with pytest.raises(dm.ConfigurationError, match=r"`compare` is for two runs\. Rank more: `dm\.rank\("):
        dm.compare(run(1), run(2), run(3))


def test_two_runs_are_ranked_as_they_are_compared():
    ranking = dm.rank(run(40), run(60))
    assert ranking.runs[1].against_first.macro_f1 == dm.compare(run(40), run(60)).macro_f1


def test_pairs_hold_together_by_bonferroni():
    assert pair_confidence(2, 0.95) == pytest.approx(0.95)
    assert pair_confidence(5, 0.95) == pytest.approx(1 - 0.05 / 10)
    assert rank_ranges(2, {(0, 1): (-0.3, -0.1)}) == ((1, 1), (2, 2))


def test_pairs_without_interval_leave_every_rank_open():
    assert rank_ranges(1, {}) == ((1, 1),)
    assert rank_ranges(3, {(0, 1): None, (0, 2): None, (1, 2): (0.1, 0.2)}) == ((1, 3), (2, 3), (1, 2))


@pytest.mark.parametrize(("runs", "samples", "rate"), [(4, 40, 0.7), (5, 100, 0.02), (5, 100, 0.3)])
def test_chance_alone_seldom_ranks_equal_runs(runs, samples, rate):
    draw, draws = np.random.default_rng(9), 200
    wrong = 0
    for _ in range(draws):
        scores = (draw.random((runs, samples)) < rate).astype(float)
        wrong += any(ranks != (1, runs) for ranks in open_ranks(scores))
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


def flipped(lost, gained, total):
    """Two runs: so many samples pass in the first alone, and so many in the second alone."""
    first = {f"q{place:03d}": "right" if place < total // 2 else "wrong" for place in range(total)}
    second = dict(first)
    for place in range(lost):
        second[f"q{place:03d}"] = "wrong"
    for place in range(gained):
        second[f"q{total // 2 + place:03d}"] = "right"
    return [evaluated(answers, metrics=("exact-match",)) for answers in (first, second)]


@pytest.mark.parametrize(("lost", "gained", "total"), [(4, 10, 120), (0, 2, 60), (15, 25, 120)])
def test_samples_that_are_named_tell_runs_apart_four_times_out_of_five(lost, gained, total):
    """Samples are drawn anew as they were seen: the sentence is held to what it says, not to the formula behind it."""
    sections = ranking_sections(dm.rank(*flipped(lost, gained, total)))
    (sentence,) = [line for line in map("".join, sections[0].lines) if line.startswith("About ")]
    named = re.fullmatch(
        r"About ([\d,]+) samples would tell them apart four times out of five, if the difference is what we saw\.",
        sentence,
    )
    count, draws = int(named[1].replace(",", "")), 1000
    chances = [lost / total, gained / total, 1 - (lost + gained) / total]
    seen = np.random.default_rng(11).multinomial(count, chances, draws)
    told = flip_p_values(seen[:, 1], seen[:, 0], n=count, mean=0.0, side="below") <= 0.025
    assert told.mean() == pytest.approx(0.8, abs=0.03 + 3 * math.sqrt(0.8 * 0.2 / draws))


@pytest.mark.parametrize("grouped", [False, True], ids=["repetitions", "clusters"])
@pytest.mark.parametrize("seed", [2, 4, 5])
def test_units_that_are_named_tell_runs_apart_four_times_out_of_five(grouped, seed):
    """The same of three repetitions, and of clusters of three samples, that are drawn anew as they were seen."""
    generator = np.random.default_rng(seed)
    chances = generator.beta(4, 2, 50)[:, None]
    first = generator.random((50, 3)) < chances
    second = generator.random((50, 3)) < np.minimum(1, chances + 0.05)
    if grouped:
        clusters = [str(place) for place in range(50) for _ in range(3)]
        runs = [made_run({"m": marks.ravel().astype(float).tolist()}, clusters=clusters) for marks in (first, second)]
    else:
        runs = [made_run({"m": marks.astype(float).tolist()}) for marks in (first, second)]
    (pair,) = rank_columns(runs, settings=ComparisonSettings(cluster="c" if grouped else None), tool_version="1").pairs
    assert pair.worse is None

    changes = second.mean(axis=1) - first.mean(axis=1)
    count, draws = math.ceil(pair.samples_needed / (3 if grouped else 1)), 400
    intervals = [paired_difference(generator.choice(changes, count)).interval for _ in range(draws)]
    told = np.mean([interval.lower > 0 or interval.upper < 0 for interval in intervals])
    assert told == pytest.approx(0.8, abs=0.03 + 3 * math.sqrt(0.8 * 0.2 / draws))


def test_repetitions_have_the_shares_that_pass_once_and_always():
    marks = [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    ranking = rank_columns(
        [made_run({"m": marks}), made_run({"m": marks})], settings=ComparisonSettings(), tool_version="1"
    )
    figures = ranking.runs[0].figures
    assert (figures.pass_at_k, figures.pass_hat_k) == (0.75, 0.25)
    assert {"pass@3", "pass^3"} <= set(ranking_sections(ranking)[0].table.head)
    alone = rank_columns([made_run({"m": [1.0, 0.0]})], settings=ComparisonSettings(), tool_version="1").runs[0].figures
    assert alone.pass_at_k is alone.pass_hat_k is None


def test_equal_runs_have_no_number_of_samples_that_would_tell():
    ranking = dm.rank(run(40), run(40))
    assert ranking.pairs[0].samples_needed is None
    assert ranking_sections(ranking)[0].lines == []


def test_more_than_four_runs_are_told_about_by_the_best_alone():
    ranking = dm.rank(*(run(passed) for passed in (40, 42, 44, 46, 60, 62)))
    lines = ["".join(line) for line in ranking_sections(ranking)[0].lines]
    assert ranking.verdict.endswith(" is best: they cannot be told apart with 80 samples.")
    assert len(lines) == 1
    assert re.fullmatch(r"About \d+ samples would tell them apart four times out of five, .*", lines[0])
    needed = {pair.places for pair in ranking.pairs if pair.samples_needed is not None}
    assert needed <= {(place, 5) for place in range(5)}
