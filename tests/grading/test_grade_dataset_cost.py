"""The usage of a grading does not depend on the order of answers or on kills."""

from __future__ import annotations

from decimal import Decimal

import pytest

import deemster as dm
from deemster.grading.grade_dataset import grade
from deemster.models import ModelFailure, Price, Role
from deemster.records import Answer
from deemster.store import RunFacts, open_store
from tests.builders.arguments import arguments
from tests.grading.test_grade_dataset import items, priced, truthful, votes
from tests.judges.make_grader import FACTS, dataset, finals, grader, reply, subject
from tests.report.runs import CLOCK

PRICES = {"": Price(Decimal(1), Decimal(2))}
EACH = Decimal("0.0002")
TWINS = [{"id": f"i{number}", "submission": "The same."} for number in range(4)]


def role(answer=truthful, **more):
    client = priced(answer)
    return Role(client=client, prices=PRICES, **more)


def paid(grading):
    return [[vote.usage.calls for each in item.criteria for vote in each.votes] for item in grading.items]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("calls", ["per_criterion", "per_item"])
def test_first_of_equal_items_is_charged_in_any_answer_order(tmp_path, cached, calls):
    rubric = {"criteria": [FACTS, {**FACTS, "name": "more", "requirement": "More."}]}
    data = dataset(*TWINS, rubric=rubric)

    def answer(ask):
        if calls == "per_item":
            entries = ", ".join(
                f'{{"criterion": "{name}", "reason": "r", "verdict": "MET"}}' for name in ("facts", "more")
            )
            return Answer(text=f'{{"verdicts": [{entries}]}}')
        return reply(ask, "MET")

    options = {"cache": tmp_path / "cache.jsonl"} if cached else {}
    grading = grade(data, grader(calls=calls), models={"a": role(answer)}, clock=CLOCK, **arguments(**options))
    first = [1, 1] if calls == "per_criterion" else [1, 0]
    assert paid(grading) == [first, [0, 0], [0, 0], [0, 0]]
    assert grading.usage.calls == sum(first)
    assert grading.usage.cached_calls == 3 * sum(first)
    assert grading.cost_usd == sum(first) * EACH
    assert [item.cost_usd for item in grading.items] == [sum(first) * EACH, 0, 0, 0]
    assert not any(vote.calls for vote in votes(grading))


def kept(data, place, *, roles, judges="a", resume=None, cache=None, **options):
    return grade(
        data,
        grader(judges, **options),
        models=roles,
        storage=dm.Storage(place, resume=resume),
        calls=dm.ModelCalls(cache=cache),
        clock=CLOCK,
    )


@pytest.mark.parametrize("cached", [False, True])
def test_killed_and_resumed_grading_with_cache_has_same_cost(tmp_path, cached):
    data = dataset(*TWINS, *({"submission": f"Text {number}."} for number in range(20)))
    whole = kept(data, tmp_path / "whole.db", roles={"a": role()}, cache=tmp_path / "whole.jsonl")
    place, cache = tmp_path / "runs.db", tmp_path / "cache.jsonl" if cached else None
    first = kept(data, place, roles={"a": role()}, cache=cache)
    with open_store(place) as store:
        # As a kill leaves it: the answers are there, and half of the items are not.
        _forget(store, first.run, keep=lambda position: position % 2)
    second = role()
    again = kept(data, place, roles={"a": second}, resume=True, cache=cache)
    # Half of the other items, and one of the four equal items.
    assert len(second.client.asked) == (0 if cached else 4 * 11)
    if cached:
        assert list(again.items) == list(whole.items)
        assert (again.usage, again.judges) == (whole.usage, whole.judges)
    assert again.cost_usd == (84 if cached else 84 + 4) * EACH


def _forget(store, run, *, keep):
    """Begin the same grading once more with some of its items."""
    row, samples = store.run(run), list(store.samples(run))
    left = [execution for execution in store.executions(run) if keep(execution.position)]
    store.remove(run)
    facts = RunFacts(**{key: getattr(row, key) for key in RunFacts.__struct_fields__})
    with store.begin(facts, samples, cards=row.scorings[0].cards), store.writer(run) as writer:
        writer.add(left)
        writer.flush()


