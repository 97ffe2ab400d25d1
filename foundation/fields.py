"""Convert values of TOML and JSON to records, nested ones included; errors name the field."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import EnumType
from functools import cache, reduce
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record")

# What SQLite stores exactly, and with room for units; neither infinite nor "not a number".
_MOST = 10**18
_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Bounds:
    """The numbers that a field allows; an annotation of its type.

    Attributes:
        expected: the allowed values, in words.
    """

    expected: str
    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf

    def allow(self, value: float) -> bool:
        """Return whether a number is finite and within the bounds."""
        return abs(value) <= _MOST and self.above < value and self.least <= value <= self.most


class FieldError(ValueError):
    """A field is unknown, is missing, or has a wrong value.

    Attributes:
        name: the field with the records around it: `metric.direction`, `defects.2.text` (counted from 1).
        expected: the allowed values, in words; empty for a field that is unknown or missing.
        is_missing: whether the field is missing.
        known: for an unknown field, the fields of its record.
    """

    def __init__(
        self, name: str, expected: str = "", *, is_missing: bool = False, known: Collection[str] = ()
    ) -> None:
        super().__init__(name)
        self.name = name
        self.expected = expected
        self.is_missing = is_missing
        self.known = tuple(known)


@cache
def fields_of(record: type) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the types of a record's fields by name, and the names of the fields that a file must have."""
    known, hints = fields(record), get_type_hints(record, include_extras=True)
    required = (one.name for one in known if one.default is MISSING and one.default_factory is MISSING)
    return {one.name: hints[one.name] for one in known}, tuple(required)


def read_fields(record: type[Record], values: Mapping[str, Any]) -> Record:
    """Return a record with values from JSON or TOML.

    Raises:
        FieldError: a field is unknown, missing or of the wrong type.
    """
    hints, required = fields_of(record)  # type: ignore[arg-type]  # a class can be hashed
    return record(**convert(hints, values, required))


@dataclass(frozen=True)
class FlatField:
    """A field of a record or of a record within it: the path to it, and its default, if it has one."""

    path: tuple[str, ...]
    default: Any = MISSING


@cache
def flat_fields(record: type) -> Mapping[str, FlatField]:
    """Return the fields of a record and of those within it by flat names, as options and documents have them.

    The flat name is a field's own, unless its metadata has another one as `flat`; that of a record within a record is
    a prefix of the names in it, by default an empty one.
    """
    hints = get_type_hints(record)
    found: dict[str, FlatField] = {}
    for one in fields(record):
        inner = hints[one.name]
        if not is_dataclass(inner):
            found[one.metadata.get("flat", one.name)] = FlatField((one.name,), one.default)
            continue
        assert isinstance(inner, type)
        for name, within in flat_fields(inner).items():
            path = (one.name, *within.path)
            found[one.metadata.get("flat", "") + name] = FlatField(path, within.default)
    return found


def flat(record: DataclassInstance) -> dict[str, Any]:
    """Return the values of a record and of those within it by their flat names."""
    return {name: reduce(getattr, one.path, record) for name, one in flat_fields(type(record)).items()}


def differences(one: DataclassInstance, other: DataclassInstance) -> dict[str, tuple[Any, Any]]:
    """Return the values in which two records of a class differ, by their flat names."""
    return {
        name: (value, others)
        for (name, value), others in zip(flat(one).items(), flat(other).values(), strict=True)
        if value != others
    }


def from_flat(record: type[Record], values: Mapping[str, Any]) -> Record:
    """Return a record with values by their flat names, the inverse of `flat`; missing ones have their defaults."""
    known = flat_fields(record)  # type: ignore[arg-type]  # a class can be hashed
    parts: dict[str, Any] = {}
    for name, value in values.items():
        *folders, last = known[name].path
        place = parts
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return _made(record, parts)


