"""Citations that an answer must carry."""

import pytest

from deemster.metrics.citation_groundedness import CitationGroundedness
from deemster.records import Output, Sample


def marked(text, **metadata):
    return CitationGroundedness().score(Sample("s", {}, None, metadata), Output(text))


def test_two_of_three_markers_score_two_thirds():
    mark = marked("Yes [1], as [3] says.", citations=["[1]", "[2]", "[3]"])
    assert mark.score == 2 / 3
    assert mark.details == {"mode": "marker", "required": 3, "matched": 2, "missing_citations": 1}


def test_single_marker_needs_no_list_and_is_case_sensitive():
    assert marked("see Doc-A", citations="  Doc-A ").score == 1.0
    assert marked("see doc-a", citations="Doc-A").score == 0.0


def test_marker_named_twice_is_required_once():
    assert marked("[1]", citations=["[1]", " [1]"]).details["required"] == 1


def test_evidence_needs_marker_and_any_quote():
    evidence = [
        {"citation": "[1]", "quote": "thirty  DAYS"},
        {"citation": "[2]", "quotes": ["nowhere", "a full refund"]},
        {"citation": "[3]", "quote": "nowhere", "quotes": ["neither"]},
        {"citation": "[9]", "quote": "thirty days"},
    ]
    mark = marked("Within Thirty\ndays [1] you get a full refund [2][3].", citation_evidence=evidence)
    assert mark.score == 0.5
    assert mark.details == {
        "mode": "evidence",
        "required": 4,
        "matched": 2,
        "missing_citations": 1,
        "missing_quotes": 1,
    }


def test_evidence_overrides_citations():
    mark = marked("[1]", citations=["[1]"], citation_evidence=[{"citation": "[1]", "quote": "gone"}])
    assert (mark.score, mark.details["mode"]) == (0.0, "evidence")


@pytest.mark.parametrize(
    "metadata",
    [
        {"citations": []},
        {"citations": ""},
        {"citations": ["[1]", " "]},
        {"citations": ["[1]", 2]},
        {"citations": 7},
        {"citations": {"a": "b"}},
        {"citation_evidence": []},
        {"citation_evidence": "[1]"},
        {"citation_evidence": {"citation": "[1]", "quote": "x"}},
        {"citation_evidence": ["[1]"]},
        {"citation_evidence": [{"citation": "[1]"}]},
        {"citation_evidence": [{"quote": "x"}]},
        {"citation_evidence": [{"citation": " ", "quote": "x"}]},
        {"citation_evidence": [{"citation": "[1]", "quote": " "}]},
        {"citation_evidence": [{"citation": "[1]", "quotes": []}]},
        {"citation_evidence": [{"citation": "[1]", "quotes": ["x", None]}]},
    ],
)
def test_blank_and_invalid_entries_stop_run(metadata):
    (issue,) = CitationGroundedness().check(Sample("s", {}, None, metadata))
    assert not issue.warning
    assert marked("x", **metadata).cause == "bad_sample"


def test_unknown_key_of_evidence_is_named_with_the_nearest():
    (issue,) = CitationGroundedness().check(
        Sample("s", {}, None, {"citation_evidence": [{"citation": "[1]", "qoute": "x"}]})
    )
    assert issue.message == "`metadata.citation_evidence[0]` has the unknown key `qoute`. Did you mean `quote`?"


def test_missing_keys_are_warning_and_unscored():
    (issue,) = CitationGroundedness().check(Sample("s", {}))
    assert issue.warning
    assert marked("x").cause == "bad_sample"
