"""Values of files and requests converted to the fields of a record; a field that is wrong is named."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import EnumType
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

Record = TypeVar("Record")

_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Bounds:
    """What numbers a field takes; written into its type by `Annotated`.

    Attributes:
        expected: what its value must be, in words.
    """

    expected: str
    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf

    def allow(self, value: float) -> bool:
        """Whether a finite number lies within them."""
        return abs(value) < math.inf and self.above < value and self.least <= value <= self.most


class FieldError(ValueError):
    """A value that does not fit: its field is not known, is missing, or is of another type.

    Attributes:
        name: the field.
        expected: what its value must be, in words; empty for a field that is not known or missing.
        is_missing: whether there is no value for it.
    """

    def __init__(self, name: str, expected: str = "", *, is_missing: bool = False) -> None:
        super().__init__(name)
        self.name = name
        self.expected = expected
        self.is_missing = is_missing


def read_fields(record: type[Record], values: Mapping[str, Any]) -> Record:
    """Make a record of values as JSON and TOML give them; `class_` is `class` there.

    Raises:
        FieldError: a value is not known, missing or of the wrong type.
    """
    required = [
        field.name.rstrip("_")
        for field in fields(record)  # type: ignore[arg-type]  # a dataclass, of which there is no type
        if field.default is MISSING and field.default_factory is MISSING
    ]
    hints = get_type_hints(record, include_extras=True)
    by_key = {field.name.rstrip("_"): field.name for field in fields(record)}  # type: ignore[arg-type]
    found = convert({key: hints[name] for key, name in by_key.items()}, values, required)
    return record(**{by_key[key]: value for key, value in found.items()})


def convert(
    hints: Mapping[str, Any], values: Mapping[str, Any], required: Collection[str] = ()
) -> dict[str, Any]:
    """Convert each value to the type of its field; a list that is required holds something, and each thing once.

    Raises:
        FieldError: a value is not known, missing or of the wrong type.
    """
    for name in sorted(values.keys() - hints.keys()):
        raise FieldError(name)
    for name in required:
        if name not in values:
            raise FieldError(name, is_missing=True)
    converted = {name: _converted(name, value, hints[name]) for name, value in values.items()}
    for name in required:
        if converted[name] == ():
            raise FieldError(name, _in_words(hints[name]))
    return converted


def _converted(name: str, value: Any, hint: Any) -> Any:
    import msgspec  # here, because half of the commands find nothing to convert

    try:
        found = msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise FieldError(name, _in_words(hint)) from error
    bounds = _bounds(hint)
    if bounds is not None and found is not None and not bounds.allow(found):
        raise FieldError(name, bounds.expected)
    return tuple(dict.fromkeys(found)) if isinstance(found, tuple) else found


def _bounds(hint: Any) -> Bounds | None:
    return hint.__metadata__[0] if get_origin(hint) is Annotated else None


def _in_words(hint: Any) -> str:
    """What a value of a type is."""
    bounds = _bounds(hint)
    if bounds is not None:
        return bounds.expected
    if hint in _WORDS:
        return _WORDS[hint]
    parts = [part for part in get_args(hint) if part not in (NoneType, Ellipsis)]
    if get_origin(hint) not in (tuple, frozenset):
        return _in_words(parts[0])
    if isinstance(parts[0], EnumType):
        return f"a list of {', '.join(map(str, parts[0]))}"
    if is_dataclass(parts[0]):
        return f"a list of records with {', '.join(field.name for field in fields(parts[0]))}"
    return "a list of whole numbers" if parts[0] is int else "a list of texts"
