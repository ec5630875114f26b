"""The model client `acme-chat`. This one answers by a rule, so that the example runs offline."""

from deemster.models import ModelFailure
from deemster.records import Answer, Ask, Usage


class AcmeChat:
    """Asks Acme's chat model.

    Args:
        model: The model.
        strict: Whether it says no to everything that does not say sorry.
    """

    is_local = True  # it reaches no network: leave it out in a client that does

    def __init__(self, model: str = "acme-1", *, strict: bool = False) -> None:
        self.model, self._strict = model, strict

    @property
    def identity(self) -> dict:
        """Everything that can change an answer beside the question, and never a key: answers are cached by it."""
        return {"provider": "acme", "model": self.model, "strict": self._strict}

    async def complete(self, ask: Ask) -> Answer:
        """Answer one question, in one attempt: the gateway retries, limits, caches and counts.

        Raises:
            ModelFailure: The attempt failed.
        """
        said = ask.messages[-1].content
        if not said:
            raise ModelFailure("refused", "The question is empty.")
        score = 0.0 if self._strict and "sorry" not in said.lower() else 1.0
        text = f'{{"reason": "A rule says so.", "score": {score}}}'
        return Answer(
            text=text, model=self.model, usage=Usage(calls=1, prompt_tokens=len(said), completion_tokens=len(text))
        )
