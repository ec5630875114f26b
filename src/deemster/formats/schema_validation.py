"""Checks a parsed file against its declared shape and words every issue.

A format is declared once, as a `msgspec.Struct` with its constraints (`msgspec.Meta`). From that one declaration come:

- the JSON Schema: `json_schema(shape)`, which `schemas/make.py` writes to disk;
- the fast path: `msgspec.convert(value, shape)` or a typed decoder, which says only yes or no;
- the messages: `check_shape(value, shape, document=...)`, which is slow, finds every issue at once, and knows lines.

So a reader tries the fast path, and asks `check_shape` only where that fails. Rules across fields (ids that repeat,
labels that a rubric must have) are no part of a shape; their reader checks them by hand.

How a struct words its messages:

- The docstring begins with a noun phrase up to the first `.`, `:`, `;` or `,`: "A sample: ..." makes "`x` is no key of
  a sample."
- `one_of: ClassVar = ("votes", "error")` on a struct says that exactly one of these keys is given.
- `Annotated[Any, any_shape(One, Other)]` is a field that holds one of several structs.
- `Meta(title="a label")` names what a value should be, where "text" or "a list" says too little.
- `Id`, `NonBlank` and `Share` are fields that several formats have.
- A string with a `pattern` stands in no union with a list or a map: msgspec 0.22 then corrupts memory. `json_schema`
  refuses it. `Meta(extra_json_schema={"pattern": ...})` is checked by `check_shape` alone and does no harm.
- Shapes forbid unknown fields (`forbid_unknown_fields=True`), so that a misspelt key is found.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta, inspect

from deemster.errors import InputError, Issue, did_you_mean, list_names, nearest
from deemster.formats.document import DEPTH, sort_issues
from deemster.formats.json_values import (
    SURROGATE,
    Path,
    is_json_key,
    name_kind,
    pointer,
    to_json_value,
    value_issues,
)
from deemster.records.field_checks import bare_shape, read_refusal

# No control characters, and something besides white space.
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$(?!\n)"
# msgspec would need 0.7 µs for this pattern, a third of the time it needs for a sample; so `is_id` checks it.
Id = Annotated[str, Meta(max_length=256, extra_json_schema={"pattern": _PRINTABLE})]
NonBlank = Annotated[str, Meta(pattern=r"\S")]
# Every tag is a slice of its own in reports.
MOST_TAGS = 1_000
Share = Annotated[float, Meta(ge=0, le=1)]
OpenShare = Annotated[float, Meta(gt=0, lt=1)]
Seed = Annotated[int, Meta(ge=0)]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/{name}"
_STRUCTS: dict[str, type[msgspec.Struct]] = {}
_NOUN = re.compile(r"[^.:;,\n]+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def is_id(text: str) -> bool:
    """Whether a text matches the pattern of `Id`, which the typed decoder does not check."""
    if text.isascii() and text.isprintable():
        return bool(text) and not text.isspace()
    return re.search(_PRINTABLE, text) is not None


class Located(Protocol):
    """Something that knows where the parts of a value stand: a `Document`, or a table."""

    def where(self, path: Path, /) -> str | None:
        """The place of a part, as `file:line`."""


def any_shape(*shapes: Any, title: str | None = None, noun: str | None = None) -> Meta:
    """Declares a field that holds one of several structs, which msgspec cannot tell apart.

    The field is `Annotated[Any, any_shape(One, Other)]`. The typed decoder takes anything for it, so its reader decodes
    each value by the struct that it means.

    Args:
        shapes: Structs and other types.
        title: What the field should be, in words.
        noun: What the field is called where it has no key.
    """
    branches: list[Any] = []
    for shape in shapes:
        (schema,), _ = msgspec.json.schema_components([shape], ref_template=_REFERENCE)
        branches += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        _STRUCTS.update((struct.__name__, struct) for struct in _structs([shape]))
    return Meta(title=title, description=noun, extra_json_schema={"anyOf": branches})


class Places(NamedTuple):
    """Finds the place of a part by a function of its path."""

    where: Callable[[Path], str | None]


def json_schema(shape: Any) -> dict[str, Any]:
    """The JSON Schema of a shape.

    Args:
        shape: A struct with its constraints, or any type that msgspec knows.
    """
    root: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    waiting = [shape]
    while waiting:
        (first, *_), found = msgspec.json.schema_components(waiting, ref_template=_REFERENCE)
        root = root or first
        parts |= found
        for struct in _structs(waiting):
            if keys := getattr(struct, "one_of", ()):
                parts[struct.__name__]["oneOf"] = [{"required": [key]} for key in keys]
        waiting = [_STRUCTS[name] for name in _names_of_references(parts) if name not in parts]
    _accept_decimals_as_numbers(parts)
    return {"$schema": DRAFT, **root, "$defs": dict(sorted(parts.items()))}


def _accept_decimals_as_numbers(value: Any) -> None:
    """Let a Decimal be a number or text: the typed decoder reads both, and msgspec declares text alone."""
    if isinstance(value, dict):
        if value.get("format") == "decimal":
            value["type"] = ["number", "string"]
        value = list(value.values())
    for entry in value if isinstance(value, list) else ():
        _accept_decimals_as_numbers(entry)


def _names_of_references(value: Any) -> set[str]:
    """The structs that a schema refers to."""
    if isinstance(value, list):
        return {name for entry in value for name in _names_of_references(entry)}
    if not isinstance(value, dict):
        return set()
    names = {name for entry in value.values() for name in _names_of_references(entry)}
    return names | ({value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set())


def decode_shape(
    value: Any, shape: Any, *, error: type[InputError], document: Located | None = None, path: Path = ()
) -> Any:
    """A value as its struct.

    Args:
        value: A JSON value.
        shape: The struct that declares its format.
        error: The class of error that is raised.
        document: Knows the lines of the value's parts.
        path: Where the value stands in the document.

    Raises:
        InputError: The value does not have the shape; every issue is given.
    """
    issues = shape_issues(value, shape, document=document, path=path)
    if issues:
        raise error(issues)
    return msgspec.convert(value, shape)


def shape_issues(value: Any, shape: Any, *, document: Located | None = None, path: Path = ()) -> list[Issue]:
    """What `check_shape` finds, which is asked only where a quick look finds that something is wrong.

    Args:
        value: What a file holds; mappings and tuples are read as its maps and lists.
        shape: The struct that declares its format.
        document: Knows the lines of the value's parts.
        path: Where the value stands in the document.
    """
    value = to_json_value(value)
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return check_shape(value, shape, document=document, path=path)
    keys = getattr(shape, "one_of", ())
    if (keys and sum(key in value for key in keys) != 1) or any(value_issues(value, path)):
        return check_shape(value, shape, document=document, path=path)
    return []


def decode_struct(
    struct: msgspec.Struct,
    shape: type[msgspec.Struct] | None = None,
    *,
    error: type[InputError],
    path: Path = (),
    changes: Mapping[str, Any] | None = None,
) -> Any:
    """The fields of a struct, as the shape that declares them.

    A struct calls this from its `__post_init__`, so that what code makes and what files hold obey one declaration.

    Args:
        struct: Has the fields of the shape, with any values.
        shape: A struct without `__post_init__`; where it is absent, the fields that the struct itself declares.
        error: The class of error that is raised.
        path: How messages name the struct, where its fields' names say too little.
        changes: Values to take in place of the struct's own.

    Raises:
        InputError: A field does not have the shape; every issue is given.
    """
    shape = shape or bare_shape(type(struct))
    fields = {name: getattr(struct, name) for name in shape.__struct_fields__}
    try:
        value = plain_value({**fields, **(changes or {})})
    except RecursionError:
        raise error(f"{_capital(_noun({'description': struct.__doc__}))} is nested too deep.") from None
    return decode_shape(value, shape, error=error, path=path)


def plain_value(value: Any) -> Any:
    """A value from Python code as a file would hold it."""
    if isinstance(value, msgspec.Struct):
        return {name: plain_value(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {key: plain_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(entry) for entry in value]
    if value is None or type(value) in (str, bool, int, float) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def check_shape(
    value: Any,
    shape: Any,
    *,
    document: Located | None = None,
    path: Path = (),
    items: str | None = None,
    is_item: bool = False,
    surrogates: bool = False,
) -> list[Issue]:
    """Everything that is wrong with the shape of a value, by line; an empty list where nothing is.

    Args:
        value: What a file holds; it need not be JSON.
        shape: The struct that declares its format.
        document: Knows the lines of the value's parts. Without it, an issue inside an item says the item's position.
        path: Where the value stands in the document.
        items: The key of the list whose entries are samples or items; issues inside one carry its id.
        is_item: Whether the value itself is a sample or an item.
        surrogates: Whether text may hold lone surrogates.
    """
    checker = _Checker(shape, path, items=items, is_item=is_item, surrogates=surrogates)
    found = checker.findings(value)

    def place(at: Path) -> str | None:
        if document is not None:
            return document.where(at)
        return pointer(at[: len(path) + 2]) if checker.is_inside_item(at) and not is_item else None

    issues = [Issue(message, place(at), checker.item_id(value, at)) for at, message in found]
    return sort_issues(dict.fromkeys(issues))


class _Checker:
    """Finds what is wrong with one value, as pairs of a path and a message."""

    def __init__(self, shape: Any, path: Path, *, items: str | None, is_item: bool, surrogates: bool) -> None:
        self._surrogates = surrogates
        self._shape = shape
        self._path = path
        self._items = items
        self._is_item = is_item
        self._schema, self._validator = _compiled(shape)
        self._value: Any = None

    def findings(self, value: Any) -> list[tuple[Path, str]]:
        # An item stands two levels deep in its file.
        most = DEPTH - 2 if self._is_item else DEPTH
        found = list(value_issues(value, self._path, depth=most, shown=self._shown, surrogates=self._surrogates))
        unreadable = {path for path, _ in found}
        # The validator takes no lone surrogates, even where the format allows them.
        clean = _without(value, self._path, unreadable, most) if found or self._surrogates else value
        self._value = clean
        for error in self._validator.iter_errors(clean):
            found += [(path, text) for path, text in self._explain(error) if path not in unreadable]
        return found or list(self._refused(value))

    def is_inside_item(self, path: Path) -> bool:
        start = len(self._path)
        return self._items is not None and path[start : start + 1] == (self._items,) and len(path) > start + 1

    def item_id(self, value: Any, path: Path) -> str | None:
        """The id of the item that a path lies in."""
        held = value
        if not self._is_item:
            if not self.is_inside_item(path):
                return None
            start = len(self._path)
            held, key = value[self._items], path[start + 1]
            if isinstance(held, dict):
                return str(key)
            held = held[key]
        name = held.get("id") if isinstance(held, dict) else None
        return name if isinstance(name, str) else None

    def _shown(self, path: Path) -> str:
        """A path as messages name it: from its item on, where it lies inside of one."""
        start = len(self._path)
        inner = path[start + 2 :] if self.is_inside_item(path) else path[start:] if self._is_item else path
        return pointer(inner) if inner else ""

    def _explain(self, error: Any) -> Iterator[tuple[Path, str]]:
        """Our sentences for one error of the validator."""
        kind = error.kind.name
        path = (*self._path, *_instance_path(self._value, error.instance_path))
        schema, keyword = self._schema_at(error.schema_path)
        value = error.instance
        name = self._shown(path)
        prefix = f"{name}: " if name else ""
        if kind == "anyOf":
            yield from self._explain_union(error, schema, path)
        elif kind == "additionalProperties":
            known = list(schema.get("properties", ()))
            for key in error.kind.unexpected:
                yield (*path, key), f"{prefix}`{key}` is no key of {_noun(schema)}. {did_you_mean(key, known)}"
        elif kind == "required":
            key = error.kind.property
            wanted = self._resolve(schema["properties"].get(key, {}))
            words = wanted.get("enum", ())
            word = "null where there is none" if _accepts_null(wanted) else f"`{words[0]}`" if len(words) == 1 else ""
            yield path, f"{prefix}`{key}` is missing{'; write ' if word else ''}{word}."
        elif kind in ("oneOf", "oneOfMultipleValid", "oneOfNotValid"):
            if not isinstance(value, dict):
                return
            keys = [key for branch in keyword for key in branch["required"]]
            given = [key for key in keys if key in value]
            if not given and any(key not in schema["properties"] for key in value):
                # The key that is meant is likely the one that is misspelt.
                return
            what = f"gives {list_names(given)}" if given else "gives none"
            yield path, f"{prefix}{_capital(_noun(schema))} has one of {list_names(keys)}; this one {what}."
        else:
            yield path, self._sentence(kind, schema, keyword, value, name)

    def _explain_union(self, error: Any, schema: Any, path: Path) -> Iterator[tuple[Path, str]]:
        """What is wrong in the branch that the value was meant for; the whole union where there is none."""
        fitting = [
            errors
            for errors in error.kind.context
            if not any(
                inner.kind.name in ("type", "enum", "const") and list(inner.instance_path) == list(error.instance_path)
                for inner in errors
            )
        ]
        options = [
            option
            for branch in schema["anyOf"]
            for option in (self._resolve(branch).get("enum") or [self._resolve(branch).get("const")])
            if isinstance(option, str)
        ]
        if fitting:
            for inner in min(fitting, key=len):
                yield from self._explain(inner)
        elif options and isinstance(error.instance, str):
            yield path, self._sentence("enum", schema, options, error.instance, self._shown(path))
        else:
            yield path, self._sentence("type", schema, None, error.instance, self._shown(path))

    def _sentence(self, kind: str, schema: Any, limit: Any, value: Any, name: str) -> str:
        """What is wrong with one value, by the keyword of the schema that it breaks."""
        name = name or _capital(_noun(schema))
        if kind in ("minLength", "pattern") and not value.strip():
            return f"{name} is blank."
        if kind == "pattern":
            return (
                f"{name} holds control characters." if _CONTROL.search(value) else f"{name} does not match `{limit}`."
            )
        if kind == "maxLength":
            return f"{name} has {len(value)} characters; at most {limit} are allowed."
        if kind in ("maxItems", "maxProperties"):
            return f"{name} has {len(value):,} entries; at most {limit:,} are allowed."
        if kind in ("minItems", "minProperties"):
            if not value:
                return f"{name} is empty."
            return f"{name} has {len(value)} {'entry' if len(value) == 1 else 'entries'}; it needs at least {limit}."
        if kind == "propertyNames":
            return f"{name} has a blank key."
        if kind in ("enum", "const") and isinstance(value, str):
            known = [str(one) for one in (limit if kind == "enum" else [limit]) if one is not None]
            folded = {word.casefold(): word for word in known}
            guess = nearest(value, folded) if len(known) > 1 else None
            hint = f" Did you mean `{folded[guess]}`?" if guess else ""
            return f"{name} must be {self._wanted(schema)}, not `{value[:80]}`.{hint}"
        wanted = self._wanted(schema)
        is_fraction = isinstance(value, float) and "whole number" in wanted
        given = f"{value!r:.40}" if is_fraction or kind not in ("type", "enum", "const") else name_kind(value)
        is_text = "text" in re.split(r"\W+", wanted)
        hint = " Quote it." if kind == "type" and is_text and isinstance(value, (int, float)) else ""
        return f"{name} must be {wanted}, not {given}.{hint}"

    def _wanted(self, schema: Any) -> str:
        """What a schema asks for, in words."""
        if "$ref" not in schema and "title" in schema and "properties" not in schema:
            return str(schema["title"])
        schema = self._resolve(schema)
        if "anyOf" in schema:
            branches = [self._resolve(branch) for branch in schema["anyOf"]]
            words = [self._wanted(branch) for branch in branches if branch.get("type") != "null"]
            return _either(list(dict.fromkeys(words)))
        options = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
        if options:
            names = [f"`{one}`" for one in options if one is not None]
            return (
                _either(names) if len(names) < 3 else f"one of {list_names(str(o) for o in options if o is not None)}"
            )
        kind = schema.get("type")
        if kind in ("integer", "number"):
            return ("a whole number" if kind == "integer" else "a number") + _bounds(schema)
        if kind == "array":
            entries = self._resolve(schema.get("items", {}))
            return "a list of texts" if entries.get("type") == "string" else "a list"
        if kind == "object":
            keys = schema.get("required", ())
            return f"a map with {_and([f'`{key}`' for key in keys])}" if keys else "a map"
        return {"string": "text", "boolean": "true or false", "null": "null"}.get(str(kind), "a JSON value")

    def _schema_at(self, steps: Any) -> tuple[Any, Any]:
        """The schema that was broken, and the value of the keyword in it."""
        schema: Any = None
        keyword: Any = self._schema
        for step in steps:
            schema, keyword = keyword, keyword[step]
        return schema, keyword

    def _resolve(self, schema: Any) -> Any:
        while "$ref" in schema:
            schema = self._schema["$defs"][schema["$ref"].rpartition("/")[2]]
        return schema

    def _refused(self, value: Any) -> Iterator[tuple[Path, str]]:
        """What the typed decoder refuses and a JSON Schema allows, such as 1.0 for a whole number."""
        try:
            msgspec.convert(value, self._shape)
        except msgspec.ValidationError as error:
            path, text = read_refusal(error)
            at = (*self._path, *path)
            yield at, f"{self._shown(at)}: {text}.".lstrip(": ")
        except UnicodeEncodeError:
            # A decimal number as text; the decoder does not say which.
            yield self._path, "A number holds a lone surrogate, which is no character."


@functools.lru_cache(maxsize=64)
def _compiled(shape: Any) -> tuple[dict[str, Any], Any]:
    import jsonschema_rs  # noqa: PLC0415 - only a file with an issue needs it

    schema = json_schema(shape)
    return schema, jsonschema_rs.validator_for(schema, offline=True)


def _instance_path(value: Any, steps: Iterable[str | int]) -> Iterator[str | int]:
    """The path that the validator names; it gives a key that is all digits as a number, and leaves an empty key out."""
    for step in steps:
        key = str(step) if isinstance(value, dict) else step
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return
        yield key


def _structs(shapes: list[Any]) -> Iterator[type[msgspec.Struct]]:
    """Every struct inside some types.

    Raises:
        TypeError: A union would crash msgspec: it holds a string with a pattern beside a list or a map.
    """
    seen: set[Any] = set()
    waiting = [*inspect.multi_type_info(shapes)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, inspect.UnionType):
            patterns = any(isinstance(branch, inspect.StrType) and branch.pattern for branch in one.types)
            if patterns and any(isinstance(branch, (inspect.CollectionType, inspect.DictType)) for branch in one.types):
                raise TypeError(f"msgspec cannot hold a pattern beside a list or a map: {one}")
        if isinstance(one, inspect.StructType):
            if one.cls in seen:
                continue
            seen.add(one.cls)
            yield one.cls
            waiting += [field.type for field in one.fields]
        else:
            names = ("types", "type", "item_type", "item_types", "key_type", "value_type")
            for part in (getattr(one, name, ()) for name in names):
                waiting += part if isinstance(part, tuple) else (part,)


def _without(value: Any, path: Path, unreadable: set[Path], depth: int) -> Any:
    """A copy with null in place of what is no JSON, and a question mark in place of a lone surrogate."""
    if isinstance(value, dict):
        if len(path) >= depth:
            return None
        entries = {key: entry for key, entry in value.items() if is_json_key(key)}
        return {key: _without(entry, (*path, key), unreadable, depth) for key, entry in entries.items()}
    if isinstance(value, list):
        if len(path) >= depth:
            return None
        return [_without(entry, (*path, at), unreadable, depth) for at, entry in enumerate(value)]
    if path in unreadable:
        return None
    return SURROGATE.sub("?", value) if isinstance(value, str) else value


def _noun(schema: Mapping[str, Any]) -> str:
    """What a struct calls its value: the first words of its docstring."""
    found = _NOUN.match(schema.get("description", ""))
    words = found[0].strip() if found else "the value"
    return words[:1].lower() + words[1:]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _accepts_null(schema: Mapping[str, Any]) -> bool:
    kinds = {"type", "anyOf", "enum", "const", "$ref", "properties"}
    return not kinds & schema.keys() or any(branch.get("type") == "null" for branch in schema.get("anyOf", ()))


def _bounds(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    words = [
        f"{word} {bound}"
        for word, bound in (("of at least", low), ("above", above), ("of at most", high), ("below", below))
        if bound is not None
    ]
    return " " + " and ".join(words) if words else ""


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
