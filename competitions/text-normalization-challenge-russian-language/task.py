"""Text Normalization Challenge, Russian: written tokens to be told as they are spoken, scored by accuracy."""

from competitions.kit.tasks import spoken_tokens
from competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the sentences."""
    spoken_tokens.prepare(job, "ru")


def grade(case: Grading) -> float:
    """The share of tokens whose spoken form is told exactly."""
    return spoken_tokens.grade(case)
