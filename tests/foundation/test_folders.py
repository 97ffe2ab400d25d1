"""Folders are told apart by their content, and copied as a whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mlebench_console.environment.container import trees
from mlebench_console.foundation.folders import (
    content_digest,
    copy_read_only,
    make_private,
    make_writable,
    own_folder_in,
)
from mlebench_console.foundation.problems import DataProblem


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "below" / "empty").mkdir(parents=True)
    (folder / "below" / "program").write_text("#!/bin/sh\n")
    (folder / "below" / "program").chmod(0o700)
    (folder / "text").write_text("text")
    (folder / "link").symlink_to("below/program")
    (folder / "folder-link").symlink_to("below")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("x")
    return folder


def copied(source: Path, *, most_bytes: int = 1000, most_files: int = 100) -> Path:
    target = source.parent / "copy"
    copy_read_only(source, target, most_bytes=most_bytes, most_files=most_files, ignored=(".git",))
    return target


def test_a_copy_has_the_same_content_and_no_right_to_change_it(source: Path) -> None:
    copy = copied(source)
    assert content_digest(copy) == content_digest(source, ignored=(".git",))
    assert not (copy / ".git").exists() and (copy / "below" / "empty").is_dir()
    assert (copy / "link").readlink() == Path("below/program")
    modes = {name: stat.S_IMODE((copy / name).stat().st_mode) for name in ("text", "below/program", "below")}
    assert modes == {"text": modes["text"], "below/program": 0o500, "below": 0o555}
    assert modes["text"] & 0o333 == 0
    make_writable(copy)
    assert stat.S_IMODE((copy / "text").stat().st_mode) & 0o200
    assert trees.remove_tree(copy) == []


@pytest.mark.parametrize("change", ["content", "name", "right", "link", "folder"])
def test_every_change_of_content_changes_the_digest(source: Path, change: str) -> None:
    before = content_digest(source)
    match change:
        case "content":
            (source / "text").write_text("other")
        case "name":
            (source / "text").rename(source / "text2")
        case "right":
            (source / "text").chmod(0o755)
        case "link":
            (source / "folder-link").unlink()
            (source / "folder-link").symlink_to("below/empty")
        case _:
            (source / "below" / "empty").rmdir()
    assert content_digest(source) != before


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "below/../../outside"])
def test_a_link_that_leads_out_is_named(source: Path, target: str) -> None:
    (source / "out").symlink_to(target)
    with pytest.raises(DataProblem, match=f"out can't be copied: it is a link to {target}"):
        copied(source)


def test_what_is_too_large_or_no_file_is_named(source: Path) -> None:
    with pytest.raises(DataProblem, match="its files have more than 10 bytes"):
        copied(source, most_bytes=10)
    trees.remove_tree(source.parent / "copy")
    with pytest.raises(DataProblem, match="it has more than 2 files"):
        copied(source, most_files=2)
    trees.remove_tree(source.parent / "copy")
    os.mkfifo(source / "pipe")
    with pytest.raises(DataProblem, match="pipe can't be copied: it is not a file, a folder or a link"):
        copied(source)
    assert content_digest(source)  # does not wait for somebody to write into it


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_private_folder_is_closed_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        make_private(tmp_path / "above" / "new")
        (tmp_path / "open").mkdir(0o777)
        make_private(tmp_path / "open")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("above/new", "open")] == [0o700] * 2


def test_a_folder_in_which_everybody_may_write_stays_open(tmp_path: Path) -> None:
    """It is used by others too, as a machine's /tmp is."""
    tmp_path.chmod(0o1777)
    make_private(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


@pytest.mark.parametrize("squatter", ["nobody", "folder", "pipe", "link to nowhere", "link"])
def test_who_takes_the_name_of_a_folder_keeps_nobody_from_having_one(tmp_path: Path, squatter: str) -> None:
    """As any user of a host can in /dev/shm; all programs of the other find the same folder then."""
    name, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if squatter == "folder":
        name.mkdir()
        name.chmod(0o777)
    elif squatter == "pipe":
        os.mkfifo(name)
    elif squatter != "nobody":
        name.symlink_to(elsewhere if squatter == "link" else tmp_path / "nowhere")
    found = own_folder_in(tmp_path, "mine")
    assert (found == name) == (squatter == "nobody")
    assert stat.S_IMODE(found.lstat().st_mode) == 0o700 and stat.S_ISDIR(found.lstat().st_mode)
    assert own_folder_in(tmp_path, "mine") == found
    if squatter in ("pipe", "link"):
        name.unlink()  # which is no reason to look elsewhere for what was left there
        assert own_folder_in(tmp_path, "mine") == found
    assert not any(elsewhere.iterdir())
