"""Conversations and embedded files as people and judges read them."""

from __future__ import annotations

import base64

import pytest

from deemster.text.embedded_files import conversation_text, name_embedded_files, with_named_files


def data_url(size: int, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(bytes(size)).decode()}"


@pytest.mark.parametrize(
    ("size", "shown"),
    [(8, "8 bytes"), (999, "999 bytes"), (34_000, "34 kB"), (2_500_000, "2.5 MB")],
)
def test_embedded_file_is_its_kind_and_size(size, shown):
    assert name_embedded_files(f"See {data_url(size)}, please.") == f"See [image/png, {shown}], please."


@pytest.mark.parametrize("text", ["data: none", "data:image/png", "https://shop.example/a.png", "data:text/plain,Hi"])
def test_other_text_stays_as_it_is(text):
    assert name_embedded_files(text) == text


def test_file_is_named_wherever_it_stands_in_a_value():
    value = {"audio": [data_url(1_000, "audio/wav"), 1, None], "note": "as is"}
    assert with_named_files(value) == {"audio": ["[audio/wav, 1 kB]", 1, None], "note": "as is"}


def test_conversation_is_one_line_a_turn():
    question = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "a.png"}}]
    turns = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": question}]
    assert conversation_text(turns) == "system: Be kind.\nuser: What is this? a.png"


@pytest.mark.parametrize(
    "value",
    [
        [],
        "user: hello",
        [{"role": "user"}],
        [{"role": "tool", "content": "14", "tool_call_id": "1"}],
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklG"}}]}],
        [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}],
    ],
)
def test_what_turns_would_not_show_whole_is_no_conversation(value):
    assert conversation_text(value) is None
