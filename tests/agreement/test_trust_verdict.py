"""The answer of a result, and what it rests on."""

from __future__ import annotations

import random

import msgspec
import pytest

from deemster.agreement import BootstrapSettings, MetricsResult, TrustVerdict, annotator_tests, compute_metrics
from deemster.agreement.agreement_report import agreement_sections
from deemster.agreement.trust_verdict import SUBSTANTIAL
from deemster.datasets import Votes
from deemster.text.markdown_layout import render_markdown
from tests.agreement import make_results as results
from tests.agreement.make_votes import FACTS, votes_value

GOOD = {"kappa": 0.8, "n_samples": 40, "support_true": 20}


def answered(**changes):
    """A result that is trusted, with some changes."""
    good = {
        "mean_kappa": 0.8,
        "n_items": 40,
        "n_criteria": 1,
        "per_criterion": (results.binary(**GOOD),),
        "intervals": {"mean_kappa": results.resampled(0.8, 0.7, 0.9)},
    }
    return results.empty_result(**(good | changes)).verdict


def codes(found):
    return [reason.partition(":")[0] for reason in found.reasons]


def test_substantial_kappa_without_reservation_is_yes():
    assert answered() == TrustVerdict(answer="yes", floor=0.7, reasons=())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"intervals": {"mean_kappa": results.resampled(0.8, 0.6, 0.9)}}, "moderate"),
        ({"n_items": 29}, "few-items"),
        ({"warnings": ("few-clusters: 3 clusters only.",)}, "few-clusters"),
        ({"per_criterion": (results.binary(**GOOD | {"kappa": 0.4}),)}, "weak-criteria"),
        ({"per_criterion": (results.binary(**GOOD | {"kappa": None}),)}, "undefined-criteria"),
        ({"per_criterion": (results.binary(**GOOD | {"support_true": 9}),)}, "rare-class"),
        ({"per_criterion": (results.binary(**GOOD | {"support_true": 31}),)}, "rare-class"),
        ({"bias": results.bias(0.2, is_significant=True, effect_size=-0.5)}, "bias"),
        ({"coverage_stats": results.coverage(100, 79)}, "coverage"),
    ],
)
def test_each_reservation_gives_with_care(changes, code):
    found = answered(**changes)
    assert (found.answer, codes(found)) == ("with care", [code])


@pytest.mark.parametrize("kappa", [0.3, 0.99])
def test_kappa_without_interval_has_no_answer(kappa):
    found = answered(mean_kappa=kappa, intervals=None)
    assert (found.answer, found.floor, codes(found)) == (None, None, ["no-interval"])


def test_rarest_class_of_all_criteria_is_named_with_its_count():
    option = results.OptionMetrics(
        label="poor", index=0, precision=1.0, recall=1.0, f1=1.0, support_true=3, support_pred=3
    )
    scaled = results.ordinal(weighted_kappa=0.8, n_samples=40, per_option=(option,))
    rare = results.binary(**GOOD | {"support_true": 35})
    (reason,) = answered(per_criterion=(rare, scaled)).reasons
    assert reason == "rare-class: 3 labels of poor on depth, fewer than 10, and likewise on 1 criterion"


def test_kappa_below_moderate_is_not_yet_and_missing_kappa_is_none():
    low = answered(intervals={"mean_kappa": results.resampled(0.8, 0.4, 0.9)}, n_items=5)
    assert (low.answer, low.floor, codes(low)) == ("not yet", 0.4, ["low-kappa"])
    none = answered(mean_kappa=None, intervals=None)
    assert (none.answer, none.floor, codes(none)) == (None, None, ["no-kappa"])


@pytest.mark.parametrize(
    ("answer", "reached"),
    [
        ("yes", (True, True, True)),
        ("with care", (False, True, True)),
        ("not yet", (False, False, True)),
        (None, (False, False, False)),
    ],
)
def test_require_accepts_equal_or_better_answer(answer, reached):
    found = TrustVerdict(answer=answer, floor=None, reasons=())
    assert tuple(found.reaches(least) for least in ("yes", "with care", "not yet")) == reached


