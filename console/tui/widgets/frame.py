"""The lines around a screen's body: its title and the engine's health, notices, and the keys that work now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.keys import key_to_character
from textual.widgets import Input

from mlebench_console.console import wording
from mlebench_console.console.pieces import foreign, spread, width_of
from mlebench_console.console.roles import Drawing, Piece, Pieces
from mlebench_console.console.tui.keys import SCREENS, Context, Key
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.widgets.blocks import wrapped
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.foundation.text import plural

if TYPE_CHECKING:
    from mlebench_console.foundation.problems import Problem

# From this width on titles of screens come before figures of the engine, at least those of so many screens.
_TITLED_WIDTH, _FIRST_TITLES = 120, 6
_UNDO = "app.undo"
# The most lines of one notice.
_MOST_LINES = 2


class TopLine(Painted):
    """The screen's title, what needs a person, the engine's health and the time."""

    def renew(self, mode: str) -> None:
        """Show how things are now, on a numbered screen or one that belongs to it."""
        self.show(partial(self._line, mode))

    def _line(self, mode: str, drawing: Drawing) -> Iterable[Pieces]:
        clock: Pieces = (("   ", "text"), (wording.clock(self.app.now()), "text"), (" ", "text"))
        rights = [(*self._health(detail), *clock) for detail in (3, 2, 1, 0, -1)]
        titles = range(len(SCREENS), _FIRST_TITLES - 1, -1) if drawing.width >= _TITLED_WIDTH else ()
        forms = [(_titles(mode, titled), right) for titled in titles for right in rights[:-1]]
        forms += [(_titles(mode, 0), right) for right in rights]
        fitting = (form for form in forms if width_of((*form[0], *form[1])) < drawing.width)
        yield spread(*next(fitting, forms[-1]), drawing.width)

    def _health(self, detail: int) -> Pieces:
        """Return the health of engine and runs at a level of detail: -1 shows only problems, 3 everything."""
        app = self.app
        engine, dot = app.engine, f" {app.signs.dot} "
        pieces: list[Piece] = []
        if app.readonly:
            pieces += [("read-only", "warn"), (dot, "faint")]
        if app.needed:
            needs = f"{app.needed:,} {'needs' if app.needed == 1 else 'need'} you"
            pieces += [(needs, "warn"), (dot, "faint")]
        if engine is None or not engine.running:
            if app.condition.health in (StateHealth.ABSENT, StateHealth.UNKNOWN):
                return (*pieces, ("no engine yet", "dim"))
            return (*pieces, (f"{app.signs.failed} engine down", "bad"))
        troubles = len(engine.problems) or bool(engine.problem)
        if engine.is_silent(app.now()):
            pieces.append(("engine silent", "warn"))
        elif troubles:
            pieces.append((f"engine: {plural(troubles, 'problem')}", "warn"))
        else:
            pieces.append(("engine ok", "good"))
        running = engine.live - engine.waiting
        if detail >= 0 or not app.needed:
            pieces += [(dot, "faint"), (f"{running} running", "running" if running else "dim")]
        if engine.waiting:
            pieces += [(dot, "faint"), (f"{engine.waiting:,} wait", "text")]
        if detail >= 3 and engine.queued:
            pieces += [(dot, "faint"), (f"{engine.queued:,} queued", "dim")]
        # The disk of the state, unless only that of the data is nearly full.
        low = [disk for disk in engine.disks if disk.is_low]
        if low or (engine.disks and detail >= 1):
            disk = (low or engine.disks)[0]
            size = f"{'data disk' if disk.holds == 'datasets' else 'disk'} {wording.size(disk.free)}"
            text = f"{size} free" if low or detail >= 2 else size
            pieces += [(dot, "faint"), (text, "bad" if low else "dim")]
        return tuple(pieces)


def _titles(mode: str, titled: int) -> Pieces:
    """Return the keys of the screens, the first `titled` of them with their titles."""
    pieces: list[Piece] = [(" ", "text")]
    for place, (name, key, title, _about) in enumerate(SCREENS):
        if name == mode:
            pieces += [(key, "accent"), (f" {title}", "strong"), ("  ", "text")]
        elif place < titled:
            pieces += [(key, "dim"), (f" {title}", "dim"), ("  ", "text")]
        else:
            pieces += [(key, "dim"), (" ", "text")]
    return tuple(pieces)


class Notices(Painted):
    """Notices, shown as long as they are true: problems, requests that can be undone, demo data."""

    def renew(self, problems: Iterable[Problem], *, with_needs: bool) -> None:
        """Show the problems of the screen's queries and, if the screen does not list them, the worst of the host."""
        app, settings = self.app, self.app.settings
        found: list[Piece] = [
            (f"{need.text}{self._step}", "bad" if need.is_bad else "warn")
            for need in app.host_needs[:with_needs]
        ]
        found += [(". ".join(str(problem).splitlines()), "bad") for problem in problems]
        if app.waiting and app.is_overdue:
            undo = f"{app.signs.dot} {settings.key_of(_UNDO)} undo"
            found.append((f"{app.waiting[-1].text}: it waits for the engine {undo}", "warn"))
        if app.demo:
            found.append(("demo: synthetic data, real thresholds, not a result", "warn"))
        self.show(*(wrapped(text, role, most=_MOST_LINES) for text, role in found))

    @property
    def _step(self) -> str:
        """How the engine is started where that is what the host needs; empty in a read-only console."""
        app = self.app
        is_down = app.has_state and not app.unread and not (app.engine and app.engine.running)
        return f"; {app.settings.key_of('app.command')}engine start" if is_down and not app.readonly else ""


