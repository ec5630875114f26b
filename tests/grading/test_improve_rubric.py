"""A rubric is reworded only if held-out agreement improves."""

from __future__ import annotations

import json
import sqlite3
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.grading._improvement_search import RubricImprovement, reword_rubric
from deemster.grading.improvement_judging import HELD_OUT, TRAIN, ImprovementSettings, WordingProposal
from deemster.store import batched_writer
from tests.builders.arguments import arguments
from tests.runs.make_rewordings import BETTER, GRADER, RUBRIC, Judge, Writer, dataset, models

WEAK = {"The facts are alright.": 0.6}


def improved(judge, author, *, items=200, **options):
    grader = options.pop("grader", GRADER)
    given = {"writer": "writer", "criteria": 1, **options}
    settings = {name: given.pop(name) for name in ImprovementSettings.__struct_fields__ if name in given}
    given["settings"] = ImprovementSettings(**settings)
    return dm.improve_rubric(RUBRIC, dataset(items), grader, models=models(judge, author), **arguments(**given))


def test_wording_with_better_agreement_is_accepted():
    found = improved(Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER))
    assert found.accepted == ("facts",)
    assert found.complete
    (only,) = found.tries
    assert only.decision == "accepted"
    assert only.held_out.after > only.held_out.before + 0.2
    assert only.held_out.p_value <= only.level == pytest.approx(0.05 / 3)
    assert (found.train_items, found.held_out_items, found.family) == (100, 100, 3)


def test_only_requirement_of_accepted_criterion_changes():
    found = improved(Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER))
    old, new = RUBRIC.criteria[0], found.after.criteria[0]
    assert new == msgspec.structs.replace(old, requirement=BETTER)
    assert found.after.criteria[1:] == RUBRIC.criteria[1:]
    assert msgspec.structs.replace(found.after, criteria=RUBRIC.criteria) == RUBRIC
    changed = [line for line in found.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == ["-    requirement: The facts are alright.", f"+    requirement: {BETTER}"]


def test_sections_keep_their_criteria():
    rubric = dm.Rubric.parse("- { name: one, criteria: [{ name: a, requirement: A. }, { name: b, requirement: B. }] }")
    new = reword_rubric(rubric, {"b": "Better."})
    assert [criterion.requirement for criterion in new.sections[0].criteria] == ["A.", "Better."]
    assert new.criteria == new.sections[0].criteria
    assert reword_rubric(rubric, {}) == rubric


def test_wording_worse_on_training_part_is_not_tested():
    judge = Judge(WEAK | {"Wording 1.": 0.3})
    found = improved(judge, Writer(lambda number: f"Wording {number}."), rounds=2)
    assert [each.decision for each in found.tries] == ["no better"]
    assert (found.accepted, found.diff, found.after) == ((), "", RUBRIC)
    assert found.tries[0].held_out is None
    assert found.stopped == "round 1 brought no wording that helps on the training part"


def test_proposal_changing_more_than_wording_is_rejected_ungraded():
    judge = Judge(WEAK)
    writer = Writer(lambda _: {"diagnosis": "x", "requirement": BETTER, "weight": 99})
    found = improved(judge, writer)
    assert [each.decision for each in found.tries] == ["refused"]
    assert "`weight`" in found.tries[0].message
    assert writer.asked == 2
    # Three criteria on the part to learn from, one on the other; the fourth criterion is a metric's.
    assert judge.asked == 4 * 100


def test_with_too_few_held_out_disagreements_writer_is_not_asked():
    writer = Writer(lambda _: BETTER)
    found = improved(Judge({}, usual=0.9), writer, items=20, criteria=3, rounds=5)
    assert {each.decision for each in found.tries} == {"out of reach"}
    assert writer.asked == 0
    assert all(target.least_p > 0.05 / found.family for target in found.targets)


def test_full_agreement_needs_no_improvement():
    found = improved(Judge({}, usual=1.0), Writer(lambda _: BETTER), items=10)
    assert (found.targets, found.tries) == ((), ())
    assert "agree on every item" in found.stopped


def test_writer_sees_only_training_disagreements():
    writer = Writer(lambda number: f"Wording {number}.")
    judge = Judge(WEAK | {f"Wording {number}.": 0.68 for number in range(1, 9)})
    found = improved(judge, writer, rounds=3)
    train, held = dataset(200).split(0.5, seed=0)
    shown = {text for seen in writer.seen for text in seen.split("\n") if text.startswith("Submission number")}
    assert shown <= {item.submission for item in train}
    assert not shown & {item.submission for item in held}
    assert len(shown) > 6
    tried = [each.requirement for each in found.tries]
    assert all(wording in writer.seen[-1] for wording in tried[:-1])


def test_worst_criteria_come_first_without_check_criteria():
    judge = Judge({"The facts are alright.": 0.9, "There is padding.": 0.5, "How deep is it?": 0.7})
    found = improved(judge, Writer(lambda _: "Nothing."), criteria=9)
    assert [target.criterion for target in found.targets] == ["padding", "depth", "facts"]


def test_later_tests_use_holm_level():
    better = {"The facts are alright.": "Numbers are right.", "There is padding.": "Says a thing twice, padding."}
    chances = dict.fromkeys(better, 0.55) | dict.fromkeys(better.values(), 0.98)

    def propose(_):
        return next(new for old, new in better.items() if old in writer.seen[-1])

    writer = Writer(propose)
    found = improved(Judge(chances), writer, items=300, criteria=2)
    assert sorted(found.accepted) == ["facts", "padding"]
    assert [each.level for each in found.tries] == pytest.approx([0.05 / 6, 0.05 / 5])
    assert "better wording" in found.stopped


def test_cluster_is_never_split_and_counts_once():
    found = improved(Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER), cluster="author", items=200)
    train, held = dataset(200).split(0.5, cluster="author", seed=0)
    assert {item.metadata["author"] for item in train}.isdisjoint(item.metadata["author"] for item in held)
    (only,) = found.tries
    # Ten authors are held out: 2 ** -10 is as low as p can get.
    assert only.held_out.p_value >= 2**-10