def test_verdict_follows_documented_rule_for_any_numbers(tmp_path):
    result = results.full_result()
    lie = TrustVerdict(answer="yes", floor=1.0, reasons=())
    assert msgspec.structs.replace(result, verdict=lie) == result
    assert msgspec.structs.replace(result, mean_kappa=None, intervals=None, bootstrap=None).verdict.answer is None
    path = tmp_path / "result.json"
    result.save(path)
    value = msgspec.json.decode(path.read_bytes())
    assert list(value)[:2] == ["schema_version", "verdict"]
    assert value["verdict"]["answer"] == result.verdict.answer
    assert MetricsResult.from_file(path) == result
    path.write_bytes(msgspec.json.encode(value | {"verdict": msgspec.to_builtins(lie)}))
    assert MetricsResult.from_file(path) == result


def verdict_of(items, **more):
    return compute_metrics(Votes.parse(votes_value(items, criteria=[FACTS], judges=["j"])), **more).verdict


def words(answers):
    return [["MET"] if answer else ["UNMET"] for answer in answers]


def items_of(judge, *people):
    """Items that a judge answers, and people: one of them gives the truth, several are annotators."""
    items = []
    for place, (said, *labels) in enumerate(zip(words(judge), *map(words, people), strict=True)):
        truth = {"ground_truth": labels[0]}
        if len(labels) > 1:
            truth = {"annotations": {f"p{number}": label for number, label in enumerate(labels)}}
        items.append({"id": f"i{place:03d}", "votes": {"j": said}, **truth})
    return items


def noisy(rng, truth, kappa):
    """Answers that agree with a balanced truth with this kappa."""
    return [answer if rng.random() < kappa else rng.random() < 0.5 for answer in truth]


def test_one_positive_label_of_sixty_is_never_a_plain_yes():
    truth = [place == 7 for place in range(60)]
    result = compute_metrics(Votes.parse(votes_value(items_of(truth, truth), criteria=[FACTS], judges=["j"])))
    kappa = result.intervals["mean_kappa"]
    assert kappa.estimate == 1.0
    assert kappa.ci.lower < SUBSTANTIAL
    assert result.verdict.answer != "yes"
    assert not result.verdict.reaches("yes")


def test_class_with_nine_labels_caps_the_answer_and_is_named():
    truth = [place < 9 for place in range(200)]
    found = verdict_of(items_of(truth, truth))
    assert (found.answer, found.reasons) == ("with care", ("rare-class: 9 labels of MET on facts, fewer than 10",))
    truth = [place < 10 for place in range(200)]
    assert verdict_of(items_of(truth, truth)).answer == "yes"


def copycat(seed):
    """Two annotators who differ on 45 of 180 cells; a judge copies them, and flips a coin on those."""
    rng = random.Random(seed)
    first = [place % 2 == 0 for place in range(180)]
    second = [answer != (place % 4 == 3) for place, answer in enumerate(first)]
    judge = [one if one == other else rng.random() < 0.5 for one, other in zip(first, second, strict=True)]
    return items_of(judge, first, second)


@pytest.mark.parametrize("seed", range(5))
def test_judge_that_copies_consensus_and_guesses_elsewhere_is_no_plain_yes(seed):
    result = compute_metrics(Votes.parse(votes_value(copycat(seed), criteria=[FACTS], judges=["j"])))
    assert result.mean_kappa == 1.0
    assert result.verdict.answer == "with care"
    assert "disputed: annotators are tied on 25.0 % of the labelled cells" in result.verdict.reasons
    cover = result.coverage_stats
    assert (cover.n_total, cover.n_covered, cover.n_disputed) == (180, 135, 45)
    assert (cover.coverage, cover.disputed_rate, cover.union_exclusion_rate) == (0.75, 0.25, 0.25)
    assert (len(result.human.disputed), result.n_items) == (45, 180)


