"""What the commands of the command line share: their app, common flags, places, and requests to the engine.

What they print is in `console.cli.output`, their table and the handling of their errors in `console.cli.program`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
import typer.core
from typer import Argument, Option

from mlebench_console.console.cli.output import say, say_json, say_on_stderr, say_rows, say_texts
from mlebench_console.foundation.problems import EnvironmentProblem, StateProblem, UsageProblem

if TYPE_CHECKING:
    from mlebench_console.console.actions.action import Action
    from mlebench_console.console.fields import Noun, Row
    from mlebench_console.engine.control import Answer
    from mlebench_console.engine.places import Places
    from mlebench_console.environment.gateway.prices import PriceTable
    from mlebench_console.state.database import Database

Function = TypeVar("Function", bound=Callable[..., Any])
Record = TypeVar("Record")


DataDir = Annotated[Path | None, Option("--data-dir", metavar="DIR", help="The datasets directory.")]
CompetitionId = Annotated[str, Argument(metavar="ID", help="Which competition.")]
CompetitionIds = Annotated[
    list[str] | None, Option("--competition-id", "-c", metavar="ID", help="A competition; repeatable.")
]
Lines = Annotated[int, Option("--lines", "-n", min=0, help="How many of the last lines to print.")]
AtOnce = Annotated[
    int | None, Option(min=1, metavar="N", help="How many to grade at once; by default one per processor.")
]
Following = Annotated[bool, Option("--follow", "-f", help="Keep printing as the log grows.")]
EditionFlag = Annotated[
    Literal["v1", "corrected"],
    Option("--edition", help="v1 is MLE-bench bit for bit; corrected fixes its defects."),
]


@dataclass(frozen=True)
class Appearance:
    """How the console opens."""

    screen: str | None = None
    readonly: bool = False
    ascii: bool = False
    theme: str | None = None


@dataclass(frozen=True)
class Invocation:
    """The flags that apply to every command.

    Attributes:
        carry_out: takes the actions of a command that a console runs; None in a shell.
    """

    state_dir: Path | None = None
    data_dir: Path | None = None
    config: Path | None = None
    demo: bool = False
    appearance: Appearance = Appearance()
    carry_out: Callable[[Action], None] | None = None

    # A frozen dataclass still has a dictionary, which is where a cached property lives.
    @cached_property
    def own_places(self) -> Places:
        """The paths of the user's own configuration, data and state."""
        from mlebench_console.engine.places import find_places
        from mlebench_console.engine.settings import unknown_settings

        places = find_places(state_dir=self.state_dir, data_dir=self.data_dir, config_file=self.config)
        for text in unknown_settings(places.config_file):
            say_on_stderr(f"warning: {text}")
        return places

    @cached_property
    def places(self) -> Places:
        """The paths to work with: the user's own, or the demo's."""
        if not self.demo:
            return self.own_places
        from mlebench_console.engine.demo import demo_places

        return demo_places(self.own_places)


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Context(typer.Context):
    """What a command is called in: its places, the state, the engine, and whether it prints JSON.

    Attributes:
        json: whether it prints one JSON document instead of text.
    """

    json = False

    @property
    def invocation(self) -> Invocation:
        """The flags before the command."""
        return self.find_object(Invocation) or Invocation()

    @property
    def places(self) -> Places:
        """The directories that the flags before the command name."""
        return self.invocation.places

    @property
    def prices(self) -> PriceTable:
        """The prices of models, config.toml's before the built-in ones."""
        from mlebench_console.engine.providers import model_prices

        return model_prices(self.places.config_file)

    @property
    def must_apply_to_all(self) -> bool:
        """Whether an action is refused where it does not apply to each run: those chosen on a screen are mixed."""
        return self.invocation.carry_out is None

    def data_dir(self, given: Path | None) -> Path:
        """Return the datasets directory; a flag after the command, as in MLE-bench, comes first."""
        return self.places.data_dir if given is None else given.expanduser().absolute()

    @contextmanager
    def reading_state(self) -> Iterator[Database]:
        """Open the state for reading, and close it again."""
        from mlebench_console.state.database import exists, open_for_reading

        folder = self.places.state_dir
        if self.invocation.demo and not exists(folder):
            raise StateProblem("there is no demo yet", "", "'mlebench-console demo' makes it.")
        with closing(open_for_reading(folder)) as database:
            yield database

    def engine(self, data_dir: Path | None = None) -> AbstractContextManager[Places]:
        """Provide an engine for a data directory, by default the own one; see `engine_for`."""
        from mlebench_console.console.cli.host.engine import engine_for

        return engine_for(self.places, self.places.data_dir if data_dir is None else data_dir)

    def perform(self, action: Action, *, yes: bool = True, starting: bool = False, **more: Any) -> None:
        """Send an action's requests to the engine and print the answers; a console does both by itself.

        Args:
            action: what is asked of the engine.
            yes: do not ask, even where the action warns.
            starting: start the engine where none runs, because there will be work for it.
            more: what the JSON says beside the answer.

        Raises:
            UsageProblem: there is something to ask, and no terminal.
            Abort: the answer was no.
            Exit: a console has taken the action.
        """
        from mlebench_console.engine.control import ask, ensure_running, status

        if self.invocation.carry_out is not None:
            self.invocation.carry_out(action)
            raise typer.Exit
        question = action.question
        if question is not None and question.warns and not yes:
            stakes = [part.in_words() for part in question.affected if part.is_warning]
            if not sys.stdin.isatty():
                raise UsageProblem(" ".join(stakes), "", "Give --yes to do it without being asked.")
            say("\n".join(stakes))
            typer.confirm(question.title, abort=True)
        if starting and not status(self.places).running:
            say_on_stderr(f"started the engine, process {ensure_running(self.places).pid}")
        for request in action.requests:
            self.say_answer(ask(self.places, request), **more)

    def say_answer(self, answer: Answer, **more: Any) -> None:
        """Write the engine's answer; `more` is added to its JSON."""
        self.say_result(asdict(answer) | more, answer.text)

    def say_result(self, document: Any, *lines: str) -> None:
        """Write what the command has done: as one JSON document, or as lines of text."""
        if self.json:
            say_json(document)
            return
        for line in lines:
            say(line)

    def say_list(self, noun: Noun[Row], rows: Sequence[Row], fields: str, *, nothing: str = "") -> None:
        """Write rows of a noun: their documents as JSON, or columns of these fields, or `nothing` for none."""
        if self.json:
            now = time.time()
            say_json([noun.document(row, now) for row in rows])
        elif rows or not nothing:
            say_rows(noun.columns(fields), rows)
        else:
            say(nothing)

    def say_records(
        self,
        titles: Sequence[str],
        records: Sequence[Record],
        texts: Callable[[Record], Sequence[str]],
        *,
        document: Callable[[Any], Any] = asdict,
        right: Collection[str] = (),
        nothing: str = "",
    ) -> None:
        """Write records: as their JSON documents, or as rows of their texts, or `nothing` where there are none."""
        if self.json:
            say_json(list(map(document, records)))
        elif records or not nothing:
            say_texts(titles, map(texts, records), right=right)
        else:
            say(nothing)


