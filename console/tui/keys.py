"""Every key of the console in one table, and what is made of it: bindings, footer, help, names, rebinding.

`docs/keys.md` is made of it too. Keys that come in bursts are held in order by `terminal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from textual.binding import Binding, BindingType

from foundation.problems import UsageProblem

Context = Literal[
    "app",
    "list",
    "matrix",
    "log",
    "file",
    "merged",
    "overview",
    "sweep",
    "run",
    "data",
    "dataset",
    "grade",
    "board",
    "experiment",
    "compare",
    "export",
    "host",
    "launch",
    "events",
    "settings",
    "welcome",
    "confirm",
    "classify",
]


@dataclass(frozen=True)
class Key:
    """What some keys do in one context.

    Attributes:
        id: the name under which config.toml rebinds it.
        keys: Textual's names of the keys.
        does: Textual's action.
        label: the word in the footer.
        help: the sentence in the help.
        footer: its place in the footer, or None if it is only in the help.
        changes: whether it changes anything, and so is inert in a read-only console.
    """

    id: str
    keys: tuple[str, ...]
    does: str
    label: str
    help: str
    footer: int | None = None
    changes: bool = False

    @property
    def context(self) -> str:
        """Where the key works: the first part of its id."""
        return self.id.partition(".")[0]

    @property
    def opens_field(self) -> bool:
        """Whether it opens a line to type into."""
        return self.does in ("filter", "app.command_line") or self.does.startswith("ask(")


def _key(
    name: str,
    keys: str,
    does: str,
    label: str,
    help: str,
    footer: int | None = None,
    *,
    changes: bool = False,
) -> Key:
    """Make a key; `keys` are Textual's names of it, with spaces between."""
    return Key(name, tuple(keys.split()), does, label, help, footer, changes)