@pytest.fixture
def trail(tmp_path):
    return tmp_path / "new.yaml.progress.db"


def test_resume_of_finished_improvement_sends_no_request(trail):
    judge, writer = Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER)
    first = improved(judge, writer, where=trail)
    asked = judge.asked, writer.asked
    second = improved(judge, writer, where=trail, resume=True)
    assert (judge.asked, writer.asked) == asked
    assert second.to_json() == first.to_json()


def test_progress_that_cannot_be_written_ends_improvement(trail, monkeypatch):
    def fail(*_):
        raise dm.errors.StoreError("The disk is full.")

    monkeypatch.setattr(batched_writer.Writer, "flush", fail)
    with pytest.raises(dm.errors.StoreError, match="The disk is full"):
        improved(Judge(WEAK), Writer(lambda _: BETTER), where=trail)


@pytest.mark.parametrize("share", [0.35, 0.6, 0.9])
def test_improvement_killed_at_any_point_resumes_to_same_result(trail, share):
    judge, writer = Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER)
    whole = improved(judge, writer, where=trail)
    with sqlite3.connect(trail) as database:
        (count,) = database.execute("SELECT count(*) FROM calls").fetchone()
        answered = int(count * share)
        database.execute("DELETE FROM calls WHERE rowid NOT IN (SELECT rowid FROM calls LIMIT ?)", (answered,))
    database.close()
    before = judge.asked + writer.asked
    again = improved(judge, writer, where=trail, resume=True)
    assert again.to_json() == whole.to_json()
    assert 0 < answered < before == count
    assert judge.asked + writer.asked - before == before - answered


