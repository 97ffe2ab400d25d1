"""Results of detectors: deciding whether they are current, saving them, and taking them into the state.

A command saves results in the attempt's directory; the engine takes them from there into the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import msgspec

from mlebench_console.engine.integrity.material import ExaminedRun
from mlebench_console.engine.requests import Answer, NewResults, RecordIntegrity, ReviewFinding
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.files import reading_untrusted, write_json
from mlebench_console.foundation.problems import DataProblem, UsageProblem, writing
from mlebench_console.state import integrity, runs
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import DetectorResult, Finding, Layer, RunIntegrity

FOLDER = "integrity"
_MOST_BYTES = 16 << 20


def is_current(
    earlier: RunIntegrity | None, versions: Mapping[str, int], content: str, *, lasting: str = ""
) -> bool:
    """Return whether there are results of these detectors, in these versions, for this content.

    Args:
        earlier: the results so far; None: there are none.
        versions: of the detectors, by name.
        content: the hash of the detectors' input.
        lasting: a problem that would occur again with the same content.
    """
    for name, version in versions.items():
        result = None if earlier is None else earlier.result_of(name)
        if result is None or (result.version, result.content) != (version, content):
            return False
        if result.problem not in ("", lasting):
            return False
    return True


def save_results(examined: ExaminedRun, layer: Layer, results: Sequence[DetectorResult]) -> NewResults:
    """Save results in the attempt's directory, without changing those of the layer's other detectors.

    The request `integrity.record` with the returned value takes them into the state.
    """
    path = _path(examined.folder, layer)
    fresh = {one.detector for one in results}
    earlier: tuple[DetectorResult, ...] = ()
    with suppress(DataProblem):  # a missing or damaged file is replaced
        earlier = saved_results(examined.folder, layer)
    results = [*(one for one in earlier if one.detector not in fresh), *results]
    if path.parent.is_symlink():  # with the runtime `plain` an agent can put one there
        raise DataProblem(f"{path.parent} is a link", "results would be written elsewhere", "Remove it.")
    with writing(path):
        path.parent.mkdir(exist_ok=True)
        write_json(path, [asdict(one) for one in results], durable=False)
    return NewResults(examined.attempt.id, layer)


def saved_results(folder: Path, layer: Layer) -> tuple[DetectorResult, ...]:
    """Read the saved results of a layer from an attempt's directory.

    Raises:
        DataProblem: the file is missing or damaged.
    """
    path = _path(folder, layer)
    with reading_untrusted(path, max_bytes=_MOST_BYTES) as stream:
        content = stream.read()
    try:
        return msgspec.json.decode(content, type=tuple[DetectorResult, ...])
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataProblem(
            f"{path} can't be read", str(error), "Run the detectors again: mlebench-console integrity run"
        ) from error


class IntegrityRequests:
    """Handles the requests to record findings and to review them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def record(self, request: RecordIntegrity, _by: str) -> Answer:
        """Take saved results of attempts into the state."""
        state_dir = self._database.path.parent
        for one in request.results:
            attempt = runs.attempt(self._database, one.attempt_id)
            results = saved_results(state_dir / attempt.directory, one.layer)
            integrity.replace_results(self._database, attempt.id, one.layer, results)
        return Answer(f"results of {len(request.results)} attempts are recorded")

    def review(self, request: ReviewFinding, by: str) -> Answer:
        """Record a person's review of a finding."""
        run = runs.get(self._database, request.run_id)
        if not request.reason.strip():
            raise UsageProblem("a review needs a reason", "it is kept and disclosed with the row")
        known = integrity.of_runs(self._database, [run.id])[run.id]
        finding = finding_named(known, request.finding)
        integrity.add_review(
            self._database,
            run.id,
            finding,
            cleared=request.cleared,
            reason=request.reason.strip(),
            author=by,
            now=self._clock.now(),
        )
        verb = "cleared" if request.cleared else "confirmed"
        return Answer(f"finding {finding.key} of run {run.id} is {verb}", run.sweep_id)


def finding_named(known: RunIntegrity, key: str) -> Finding:
    """Return the finding of a run with this key, or a unique prefix of one.

    Raises:
        UsageProblem: no finding matches, or several do.
    """
    found = [one for result in known.results for one in result.findings if key and one.key.startswith(key)]
    if len(found) == 1:
        return found[0]
    why = f"{len(found)} findings begin with it" if found else ""
    step = f"'mlebench-console integrity show --runs {known.run_id}' lists its findings."
    raise UsageProblem(f"run {known.run_id} has no finding '{key}'", why, step)


def _path(folder: Path, layer: Layer) -> Path:
    return folder / FOLDER / f"{layer}.json"