TABLE: tuple[Key, ...] = (
    # Everywhere
    _key("app.overview", "1", "app.go('overview')", "overview", "Overview: is everything all right?"),
    _key("app.sweep", "2", "app.go('sweep')", "sweep", "Sweep: competitions and seeds"),
    _key("app.data", "3", "app.go('data')", "data", "Datasets and how far they are"),
    _key("app.grade", "4", "app.go('grade')", "grade", "Grade one submission file"),
    _key("app.board", "5", "app.go('board')", "board", "Scoreboard beside the published rows"),
    _key("app.host", "6", "app.go('host')", "host", "The machine, and who uses what of it"),
    _key("app.launch", "7", "app.go('launch')", "launch", "Compose and launch a sweep"),
    _key("app.events", "8", "app.go('events')", "events", "Everything that happened"),
    _key("app.settings", "9", "app.go('settings')", "settings", "Appearance, notifications and keys"),
    _key("app.command", "colon", "app.command_line", "command", "Command line with completion", 90),
    _key("app.palette", "ctrl+p", "app.command_palette", "palette", "Search all commands"),
    _key("app.help", "question_mark f1", "app.help", "help", "The keys of this screen", 91),
    _key("app.theme", "f2", "app.next_theme", "theme", "Dark or light"),
    _key("app.quit", "q ctrl+q", "app.leave", "quit", "Close the console; the engine keeps running", 92),
    # Lists and the matrix
    _key("list.down", "down j", "cursor(1)", "down", "One line down"),
    _key("list.up", "up k", "cursor(-1)", "up", "One line up"),
    _key("list.page_down", "pagedown ctrl+d", "page(1)", "page down", "One page down"),
    _key("list.page_up", "pageup ctrl+u", "page(-1)", "page up", "One page up"),
    _key("list.top", "g home", "edge(-1)", "top", "To the first line"),
    _key("list.bottom", "G end", "edge(1)", "bottom", "To the last line"),
    _key("list.open", "enter", "open", "open", "Open what is under the cursor"),
    _key("matrix.left", "left", "column(-1)", "left", "One column to the left"),
    _key("matrix.right", "right", "column(1)", "right", "One column to the right"),
    # Overview
    _key("overview.open", "enter", "open", "open", "Go to what the line is about", 1),
    _key(
        "overview.relaunch",
        "r",
        "relaunch",
        "relaunch",
        "Relaunch the failed run of the line",
        2,
        changes=True,
    ),
    _key("overview.log", "l", "log", "log", "The log of the run of the line", 3),
    # Sweep
    _key("sweep.open", "enter", "open", "run", "Open the run under the cursor", 1),
    _key("sweep.log", "l", "log", "log", "The run's log", 2),
    _key("sweep.mark", "space", "mark", "mark", "Mark or unmark the run", 3),
    _key(
        "sweep.relaunch",
        "r",
        "relaunch",
        "relaunch",
        "Relaunch the marked runs, or this one",
        4,
        changes=True,
    ),
    _key("sweep.stop", "s", "stop", "stop", "Stop the marked runs, or this one", 5, changes=True),
    _key("sweep.filter", "slash", "filter", "filter", "Words, or state: class: split: seed: outcome:", 6),
    _key("sweep.failed", "f", "next_failed", "next failed", "To the next failed run"),
    _key("sweep.view", "v", "view", "table", "Between the matrix and a flat table", 8),
    _key("sweep.mark_row", "m", "mark_row", "mark row", "Mark all shown runs of this competition"),
    _key("sweep.mark_all", "a", "mark_failed", "mark failed", "Mark every shown run that failed"),
    _key("sweep.previous", "left_square_bracket", "step(-1)", "previous sweep", "To the previous sweep"),
    _key("sweep.next", "right_square_bracket", "step(1)", "next sweep", "To the next sweep", 7),
    _key("sweep.mark_range", "M", "mark_range", "mark range", "Mark from the last mark to here"),
    _key("sweep.classify", "c", "classify", "class", "Correct the class of failed runs", changes=True),
    _key("sweep.order", "o", "order", "order", "Show the rows in the next order"),
    _key("sweep.turn", "O", "turn", "reverse", "Reverse the order"),
    _key("sweep.merged", "L", "merged_log", "merged log", "The logs of the marked runs as one, by time"),
    _key("sweep.pause", "p", "pause", "pause", "Let no new runs start, or go on", changes=True),
    _key("sweep.back", "escape", "back", "back", "Clear marks, then the filter"),
    # Run
    _key("run.next", "tab", "next_pane", "pane", "The next pane", 1),
    _key("run.previous", "shift+tab", "previous_pane", "previous pane", "The pane before"),
    _key("run.relaunch", "r", "relaunch", "relaunch", "Relaunch this run", 5, changes=True),
    _key("run.stop", "s", "stop", "stop", "Stop this run", 6, changes=True),
    _key("run.copy", "Y", "copy", "copy path", "Copy the path of the run's directory"),
    _key("run.open", "enter", "open", "open", "Open the file or snapshot under the cursor"),
    _key("run.classify", "c", "classify", "class", "Correct the class of a failure", changes=True),
    _key("run.back", "escape", "back", "back", "Back to where you came from", 7),
    # Log
    _key("log.down", "down j", "scroll_lines(1)", "down", "One line down"),
    _key("log.up", "up k", "scroll_lines(-1)", "up", "One line up; following stops"),
    _key("log.page_down", "pagedown space ctrl+d", "scroll_pages(1)", "page down", "One page down"),
    _key("log.page_up", "pageup b ctrl+u", "scroll_pages(-1)", "page up", "One page up"),
    _key("log.top", "g home", "top", "top", "To the beginning"),
    _key("log.bottom", "G end F", "bottom", "end", "To the end, and follow", 3),
    _key("log.left", "left", "sideways(-20)", "left", "To the left"),
    _key("log.right", "right", "sideways(20)", "right", "To the right"),
    _key("log.wrap", "w", "wrap", "wrap", "Wrap long lines, or cut them", 4),
    _key("log.search", "slash", "ask('search')", "search", "Search for a regular expression", 2),
    _key("log.filter", "ampersand", "ask('filter')", "only", "Show only lines with a regular expression"),
    _key("log.next", "n", "hit(1)", "next", "To the next hit"),
    _key("log.previous", "N", "hit(-1)", "previous", "To the previous hit"),
    _key("log.next_error", "e", "error(1)", "next error", "To the next line that looks like an error"),
    _key("log.previous_error", "E", "error(-1)", "previous error", "To the previous such line"),
    _key("log.numbers", "number_sign", "numbers", "numbers", "Number the lines"),
    _key("log.times", "t", "times", "times", "Show when each line was printed"),
    _key("log.moment", "at T", "ask('time')", "to a time", "To a time of day, or so far into the run"),
    _key("log.mark", "m", "mark", "mark", "Begin a selection at the page's top, or give it up"),
    _key("log.copy", "y", "copy", "copy", "Copy the selection, or the page, to the clipboard"),
    _key("log.save", "S", "ask('save')", "save", "Save the selection, or the page, to a file"),
    _key("log.pager", "o", "pager", "pager", "Open the log in $PAGER"),
    # Merged logs
    _key("merged.back", "escape", "back", "back", "Back to the sweep", 1),
    # File
    _key("file.back", "escape", "back", "back", "Back to the run", 1),
    _key("file.copy", "Y", "copy", "copy path", "Copy the path of the file"),
    # Datasets
    _key("data.open", "enter", "open", "detail", "Everything about the dataset under the cursor", 1),
    _key("data.mark", "space", "mark", "mark", "Mark or unmark the dataset", 2),
    _key(
        "data.prepare",
        "p",
        "act('prepare')",
        "prepare",
        "Prepare the marked datasets, or this one",
        3,
        changes=True,
    ),
    _key(
        "data.stop", "s", "act('stop')", "stop", "Stop preparing; what is downloaded stays", 4, changes=True
    ),
    _key("data.retry", "r", "act('retry')", "retry", "Try again what failed", 5, changes=True),
    _key(
        "data.check",
        "c K",  # `k` alone moves up here as in every list
        "act('check')",
        "check again",
        "Ask Kaggle again, after the rules were accepted",
        6,
        changes=True,
    ),
    _key("data.verify", "v", "act('verify')", "verify", "Compare with the known checksums", changes=True),
    _key("data.prune", "x", "act('prune')", "prune", "Remove zips, raw data and leftovers", changes=True),
    _key("data.prune_all", "X", "act('prune_all')", "remove", "Remove the prepared data too", changes=True),
    _key("data.copy_url", "y", "act('copy_urls')", "copy URL", "Copy where the rules are accepted", 8),
    _key("data.copy_folder", "Y", "copy_folder", "copy path", "Copy the path of its folder"),
    _key("data.filter", "slash", "filter", "filter", "Filter by words", 7),
    _key("data.mark_range", "M", "mark_range", "mark range", "Mark from the last mark to here"),
    _key("data.mark_all", "a", "mark_all", "mark all", "Mark everything that is shown, or unmark it"),
    _key("data.back", "escape", "back", "back", "Clear marks, then the filter"),
    # One dataset
    _key("dataset.back", "escape", "back", "back", "Back to the list", 1),
    _key("dataset.prepare", "p", "act('prepare')", "prepare", "Prepare it", 2, changes=True),
    _key("dataset.stop", "s", "act('stop')", "stop", "Stop preparing it", 3, changes=True),
    _key("dataset.retry", "r", "act('retry')", "retry", "Try again, if it failed", 4, changes=True),
    _key("dataset.check", "c K", "act('check')", "check again", "Ask Kaggle again", 5, changes=True),
    _key(
        "dataset.verify", "v", "act('verify')", "verify", "Compare with the known checksums", 6, changes=True
    ),
    _key(
        "dataset.prune", "x", "act('prune')", "prune", "Remove zip, raw data and leftovers", 7, changes=True
    ),
    _key(
        "dataset.prune_all", "X", "act('prune_all')", "remove", "Remove the prepared data too", changes=True
    ),
    _key("dataset.copy_url", "y", "act('copy_urls')", "copy URL", "Copy where its rules are accepted", 8),
    _key("dataset.copy_folder", "Y", "copy_folder", "copy path", "Copy the path of its folder"),
    # Grade
    _key("grade.next", "tab", "app.focus_next", "next field", "To the next field", 1),
    _key("grade.watch", "f5 ctrl+g", "watch", "watch", "Grade again whenever the file changes", 3),
    _key("grade.edition", "f6", "edition", "edition", "Grade by the other edition", 4),
    _key("grade.run", "enter", "submit", "grade", "Grade the file", 2),
    _key("grade.back", "escape", "back", "leave field", "Leave the field, so that digits switch screens", 5),
    # Scoreboard
    _key(
        "board.open", "enter", "open", "competitions", "Open the experiment under the cursor on that split", 1
    ),
    _key("board.export", "e", "export", "export", "Preview the row's export, then write it", 2),
    _key("board.mark", "space", "mark", "mark", "Mark an experiment, to compare it with another", 3),
    _key("board.compare", "c", "compare", "compare", "Compare the marked experiments by competition", 4),
    _key("board.sort", "s", "sort", "sort", "Sort by the column under the cursor; again: reverse", 5),
    _key("board.turn", "S", "turn", "reverse", "Reverse the order"),
    _key("board.filter", "slash", "filter", "filter", "Filter by words", 6),
    _key("board.pad", "p", "pad", "pad", "Count lost and missing runs as no medal, or leave their seeds out"),
    _key("board.back", "escape", "back", "back", "Clear marks, then the filter"),
    # One experiment
    _key("experiment.open", "enter", "open", "run", "Open the run under the cursor", 1),
    _key("experiment.export", "e", "export", "export", "Preview the export of its row", 2),
    _key("experiment.plots", "p", "plots", "plots", "Its plots, or its competitions again", 5),
    _key("experiment.column", "v", "column", "split", "Show the next split", 3),
    _key("experiment.back", "escape", "back", "back", "Back to the scoreboard", 4),
    # Comparing
    _key("compare.measure", "m", "measure", "measure", "Compare by the next measure", 1),
    _key("compare.everything", "v", "everything", "all or deciding", "All competitions, or what decides", 2),
    _key("compare.swap", "x", "swap", "swap", "Swap the two", 3),
    _key("compare.back", "escape", "back", "back", "Back to the scoreboard", 4),
    # Exporting
    _key("export.format", "tab f", "form(1)", "format", "Markdown, CSV, JSON or LaTeX", 1),
    _key("export.format_before", "shift+tab", "form(-1)", "format before", "The format before"),
    _key("export.copy", "y", "copy", "copy", "Copy it to the terminal's clipboard", 2),
    _key("export.write", "w", "write", "write", "Write it to a file", 3, changes=True),
    _key("export.bundle", "b", "bundle", "bundle", "Write the bundle of its reports", 4, changes=True),
    _key("export.agent", "n", "ask('agent')", "name", "Type the agent's name in the row", 5),
    _key("export.models", "l", "ask('llms')", "models", "Type the models that it used", 6),
    _key(
        "export.pad", "p", "pad", "pad", "Count lost and missing runs as no medal, or leave their seeds out"
    ),
    _key("export.back", "escape", "back", "back", "Back", 7),
    # Host
    _key("host.open", "enter", "open", "run", "Open the run under the cursor, on what it uses", 1),
    # Launch
    _key("launch.launch", "ctrl+l", "launch", "launch", "Launch the sweep", 1, changes=True),
    _key("launch.dry", "ctrl+t", "dry_run", "dry run", "Show in which order and when runs would start", 2),
    _key("launch.prepare", "ctrl+r", "prepare", "prepare data", "Prepare what is missing first", 3),
    _key("launch.build", "ctrl+b", "build", "build", "Build the images that are missing", changes=True),
    _key("launch.engine", "ctrl+n", "engine", "start engine", "Start the engine", changes=True),
    _key("launch.back", "escape", "back", "leave field", "Leave the field, so that digits switch screens", 4),
    # Events
    _key("events.open", "enter", "open", "open", "Go to what the event is about", 1),
    _key("events.filter", "slash", "filter", "filter", "Filter by words", 2),
    _key("events.back", "escape", "back", "back", "Clear the filter"),
    # Settings
    _key("settings.change", "enter", "open", "change", "Change the line, or press a new key for it", 1),
    _key("settings.reset", "d", "reset", "default", "Take it out of config.toml, back to its default", 2),
    _key("settings.filter", "slash", "filter", "filter", "Filter by words", 3),
    _key("settings.back", "escape", "back", "back", "Clear the filter"),
    # Welcome
    _key("welcome.demo", "d", "demo", "demo", "Open the demo: it runs by itself", 1, changes=True),
    _key("welcome.grade", "s", "app.go('grade')", "grade a submission", "Grade one submission file", 2),
    _key("welcome.engine", "e", "engine", "start engine", "Start the engine on this state", 3, changes=True),
    # Confirmation
    _key("confirm.yes", "y", "answer(True)", "yes", "Do it", 1),
    _key("confirm.no", "n escape q", "answer(False)", "no", "Leave it", 2),
    _key("confirm.choose", "tab left right shift+tab", "choose", "other", "Choose the other answer"),
    _key("confirm.take", "enter", "take", "take", "Take the chosen answer, which is no at first"),
    # Correcting a class
    _key("classify.down", "down tab", "choose(1)", "next", "The next class"),
    _key("classify.up", "up shift+tab", "choose(-1)", "previous", "The class before"),
    _key("classify.leave", "escape", "leave", "leave", "Leave everything as it was"),
)