def test_repeated_question_is_charged_to_its_criterion(tmp_path):
    rubric = {"criteria": [FACTS, {**FACTS, "name": "more", "requirement": "More."}]}
    entry = '{{"criterion": "{}", "reason": "r", "verdict": "MET"}}'.format

    def half(_):
        return Answer(text=f'{{"verdicts": [{entry("facts")}]}}')

    def both(_):
        return Answer(text=f'{{"verdicts": [{entry("facts")}, {entry("more")}]}}')

    data, place = dataset("x", rubric=rubric), tmp_path / "runs.db"
    first = kept(data, place, roles={"a": role(half)}, calls="per_item")
    assert first.cost_usd == 2 * EACH
    again = kept(data, place, roles={"a": role(both)}, calls="per_item", resume=True)
    assert finals(again.items[0]) == ["MET", "MET"]
    assert again.cost_usd == 3 * EACH
    assert [each.cost_usd for each in again.items[0].criteria] == [2 * EACH, EACH]


@pytest.mark.parametrize("anew", [True, False])
def test_unreadable_cached_reply_is_requested_again(tmp_path, anew):
    place, cache = tmp_path / "runs.db", tmp_path / "cache.jsonl"

    def unreadable(ask):
        return Answer(text="Well.") if subject(ask) == "facts" else truthful(ask)

    first = kept(items(2), place, roles={"a": role(unreadable)}, cache=cache)
    assert [vote.failure.tries for vote in votes(first) if vote.failure is not None] == [2, 2]
    second = role()
    again = grade(
        items(2),
        grader(),
        models={"a": second},
        storage=dm.Storage(place, resume=True),
        calls=dm.ModelCalls(cache=cache, offline=not anew),
        clock=CLOCK,
    )
    assert [ask.again for ask in second.client.asked] == [2, 2] * anew
    assert [finals(item)[0] for item in again.items] == ["MET" if anew else None] * 2
    # Two of the first time each, and one of the second where it was asked.
    assert again.cost_usd == (6 + 4 + 2 * anew) * EACH


def test_failed_check_metric_is_retried_without_double_charge(tmp_path):
    checked = {"name": "close", "requirement": "It is right.", "check": {"metric": "llm-as-judge", "threshold": 0.5}}
    data = dataset(
        {"submission": "Paris.", "reference_submission": "Paris.", "prompt": "Capital?"},
        rubric={"criteria": [FACTS, checked]},
    )

    def marked(_):
        return Answer(text='{"reason": "r", "score": 0.9}')

    def dead(_):
        return ModelFailure("refused", "No.")

    place = tmp_path / "runs.db"
    asked = {"a": role(lambda ask: reply(ask, "MET")), "judge": role(dead)}
    first = kept(data, place, roles=asked)
    assert first.items[0].criteria[1].failed
    assert "No." in first.items[0].criteria[1].votes[0].failure.message
    second = {"a": role(lambda _: ModelFailure("refused", "Never asked.")), "judge": role(marked)}
    again = kept(data, place, roles=second, resume=True)
    assert finals(again.items[0]) == ["MET", "MET"]
    assert second["a"].client.asked == []
    third = {"a": role(dead), "judge": role(dead)}
    assert kept(data, place, roles=third, resume=True).cost_usd == again.cost_usd == 2 * EACH


def test_usage_of_check_metric_survives_judge_retry(tmp_path):
    checked = {"name": "close", "requirement": "It is right.", "check": {"metric": "llm-as-judge", "threshold": 0.5}}
    item = {"submission": "Paris.", "reference_submission": "Paris.", "prompt": "Capital?"}
    data, place = dataset(item, rubric={"criteria": [FACTS, checked]}), tmp_path / "runs.db"
    marks = role(lambda _: Answer(text='{"reason": "r", "score": 0.9}'))
    with pytest.warns(UserWarning, match="failed every call"):
        kept(data, place, roles={"a": role(lambda _: ModelFailure("refused", "No.")), "judge": marks})
    again = kept(data, place, roles={"a": role(lambda ask: reply(ask, "MET")), "judge": marks}, resume=True)
    assert len(marks.client.asked) == 1
    assert again.cost_usd == 2 * EACH


def test_budget_counts_a_shared_call_once_and_a_cached_one_not_at_all(tmp_path):
    place = tmp_path / "runs.db"
    data = dataset(*TWINS, {"id": "bad", "submission": "Bad."})

    def troubled(ask):
        return ModelFailure("refused", "No.") if "Bad." in ask.messages[1].content else truthful(ask)

    kept(data, place, roles={"a": role(troubled)})
    with open_store(place) as store:
        grading = grade(
            data,
            grader(),
            models={"a": role()},
            storage=dm.Storage(store, resume=True),
            calls=dm.ModelCalls(budget_tokens=100_000),
            clock=CLOCK,
        )
    assert grading.usage.calls == 8
    assert grading.cost_usd == 8 * EACH
