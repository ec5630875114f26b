"""Commands as targets: real processes, what they are given, how they end, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records import Invocation, Output, TargetFailure
from deemster.targets import _run_subprocess as process
from deemster.targets.command_target import CommandTarget, parse_command_output
from tests.targets.fake_clocks import Hasty

ASKED = Invocation("s-1", {"question": "Wo liegt Köln?"}, 3)
KEY = "a-key-that-nobody-may-see"


def shell(script, **options):
    return CommandTarget(["sh", "-c", script], **options)


def python(script, **options):
    return CommandTarget([sys.executable, "-I", "-S", "-c", script], **options)


def said(target, *asked, clock=None):
    async def every():
        await target.open(clock=clock or Hasty())
        return [await target.call_async(each) for each in asked or (ASKED,)]

    return asyncio.run(every())


def answer(target, asked=ASKED):
    (found,) = said(target, asked)
    assert isinstance(found, Output), found
    return found


def failure(target, clock=None):
    (found,) = said(target, clock=clock)
    assert isinstance(found, TargetFailure), found
    return found.message


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


async def until(is_so) -> None:
    """Wait for another process, which reports through the file system."""
    for _ in range(5000):
        if is_so():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("It did not happen.")


def soon_gone(pid: int) -> bool:
    for _ in range(1000):
        if gone(pid):
            return True
        time.sleep(0.002)
    return False


def children() -> list[str]:
    """Processes of this one, running or not yet reaped."""
    return [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/stat")
        if (text := _read(path)) and text.rpartition(")")[2].split()[1] == str(os.getpid())
    ]


@pytest.fixture
def leaves_no_process():
    """Nothing but what other tests keep running is left."""
    before = children()
    yield
    assert set(children()) <= set(before)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def test_input_is_one_json_line_and_stdout_is_answer():
    assert answer(CommandTarget(["cat"])).text == '{"question":"Wo liegt Köln?"}'
    assert answer(shell("wc -l")).text.strip() == "1"


def test_environment_has_sample_and_repetition_but_no_expected_output():
    told = answer(shell("env | grep ^DEEMSTER_ | sort")).text.splitlines()
    of_tests = ("DEEMSTER_TESTS_", "DEEMSTER_ALL_TESTS=")
    assert [line for line in told if not line.startswith(of_tests)] == ["DEEMSTER_REPETITION=3", "DEEMSTER_SAMPLE=s-1"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_id_invalid_in_environment_is_left_out(name):
    asked = Invocation(name, {}, 0)
    assert answer(shell('echo "${DEEMSTER_SAMPLE-none}"'), asked).text == "none"


def test_one_line_end_at_the_end_is_not_part_of_the_answer():
    assert answer(shell(r"printf 'a\n\n'")).text == "a\n"
    assert answer(shell(r"printf 'a\r\n'")).text == "a"
    assert answer(shell("printf a")).text == "a"
    assert answer(CommandTarget(["true"])).text == ""


def test_command_that_ignores_stdin_may_answer():
    asked = Invocation("s", {"big": "x" * 3_000_000}, 0)
    assert answer(shell("exec 0<&-; echo done"), asked).text == "done"


def test_large_input_and_large_answer_do_not_deadlock():
    asked = Invocation("s", {"big": "x" * 3_000_000}, 0)
    assert len(answer(CommandTarget(["cat"]), asked).text) == 3_000_010


def test_arguments_are_not_expanded_by_shell():
    assert answer(CommandTarget(["echo", "$HOME; ls *", "`id`"])).text == "$HOME; ls * `id`"


def test_json_output_has_retrieved_usage_and_model():
    text = (
        '{"text": "Rome", "retrieved": ["d1"], "usage": {"prompt_tokens": 3}, "model": "m", "trajectory": {"steps": 2}}'
    )
    found = answer(CommandTarget(["echo", text]))
    assert (found.text, found.retrieved, found.model, found.trajectory.steps) == ("Rome", ["d1"], "m", 2)
    assert found.usage.prompt_tokens == 3


@pytest.mark.parametrize(
    ("written", "form", "text"),
    [
        ('{"answer": "Rome"}', "auto", '{"answer": "Rome"}'),
        ('{"text": "Rome"}', "text", '{"text": "Rome"}'),
        ('{"text": "Rome"} and more', "auto", '{"text": "Rome"} and more'),
        ('["text"]', "auto", '["text"]'),
        ('"text"', "auto", '"text"'),
        ('{"text": "Rome"', "auto", '{"text": "Rome"'),
        ('\n {"text": "Rome"}\n', "auto", "Rome"),
        ('{"text": ""}', "json", ""),
    ],
)
def test_only_object_with_text_is_json_output_unless_setting_decides(written, form, text):
    assert parse_command_output(written.encode(), form=form, secrets=NO_SECRETS).text == text


@pytest.mark.parametrize(
    ("written", "form", "said"),
    [
        (b'{"text": "a", "retreived": []}', "auto", "Did you mean `retrieved`? `output: text` takes such an answer"),
        (b'{"text": "a", "retreived": []}', "json", "Did you mean `retrieved`?"),
        (b'{"text": null}', "auto", "text of an output is a string"),
        (b'{"text": "a", "usage": {"prompt_tokens": -1}}', "auto", "prompt_tokens"),
        (b"Rome", "json", "The answer is a JSON object"),
        (b'{"answer": "Rome"}', "json", "The answer is a JSON object"),
        (b"\xff", "text", "not UTF-8: byte 0xff at 0"),
    ],
)
def test_unreadable_answer_is_failure_with_reason(written, form, said):
    with pytest.raises(ValueError) as raised:
        parse_command_output(written, form=form, secrets=NO_SECRETS)
    assert said in str(raised.value)


@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode) | st.just(b'{"text": "x", "usage": 7}'))
def test_any_stdout_is_output_or_failure(data):
    for form in ("auto", "text", "json"):
        try:
            assert isinstance(parse_command_output(data, form=form, secrets=NO_SECRETS), Output)
        except ValueError as error:
            assert str(error)  # noqa: PT017 - either of two is right


def test_nonzero_exit_code_is_failure_with_end_of_stderr():
    assert failure(shell("echo 'no such model' >&2; exit 3")) == (
        "The command ended with exit code 3. It said: no such model"
    )
    assert failure(shell("exit 1")) == "The command ended with exit code 1."
    assert failure(shell("kill -TERM $$")) == "The command was killed by SIGTERM."


def test_stderr_is_cut_from_front_and_escaped():
    message = failure(python("import sys; sys.stderr.write('x' * 10_000_000 + '\\x1b[31m the end'); sys.exit(9)"))
    assert message.isprintable()
    assert message.endswith("\\x1b[31m the end")
    assert len(message) < 400


def test_key_in_the_environment_is_in_no_message_and_no_answer(monkeypatch):
    monkeypatch.setenv("APP_API_KEY", KEY)
    assert failure(shell('echo "bad key $APP_API_KEY" >&2; exit 1')).endswith("bad key [removed]")
    assert answer(shell('echo "it is $APP_API_KEY"')).text == "it is [removed]"
    target = CommandTarget(["echo", KEY])
    assert KEY not in repr(target)
    assert KEY not in repr(target.identity)


def test_command_gets_only_listed_variables(monkeypatch):
    monkeypatch.setenv("APP_ONE", "1")
    monkeypatch.setenv("APP_TWO", "2")
    script = 'echo "${APP_ONE-none} ${APP_TWO-none} ${PATH:+path}"'
    assert answer(shell(script)).text == "1 2 path"
    assert answer(shell(script, env=["APP_TWO"])).text == "none 2 path"
    assert answer(shell(script, env=[])).text == "none none path"


def test_command_runs_in_cwd_and_finds_program_there(tmp_path):
    program = tmp_path / "bot.sh"
    program.write_text("#!/bin/sh\npwd\n", encoding="utf-8")
    program.chmod(0o700)
    assert answer(CommandTarget(["./bot.sh"], cwd=tmp_path)).text == str(tmp_path.resolve())
    with pytest.raises(ConfigurationError, match="no program"):
        CommandTarget(["./bot.sh"])


def test_vanished_program_fails_its_sample(tmp_path):
    program = tmp_path / "bot"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o700)
    target = CommandTarget([str(program)])
    program.unlink()
    assert "cannot be started: No such file or directory" in failure(target)


def test_timeout_kills_command_and_its_children(tmp_path):
    note = tmp_path / "pids"
    script = f"sh -c 'sleep 100 & echo $! >> {note}; wait' & echo $$ >> {note}; echo $! >> {note}; sleep 100"
    assert "did not end within 0.3 s and was killed" in failure(shell(script, timeout_s=0.3))
    pids = [int(line) for line in note.read_text(encoding="utf-8").split()]
    assert len(pids) == 3
    assert all(soon_gone(pid) for pid in pids)


def test_command_ignoring_sigterm_is_killed():
    assert "was killed" in failure(shell("trap '' TERM INT HUP; sleep 100 & wait; sleep 100", timeout_s=0.2))


def test_background_children_do_not_delay_answer_and_are_killed(tmp_path):
    began = time.monotonic()
    found = answer(shell("sleep 100 & echo $!"))
    assert time.monotonic() - began < 60
    assert soon_gone(int(found.text))


def test_process_outside_group_delays_answer_only_briefly():
    script = "import os, subprocess, sys\nprint('hey', flush=True)\n"
    script += "p = subprocess.Popen(['sleep', '30'], start_new_session=True)\nprint(p.pid, flush=True)"
    began = time.monotonic()
    found = answer(python(script)).text.split()
    assert found[0] == "hey"
    assert process.DRAIN_TIMEOUT_S <= time.monotonic() - began < 25
    os.kill(int(found[1]), signal.SIGKILL)


def test_command_with_endless_output_is_killed(monkeypatch):
    assert failure(CommandTarget(["yes"])) == "The command wrote more than 64 MiB and was killed."


@pytest.mark.usefixtures("leaves_no_process")
async def test_cancelled_call_kills_its_processes(tmp_path):
    note = tmp_path / "pid"

    target = shell(f"echo $$ > {note}.part; mv {note}.part {note}; sleep 100")
    call = asyncio.ensure_future(target.call_async(ASKED))
    await until(note.exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert soon_gone(int(note.read_text(encoding="utf-8")))


@pytest.mark.usefixtures("leaves_no_process")
async def test_stopped_run_leaves_no_command_behind(tmp_path):
    from deemster.datasets import Dataset
    from deemster.engine.execute_plan import execute_plan
    from deemster.engine.run_plan import Plan
    from deemster.engine.stop_request import Stop
    from deemster.models.clock import SystemClock

    samples = [{"id": str(number), "input": {"n": number}, "expected_output": "x"} for number in range(20)]
    target = shell(f"echo $$ > {tmp_path}/$DEEMSTER_SAMPLE; sleep 100", concurrency=4)
    plan = Plan(Dataset(samples, name="d"), target, (dm.metrics.ExactMatch(),))
    stop = Stop()

    working = asyncio.ensure_future(execute_plan(plan, sink=lambda _: None, clock=SystemClock(), stop=stop))
    await until(lambda: len(list(tmp_path.iterdir())) == 4)
    stop.request("enough")
    await working
    assert len(list(tmp_path.iterdir())) == 4
    assert all(soon_gone(int(path.read_text(encoding="utf-8") or "0")) for path in tmp_path.iterdir())


def test_retries_run_a_failing_command_again(tmp_path):
    script = f"echo x >> {tmp_path}/tries; test $(wc -l < {tmp_path}/tries) -ge 3 && echo fine"
    clock = Hasty()
    (found,) = said(shell(script, retries=3), clock=clock)
    assert found.text == "fine"
    assert len(clock.waits) == 2
    assert failure(shell("exit 2", retries=2), clock=clock) == "The command ended with exit code 2. (3 attempts)"


async def test_halted_target_runs_nothing():
    target = shell("exit 2", retries=5)

    clock = Hasty()
    await target.open(clock=clock)
    target.halt("interrupted")
    found = await target.call_async(ASKED)
    waits = clock.waits
    assert (found.message, waits) == ("The command ended with exit code 2.", [])


def test_identity_depends_on_command_and_its_files(tmp_path):
    script = tmp_path / "bot.py"
    script.write_text("print(1)\n", encoding="utf-8")
    first = CommandTarget([sys.executable, "bot.py"], cwd=tmp_path).identity
    assert CommandTarget([sys.executable, "bot.py"], cwd=tmp_path, timeout_s=3, retries=2).identity == first
    script.write_text("print(2)\n", encoding="utf-8")
    second = CommandTarget([sys.executable, "bot.py"], cwd=tmp_path).identity
    assert second != first
    assert CommandTarget([sys.executable, "bot.py", "-v"], cwd=tmp_path).identity != second


@pytest.mark.parametrize(
    ("argv", "options", "said"),
    [
        ("cat", {}, "A command is a list"),
        ([], {}, "it is empty"),
        (["cat", 7], {}, "quote it"),
        (["cat\0"], {}, "list of texts"),
        (["no-such-program"], {}, "no program `no-such-program`"),
        (["cat"], {"cwd": "/no/such/folder"}, "no folder"),
        (["cat"], {"env": "PATH"}, "list of names"),
        (["cat"], {"env": ["NOBODY_SET_THIS"]}, "no variable `NOBODY_SET_THIS`"),
        (["cat"], {"output": "yaml"}, "`output` is `auto`, `text` or `json`"),
        (["cat"], {"timeout_s": -1}, "`timeout_s`"),
        (["cat"], {"retries": 0.5}, "`retries`"),
        (["cat"], {"concurrency": "1-4"}, "`concurrency`"),
    ],
)
def test_unrunnable_command_is_error_before_the_run(argv, options, said):
    with pytest.raises(ConfigurationError) as raised:
        CommandTarget(argv, **options)
    assert said in str(raised.value)


@pytest.mark.usefixtures("leaves_no_process")
def test_thousand_samples_leave_no_process(monkeypatch):
    # A frozen clock measures nothing.
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    samples = [{"id": str(n), "input": {"n": n}, "expected_output": f'{{"n":{n}}}'} for n in range(1000)]
    report = dm.evaluate(samples, target=CommandTarget(["cat"]), metrics=["exact-match"], concurrency=8)
    assert (report.totals.scored, report.metrics["exact-match"].mean) == (1000, 1.0)
    assert report.usage.target.latency_ms is not None


def test_secrets_are_removed_before_answer_is_parsed():
    data = f'{{"text": "x", "retrieved": ["{KEY}"]}}'.encode()
    assert parse_command_output(data, form="auto", secrets=Secrets([KEY])).retrieved == ["[removed]"]
