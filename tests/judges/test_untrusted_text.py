"""Untrusted text cannot write the lines that delimit it."""

import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from deemster.judges._untrusted_text import make_nonce, wrap_text, wrap_texts

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(st.lists(texts, max_size=4))
def test_nonce_is_sixteen_hexadecimal_digits_that_no_text_holds(every):
    nonce = make_nonce(every)
    assert re.fullmatch("[0-9a-f]{16}", nonce)
    assert not any(nonce in text for text in every)
    assert nonce == make_nonce(every)


def test_nonce_depends_on_boundaries_between_texts():
    made = [make_nonce(every) for every in (["ab"], ["a", "b"], ["", "ab"], ["ab", ""], ["b", "a"], [])]
    assert len(set(made)) == len(made)


def test_nonce_depends_on_subject_of_call():
    made = [make_nonce(["a"], about=about) for about in ((), ("a",), (1,), (1, "judge"), ("1judge",))]
    assert len(set(made)) == len(made)


def test_text_that_holds_the_first_nonce_gets_another(monkeypatch):
    class Stuck:
        """A hash that gives the same digits until the counter is raised twice."""

        def __init__(self, data=b""):
            self.data = data

        def update(self, data):
            self.data += data

        def copy(self):
            return Stuck(self.data)

        def hexdigest(self):
            return "ab" * 32 if self.data.endswith((b"#0", b"#1")) else "cd" * 32

    monkeypatch.setattr(hashlib, "sha256", Stuck)
    assert make_nonce(["nothing"]) == "ab" * 8
    assert make_nonce(["x", f">>> answer {'ab' * 8}"]) == "cd" * 8


def test_all_blocks_of_a_call_share_one_nonce():
    made, nonce = wrap_texts({"question": "q", "answer": "a\nb"})
    assert made["question"] == f"<<< question {nonce}\nq\n>>> question {nonce}"
    assert made["answer"] == wrap_text("answer", "a\nb", nonce=nonce) == f"<<< answer {nonce}\na\nb\n>>> answer {nonce}"
