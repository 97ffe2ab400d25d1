"""Datasets prepared from the conformance vectors, and their submissions judged, once per test run."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from mlebench_console.competitions.model import Edition
from mlebench_console.engine.layout import dataset_folder
from tests.conformance.trees import VECTORS, Vector
from tests.shared import made_once


def prepared(competition_id: str, edition: Edition = "v1") -> Path:
    """The prepared folder of a competition; tests must not write to it."""
    return _prepare(competition_id, edition)


@cache
def _prepare(competition_id: str, edition: Edition) -> Path:
    vector = Vector(VECTORS / competition_id)
    raw = made_once(f"raw/{competition_id}", vector.unpack_raw)

    def make(folder: Path) -> None:
        prepare_competition(
            competition_id, data_dir=folder, raw=raw, edition=edition, parameters=vector.parameters
        )

    data = made_once(f"prepared/{competition_id}-{edition}", make)
    return dataset_folder(registry.get(competition_id), data, edition).prepared


def judgements(competition_id: str) -> tuple[Judgement, ...]:
    """Return what edition v1 makes of the submissions of a competition's vectors, case by case."""
    vector, folder = Vector(VECTORS / competition_id), prepared(competition_id)

    def make(path: Path) -> None:
        requests = (
            GradeRequest(
                vector.id, case.submission, folder, parameters=vector.parameters, answers=case.answers
            )
            for case in vector.cases()
        )
        path.write_text(json.dumps([asdict(judge(request)) for request in requests]))

    content = made_once(f"judgements/{competition_id}.json", make).read_text()
    return tuple(Judgement(**values) for values in json.loads(content))
