"""The table of all keys of the console; bindings, footer, help and the names of keys are derived from it.

`docs/keys.md` is generated from it too. `terminal` keeps keys that arrive in bursts in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from textual.binding import Binding, BindingType
from textual.keys import format_key

from mlebench_console.foundation.problems import UsageProblem

Context = Literal[
    "app",
    "list",
    "matrix",
    "log",
    "file",
    "logs",
    "code",
    "diff",
    "overview",
    "sweep",
    "run",
    "submissions",
    "data",
    "dataset",
    "grade",
    "board",
    "experiment",
    "plots",
    "compare",
    "export",
    "host",
    "launch",
    "events",
    "timeline",
    "integrity",
    "settings",
    "field",
    "welcome",
    "help",
    "confirm",
    "classify",
]


@dataclass(frozen=True)
class Key:
    """An action in one context, and the keys that trigger it.

    Attributes:
        id: the name by which config.toml rebinds it.
        named: Textual's names of the keys, separated by spaces.
        does: Textual's action.
        label: the word in the footer, for what the key shows or does.
        help: the sentence in the help.
        footer: its position in the footer, or None if it is only in the help.
        changes: whether it changes anything; it does nothing in a read-only console.
        label_on: the word in its place while that is shown already, for what comes back instead.
    """

    id: str
    named: str
    does: str
    label: str
    help: str
    footer: int | None = None
    changes: bool = False
    label_on: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Textual's names of the keys."""
        return tuple(self.named.split())

    @property
    def context(self) -> str:
        """The context in which the key works: the first part of its id."""
        return self.id.partition(".")[0]

    @property
    def opens_field(self) -> bool:
        """Whether it opens an input field."""
        return self.does in ("filter", "search") or self.does.startswith(
            ("ask(", "review(", "app.command_line", "app.annotate")
        )


