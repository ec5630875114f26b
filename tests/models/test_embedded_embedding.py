import hashlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from tokenizers import Tokenizer

from deemster.models import embedded_embedding as embedded
from deemster.models.embedded_embedding import EmbeddedEmbedding
from deemster.models.model_client import ModelFailure

PACKAGE = Path(importlib.util.find_spec("wordllama").submodule_search_locations[0])
WEIGHTS = PACKAGE / "weights" / "l2_supercat_256.safetensors"
MODEL = EmbeddedEmbedding()
texts = st.text(max_size=30) | st.text("ab \u2581<s>/unk\n", max_size=20) | st.text("word s.", max_size=60)
whole_texts = texts.filter(lambda text: not any("\ud800" <= character <= "\udfff" for character in text))


@pytest.fixture(scope="module")
def reference():
    """Mean pooling as wordllama does it: all pieces of the whole text, in one go; in double precision here."""
    with safe_open(WEIGHTS, framework="np") as file:
        weights = file.get_tensor("embedding.weight").astype(np.float64)
    tokenizer = Tokenizer.from_file(str(PACKAGE / "tokenizers" / "l2_supercat_tokenizer_config.json"))

    def vector(text):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return weights[ids].mean(axis=0) if ids else np.zeros(weights.shape[1])

    return vector


def vectors(given):
    return EmbeddedEmbedding().embed_many(given).values


@pytest.mark.parametrize(
    "text",
    [
        "The refund arrives within thirty days.",
        " ",
        "  two  spaces   inside and at the end ",
        "line\nbreak\ttab",
        "naïve Ωmega 漢字 🙂",
        "<s>struck</s> out <unk>",
        "\u2581 and a\u2581b",
        "supercalifragilistic" * 20,
        "many words " * 4_000,
    ],
)
def test_text_vector_is_mean_of_piece_vectors(reference, text):
    assert np.abs(vectors([text])[0] - reference(text)).max() < 1e-6


@given(text=whole_texts)
def test_any_text_vector_is_mean_of_piece_vectors(reference, text):
    assert np.abs(MODEL.embed_many([text]).values[0] - reference(text)).max() < 1e-6


def test_empty_text_gets_zero_vector():
    assert not vectors([""]).any()


def test_vectors_keep_order_with_256_floats_each():
    found = vectors(["cat", "dog", "cat"])
    assert (found.shape, found.dtype) == ((3, 256), np.float32)
    assert (found[0] == found[2]).all()
    assert (found[0] != found[1]).any()
    assert vectors([]).shape == (0, 256)


@given(st.lists(whole_texts, min_size=1, max_size=6))
def test_vector_does_not_depend_on_other_texts(given):
    fresh = np.stack([vectors_of_shared(text) for text in given])
    assert (MODEL.embed_many(given).values == fresh).all()


SECOND = EmbeddedEmbedding()


def vectors_of_shared(text):
    return SECOND.embed_many([text]).values[0]


def test_evicted_words_do_not_change_vectors(monkeypatch):
    given = [f"word{number} and more" for number in range(50)]
    whole = vectors(given)
    monkeypatch.setattr(embedded, "_KEPT", 3)
    assert (vectors(given) == whole).all()


def test_word_table_grows_without_loss(reference):
    given = [f"w{number} x{number}" for number in range(1_500)]
    found = vectors(given)
    assert max(np.abs(found[number] - reference(given[number])).max() for number in (0, 511, 512, 1_499)) < 1e-6


def test_usage_counts_word_pieces():
    assert EmbeddedEmbedding().embed_many(["a", "a b"]).usage.prompt_tokens == 3


def test_lone_surrogate_is_failure_without_retry():
    for text in ("\ud800", "a \ud800" * 9_000):
        with pytest.raises(ModelFailure, match="lone surrogate") as caught:
            vectors([text])
        assert caught.value.kind == "refused"


def test_identity_has_hash_of_weights():
    identity = EmbeddedEmbedding().identity
    assert identity["weights"] == hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
    assert len(identity["tokenizer"]) == 64


def test_missing_package_is_failure_on_first_use(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    model = EmbeddedEmbedding()
    assert model.identity["weights"] is None
    with pytest.raises(ModelFailure, match="pip install wordllama"):
        model.embed_many(["a"])


def test_construction_reads_nothing_and_embedding_does_not_import_wordllama():
    code = (
        "import sys\n"
        "from deemster.models.embedded_embedding import EmbeddedEmbedding\n"
        "model = EmbeddedEmbedding()\n"
        "assert 'tokenizers' not in sys.modules and 'safetensors' not in sys.modules\n"
        "model.embed_many(['a'])\n"
        "assert not {'wordllama', 'requests', 'pydantic', 'torch'} & set(sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True).stderr == ""


def test_another_process_gives_the_same_vectors():
    code = (
        "import hashlib\n"
        "from deemster.models.embedded_embedding import EmbeddedEmbedding\n"
        "print(hashlib.sha256(EmbeddedEmbedding().embed_many(['a b', 'c  d']).values.tobytes()).hexdigest())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == hashlib.sha256(vectors(["a b", "c  d"]).tobytes()).hexdigest()
