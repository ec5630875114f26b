"""The answer of a result, and what it rests on."""

from __future__ import annotations

import msgspec
import pytest

from deemster.alignment import MetricsResult, TrustVerdict
from tests.alignment import make_results as results


def answered(**changes):
    """A result that is trusted, with some changes."""
    good = {
        "mean_kappa": 0.8,
        "n_items": 40,
        "n_criteria": 1,
        "per_criterion": (results.binary(kappa=0.8),),
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
        ({"intervals": None}, "no-interval"),
        ({"intervals": {"mean_kappa": results.resampled(0.8, 0.6, 0.9)}}, "moderate"),
        ({"n_items": 29}, "few-items"),
        ({"warnings": ("few-clusters: 3 clusters only.",)}, "few-clusters"),
        ({"per_criterion": (results.binary(kappa=0.4),)}, "weak-criteria"),
        ({"per_criterion": (results.binary(kappa=None),)}, "undefined-criteria"),
        ({"bias": results.bias(0.2, is_significant=True, effect_size=-0.5)}, "bias"),
        ({"coverage_stats": results.coverage(100, 79)}, "coverage"),
    ],
)
def test_each_reservation_gives_with_care(changes, code):
    found = answered(**changes)
    assert (found.answer, codes(found)) == ("with care", [code])


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
    result.to_file(path)
    value = msgspec.json.decode(path.read_bytes())
    assert list(value)[:2] == ["schema_version", "verdict"]
    assert value["verdict"]["answer"] == result.verdict.answer
    assert MetricsResult.from_file(path) == result
    path.write_bytes(msgspec.json.encode(value | {"verdict": msgspec.to_builtins(lie)}))
    assert MetricsResult.from_file(path) == result