# The numbered screens: name, key, title and description.
SCREENS: tuple[tuple[str, str, str, str], ...] = (
    ("overview", "1", "Overview", "What needs you, and how far sweeps are"),
    ("sweep", "2", "Sweep", "One sweep: its competitions and seeds"),
    ("data", "3", "Data", "Datasets and their preparation"),
    ("grade", "4", "Grade", "Grade one submission file"),
    ("board", "5", "Board", "Scoreboard beside the published rows"),
    ("host", "6", "Host", "The machine, and what runs use of it"),
    ("launch", "7", "Launch", "Plan and launch a sweep"),
    ("events", "8", "Events", "Everything that happened"),
    ("settings", "9", "Settings", "Appearance and notifications"),
)
# Defines a key that changes something.
_change = partial(Key, changes=True)
TABLE: tuple[Key, ...] = (
    # Everywhere
    *(Key(f"app.{name}", key, f"app.go('{name}')", name, about) for name, key, _title, about in SCREENS),
    Key("app.command", "colon", "app.command_line", "command", "Command line with completion", 90),
    Key("app.help", "question_mark f1", "app.help", "help", "The keys of this screen", 91),
    _change("app.undo", "u", "app.undo", "undo", "Undo a stop or a relaunch, within seconds"),
    Key(
        "app.redraw",
        "f3",
        "app.redraw",
        "redraw",
        "Draw everything anew, if something else wrote on the terminal",
    ),
    Key("app.theme", "f2", "app.next_theme", "theme", "Switch to the next theme"),
    Key("app.quit", "q ctrl+q", "app.leave", "quit", "Close the console; the engine keeps running", 92),
    # Lists and the matrix
    Key("list.down", "down j", "cursor(1)", "down", "One line down"),
    Key("list.up", "up k", "cursor(-1)", "up", "One line up"),
    Key("list.page_down", "pagedown ctrl+d", "page(1)", "page down", "One page down"),
    Key("list.page_up", "pageup ctrl+u", "page(-1)", "page up", "One page up"),
    Key("list.top", "g home", "edge(-1)", "top", "To the first line"),
    Key("list.bottom", "G end", "edge(1)", "bottom", "To the last line"),
    Key("list.open", "enter", "open", "open", "Open what is under the cursor"),
    Key("matrix.left", "left", "column(-1)", "left", "One column to the left"),
    Key("matrix.right", "right", "column(1)", "right", "One column to the right"),
    # Overview
    Key(
        "overview.open", "enter", "open", "open", "Open what the line is about; of a group, list its runs", 1
    ),
    Key("overview.next", "f", "next", "next", "To the next thing that needs you", 2),
    _change("overview.relaunch", "r", "relaunch", "relaunch", "Relaunch the failed run of the line", 3),
    _change("overview.regrade", "ctrl+g", "regrade", "regrade", "Grade the run of the line again", 3),
    _change(
        "overview.relaunch_all", "R", "relaunch_all", "relaunch all", "Relaunch all runs of this cause", 3
    ),
    Key("overview.log", "l", "log", "log", "The log of the run of the line, or of its newest run", 5),
    _change(
        "overview.acknowledge", "a", "ask('acknowledge')", "acknowledge", "Acknowledge it, with a reason", 4
    ),
    _change(
        "overview.snooze", "z", "ask('snooze')", "snooze", "Acknowledge it for some time, with a reason", 6
    ),
    _change("overview.take_back", "A", "take_back", "take back", "Take an acknowledgement back"),
    Key(
        "overview.acknowledged",
        "v",
        "acknowledged",
        "acknowledged",
        "Show or hide what is acknowledged",
    ),
    Key("overview.timeline", "t", "timeline", "timeline", "The timeline of the line's sweep, or of all", 8),
    Key(
        "overview.runs", "slash", "group_runs", "its runs", "The runs of the line's cause, in their sweep", 7
    ),
    _change("overview.note", "n ctrl+n", "app.annotate('note')", "note", "Write a note on the run or sweep"),
    _change(
        "overview.tag",
        "number_sign ctrl+t",
        "app.annotate('tag')",
        "tag",
        "Tag the run or sweep of the line",
    ),
    Key(
        "overview.clone", "C", "app.command_line('clone')", "clone", "Launch a sweep like the one of the line"
    ),
    # Sweep
    Key("sweep.open", "enter", "open", "run", "Open the run under the cursor", 1),
    Key("sweep.log", "l", "log", "log", "The run's log", 2),
    Key("sweep.mark", "space", "mark", "mark", "Mark or unmark the run", 3),
    _change("sweep.relaunch", "r", "relaunch", "relaunch", "Relaunch the marked runs, or this one", 4),
    _change("sweep.stop", "s", "stop", "stop", "Stop the marked runs, or this one", 5),
    Key(
        "sweep.filter",
        "slash",
        "filter",
        "filter",
        "Filter by words, or state: class: cause: tag: note: seed: outcome:",
        6,
    ),
    Key("sweep.failed", "f", "next_failed", "next failed", "To the next run that failed or that needs you"),
    Key(
        "sweep.dense",
        "W",
        "dense",
        "dense",
        "All competitions at once, seeds as signs; or the matrix again",
        label_on="matrix",
    ),
    Key(
        "sweep.view", "v", "view", "table", "Switch between the matrix and a flat table", 8, label_on="matrix"
    ),
    Key("sweep.mark_row", "m", "mark_row", "mark row", "Mark all shown runs of this competition"),
    Key("sweep.mark_all", "a", "mark_failed", "mark failed", "Mark every shown run that failed"),
    Key("sweep.previous", "left_square_bracket", "step(-1)", "previous sweep", "To the previous sweep"),
    Key("sweep.next", "right_square_bracket", "step(1)", "next sweep", "To the next sweep"),
    Key("sweep.mark_range", "M", "mark_range", "mark range", "Mark everything from the last mark to here"),
    _change("sweep.regrade", "ctrl+g", "regrade", "regrade", "Grade again the runs whose grading has failed"),
    _change("sweep.classify", "c", "classify", "class", "Correct the class of failed runs", 5),
    Key("sweep.order", "o", "order", "order", "Show the rows in the next order"),
    Key("sweep.turn", "O", "turn", "reverse", "Reverse the order"),
    Key("sweep.logs", "L", "logs", "logs", "The logs of the marked runs together", 5),
    _change("sweep.pause", "p", "pause", "pause", "Pause the sweep: no new run starts; or resume it"),
    Key("sweep.diff", "d", "diff", "diff", "Compare code and configuration of the two marked runs", 5),
    Key("sweep.timeline", "t", "timeline", "timeline", "The timeline of its attempts", 7),
    _change(
        "sweep.note",
        "n ctrl+n",
        "app.annotate('note')",
        "note",
        "Write a note on the marked runs, or this one",
    ),
    _change(
        "sweep.tag",
        "number_sign ctrl+t",
        "app.annotate('tag')",
        "tag",
        "Tag the marked runs, or this one",
    ),
    _change(
        "sweep.note_sweep", "N", "app.annotate('note', 'sweep')", "note sweep", "Write a note on the sweep"
    ),
    _change("sweep.tag_sweep", "T", "app.annotate('tag', 'sweep')", "tag sweep", "Tag the sweep"),
    Key("sweep.clone", "C", "app.command_line('clone')", "clone", "Launch a sweep like this one"),
    Key("sweep.integrity", "i", "integrity", "integrity", "What detectors have found in its runs"),
    Key(
        "sweep.detail", "w", "detail", "details", "Show or hide the details beside the list (wide terminals)"
    ),
    Key("sweep.back", "escape", "back", "back", "Clear marks, then the filter"),
    # Run
    Key("run.next", "tab", "pane(1)", "pane", "The next pane", 1),
    Key("run.previous", "shift+tab", "pane(-1)", "previous pane", "The pane before"),
    _change("run.relaunch", "r", "relaunch", "relaunch", "Relaunch this run", 3),
    _change("run.stop", "s", "stop", "stop", "Stop this run", 3),
    Key("run.copy", "Y", "copy", "copy path", "Copy the path of the run's directory"),
    Key("run.open", "enter", "open", "open", "Open the file or snapshot under the cursor", 2),
    Key("run.code", "v", "code", "code", "The code at the submission under the cursor, or at the best", 8),
    Key(
        "run.diff", "d", "diff", "diff", "Compare the marked submissions, or this one with the one before", 9
    ),
    _change("run.regrade", "ctrl+g", "regrade", "regrade", "Grade again, if grading has failed"),
    _change("run.classify", "c", "classify", "class", "Correct the class of a failure", 3),
    _change("run.note", "ctrl+n", "app.annotate('note')", "note", "Write a note on this run"),
    _change("run.tag", "ctrl+t", "app.annotate('tag')", "tag", "Tag this run"),
    Key("run.back", "escape", "back", "back", "Back to where you came from", 7),
    Key("submissions.mark", "space", "mark", "mark", "Mark a submission, to compare it with another", 10),
    # Log
    Key("log.down", "down j", "scroll_lines(1)", "down", "One line down"),
    Key("log.up", "up k", "scroll_lines(-1)", "up", "One line up; following stops"),
    Key("log.page_down", "pagedown space ctrl+d", "scroll_pages(1)", "page down", "One page down"),
    Key("log.page_up", "pageup b ctrl+u", "scroll_pages(-1)", "page up", "One page up"),
    Key("log.top", "g home", "top", "top", "To the beginning"),
    Key("log.bottom", "G end F", "bottom", "end", "To the end, and follow", 5),
    Key("log.left", "left", "sideways(-20)", "left", "To the left"),
    Key("log.right", "right", "sideways(20)", "right", "To the right"),
    Key("log.wrap", "w", "wrap", "wrap", "Wrap long lines, or cut them", 6),
    Key("log.search", "slash", "ask('search')", "search", "Search for a regular expression", 4),
    Key("log.filter", "ampersand", "ask('filter')", "only", "Show only lines with a regular expression"),
    Key("log.next", "n", "hit(1)", "next hit", "To the next hit", 2),
    Key("log.previous", "N", "hit(-1)", "previous", "To the previous hit", 4),
    Key("log.next_error", "e", "error(1)", "next error", "To the next line that looks like an error"),
    Key("log.previous_error", "E", "error(-1)", "previous error", "To the previous such line"),
    Key("log.numbers", "number_sign", "numbers", "numbers", "Number the lines"),
    Key("log.times", "t", "times", "times", "Show when each line was printed"),
    Key("log.moment", "at T", "ask('time')", "to a time", "To a time of day, or so far into the run"),
    Key("log.mark", "m", "mark", "mark", "Begin a selection at the page's top, or give it up"),
    Key("log.copy", "y", "copy", "copy", "Copy the selection, or the page, to the clipboard"),
    Key("log.save", "S", "ask('save')", "save", "Save the selection, or the page, to a file"),
    Key("log.pager", "o", "pager", "pager", "Open the log in $PAGER"),
    # Logs of several runs
    Key("logs.back", "escape", "back", "back", "Back to the sweep", 1),
    # File
    Key("file.back", "escape", "back", "back", "Back to the run", 1),
    Key("file.copy", "Y", "copy", "copy path", "Copy the path of the file"),
    # Code
    Key("code.open", "enter", "open", "open", "Open the file under the cursor", 1),
    Key("code.before", "left_square_bracket", "step(-1)", "before", "The code at the submission before", 2),
    Key(
        "code.after", "right_square_bracket", "step(1)", "after", "The code at the next submission, or now", 3
    ),
    Key("code.diff", "d", "diff", "diff", "Compare with the submission before", 4),
    Key("code.back", "escape", "back", "back", "Back", 5),
    # Comparing code
    Key("diff.open", "enter", "open", "lines", "To the lines of the file under the cursor", 1),
    Key("diff.next", "n", "file(1)", "next file", "To the next file", 2),
    Key("diff.previous", "N", "file(-1)", "previous file", "To the file before"),
    Key(
        "diff.beside",
        "v",
        "beside",
        "side by side",
        "Side by side, or one below the other",
        3,
        label_on="one below the other",
    ),
    Key("diff.wrap", "w", "wrap", "wrap", "Wrap long lines, or cut them", 4),
    Key("diff.swap", "x", "swap", "swap", "Swap the two", 5),
    Key("diff.back", "escape", "back", "back", "Back", 6),
    # Datasets
    Key("data.open", "enter", "open", "detail", "Everything about the dataset under the cursor", 1),
    Key("data.mark", "space", "mark", "mark", "Mark or unmark the dataset", 2),
    _change("data.prepare", "p", "act('prepare')", "prepare", "Prepare the marked datasets, or this one", 3),
    _change(
        "data.raw", "R", "ask('raw')", "from raw", "Prepare from a folder or zip of raw data on this disk"
    ),
    _change("data.stop", "s", "act('stop')", "stop", "Stop preparing; what is downloaded stays", 4),
    _change("data.retry", "r", "act('retry')", "retry", "Try again what failed", 5),
    _change(
        "data.check",
        "c K",  # `k` alone moves up here as in every list
        "act('check')",
        "check again",
        "Ask Kaggle again, after the rules were accepted",
        6,
    ),
    _change("data.verify", "v", "act('verify')", "verify", "Compare with the manifest and known checksums"),
    _change("data.verify_deep", "V", "act('verify_deep')", "verify all", "Read every file and compare it"),
    _change("data.first", "plus", "act('first')", "first", "Prepare it before all others that wait"),
    _change("data.prune", "x", "act('prune')", "prune", "Remove zips, raw data and leftovers"),
    _change("data.prune_all", "X", "act('prune_all')", "remove", "Remove the prepared data too"),
    Key("data.copy_url", "y", "act('copy_urls')", "copy URL", "Copy where the rules are accepted", 6),
    Key("data.copy_folder", "Y", "copy_folder", "copy path", "Copy the path of its folder"),
    Key("data.filter", "slash", "filter", "filter", "Filter by words", 7),
    Key("data.mark_range", "M", "mark_range", "mark range", "Mark everything from the last mark to here"),
    Key("data.mark_all", "a", "mark_all", "mark all", "Mark everything that is shown, or unmark it"),
    Key("data.detail", "w", "detail", "details", "Show or hide the details beside the list (wide terminals)"),
    Key("data.back", "escape", "back", "back", "Clear marks, then the filter"),
    # One dataset
    Key("dataset.back", "escape", "back", "back", "Back to the list", 1),
    _change("dataset.prepare", "p", "act('prepare')", "prepare", "Prepare it", 2),
    _change("dataset.stop", "s", "act('stop')", "stop", "Stop preparing it", 3),
    _change("dataset.retry", "r", "act('retry')", "retry", "Try again, if it failed", 4),
    _change("dataset.check", "c K", "act('check')", "check again", "Ask Kaggle again", 5),
    _change(
        "dataset.verify", "v", "act('verify')", "verify", "Compare with the manifest and known checksums", 6
    ),
    _change("dataset.verify_deep", "V", "act('verify_deep')", "verify all", "Read every file and compare it"),
    _change("dataset.first", "plus", "act('first')", "first", "Prepare it before all others that wait"),
    _change("dataset.prune", "x", "act('prune')", "prune", "Remove zip, raw data and leftovers", 7),
    _change("dataset.prune_all", "X", "act('prune_all')", "remove", "Remove the prepared data too"),
    Key("dataset.copy_url", "y", "act('copy_urls')", "copy URL", "Copy where its rules are accepted", 8),
    Key("dataset.copy_folder", "Y", "copy_folder", "copy path", "Copy the path of its folder"),
    # Grade
    Key("grade.next", "tab", "app.focus_next", "next field", "To the next field", 1),
    Key(
        "grade.watch",
        "f5 ctrl+g",
        "watch",
        "watch",
        "Grade again whenever the file changes, or no longer",
        3,
        label_on="stop watching",
    ),
    Key("grade.edition", "f6", "edition", "edition", "Grade by the other edition", 4),
    Key("grade.run", "enter", "submit", "grade", "Grade the file", 2),
    Key("grade.back", "escape", "back", "leave field", "Leave the field, so that digits switch screens", 5),
    # Scoreboard
    Key(
        "board.open", "enter", "open", "competitions", "Open the experiment under the cursor on that split", 1
    ),
    Key("board.export", "e", "export", "export", "Preview the row's export, then write it", 2),
    Key("board.mark", "space", "mark", "mark", "Mark an experiment, to compare it with another"),
    Key("board.compare", "c", "compare", "compare", "Compare the marked experiments by competition", 4),
    Key("board.sort", "s", "sort", "sort", "Sort by the column under the cursor; again: reverse", 5),
    Key("board.turn", "S", "turn", "reverse", "Reverse the order"),
    Key("board.filter", "slash", "filter", "filter", "Filter by words", 6),
    Key("board.pad", "p", "pad", "pad", "Count lost and missing runs as no medal, or leave their seeds out"),
    Key(
        "board.detail", "w", "detail", "details", "Show or hide the details beside the list (wide terminals)"
    ),
    Key("board.back", "escape", "back", "back", "Clear marks, then the filter"),
    # One experiment
    Key("experiment.open", "enter", "open", "run", "Open the run under the cursor", 1),
    Key("experiment.export", "e", "export", "export", "Preview the export of its row", 2),
    Key("experiment.plots", "p", "plots", "plots", "Its plots", 5),
    Key("experiment.column", "v", "column", "split", "Show the next split", 3),
    Key("experiment.integrity", "i", "integrity", "integrity", "What detectors have found in its runs", 6),
    Key("experiment.back", "escape", "back", "back", "Back to the scoreboard", 4),
    # Its plots
    Key("plots.back", "escape p", "back", "competitions", "Back to its competitions", 1),
    Key("plots.export", "e", "export", "export", "Preview the export of its row", 2),
    # Comparing
    Key("compare.measure", "m", "measure", "measure", "Compare by the next measure", 1),
    Key(
        "compare.everything",
        "v",
        "everything",
        "all",
        "All competitions, or what decides",
        2,
        label_on="what decides",
    ),
    Key("compare.swap", "x", "swap", "swap", "Swap the two", 3),
    Key("compare.back", "escape", "back", "back", "Back to the scoreboard", 4),
    # Exporting
    Key("export.format", "tab f", "form(1)", "format", "Markdown, CSV, JSON or LaTeX", 1),
    Key("export.format_before", "shift+tab", "form(-1)", "format before", "The format before"),
    Key("export.copy", "y", "copy", "copy", "Copy it to the terminal's clipboard", 2),
    _change("export.write", "w", "write", "write", "Write it to a file", 3),
    _change("export.bundle", "b", "bundle", "bundle", "Write the bundle of its reports", 6),
    Key("export.agent", "n", "ask('agent')", "name", "Type the agent's name in the row", 5),
    Key("export.models", "l", "ask('llms')", "models", "Type the models that it used", 4),
    Key("export.pad", "p", "pad", "pad", "Count lost and missing runs as no medal, or leave their seeds out"),
    Key("export.back", "escape", "back", "back", "Back", 7),
    # Host
    Key(
        "host.open",
        "enter",
        "open",
        "open",
        "Open the resources of the run; on a node, show only its runs",
        1,
    ),
    # Launch
    _change("launch.launch", "ctrl+l", "launch", "launch", "Launch the sweep", 1),
    Key("launch.dry", "ctrl+t", "dry_run", "dry run", "Show in which order and when runs would start", 2),
    Key(
        "launch.prepare",
        "ctrl+r",
        "prepare",
        "prepare data",
        "Prepare what is missing first",
        3,
        label_on="don't prepare",
    ),
    _change("launch.build", "ctrl+b", "build", "build", "Build the images that are missing", 4),
    _change("launch.engine", "ctrl+n", "engine", "start engine", "Start the engine", 3),
    Key("launch.back", "escape", "back", "leave field", "Leave the field, so that digits switch screens", 6),
    Key(
        "launch.load",
        "ctrl+o",
        "ask('load')",
        "load",
        "Fill the form in from a file as 'sweep launch' reads it",
    ),
    Key("launch.save", "ctrl+s", "ask('save')", "save", "Write the form as such a file"),
    Key("launch.clear", "f8", "clear", "clear", "Make the form as it was at first"),
    # Fields of a form
    Key("field.complete", "right", "complete", "complete", "Take what is suggested behind the cursor", 5),
    Key("field.next", "tab down", "app.focus_next", "next field", "To the next field"),
    Key("field.previous", "shift+tab up", "app.focus_previous", "field before", "To the field before"),
    # Events
    Key("events.open", "enter", "open", "open", "Go to what the event is about", 1),
    Key(
        "events.filter",
        "slash",
        "filter",
        "filter",
        "Filter by words, or sweep: kind: sev: comp: seed: run:",
        2,
    ),
    Key("events.back", "escape", "back", "back", "Clear the filter"),
    # Timeline
    Key("timeline.open", "enter", "open", "run", "Open the run of the chosen attempt", 1),
    Key("timeline.log", "l", "log", "log", "The log of its run", 2),
    Key("timeline.left", "left h", "beside(-1)", "before", "The attempt before it on the slot"),
    Key("timeline.right", "right", "beside(1)", "after", "The attempt after it on the slot"),
    Key("timeline.up", "up k", "across(-1)", "slot above", "The attempt at that time on the slot above"),
    Key("timeline.down", "down j", "across(1)", "slot below", "The attempt at that time on the slot below"),
    Key("timeline.page_up", "pageup ctrl+u", "across(-8)", "slots above", "Eight slots up"),
    Key("timeline.page_down", "pagedown ctrl+d", "across(8)", "slots below", "Eight slots down"),
    Key("timeline.first", "home g", "edge(-1)", "first", "The attempt that began first"),
    Key("timeline.last", "end G", "edge(1)", "last", "The attempt that began last"),
    Key(
        "timeline.failed",
        "f",
        "next_failed",
        "next failed",
        "The latest failed attempt, then earlier ones",
        3,
    ),
    Key("timeline.zoom_in", "plus equals_sign", "zoom(1)", "closer", "See half of the time", 4),
    Key("timeline.zoom_out", "minus", "zoom(-1)", "wider", "See twice the time", 5),
    Key("timeline.whole", "0", "whole", "whole", "See all of the time", 6),
    Key("timeline.earlier", "comma less_than_sign", "scroll(-1)", "earlier", "See earlier time"),
    Key("timeline.later", "full_stop greater_than_sign", "scroll(1)", "later", "See later time"),
    Key("timeline.previous", "left_square_bracket", "step(-1)", "previous sweep", "To the previous sweep"),
    Key("timeline.next", "right_square_bracket", "step(1)", "next sweep", "To the next sweep, then all", 7),
    Key("timeline.back", "escape", "back", "back", "Back to where you came from", 8),
    # Integrity
    Key("integrity.open", "enter", "open", "open", "Open the code at the passage, or else the run", 1),
    Key("integrity.log", "l", "log", "log", "The run's log", 2),
    _change(
        "integrity.clear", "c", "review('clear')", "clear", "Clear the finding, with a reason that is kept", 3
    ),
    _change(
        "integrity.confirm", "C", "review('confirm')", "confirm", "Confirm the finding, with a reason", 4
    ),
    Key(
        "integrity.notes",
        "v",
        "notes",
        "notes",
        "Show notes too, or only what somebody should look at",
        5,
        label_on="hide notes",
    ),
    Key("integrity.filter", "slash", "filter", "filter", "Filter by words", 6),
    Key("integrity.back", "escape", "back", "back", "Clear the filter, then back", 7),
    # Settings
    Key("settings.change", "enter", "open", "change", "Change the line", 1),
    Key(
        "settings.reset",
        "d",
        "reset",
        "default",
        "Remove it from config.toml, so that its default applies",
        2,
    ),
    Key("settings.filter", "slash", "filter", "filter", "Filter by words", 3),
    Key("settings.back", "escape", "back", "back", "Clear the filter"),
    # Welcome
    _change("welcome.demo", "d", "demo", "demo", "Open the demo: it runs by itself", 1),
    Key("welcome.grade", "s", "app.go('grade')", "grade a submission", "Grade one submission file", 2),
    _change("welcome.engine", "e", "engine", "start engine", "Start the engine on this state", 3),
    # Help
    Key("help.search", "slash", "search", "search", "Show only what has these words", 1),
    Key("help.down", "down j", "box('scroll_down')", "down", "One line down"),
    Key("help.up", "up k", "box('scroll_up')", "up", "One line up"),
    Key("help.page_down", "pagedown space ctrl+d", "box('scroll_page_down')", "page down", "One page down"),
    Key("help.page_up", "pageup b ctrl+u", "box('scroll_page_up')", "page up", "One page up"),
    Key("help.top", "g home", "box('scroll_home')", "top", "To the beginning"),
    Key("help.bottom", "G end", "box('scroll_end')", "bottom", "To the end"),
    Key("help.close", "escape question_mark f1 q enter", "close", "close", "Clear the search, then close", 2),
    # Confirmation
    Key("confirm.yes", "y", "answer('yes')", "yes", "Do it", 1),
    Key(
        "confirm.free",
        "f",
        "answer('free')",
        "only free",
        "Do it only where it costs nothing, if asked so",
        3,
    ),
    Key("confirm.no", "n escape q", "answer('no')", "no", "Leave it", 2),
    Key("confirm.choose", "tab right down", "choose(1)", "next", "Choose the next answer"),
    Key("confirm.choose_back", "shift+tab left up", "choose(-1)", "previous", "Choose the answer before"),
    Key("confirm.take", "enter", "take", "take", "Take the chosen answer, which is no at first"),
    # Correcting a class
    Key("classify.down", "down tab", "choose(1)", "next", "The next class"),
    Key("classify.up", "up shift+tab", "choose(-1)", "previous", "The class before"),
    Key("classify.leave", "escape", "leave", "leave", "Leave everything as it was"),
)


