from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from deemster.metrics._text_normalization import text_words
from deemster.metrics._token_ids import coded

# Words that begin or end alike, as long as a boundary of eight bytes and around it, in one to four bytes a letter.
words = st.builds(
    lambda letter, count, end: letter * count + end,
    st.sampled_from("abZ9éß日😀"),
    st.integers(1, 40),
    st.sampled_from(["", "a", "b"]),
)
gaps = st.sampled_from([" ", "_", ", ", ".\n", "\x00", "\u2003"])
texts = st.one_of(
    st.lists(st.tuples(words, gaps), max_size=40).map(lambda pairs: "".join(word + gap for word, gap in pairs)),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.text(st.characters(codec="ascii"), max_size=60),
)


def common(side, other):
    return [word for word in side if word in set(other)]


@given(texts, texts)
@example("", "")
@example("a", "")
@example("...", "a b")
def test_shared_words_are_kept_in_order_and_are_equal_characters_only_if_equal(first, second):
    found = coded(first, second)
    left, right = text_words(first), text_words(second)
    assert found.sizes == (len(left), len(right))
    wanted = common(left, right) + common(right, left)
    is_shared = set(found.first) & set(found.second)
    characters = [character for character in found.first + found.second if character in is_shared]
    assert len(characters) == len(wanted)
    assert [characters.index(character) for character in characters] == [wanted.index(word) for word in wanted]


def test_more_distinct_words_than_there_are_characters_below_the_surrogates_stay_apart():
    text = " ".join(f"{number:05x}" for number in range(70_000))
    found = coded(text, text)
    assert found.sizes == (70_000, 70_000)
    assert found.first == found.second
    assert len(set(found.first)) == 70_000


def test_most_words_of_one_side_only_are_left_out():
    first = " ".join(f"a{number}" for number in range(1_000))
    second = " ".join(f"b{number}" for number in range(1_000))
    found = coded(first, second)
    assert found.sizes == (1_000, 1_000)
    assert len(found.first) < 200
    assert len(found.second) < 200
    assert not set(found.first) & set(found.second)


def test_words_of_one_length_that_differ_in_one_letter_stay_apart():
    for size in (1, 7, 8, 9, 15, 16, 17, 24, 100):
        alike = ["x" * place + letter + "x" * (size - place - 1) for place in range(size) for letter in "yz0"]
        text = " ".join(alike)
        found = coded(text, text)
        assert len(set(found.first)) == len(alike) == len(found.second)


def test_words_that_differ_at_the_end_of_both_halves_stay_apart():
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    for size in (8, 4):
        alike = [f"{'x' * 7}{one}{'x' * (size - 1)}{other}" for one in letters for other in letters]
        text = " ".join(alike)
        assert len(set(coded(text, text).first)) == len(alike)
