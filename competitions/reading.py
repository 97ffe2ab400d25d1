"""Read a `competition.toml` into a `Competition`; unknown keys, wrong types and contradictions are refused.

docs/competition-toml.md, which is generated from the records in `model`, describes the file.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from mlebench_console.competitions.model import CONTENT, Competition
from mlebench_console.foundation.fields import FieldError, read_fields
from mlebench_console.foundation.problems import DataProblem

DERIVED = ("folder", "thresholds.is_lower_better")
"""Fields of the records that are derived and must not be written in the file."""

_ID = re.compile(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*")
_SUM = re.compile(rf"[0-9a-f]{{32}}|{CONTENT}[0-9a-f]{{64}}")


@cache
def read_competition(folder: Path) -> Competition:
    """Read the facts of the competition whose folder is given.

    Raises:
        DataProblem: the file is missing or not TOML; a field is unknown, missing or not of its type; or the
            facts contradict each other. The message names file and key.
    """
    path = folder / "competition.toml"
    try:
        facts = _stripped(tomllib.loads(path.read_text(encoding="utf-8")))
        _refuse_derived(facts)
        competition = read_fields(Competition, _with_derived(facts, folder))
    except FileNotFoundError as error:
        raise DataProblem(f"{path} is missing") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataProblem(f"{path} cannot be read", str(error)) from error
    except FieldError as error:
        raise _refused(path, error) from error
    contradiction = next(_contradictions(competition), None)
    if contradiction:
        raise DataProblem(f"{path} cannot be used", contradiction)
    return competition


def _refuse_derived(facts: dict[str, Any]) -> None:
    for name in DERIVED:
        table, _, key = name.rpartition(".")
        values = facts.get(table) if table else facts
        if isinstance(values, dict) and key in values:
            raise FieldError(name)


def _with_derived(facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    metric, thresholds = facts.get("metric"), facts.get("thresholds")
    if isinstance(metric, dict) and isinstance(thresholds, dict):
        thresholds = {**thresholds, "is_lower_better": metric.get("direction") == "lower"}
        return {**facts, "thresholds": thresholds, "folder": folder}
    return {**facts, "folder": folder}


def _refused(path: Path, error: FieldError) -> DataProblem:
    if error.is_missing:
        return DataProblem(f"{path} cannot be used", f"{error.name} is missing")
    if error.expected:
        return DataProblem(f"{path} cannot be used", f"{error.name} is not {error.expected}")
    if error.name == "thresholds.is_lower_better":
        step = "Remove it: direction in [metric] says it already."
    else:
        known = [key for key in error.known if key not in DERIVED]
        close = difflib.get_close_matches(error.name.rpartition(".")[2], known, 1)
        step = f"Did you mean {close[0]}?" if close else "docs/competition-toml.md lists what is."
    return DataProblem(f"{path} cannot be used", f"{error.name} is not known", step)


def _contradictions(competition: Competition) -> Iterator[str]:
    """Yield contradictions between facts that are each of the right type."""
    if competition.id != competition.folder.name:
        yield f"its id {competition.id!r} is not the folder's name"
    if not _ID.fullmatch(competition.id):
        yield f"id {competition.id!r} is not made of letters, digits and single dashes"
    cut = competition.thresholds
    better = "lower" if cut.is_lower_better else "higher"
    cuts = {"gold": cut.gold, "silver": cut.silver, "bronze": cut.bronze, "median": cut.median}
    for (first, least), (second, most) in zip(list(cuts.items())[:-1], list(cuts.items())[1:], strict=True):
        if least > most if cut.is_lower_better else least < most:
            yield (
                f"thresholds.{second} ({most:g}) is better than thresholds.{first} ({least:g}),"
                f" where metric.direction says that {better} scores are better"
            )
    for key, name, sides in (
        ("answers", competition.answers, ("private",)),
        ("sample_submission", competition.sample_submission, ("public", "private")),
        ("gold_submission", competition.files.gold_submission, ("private",)),
    ):
        parts = PurePosixPath(name or f"{sides[0]}/x").parts
        if parts[0] not in sides or len(parts) < 2 or ".." in parts:
            yield f"files.{key} ({name!r}) is not a file below {' or '.join(f'{side}/' for side in sides)}"
    sums = competition.checksums
    for side, by_name in (
        ("public", sums.public),
        ("private", sums.private),
        ("zip", {"": sums.zip or "0" * 32}),
    ):
        for name, md5 in by_name.items():
            if not _SUM.fullmatch(md5):
                yield f"checksums.{side} {name!r} is not an MD5 sum of 32 digits in lower case"
    seen = set()
    for number, defect in enumerate(competition.defects, 1):
        if not _ID.fullmatch(defect.id) or not defect.id.islower() or defect.id in seen:
            yield f"defects.{number}.id ({defect.id!r}) is not a unique name in lower case with dashes"
        if defect.treatment == "told" and defect.severity != "cosmetic":
            yield f"defects.{number}.treatment is told, which only cosmetic defects may be"
        if defect.treatment != "told" and not defect.remedy:
            yield f"defects.{number}.remedy is missing, though the defect is {defect.treatment}"
        seen.add(defect.id)


def _stripped(value: Any) -> Any:
    """Return the value with white space around texts removed, since they are often written over several lines."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return {name: _stripped(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    return value
