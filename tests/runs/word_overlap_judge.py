"""A judge by rules, for audits of judged metrics without a model: it compares words and numbers."""

from __future__ import annotations

import re
from typing import Any

import deemster as dm

_BLOCK = re.compile(r"<<< (\w+) ([0-9a-f]{16})\n(.*?)\n>{3} \1 \2", re.DOTALL)
_CITATION = re.compile(r"\[[^\]]*\]")
_REFUSAL = re.compile(r"\b(?:sorry|cannot (?:answer|help)|not able to assist)\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|nicht)\b", re.IGNORECASE)


def _stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())}


def _sentences(text: str) -> list[str]:
    plain = _CITATION.sub("", text)
    return [part.strip() for part in re.split(r"(?<=[.!?;])\s+", plain) if part.strip()]


def _verdict(claim: str, passages: list[str]) -> str:
    context = " ".join(passages)
    if not set(re.findall(r"\d+", claim)) <= set(re.findall(r"\d+", context)):
        return "contradicted"
    sources = [sentence for passage in passages for sentence in _sentences(passage)]
    source = max(sources, key=lambda one: len(_stems(one) & _stems(claim)), default="")
    if len(_stems(source) & _stems(claim)) < 0.4 * len(_stems(claim)):
        return "open"
    return "supported" if bool(_NEGATION.search(claim)) == bool(_NEGATION.search(source)) else "contradicted"


def _reply(ask: dm.records.Ask) -> dict[str, Any]:
    blocks = [(label, text) for label, _, text in _BLOCK.findall(ask.messages[-1].content)]
    said = dict(blocks)
    answer, keys = said.get("actual_output", ""), ask.schema["properties"]
    if "claims" in keys:
        return {"claims": [] if _REFUSAL.search(answer) else _sentences(answer)}
    if "verdict" in keys:
        passages = [text for label, text in blocks if label.startswith("passage")]
        return {"reason": "Words and numbers.", "verdict": _verdict(said["claim"], passages)}
    if keys["score"]["minimum"] == 0:
        asked = _stems(said["question"])
        is_about = bool(asked & _stems(answer)) and not _REFUSAL.search(answer)
        return {"reason": "Words of the question.", "score": 10 if is_about else 0}
    return {
        "reason": "Repeated sentences.",
        "score": 1 if len(set(_sentences(answer))) == len(_sentences(answer)) else 3,
    }


judge = dm.models.FakeChat(_reply, model="word-overlap")
