"""The words that a requirement is read by: vague ones with what to write instead, qualities, verbs, fixed pairs."""

from __future__ import annotations

from typing import Final


def words(text: str) -> frozenset[str]:
    """The words of a list that is written as text.

    >>> sorted(words("to and fro"))
    ['and', 'fro', 'to']
    """
    return frozenset(text.split())


def _each(text: str, advice: str) -> dict[str, str]:
    return dict.fromkeys(text.split(), advice)


_RATING: Final = "say what a judge must see in the text for it to count"
_FITTING: Final = "say for whom or for what, and what would break it"
_LENGTH: Final = "give a number: words, sentences, examples or places"
_FULL: Final = "list what must be there"
_LANGUAGE: Final = "name the issue that must be absent, or the register, for instance no slang, no blame"
_READING: Final = "name what a reader can find: a heading, an order of steps, a defined term"
_EFFECT: Final = "say what the text does, not how it works on a reader"

VAGUE: Final[dict[str, str]] = {
    **_each("good well nice great excellent bad poor poorly decent fine superb strong weak solid robust", _RATING),
    **_each("satisfactory acceptable acceptably high-quality well-written quality", _RATING),
    **_each("appropriate appropriately inappropriate suitable suitably proper properly fitting reasonable", _FITTING),
    **_each("practical practically realistic constructive constructively balanced safe safely actionable", _FITTING),
    **_each("feasible plausible credible fair fairly ideal ideally pertinent apt aptly", _FITTING),
    **_each("reasonably relevant useful helpful effective effectively efficient efficiently meaningful", _FITTING),
    **_each("meaningfully significant timely important necessary optimal sensible sensibly valuable", _FITTING),
    **_each(
        "short brief briefly concise concisely long lengthy succinct succinctly detailed several many few", _LENGTH
    ),
    **_each("various enough numerous plenty ample excessive excessively overly unnecessarily needlessly", _LENGTH),
    **_each("sufficient sufficiently adequate adequately thorough thoroughly comprehensive comprehensively", _FULL),
    **_each("exhaustive in-depth deep deeply extensive extensively etc", _FULL),
    **_each("professional professionally natural naturally friendly fluent fluently elegant elegantly", _LANGUAGE),
    **_each("eloquent stylish sophisticated polished rich vivid vividly colourful colorful smooth smoothly", _LANGUAGE),
    **_each("seamless seamlessly tactful tactfully mature nuanced beautiful beautifully pleasant varied", _LANGUAGE),
    **_each("clear clearly unclear readable understandable coherent coherently logical logically", _READING),
    **_each("well-structured well-organised well-organized organised organized easy easily simple simply", _READING),
    **_each("user-friendly intuitive", _READING),
    **_each("interesting engaging compelling convincing convincingly persuasive persuasively insightful", _EFFECT),
    **_each("creative creatively impressive impactful memorable funny witty humorous entertaining boring", _EFFECT),
    **_each("warmth flair insight finesse sensitivity sensitively appealing pleasing inspiring powerful", _EFFECT),
    **_each("exciting moving catchy attractive clever cleverly thoughtful thoughtfully innovative evocative", _EFFECT),
}
PHRASES: Final[dict[str, str]] = {
    "main points": _FULL,
    "key points": _FULL,
    "key aspects": _FULL,
    "main ideas": _FULL,
    "can understand": _READING,
    "makes sense": _READING,
    "flows": _READING,
    "high quality": _RATING,
    "right thing": _RATING,
    "and so on": _FULL,
    "as needed": _FITTING,
}
# What follows or stands before a vague word and makes it an exact one.
EXACT_AFTER: Final[dict[str, frozenset[str]]] = {
    "relevant": frozenset({"to"}),
    "long": frozenset({"division", "run", "term"}),
    "proper": frozenset({"noun", "nouns", "name", "names"}),
    "natural": frozenset({"number", "numbers", "gas", "language", "logarithm", "science", "sciences", "disaster"}),
    "good": frozenset({"faith", "friday", "morning", "afternoon", "evening", "night"}),
    "clear": frozenset({"the", "a", "an", "all", "your", "its", "their", "out"}),
    "simple": frozenset({"interest", "past", "present", "future", "sentence", "sentences"}),
    "simply": frozenset({"repeats"}),
    "well": frozenset({"as", "known", "water"}),
    "deep": frozenset({"learning", "sea"}),
    "few": frozenset({"than"}),
    "significant": frozenset({"figure", "figures", "digit", "digits"}),
    "quality": frozenset({"control", "assurance"}),
    "necessary": frozenset({"condition", "conditions"}),
    "short": frozenset({"circuit", "story", "stories"}),
    "some": frozenset({"of"}),
}
EXACT_BEFORE: Final[dict[str, frozenset[str]]] = {
    "well": frozenset({"as", "oil", "water"}),
    "long": frozenset({"words", "characters", "sentences", "lines", "pages", "minutes", "how", "as", "no"}),
    "professional": frozenset({"healthcare", "medical", "legal", "health", "qualified", "licensed", "care", "tax"}),
    "fine": frozenset({"a", "the", "parking", "library", "of"}),
    "many": frozenset({"how", "as"}),
    "quality": frozenset({"air", "water"}),
    "short": frozenset({"in"}),
    "poor": frozenset({"the"}),
    "good": frozenset({"common"}),
}