_NAMES = {"pagedown": "PgDn", "pageup": "PgUp"}


@dataclass(frozen=True)
class KeyTable:
    """The keys of this console: the table with the operator's changes."""

    keys: tuple[Key, ...] = TABLE

    def of(self, *contexts: Context) -> tuple[Key, ...]:
        """Return the keys of the given contexts, in the order of the contexts."""
        return tuple(key for context in contexts for key in self.keys if key.context == context)

    def named(self, name: str) -> Key:
        """Return the key with an id."""
        return next(key for key in self.keys if key.id == name)

    def footer(self, *contexts: Context) -> tuple[Key, ...]:
        """Return the keys that the footer shows in the given contexts, in its order."""
        found = [key for key in self.of(*contexts) if key.footer is not None]
        return tuple(sorted(found, key=lambda key: key.footer or 0))

    def keymap(self) -> dict[str, str]:
        """Return the rebound keys as a Textual keymap."""
        return {
            key.id: ",".join(key.keys)
            for key, original in zip(self.keys, TABLE, strict=True)
            if key.keys != original.keys
        }


def bindings(*contexts: Context) -> list[BindingType]:
    """Return Textual bindings for the keys of the given contexts; a keymap rebinds them by their ids."""
    return [
        Binding(",".join(key.keys), key.does, key.label, show=False, id=key.id)
        for key in KeyTable().of(*contexts)
    ]


