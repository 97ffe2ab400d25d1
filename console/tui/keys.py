"""The table of all keys of the console; bindings, footer, help and the names of keys are derived from it.

`docs/keys.md` is generated from it too. `terminal` keeps keys that arrive in bursts in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby

from textual.binding import Binding, BindingType
from textual.keys import format_key

from mlebench_console.foundation.problems import UsageProblem

# Where a key works: a screen, a pane or a widget; the headings of the table below are all there are.
Context = str


@dataclass(frozen=True)
class Key:
    """An action in one context, and the keys that trigger it.

    Attributes:
        id: the name by which config.toml rebinds it, which begins with its context.
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


def _in_contexts(*rows: Context | Key) -> tuple[Key, ...]:
    """Return the keys with their contexts: each text is that of the keys after it."""
    keys, context = list[Key](), ""
    for row in rows:
        if isinstance(row, Key):
            keys.append(replace(row, id=f"{context}.{row.id}"))
        else:
            context = row
    return tuple(keys)


TABLE: tuple[Key, ...] = _in_contexts(
    "app",
    *(Key(name, key, f"app.go('{name}')", name, about) for name, key, _title, about in SCREENS),
    Key("command", "colon", "app.command_line", "command", "Command line with completion", 90),
    Key("help", "question_mark f1", "app.help", "help", "The keys of this screen", 91),
    _change("undo", "u", "app.undo", "undo", "Undo a stop or a relaunch, within seconds"),
    Key(
        "redraw",
        "f3",
        "app.redraw",
        "redraw",
        "Draw everything anew, if something else wrote on the terminal",
    ),
    Key("theme", "f2", "app.next_theme", "theme", "Switch to the next theme"),
    Key("quit", "q ctrl+q", "app.leave", "quit", "Close the console; the engine keeps running", 92),
    "list",
    Key("down", "down j", "cursor(1)", "down", "One line down"),
    Key("up", "up k", "cursor(-1)", "up", "One line up"),
    Key("page_down", "pagedown ctrl+d", "page(1)", "page down", "One page down"),
    Key("page_up", "pageup ctrl+u", "page(-1)", "page up", "One page up"),
    Key("top", "g home", "edge(-1)", "top", "To the first line"),
    Key("bottom", "G end", "edge(1)", "bottom", "To the last line"),
    Key("open", "enter", "open", "open", "Open what is under the cursor"),
    "matrix",
    Key("left", "left", "column(-1)", "left", "One column to the left"),
    Key("right", "right", "column(1)", "right", "One column to the right"),
    "overview",
    Key("open", "enter", "open", "open", "Open what the line is about; of a group, list its runs", 1),
    Key("next", "f", "next", "next", "To the next thing that needs you", 2),
    _change("relaunch", "r", "relaunch", "relaunch", "Relaunch the failed run of the line", 3),
    _change("regrade", "ctrl+g", "app.regrade", "regrade", "Grade the run of the line again", 3),
    _change("relaunch_all", "R", "app.relaunch", "relaunch all", "Relaunch all runs of this cause", 3),
    Key("log", "l", "log", "log", "The log of the run of the line, or of its newest run", 5),
    _change("acknowledge", "a", "ask('acknowledge')", "acknowledge", "Acknowledge it, with a reason", 4),
    _change("snooze", "z", "ask('snooze')", "snooze", "Acknowledge it for some time, with a reason", 6),
    _change("take_back", "A", "take_back", "take back", "Take an acknowledgement back"),
    Key("acknowledged", "v", "acknowledged", "acknowledged", "Show or hide what is acknowledged"),
    Key("timeline", "t", "timeline", "timeline", "The timeline of the line's sweep, or of all", 8),
    Key("runs", "slash", "group_runs", "its runs", "The runs of the line's cause, in their sweep", 7),
    _change("note", "n ctrl+n", "app.annotate('note')", "note", "Write a note on the run or sweep"),
    _change("tag", "number_sign ctrl+t", "app.annotate('tag')", "tag", "Tag the run or sweep of the line"),
    Key("clone", "C", "app.command_line('clone')", "clone", "Launch a sweep like the one of the line"),
    "sweep",
    Key("open", "enter", "open", "run", "Open the run under the cursor", 1),
    Key("log", "l", "log", "log", "The run's log", 2),
    Key("mark", "space", "mark", "mark", "Mark or unmark the run", 3),
    _change("relaunch", "r", "app.relaunch", "relaunch", "Relaunch the marked runs, or this one", 4),
    _change("stop", "s", "app.stop", "stop", "Stop the marked runs, or this one", 5),
    Key(
        "filter",
        "slash",
        "filter",
        "filter",
        "Filter by words, or state: class: cause: tag: note: seed: outcome:",
        6,
    ),
    Key("failed", "f", "next_failed", "next failed", "To the next run that failed or that needs you"),
    Key(
        "dense",
        "W",
        "dense",
        "dense",
        "All competitions at once, seeds as signs; or the matrix again",
        label_on="matrix",
    ),
    Key("view", "v", "view", "table", "Switch between the matrix and a flat table", 8, label_on="matrix"),
    Key("mark_row", "m", "mark_row", "mark row", "Mark all shown runs of this competition"),
    Key("mark_all", "a", "mark_failed", "mark failed", "Mark every shown run that failed"),
    Key("previous", "left_square_bracket", "step(-1)", "previous sweep", "To the previous sweep"),
    Key("next", "right_square_bracket", "step(1)", "next sweep", "To the next sweep"),
    Key("mark_range", "M", "mark_range", "mark range", "Mark everything from the last mark to here"),
    _change("regrade", "ctrl+g", "app.regrade", "regrade", "Grade again the runs whose grading has failed"),
    _change("classify", "c", "app.classify", "class", "Correct the class of failed runs", 5),
    Key("order", "o", "order", "order", "Show the rows in the next order"),
    Key("turn", "O", "turn", "reverse", "Reverse the order"),
    Key("logs", "L", "logs", "logs", "The logs of the marked runs together", 5),
    _change("pause", "p", "pause", "pause", "Pause the sweep: no new run starts; or resume it"),
    Key("diff", "d", "diff", "diff", "Compare code and configuration of the two marked runs", 5),
    Key("timeline", "t", "timeline", "timeline", "The timeline of its attempts", 7),
    _change(
        "note", "n ctrl+n", "app.annotate('note')", "note", "Write a note on the marked runs, or this one"
    ),
    _change("tag", "number_sign ctrl+t", "app.annotate('tag')", "tag", "Tag the marked runs, or this one"),
    _change("note_sweep", "N", "app.annotate('note', 'sweep')", "note sweep", "Write a note on the sweep"),
    _change("tag_sweep", "T", "app.annotate('tag', 'sweep')", "tag sweep", "Tag the sweep"),
    Key("clone", "C", "app.command_line('clone')", "clone", "Launch a sweep like this one"),
    Key("integrity", "i", "integrity", "integrity", "What detectors have found in its runs"),
    Key("detail", "w", "detail", "details", "Show or hide the details beside the list (wide terminals)"),
    Key("back", "escape", "back", "back", "Clear marks, then the filter"),
    "run",
    Key("next", "tab", "pane(1)", "pane", "The next pane", 1),
    Key("previous", "shift+tab", "pane(-1)", "previous pane", "The pane before"),
    _change("relaunch", "r", "app.relaunch", "relaunch", "Relaunch this run", 3),
    _change("stop", "s", "app.stop", "stop", "Stop this run", 3),
    Key("copy", "Y", "copy", "copy path", "Copy the path of the run's directory"),
    Key("open", "enter", "open", "open", "Open the file or snapshot under the cursor", 2),
    Key("code", "v", "code", "code", "The code at the submission under the cursor, or at the best", 8),
    Key("diff", "d", "diff", "diff", "Compare the marked submissions, or this one with the one before", 9),
    _change("regrade", "ctrl+g", "app.regrade", "regrade", "Grade again, if grading has failed"),
    _change("classify", "c", "app.classify", "class", "Correct the class of a failure", 3),
    _change("note", "ctrl+n", "app.annotate('note')", "note", "Write a note on this run"),
    _change("tag", "ctrl+t", "app.annotate('tag')", "tag", "Tag this run"),
    Key("back", "escape", "back", "back", "Back to where you came from", 7),
    "submissions",
    Key("mark", "space", "mark", "mark", "Mark a submission, to compare it with another", 10),
    "log",
    Key("down", "down j", "scroll_lines(1)", "down", "One line down"),
    Key("up", "up k", "scroll_lines(-1)", "up", "One line up; following stops"),
    Key("page_down", "pagedown space ctrl+d", "scroll_pages(1)", "page down", "One page down"),
    Key("page_up", "pageup b ctrl+u", "scroll_pages(-1)", "page up", "One page up"),
    Key("top", "g home", "top", "top", "To the beginning"),
    Key("bottom", "G end F", "bottom", "end", "To the end, and follow", 5),
    Key("left", "left", "sideways(-20)", "left", "To the left"),
    Key("right", "right", "sideways(20)", "right", "To the right"),
    Key("wrap", "w", "wrap", "wrap", "Wrap long lines, or cut them", 6),
    Key("search", "slash", "ask('search')", "search", "Search for a regular expression", 4),
    Key("filter", "ampersand", "ask('filter')", "only", "Show only lines with a regular expression"),
    Key("next", "n", "hit(1)", "next hit", "To the next hit", 2),
    Key("previous", "N", "hit(-1)", "previous", "To the previous hit", 4),
    Key("next_error", "e", "error(1)", "next error", "To the next line that looks like an error"),
    Key("previous_error", "E", "error(-1)", "previous error", "To the previous such line"),
    Key("numbers", "number_sign", "numbers", "numbers", "Number the lines"),
    Key("times", "t", "times", "times", "Show when each line was printed"),
    Key("moment", "at T", "ask('time')", "to a time", "To a time of day, or so far into the run"),
    Key("mark", "m", "mark", "mark", "Begin a selection at the page's top, or give it up"),
    Key("copy", "y", "copy", "copy", "Copy the selection, or the page, to the clipboard"),
    Key("save", "S", "ask('save')", "save", "Save the selection, or the page, to a file"),
    Key("pager", "o", "pager", "pager", "Open the log in $PAGER"),
    "logs",
    Key("back", "escape", "back", "back", "Back to the sweep", 1),
    "file",
    Key("back", "escape", "back", "back", "Back to the run", 1),
    Key("copy", "Y", "copy", "copy path", "Copy the path of the file"),
    "code",
    Key("open", "enter", "open", "open", "Open the file under the cursor", 1),
    Key("before", "left_square_bracket", "step(-1)", "before", "The code at the submission before", 2),
    Key("after", "right_square_bracket", "step(1)", "after", "The code at the next submission, or now", 3),
    Key("diff", "d", "diff", "diff", "Compare with the submission before", 4),
    Key("back", "escape", "back", "back", "Back", 5),
    "diff",
    Key("open", "enter", "open", "lines", "To the lines of the file under the cursor", 1),
    Key("next", "n", "file(1)", "next file", "To the next file", 2),
    Key("previous", "N", "file(-1)", "previous file", "To the file before"),
    Key(
        "beside",
        "v",
        "beside",
        "side by side",
        "Side by side, or one below the other",
        3,
        label_on="one below the other",
    ),
    Key("wrap", "w", "wrap", "wrap", "Wrap long lines, or cut them", 4),
    Key("swap", "x", "swap", "swap", "Swap the two", 5),
    Key("back", "escape", "back", "back", "Back", 6),
    "data",
    Key("open", "enter", "open", "detail", "Everything about the dataset under the cursor", 1),
    Key("mark", "space", "mark", "mark", "Mark or unmark the dataset", 2),
    _change("prepare", "p", "act('prepare')", "prepare", "Prepare the marked datasets, or this one", 3),
    _change("raw", "R", "ask('raw')", "from raw", "Prepare from a folder or zip of raw data on this disk"),
    _change("stop", "s", "act('stop')", "stop", "Stop preparing; what is downloaded stays", 4),
    _change("retry", "r", "act('retry')", "retry", "Try again what failed", 5),
    # `k` alone moves up here as in every list.
    _change(
        "check", "c K", "act('check')", "check again", "Ask Kaggle again, after the rules were accepted", 6
    ),
    _change("verify", "v", "act('verify')", "verify", "Compare with the manifest and known checksums"),
    _change("verify_deep", "V", "act('verify_deep')", "verify all", "Read every file and compare it"),
    _change("first", "plus", "act('first')", "first", "Prepare it before all others that wait"),
    _change("prune", "x", "act('prune')", "prune", "Remove zips, raw data and leftovers"),
    _change("prune_all", "X", "act('prune_all')", "remove", "Remove the prepared data too"),
    Key("copy_url", "y", "act('copy_urls')", "copy URL", "Copy where the rules are accepted", 6),
    Key("copy_folder", "Y", "copy_folder", "copy path", "Copy the path of its folder"),
    Key("filter", "slash", "filter", "filter", "Filter by words", 7),
    Key("mark_range", "M", "mark_range", "mark range", "Mark everything from the last mark to here"),
    Key("mark_all", "a", "mark_all", "mark all", "Mark everything that is shown, or unmark it"),
    Key("detail", "w", "detail", "details", "Show or hide the details beside the list (wide terminals)"),
    Key("back", "escape", "back", "back", "Clear marks, then the filter"),
    "dataset",
    Key("back", "escape", "back", "back", "Back to the list", 1),
    _change("prepare", "p", "act('prepare')", "prepare", "Prepare it", 2),
    _change("stop", "s", "act('stop')", "stop", "Stop preparing it", 3),
    _change("retry", "r", "act('retry')", "retry", "Try again, if it failed", 4),
    _change("check", "c K", "act('check')", "check again", "Ask Kaggle again", 5),
    _change("verify", "v", "act('verify')", "verify", "Compare with the manifest and known checksums", 6),
    _change("verify_deep", "V", "act('verify_deep')", "verify all", "Read every file and compare it"),
    _change("first", "plus", "act('first')", "first", "Prepare it before all others that wait"),
    _change("prune", "x", "act('prune')", "prune", "Remove zip, raw data and leftovers", 7),
    _change("prune_all", "X", "act('prune_all')", "remove", "Remove the prepared data too"),
    Key("copy_url", "y", "act('copy_urls')", "copy URL", "Copy where its rules are accepted", 8),
    Key("copy_folder", "Y", "copy_folder", "copy path", "Copy the path of its folder"),
    "grade",
    Key("next", "tab", "app.focus_next", "next field", "To the next field", 1),
    Key(
        "watch",
        "f5 ctrl+g",
        "watch",
        "watch",
        "Grade again whenever the file changes, or no longer",
        3,
        label_on="stop watching",
    ),
    Key("edition", "f6", "edition", "edition", "Grade by the other edition", 4),
    Key("run", "enter", "submit", "grade", "Grade the file", 2),
    Key("back", "escape", "back", "leave field", "Leave the field, so that digits switch screens", 5),
    "board",
    Key("open", "enter", "open", "competitions", "Open the experiment under the cursor on that split", 1),
    Key("export", "e", "export", "export", "Preview the row's export, then write it", 2),
    Key("mark", "space", "mark", "mark", "Mark an experiment, to compare it with another"),
    Key("compare", "c", "compare", "compare", "Compare the marked experiments by competition", 4),
    Key("sort", "s", "sort", "sort", "Sort by the column under the cursor; again: reverse", 5),
    Key("turn", "S", "turn", "reverse", "Reverse the order"),
    Key("filter", "slash", "filter", "filter", "Filter by words", 6),
    Key("pad", "p", "pad", "pad", "Count lost and missing runs as no medal, or leave their seeds out"),
    Key("detail", "w", "detail", "details", "Show or hide the details beside the list (wide terminals)"),
    Key("back", "escape", "back", "back", "Clear marks, then the filter"),
    "experiment",
    Key("open", "enter", "open", "run", "Open the run under the cursor", 1),
    Key("export", "e", "export", "export", "Preview the export of its row", 2),
    Key("plots", "p", "plots", "plots", "Its plots", 5),
    Key("column", "v", "column", "split", "Show the next split", 3),
    Key("integrity", "i", "integrity", "integrity", "What detectors have found in its runs", 6),
    Key("back", "escape", "back", "back", "Back to the scoreboard", 4),
    "plots",
    Key("back", "escape p", "back", "competitions", "Back to its competitions", 1),
    Key("export", "e", "export", "export", "Preview the export of its row", 2),
    "compare",
    Key("measure", "m", "measure", "measure", "Compare by the next measure", 1),
    Key(
        "everything",
        "v",
        "everything",
        "all",
        "All competitions, or what decides",
        2,
        label_on="what decides",
    ),
    Key("swap", "x", "swap", "swap", "Swap the two", 3),
    Key("back", "escape", "back", "back", "Back to the scoreboard", 4),
    "export",
    Key("format", "tab f", "form(1)", "format", "Markdown, CSV, JSON or LaTeX", 1),
    Key("format_before", "shift+tab", "form(-1)", "format before", "The format before"),
    Key("copy", "y", "copy", "copy", "Copy it to the terminal's clipboard", 2),
    _change("write", "w", "write", "write", "Write it to a file", 3),
    _change("bundle", "b", "bundle", "bundle", "Write the bundle of its reports", 6),
    Key("agent", "n", "ask('agent')", "name", "Type the agent's name in the row", 5),
    Key("models", "l", "ask('llms')", "models", "Type the models that it used", 4),
    Key("pad", "p", "pad", "pad", "Count lost and missing runs as no medal, or leave their seeds out"),
    Key("back", "escape", "back", "back", "Back", 7),
    "host",
    Key("open", "enter", "open", "open", "Open the resources of the run; on a node, show only its runs", 1),
    "launch",
    _change("launch", "ctrl+l", "launch", "launch", "Launch the sweep", 1),
    Key("dry", "ctrl+t", "dry_run", "dry run", "Show in which order and when runs would start", 2),
    Key(
        "prepare",
        "ctrl+r",
        "prepare",
        "prepare data",
        "Prepare what is missing first",
        3,
        label_on="don't prepare",
    ),
    _change("build", "ctrl+b", "build", "build", "Build the images that are missing", 4),
    _change("engine", "ctrl+n", "engine", "start engine", "Start the engine", 3),
    Key("back", "escape", "back", "leave field", "Leave the field, so that digits switch screens", 6),
    Key("load", "ctrl+o", "ask('load')", "load", "Fill the form in from a file as 'sweep launch' reads it"),
    Key("save", "ctrl+s", "ask('save')", "save", "Write the form as such a file"),
    Key("clear", "f8", "clear", "clear", "Make the form as it was at first"),
    "field",
    Key("complete", "right", "cursor_right", "complete", "Take what is suggested behind the cursor", 5),
    Key("next", "tab down", "app.focus_next", "next field", "To the next field"),
    Key("previous", "shift+tab up", "app.focus_previous", "field before", "To the field before"),
    "events",
    Key("open", "enter", "open", "open", "Go to what the event is about", 1),
    Key("filter", "slash", "filter", "filter", "Filter by words, or sweep: kind: sev: comp: seed: run:", 2),
    Key("back", "escape", "back", "back", "Clear the filter"),
    "timeline",
    Key("open", "enter", "open", "run", "Open the run of the chosen attempt", 1),
    Key("log", "l", "log", "log", "The log of its run", 2),
    Key("left", "left h", "beside(-1)", "before", "The attempt before it on the slot"),
    Key("right", "right", "beside(1)", "after", "The attempt after it on the slot"),
    Key("up", "up k", "across(-1)", "slot above", "The attempt at that time on the slot above"),
    Key("down", "down j", "across(1)", "slot below", "The attempt at that time on the slot below"),
    Key("page_up", "pageup ctrl+u", "across(-8)", "slots above", "Eight slots up"),
    Key("page_down", "pagedown ctrl+d", "across(8)", "slots below", "Eight slots down"),
    Key("first", "home g", "edge(-1)", "first", "The attempt that began first"),
    Key("last", "end G", "edge(1)", "last", "The attempt that began last"),
    Key("failed", "f", "next_failed", "next failed", "The latest failed attempt, then earlier ones", 3),
    Key("zoom_in", "plus equals_sign", "zoom(1)", "closer", "See half of the time", 4),
    Key("zoom_out", "minus", "zoom(-1)", "wider", "See twice the time", 5),
    Key("whole", "0", "whole", "whole", "See all of the time", 6),
    Key("earlier", "comma less_than_sign", "scroll(-1)", "earlier", "See earlier time"),
    Key("later", "full_stop greater_than_sign", "scroll(1)", "later", "See later time"),
    Key("previous", "left_square_bracket", "step(-1)", "previous sweep", "To the previous sweep"),
    Key("next", "right_square_bracket", "step(1)", "next sweep", "To the next sweep, then all", 7),
    Key("back", "escape", "back", "back", "Back to where you came from", 8),
    "integrity",
    Key("open", "enter", "open", "open", "Open the code at the passage, or else the run", 1),
    Key("log", "l", "log", "log", "The run's log", 2),
    _change("clear", "c", "review('clear')", "clear", "Clear the finding, with a reason that is kept", 3),
    _change("confirm", "C", "review('confirm')", "confirm", "Confirm the finding, with a reason", 4),
    Key(
        "notes",
        "v",
        "notes",
        "notes",
        "Show notes too, or only what somebody should look at",
        5,
        label_on="hide notes",
    ),
    Key("filter", "slash", "filter", "filter", "Filter by words", 6),
    Key("back", "escape", "back", "back", "Clear the filter, then back", 7),
    "settings",
    Key("change", "enter", "open", "change", "Change the line", 1),
    Key("reset", "d", "reset", "default", "Remove it from config.toml, so that its default applies", 2),
    Key("filter", "slash", "filter", "filter", "Filter by words", 3),
    Key("back", "escape", "back", "back", "Clear the filter"),
    "welcome",
    _change("demo", "d", "demo", "demo", "Open the demo: it runs by itself", 1),
    Key("grade", "s", "app.go('grade')", "grade a submission", "Grade one submission file", 2),
    _change("engine", "e", "engine", "start engine", "Start the engine on this state", 3),
    "help",
    Key("search", "slash", "search", "search", "Show only what has these words", 1),
    Key("down", "down j", "box('scroll_down')", "down", "One line down"),
    Key("up", "up k", "box('scroll_up')", "up", "One line up"),
    Key("page_down", "pagedown space ctrl+d", "box('scroll_page_down')", "page down", "One page down"),
    Key("page_up", "pageup b ctrl+u", "box('scroll_page_up')", "page up", "One page up"),
    Key("top", "g home", "box('scroll_home')", "top", "To the beginning"),
    Key("bottom", "G end", "box('scroll_end')", "bottom", "To the end"),
    Key("close", "escape question_mark f1 q enter", "close", "close", "Clear the search, then close", 2),
    "confirm",
    Key("yes", "y", "answer('yes')", "yes", "Do it", 1),
    Key("free", "f", "answer('free')", "only free", "Do it only where it costs nothing, if asked so", 3),
    Key("no", "n escape q", "answer('no')", "no", "Leave it", 2),
    Key("choose", "tab right down", "choose(1)", "next", "Choose the next answer"),
    Key("choose_back", "shift+tab left up", "choose(-1)", "previous", "Choose the answer before"),
    Key("take", "enter", "take", "take", "Take the chosen answer, which is no at first"),
    "classify",
    Key("down", "down tab", "choose(1)", "next", "The next class"),
    Key("up", "up shift+tab", "choose(-1)", "previous", "The class before"),
    Key("leave", "escape", "leave", "leave", "Leave everything as it was"),
)


_NAMES = {"pagedown": "PgDn", "pageup": "PgUp"}


@dataclass(frozen=True)
class KeyTable:
    """The keys of this console: the table with the operator's changes."""

    keys: tuple[Key, ...] = TABLE

    # A frozen dataclass still has a dictionary, which is where a cached property lives.
    @cached_property
    def _by_context(self) -> Mapping[Context, tuple[Key, ...]]:
        return {context: tuple(keys) for context, keys in groupby(self.keys, lambda key: key.context)}

    def of(self, *contexts: Context) -> tuple[Key, ...]:
        """Return the keys of the given contexts, in the order of the contexts."""
        return tuple(key for context in contexts for key in self._by_context[context])

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
