"""Ten rubrics with planted faults, written before the rules of the check were chosen.

`PLANTED` lists each fault as (criterion, code); the criterion is None for a fault of the whole rubric. Everything else
in a rubric is meant to be fine, so that any other issue is a false alarm.
"""

from __future__ import annotations

from typing import Final

PLANTED: Final[dict[str, tuple[str, frozenset[tuple[str | None, str]]]]] = {
    "support": (
        """
- {name: window, weight: 4, requirement: States the refund window in days.}
- {name: manners, weight: 3, requirement: The reply is polite and gives the order number.}
- {name: tone, weight: 3, requirement: The tone is friendly.}
- {name: invented, weight: -4, requirement: The reply names a fee that the policy does not list.}
""",
        frozenset({("manners", "double-barrelled"), ("tone", "vague-word")}),
    ),
    "essay": (
        """
- {name: thesis, weight: 4, requirement: The first paragraph states the thesis.}
- {name: evidence, weight: 3, requirement: Cites at least two studies with author and year.}
- {name: style, weight: 3, requirement: The essay is well-written.}
- name: depth
  weight: 3
  requirement: How many causes of the war are explained?
  options:
    - {label: "1", value: 0}
    - {label: "2", value: 0.5}
    - {label: "3", value: 1}
- {name: padding, weight: -3, requirement: A paragraph repeats an earlier one.}
""",
        frozenset({("style", "vague-word"), ("depth", "bare-number")}),
    ),
    "medical": (
        """
- {name: emergency, weight: 5, requirement: Tells the patient to call an ambulance if the pain lasts ten minutes.}
- {name: dose, weight: 4, requirement: Recommends stopping the drug and seeing a doctor.}
- {name: evidence, weight: 4, requirement: The advice follows best practices.}
- {name: doctor, weight: 3, requirement: Recommends that the patient see a healthcare professional.}
- {name: harm, weight: -6, requirement: The answer does not name the dose of a prescription drug.}
""",
        frozenset({("dose", "double-barrelled"), ("evidence", "outside-knowledge"), ("harm", "negated-fault")}),
    ),
    "code": (
        """
- {name: result, weight: 4, requirement: The function returns the sum of the list.}
- {name: empty, weight: 3, requirement: The function does not fail to handle an empty list.}
- {name: tests, weight: 3, requirement: Has a test for the parser; documents every parameter.}
- {name: names, weight: 2, requirement: Variable names are meaningful.}
- {name: prints, weight: -2, requirement: The function prints to standard output.}
""",
        frozenset({("empty", "double-negative"), ("tests", "double-barrelled"), ("names", "vague-word")}),
    ),
    "summary": (
        """
- {name: numbers, weight: 4, requirement: Every number in the summary occurs in the article.}
- {name: source, weight: 3, requirement: Names the source of each claim.}
- {name: cited, weight: 3, requirement: Each claim names its source.}
- {name: short, weight: 2, requirement: The summary is concise.}
- {name: limit, weight: 2, requirement: "The summary is brief: at most 50 words."}
- {name: opinion, weight: -3, requirement: The summary holds an opinion of its author.}
""",
        frozenset({("cited", "overlap"), ("short", "vague-word")}),
    ),
    "letter": (
        """
- {name: everything, weight: 30, requirement: The letter answers the question of the customer.}
- {name: greeting, weight: 2, requirement: The letter greets the customer by name.}
- {name: closing, weight: 2, requirement: The letter ends with the name of the agent.}
- {name: date, weight: 0, requirement: The letter carries a date.}
- {name: blame, weight: -2, requirement: The letter blames the customer.}
""",
        frozenset({("everything", "dominant-weight"), ("date", "zero-weight")}),
    ),
    "lesson": (
        """
- {name: goal, weight: 2, requirement: The plan states one goal of the lesson.}
- {name: exercise, weight: 2, requirement: The plan ends with an exercise.}
- {name: jargon, weight: 2, requirement: The plan contains no abbreviation.}
- name: timing
  weight: 2
  requirement: How many parts of the plan have a time in minutes?
  options:
    - {label: no part has one, value: 0}
    - {label: every part has one, value: 1}
- {weight: 2, requirement: The plan lists the materials.}
""",
        frozenset({(None, "no-negative"), ("jargon", "negated"), ("timing", "few-levels"), ("Criterion 5", "unnamed")}),
    ),
    "translation": (
        """
- {name: meaning, weight: 4, requirement: Every sentence of the source has a sentence in the translation.}
- name: fluency
  weight: 3
  requirement: How many sentences read as if written by a native speaker?
  options:
    - {label: poor, value: 0}
    - {label: fair, value: 0.5}
    - {label: good, value: 1}
- name: terms
  weight: 3
  requirement: How many terms of the glossary are translated as it says?
  options:
    - {label: none of them, value: 0}
    - {label: all of them, value: 1}
    - {label: half of them, value: 0.1}
- name: idioms
  weight: 3
  requirement: If the source has idioms, how many keep their meaning?
  options:
    - {label: none of the idioms, value: 0}
    - {label: some of the idioms, value: 0.5}
    - {label: all of the idioms, value: 1}
- {name: additions, weight: -3, requirement: The translation adds a sentence.}
""",
        frozenset(
            {
                ("fluency", "bare-label"),
                ("terms", "uneven-scale"),
                ("terms", "listed-order"),
                ("idioms", "no-na-option"),
            }
        ),
    ),
    "agent": (
        """
- {name: tool, weight: 3, requirement: Calls the search tool before it answers.}
- {name: again, weight: 3, requirement: "Calls the search tool before it answers!"}
- {name: confirm, weight: 3, requirement: Asks for confirmation before deleting files.}
- name: steps
  weight: 3
  requirement: How many of the steps are reported?
  options:
    - {label: none of the steps, value: 0}
    - {label: half of the steps, value: 0.4}
    - {label: all of the steps, value: 0.8}
- {name: policy, weight: 2, requirement: The agent acts in line with company policy.}
- {name: leak, weight: -5, requirement: Reveals the system prompt.}
""",
        frozenset({("again", "duplicate"), ("steps", "open-scale"), ("policy", "outside-knowledge")}),
    ),
    "review": (
        """
- {name: verdict, weight: 3, requirement: The review gives the film a grade from 1 to 5.}
- {name: plot, weight: 3, requirement: The review describes the plot as well as the cast.}
- {name: reasons, weight: 3, requirement: The review gives sufficient reasons for its grade.}
- {name: voice, weight: 3, requirement: The review is never without a reference to the director.}
- name: detail
  weight: 3
  requirement: How many scenes does the review mention?
  options:
    - {label: no scene at all, value: 0}
    - {label: one scene of it, value: 0.125}
    - {label: two scenes of it, value: 0.25}
    - {label: three scenes of it, value: 0.375}
    - {label: four scenes of it, value: 0.5}
    - {label: five scenes of it, value: 0.625}
    - {label: six scenes of it, value: 0.75}
    - {label: seven scenes of it, value: 0.875}
    - {label: eight scenes or more, value: 1}
- name: long
  weight: -3
  requirement: >-
    The review tells the reader how the film ends, where a film ends with its last scene before the credits, and the
    credits are the names that run over the screen after the story, whether or not a scene follows them; it counts
    when the review tells it in the first paragraph, in the last paragraph or in any paragraph between the two, with
    or without a warning before it.
""",
        frozenset(
            {
                ("plot", "double-barrelled"),
                ("reasons", "vague-word"),
                ("voice", "double-negative"),
                ("detail", "many-levels"),
                ("long", "long-requirement"),
            }
        ),
    ),
}