class TextCommand(typer.core.TyperCommand):
    """A command that prints text alone."""

    context_class = Context


class Command(TextCommand):
    """A command that prints text, or with `--json` one document."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.append(
            typer.core.TyperOption(
                param_decls=["--json"],
                default=False,
                is_flag=True,
                expose_value=False,
                callback=_keep_json,
                help="Print one JSON document instead of text.",
            )
        )


def _keep_json(context: Context, _parameter: object, value: bool) -> None:
    context.json = value


class App(typer.Typer):
    """The Typer app of a command or group."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        """Register a command; unless it has another class, it has `--json`."""
        return super().command(name, **{"cls": Command, "context_settings": _SETTINGS, **settings})


def new_app(help: str = "", **settings: Any) -> App:
    """Make the Typer app of a command or group: plain help, errors left to `console.cli.program`."""
    return App(
        help=help,
        # Rich would cost more than the whole start-up, and plain text suits pipes and screen readers.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings=_SETTINGS,
        **settings,
    )


def new_group(help: str = "") -> App:
    """Make the Typer app of a group of commands, even if it has only one command."""
    app = new_app(help, no_args_is_help=True)

    @app.callback()
    def group() -> None:
        pass

    return app


def require_terminal() -> None:
    """Refuse to open the console without a terminal.

    Raises:
        EnvironmentProblem: there is no terminal to draw on.
    """
    # Textual draws on the error stream, unless it is to speak to a browser.
    streams = (sys.stdin, sys.stdout, sys.__stderr__)
    if "TEXTUAL_DRIVER" not in os.environ and not all(each is not None and each.isatty() for each in streams):
        raise EnvironmentProblem(
            "the console needs a terminal",
            "input, output or the error stream is not one",
            "Use 'mlebench-console status' and the other commands instead; see --help.",
        )


def open_console(places: Places, appearance: Appearance, *, demo: bool = False) -> None:
    """Open the console and leave with its exit code."""
    require_terminal()
    from mlebench_console.console.app.run import run_console
    from mlebench_console.console.cli.program import shell

    code = run_console(places, shell(), demo=demo, **asdict(appearance))
    if code:
        raise typer.Exit(code)
