"""Gives back the request that a mutator of attacks wrote otherwise."""

from __future__ import annotations

import base64
import html
import re

from deemster.datasets.attack_mutators import LANGUAGES, ZERO_WIDTH, reveal_tags

_LEET_WORD = re.compile(r"(?<!\S)[a-z][a-z013457]{3,}(?=[.,;:?!]*(?!\S))")
_UNLEET = str.maketrans("431057", "aeiost")


def _translate_back(text):
    language, _, rest = text.removeprefix("[").partition("] ")
    english = {other: word for word, other in LANGUAGES[language].items()}
    return re.sub("‹([^›]*)›", lambda found: english[found[1]], rest)


DECODERS = {
    "base64": lambda text: base64.b64decode(text.rpartition(" ")[2]).decode(),
    "zero-width": lambda text: "".join(each for each in text if each not in ZERO_WIDTH),
    "tag-characters": lambda text: reveal_tags(text.partition("\U000e0001")[2].removesuffix("\U000e007f")),
    "leetspeak": lambda text: _LEET_WORD.sub(lambda found: found[0].translate(_UNLEET), text),
    "role-play": lambda text: text.partition("\nMy line: ")[2],
    "translation": _translate_back,
    "markdown": lambda text: text.partition("```instructions\n")[2].removesuffix("\n```\n"),
    "html": lambda text: html.unescape(text.partition('data-for="assistant">')[2].removesuffix("</div>")),
    "many-shot": lambda text: text.rpartition("\n\nUser: ")[2],
}
