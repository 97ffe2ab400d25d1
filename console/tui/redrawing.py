"""When the screens of an open console are drawn again: their frames with every tick, themselves in their beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.tui.screen import ConsoleScreen

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp


class Redrawing:
    """Lets the screens that are seen draw themselves again."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._drawn_in = -1

    def frames(self) -> None:
        """The first line, the notices and the footer of all that are seen."""
        for screen in self._seen():
            if screen.is_mounted:
                screen.refresh_frame()

    def everything(self) -> None:
        """All of all that are seen, because it is to look otherwise."""
        self.frames()
        for screen in self._seen():
            screen.draw()

    def foremost(self) -> None:
        """The one in front, if it is one of ours."""
        if isinstance(self._app.screen, ConsoleScreen):
            self._app.screen.draw()

    def tick(self) -> None:
        """A moment has passed, which may be a new one for the screen in front."""
        self.frames()
        # A tick may come when the screens are gone already, because the console is ending.
        if self._app.screen_stack and isinstance(self._app.screen, ConsoleScreen):
            beat = int(self._app.now() // self._app.screen.redraw_every())
            if beat != self._drawn_in:
                self._drawn_in = beat
                self._app.screen.beat()

    def _seen(self) -> list[ConsoleScreen]:
        return [screen for screen in self._app.screen_stack if isinstance(screen, ConsoleScreen)]
