"""From a database row to a record: columns are named as the record's fields, types follow its hints."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, fields
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from foundation.hardware import Hardware
from state.records import SweepSpec

Record = TypeVar("Record")
_Converter = Callable[[Any], Any]


def spec_to_json(spec: SweepSpec) -> str:
    """Write a sweep's specification for keeping."""
    return json.dumps(asdict(spec), sort_keys=True)


def spec_from_json(text: str) -> SweepSpec:
    """Read back what `spec_to_json` wrote; fields that are newer than the text keep their defaults."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()
    }
    return SweepSpec(**values)


def hardware_to_json(hardware: Hardware) -> str:
    """Write what an attempt ran on for keeping."""
    return json.dumps(asdict(hardware), sort_keys=True)


def _hardware_from_json(text: str) -> Hardware:
    values: dict[str, Any] = json.loads(text)
    return Hardware(**values | {"gpus": tuple(values["gpus"])})


def _as_is(value: Any) -> Any:
    return value


def _converter(hint: Any) -> _Converter:
    if isinstance(hint, UnionType):
        inner = _converter(next(part for part in get_args(hint) if part is not NoneType))
        return lambda value: None if value is None else inner(value)
    if hint is SweepSpec:
        return spec_from_json
    if hint is Hardware:
        return _hardware_from_json
    if hint is dict or get_origin(hint) is dict:
        return json.loads
    if hint is bool:
        return bool
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint
    return _as_is


# A dictionary and not functools.cache, which can't be typed for classes of a type variable.
_plans: dict[type[Any], tuple[tuple[str, _Converter], ...]] = {}


def _plan(record: type[Any]) -> tuple[tuple[str, _Converter], ...]:
    if record not in _plans:
        hints = get_type_hints(record)
        _plans[record] = tuple((field.name, _converter(hints[field.name])) for field in fields(record))
    return _plans[record]


def read_as(record: type[Record], row: sqlite3.Row) -> Record:
    """Make a record of a row that has a column for each of its fields."""
    return record(**{name: convert(row[name]) for name, convert in _plan(record)})


def read_all(record: type[Record], rows: list[sqlite3.Row]) -> list[Record]:
    """Make records of rows."""
    plan = _plan(record)
    return [record(**{name: convert(row[name]) for name, convert in plan}) for row in rows]
