"""The files in the directory of a run's latest attempt."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.fields import NounField
from mlebench_console.console.roles import Drawing
from mlebench_console.console.sanitize import plain
from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.tui.widgets.blocks import Block, listing
from mlebench_console.console.views.run import MOST_ENTRIES, FileEntry, Listing, RunFacts, read_listing

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp


def _size_or_kind(entry: FileEntry, _drawing: Drawing) -> str:
    if entry.kind == "folder":  # whose name ends in a slash
        return ""
    return wording.size(entry.bytes) if entry.kind == "file" else entry.kind


def _changed(entry: FileEntry, drawing: Drawing) -> str:
    return "" if entry.kind == "folder" else wording.age(drawing.now - entry.changed_at)


_COLUMNS = (
    NounField[FileEntry]("name", lambda entry, _: f"{'  ' * entry.depth}{plain(entry.name)}", 10, grows=80),
    NounField[FileEntry]("size", _size_or_kind, 9, right=True, role="dim"),
    NounField[FileEntry]("changed", _changed, 7, right=True, role="dim"),
)


class FilesPane(Pane):
    """The files in the directory of the latest attempt."""

    name = "files"

    def __init__(self) -> None:
        super().__init__()
        self.data = Listing()

    def read(self, facts: RunFacts) -> Listing:
        """List the files."""
        return read_listing(facts)

    def content(self, view: PaneView) -> Iterable[Block]:  # noqa: ARG002 it shows only what it has read
        """Return the list; the names are untrusted."""
        yield listing(_COLUMNS, self.data.entries, key=lambda entry: entry.path)
        if self.data.is_cut:
            yield ((f"  only the first {MOST_ENTRIES} are shown", "dim"),)

    def opens(self, facts: RunFacts) -> bool:
        """Return whether there is a directory."""
        return facts.attempt is not None

    def open(self, app: BaseApp, facts: RunFacts, key: object) -> None:
        """Open the file under the cursor."""
        if facts.attempt is None or not isinstance(key, str):
            return
        kind = next((entry.kind for entry in self.data.entries if entry.path == key), "")
        if kind == "file":
            app.push_screen(FileScreen(Path(key)))
        else:
            app.say(f"a {kind} can't be opened" if kind else "the file no longer exists")
