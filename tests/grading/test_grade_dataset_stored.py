"""Gradings in a store: they resume at any point, repeat failed votes, and refuse a changed identity."""

from __future__ import annotations

import asyncio
import warnings
from decimal import Decimal

import pytest

import deemster as dm
from deemster.agreement import compute_metrics
from deemster.engine.model_access import build_model_access
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError, StoreError
from deemster.grading.grade_dataset import grade, grade_async, run_grading
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.few_shot import FewShot
from deemster.judges.judge_cascade import Cascade
from deemster.judges.judge_panel import Judge
from deemster.models import FakeChat, ModelFailure, Price, Role
from deemster.records import Answer, Usage
from deemster.rubrics import LengthPenalty
from deemster.runs.run_storage import RunStorage
from deemster.store import open_store
from tests.builders.arguments import arguments
from tests.grading.test_grade_dataset import GOOD, items, models, truthful, votes
from tests.judges.make_grader import FACTS, RUBRIC, dataset, finals, grader, reply, subject
from tests.report.runs import CLOCK


@pytest.fixture
def place(tmp_path):
    return tmp_path / "runs.db"


def kept(data, place, *, judges="a", roles=None, resume=None, allow_changed=False, **options):
    settings = {key: options.pop(key) for key in ("budget_usd", "budget_tokens") if key in options}
    return grade(
        data,
        grader(judges, **options),
        models=roles or models(judges),
        clock=CLOCK,
        **arguments(where=place, resume=resume, allow_changed=allow_changed, **settings),
    )


def roles_of(clients):
    return {name: Role(client=client) for name, client in clients.items()}


def rows(place):
    with open_store(place) as store:
        return store.runs()


def stopped_after(place, data, text, *, judges="a", roles=None):
    """A grading that is stopped when a submission is asked about."""
    stop = Stop()

    def answer(ask):
        if text in ask.messages[1].content:
            stop.request("interrupted")
        return truthful(ask)

    clients = roles or {name: Role(client=FakeChat(answer), concurrency=1) for name in judges}
    with open_store(place) as store:
        asking = build_model_access(clients)
        work = run_grading(
            data, grader(judges), access=asking, clock=CLOCK, stop=stop, warn=lambda _: None, storage=RunStorage(store)
        )
        return asyncio.run(work)


def test_grading_is_stored_with_its_identity(place):
    data = items(3)
    grading = kept(data, place)
    (row,) = rows(place)
    assert (row.id, row.kind, row.status, row.samples, row.done) == (grading.run, "grading", "complete", 3, 3)
    assert row.fingerprint == data.fingerprint
    assert set(row.identity) == {"items", "rubric", "settings", "checks", "models"}


def test_grading_without_a_store_has_no_run():
    grading = grade(items(1), grader(), models=models("a"), clock=CLOCK)
    assert (grading.run, grading.mixed) == (None, ())


def test_stopped_grading_resumes_to_same_result(place):
    data = items(600)
    whole = grade(data, grader("ab"), models=roles_of(models("ab")), clock=CLOCK)
    stopped = stopped_after(place, data, "Text 5.", judges="ab")
    assert rows(place)[0].status == "incomplete"
    assert 0 < sum(item.score is not None for item in stopped.items) < 600
    fakes = models("ab")
    resumed = kept(data, place, judges="ab", roles=roles_of(fakes), resume=True)
    assert list(resumed.items) == list(whole.items)
    assert resumed.judges == whole.judges
    assert resumed.run == stopped.run
    assert len(fakes["a"].asked) < 4 * 600
    (row,) = rows(place)
    assert (row.status, row.done) == ("complete", 600)


def test_resume_of_complete_grading_sends_no_request(place):
    data = items(5)
    first = kept(data, place)
    fake = FakeChat(truthful)
    again = kept(data, place, roles={"a": fake}, resume=True)
    assert fake.asked == []
    assert list(again.items) == list(first.items)
    assert again.usage == first.usage


