"""Fake models for tests: they answer from a function, a table or a list, and remember what they were asked."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from deemster.models.model_client import ModelFailure
from deemster.records import Answer, Ask


class FakeChat:
    """A chat model that gives prepared answers.

    Args:
        answers: A function of the question (it may be a coroutine); a table, in which the first key that is part of the
            last message gives the answer; or a list, used up in order. An answer is text, an ``Answer``, a map or list
            (given as JSON), or a ``ModelFailure``, which is raised.
        model: The model it says it is.
        identity: Give one to have its answers cached.
        is_local: Whether it counts as a model that reaches no network and costs nothing.

    Attributes:
        asked: Every question it was asked, in order.
    """

    def __init__(
        self,
        answers: Callable[[Ask], Any] | Mapping[str, Any] | Sequence[Any],
        *,
        model: str = "fake",
        identity: Mapping[str, Any] | None = None,
        is_local: bool = True,
    ) -> None:
        self.asked: list[Ask] = []
        self.model = model
        self.identity = identity
        self.is_local = is_local
        self._answers = answers if callable(answers) or isinstance(answers, Mapping) else iter(answers)

    async def complete(self, ask: Ask) -> Answer:
        """The prepared answer.

        Raises:
            ModelFailure: The prepared answer is a failure, or there is none to this question.
        """
        self.asked.append(ask)
        if callable(self._answers):
            found = self._answers(ask)
            if inspect.isawaitable(found):
                found = await found
        elif isinstance(self._answers, Mapping):
            last = ask.messages[-1].content
            found = next((answer for key, answer in self._answers.items() if key in last), None)
        else:
            found = next(self._answers, None)
        if found is None:
            raise ModelFailure("refused", "The fake has no answer to this question.")
        if isinstance(found, ModelFailure):
            raise found
        if isinstance(found, Answer):
            return found
        text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
        return Answer(text=text, model=self.model)


class FakeEmbedding:
    """An embedding model whose vectors are made up, but always the same.

    Args:
        vectors: A function of a text, or a table by text; without either, each word points in a direction given by its
            hash, so that texts with common words are alike.
        dimensions: How long made-up vectors are.
        identity: Give one to have its vectors cached.
        is_local: Whether it counts as a model that reaches no network and costs nothing.

    Attributes:
        asked: The texts of every request, in order.
    """

    def __init__(
        self,
        vectors: Callable[[str], Sequence[float]] | Mapping[str, Sequence[float]] | None = None,
        *,
        dimensions: int = 16,
        identity: Mapping[str, Any] | None = None,
        is_local: bool = True,
    ) -> None:
        self.asked: list[list[str]] = []
        self.dimensions = dimensions
        self.identity = identity
        self.is_local = is_local
        self._vectors = vectors

    async def embed_many(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text.

        Raises:
            ModelFailure: Its table lacks a text.
        """
        self.asked.append(list(texts))
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        if self._vectors is None:
            return self._made_up(text)
        if callable(self._vectors):
            return list(self._vectors(text))
        if text not in self._vectors:
            raise ModelFailure("refused", f"The fake has no vector for {text[:60]!r}.")
        return list(self._vectors[text])

    def _made_up(self, text: str) -> list[float]:
        total = np.zeros(self.dimensions)
        for word in text.casefold().split() or [""]:
            draw = np.random.default_rng(int.from_bytes(hashlib.sha256(word.encode()).digest()[:8]))
            total += draw.standard_normal(self.dimensions)
        parts: list[float] = total.tolist()
        return parts
