"""The metric `citation-groundedness`: does the answer carry the citations and quotes it must?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from deemster.errors import did_you_mean, show_value
from deemster.formats.json_values import name_kind
from deemster.metrics._text_normalization import normalize_passage
from deemster.metrics.builtin_metric import BuiltinMetric, invalid_sample, unscorable_sample
from deemster.records import MetricScore, Sample

_ENTRY_KEYS = ("citation", "quote", "quotes")


class _Evidence(NamedTuple):
    marker: str
    quotes: tuple[str, ...]


class CitationGroundedness(BuiltinMetric, frozen=True, kw_only=True):
    """The share of required citations that the output carries, with a quote each where evidence is given.

    Reads `metadata.citations`, one marker or a list (found where the output holds it, case kept); or, where present,
    `metadata.citation_evidence`, a list of `{citation, quote and/or quotes}` (found where the output holds the marker
    and any one quote, whatever its case and spacing). Positions are not checked, and `expected_output` is not read.
    Details are counts only: mode, required, matched, missing_citations, and missing_quotes with evidence.
    Example: citations [1], [2], [3] against "Yes [1], as [3] says." scores 2/3 = 0.6667.

    Worked examples:
        - {metadata: {citations: ['[1]', '[2]', '[3]']}, output: 'Yes [1], as [3] says.'}
        - metadata:
            citation_evidence:
            - {citation: '[1]', quote: eight weeks ahead}
          output: Tell HR [1] in time.
    """

    alias: ClassVar[str] = "citation-groundedness"
    core: ClassVar[bool] = True
    family: ClassVar[str] = "ordinal-citation"
    reads: ClassVar[frozenset[str]] = frozenset({"citations", "citation_evidence"})
    reads_expected: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The markers, or the evidence."""
        return ("citations|citation_evidence",)

    def expect(self, sample: Sample) -> tuple[_Evidence, ...] | tuple[str, ...]:
        """The markers, or the evidence where the sample has any.

        Raises:
            UnscoredError: The sample has neither, or an unreadable one.
        """
        evidence = sample.metadata.get("citation_evidence")
        if evidence is not None:
            if not isinstance(evidence, (list, tuple)) or not evidence:
                raise invalid_sample(
                    f"`metadata.citation_evidence` is a list of one or more maps, not {_shape(evidence)}."
                )
            return tuple(_evidence(entry, place=index) for index, entry in enumerate(evidence))
        citations = sample.metadata.get("citations")
        if citations is None:
            raise unscorable_sample("The sample has neither `metadata.citations` nor `metadata.citation_evidence`.")
        return tuple(dict.fromkeys(_texts(citations, key="metadata.citations")))

    def grade(self, expected: tuple[_Evidence, ...] | tuple[str, ...], actual: str) -> MetricScore:
        """Count what is found and what is missing."""
        required = len(expected)
        if isinstance(expected[0], _Evidence):
            folded = normalize_passage(actual)
            marked = [entry.marker in actual for entry in expected]
            backed = [any(quote in folded for quote in entry.quotes) for entry in expected]
            matched = sum(marker and quote for marker, quote in zip(marked, backed, strict=True))
            details = {
                "mode": "evidence",
                "required": required,
                "matched": matched,
                "missing_citations": required - sum(marked),
                "missing_quotes": required - sum(backed),
            }
        else:
            matched = sum(marker in actual for marker in expected)
            missing = required - matched
            details = {"mode": "marker", "required": required, "matched": matched, "missing_citations": missing}
        return self.mark(matched / required, details)


def _evidence(entry: Any, *, place: int) -> _Evidence:
    key = f"metadata.citation_evidence[{place}]"
    if not isinstance(entry, Mapping):
        raise invalid_sample(f"`{key}` is a map of `citation` and `quote` or `quotes`, not {name_kind(entry)}.")
    for name in entry:
        if name not in _ENTRY_KEYS:
            word = name if isinstance(name, str) else show_value(name)
            raise invalid_sample(f"`{key}` has the unknown key `{word}`. {did_you_mean(word, _ENTRY_KEYS)}")
    marker = _text(entry.get("citation"), key=f"{key}.citation")
    quotes: list[str] = []
    if entry.get("quote") is not None:
        quotes.append(_text(entry["quote"], key=f"{key}.quote"))
    if entry.get("quotes") is not None:
        quotes += _texts(entry["quotes"], key=f"{key}.quotes")
    if not quotes:
        raise invalid_sample(f"`{key}` has neither `quote` nor `quotes`.")
    return _Evidence(marker, tuple(normalize_passage(quote) for quote in quotes))


def _texts(value: Any, *, key: str) -> list[str]:
    if isinstance(value, str):
        return [_text(value, key=key)]
    if not isinstance(value, (list, tuple)) or not value:
        raise invalid_sample(f"`{key}` is text or a list of one or more texts, not {_shape(value)}.")
    return [_text(entry, key=f"{key}[{index}]") for index, entry in enumerate(value)]


def _text(value: Any, *, key: str) -> str:
    if not isinstance(value, str):
        raise invalid_sample(f"`{key}` is text, not {name_kind(value)}.")
    trimmed = value.strip()
    if not trimmed:
        raise invalid_sample(f"`{key}` is blank.")
    return trimmed


def _shape(value: Any) -> str:
    return "an empty list" if isinstance(value, (list, tuple)) and not value else name_kind(value)
