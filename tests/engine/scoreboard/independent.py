"""MLE-bench's aggregation once more, from the rules alone: it shares no line with the code that it checks."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np


def read_row(
    runs_dir: Path, experiment_id: str, splits: dict[str, list[str]], *, pad: bool
) -> dict[str, tuple[str, int]]:
    """For each split: `mean ± SEM` of any medal, and the number of seeds."""
    with (runs_dir / "run_group_experiments.csv").open() as stream:
        groups = [row["run_group"] for row in csv.DictReader(stream) if row["experiment_id"] == experiment_id]
    paths = sorted(next((runs_dir / group).glob("*_grading_report.json")) for group in groups)
    reports = []
    for path in paths:
        content = json.loads(path.read_text())["competition_reports"]
        reports.extend(sorted(content, key=lambda report: report["competition_id"]))
    made = {}
    for name, members in splits.items():
        per_competition = {
            member: [bool(r["any_medal"]) for r in reports if r["competition_id"] == member]
            for member in members
        }
        counts = [len(found) for found in per_competition.values()]
        if pad:
            seeds = max(counts)
            for found in per_competition.values():
                found.extend([False] * (seeds - len(found)))
        else:
            seeds = min(counts)
            if seeds == 0:
                raise LookupError(f"{name} is not covered")
        table = np.array([found[:seeds] for found in per_competition.values()], dtype=float)
        rates = 100 * table.mean(axis=0)
        sem = float(np.std(rates, ddof=1) / math.sqrt(seeds)) if seeds > 1 else 0.0
        made[name] = (f"{rates.mean():.2f} ± {sem:.2f}", seeds)
    return made