def test_existing_progress_file_is_not_overwritten(trail):
    judge, writer = Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER)
    improved(judge, writer, where=trail)
    with pytest.raises(dm.ConfigurationError, match="--resume"):
        improved(judge, writer, where=trail)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 1}, "seed: was 0, is 1"),
        ({"rounds": 5}, "rounds: was 3, is 5"),
        ({"items": 201}, "dataset: was"),
        ({"grader": dm.CriterionGrader(dm.Judge("other", "judge"))}, "grader.judges.0.id: was j, is other"),
        ({"writer": "judge"}, "writer: was writer, is judge"),
    ],
)
def test_progress_file_of_other_improvement_is_error(trail, changed, message):
    judge, writer = Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER)
    improved(judge, writer, where=trail)
    with pytest.raises(dm.ConfigurationError, match=message):
        improved(judge, writer, where=trail, resume=True, **changed)


@pytest.mark.parametrize("text", ["{}\n", '{"type": "reply", "criterion": "a", "number": 1}\n', "\xff\n"])
def test_invalid_progress_file_is_error(trail, text):
    trail.write_text(text, encoding="latin-1")
    with pytest.raises(dm.errors.StoreError, match="it is no SQLite database"):
        improved(Judge(WEAK), Writer(lambda _: BETTER), where=trail, resume=True)
    assert trail.read_text(encoding="latin-1") == text


def test_improvement_stopped_by_budget_resumes_with_larger_budget(trail):
    judge, writer = Judge(WEAK | {BETTER: 0.97}), Writer(lambda _: BETTER)
    usage = dm.Usage(prompt_tokens=90, completion_tokens=10, total_tokens=100)

    def counted(ask):
        return dm.records.Answer(text=json.dumps(judge(ask)), usage=usage)

    def improve(**options):
        given = {"judge": dm.models.FakeChat(counted), "writer": dm.models.FakeChat(writer)}
        return dm.improve_rubric(
            RUBRIC,
            dataset(100),
            GRADER,
            models=given,
            settings=ImprovementSettings("writer", criteria=1),
            **arguments(where=trail, **options),
        )

    first = improve(budget_tokens=12_000)
    assert not first.complete
    assert "budget" in first.stopped
    assert first.after == RUBRIC
    asked = judge.asked
    assert "12,000 tokens are spent" in improve(budget_tokens=12_000, resume=True).stopped
    assert judge.asked == asked > 0
    last = improve(resume=True)
    assert last.complete
    assert last.accepted == ("facts",)


def test_failed_judge_stops_improvement_without_decision(trail):
    def dead(ask):
        raise dm.models.ModelFailure("refused", "no such model")

    found = improved(dead, Writer(lambda _: BETTER), where=trail)
    assert not found.complete
    assert "no such model" in found.stopped
    assert found.tries == ()
    judge = Judge(WEAK | {BETTER: 0.97})
    assert improved(judge, Writer(lambda _: BETTER), where=trail, resume=True).accepted == ("facts",)


def test_failed_writer_stops_improvement(trail):
    def dead(ask):
        raise dm.models.ModelFailure("refused", "no such model")

    found = improved(Judge(WEAK), dead, where=trail)
    assert (found.complete, found.tries) == (False, ())
    assert "the writer failed" in found.stopped


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be"),
        ({"criteria": True}, "criteria must be"),
        ({"alpha": 1.0}, "alpha must be"),
        ({"writer": "wirter"}, "Did you mean `writer`?"),
        ({"train": 1.5}, "train"),
        ({"cluster": "autor"}, "no `autor`"),
        ({"grader": dm.CriterionGrader(dm.Judge("j", "judge"), calls="per_item")}, "per_criterion"),
        ({"grader": "judge"}, "CriterionGrader"),
    ],
)
def test_unusable_arguments_are_error_before_any_request(options, message):
    judge = Judge(WEAK)
    with pytest.raises(dm.InputError, match=message):
        improved(judge, Writer(lambda _: BETTER), **options)
    assert judge.asked == 0


def test_labels_of_other_rubric_are_error():
    other = dm.Rubric.parse("- { name: x, requirement: X. }")
    with pytest.raises(dm.errors.DatasetError, match="both need the same"):
        dm.improve_rubric(other, dataset(10), GRADER, models=models(Judge({}), Writer(str)))