class Footer(Painted):
    """The keys that work now; a read-only console leaves out those that change something.

    While a field has the focus, keys that would be typed into it are left out. Where there is no room for all of the
    screen's own, the last ones are left out, but never the way back.
    """

    def renew(self, contexts: Sequence[Context], label_of: Callable[[Key], str]) -> None:
        """Show the keys of these contexts, each with its label; one without a label would do nothing now."""
        app = self.app
        prompt = next(iter(self.screen.query(".prompt.-open").results(Prompt)), None)
        if prompt is not None:  # all other keys are text input now
            typed = (piece for key in prompt.keys for piece in self._named(*key))
            self.show(((" ", "text"), *typed))
        elif app.waiting and not app.is_overdue:
            self.show(self._undo_line())
        else:
            self.show(partial(self._keys, contexts, label_of))

    def _keys(
        self, contexts: Sequence[Context], label_of: Callable[[Key], str], drawing: Drawing
    ) -> Iterable[Pieces]:
        app = self.app
        is_typing = isinstance(self.screen.focused, Input)

        def drawn(key: Key) -> Pieces:
            """Return the first key of an action that works now, with its label; empty if it has none."""
            names = [name for name in key.keys if not (is_typing and _is_typed(name))]
            return self._named(names[0], label_of(key)) if names else ()

        keys = app.settings.keys
        able = [key for key in keys.footer(*contexts) if label_of(key) and not (key.changes and app.readonly)]
        own = {key: pieces for key in able if (pieces := drawn(key))}
        right = tuple(piece for key in keys.footer("app") if key not in own for piece in drawn(key))
        room = drawing.width - width_of(right) - 1
        for key in reversed(able):
            if sum(map(width_of, own.values())) > room and key in own and key.label != "back":
                del own[key]
        left = (piece for pieces in own.values() for piece in pieces)
        yield spread(((" ", "text"), *left), right, drawing.width)

    def _undo_line(self) -> Pieces:
        """Return what the last undoable request will do, in how many seconds, and the key that undoes it."""
        app, last = self.app, self.app.waiting[-1]
        seconds = max(0, math.ceil((last.not_before or 0.0) - max(app.now(), last.filed_at)))
        soon = f" in {seconds} s" if seconds else " now"
        key = app.settings.key_of(_UNDO)
        undo: Pieces = ((f" {app.signs.dot} ", "faint"), (key, "accent"), (" undo", "text"))
        more = len(app.waiting) - 1
        return (
            (" ", "text"),
            (f"{foreign(last.text, 60).rstrip()}{soon}", "warn"),
            *(() if app.readonly else undo),
            (f"   and {more} more" if more else "", "dim"),
        )

    def _named(self, key: str, label: str) -> Pieces:
        return (self.app.settings.name_of(key), "accent"), (f" {label}  ", "dim")


def _is_typed(name: str) -> bool:
    """Return whether a key types a character into a field."""
    character = key_to_character(name)
    return character is not None and character.isprintable()
