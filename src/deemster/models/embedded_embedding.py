"""The embedded embedding model: static vectors of word pieces, without network or torch."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deemster.models.model_client import ModelFailure
from deemster.records import Usage, Vectors

MODEL = "wordllama-l2-supercat-256"
DIMENSIONS = 256
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
# Words of longer texts are not cached: few texts are that long, and they would fill the cache.
_LONG = 20_000
_KEPT = 1 << 15
# Names of the tokenizer's own marks, which it finds inside words, and the sign it writes for a space.
_MARKS = re.compile("<s>|</s>|<unk>|\u2581")
_WORD = re.compile(" +[^ ]*")

Rows = npt.NDArray[np.float32]


class _Files(NamedTuple):
    """Where the model lies."""

    weights: Path
    tokenizer: Path


class EmbeddedEmbedding:
    """Gives texts vectors of 256 numbers: the mean of the static vectors of their word pieces.

    The vectors are those of the `wordllama` package (MIT), read from its files; the package itself is not imported. The
    same text gets the same vector, bit by bit, whatever else it is embedded with. A text with no characters gets zeros.
    Nothing is read before the first text.
    """

    is_local = True
    model = MODEL

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "EmbeddedEmbedding()"

    def __reduce__(self) -> tuple[type[EmbeddedEmbedding], tuple[()]]:
        """Another process reads the files itself."""
        return EmbeddedEmbedding, ()

    @functools.cached_property
    def identity(self) -> Mapping[str, Any]:
        """What can change a vector beside its text: the files, by their SHA-256; None where they are not there."""
        files = _files()
        return {
            "client": "embedded-embedding",
            "model": MODEL,
            "pooling": "mean",
            "weights": files and hashlib.sha256(files.weights.read_bytes()).hexdigest(),
            "tokenizer": files and hashlib.sha256(files.tokenizer.read_bytes()).hexdigest(),
        }

    def embed_many(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, in order.

        Args:
            texts: What to embed.

        Raises:
            ModelFailure: A text is not valid Unicode, or the model's files are not there.
        """
        values = np.zeros((len(texts), DIMENSIONS), np.float32)
        with self._lock:
            pieces = sum(self._pieces.embed(text, values[row]) for row, text in enumerate(texts) if text)
        return Vectors(values=values, usage=Usage(prompt_tokens=pieces, model=MODEL), model=MODEL)

    @functools.cached_property
    def _pieces(self) -> _Pieces:
        files = _files()
        if files is None:
            raise ModelFailure("refused", "The embedded model is not installed: pip install wordllama")
        return _Pieces(files)


class _Pieces(dict[str, int]):
    """The row of each word's vector, which is the sum over its pieces. New words are added as they come.

    No piece of this tokenizer reaches from the end of a word over the space that follows it, so the pieces of a text
    are those of its words, each with the spaces before it.
    """

    def __init__(self, files: _Files) -> None:
        super().__init__()
        # Loaded here: it takes a tenth of a second, and most runs embed nothing.
        from safetensors import safe_open  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        with safe_open(files.weights, framework="np") as file:
            self._weights: Rows = file.get_tensor("embedding.weight").astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(files.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._space = int(self._tokenizer.token_to_id("\u2581") or 0)
        self._vectors: Rows = np.empty((1024, DIMENSIONS), np.float32)
        self._counts: list[int] = []
        self._size = 0

    def embed(self, text: str, row: Rows) -> int:
        """Write the vector of a text that is not empty into a row, and say how many pieces it has.

        Raises:
            ModelFailure: The text is not valid Unicode.
        """
        if len(text) > _LONG or _MARKS.search(text):
            return self._embed_whole(text, row)
        if self._size > _KEPT:
            self.clear()
            self._counts.clear()
            self._size = 0
        places = list(map(self.__getitem__, _words(text)))
        counts = self._counts
        count = sum([counts[place] for place in places])
        self._vectors.take(places, axis=0).sum(axis=0, out=row)
        row /= count
        return count

    def __missing__(self, word: str) -> int:
        ids = self._ids(word) if word else [self._space]
        place = self[word] = len(self._counts)
        if place == len(self._vectors):
            self._vectors = np.concatenate((self._vectors, np.empty_like(self._vectors)))
        self._weights.take(ids, axis=0).sum(axis=0, out=self._vectors[place])
        self._counts.append(len(ids))
        # A long word counts as several, so that the cache is bounded in bytes too.
        self._size += 1 + len(word) // 64
        return place

    def _embed_whole(self, text: str, row: Rows) -> int:
        ids = self._ids(text)
        distinct, counts = np.unique(np.asarray(ids), return_counts=True)
        row[:] = counts.astype(np.float32) @ self._weights.take(distinct, axis=0)
        row /= len(ids)
        return len(ids)

    def _ids(self, text: str) -> list[int]:
        try:
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        except TypeError:
            raise ModelFailure("refused", "A text is not valid Unicode: it holds a lone surrogate.") from None
        return ids


def _words(text: str) -> list[str]:
    """The words of a text, each with the spaces before it but one.

    >>> _words("a  b ")
    ['a', ' b', '']
    """
    if "  " in text or text[0] == " " or text[-1] == " ":
        return [word[1:] for word in _WORD.findall(f" {text}")]
    return text.split(" ")


def _files() -> _Files | None:
    """The model's files, if they are there. Their package is found but not imported, for it loads an HTTP client."""
    spec = importlib.util.find_spec("wordllama")
    for place in (spec and spec.submodule_search_locations) or ():
        files = _Files(Path(place, _WEIGHTS), Path(place, _TOKENIZER))
        if files.weights.is_file() and files.tokenizer.is_file():
            return files
    return None
