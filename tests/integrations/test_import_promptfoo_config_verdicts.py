"""An imported suite gives the verdicts of promptfoo 0.123.1, which `bench/promptfoo_verdicts.py` recorded."""

import json

from bench.promptfoo_verdicts import RECORDED, answer, counts, differences, verdicts_here
from deemster.testing import ModelServer


def test_assertions_pass_and_fail_as_in_promptfoo(monkeypatch):
    for variable in ("CHAT_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "")
    recorded = json.loads(RECORDED.read_text())
    with ModelServer(answer=answer) as server:
        verdicts = verdicts_here(server.url)
    assert differences(verdicts, recorded) == []
    assert len(recorded) == 50
    assert sum(counts(recorded).values()) > 120
    assert len(counts(recorded)) > 20