KEY_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "ampersand": "&",
    "number_sign": "#",
    "at": "@",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "space": "space",
    "escape": "esc",
    "pagedown": "PgDn",
    "pageup": "PgUp",
}
_ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "enter": "⏎"}


@dataclass(frozen=True)
class KeyTable:
    """The keys as they are in this console: the table with the operator's changes."""

    keys: tuple[Key, ...] = TABLE

    def of(self, *contexts: Context) -> tuple[Key, ...]:
        """Return the keys of some contexts, in the order of the contexts."""
        return tuple(key for context in contexts for key in self.keys if key.context == context)

    def named(self, name: str) -> Key:
        """Return the key with an id."""
        return next(key for key in self.keys if key.id == name)

    def footer(self, *contexts: Context) -> tuple[Key, ...]:
        """Return the keys that matter most in some contexts, in the footer's order."""
        found = [key for key in self.of(*contexts) if key.footer is not None]
        return tuple(sorted(found, key=lambda key: key.footer or 0))

    def keymap(self) -> dict[str, str]:
        """Return what differs from the table, as Textual takes it."""
        return {
            key.id: ",".join(key.keys)
            for key, original in zip(self.keys, TABLE, strict=True)
            if key.keys != original.keys
        }


def bindings(*contexts: Context) -> list[BindingType]:
    """Return the keys of some contexts as a Textual class takes them; they are rebound by their ids."""
    return [
        Binding(",".join(key.keys), key.does, key.label, show=False, id=key.id)
        for key in KeyTable().of(*contexts)
    ]


