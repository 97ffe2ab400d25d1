"""Values of files and requests converted to the fields of a record; a field that is wrong is named."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

Record = TypeVar("Record")

_WORDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


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
    by_key = {name.rstrip("_"): name for name in hints}
    found = convert({key: hints[name] for key, name in by_key.items()}, values, required)
    return record(**{by_key[key]: value for key, value in found.items()})


def convert(
    hints: Mapping[str, Any], values: Mapping[str, Any], required: Collection[str] = ()
) -> dict[str, Any]:
    """Convert each value to the type of its field; a list that is required holds something, and each thing once.

    Raises:
        FieldError: a value is not known, missing or of the wrong type.
    """
    # Imported here: half of the commands read nothing.
    import msgspec

    for name in sorted(values.keys() - hints.keys()):
        raise FieldError(name)
    for name in required:
        if name not in values:
            raise FieldError(name, is_missing=True)
    converted = {}
    for name, value in values.items():
        try:
            found = msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            raise FieldError(name, _in_words(hints[name])) from error
        if found == () and name in required:
            raise FieldError(name, _in_words(hints[name]))
        converted[name] = tuple(dict.fromkeys(found)) if isinstance(found, tuple) else found
    return converted


def _in_words(hint: Any) -> str:
    """What a value of a type is; the description of an annotated type, if it has one."""
    if get_origin(hint) is Annotated:
        told = [meta.description for meta in hint.__metadata__ if getattr(meta, "description", None)]
        return str(told[0]) if told else _in_words(hint.__origin__)
    if get_origin(hint) is tuple:
        return "a list of whole numbers" if int in get_args(hint) else "a list of texts"
    if hint in _WORDS:
        return _WORDS[hint]
    return next(_in_words(part) for part in get_args(hint) if part is not type(None))
