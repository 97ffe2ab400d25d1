"""Reading a `competition.toml` into a `Competition`; the format is described in docs/adding-a-competition.md."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from competitions.model import Checksums, Competition, Defect, Metric, Prize, Thresholds
from foundation.problems import DataProblem


def read_competition(folder: Path) -> Competition:
    """Read the facts of the competition whose folder is given.

    Raises:
        DataProblem: the file is missing, no TOML, or lacks a field.
    """
    path = folder / "competition.toml"
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        return _competition(facts, folder)
    except FileNotFoundError as error:
        raise DataProblem(f"{path} is missing") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataProblem(f"{path} cannot be read", str(error)) from error
    except KeyError as error:
        raise DataProblem(f"{path} is incomplete", f"field {error} is missing") from error


def _competition(facts: dict[str, Any], folder: Path) -> Competition:
    if facts["id"] != folder.name:
        raise DataProblem(f"{folder}/competition.toml", f"its id {facts['id']!r} is not the folder's name")
    metric, files, thresholds = facts["metric"], facts["files"], facts["thresholds"]
    checksums, obfuscation = facts.get("checksums", {}), facts.get("obfuscation", {})
    return Competition(
        id=facts["id"],
        name=facts["name"],
        category=facts["category"],
        complexity=facts["complexity"],
        kaggle_type=facts["kaggle_type"],
        awards_medals=facts["awards_medals"],
        prizes=tuple(Prize(str(prize["position"]), prize["value"]) for prize in facts.get("prizes", ())),
        metric=Metric(
            metric["name"], metric["direction"], metric["formula"].strip(), metric.get("details", "").strip()
        ),
        grader_name=facts["grader_name"],
        thresholds=Thresholds(
            gold=float(thresholds["gold"]),
            silver=float(thresholds["silver"]),
            bronze=float(thresholds["bronze"]),
            median=float(thresholds["median"]),
            num_teams=thresholds.get("num_teams"),
            is_lower_better=thresholds["is_lower_better"],
            confidence=thresholds["confidence"],
        ),
        checksums=Checksums(
            checksums.get("zip"),
            _frozen(checksums.get("public", {})),
            _frozen(checksums.get("private", {})),
        ),
        answers=files["answers"],
        sample_submission=files["sample_submission"],
        gold_submission=files.get("gold_submission"),
        parameters=_frozen(facts.get("parameters", {})),
        classes=tuple(facts.get("classes", ())),
        defects=tuple(_defect(defect) for defect in facts.get("defects", ())),
        excluded=facts.get("excluded"),
        size_gb=facts.get("size_gb"),
        needs=tuple(facts.get("needs", ())),
        hosts=tuple(obfuscation.get("hosts", ())),
        renamings=_frozen(obfuscation.get("renamings", {})),
        folder=folder,
    )


def _defect(facts: dict[str, Any]) -> Defect:
    return Defect(
        id=facts["id"],
        text=facts["text"].strip(),
        severity=facts["severity"],
        treatment=facts["treatment"],
        remedy=facts.get("remedy", "").strip(),
        known=facts.get("known"),
    )


def _frozen(table: dict[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(table))
