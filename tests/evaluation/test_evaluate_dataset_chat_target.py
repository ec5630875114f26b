"""Runs whose target is a chat model: what is checked before, what is paid, what a resume asks again."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

import deemster as dm
from deemster.cli.main import app
from deemster.engine.run_sync import run_sync
from deemster.errors import InputError
from deemster.evaluation.check_models import check_models
from deemster.evaluation.dry_run import plan_job_calls
from deemster.evaluation.evaluation_identity import evaluation_identity
from deemster.evaluation.resolve_evaluation import SuiteOverrides, resolve_arguments, resolve_evaluation
from deemster.evaluation.suite import load_suite
from deemster.models.clock import SystemClock
from deemster.models.fake_models import FakeChat
from deemster.models.model_roles import Role
from deemster.models.price import Price
from deemster.records import Answer, Usage

SAMPLES = [dm.Sample(f"q{number}", {"question": f"{number} + 1?"}, str(number + 1)) for number in range(6)]
PRICED = Usage(prompt_tokens=100, completion_tokens=10)


def answer(ask):
    """The right answer, with what it used."""
    number = int(ask.messages[-1].content.partition(":")[2].split("+")[0])
    return Answer(text=str(number + 1), usage=PRICED, model="mini-1")


def priced(client=None):
    """A model that costs a dollar for a million tokens."""
    client = client or FakeChat(answer, identity={"model": "mini"}, is_local=False)
    return Role(client=client, prices={"": Price(Decimal(1), Decimal(1))})


def evaluated(model, *, prompt="Add: {{input.question}}", max_tokens=None, samples=SAMPLES, **more):
    return dm.evaluate(
        dm.Dataset(samples, name="sums"),
        target=dm.ChatTarget("mini", prompt, max_tokens=max_tokens),
        metrics=["exact-match"],
        models={"mini": model},
        **more,
    )


def test_tokens_cost_and_name_of_the_model_reach_the_report():
    report = evaluated(priced())
    assert report.metrics["exact-match"].mean == 1.0
    assert report.usage.target.calls == 6
    assert report.cost.total_usd == Decimal("0.00066")
    assert [line.model for line in report.cost.models] == ["mini-1"]


def test_placeholder_that_a_sample_lacks_is_an_error_before_anything_is_asked():
    model = FakeChat(answer)
    with pytest.raises(InputError) as raised:
        evaluated(model, prompt="Add: {{input.qestion}}")
    assert "q0" in str(raised.value)
    assert "Did you mean `question`?" in str(raised.value)
    assert model.asked == []


def test_prompt_without_a_placeholder_is_told():
    with pytest.warns(UserWarning, match="The prompt has no placeholder"):
        evaluated(FakeChat(lambda ask: "1"), prompt="Say one number.")


def test_answers_that_were_cut_or_filtered_are_counted():
    finishes = iter(["length", "stop", "length", "content_filter", "stop", "stop"])
    model = FakeChat(lambda ask: Answer(text="1", finish=next(finishes)))
    with pytest.warns(UserWarning, match="answer") as told:
        evaluated(model, concurrency=1)
    messages = [str(warning.message) for warning in told]
    assert (
        "2 of 6 answers were cut off at the token limit, first `q0`. Raise `max_tokens`, or ask for shorter ones."
        in messages
    )
    assert "1 of 6 answers was stopped by the provider's content filter, first `q3`." in messages


def test_second_run_with_a_cache_asks_nothing(tmp_path):
    calls = dm.ModelCalls(cache=tmp_path / "answers.jsonl")
    first = FakeChat(answer, identity={"model": "mini"}, is_local=False)
    evaluated(priced(first), calls=calls, repetitions=2)
    assert len(first.asked) == 12

    second = FakeChat(answer, identity={"model": "mini"}, is_local=False)
    report = evaluated(priced(second), calls=calls, repetitions=2)
    assert second.asked == []
    assert (report.usage.target.calls, report.usage.target.cached_calls) == (0, 12)
    assert report.cost is None


def test_budget_that_is_spent_stops_the_run():
    model = FakeChat(answer, identity={"model": "mini"}, is_local=False)
    report = evaluated(priced(model), max_tokens=10, calls=dm.ModelCalls(budget_usd=0.0003))
    assert report.run.status == "incomplete"
    assert 0 < len(model.asked) < 6
    assert report.budget.reason.startswith("The budget is exhausted")


def test_run_that_its_budget_stopped_is_resumed_and_pays_for_nothing_twice(tmp_path):
    model = FakeChat(answer, identity={"model": "mini"}, is_local=False)
    storage = dm.Storage(tmp_path / "runs.db")
    parts = {"max_tokens": 10, "repetitions": 2}
    stopped = evaluated(priced(model), storage=storage, calls=dm.ModelCalls(budget_tokens=500), **parts)
    assert (stopped.run.status, 0 < len(model.asked) < 12) == ("incomplete", True)

    resumed = evaluated(priced(model), storage=storage._replace(resume=True), **parts)
    assert len(model.asked) == 12
    assert (resumed.usage.target.calls, resumed.usage.target.cached_calls) == (12, 0)
    assert resumed.cost.total_usd == Decimal("0.00132")


def test_offline_run_asks_no_model_elsewhere(tmp_path):
    with pytest.raises(InputError, match="needs the network"):
        evaluated(priced(), calls=dm.ModelCalls(offline=True))
    cache = tmp_path / "answers.jsonl"
    evaluated(priced(), calls=dm.ModelCalls(cache=cache))
    assert evaluated(priced(), calls=dm.ModelCalls(cache=cache, offline=True)).metrics["exact-match"].mean == 1.0


def test_dry_run_counts_the_questions_to_the_target():
    job = resolve_arguments(
        dm.Dataset(SAMPLES, name="sums"),
        target=dm.ChatTarget("mini", "Add: {{input.question}}", max_tokens=10),
        metrics=["exact-match"],
        models={"mini": priced()},
        repetitions=2,
    )
    planned = run_sync(plan_job_calls(job)).roles["mini"]
    assert (planned.least.calls, planned.most.calls) == (12, 12)
    assert planned.most.completion_tokens == 120


def identity(prompt="Add: {{input.question}}", client=None, **parameters):
    job = resolve_arguments(
        dm.Dataset(SAMPLES, name="sums"),
        target=dm.ChatTarget("mini", prompt, **parameters),
        metrics=["exact-match"],
        models={"mini": priced(client)},
    )
    return evaluation_identity(job, order="")["target"]


def test_prompt_parameters_and_model_are_part_of_the_identity():
    other = FakeChat(answer, identity={"model": "large"}, is_local=False)
    kinds = [
        identity(),
        identity("Sum: {{input.question}}"),
        identity(temperature=0.2),
        identity(extra={"top_k": 3}),
        identity(client=other),
    ]
    assert all(first != second for place, first in enumerate(kinds) for second in kinds[:place])
    assert identity() == identity()


SUITE = """
dataset: sums.yml
models: { mini: { client: "sums_model:client" }, judge: { client: "sums_model:client" } }
prompts: { add: "Add: {{input.question}}" }
target: { chat: mini, prompt: add, temperature: 0.5, stop: END }
metrics: [exact-match]
"""


@pytest.fixture
def suite_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sums_model.py").write_text(
        "from deemster.models.fake_models import FakeChat\nclient = FakeChat(lambda ask: '1')\n", encoding="utf-8"
    )
    dm.Dataset(SAMPLES, name="sums").save(tmp_path / "sums.yml")
    (tmp_path / "suite.yml").write_text(SUITE, encoding="utf-8")
    return tmp_path / "suite.yml"


def test_suite_declares_prompt_and_parameters(suite_file):
    job = resolve_evaluation(load_suite(suite_file), SuiteOverrides())
    ask = next(job.plan.target.script(dm.records.Invocation("q0", {"question": "0 + 1?"})))[0]
    assert (ask.messages[0].content, ask.temperature, ask.parameters) == ("Add: 0 + 1?", 0.5, {"stop": ("END",)})


def test_concurrency_is_that_of_the_model_unless_limits_say_it(suite_file):
    assert resolve_evaluation(load_suite(suite_file), SuiteOverrides()).plan.target_concurrency == 64
    suite_file.write_text(SUITE + "limits: { concurrency: 3 }\n", encoding="utf-8")
    assert resolve_evaluation(load_suite(suite_file), SuiteOverrides()).plan.target_concurrency == 3


def test_check_wants_no_json_of_a_model_that_only_answers_samples(suite_file):
    checks = {check.role: check for check in run_sync(check_models(load_suite(suite_file), clock=SystemClock()))}
    assert (checks["mini"].works, checks["mini"].issue) == ("text, as the target", None)
    assert "not with JSON" in checks["judge"].issue


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("{ chat: mini, prompt: ad }", "There is no prompt `ad`. Did you mean `add`?"),
        ("{ chat: mini }", "A `chat` target has a `prompt`"),
        ("{ chat: mimi, prompt: add }", "Did you mean `mini`?"),
        ("{ chat: mini, prompt: add, temprature: 1 }", "Did you mean `temperature`?"),
        ("{ chat: mini, prompt: add, max_tokens: 0 }", "max_tokens"),
        ("{ chat: mini, prompt: '{{expected_output}}' }", "never given to a target"),
        ("{ chat: mini, prompt: no-such-file.txt }", "There is no file `no-such-file.txt`"),
    ],
)
def test_target_that_cannot_be_used_is_an_error_with_its_line(suite_file, target, said):
    lines = SUITE.splitlines(keepends=True)
    lines[4] = f"target: {target}\n"
    suite_file.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        resolve_evaluation(load_suite(suite_file), SuiteOverrides())
    assert said in str(raised.value)
    assert f"{suite_file}:5" in str(raised.value) or "no-such" in said


def test_fault_in_a_chat_file_names_that_file(suite_file):
    Path(suite_file.parent, "chat.yml").write_text(
        "- { role: user, content: x }\n- { role: tool, content: x }\n", encoding="utf-8"
    )
    suite_file.write_text(SUITE.replace('"Add: {{input.question}}"', "chat.yml"), encoding="utf-8")
    with pytest.raises(InputError, match=r"chat\.yml:2: prompt\[1\]\.role must be one of"):
        load_suite(suite_file)


def test_show_has_the_prompt_as_it_was_filled_in(suite_file, monkeypatch):
    monkeypatch.chdir(suite_file.parent)
    assert CliRunner().invoke(app, ["run", "suite.yml"]).exit_code == 0
    shown = CliRunner().invoke(app, ["show", "latest", "q3"]).output
    assert "Prompt\n  user: Add: 3 + 1?\n" in shown
    assert "Add:" not in CliRunner().invoke(app, ["show", "latest", "q3", "--without-text"]).output


def test_fault_in_a_named_prompt_has_the_line_of_the_prompt(suite_file):
    suite_file.write_text(SUITE.replace("Add: {{input.question}}", "Add: {{question}}"), encoding="utf-8")
    with pytest.raises(InputError, match=r"suite\.yml:4.*An entry of the input is `{{input\.question}}`"):
        load_suite(suite_file)


def test_time_limit_of_a_chat_target_stands_with_its_model(suite_file):
    suite_file.write_text(SUITE + "limits: { target_timeout_s: 3 }\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"suite\.yml:7: .*the model has its `total_timeout_s`"):
        resolve_evaluation(load_suite(suite_file), SuiteOverrides())


def test_saved_outputs_in_place_of_a_chat_target_need_no_key(suite_file):
    elsewhere = '{ base_url: "https://models.example/v1", model: m, api_key_env: NO_SUCH_KEY }'
    text = SUITE.replace('{ client: "sums_model:client" }', elsewhere)
    suite_file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="NO_SUCH_KEY"):
        resolve_evaluation(load_suite(suite_file), SuiteOverrides())
    outputs = {sample.id: "1" for sample in SAMPLES}
    assert resolve_evaluation(load_suite(suite_file), SuiteOverrides(outputs=outputs)).plan.size == 6
