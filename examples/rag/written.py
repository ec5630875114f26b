"""The answers of the assistant and the replies of the scripted judge, all written by hand.

`flaw` says what is wrong with an answer on purpose; it reaches no file.
"""

from __future__ import annotations

from typing import NamedTuple

POINT = (10, "All of the answer speaks to the question, and the whole question is spoken to.")
LEAN = (1, "Nothing could be struck out.")


class Case(NamedTuple):
    """One answer, and the reply of the judge.

    Attributes:
        answer: The answer.
        retrieved: Ids of the passages it was made from, best first.
        claims: Each claim of the answer with the judge's verdict and reason.
        relevancy: The judge's score from 0 to 10, and why.
        redundancy: The judge's score from 1 to 3, where 1 is best, and why.
        flaw: What is wrong with the answer, if anything.
    """

    answer: str
    retrieved: tuple[str, ...]
    claims: tuple[tuple[str, str, str], ...]
    relevancy: tuple[int, str] = POINT
    redundancy: tuple[int, str] = LEAN
    flaw: str = ""


def yes(claim: str, passage: str) -> tuple[str, str, str]:
    """A claim that a passage supports."""
    return claim, "supported", f"The passage that begins '{passage}' says so."


CASES = {
    "fee": Case(
        "Membership costs 24 euros a year; students and pensioners pay 12 euros [membership].",
        ("membership", "deposit", "late"),
        (
            yes("Membership costs 24 euros a year.", "Membership costs"),
            yes("Students and pensioners pay 12 euros a year.", "Membership costs"),
        ),
    ),
    "fee-student": Case(
        "As a student you pay 12 euros a year [membership].",
        ("membership", "late", "deposit"),
        (yes("A student pays 12 euros a year for membership.", "Membership costs"),),
    ),
    "fee-end": Case(
        "Membership ends after twelve months unless it is renewed, and a reminder is sent by e-mail [membership].",
        ("membership", "lending", "booking"),
        (
            yes("Membership ends after twelve months unless it is renewed.", "Membership costs"),
            ("A reminder of the end of membership is sent by e-mail.", "open", "No passage mentions a reminder."),
        ),
        flaw="hallucination: there is no reminder",
    ),
    "how-long": Case(
        "You may keep a bike for three days, and for two more if nobody else has booked it [lending].",
        ("lending", "booking", "late"),
        (
            yes("A bike may be kept for three days.", "Members may borrow"),
            yes("A loan may be extended by two days if nobody else has booked the bike.", "Members may borrow"),
        ),
    ),
    "two-bikes": Case(
        "No, you may borrow one bike at a time [lending].",
        ("lending", "load", "booking"),
        (yes("A member may borrow one bike at a time.", "Members may borrow"),),
    ),
    "book-ahead": Case(
        "You can book on the website, up to four weeks ahead. Booking is done on the website. That means that you can "
        "book four weeks before you need the bike, but not earlier than four weeks before [booking].",
        ("booking", "lending", "hours"),
        (
            yes("Bikes are booked on the website.", "Bikes are booked"),
            yes("Bikes can be booked up to four weeks ahead.", "Bikes are booked"),
        ),
        relevancy=(9, "The whole question is answered, though the answer says it several times."),
        redundancy=(3, "The website is named twice and the four weeks three times; two of three sentences can go."),
        flaw="redundancy",
    ),
    "late-for-booking": Case(
        "Your booking is cancelled: you would come more than one hour after its start [booking].",
        ("booking", "late", "hours"),
        (yes("A booking that is collected more than one hour after its start is cancelled.", "Bikes are booked"),),
    ),
    "deposit": Case(
        "Yes: 50 euros are held on your bank card. They are released when the bike comes back clean and undamaged.",
        ("deposit", "damage", "late"),
        (
            yes("A deposit of 50 euros is held on a bank card.", "A deposit of"),
            yes("The deposit is released when the bike comes back clean and undamaged.", "A deposit of"),
        ),
        flaw="no citation",
    ),
    "late-fee": Case(
        "Three hours late cost 24 euros, since every hour begun costs 8 euros [late].",
        ("late", "deposit", "booking"),
        (
            ("A return that is three hours late costs 24 euros.", "contradicted", "5 euros an hour make 15 euros."),
            ("Every hour begun of a late return costs 8 euros.", "contradicted", "The passage says 5 euros."),
        ),
        flaw="hallucination: wrong fee",
    ),
    "late-cap": Case(
        "At most 40 euros a day [late].",
        ("late", "deposit", "membership"),
        (yes("A late return costs at most 40 euros a day.", "A bike that comes"),),
    ),
    "damage-cost": Case(
        "You pay for the repair up to 100 euros; the insurance of the library pays what is above that [damage].",
        ("damage", "deposit", "repair"),
        (
            yes("A member pays for repairs up to 100 euros.", "Damage is reported"),
            yes("The insurance of the library pays what a repair costs above 100 euros.", "Damage is reported"),
        ),
    ),
    "damage-report": Case(
        "Volunteers repair bikes on the first Thursday of each month from 18 to 21 o'clock [repair].",
        ("repair", "hours", "deposit"),
        (yes("Volunteers help to repair bikes on the first Thursday of each month, 18 to 21.", "On the first"),),
        relevancy=(1, "It is about repairs; how to report damage stays unanswered."),
        flaw="wrong passage: private bikes in place of damage",
    ),
    "theft": Case(
        "With only one lock in use you pay 300 euros [theft].",
        ("theft", "deposit", "damage"),
        (yes("A member who did not use both locks pays 300 euros for a stolen bike.", "A stolen bike"),),
    ),
    "theft-steps": Case(
        "Report it to the police within 24 hours [theft].",
        ("theft", "damage", "late"),
        (yes("A stolen bike is reported to the police within 24 hours.", "A stolen bike"),),
        relevancy=(6, "It says what to do; the question about the deposit is not touched."),
        flaw="half the answer: the passage on deposits was not retrieved",
    ),
    "baby": Case(
        "No, children may ride in the box from the age of one [children].",
        ("children", "load", "membership"),
        (yes("Children may ride in the box from the age of one.", "Children may ride"),),
    ),
    "three-children": Case(
        "At most two children ride in one bike, both with helmet and belt [children].",
        ("children", "load", "lending"),
        (
            yes("At most two children ride in one bike.", "Children may ride"),
            yes("Children ride with helmet and belt.", "Children may ride"),
        ),
    ),
    "dog": Case(
        "I am sorry, but I cannot help with questions about animals [load].",
        ("load", "children", "lending"),
        (),
        relevancy=(0, "The answer declines a question that the passages answer."),
        flaw="refusal without need",
    ),
    "winter-range": Case(
        "About 30 kilometres in winter [battery].",
        ("battery", "load", "lending"),
        (yes("A full battery lasts for about 30 kilometres in winter.", "A full battery"),),
    ),
    "charging": Case(
        "No. Charge it indoors and never below freezing [battery].",
        ("battery", "repair", "hours"),
        (yes("Batteries are charged indoors and never below freezing.", "A full battery"),),
    ),
    "sunday": Case(
        "No, the shed is open from Tuesday to Saturday, 9 to 18 o'clock [hours]. Please plan your return in good time. "
        "We look forward to your visit.",
        ("hours", "late", "booking"),
        (yes("The shed is open from Tuesday to Saturday, 9 to 18 o'clock.", "The shed in"),),
        relevancy=(8, "The question is answered; the last two sentences are beside it."),
        redundancy=(2, "The last two sentences could be struck out."),
        flaw="a little redundancy",
    ),
    "own-bike": Case(
        "Volunteers help on the first Thursday of each month, 18 to 21; tools are free, you pay for parts [repair].",
        ("repair", "damage", "hours"),
        (
            yes("Volunteers help to repair private bikes on the first Thursday of the month.", "On the first"),
            yes("Tools are free at the repair evening.", "On the first"),
            yes("Spare parts are paid for at the repair evening.", "On the first"),
        ),
    ),
    "tandem": Case(
        "The documents speak of cargo bikes only [lending]; whether there are tandems they do not say.",
        ("lending", "load", "booking"),
        (),
    ),
    "abroad": Case(
        "Yes, within the European Union, if you tell us two days before [lending].",
        ("lending", "theft", "booking"),
        (
            ("A bike may be taken abroad within the European Union.", "open", "No passage speaks of borders."),
            ("Taking a bike abroad must be announced two days before.", "open", "No passage speaks of borders."),
        ),
        flaw="hallucination: the documents do not say",
    ),
    "company": Case(
        "The documents name no membership for companies [membership].",
        ("membership", "deposit", "lending"),
        (),
    ),
}
