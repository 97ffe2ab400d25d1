"""The logs of several runs as one: every line once and behind its run, whatever becomes of the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.console.logs import following
from mlebench_console.console.logs.following import JoinedLogs, RunLog
from mlebench_console.console.logs.pager import LogCursor
from mlebench_console.console.logs.search import Pattern, search
from mlebench_console.environment.container.run_log import CUT_MARK


@pytest.fixture
def logs(tmp_path: Path) -> tuple[RunLog, RunLog]:
    return new_log(tmp_path, 1), new_log(tmp_path, 2)


def new_log(folder: Path, run_id: int) -> RunLog:
    (folder / str(run_id)).mkdir()
    return RunLog(run_id, f"run {run_id}", folder / str(run_id) / "run.log")


def prints(log: RunLog, text: bytes) -> None:
    with log.path.open("ab") as stream:
        stream.write(text)


def joined(*logs: RunLog, height: int = 24) -> JoinedLogs:
    file = JoinedLogs(logs, height)
    file.refresh()
    return file


def contents(file: JoinedLogs) -> list[str]:
    lines = file.forward(file.begin, 100_000)
    assert file.backward(file.end, 100_000) == lines
    names = [file.name_at(line.start) for line in lines]
    return [f"{name.text if name else None}: {line.text}" for name, line in zip(names, lines, strict=True)]


def test_lines_come_in_the_order_in_which_they_are_printed(
    logs: tuple[RunLog, RunLog], tmp_path: Path
) -> None:
    a, b = logs
    prints(a, b"one\n")
    prints(b, b"two\nhalf")
    file = joined(a, b, RunLog(3, "run 3", tmp_path / "gone" / "run.log"))
    assert contents(file) == ["run 1: one", "run 2: two"]
    prints(b, b" and half\n")
    assert file.refresh() and not file.refresh()
    prints(a, b"three\n")
    file.refresh()
    assert contents(file)[2:] == ["run 2: half and half", "run 1: three"]
    found = search(file, Pattern("thr"), file.begin, wanted=lambda: True)
    assert found is not None and found.text == "three"
    file.close()


def test_the_very_last_lines_of_all_share_a_page(logs: tuple[RunLog, RunLog]) -> None:
    for log in logs:
        prints(log, b"".join(b"line %d\n" % number for number in range(20)))
    shown = contents(joined(*logs, height=8))
    assert len(shown) == 40
    assert shown[-6:] == [f"run {run}: line {number}" for run in (1, 2) for number in (17, 18, 19)]


def test_a_run_that_ends_says_how_after_its_last_line(logs: tuple[RunLog, RunLog]) -> None:
    a, b = logs
    prints(a, b"no line feed")
    file = joined(a, replace(b, ending="finished"))
    assert contents(file) == ["run 2: [finished]"]
    file.renew([replace(a, ending="agent crash"), replace(b, ending="finished")])
    file.refresh()
    assert contents(file)[1:] == ["run 1: no line feed", "run 1: [agent crash]"]
    assert not file.refresh()
    file.close()


def test_a_run_that_is_launched_again_goes_on_with_its_next_attempt(
    logs: tuple[RunLog, RunLog], tmp_path: Path
) -> None:
    a, b = logs
    prints(a, b"first attempt")
    file = joined(a, b)
    again = replace(a, path=tmp_path / "again" / "run.log")
    again.path.parent.mkdir()
    prints(again, b"second attempt\n")
    file.renew([again, b])
    file.refresh()
    assert contents(file) == ["run 1: first attempt", "run 1: second attempt"]
    file.close()


def test_a_log_whose_middle_is_dropped_goes_on(logs: tuple[RunLog, RunLog]) -> None:
    a, b = logs
    a.path.write_bytes(b"head\n" + CUT_MARK)
    for start in (5, 11):
        a.path.with_name(f"run.log.{start}").write_bytes(b"seg%02d\n" % start)
    file = joined(a, b)
    assert contents(file) == ["run 1: head", "run 1: seg05", "run 1: seg11"]
    a.path.with_name("run.log.5").unlink()
    a.path.with_name("run.log.17").write_bytes(b"seg17\n")
    file.refresh()
    assert contents(file)[3:] == ["run 1: seg17"]
    file.close()


def test_of_very_many_lines_the_oldest_are_dropped(
    logs: tuple[RunLog, RunLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_MOST_KEPT", 1000)
    a, b = logs
    file = joined(a, b)
    for number in range(100):
        for log in logs:
            prints(log, b"line %03d of many\n" % number)
        file.refresh()
    shown = contents(file)
    assert 10 < len(shown) < 100
    expected = [f"run {run}: line {number:03d} of many" for number in range(100) for run in (1, 2)]
    assert shown == expected[-len(shown) :]
    file.close()


@given(
    printed=st.lists(
        st.tuples(st.integers(0, 2), st.text(alphabet="xy\n", min_size=1, max_size=8), st.booleans()),
        max_size=25,
    )
)
def test_nothing_is_lost_or_torn_whatever_is_printed_when(
    tmp_path_factory: pytest.TempPathFactory, printed: list[tuple[int, str, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    logs = [new_log(folder, number) for number in range(3)]
    file = joined(*logs)
    whole = ["", "", ""]
    for who, text, look in printed:
        prints(logs[who], text.encode())
        whole[who] += text
        if look:
            file.refresh()
    file.refresh()
    lines = contents(file)
    for number in range(3):
        mine = [line.removeprefix(f"run {number}: ") for line in lines if line.startswith(f"run {number}: ")]
        assert mine == whole[number].split("\n")[:-1]
    file.close()


def test_paging_follows_all_of_them(logs: tuple[RunLog, RunLog]) -> None:
    a, b = logs
    prints(a, b"one\n")
    cursor = LogCursor(joined(a, b), 5, lambda: True)
    assert [name and name.text for name in cursor.page().names] == ["run 1"]
    prints(b, b"two\n")
    cursor.file.refresh()
    assert [name and name.text for name in cursor.page().names] == ["run 1", "run 2"]
