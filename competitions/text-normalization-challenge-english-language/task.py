"""Text Normalization Challenge, English: written tokens to be written as they are spoken, scored by accuracy."""

from competitions.kit.tasks import spoken_tokens
from competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the sentences."""
    spoken_tokens.prepare(job, "en")


def grade(case: Grading) -> float:
    """The share of tokens whose spoken form is predicted exactly."""
    return spoken_tokens.grade(case)
