"""Text Normalization Challenge, English: written tokens to be written as they are spoken, scored by accuracy."""

import pandas as pd

from mlebench_console.competitions.kit.tasks import spoken_tokens
from mlebench_console.competitions.task import Grading, Preparation, PublicData


def prepare(job: Preparation) -> None:
    """Split the sentences."""
    spoken_tokens.prepare(job, "en")


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the sample submission."""
    return spoken_tokens.stand_in_answers(data, "en")


def grade(case: Grading) -> float:
    """Return the share of tokens whose spoken form is predicted exactly."""
    return spoken_tokens.grade(case)