QUALITIES: Final = words(
    "accurate complete correct polite concise clear brief respectful empathetic relevant consistent coherent factual "
    "factually correct neutral objective unbiased professional friendly helpful honest grammatical readable specific "
    "precise detailed thorough comprehensive valid safe effective logical original persuasive convincing engaging "
    "interesting actionable realistic feasible formal informal warm calm truthful up-to-date current legible numbered "
    "sorted labelled labeled structured organised organized balanced fair sound well-written well-structured easy "
    "understandable appropriate suitable sufficient helpful useful good creative exhaustive consistent compelling "
    "idiomatic fluent simple short supportive courteous kind tactful insightful robust efficient documented tested "
    "justified referenced cited dated signed reversible"
)
ASPECTS: Final = words(
    "accuracy completeness clarity tone style structure grammar spelling punctuation format formatting length depth "
    "relevance coherence consistency vocabulary organisation organization correctness conciseness fluency politeness "
    "logic originality readability precision safety layout headings bullets citations evidence empathy"
)

# Base forms that are seldom nouns; the third person is made from them.
VERBS: Final = words(
    "accept acknowledge add address advise allow analyse analyze answer apologise apologize apply argue ask assign "
    "assume avoid begin calculate call check choose cite clarify claim close comment compare compile complete compute "
    "conclude confirm consider contain convert correct cover create credit deal decline define deliver demonstrate "
    "derive describe detect direct discuss distinguish draw employ encourage end ensure escalate estimate evaluate "
    "exceed exclude expand explain express fail find finish fit flag follow forget generate give greet group handle "
    "have identify ignore illustrate imply include indicate infer inform insert insist introduce invent invite justify "
    "keep label lead leave link list maintain make match mention misquote misspell misstate name note number offer "
    "omit open order paraphrase pass point praise predict prefer prescribe present prevent produce promise propose "
    "prove provide quote raise read recommend refer reflect refuse reject remain remind remove repeat replace reply "
    "report request require respect respond restate return reveal rhyme say separate show sign solve sort specify "
    "start state stay stop structure suggest summarise summarize support tell thank translate treat try use validate "
    "verify warn write contradict exaggerate blame insult mislead lecture guess fabricate encode sound"
)
# These are nouns as often as verbs: they count as verbs only before what an object begins with.
TWOFOLD: Final = words(
    "address answer ask call check claim comment cover credit deal draw end estimate find fit flag group handle label "
    "lead leave link list make match name note number offer open order pass point praise present promise quote raise "
    "read report request return show sign sort state stay stop structure support treat try use detail reply respect "
    "sound start lecture guess blame insult"
)
BEING: Final = words("is are has have does do can should must may was were will contains never")
OBJECT: Final = words(
    "the a an its their his her your this that these those each every all any at no one two three how why what where "
    "when which whether with as by for in on it them to out"
)
SUBJECTS: Final = frozenset({"it", "they", "he", "she"})
ADVERBS: Final = frozenset({"also", "then", "always", "never", "only", "either", "not", "at", "least", "so", "thus"})
# What a second thing to be found in a text begins with.
OPENERS: Final = words("the a an its their his her at one two three how why what where when which whether")
FINDING: Final = words(
    "ask asks cite cites contain contains cover covers define defines describe describes discuss discusses explain "
    "explains give gives has have identify identifies include includes list lists mention mentions name names present "
    "presents provide provides quote quotes report reports say says show shows specify specifies state states tell "
    "tells use uses address addresses addressing mentioning giving"
)
# One thing that takes two to be.
RELATIONS: Final = words(
    "between compare compares comparing comparison contrast contrasts contrasting difference differences distinguish "
    "distinguishes link links relation relationship balance weigh weighs combine combines combination match matches "
    "versus among"
)
CONDITIONS: Final = words("if when unless because although until once who whose which whenever where while")
REPORTS: Final = words(
    "says say states state warns warn notes note claims claim concludes conclude confirms confirm explains argues "
    "requests"
)
PAIRS: Final = frozenset(
    tuple(pair.split("-"))
    for pair in words(
        "terms-conditions pros-cons advantages-disadvantages strengths-weaknesses supply-demand date-time time-date "
        "research-development health-safety cause-effect causes-effects trial-error rules-regulations laws-regulations "
        "policies-procedures profit-loss question-answer questions-answers black-white salt-pepper back-forth "
        "input-output inputs-outputs first-last each-every copy-paste mergers-acquisitions wear-tear before-after "
        "more-more again-again over-over up-running law-order privacy-security name-surname "
        "friends-family bed-breakfast dos-donts nuts-bolts hardware-software men-women yes-no arts-crafts "
        "checks-balances ups-downs plus-minus top-bottom left-right read-write drag-drop cut-paste food-drink "
        "goods-services do-don't parents-children romeo-juliet"
    )
)
# Before these words `and` or `or` sets a limit and adds nothing to be checked.
MEASURES: Final = words("more fewer less higher lower later earlier longer greater better above below not so")

