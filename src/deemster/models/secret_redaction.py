"""Removes API keys and other secrets from messages, answers and files."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import msgspec

from deemster.records import Answer, Token

# How a message ends that was too long.
_CUT = "…"
REMOVED = "[removed]"
SHORTEST = 8
_SHAPES = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {REMOVED}"),
    (re.compile(r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{12,}"), REMOVED),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{20,}"), REMOVED),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@?#]+@"), rf"\1{REMOVED}@"),
    (re.compile(r"(?i)([?&](?:api[-_]?key|key|token|access_token|sig|signature)=)[^\s&#\"']+"), rf"\1{REMOVED}"),
    (re.compile(r"(?i)((?:api[-_]?key|x-api-key|authorization)[\"']?\s*[:=]\s*[\"']?)(?!bearer\b|basic\b)[^\s\"',}&]{6,}"),
     rf"\1{REMOVED}"),
)  # fmt: skip
# Everything up to the last `@` may be credentials; a scheme in front of them is none.
_ADDRESS_SECRETS = (
    (re.compile(r"(?s)^(\s*(?:https?|postgres(?:ql)?|wss?|s3|file):/{0,2})?.*@"), rf"\1{REMOVED}@"),
    (re.compile(r"(?i)([?&;]\s*[^=&;?\s]*(?:key|token|secret|passw(?:or)?d|pwd|sig|signature|auth|code)=)[^&;\s]*"),
     rf"\1{REMOVED}"),
    (re.compile(r"(?i)(\b(?:ssl)?(?:password|passwd|pwd)\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|\S+)"), rf"\1{REMOVED}"),
)  # fmt: skip
_NAMES = re.compile(
    r"(?i)(?:^|[^a-z])(?:(?:api|access|secret|private)?key|token|secret|passw(?:or)?d|passphrase|credentials?|auth"
    r"|authorization|cookie|signature)(?![a-z])"
)


def is_secret_name(name: str) -> bool:
    """Whether a header or a variable of that name holds a secret, going by its words.

    >>> is_secret_name("X-Api-Key"), is_secret_name("OPENAI_API_KEY"), is_secret_name("GIT_AUTHOR_NAME")
    (True, True, False)
    """
    return _NAMES.search(name) is not None


# No word of a variable's name is as long as this and has digits in it; a key is one such word.
_LONGEST_WORD = 16


def looks_like_key(name: str) -> bool:
    """Whether what should be the name of a variable looks like the key itself.

    >>> looks_like_key("gsk_Zq8T0vXw2LmN4pRs"), looks_like_key("MY_COMPANYS_OPENAI_KEY_2")
    (True, False)
    """
    words = [word for word in name.split("_") if len(word) >= _LONGEST_WORD]
    return any(map(str.isdigit, "".join(words))) or any(shape.search(name) for shape, _ in _SHAPES)


def named_secrets(value: Any, *, inside: bool = False) -> Iterator[str]:
    """The texts in plain data that stand under the name of a secret, at any depth.

    Args:
        value: Plain data.
        inside: Whether it stands under such a name itself.

    >>> list(named_secrets({"api_key": "hush-hush", "top_k": 3, "more": [{"headers": {"Cookie": "crumbs"}}]}))
    ['hush-hush', 'crumbs']
    """
    if isinstance(value, Mapping):
        for name, entry in value.items():
            yield from named_secrets(entry, inside=inside or is_secret_name(str(name)))
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from named_secrets(entry, inside=inside)
    elif inside and isinstance(value, str):
        yield value
        scheme, _, rest = value.partition(" ")
        if scheme.lower() in ("bearer", "basic"):
            yield rest


def hash_named_secrets(value: Any, *, inside: bool = False) -> Any:
    """Plain data with a hash in place of each text of `named_secrets`, so that two of them still differ.

    Args:
        value: Plain data.
        inside: Whether it stands under such a name itself.

    >>> hash_named_secrets({"api_key": "hush-hush", "top_k": 3})
    {'api_key': '[removed] fbdc077454d782ba', 'top_k': 3}
    """
    if isinstance(value, Mapping):
        return {
            name: hash_named_secrets(entry, inside=inside or is_secret_name(str(name))) for name, entry in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [hash_named_secrets(entry, inside=inside) for entry in value]
    return _hash_text(value) if inside and isinstance(value, str) else value


def _hash_text(value: str) -> str:
    return f"{REMOVED} {sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def basic_credentials(user: str | None, password: str | None) -> list[str]:
    """What must appear nowhere of the credentials of an address: both parts, and the token that is sent for them.

    >>> basic_credentials("me", "hush")
    ['me', 'hush', 'me:hush', 'bWU6aHVzaA==']
    """
    if user is None and password is None:
        return []
    pair = f"{user or ''}:{password or ''}"
    return [user or "", password or "", pair, base64.b64encode(pair.encode("utf-8", "replace")).decode()]


def redact_address(text: str) -> str:
    """What was meant as an address, right or wrong, without credentials and without values of secret parameters.

    >>> redact_address("me:pw@host/v1?token=abc"), redact_address("host=h user=u password='p w'")
    ('[removed]@host/v1?token=[removed]', 'host=h user=u password=[removed]')
    >>> redact_address("postgresql:/u:p@w@h/db"), redact_address("https://host/v1")
    ('postgresql:/[removed]@h/db', 'https://host/v1')
    """
    for pattern, instead in _ADDRESS_SECRETS:
        text = pattern.sub(instead, text)
    return text


class Secrets:
    """Values that must appear nowhere, such as API keys.

    A value of fewer than 8 characters is a placeholder for servers without keys, not a secret.

    Args:
        values: The secrets.
    """

    __slots__ = ("_forms",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for value in values:
            if len(value.strip()) >= SHORTEST:
                escaped = json.dumps(value)[1:-1]
                forms |= {value, value.strip(), quote(value, safe=""), escaped, escaped.replace("/", "\\/")}
        # The longest first, so that no tail of one is left where another is part of it.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def __repr__(self) -> str:
        return f"Secrets({len(self._forms)} hidden)"

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __add__(self, other: Secrets) -> Secrets:
        return Secrets({*self._forms, *other._forms})

    def found_in(self, text: str) -> bool:
        """Whether a text holds one of them."""
        for form in self._forms:  # noqa: SIM110 - an expression takes three times as long, and every answer comes by
            if form in text:
                return True
        return False

    def hash_in(self, value: Any) -> Any:
        """Plain data with a hash in place of each text that holds one of them, so that two of them still differ.

        >>> Secrets(["hush-hush"]).hash_in({"tag": "a hush-hush", "top_k": 3})
        {'tag': '[removed] 60633965185b1d5e', 'top_k': 3}
        """
        if isinstance(value, Mapping):
            return {name: self.hash_in(entry) for name, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hash_in(entry) for entry in value]
        return _hash_text(value) if isinstance(value, str) and self.found_in(value) else value

    def redact(self, text: str, *, shapes: bool = False) -> str:
        """A text without them.

        Args:
            text: Anything.
            shapes: Whether what looks like a key, a bearer token or the credentials of a URL goes too. Right for
                messages, wrong for answers, which must stay as the model gave them.

        >>> Secrets(["hunter2-hunter2"]).redact("key hunter2-hunter2 is wrong")
        'key [removed] is wrong'
        >>> Secrets().redact("GET https://me:pass@host/ with Bearer abcdef123", shapes=True)
        'GET https://[removed]@host/ with Bearer [removed]'
        >>> Secrets(["hunter2-hunter2"]).redact("refused: hunter2-hun…", shapes=True)
        'refused: [removed]…'
        """
        for form in self._forms:
            if form in text:
                text = text.replace(form, REMOVED)
        if shapes:
            text = self._redact_cut_secret(text)
            for shape, instead in _SHAPES:
                text = shape.sub(instead, text)
        return text

    def _redact_cut_secret(self, text: str) -> str:
        """A message without the beginning of a secret that was cut in the middle."""
        if not text.endswith(_CUT):
            return text
        kept = text.removesuffix(_CUT)
        for form in self._forms:
            for size in range(min(len(form), len(kept)), SHORTEST // 2 - 1, -1):
                if kept.endswith(form[:size]):
                    return f"{kept[:-size]}{REMOVED}{_CUT}"
        return text


NO_SECRETS = Secrets()


def redact_answer(answer: Answer, secrets: Secrets) -> Answer:
    """An answer in which no field holds a secret; its tokens go altogether where one is in them.

    Args:
        answer: What a model said.
        secrets: What must not be in it.

    >>> redact_answer(Answer(text="Your key is hunter2-hunter2."), Secrets(["hunter2-hunter2"])).text
    'Your key is [removed].'
    """
    said = f"{answer.text}\0{answer.model}\0{answer.thinking}\0{answer.finish}"
    if not (secrets.found_in(said) or (answer.tokens is not None and _tokens_hold(answer.tokens, secrets))):
        return answer
    changes: dict[str, Any] = {
        name: clean
        for name in ("text", "model", "thinking", "finish")
        if isinstance(value := getattr(answer, name), str) and (clean := secrets.redact(value)) != value
    }
    if answer.tokens is not None and _tokens_hold(answer.tokens, secrets):
        changes["tokens"] = None
    return msgspec.structs.replace(answer, **changes)


def _tokens_hold(tokens: tuple[Token, ...], secrets: Secrets) -> bool:
    """Whether tokens, one by one or in a row, hold a secret."""
    row = "".join(token.text for token in tokens)
    others = "\n".join(text for token in tokens for text, _ in token.alternatives)
    return secrets.found_in(row) or secrets.found_in(others)
