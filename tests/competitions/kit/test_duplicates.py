"""Finding equal files, and joining groups."""

from pathlib import Path

import numpy as np
import pytest

from mlebench_console.competitions.kit.splits import duplicates
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob


def test_only_files_with_equal_bytes_share_a_number(make_job: MakeJob, tmp_path: Path) -> None:
    contents = [b"one", b"two", b"one", b"four", b"", b""]
    paths = [tmp_path / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    assert duplicates.same_content(make_job(), paths).tolist() == [0, 1, 0, 2, 3, 3]


def test_a_missing_file_is_named(make_job: MakeJob, tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match=r"gone\.jpg is missing"):
        duplicates.same_content(make_job(), [tmp_path / "gone.jpg"])


def test_rows_linked_by_a_chain_of_either_number_are_joined() -> None:
    first = np.array([0, 0, 1, 2, 3, 4])
    second = np.array([5, 6, 6, 7, 8, 7])
    group = duplicates.linked(first, second)
    assert group[0] == group[1] == group[2]
    assert group[3] == group[5]
    assert len(set(group.tolist())) == 3


def test_joining_nothing_gives_nothing() -> None:
    empty = np.array([], dtype=np.intp)
    assert duplicates.linked(empty, empty).tolist() == []


def test_the_order_by_content_does_not_depend_on_names(make_job: MakeJob, tmp_path: Path) -> None:
    contents = [b"one", b"two", b"three", b"four"]
    orders = []
    for turn in (0, 1):
        names = [f"{turn}{number}" for number in (range(4) if turn else range(3, -1, -1))]
        for name, content in zip(names, contents, strict=True):
            (tmp_path / name).write_bytes(content)
        order = duplicates.ordered_by_content(make_job(), [tmp_path / name for name in sorted(names)])
        orders.append([(tmp_path / sorted(names)[place]).read_bytes() for place in order])
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(contents)
    with pytest.raises(DataProblem, match=r"gone\.jpg is missing"):
        duplicates.ordered_by_content(make_job(), [tmp_path / "gone.jpg"])