def test_labels_that_changed_force_no_new_calls(place):
    kept(items(3), place)
    fake = FakeChat(truthful)
    labelled = items(3, ground_truth=["MET", "UNMET", "good", None], tags=["t"])
    grading = kept(labelled, place, roles={"a": fake}, resume=True)
    assert fake.asked == []
    assert grading.dataset is labelled


def troubled(ask):
    if "Text 1." in ask.messages[1].content and subject(ask) in ("facts", "depth"):
        return ModelFailure("refused", "No.")
    return truthful(ask)


def test_resume_repeats_only_failed_votes(place):
    data = items(3)
    first = kept(data, place, judges="ab", roles={"a": FakeChat(troubled), "b": FakeChat(truthful)})
    assert finals(first.items[1]) == ["MET", "UNMET", "fair", "warm"]
    assert sum(vote.failure is not None for vote in votes(first)) == 2
    fakes = models("ab")
    again = kept(data, place, judges="ab", roles=fakes, resume=first.run)
    assert [subject(ask) for ask in fakes["a"].asked] == ["facts", "depth"]
    assert fakes["b"].asked == []
    assert list(again.items) == list(grade(data, grader("ab"), models=models("ab"), clock=CLOCK).items)


def test_per_item_question_is_repeated_and_earlier_verdicts_stay(place):
    rubric = {"criteria": [FACTS, {**FACTS, "name": "more", "requirement": "More."}]}
    data = dataset("x", rubric=rubric)
    half = '{"verdicts": [{"criterion": "facts", "reason": "r", "verdict": "MET"}]}'
    both = (
        '{"verdicts": [{"criterion": "facts", "reason": "other", "verdict": "UNMET"},'
        ' {"criterion": "more", "reason": "r", "verdict": "MET"}]}'
    )
    first = kept(data, place, roles={"a": FakeChat(lambda _: half)}, calls="per_item")
    assert finals(first.items[0]) == ["MET", None]
    again = kept(data, place, roles={"a": FakeChat(lambda _: both)}, calls="per_item", resume=True)
    assert finals(again.items[0]) == ["MET", "MET"]


def test_cost_of_failed_votes_is_kept(place):
    prices = {"": Price(Decimal(1), Decimal(2))}

    def unreadable(ask):
        said = "Well." if subject(ask) == "facts" else truthful(ask).text
        return Answer(text=said, usage=Usage(prompt_tokens=100, completion_tokens=50), model="m")

    def good(ask):
        return Answer(text=truthful(ask).text, usage=Usage(prompt_tokens=100, completion_tokens=50), model="m")

    role = Role(client=FakeChat(unreadable, is_local=False), prices=prices)
    first = kept(items(1), place, roles={"a": role})
    role = Role(client=FakeChat(good, is_local=False), prices=prices)
    again = kept(items(1), place, roles={"a": role}, resume=True)
    each = Decimal("0.0002")
    assert (first.cost_usd, again.cost_usd) == (5 * each, 6 * each)
    assert [judge.failures for judge in again.judges] == [{}]


def test_budget_includes_earlier_spending(place):
    prices = {"": Price(Decimal(1), Decimal(2))}

    def said(ask):
        return Answer(text=truthful(ask).text, usage=Usage(prompt_tokens=900, completion_tokens=50), model="m")

    def role():
        return Role(client=FakeChat(said, is_local=False), prices=prices, concurrency=1)

    with pytest.warns(UserWarning, match="were not asked for"):
        kept(items(30), place, roles={"a": role()}, budget_tokens=20_000)
    second = role()
    with pytest.warns(UserWarning, match="were not asked for"):
        kept(items(30), place, roles={"a": second}, budget_tokens=20_000, resume=True)
    assert len(second.client.asked) <= 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"data": items(3, prompt="Other.")}, "items: was "),
        ({"data": dataset("Text 0.", "Text 1.", "Text 2.", rubric={"criteria": [FACTS]})}, "rubric: was "),
        ({"repeats": 2}, "settings.repeats: was 1, is 2"),
        ({"system_prompt": "Be strict."}, "settings.prompts.binary: was "),
        ({"judges": "b"}, "models.b: was not there, is "),
        ({"roles": {"a": FakeChat(truthful, identity={"model": "new"})}}, "models.a.model: was "),
    ],
)
def test_changed_grading_is_error_with_every_difference(place, change, told):
    first = dataset(*({"id": f"item-000{at + 1}", "submission": f"Text {at}."} for at in range(3)))
    kept(first if "data" in change and "items" not in told else items(3), place, roles=_identified("old"))
    given = {"data": items(3), "roles": _identified("old"), **change}
    if "judges" in change:
        given["roles"] = {"b": FakeChat(truthful)}
    data, name = given.pop("data"), rows(place)[0].id
    with pytest.raises(ConfigurationError) as error:
        kept(data, place, resume=name, **given)
    assert told in str(error.value)
    assert "--allow-changed" in str(error.value)
    assert rows(place)[0].status == "complete"