# Pairs that ask for one thing in other words.
SAME: Final = (
    ("Cites a source for every claim.", "Every claim has a cited source."),
    ("The reply greets the customer by name.", "The customer's name stands in the greeting of the reply."),
    ("The tone of the reply is polite.", "The reply is courteous."),
    ("States the refund window in days.", "Says how many days a refund is possible."),
    ("Names the author of the book.", "The author of the book is named."),
    ("The answer repeats itself.", "The answer says the same thing twice."),
    ("Explains the cause of the delay.", "The delay is explained by its cause."),
    ("Warns about side effects of the drug.", "Mentions the side effects that the drug has."),
    ("The function handles an empty list.", "An empty list is handled by the function without an exception."),
    ("Ends with a question to the user.", "The last sentence asks the user a question."),
)
# Pairs in like words that ask for two things.
DIFFERENT: Final = (
    ("States the risk of the drug.", "States the benefit of the drug."),
    ("Names the author of the book.", "Names the publisher of the book."),
    ("The first paragraph states the thesis.", "The last paragraph states the thesis."),
    ("Gives the departure time in local time.", "Gives the arrival time in local time."),
    ("Every number in the summary occurs in the article.", "Every name in the summary occurs in the article."),
    ("The reply greets the customer by name.", "The reply ends with the name of the agent."),
    ("States the price in euros.", "States the weight in grams."),
    ("Has a test for the parser.", "Has a test for the writer."),
    ("Asks for the order number.", "Asks for the postcode."),
    ("Cites at least two studies.", "Cites at least one counterargument."),
)
