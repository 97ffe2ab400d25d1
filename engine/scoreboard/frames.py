"""Evidence as a data frame, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from competitions import registry
from engine.scoreboard.evidence import Evidence
from engine.scoreboard.insight import ending_of
from engine.scoreboard.model import Measure

if TYPE_CHECKING:
    import pandas as pd


def trials_frame(evidence: Evidence) -> pd.DataFrame:
    """One line for each trial, in the order in which they count; a measure is missing where nothing counts."""
    import pandas as pd

    lines = []
    for trial in evidence.trials:
        competition = registry.get(trial.competition_id)
        lines.append(
            {
                "competition_id": trial.competition_id,
                "split": competition.complexity,
                "category": competition.category,
                "seed": trial.seed,
                "ending": ending_of(trial),
                "score": trial.score,
                **{
                    measure.value: None if trial.earned is None else trial.has(measure) for measure in Measure
                },
                "seconds": trial.seconds,
                "rerolls": trial.rerolls,
                "text": trial.text,
            }
        )
    columns = ["competition_id", "split", "category", "seed", "ending", "score"]
    columns += [*(measure.value for measure in Measure), "seconds", "rerolls", "text"]
    frame = pd.DataFrame(lines, columns=columns)
    return frame.astype(
        {measure.value: "boolean" for measure in Measure} | {"score": float, "seconds": float}
    )
