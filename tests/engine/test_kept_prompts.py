"""What judges were asked is kept with a stored run: of marks that did not pass, of all, or of none."""

from __future__ import annotations

import json

import pytest

import deemster as dm
from deemster.engine.model_access import build_model_access
from deemster.engine.run_sync import run_sync
from deemster.errors import ConfigurationError
from deemster.evaluation.rescore_run import rescore
from deemster.judges.metric_catalog import resolve_all
from deemster.models import ModelFailure
from deemster.records import Answer
from deemster.report.kept_details import kept_details
from deemster.store import open_store
from deemster.store.find_damage import find_damage
from deemster.store.run_export import export_runs
from deemster.store.run_import import import_runs
from tests.builders.arguments import arguments
from tests.report.runs import CLOCK

SAMPLES = [dm.Sample(name, {"question": f"Which {name}?"}, name) for name in ("good", "bad")]
OUTPUTS = {"good": "good", "bad": "wrong"}


class Judge:
    """Lets `good` pass and nothing else; `said` replaces what it answers."""

    def __init__(self, said=None):
        self.said, self.identity = said, {"model": "toy"}

    async def complete(self, ask):
        if self.said is not None:
            return self.said(ask)
        score = 1.0 if "Which good?" in ask.messages[-1].content else 0.0
        return Answer(text=json.dumps({"reason": "Seen.", "score": score}), model="toy-1")


def evaluated(store, judge=None, **settings):
    given = {"outputs": OUTPUTS, "metrics": ["exact-match", "llm-as-judge"], "clock": CLOCK, **settings}
    return dm.evaluate(
        dm.Dataset(SAMPLES, name="d"), models={"judge": judge or Judge()}, **arguments(where=store, **given)
    )


def prompts(store, run, position):
    return store.prompts(run.run.id, position)


def test_by_default_prompt_and_reply_of_a_mark_that_failed_are_kept_and_no_other(store):
    run = evaluated(store)
    assert prompts(store, run, 0) == {}
    (key,) = prompts(store, run, 1)
    (asked,) = prompts(store, run, 1)[key]
    assert key == (0, "llm-as-judge")
    assert [message.role for message in asked.messages] == ["system", "user"]
    assert "Which bad?" in asked.messages[1].content
    assert (asked.role, asked.model, json.loads(asked.reply)["score"]) == ("judge", "toy-1", 0.0)


@pytest.mark.parametrize(("which", "kept"), [("all", [1, 1]), ("failed", [0, 1]), ("none", [0, 0])])
def test_keep_prompts_says_whose_are_kept(store, which, kept):
    run = evaluated(store, keep_prompts=which)
    assert [len(prompts(store, run, position)) for position in (0, 1)] == kept
    remark = kept_details(store, run.run.id, 1, prompts=True).remark
    assert remark.startswith({"all": "", "failed": "This run kept the prompts of", "none": "This run did not"}[which])


def test_keep_prompts_refuses_another_word(store):
    with pytest.raises(ConfigurationError, match="`keep_prompts` is `failed`, `all` or `none`, not 'some'"):
        evaluated(store, keep_prompts="some")


def test_pass_mark_of_the_run_decides_what_failed(store):
    run = evaluated(store, thresholds={"llm-as-judge": 0.0})
    assert prompts(store, run, 1) == {}


def test_judge_that_did_not_answer_is_kept_with_the_reason(store):
    def refuse(_):
        raise ModelFailure("refused", "The model is gone.")

    run = evaluated(store, Judge(refuse))
    ((asked,),) = prompts(store, run, 1).values()
    assert (asked.reply, "The model is gone." in asked.failure) == (None, True)


def test_every_question_of_a_script_is_kept_in_order(store):
    run = evaluated(store, Judge(lambda _: Answer(text="no JSON")))
    ((first, second),) = prompts(store, run, 1).values()
    assert first.messages == second.messages
    assert first.reply == second.reply == "no JSON"


def test_resumed_run_replaces_the_prompts_of_a_mark_that_it_makes_again(store):
    first = evaluated(store, Judge(lambda _: Answer(text="no JSON")))
    assert len(prompts(store, first, 0)) == 1
    run = evaluated(store, resume=first.run.id)
    ((asked,),) = prompts(store, run, 0).values()
    assert json.loads(asked.reply)["score"] == 1.0


def test_prompts_are_those_of_the_scoring_that_the_report_shows(store):
    run = evaluated(store, Judge(lambda _: Answer(text='{"reason": "No.", "score": 0}')))
    assert len(prompts(store, run, 0)) == 1
    access = build_model_access({"judge": Judge()})
    run_sync(rescore(store, run.run.id, metrics=resolve_all(["llm-as-judge"]), access=access, warn=lambda _: None))
    assert prompts(store, run, 0) == {}
    ((asked,),) = prompts(store, run, 1).values()
    assert json.loads(asked.reply)["reason"] == "Seen."


def test_what_is_kept_holds_no_secret_and_no_endless_text(store, monkeypatch):
    monkeypatch.setenv("TOY_KEY", "sk-test-0123456789abcdefXYZ")
    said = "my key is sk-test-0123456789abcdefXYZ " + "x" * 100_000
    server = {"base_url": "http://127.0.0.1:9/v1", "model": "toy", "api_key_env": "TOY_KEY", "retries": 0}
    run = dm.evaluate(
        dm.Dataset(SAMPLES, name="d"),
        outputs={"good": "good", "bad": said},
        metrics=["llm-as-judge"],
        models={"judge": server},
        storage=store,
        settings=dm.EvaluationSettings(clock=CLOCK),
    )
    ((asked,),) = prompts(store, run, 1).values()
    assert "sk-test" not in asked.messages[1].content
    assert asked.messages[1].content.endswith("more characters)")
    assert len(asked.messages[1].content) < 66_000


def test_prompts_go_with_their_run_and_damage_is_found(store):
    run = evaluated(store)
    with store.pool.write_transaction() as connection:
        connection.write("UPDATE prompts SET checksum = checksum + 1", ())
    assert any("the prompts of 1 mark do not fit the check sum" in line for line in find_damage(store))
    store.remove(run.run.id)
    with store.pool.read_transaction() as rows:
        assert rows.read("SELECT count(*) FROM prompts") == [(0,)]


def test_run_file_has_no_prompts_and_the_imported_run_says_so(store, tmp_path):
    run = evaluated(store)
    export_runs(store, [run.run.id], tmp_path / "runs.jsonl")
    with open_store(tmp_path / "other.db") as other:
        import_runs(other, tmp_path / "runs.jsonl")
        kept = kept_details(other, run.run.id, 1, prompts=True)
        assert (kept.prompts, kept.remark) == ({}, "This run did not keep its prompts.")


def test_reports_are_the_same_bytes_whatever_is_kept(store):
    first, second = (evaluated(store, keep_prompts=which) for which in ("all", "none"))
    assert first.to_json().replace(first.run.id, "") == second.to_json().replace(second.run.id, "")