def test_items_with_only_disputed_cells_count_as_items_and_lower_coverage():
    items = items_of([True] * 4, [True, True, False, False], [True, False, True, False])
    result = compute_metrics(Votes.parse(votes_value(items, criteria=[FACTS], judges=["j"])))
    assert (result.n_items, result.n_samples) == (4, 2)
    assert (result.coverage_stats.coverage, result.coverage_stats.n_disputed) == (0.5, 2)
    assert not any(warning.startswith("no-truth") for warning in result.warnings)


@pytest.mark.parametrize("disputed", [20, 21])
def test_more_than_ten_per_cent_of_disputed_cells_cap_the_answer(disputed):
    first = [place % 2 == 0 for place in range(200)]
    second = [answer != (place < disputed) for place, answer in enumerate(first)]
    found = verdict_of(items_of(first, first, second))
    assert (found.answer, codes(found)) == (("yes", []) if disputed == 20 else ("with care", ["disputed"]))


@pytest.mark.parametrize("kappa", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_leaving_intervals_out_is_never_milder(seed, kappa):
    rng = random.Random(seed)
    truth = [rng.random() < 0.5 for _ in range(60)]
    items = items_of(noisy(rng, truth, kappa), truth)
    without = verdict_of(items, bootstrap=BootstrapSettings(replicates=0))
    assert (without.answer, codes(without)) == (None, ["no-interval"])
    for least in ("yes", "with care", "not yet"):
        assert verdict_of(items).reaches(least) or not without.reaches(least)


def test_judge_as_good_as_people_says_that_the_question_is_unreliable():
    rng = random.Random(36)
    truth = [place % 2 == 0 for place in range(300)]
    # Each agrees with a hidden truth with a kappa of 0.6, so two of them with one of 0.36.
    judge, *people = (noisy(rng, truth, 0.6) for _ in range(4))
    result = compute_metrics(Votes.parse(votes_value(items_of(judge, *people), criteria=[FACTS], judges=["j"])))
    human, found = result.human, result.verdict
    assert human.pairwise_kappa == pytest.approx(0.36, abs=0.07)
    assert human.panel_pairwise_kappa == pytest.approx(0.36, abs=0.07)
    assert found.answer == "not yet"
    assert [note.partition(":")[0] for note in found.notes] == ["as-people", "annotator-test", "unreliable-question"]
    assert "may replace a person on 1 of 1 criterion (mean winning rate 1.00)" in found.notes[1]
    assert "the criteria themselves are not clear enough" in found.notes[2]


def test_judge_worse_than_people_is_told_so_and_the_question_is_not_blamed():
    rng = random.Random(3)
    truth = [place % 2 == 0 for place in range(300)]
    judge = noisy(rng, truth, 0.3)
    people = [noisy(rng, truth, 0.95) for _ in range(3)]
    found = verdict_of(items_of(judge, *people))
    assert found.answer == "not yet"
    assert [note.partition(":")[0] for note in found.notes] == ["below-people", "annotator-test"]
    assert "may replace a person on 0 of 1 criterion" in found.notes[1]


def test_annotator_test_is_made_where_three_people_labelled_thirty_items():
    truth = [place % 2 == 0 for place in range(30)]
    for people, items, tested in ((3, 30, True), (3, 29, False), (2, 30, None)):
        votes = votes_value(items_of(*[truth[:items]] * (1 + people)), criteria=[FACTS], judges=["j"])
        result = compute_metrics(Votes.parse(votes), epsilon=0.1)
        codes_of_notes = [note.partition(":")[0] for note in result.verdict.notes]
        assert ("annotator-test" in codes_of_notes) is (tested is True)
        test = (result.human.annotator_tests or {}).get("facts")
        assert (test is None) == (tested is None)
        if test is not None:
            assert test == annotator_tests(Votes.parse(votes), epsilon=0.1)["facts"]
            assert test.passes is (True if tested else None)


def test_labels_of_one_source_give_no_notes_on_people():
    truth = [place % 2 == 0 for place in range(100)]
    assert verdict_of(items_of(truth, truth)) == TrustVerdict(
        answer="yes", floor=verdict_of(items_of(truth, truth)).floor, reasons=(), notes=()
    )


def simulated(seed, *, n, missed=0.0, let_through=0.0, repetitions=1, **header):
    """Votes of a judge that misses a share of what people pass, and lets through a share of what they fail.

    It says the same of every repetition of a sample.
    """
    chance = random.Random(seed)
    items = []
    for sample in range(n):
        people = chance.random() < 0.7
        judge = chance.random() >= missed if people else chance.random() < let_through
        items += [
            {
                "id": f"s{sample}#{repetition}",
                "metadata": {"sample": f"s{sample}"},
                "ground_truth": ["MET" if people else "UNMET"],
                "votes": {"judge": ["MET" if judge else "UNMET"]},
            }
            for repetition in range(repetitions)
        ]
    return Votes.parse(votes_value(items, criteria=[FACTS], judges=["judge"], **header))


def test_judge_that_passes_a_third_of_what_people_fail_is_no_plain_yes():
    results = [
        compute_metrics(simulated(seed, n=150, let_through=0.35), bootstrap=BootstrapSettings(replicates=100))
        for seed in range(20)
    ]
    capped = [result for result in results if "one-way" in codes(result.verdict)]
    assert len(capped) >= 18
    assert "yes" not in {result.verdict.answer for result in capped}
    assert capped[0].passed_of_passed == 1.0
    assert 0.2 <= capped[0].passed_of_failed <= 0.6


def test_good_judge_is_not_capped_for_the_side_of_its_errors():
    results = [
        compute_metrics(simulated(n, n=150, missed=0.06, let_through=0.06), bootstrap=BootstrapSettings(replicates=20))
        for n in range(20)
    ]
    assert [result for result in results if "one-way" in codes(result.verdict)] == []


def test_met_on_a_criterion_with_a_negative_weight_is_a_fail():
    votes = simulated(1, n=80, let_through=0.5).to_dict()
    plain = compute_metrics(Votes.parse(votes))
    votes["rubric"]["criteria"][0]["weight"] = -1
    turned = compute_metrics(Votes.parse(votes))
    assert turned.passed_of_passed == pytest.approx(1 - plain.passed_of_failed)
    assert turned.passed_of_failed == pytest.approx(1 - plain.passed_of_passed)
    assert (turned.n_people_passed, turned.n_people_failed) == (plain.n_people_failed, plain.n_people_passed)


def test_repetitions_of_a_sample_are_one_unit():
    covered = []
    for seed in range(30):
        # A quarter of all verdicts is wrong, alike on all repetitions of a sample: the true kappa is .4565.
        votes = simulated(seed, n=12, missed=0.25, let_through=0.25, repetitions=10, cluster="sample")
        result = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=200))
        assert (result.n_items, result.n_units) == (120, 12)
        assert result.verdict.answer != "yes"
        interval = result.intervals["mean_kappa"].ci
        covered.append(interval is not None and interval.lower <= 0.4565 <= interval.upper)
    assert sum(covered) >= 27


def test_labels_that_were_picked_give_no_answer_and_no_interval():
    result = compute_metrics(simulated(1, n=60, sampling="chosen"))
    assert (result.verdict.answer, codes(result.verdict)) == (None, ["not-random"])
    assert result.intervals is None


def test_picked_labels_claim_nothing_about_others_in_any_number_or_sentence():
    votes = simulated(1, n=60, let_through=0.9, sampling="chosen").to_dict()
    for item in votes["items"][40:]:
        del item["ground_truth"]
    result = compute_metrics(Votes.parse(votes), per_judge=True)
    assert result.corrected is None
    claims = [
        (name, value)
        for part in (result, result.bias, result.score_limits, result.score_spearman, result.per_judge["judge"].bias)
        for name, value in msgspec.structs.asdict(part).items()
        if name in ("ci", "lower_ci", "upper_ci", "p_value", "one_way_p", "intervals")
    ]
    assert len(claims) > 8
    assert [name for name, value in claims if value is not None] == []
    text = render_markdown(agreement_sections(result))
    for sentence in ("do not rely", "Do not rely", "may be chance", "on average"):
        assert sentence not in text
