"""What the embedded model takes texts to be about: paraphrases nearer than related texts, these than others."""

import pytest

from deemster.metrics.semantic_similarity import BertscoreLike, CosineEmbedding
from deemster.models.embedded_embedding import EmbeddedEmbedding
from deemster.records import Output, Sample

# Written by hand before they were measured: a text, a paraphrase, a text on the same subject, and one on another.
QUARTETS = [
    (
        "You can return the shoes within thirty days.",
        "The shoes may be sent back within 30 days.",
        "The shoes are available in three colours.",
        "Photosynthesis takes place in the leaves.",
    ),
    (
        "The meeting was moved to Friday afternoon.",
        "They rescheduled the meeting for Friday after lunch.",
        "The meeting room has a large screen.",
        "Penguins cannot fly but swim very well.",
    ),
    (
        "Water boils at one hundred degrees Celsius.",
        "The boiling point of water is 100 degrees Celsius.",
        "Drinking water should be kept in clean bottles.",
        "The orchestra played a symphony by Mozart.",
    ),
    (
        "The doctor told her to rest for a week.",
        "Her physician advised a week of rest.",
        "The doctor works at a hospital in the city.",
        "Shares of the car maker fell by four percent.",
    ),
    (
        "Our office is closed on public holidays.",
        "On public holidays the office does not open.",
        "Our office has moved to the second floor.",
        "The recipe needs two eggs and some flour.",
    ),
    (
        "The train to Berlin leaves at nine.",
        "At nine o'clock the Berlin train departs.",
        "Train tickets to Berlin are sold online.",
        "Gold is a soft and heavy metal.",
    ),
    (
        "She learned to play the piano as a child.",
        "As a little girl she was taught the piano.",
        "The piano in the hall is out of tune.",
        "The server returned an error message.",
    ),
    (
        "The company hired fifty new engineers this year.",
        "This year fifty engineers joined the company.",
        "The company builds software for engineers.",
        "Whales are the largest animals in the sea.",
    ),
    (
        "Please restart your computer after the update.",
        "Once the update is installed, reboot your computer.",
        "The computer has a fast processor and a new update tool.",
        "The king signed the treaty in the old castle.",
    ),
    (
        "Smoking is not allowed inside the building.",
        "It is forbidden to smoke in the building.",
        "The building was finished ten years ago.",
        "Bananas contain a lot of potassium.",
    ),
    (
        "The Earth orbits the Sun once a year.",
        "Our planet goes around the Sun in one year.",
        "The Sun is much larger than the Earth.",
        "The lawyer asked for a new contract.",
    ),
    (
        "He forgot his umbrella and got wet in the rain.",
        "Without his umbrella he was soaked by the rain.",
        "The umbrella shop sells rain coats as well.",
        "The function returns a list of numbers.",
    ),
    (
        "The price of bread has doubled since last year.",
        "Bread costs twice as much as it did a year ago.",
        "The bakery sells bread and cakes.",
        "The astronaut repaired the solar panel.",
    ),
    (
        "Children under six travel free of charge.",
        "Kids younger than six do not pay for travel.",
        "Children like to sit near the window when they travel.",
        "The verdict surprised the judge and the jury.",
    ),
    (
        "The museum opens every day except Monday.",
        "Apart from Mondays the museum is open daily.",
        "The museum shows paintings from Italy.",
        "A transistor can amplify a weak signal.",
    ),
    (
        "Your password must have at least eight characters.",
        "Choose a password of eight characters or more.",
        "Your password was changed yesterday.",
        "The river floods the valley every spring.",
    ),
    (
        "The team won the final by two goals.",
        "With a lead of two goals the team won the final.",
        "The team trains three times a week.",
        "Vaccines protect people against diseases.",
    ),
    (
        "Honey never spoils if it is kept in a closed jar.",
        "In a sealed jar honey stays good forever.",
        "Bees make honey from the nectar of flowers.",
        "The bank raised its interest rate again.",
    ),
    (
        "The bridge was closed because of strong wind.",
        "Heavy winds made them close the bridge.",
        "The bridge is two kilometres long.",
        "The novel was translated into nine languages.",
    ),
    (
        "You need a visa to enter the country.",
        "Entry to the country requires a visa.",
        "The country has a long coast and many islands.",
        "The compiler found a missing bracket.",
    ),
    (
        "The cat slept on the warm roof all day.",
        "All day long the cat was asleep on the warm roof.",
        "The cat chased a mouse through the garden.",
        "Taxes are due at the end of April.",
    ),
    (
        "The library lends books for four weeks.",
        "Books can be borrowed from the library for a month.",
        "The library has a quiet room for reading books.",
        "The engine overheats when the pump fails.",
    ),
    (
        "The parcel will arrive tomorrow before noon.",
        "Expect the parcel tomorrow morning.",
        "The parcel weighs less than five kilograms.",
        "Democracy began in ancient Athens.",
    ),
    (
        "Too much sugar is bad for your teeth.",
        "Eating a lot of sugar damages the teeth.",
        "Sugar is made from cane or from beets.",
        "The satellite sends pictures of the storm.",
    ),
    (
        "The hotel offers breakfast at no extra cost.",
        "Breakfast is included in the price of the hotel.",
        "The hotel is next to the railway station.",
        "The professor published a paper on black holes.",
    ),
    (
        "Turn left at the traffic lights and then go straight on.",
        "At the traffic lights take a left, then keep going straight.",
        "The traffic lights on this road are broken.",
        "The poem describes a lonely shepherd.",
    ),
    (
        "The battery lasts about ten hours.",
        "You get roughly ten hours from one battery charge.",
        "The battery can be replaced in a shop.",
        "The bishop blessed the new church.",
    ),
    (
        "Our customer service answers within one working day.",
        "You will hear from customer service in one business day.",
        "Our customer service speaks English and French.",
        "Lava flowed down the side of the volcano.",
    ),
    (
        "The patient has a fever and a sore throat.",
        "The patient suffers from a high temperature and throat pain.",
        "The patient waited for an hour in the clinic.",
        "The football stadium holds eighty thousand people.",
    ),
    (
        "The contract can be cancelled at any time.",
        "You may end the contract whenever you like.",
        "The contract was signed by both parties in March.",
        "Sharks have lived in the oceans for ages.",
    ),
    (
        "The film is too long and rather boring.",
        "The movie drags on and is quite dull.",
        "The film was shot in New Zealand.",
        "Add the onions and fry them in butter.",
    ),
    (
        "She speaks three languages fluently.",
        "She is fluent in three languages.",
        "She teaches languages at a school.",
        "The roof of the barn was blown away.",
    ),
    (
        "Electric cars produce no exhaust fumes.",
        "Cars with electric motors emit no exhaust.",
        "Electric cars need charging stations in every town.",
        "The choir rehearses on Tuesday evenings.",
    ),
    (
        "The data is stored in encrypted form.",
        "All data is kept encrypted.",
        "The data is collected once an hour.",
        "The farmer sold his sheep at the market.",
    ),
    (
        "The restaurant was full, so we had to wait.",
        "We had to wait because there was no free table in the restaurant.",
        "The restaurant serves fish from the region.",
        "The theorem was proved a century later.",
    ),
    (
        "He lost his job when the factory shut down.",
        "The closing of the factory cost him his job.",
        "The factory makes parts for aeroplanes.",
        "The comet can be seen without a telescope.",
    ),
    (
        "The garden should be watered in the evening.",
        "Water the garden in the evening.",
        "The garden is full of roses and tulips.",
        "The parliament rejected the budget.",
    ),
    (
        "The app does not work without the internet.",
        "You need an internet connection to use the app.",
        "The app was downloaded a million times.",
        "Roman soldiers built a wall in the north.",
    ),
    (
        "Exercise helps you to sleep better.",
        "People who exercise sleep better.",
        "Exercise classes start at six in the evening.",
        "The statue is made of white marble.",
    ),
    (
        "The flight was delayed by two hours because of fog.",
        "Fog caused a two-hour delay of the flight.",
        "The flight attendants served coffee and tea.",
        "The painter mixed blue and yellow.",
    ),
    (
        "The committee will decide on the proposal next week.",
        "A decision of the committee about the proposal is due next week.",
        "The committee has seven members.",
        "The soup tastes of garlic and pepper.",
    ),
    (
        "Dogs must be kept on a lead in the park.",
        "In the park all dogs have to be on a leash.",
        "The park has a playground and a small lake.",
        "The algorithm sorts the numbers in memory.",
    ),
    (
        "The warranty covers repairs for two years.",
        "For two years repairs are free under the warranty.",
        "The warranty card is in the box with the manual.",
        "The glacier has shrunk since the last century.",
    ),
    (
        "The population of the city has grown quickly.",
        "The number of people in the city has risen fast.",
        "The city is famous for its old harbour.",
        "The violin has four strings.",
    ),
    (
        "I do not know the answer to this question.",
        "This is a question I cannot answer.",
        "The question was asked by a student.",
        "Iron rusts when it is exposed to damp air.",
    ),
    (
        "The lake freezes over every winter.",
        "In winter the lake is always covered with ice.",
        "Many people swim in the lake in summer.",
        "The invoice was paid by credit card.",
    ),
    (
        "Payment is possible by card or in cash.",
        "You can pay with cash or by card.",
        "The payment was refused by the bank.",
        "The owl hunts at night in the forest.",
    ),
    (
        "The medicine should be taken twice a day with food.",
        "Take this medicine with a meal two times a day.",
        "The medicine is sold in every pharmacy.",
        "The mountain path leads to a small hut.",
    ),
    (
        "The teacher praised the students for their work.",
        "The students were praised by their teacher for the work they did.",
        "The teacher lives near the school.",
        "The rocket carried a satellite into orbit.",
    ),
    (
        "The phone fell into the water and stopped working.",
        "After it dropped in the water the phone was dead.",
        "The phone has a better camera than the old one.",
        "The judge sentenced the thief to a year in prison.",
    ),
]


def played(metric, pairs):
    script = metric.script_many(
        [Sample(str(number), {}, expected) for number, (expected, _) in enumerate(pairs)],
        [Output(actual) for _, actual in pairs],
    )
    model = EmbeddedEmbedding()
    try:
        requests = next(script)
        while True:
            requests = script.send([model.embed_many(request.texts) for request in requests])
    except StopIteration as stop:
        return stop.value


def share_in_order(metric):
    pairs = [(quartet[0], other) for quartet in QUARTETS for other in quartet[1:]]
    scores = [mark.score for mark in played(metric, pairs)]
    triples = [scores[start : start + 3] for start in range(0, len(scores), 3)]
    return sum(near > related > other for near, related, other in triples) / len(triples)


@pytest.mark.parametrize("metric", [CosineEmbedding(), BertscoreLike()], ids=str)
def test_paraphrases_score_above_related_above_unrelated_texts(metric):
    assert share_in_order(metric) >= 0.9


def test_contradiction_scores_high():
    (mark,) = played(CosineEmbedding(), [("The shop is open on Sunday.", "The shop is not open on Sunday.")])
    assert mark.score > 0.8