def test_wording_in_dataset_rubric_is_ignored():
    theirs = reword_rubric(RUBRIC, {"facts": "Something else."})
    found = dm.improve_rubric(
        RUBRIC,
        dataset(20, rubric=theirs),
        GRADER,
        models=models(Judge(WEAK), Writer(lambda _: BETTER)),
        settings=ImprovementSettings("writer"),
    )
    assert found.targets[0].requirement == "The facts are alright."


class NoisyJudging:
    """Agreements by lot: the wording has no part in them."""

    def __init__(self, seed, *, items=200, criteria=3, rounds=3, change=0.4, truth=0.7):
        self.rubric = dm.Rubric(tuple(dm.Criterion(f"Wording {at}.", name=f"c{at}") for at in range(criteria)))
        self.settings = ImprovementSettings("writer", rounds=rounds, criteria=criteria)
        self.parts = {part: SimpleNamespace(cases=range(items), clusters=None) for part in (TRAIN, HELD_OUT)}
        self.usage, self._rng, self._known = None, np.random.default_rng(seed), {}
        self._items, self._change, self._truth = items, change, truth

    def truths(self, place, part):
        return [0] * self._items

    async def agreements(self, criterion, part):
        key = (criterion.name, criterion.requirement, part)
        if key not in self._known:
            first = self._known.get((criterion.name, f"Wording {criterion.name[1:]}.", part))
            fresh = self._rng.random(self._items) < self._truth
            kept = self._rng.random(self._items) >= self._change
            self._known[key] = fresh if first is None else np.where(kept, first, fresh)
        return [float(each) for each in self._known[key]]

    async def propose(self, criterion, number, *, tried):
        return WordingProposal(f"Try {number}.", "?")


@pytest.mark.parametrize("options", [{}, {"change": 1.0}, {"criteria": 1, "rounds": 1}, {"criteria": 1, "rounds": 6}])
def test_false_acceptance_is_at_most_five_percent(options, thorough):
    runs = 300 if thorough else 100
    accepted = sum(
        bool(run_sync(RubricImprovement(NoisyJudging(seed, **options)).improve()).accepted) for seed in range(runs)
    )
    assert accepted / runs <= 0.05


def test_wording_without_effect_is_never_accepted():
    for seed in range(50):
        found = run_sync(RubricImprovement(NoisyJudging(seed, change=0.0)).improve())
        assert {each.decision for each in found.tries} == {"no better"}


def test_zero_gain_is_never_accepted_at_any_level():
    judge = Judge({"The facts are alright.": 0.5, "Other words.": 0.5})
    for world in range(12):
        judge.world = world
        found = dm.improve_rubric(
            RUBRIC, dataset(60, world=world), GRADER, models=models(judge, Writer(lambda _: "Other words.")),
            settings=ImprovementSettings("writer", criteria=1, rounds=1, alpha=0.999),
        )  # fmt: skip
        assert all(each.held_out.difference > 0 for each in found.tries if each.decision == "accepted")


def test_changed_ground_truth_reasons_are_other_improvement(trail):
    def improve(reason, **options):
        data = dataset(40)
        rows = [{"id": item.id, "submission": item.submission, "ground_truth": list(item.ground_truth),
                 "ground_truth_reasons": [reason, None, None, None]} for item in data.items]  # fmt: skip
        given = dm.RubricDataset(rows, rubric=RUBRIC)
        judge = models(Judge(WEAK), Writer(lambda _: BETTER))
        return dm.improve_rubric(
            RUBRIC,
            given,
            GRADER,
            models=judge,
            settings=ImprovementSettings("writer"),
            **arguments(where=trail, **options),
        )

    improve("Because.")
    with pytest.raises(dm.ConfigurationError, match="reasons: was 77dae2ff8bf9…, is 78e0aac3c678…"):
        improve("For another reason.", resume=True)
