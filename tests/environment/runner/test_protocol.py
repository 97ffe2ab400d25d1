"""What lies in a run directory is read whoever wrote it: this version, an older one, or one that broke the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending, Started
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Collected, Order, Stop, SubmissionTaken
from mlebench_console.foundation.problems import DataProblem
from tests.environment.runner.orders import order_with

OLDER_EXIT = {
    "reason": "exited",
    "exit_code": 137,
    "signal": None,
    "started_at": 1.5,
    "ended_at": 20,
    "oom_kills": 1,
    "submission_sequence": 3,
    "submission_problem": "",
    "problem": "",
}
OLDER_WARDEN = {
    "reason": "deadline",
    "exit_code": None,
    "signal": 9,
    "started_at": 1.5,
    "ended_at": 20.5,
    "run_seconds": 19.0,
    "output_bytes": 8,
    "survivors": 2,
    "log_error": "",
    "oom_kills": 0,
}


def read_back(folder: Path, content: dict[str, Any], kind: type[Any]) -> Any:
    (folder / "record.json").write_text(json.dumps(content))
    return protocol.read(folder / "record.json", kind)


def test_endings_of_older_versions_are_read(tmp_path: Path) -> None:
    ended = read_back(tmp_path, OLDER_EXIT, Ending)
    assert (ended.exit_code, ended.ended_at, ended.submission_sequence) == (137, 20.0, 3)
    seen = read_back(tmp_path, OLDER_WARDEN, Ending)
    assert (seen.reason, seen.signal, seen.survivors) == ("deadline", 9, 2)


def test_records_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    order = order_with(variables=(("A", "1"), ("B", "")), arguments=("--x",), gpu_uuids=("GPU-a",))
    protocol.write(tmp_path / "order", order)
    assert protocol.read(tmp_path / "order", Order) == order
    ending = Ending("exited", 0, None, 1.0, 2.0, submission_sequence=1)
    for write in (protocol.write, output.write):
        write(tmp_path / "ending", ending)
        assert protocol.read(tmp_path / "ending", Ending) == ending
    started = Started(1, 2.0, 3.0, "boot", isolated=True)
    output.write(tmp_path / "started", started)
    assert protocol.read_if_there(tmp_path / "started", Started) == started
    assert protocol.read_if_there(tmp_path / "nothing", Started) is None


@pytest.mark.parametrize(
    "event",
    [
        SubmissionTaken(1.0, 2, 3.0, "abc", 4, "snapshots/2.csv"),
        Ending("stopped", None, 15, 1.0, 2.0, survivors=1, problem="why"),
        Collected(5.0),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_are_read_back_as_they_were_written(event: protocol.RunEvent) -> None:
    line = json.loads(json.dumps(protocol.event_to_line(event)))
    assert line["at"] == (event.ended_at if isinstance(event, Ending) else event.at)
    assert protocol.event_from_line(line) == event


@pytest.mark.parametrize(
    "line",
    [{}, {"kind": "unheard of", "at": 1}, {"kind": "collected"}, {"kind": "ended", "at": "noon"}],
    ids=str,
)
def test_a_line_that_is_no_event_of_this_version_is_passed_over(line: dict[str, Any]) -> None:
    assert protocol.event_from_line(line) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"by": 1, "at": 2}', '{"by": "x", "at": "noon"}'])
def test_a_damaged_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / protocol.STOP).write_text(text)
    with pytest.raises(DataProblem, match=r"stop\.json is damaged"):
        protocol.read(tmp_path / protocol.STOP, Stop)


def test_who_claims_first_is_the_only_one(tmp_path: Path) -> None:
    assert output.claim(tmp_path / "claim")
    assert not output.claim(tmp_path / "claim")