def _made(record: type[Record], parts: Mapping[str, Any]) -> Record:
    hints = get_type_hints(record)
    return record(
        **{
            name: _made(hints[name], value) if is_dataclass(hints[name]) else value
            for name, value in parts.items()
        }
    )


def convert(
    hints: Mapping[str, Any], values: Mapping[str, Any], required: Collection[str] = ()
) -> dict[str, Any]:
    """Convert each value to the type of its field; duplicates in lists are removed, required lists must not be empty.

    Raises:
        FieldError: a field is unknown, missing or of the wrong type.
    """
    for name in sorted(values.keys() - hints.keys()):
        raise FieldError(name, known=hints)
    for name in required:
        if name not in values:
            raise FieldError(name, is_missing=True)
    converted = {name: _converted(name, value, hints[name]) for name, value in values.items()}
    for name in required:
        if converted[name] == ():
            raise FieldError(name, in_words(hints[name]))
    return converted


def _converted(name: str, value: Any, hint: Any) -> Any:
    import msgspec  # imported here, because half of the commands have nothing to convert

    if is_dataclass(hint) and isinstance(value, Mapping):
        return _inner(name, hint, value)
    inner = get_args(hint)[0] if get_origin(hint) is tuple else None
    if is_dataclass(inner) and isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return tuple(_inner(f"{name}.{place}", inner, each) for place, each in enumerate(value, 1))
    try:
        found = msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise FieldError(name, in_words(hint)) from error
    if holds_nul(found):
        raise FieldError(name, f"{in_words(hint)} without NUL characters")
    if isinstance(found, int | float):
        bounds = _bounds(hint)
        if bounds is not None and not bounds.allow(found):
            raise FieldError(name, bounds.expected)
        if not abs(found) <= _MOST:
            raise FieldError(name, "a number of at most 18 digits")
    return tuple(dict.fromkeys(found)) if isinstance(found, tuple) else found


def holds_nul(value: Any) -> bool:
    """Return whether a text, or one in a list or table, has a NUL, which ends a word of a command for who reads it."""
    if isinstance(value, Mapping):
        return any(holds_nul(part) for pair in value.items() for part in pair)
    if isinstance(value, tuple | list | frozenset):
        return any(map(holds_nul, value))
    return isinstance(value, str) and "\0" in value


def why_no_variable(name: str, value: str) -> str:
    """Return why no process can have this environment variable; empty if one can."""
    if not name or "=" in name:
        return f"'{name}' is not a name of an environment variable"
    return f"the variable {name!r} has a NUL character" if holds_nul((name, value)) else ""


def _inner(name: str, record: Any, values: Mapping[str, Any]) -> Any:
    try:
        return read_fields(record, values)
    except FieldError as error:
        raise FieldError(
            f"{name}.{error.name}", error.expected, is_missing=error.is_missing, known=error.known
        ) from error


def _bounds(hint: Any) -> Bounds | None:
    return hint.__metadata__[0] if get_origin(hint) is Annotated else None


def in_words(hint: Any) -> str:
    """Return the values that a type allows, in words."""
    bounds = _bounds(hint)
    if bounds is not None:
        return bounds.expected
    if hint in _WORDS:
        return _WORDS[hint]
    if is_dataclass(hint):
        return "a table"
    origin, parts = get_origin(hint), [each for each in get_args(hint) if each not in (NoneType, Ellipsis)]
    if origin is Literal:
        return f"one of {', '.join(parts)}"
    if origin is Mapping:
        return "a table of texts" if parts[1] is str else "a table"
    if isinstance(hint, EnumType):
        return f"one of {', '.join(hint)}"
    if origin not in (tuple, frozenset):
        return " or ".join(in_words(part) for part in parts if not (part is int and float in parts))
    if isinstance(parts[0], EnumType):
        return f"a list of {', '.join(map(str, parts[0]))}"
    if is_dataclass(parts[0]):
        return f"a list of records with {', '.join(field.name for field in fields(parts[0]))}"
    return "a list of whole numbers" if parts[0] is int else "a list of texts"
