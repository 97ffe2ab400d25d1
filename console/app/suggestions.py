"""What may come next on the `:` line: commands, and the values and options of the command that it begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.app.commands import (
    ConsoleCommand,
    chosen_runs,
    metavar_of,
    names_subject,
    option_named,
    subject_of,
    takes_value,
    without_options,
)
from mlebench_console.console.nouns.run import filter_words
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.engine.needs.causes import recorded_cause

if TYPE_CHECKING:
    from typer._click.core import Parameter

    from mlebench_console.console.app.app import ConsoleApp

# More run numbers would slow down every keystroke, and nobody picks a run from a longer list.
_MOST_RUNS = 2000


@dataclass(frozen=True)
class Suggestion:
    """A line of the list above the command line.

    Attributes:
        shown: the command with its arguments, or the word.
        about: what it is.
        subject: what a command is about if it names nothing.
        key: the key of the screen that does the same, if one does.
        completed: the text of the command line when this is accepted; None for a line that only explains.
        is_whole: whether that text is a complete command.
        goes_on: whether the same word goes on after it, as after `seed:`.
    """

    shown: str
    about: str = ""
    subject: str = ""
    key: str = ""
    completed: str | None = None
    is_whole: bool = False
    goes_on: bool = False


def suggestions(app: ConsoleApp, text: str) -> list[Suggestion]:
    """Return the commands that fit a text; behind a whole command what it is, and the words that may come next."""
    known = app.commands.here(app)
    command = _begun(known, text)
    if command is None:
        return [_of_command(app, each) for each in _matching(known, text)]
    return [replace(_of_command(app, command), completed=None), *_next_words(app, command, text)]


def typed_path(app: ConsoleApp, text: str) -> str:
    """Return the last word of a text if it may be a path on this disk, otherwise nothing."""
    command = _begun(app.commands.here(app), text)
    if command is None:
        return ""
    parameters = _parameters_at(app, command, _words_before(command, text))
    return text.split(" ")[-1] if any(metavar_of(each) in _PATHS for each in parameters) else ""


def _begun(known: Sequence[ConsoleCommand], text: str) -> ConsoleCommand | None:
    """Return the command that a text begins with."""
    return next((each for each in known if text.startswith(f"{each.path} ")), None)


def _of_command(app: ConsoleApp, command: ConsoleCommand) -> Suggestion:
    subject = subject_of(app, command)
    return Suggestion(
        command.usage,
        command.help,
        subject,
        _key_of(app, command),
        command.path,
        is_whole=_needed(command) <= bool(subject),
    )


def _key_of(app: ConsoleApp, command: ConsoleCommand) -> str:
    """Return the key of the screen that does what a command does."""
    if command.action is None or not command.action.key or not isinstance(app.screen, ConsoleScreen):
        return ""
    context = app.screen.contexts()[0]
    known = (key for key in app.settings.keys.of(context) if key.id == f"{context}.{command.action.key}")
    return next((app.settings.name_of(key.keys[0]) for key in known), "")


def _needed(command: ConsoleCommand) -> int:
    return sum(argument.required for argument in command.arguments)


def _matching(known: Sequence[ConsoleCommand], typed: str) -> list[ConsoleCommand]:
    """Return the commands in which each typed word begins the name, is in it, or begins a word of the help."""
    ranks = {}
    for place, command in enumerate(known):
        rank = 0 if command.path.startswith(typed.lower()) else 1
        for word in typed.lower().split():
            in_help = any(each.startswith(word) for each in command.help.lower().split())
            rank = max(rank, 1 if word in command.path else 2 if in_help else 3)
        if rank < 3 or command.path.startswith(typed.lower()):
            ranks[place] = rank
    return [known[place] for place in sorted(ranks, key=lambda place: (ranks[place], place))]


def _next_words(app: ConsoleApp, command: ConsoleCommand, text: str) -> Iterator[Suggestion]:
    """Yield what the last word of a text may become, the best match first."""
    head, _, typed = text.rpartition(" ")
    before, wanted = _words_before(command, text), typed.lower()
    parameters = _parameters_at(app, command, before)
    is_value = any(parameter in command.options for parameter in parameters)
    words = [word for parameter in parameters for word in _values(app, parameter)]
    if not is_value:
        words += [(each.opts[0], getattr(each, "help", "") or "") for each in command.options]
    fitting = [
        (word, about) for word, about in words if wanted in f"{word} {about}".lower() and word not in before
    ]
    taken = len(without_options(command, before)) + (not is_value) + bool(subject_of(app, command))
    ranks = {word: (not word.lower().startswith(wanted), wanted not in word.lower()) for word, _ in fitting}
    for word, about in sorted(fitting, key=lambda each: ranks[each[0]]):
        option, goes_on = option_named(command, word), word.endswith(":")
        is_open = goes_on or (option is not None and takes_value(option))
        yield Suggestion(
            word,
            about,
            completed=f"{head} {word}",
            is_whole=taken >= _needed(command) and not is_open,
            goes_on=goes_on,
        )


def _words_before(command: ConsoleCommand, text: str) -> list[str]:
    """Return the words between a command and the word that is being typed."""
    return text.rpartition(" ")[0][len(command.path) :].split()


def _parameters_at(app: ConsoleApp, command: ConsoleCommand, before: Sequence[str]) -> list[Parameter]:
    """Return the parameters of which a value may come after these words, the likeliest first."""
    option = option_named(command, before[-1]) if before else None
    if option is not None and takes_value(option):
        return [option]
    words, arguments = without_options(command, before), command.arguments
    has_subject = bool(subject_of(app, command))
    place = len(words) + (has_subject and not (words and names_subject(app, command, words[0])))
    found = arguments[place : place + 1] or [each for each in arguments[-1:] if each.nargs == -1]
    # The first one too, although what is chosen stands for it.
    more = arguments[:1] if has_subject and not words else ()
    return [*found, *(each for each in more if each not in found)]


def _values(app: ConsoleApp, parameter: Parameter) -> Iterable[tuple[str, str]]:
    """Return the known values of a parameter, each with what it is."""
    choices: Iterable[str] | None = getattr(parameter.type, "choices", None)
    if choices is not None:
        return ((choice, "") for choice in choices)
    known = _VALUES.get(metavar_of(parameter))
    return () if known is None else known(app)


def _runs(app: ConsoleApp) -> Iterator[tuple[str, str]]:
    chosen = {run.id for run in chosen_runs(app)}
    for run in sorted(app.known_runs, key=lambda run: run.id not in chosen)[:_MOST_RUNS]:
        state = wording.FAILURE_WORDS[run.failure_class] if run.failure_class else run.outcome or run.state
        yield str(run.id), f"{run.competition_id} seed {run.seed}, {state.replace('_', ' ')}"


def _sweeps(app: ConsoleApp) -> Iterator[tuple[str, str]]:
    return ((name, "sweep") for name in app.known_sweeps)


def _competitions(_app: ConsoleApp) -> Iterator[tuple[str, str]]:
    return ((name, registry.get(name).complexity) for name in registry.all_ids())


def _tags(app: ConsoleApp) -> Iterator[tuple[str, str]]:
    chosen = {tag.name for run in chosen_runs(app) for tag in run.tags}
    for name in dict.fromkeys(tag.name for run in app.known_runs for tag in run.tags):
        yield name, "on what is chosen" if name in chosen else ""


def _causes(app: ConsoleApp) -> Iterator[tuple[str, str]]:
    return ((key, text) for key, text in dict(map(recorded_cause, app.known_runs)).items() if key)


def _filters(app: ConsoleApp) -> Iterable[tuple[str, str]]:
    return filter_words(app.known_runs, app.settings.filters)


# The values that can be completed, by how the help calls them.
_VALUES: Mapping[str, Callable[[ConsoleApp], Iterable[tuple[str, str]]]] = {
    **dict.fromkeys(("RUN", "RUN...", "[RUN...]", "RUN,...", "LEFT", "RIGHT"), _runs),
    **dict.fromkeys(("SWEEP", "[SWEEP]"), _sweeps),
    **dict.fromkeys(("ID", "[ID]"), _competitions),
    **dict.fromkeys(("TAG...", "[TAG...]"), _tags),
    **dict.fromkeys(("CAUSE", "[CAUSE]"), _causes),
    "[NAME|WORD...]": _filters,
}
_PATHS = frozenset({"FILE", "[FILE]", "SUBMISSION", "DIR|ZIP", "[DIR|ZIP]"})