def key_names(table: KeyTable, *, ascii_only: bool = False) -> Callable[[str], str]:
    """Return a function that names the first key of an action, given the action's id."""
    first = {key.id: key.keys[0] for key in table.keys}
    return lambda name: key_name(first[name], ascii_only=ascii_only)


def key_name(key: str, *, ascii_only: bool = False) -> str:
    """Return the name by which people know a key."""
    if key in _ARROWS:
        return key if ascii_only else _ARROWS[key]
    return KEY_NAMES.get(key, key.replace("ctrl+", "^"))


# Screens on which a log is read; the others show lists.
_WITH_LOG = frozenset({"run", "file", "merged"})
_WITH_MATRIX = frozenset({"sweep", "board", "experiment"})


def rebound_keys(changes: Mapping[str, str]) -> KeyTable:
    """Return the table with keys replaced as config.toml says, such as `"sweep.relaunch" = "R,f5"`.

    Raises:
        UsageProblem: there is no such action, or the key already does something else there.
    """
    known = {key.id for key in TABLE}
    for name in changes:
        if name not in known:
            raise UsageProblem(
                f"config.toml rebinds '{name}', which is not the name of a key",
                "",
                "docs/keys.md lists the names.",
            )
    table = tuple(
        replace(key, keys=tuple(_textual_name(part.strip()) for part in changes[key.id].split(",")))
        if key.id in changes
        else key
        for key in TABLE
    )
    _refuse_clashes(table)
    return KeyTable(table)


def hidden_by(table: KeyTable, name: str) -> tuple[str, ...]:
    """Return the ids of the keys that could no longer be reached, because a key works where they do."""
    chosen = table.named(name)
    return tuple(
        key.id
        for key in table.keys
        if chosen.context != key.context
        and (chosen.context == "app" or _works_on(key.context, chosen.context))
        and set(chosen.keys) & set(key.keys)
    )


def _works_on(shared: str, context: str) -> bool:
    """Whether keys that several screens share work on a screen."""
    if shared == "log":
        return context in _WITH_LOG
    if shared == "matrix":
        return context in _WITH_MATRIX
    return shared == "app" or (shared == "list" and context not in _WITH_LOG)


def _textual_name(key: str) -> str:
    return next((name for name, known in KEY_NAMES.items() if known == key), key)


def _refuse_clashes(table: Iterable[Key]) -> None:
    taken: dict[tuple[str, str], str] = {}
    for entry in table:
        for key in entry.keys:
            other = taken.setdefault((entry.context, key), entry.id)
            if other != entry.id:
                raise UsageProblem(f"the key '{key}' is bound to both '{other}' and '{entry.id}'")