def key_names(table: KeyTable, *, ascii_only: bool = False) -> Callable[[str], str]:
    """Return a function that names the first key of an action, given the action's id."""
    first = {key.id: key.keys[0] for key in table.keys}
    return lambda name: key_name(first[name], ascii_only=ascii_only)


def key_name(key: str, *, ascii_only: bool = False) -> str:
    """Return the name of a key as shown to people."""
    name = _NAMES.get(key) or format_key(key.removeprefix("ctrl+"))
    if ascii_only and not name.isascii():
        return key
    return f"^{name}" if key.startswith("ctrl+") else name


def rebound_keys(changes: Mapping[str, str]) -> KeyTable:
    """Return the table with the keys that config.toml rebinds, such as `"sweep.relaunch" = "R,f5"`.

    Raises:
        UsageProblem: there is no such action, or the key already does something else there.
    """
    for name in changes:
        if not any(key.id == name for key in TABLE):
            raise UsageProblem(
                f"config.toml rebinds '{name}', which is not the name of a key",
                "",
                "docs/keys.md lists the names.",
            )
    typed = {key_name(name): name for key in TABLE for name in key.keys}
    table = tuple(
        replace(
            key, named=" ".join(typed.get(part.strip(), part.strip()) for part in changes[key.id].split(","))
        )
        if key.id in changes
        else key
        for key in TABLE
    )
    taken: dict[tuple[str, str], str] = {}
    for entry in table:
        for key in entry.keys:
            other = taken.setdefault((entry.context, key), entry.id)
            if other != entry.id:
                raise UsageProblem(f"the key '{key}' is bound to both '{other}' and '{entry.id}'")
    return KeyTable(table)
