"""Keys appear nowhere."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.models.model_client import LONGEST_MESSAGE, ModelFailure
from deemster.models.secret_redaction import REMOVED, Secrets, hash_named_secrets, named_secrets

KEY = 'k3y/with "quotes"+and=more'


@given(st.text(), st.text())
def test_known_key_is_removed_in_every_spelling(before, after):
    secrets = Secrets([KEY])
    for spelling in (KEY, quote(KEY, safe=""), json.dumps(KEY)[1:-1]):
        assert spelling not in secrets.redact(before + spelling + after)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdef0123456789", f"Authorization: Bearer {REMOVED}"),
        ("Incorrect API key provided: sk-proj-abcdefghijklmnop.", f"Incorrect API key provided: {REMOVED}."),
        ("https://me:secret@host.example/v1", f"https://{REMOVED}@host.example/v1"),
        ("GET /v1?api-key=abc123&n=1", f"GET /v1?api-key={REMOVED}&n=1"),
        ('{"api_key": "abcdef12345"}', f'{{"api_key": "{REMOVED}"}}'),
        ("a risk-averse bearer of bad news at a@b.example", "a risk-averse bearer of bad news at a@b.example"),
    ],
)
def test_key_like_text_is_removed_from_messages(text, left):
    assert Secrets().redact(text, shapes=True) == left


def test_answers_keep_key_like_text():
    assert Secrets([KEY]).redact("sk-abcdefghijklmnop") == "sk-abcdefghijklmnop"


def test_placeholder_is_no_secret():
    assert not Secrets(["EMPTY", ""])
    assert Secrets(["EMPTY"]).redact("EMPTY") == "EMPTY"


def test_secrets_of_two_clients_are_united_and_hidden():
    both = Secrets(["aaaaaaaaaa"]) + Secrets(["bbbbbbbbbb"])
    assert both.redact("aaaaaaaaaa bbbbbbbbbb") == f"{REMOVED} {REMOVED}"
    assert "aaaa" not in repr(both)


def test_failure_message_is_cut_escaped_and_redacted():
    failure = ModelFailure("refused", f"no \x1b[31m{KEY} " + "x" * 1000, status=401, secrets=Secrets([KEY]))
    assert len(failure.message) == LONGEST_MESSAGE
    assert failure.message.startswith(f"no \\x1b[31m{REMOVED} xxx")
    assert KEY not in repr(failure)


def test_key_across_cut_is_removed_completely():
    failure = ModelFailure("refused", "y" * (LONGEST_MESSAGE - 5) + KEY, secrets=Secrets([KEY]))
    assert "k3y" not in failure.message


@pytest.mark.parametrize("size", range(1, len(KEY)))
def test_partial_key_at_end_of_cut_message_is_removed(size):
    told = Secrets([KEY]).redact(f"wrong: {KEY[:size]}…", shapes=True)
    assert told == (f"wrong: {KEY[:size]}…" if size < 4 else "wrong: [removed]…")


def test_message_that_was_not_cut_keeps_its_last_word():
    assert Secrets([KEY]).redact(f"wrong: {KEY[:6]}", shapes=True) == f"wrong: {KEY[:6]}"


EXTRA = {"api_key": KEY, "tools": [{"auth": {"user": "somebody-1", "n": 3}}], "max_tokens": 7, "user": "me"}


def test_secrets_in_data_are_found_by_key_name():
    assert list(named_secrets(EXTRA)) == [KEY, "somebody-1"]


def test_redacted_data_is_otherwise_unchanged_and_distinguishes_secrets():
    shown = hash_named_secrets(EXTRA)
    assert not Secrets(named_secrets(EXTRA)).found_in(json.dumps(shown))
    assert {**shown, "api_key": KEY, "tools": EXTRA["tools"]} == EXTRA
    assert shown["tools"][0]["auth"]["n"] == 3
    assert shown != hash_named_secrets({**EXTRA, "api_key": KEY + "x"})