# Endings of adjectives that rate; as the whole of what a subject is said to be, such a word is vague.
RATING: Final = ("ful", "ive", "ical", "istic", "ous", "ant", "ent", "able", "ible", "ing", "some", "worthy")
# Adjectives with such an ending that two judges read alike.
PLAIN: Final = words(
    "identical numerical alphabetical chronological positive negative consistent present absent missing executable "
    "reversible readonly existing remaining equivalent constant transparent imperative interrogative passive active "
    "native recursive inclusive exclusive relative alternative anonymous previous continuous divisible negotiable "
    "refundable taxable variable different independent dependent permanent grammatical typographical historical "
    "medical legal technical physical political respectful empathetic optional"
)

PREPOSITIONS: Final = words(
    "about against among as at before after between by during for from in into of on over per since through to under "
    "until via with within without such"
)
COPULAS: Final = words("is are be remains remain stays stay sounds sound was were")

NEGATIONS: Final = words(
    "not no never without lacks lack none nothing nobody neither nor cannot avoids avoid omits excludes refrains "
    "doesn't isn't aren't don't hasn't haven't can't won't wasn't didn't"
)
# Negations of form only: these set a limit or a choice.
LIMITS: Final = (
    "no more than",
    "no less than",
    "no fewer than",
    "no later than",
    "no longer than",
    "not more than",
    "not less than",
    "not only",
    "whether or not",
    "yes or no",
)
DOUBLED: Final = (
    "not fail to",
    "fails to avoid",
    "never fails",
    "not without",
    "never without",
    "not omit",
    "not forget",
    "not avoid",
    "not lack",
    "not exclude",
    "not refrain",
    "not neglect",
    "not ignore",
    "not leave out",
    "not unclear",
    "not irrelevant",
    "not inappropriate",
    "not incorrect",
    "not inaccurate",
    "not unreasonable",
    "not unlike",
    "not uncommon",
    "not untrue",
    "not impolite",
)
# What a judge who holds the submission alone cannot look up, with what to give it instead.
OUTSIDE: Final[dict[str, str]] = {
    "up to date": "write the facts and their date into the requirement",
    "up-to-date": "write the facts and their date into the requirement",
    "the latest": "write the version or the date that counts",
    "most recent": "write the version or the date that counts",
    "currently": "write the state that counts, with its date",
    "best practice": "name the practices that count",
    "best practices": "name the practices that count",
    "industry standard": "name the standard and the clause that counts",
    "industry standards": "name the standards and the clauses that count",
    "state of the art": "name the methods that count",
    "company policy": "quote the policy in the guidelines",
    "our policy": "quote the policy in the guidelines",
    "house style": "quote the rules of style in the guidelines",
    "style guide": "quote the rules of style in the guidelines",
    "as discussed": "write down what was discussed",
    "in class": "write down what was taught",
    "the lecture": "write down what was taught",
    "the textbook": "quote the passage in the guidelines",
    "the attached": "put the text into the guidelines or the reference",
    "our website": "put the text into the guidelines or the reference",
    "the database": "put the facts into the guidelines or the reference",
    "other submissions": "judge each submission by itself; compare with a pairwise judge",
    "other answers": "judge each submission by itself; compare with a pairwise judge",
    "previous version": "put the earlier text into the prompt",
    "previous answer": "put the earlier text into the prompt",
    "the author intended": "judge what the text says",
    "the author's intent": "judge what the text says",
    "the user is satisfied": "say what in the text would satisfy the user",
    "user satisfaction": "say what in the text would satisfy the user",
    "common knowledge": "write down the facts that count",
    "real world": "write down the facts that count",
    "in reality": "write down the facts that count",
    "plagiarised": "give the sources it must not copy, or use a check",
    "plagiarized": "give the sources it must not copy, or use a check",
    "runs without error": "use a check that runs it",
    "passes all tests": "use a check that runs them",
    "links work": "use a check that opens them",
}