def _identified(model):
    return {"a": FakeChat(truthful, identity={"model": model})}


def test_allow_changed_regrades_changed_items_as_mixed(place):
    texts = [{"id": f"i{at}", "submission": f"Text {at}."} for at in range(3)]
    kept(dataset(*texts), place)
    fake = FakeChat(truthful)
    changed = dataset(*texts[:2], {**texts[2], "submission": "Text 9."})
    grading = kept(changed, place, roles={"a": fake}, resume=True, allow_changed=True)
    assert len(fake.asked) == 4
    assert all("Text 9." in ask.messages[1].content for ask in fake.asked)
    assert [told.partition(":")[0] for told in grading.mixed] == ["items"]
    assert rows(place)[0].status == "mixed"
    # Regraded items are not requested again.
    kept(changed, place, roles={"a": fake}, resume=True)
    assert len(fake.asked) == 4
    assert rows(place)[0].status == "mixed"


def test_other_items_are_error_even_with_allow_changed(place):
    kept(items(3), place)
    with pytest.raises(ConfigurationError, match="other items"):
        kept(items(4), place, resume=True, allow_changed=True)


def test_resume_in_new_store_begins_new_grading(place):
    grading = kept(items(2), place, resume=True)
    assert rows(place)[0].id == grading.run


def test_unknown_run_is_error_with_its_name(place):
    kept(items(1), place)
    with pytest.raises(StoreError, match="nope"):
        kept(items(1), place, resume="nope")


def test_two_gradings_in_one_second_get_two_ids(place):
    first, second = kept(items(1), place), kept(items(1), place)
    assert first.run != second.run
    assert len(rows(place)) == 2


def test_open_store_stays_open_and_it_may_be_awaited(place):
    async def inside(store):
        return await grade_async(items(2), grader(), models=models("a"), storage=store, clock=CLOCK)

    with open_store(place) as store:
        grading = asyncio.run(inside(store))
        assert store.run(grading.run).done == 2


def test_failing_store_ends_grading_and_keeps_commits(place, monkeypatch):
    from deemster.store.batched_writer import Writer

    add = Writer.add
    seen = []

    def failing(self, executions, *, at=None):
        seen.append(executions)
        if len(seen) == 2:
            raise StoreError("runs.db: The disk is full.")
        add(self, executions, at=at)

    monkeypatch.setattr(Writer, "add", failing)
    with pytest.raises(StoreError, match="The disk is full"):
        kept(items(2000), place, roles={"a": Role(client=FakeChat(truthful), concurrency=1)})
    monkeypatch.undo()
    done = rows(place)[0].done
    assert 4 <= done < 2000
    fake = FakeChat(truthful)
    grading = kept(items(2000), place, roles=roles_of({"a": fake}), resume=True)
    # What judges said of items that were not stored is kept too.
    assert len(fake.asked) <= 4 * (2000 - done) - 4
    assert grading.n_failed_items == 0


