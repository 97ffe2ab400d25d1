"""The commands of the `:` line for Textual's Ctrl+P palette."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from console.tui.commands import COMMANDS, Command, execute


class ConsoleCommands(Provider):
    """Finds commands by fuzzy search; those that need a word open the command line with their name."""

    async def discover(self) -> Hits:
        """All commands, before anything is typed."""
        for command in COMMANDS:
            yield DiscoveryHit(_title(command), partial(self._take, command), help=command.help)

    async def search(self, query: str) -> Hits:
        """The commands that match."""
        matcher = self.matcher(query)
        for command in COMMANDS:
            score = matcher.match(f"{command.name} {command.help}")
            if score > 0:
                yield Hit(score, _title(command), partial(self._take, command), help=command.help)

    def _take(self, command: Command) -> None:
        from console.tui.app import ConsoleApp
        from console.tui.widgets.command_line import CommandLine

        assert isinstance(self.app, ConsoleApp)  # this console has no other
        if command.needs:
            self.app.screen.mount(CommandLine(f"{command.name} "))
        else:
            execute(self.app, command.name)


def _title(command: Command) -> str:
    return f"{command.name} {command.takes}".rstrip().replace("[", "\\[")
