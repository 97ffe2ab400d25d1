"""A field of a struct is emptied in MATLAB files as other programs write and read them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from mlebench_console.competitions.registry import get, load_task

matlab = load_task(get("multi-modal-gesture-recognition")).matlab

FRAMES = np.array([(1, "a"), (2, "b")], dtype=[("Skeleton", object), ("Note", object)])
LABELS = np.array(
    [("vattene", 1, 40), ("basta", 60, 99)], dtype=[(name, object) for name in ("Name", "Begin", "End")]
)


def file_of(*, compressed: bool, **variables: Any) -> bytes:
    stream = io.BytesIO()
    savemat(stream, variables, do_compression=compressed)
    return stream.getvalue()


@pytest.mark.parametrize("compressed", [True, False])
def test_the_field_is_empty_and_all_else_is_kept(compressed: bool) -> None:
    video = {"NumFrames": 1200, "Labels": LABELS, "Frames": FRAMES, "FrameRate": 20.0}
    content = file_of(compressed=compressed, Video=video, other=np.arange(5))
    assert b"vattene" in content or compressed
    kept = loadmat(io.BytesIO(matlab.emptied(content, "Labels")), simplify_cells=True)
    before = loadmat(io.BytesIO(content), simplify_cells=True)
    assert len(before["Video"]["Labels"]) == 2
    assert np.size(kept["Video"]["Labels"]) == 0
    assert kept["Video"]["NumFrames"] == 1200 and kept["Video"]["FrameRate"] == 20
    assert [frame["Note"] for frame in kept["Video"]["Frames"]] == ["a", "b"]
    assert kept["other"].tolist() == [0, 1, 2, 3, 4]


def test_every_element_of_a_struct_array_loses_the_field() -> None:
    content = file_of(
        compressed=False, V=np.array([("x", 1), ("y", 2)], dtype=[("Labels", object), ("n", object)])
    )
    kept = loadmat(io.BytesIO(matlab.emptied(content, "Labels")), simplify_cells=True)["V"]
    assert [(np.size(element["Labels"]), element["n"]) for element in kept] == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    "variables",
    [
        {"Labels": ["vattene"]},
        {"labels": ["vattene"]},
        {"Video": {"labels": "vattene"}},
        {"Video": {"Truth": {"Labels": "vattene"}, "Kept": "kept"}},
        {"Video": {"Parts": np.array([{"Labels": "vattene"}, np.empty(0)], dtype=object)}},
    ],
    ids=["a variable", "in lower case", "a field in lower case", "inside a struct", "inside a cell"],
)
def test_the_name_is_emptied_wherever_it_lies(variables: dict[str, Any]) -> None:
    content = file_of(compressed=False, **variables, other="kept as it is")
    emptied = matlab.emptied(content, "Labels")
    assert b"vattene" in content.replace(b"\0", b"")
    assert b"vattene" not in emptied.replace(b"\0", b"")
    kept = loadmat(io.BytesIO(emptied), simplify_cells=True)
    assert kept["other"] == "kept as it is"
    assert {name for name in kept if not name.startswith("__")} == {*variables, "other"}


def test_a_file_without_the_field_stays_as_it_is() -> None:
    content = file_of(compressed=False, Video={"NumFrames": 3}, words="Labels")
    assert matlab.emptied(content, "Labels") == content


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("size", [130, 140, 200, -9])
def test_a_file_cut_short_is_refused(compressed: bool, size: int) -> None:
    content = file_of(compressed=compressed, Video={"Labels": LABELS})
    with pytest.raises(ValueError, match="damaged"):
        matlab.emptied(content[:size], "Labels")


@pytest.mark.parametrize("content", [b"", b"MATLAB 0004", b"MATLAB 7.3 MAT-file".ljust(600), b"\x89HDF" * 99])
def test_other_formats_are_told_apart(content: bytes) -> None:
    assert not matlab.is_level_5(content)
    with pytest.raises(ValueError, match="not a MATLAB file"):
        matlab.emptied(content, "Labels")
