"""Facts: rules that look at one run without a model; each says what it saw, with the line or the figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.integrity.material import Subject
from engine.integrity.results import Detector, is_current, keep, look_with
from engine.options.requests import LookedAt
from foundation.clock import Clock
from state.integrity import Excerpt, Finding, Layer, RunIntegrity, Severity


def same_as_another_runs(subject: Subject) -> Iterator[Finding]:
    """Find a submission whose bytes are those of another run's."""
    own = (subject.run.sweep_id, subject.run.competition_id)
    for twin in subject.twins[:5]:
        is_own = (twin.sweep_id, twin.competition_id) == own
        severity = Severity.SUSPICIOUS if is_own else Severity.HIGH
        text = (
            f"its submission is byte for byte that of run {twin.run_id} ({twin.sweep_id}, seed {twin.seed})"
        )
        yield Finding(severity, text, (Excerpt("submission.csv", 0, 0, f"sha256 {twin.sha256}"),))


DETECTORS = (
    Detector("borrowed-submission", 1, "a submission with the bytes of another run's", same_as_another_runs),
)


def look(chosen: Sequence[Subject], known: Mapping[int, RunIntegrity], clock: Clock) -> Iterator[LookedAt]:
    """Look at runs, leave what is found beside them, and yield each that is done; those that are current are not."""
    versions = {one.name: one.version for one in DETECTORS}
    for subject in chosen:
        before = known.get(subject.run.id)
        if before is None or not is_current(before, versions, subject.content):
            yield keep(subject, Layer.FACTS, look_with(DETECTORS, Layer.FACTS, subject, clock))
