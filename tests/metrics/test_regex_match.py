from __future__ import annotations

import pytest

from deemster.errors import ConfigurationError
from deemster.metrics.regex_match import Regex
from deemster.records import Sample
from tests.builders.marks import marked


def issue(metric, expected):
    (found,) = metric.check(Sample("s", {}, expected))
    return found


def test_dollar_matches_only_at_very_end():
    assert marked(Regex(), "/refund$/i", "A Refund").score == 1
    assert marked(Regex(), "/refund$/i", "A Refund\n").score == 0
    assert marked(Regex(), "/refund$/im", "A Refund\n").score == 1


def test_positions_are_in_characters_not_bytes():
    details = marked(Regex(), "b+", "é😀bb").details
    assert details == {"match": True, "start": 2, "end": 4}
    assert marked(Regex(), "z", "é").details == {"match": False, "start": None, "end": None}


def test_full_requires_match_of_complete_text():
    assert marked(Regex(full=True), "a|ab", "ab").score == 1
    assert marked(Regex(full=True), "a", "ab").score == 0
    assert marked(Regex(full=True), "", "").score == 1


@pytest.mark.parametrize(
    ("pattern", "text", "score"),
    [
        ("/a.c/s", "a\nc", 1),
        ("/a.c/", "a\nc", 0),
        ("/ABC/i", "abc", 1),
        ("/ABC/", "abc", 0),
        ("/^b/m", "a\nb", 1),
        ("/^b/", "a\nb", 0),
        ("/É/iu", "é", 1),
        ("/x/uDS", "x", 1),
        ("//", "anything", 1),
        (r"/a\/b/", "a/b", 1),
        ("/usr/bin", "in /usr/bin", 1),
        ("/", "a/b", 1),
        ("a/i", "a/i", 1),
        ("a/i", "A", 0),
        ("#refund#i", "A Refund", 1),
        ("~refund~i", "A Refund", 1),
        ("{refund}i", "A Refund", 1),
        ("@refund@i", "A Refund", 1),
        ("!refund!i", "A Refund", 1),
        ("%refund%", "a refund", 1),
        ("{a{2}}", "aa", 1),
        (r"#a\#b#", "a#b", 1),
        ("#1 of #2", "#1 of #2", 1),
        ("[ab]", "b", 1),
        ("(a)|(b)", "b", 1),
    ],
)
def test_characters_delimit_if_only_flags_follow(pattern, text, score):
    assert marked(Regex(), pattern, text).score == score


def test_ungreedy_flag_swaps_greediness():
    assert marked(Regex(), "/a+/U", "aaa").details["end"] == 1
    assert marked(Regex(), "/a+/", "aaa").details["end"] == 3


def test_option_syntax_decides_ambiguous_pattern():
    assert marked(Regex(syntax="plain"), "/usr/s", "cd /usr/s").score == 1
    assert marked(Regex(), "/usr/s", "usr").score == 1
    assert marked(Regex(syntax="plain"), "#x#", "#x#").score == 1
    assert marked(Regex(syntax="plain"), "/usr/s", "usr").score == 0
    assert not issue(Regex(syntax="delimited"), "usr").warning
    assert not issue(Regex(syntax="delimited"), "/usr/b").warning


@pytest.mark.parametrize("delimited", ["/x/x", "/x/A", "/x/X", "/x/J", "/x/n", "/x/g", "/x/gi", "#x#q", "~x~word"])
def test_flags_without_a_meaning_in_re2_are_errors(delimited):
    found = issue(Regex(), delimited)
    flag = delimited[3]
    assert not found.warning
    assert f"`{flag}`" in found.message


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("a(?=b)", "look-around"),
        ("a(?!b)", "look-around"),
        ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        (r"(?P<n>a)(?P=n)", "back-reference"),
        (r"(?P<n>a)\k<n>", "back-reference"),
        ("a++", "possessive"),
        ("a*+", "possessive"),
        ("(?>a)", "atomic"),
        (r"a\Z", r"\Z"),
        ("(?x)a b", "(?x)"),
        ("(?ix)a b", "(?x)"),
        ("a{1001}", "over 1000"),
        (r"\C", r"\C"),
        ("(", "missing )"),
        ("\ud800", "Unicode"),
    ],
)
def test_unsupported_construct_is_error_with_its_name(pattern, name):
    found = issue(Regex(), pattern)
    assert not found.warning
    assert name in found.message
    assert marked(Regex(), pattern, "a").cause == "bad_sample"
    with pytest.raises(ConfigurationError, match="pattern"):
        Regex(pattern=pattern)


def test_escaped_backslash_before_c_is_literal():
    assert marked(Regex(), r"\\C", r"a\C").score == 1
    assert marked(Regex(), r"\Q\C\E", r"\C").score == 1


def test_option_pattern_applies_to_all_samples():
    metric = Regex(pattern="/yes/i")
    assert marked(metric, None, "YES").score == 1
    assert marked(metric, "no", "no").score == 0
    assert not metric.check(Sample("s", {}, None))


def test_non_text_expected_outputs_are_unscored():
    assert marked(Regex(), None, "a").cause == "no_expected"
    assert marked(Regex(), 3, "3").score == 1
    assert marked(Regex(), {"a": 3}, "a").cause == "bad_sample"
    assert issue(Regex(), {"a": 3}).warning
    assert marked(Regex(), "a", "\udc00").cause == "bad_output"


def test_catastrophic_pattern_runs_in_linear_time(capfd):
    assert marked(Regex(), "(a*)*b", "a" * 20_000).score == 0
    issue(Regex(), "a(?=b)")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("options", [{"full": 1}, {"syntax": "plane"}, {"pattern": 3}])
def test_wrong_options_are_configuration_errors(options):
    with pytest.raises(ConfigurationError):
        Regex(**options)