def test_resumed_cascade_keeps_its_votes(place):
    panel = CriterionGrader(Cascade(Judge("a", "a"), Judge("b", "b"), by="consistency", repeats=2))
    data = items(2)

    def dead(_):
        return ModelFailure("refused", "No.")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = grade(data, panel, models={"a": FakeChat(split), "b": FakeChat(dead)}, storage=place, clock=CLOCK)
    assert finals(first.items[0])[:2] == [None, "UNMET"]
    fakes = {"a": FakeChat(split), "b": FakeChat(truthful)}
    again = grade(data, panel, models=fakes, storage=dm.Storage(place, resume=True), clock=CLOCK)
    assert fakes["a"].asked == []
    assert [subject(ask) for ask in fakes["b"].asked] == ["facts"] * 2
    assert finals(again.items[0]) == ["MET", "UNMET", "fair", "warm"]


def split(ask):
    """A judge of two minds about the facts."""
    name = subject(ask)
    return reply(ask, "UNMET" if name == "facts" and ask.sample else GOOD[name])


def test_fixture_dataset_matches_grading_tests():
    assert [each["name"] for each in RUBRIC["criteria"]] == list(GOOD)


def test_grading_is_stored_in_postgresql(postgres_url):
    data = items(3)
    roles = {"a": FakeChat(troubled), "b": FakeChat(truthful)}
    first = kept(data, postgres_url, judges="ab", roles=roles, quorum=1)
    fakes = models("ab")
    again = kept(data, postgres_url, judges="ab", roles=fakes, resume=first.run, quorum=1)
    assert [subject(ask) for ask in fakes["a"].asked] == ["facts", "depth"]
    assert fakes["b"].asked == []
    assert [item.score for item in again.items] == [item.score for item in first.items]


TRAIN = [
    {"id": f"t{at}", "submission": f"Example {at}.", "ground_truth": ["MET", "UNMET", "fair", "warm"],
     "ground_truth_reasons": ["It is so.", None, None, None], "metadata": {"author": at}}
    for at in range(3)
]  # fmt: skip


def shown(train=TRAIN, **options):
    return {"few_shot": FewShot(dataset(*train), reasons=True, cluster="author", **options)}


def counted(text):
    return len(text)


def other_counted(text):
    return len(text) + 1


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (shown(), shown(n=2), "settings.few_shot.n: was 3, is 2"),
        (shown(), shown(seed=2), "settings.few_shot.seed"),
        (shown(), shown([*TRAIN[:2], {**TRAIN[2], "ground_truth": ["UNMET", None, None, None]}]), "few_shot.train"),
        (shown(), shown([*TRAIN[:2], {**TRAIN[2], "ground_truth_reasons": ["No.", *[None] * 3]}]), "few_shot.told"),
        ({"length_penalty": LengthPenalty(count=counted)}, {"length_penalty": LengthPenalty(count=other_counted)},
         "length_penalty.count"),
        ({}, {"max_tokens": 7}, "settings.max_tokens"),
        ({}, {"probabilities": True}, "settings.probabilities"),
        ({}, {"shuffle_options": False}, "settings.shuffle_options"),
        ({}, {"auto_na": False}, "settings.auto_na"),
        ({}, {"abstention": "zero"}, "settings.abstention"),
        ({}, {"seed": 4}, "settings.seed"),
        ({}, {"calls": "per_item"}, "settings.calls"),
    ],
)  # fmt: skip
def test_change_of_prompt_or_aggregation_is_another_grading(place, before, after, told):
    kept(items(2), place, **before)
    fake = FakeChat(truthful)
    with pytest.raises(ConfigurationError, match="this changed since it started") as error:
        kept(items(2), place, roles={"a": fake}, resume=rows(place)[0].id, **after)
    assert told in str(error.value)
    assert fake.asked == []


def test_changed_cluster_of_item_changes_few_shot_identity(place):
    own = [{"id": "i0", "submission": "Text 0.", "metadata": {"author": 0}}]
    kept(dataset(*own), place, **shown())
    moved = dataset({**own[0], "metadata": {"author": 1}})
    with pytest.raises(ConfigurationError, match="clusters: was "):
        kept(moved, place, resume=True, **shown())


@pytest.mark.parametrize("template", ["grade-entry", "grade-example"])
def test_prompt_texts_are_part_of_grading_identity(monkeypatch, template):
    from deemster.judges import criterion_grader as terms

    panel = {"calls": "per_item", **shown()}
    before = grader(**panel).settings["prompts"]
    read = terms.prompt_file_text
    monkeypatch.setattr(terms, "prompt_file_text", lambda name: read(name) + " Or so." * (name == template))
    after = grader(**panel).settings["prompts"]
    assert [key for key in before if before[key] != after[key]] == [template.removeprefix("grade-")]


def test_changed_file_of_custom_check_is_another_grading(place, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = 'import deemster as dm\n\n@dm.metric("lucky")\ndef lucky(sample, output):\n    return {}\n'
    (tmp_path / "luck_of_gradings.py").write_text(text.format("1.0"))
    checked = {"name": "luck", "requirement": "It is lucky.", "check": {"metric": "luck_of_gradings:lucky"}}
    data = dataset("x", rubric={"criteria": [FACTS, checked]})
    kept(data, place)
    (tmp_path / "luck_of_gradings.py").write_text(text.format("0.0"))
    with pytest.raises(ConfigurationError, match=r"checks\.luck\.source: was "):
        kept(data, place, resume=True)


def test_unreachable_panel_leaves_grading_incomplete_despite_checks(place):
    checked = {"name": "text", "requirement": "Text.", "check": {"metric": "regex", "args": {"pattern": "Text"}}}
    data = dataset("Text 1.", "Text 2.", rubric={"criteria": [FACTS, checked]})
    with pytest.warns(UserWarning, match="failed every call"):
        first = kept(data, place, roles={"a": FakeChat(lambda _: ModelFailure("refused", "No."))})
    assert [finals(item) for item in first.items] == [[None, "MET"]] * 2
    (row,) = rows(place)
    assert (row.status, row.reason) == ("incomplete", "2 verdicts could not be had: no judge was reached")
    again = kept(data, place, resume=True)
    assert [finals(item) for item in again.items] == [["MET", "MET"]] * 2
    assert rows(place)[0].status == "complete"


@pytest.mark.parametrize("now", ["b", "ab", "ba"])
def test_other_judges_are_error_even_with_allow_changed(place, now):
    kept(items(2), place)
    fakes = models(now)
    with pytest.raises(ConfigurationError, match="The judges were `a`, and are ") as error:
        kept(items(2), place, judges=now, roles=fakes, resume=True, allow_changed=True)
    assert "not even `--allow-changed` mixes these" in str(error.value)
    assert [fake.asked for fake in fakes.values()] == [[]] * len(fakes)
    assert rows(place)[0].status == "complete"


def test_panel_and_cascade_of_same_judges_are_not_mixed(place):
    kept(items(2), place, judges="ab")
    cascade = CriterionGrader(Cascade(Judge("a", "a"), Judge("b", "b"), by="consistency"))
    with pytest.raises(ConfigurationError, match="`a`, `b` one after the other"):
        grade(
            items(2),
            cascade,
            models=models("ab"),
            storage=dm.Storage(place, resume=True, allow_changed=True),
            clock=CLOCK,
        )


def test_mixed_grading_is_aligned_by_recorded_verdicts(place):
    def divided(ask):
        return reply(ask, "UNMET" if ask.role == "a" and subject(ask) == "facts" else GOOD[subject(ask)])

    data = items(3, ground_truth=["UNMET", "UNMET", "fair", "warm"])
    roles = {name: FakeChat(divided) for name in "ab"}
    kept(data, place, judges="ab", roles=roles)
    mixed = kept(data, place, judges="ab", roles=roles, resume=True, allow_changed=True, aggregation="any")
    assert mixed.mixed
    assert [finals(item)[0] for item in mixed.items] == ["UNMET"] * 3
    assert compute_metrics(mixed, None).per_criterion[0].accuracy == 1
