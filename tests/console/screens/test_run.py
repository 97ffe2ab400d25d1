"""The run screen: its log follows, pauses and searches, and every pane shows its facts."""

from __future__ import annotations

from typing import Any

import pytest

from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.screens.run.screen import RunScreen
from mlebench_console.console.screens.run.submissions import title_of
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import jsonlines
from mlebench_console.state import transitions
from mlebench_console.state.lifecycle import FailureClass, Outcome
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.world import NOW, World

SWEEP = "sweep:aide-o3-lite"


async def test_the_log_follows_pauses_and_searches(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="run:81") as console:
        await console.sees("following", "fixed the label encoder")
        await console.press("k", "k")
        await console.sees("paused")
        log = next(places.runs_dir.glob(f"aide-o3-lite/dogs*/seed-3/attempt-1/{protocol.LOG}"))
        with log.open("a") as stream:
            stream.write("one\ntwo\nthe end\n")
        await console.sees("paused, +3 lines")
        await console.press("G")
        await console.sees("the end", "following")
        await console.press("g", "slash", *"shapes", "enter")
        await console.sees("paused")
        await console.press("n", "N", "e", "E", "w")
        await console.sees("wrap")
        await console.press("w", "right")
        await console.sees("from column 21")


async def test_submissions_are_shown_with_how_often_the_agent_had_its_file_checked(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("f", "enter")
        await console.sees("infrastructure  GPU lost")
        screen = console.app.screen
        assert isinstance(screen, RunScreen) and screen._facts is not None
        directory = screen._facts.directory
        assert directory is not None
        directory.mkdir(parents=True, exist_ok=True)
        jsonlines.append(directory / protocol.VALIDATIONS, [{"time": 1.0e9, "valid": True}] * 3)
        await console.press("tab", "tab")
        await console.sees("3 validations by the agent, the last ")


async def test_a_wrong_expression_is_told(opened: OpenConsole) -> None:
    async with opened(screen="run:48") as console:
        await console.sees("Timeline")
        await console.press("tab", "shift+tab", "slash", "left_parenthesis", "enter")
        await console.sees("is not a regular expression")


async def test_every_pane_shows_its_facts(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as console:
        await console.sees("LOW")
        await console.press("f", "enter")
        await console.sees("infrastructure  GPU lost")
        for seen in (
            "events",
            "no submission",
            "nothing has been measured yet",
            "not counted",
            "run.log",
            "aide-o3",
        ):
            await console.press("tab")
            await console.sees(seen)
        await console.press("Y")
        await console.sees("copied")
        await console.press("r")
        await console.sees("changes no statistics")
        await console.press("n", "s")
        await console.sees("can be stopped")
        await console.press("escape")
        await console.until(lambda: not isinstance(console.app.screen, RunScreen))


async def test_a_score_stands_with_its_better_direction_and_the_teams_that_it_beats(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mlebench_console.competitions.leaderboards.scores_of", lambda _: (0.01, 0.02, 0.06, 0.5)
    )
    async with opened(screen="run:81") as console:
        await console.sees("0.05038 \N{DOWNWARDS ARROW}", "better than 50.0 % of the teams on Kaggle")
        await console.press("tab", "tab")
        await console.until(lambda: console.text().count("better than 50.0 % of the teams on Kaggle") == 2)


async def test_the_sweep_tells_the_rank_of_the_run_under_the_cursor(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench_console.competitions.leaderboards.scores_of", lambda _: (0.99, 0.95, 0.5))
    async with opened(screen=SWEEP, ascii_only=True) as console:
        await console.sees("LOW")
        await console.press("j", "right")
        await console.sees("score 0.93051 ^", "beats 33.3 % of teams")


async def test_the_timeline_says_how_long_the_attempt_at_work_takes_already(opened: OpenConsole) -> None:
    async with opened(screen="run:81") as console:
        await console.press("tab")
        await console.sees("16h02m", "attempt  began")
        line = next(line for line in console.text().splitlines() if "03-13 11:12  16h02m" in line)
        assert line.split()[-1] == "running"
        # Events are told in the signs and words of the matrix, not by the names of their kinds.
        await console.sees("[^] above median 0.09172 (was invalid)", "[S] silver 0.05038 (was above median)")
        assert "submission.graded" not in console.text()


async def test_charts_of_resources_share_one_time_axis_below_the_submissions_and_begin_with_the_gpu(
    opened: OpenConsole,
) -> None:
    async with opened(screen="run:81", size=(80, 24)) as console:
        await console.press("tab", "tab")
        await console.sees(
            "into run", "silver 0.05038", "bronze 0.06127", "0.05038: exactly what silver needs"
        )
        await console.press("tab")
        await console.sees("GPU memory", "disk")
        lines = console.text().splitlines()
        above, axis = (
            next(n for n, line in enumerate(lines) if text in line) for text in ("submissions ", "16h02m now")
        )
        assert lines[axis].split()[:4] == ["0", "4h", "8h", "12h"]
        # Each chart has a scale from 0, and the cursor is on none.
        assert lines[axis + 2].split()[0] == "100" and lines[axis + 3].split()[0] == "0"
        assert axis == above + 1 and "GPU busy" in lines[axis + 1] and "35 %" in lines[axis + 1]
        assert sum("16h02m" in line for line in lines) == 1


@pytest.mark.parametrize("columns", [40, 41, 60])
async def test_resources_are_drawn_without_room_for_charts(opened: OpenConsole, columns: int) -> None:
    async with opened(size=(columns, 24)) as console:
        console.app.show_run(81, pane="resources")
        await console.sees("processors")


async def test_a_queued_run_says_why_it_waits_when_it_may_start_and_what_it_will_run_with(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.large, screen="run:200", size=(80, 24)) as console:
        await console.sees("waits   all 64 slots of its sweep are taken", "135 runs go first")
        await console.sees("by 03-17 02:18", "whole time limit", "no log: the run was never launched")
        assert "/ search" not in console.text()
        await console.press("shift+tab")
        await console.sees("configuration", "openhands")
    async with opened(worlds.paused, screen="run:1", size=(80, 24)) as console:
        await console.sees("waits: its sweep is paused, its dataset is not prepared", "resumes it")


async def test_a_wide_terminal_shows_the_rest_of_the_run_beside_the_pane_and_a_narrow_one_the_log_below(
    opened: OpenConsole,
) -> None:
    async with opened(screen="run:81", size=(200, 60)) as console:
        await console.sees("score over time", "into run", "GPU busy", "attempts", "attempt 1 is running")
        await console.press("tab", "tab")
        await console.misses("score over time")
        await console.sees("resources", "attempt 1 is running", "fixed the label encoder")
        # The log has the room below a short pane, where its lines are not cut.
        rule = 2 * "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
        assert any(line.startswith(f" {rule} log ") for line in console.text().splitlines())
    async with opened(screen="run:81", size=(80, 24)) as console:
        await console.press("tab")
        await console.sees(
            "attempt  began", "\N{BOX DRAWINGS LIGHT HORIZONTAL} log ", "fixed the label encoder"
        )


async def test_the_configuration_begins_with_what_puts_the_score_in_doubt(opened: OpenConsole) -> None:
    async with opened(screen="run:81", size=(80, 40)) as console:
        await console.press("shift+tab")
        await console.sees("directory")
        text = console.text()
        titles = ("to know before the score is used", "differs from the defaults", "configuration")
        assert sorted(titles, key=text.index) == list(titles)
        assert text.index("known defect") < text.index("differs") < text.index("GPUs") < text.index("agent  ")


async def test_a_failed_run_awaits_no_grading(opened: OpenConsole) -> None:
    async with opened(screen="run:49") as console:
        await console.sees("nothing graded", "agent crash")
        assert "nothing graded yet" not in console.text()


async def test_why_a_submission_was_refused_is_told_in_full_at_80_columns(opened: OpenConsole) -> None:
    why = "the columns must be id and label, but they are label and index: rename them, then hand in again"

    def make(places: Places) -> World:
        world = worlds.busy(places)
        with world.database.transaction():
            world.database.execute("UPDATE grades SET message = ? WHERE message = 'no id column'", (why,))
        return world

    async with opened(make, screen="run:81", size=(80, 24)) as console:
        await console.press("tab", "tab")
        await console.sees("x invalid  the columns")
        parts = [line[30:].strip() for line in console.text().splitlines()]
        assert why in " ".join(parts)


async def test_what_was_asked_for_is_written_out_however_narrow_the_terminal_is(opened: OpenConsole) -> None:
    async with opened(screen="run:81", size=(80, 40)) as console:
        await console.sees("Config")
        await console.press("shift+tab")
        await console.sees("known defect", "directory")
        assert (
            console.app.signs.ellipsis not in console.text().partition("directory")[2].partition("metric")[0]
        )
        # Where the path breaks depends on how long it is.
        assert "attempt-1" in "".join(console.text().split())


async def test_a_live_run_that_should_be_looked_at_says_why_at_any_width(opened: OpenConsole) -> None:
    async with opened(screen="run:84", size=(80, 24)) as console:
        await console.sees("running 22:30/24h", "no valid submission, 1h30m left")


async def test_a_run_with_a_refused_submission_says_why_and_one_without_any_awaits_none(
    opened: OpenConsole,
) -> None:
    def refused(places: Places) -> World:
        world = worlds.busy(places)
        attempt = world.launch(world.run("openhands-1", worlds.DEMO[0], 2), ago=3600)
        world.snapshot(attempt, 1, None, Outcome.INVALID, ago=70, message="column 'has_cactus' is missing")
        world.end(attempt, ago=60)
        transitions.collected(world.database, attempt, now=NOW - 50)
        transitions.finished(world.database, attempt, Outcome.INVALID, now=NOW - 40)
        return world

    async with opened(refused, screen="run:16", size=(80, 24)) as console:
        await console.sees("x invalid submission 00:59/24h", "column 'has_cactus' is missing")
    async with opened(screen="run:49", size=(80, 24)) as console:
        await console.press("tab", "tab")
        await console.sees("no submission")
        assert "no submission yet" not in console.text() and "open" not in console.text()


async def test_a_single_score_is_placed_among_the_cut_offs_instead_of_in_a_chart(opened: OpenConsole) -> None:
    async with opened(screen="run:48", size=(120, 40)) as console:
        await console.press("tab", "tab")
        await console.sees("better", "worse", "exactly what silver needs", "1 best")


async def test_on_a_narrow_terminal_an_ended_run_can_be_relaunched_and_a_live_one_stopped_from_its_log(
    opened: OpenConsole,
) -> None:
    async with opened(screen="run:49", size=(80, 24)) as console:
        await console.sees("!c failed", "agent crash", "r re-roll", "c class", "esc back")
    async with opened(screen="run:56", size=(80, 24)) as console:
        await console.sees("!i failed", "r relaunch (free)", "c class", "esc back")
    async with opened(screen="run:81", size=(80, 24)) as console:
        await console.sees("following", "s stop", "esc back")


async def test_the_selection_in_a_log_says_which_keys_use_it(opened: OpenConsole) -> None:
    async with opened(screen="run:48", size=(80, 24)) as console:
        await console.sees("the end")
        await console.press("k", "m")
        await console.sees("16 lines selected: y copies, S saves")
        await console.press("m")
        await console.misses("selected:")


async def test_the_header_and_the_attempts_take_the_same_time_from_the_agents_begin_to_its_end(
    opened: OpenConsole,
) -> None:
    async with opened(screen="run:56", size=(120, 40)) as console:
        await console.press("tab")
        await console.sees("13:14/24h", "13h14m")


async def test_a_refused_submission_without_a_reason_says_so_and_its_outcome_once(
    opened: OpenConsole,
) -> None:
    async with opened(screen="run:51", size=(80, 24)) as console:
        await console.sees("x invalid submission", "the reason was not kept")
        assert console.text().count("invalid submission") == 1
        await console.press("tab", "tab")
        await console.sees("x invalid  the reason was not kept")


async def test_a_run_stopped_before_its_launch_says_when_and_by_whom_and_shows_its_configuration_beside(
    opened: OpenConsole,
) -> None:
    def make(places: Places) -> World:
        world = worlds.busy(places)
        transitions.stopped(world.database, 60, by="op@host", now=NOW - 300)
        return world

    async with opened(make, screen="run:60", size=(200, 60)) as console:
        await console.sees("stopped by op@host, 03-14 03:09", "no log", "configuration", "aide-o3")


async def test_a_held_job_names_who_can_release_it(opened: OpenConsole) -> None:
    async with opened(worlds.on_slurm, screen="run:18", size=(80, 24)) as console:
        await console.sees(
            "waits in Slurm", "job 4269 in slurm:gpu", "JobHeldAdmin: an administrator holds it"
        )
        await console.sees("next: ask Slurm's administrators for 'scontrol release 4269'")


async def test_a_failure_of_unknown_cause_tells_the_exit_code(opened: OpenConsole) -> None:
    def make(places: Places) -> World:
        world = worlds.busy(places)
        world.fail(world.launch(60, ago=7200), FailureClass.UNKNOWN, "", ago=1800)
        return world

    async with opened(make, screen="run:60", size=(160, 48)) as console:
        await console.sees("!? failed", "unknown cause  exit code 1", "!? unknown")
        assert "unknown:" not in console.text()


async def test_events_beside_a_pane_are_wrapped_and_newest_first(opened: OpenConsole) -> None:
    async with opened(screen="run:56", size=(160, 48)) as console:
        await console.sees("attempt 1 is running", "!i infrastructure")
        text = console.text()
        assert text.index("!i infrastructure") < text.index("attempt 1 is running")
        beside = [line.rpartition("\N{BOX DRAWINGS LIGHT VERTICAL}")[2].strip() for line in text.splitlines()]
        assert "Unknown Error" in " ".join(beside)


async def test_the_title_of_a_submissions_file_names_its_run_and_score(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen="run:81", size=(120, 40)) as console:
        await console.sees("Submissions")
        screen = console.app.screen
        assert isinstance(screen, RunScreen) and screen._facts is not None
        about = title_of(screen._facts.submissions[-1], screen._facts.run)
        console.app.push_screen(FileScreen(places.config_file, about=about))
        await console.sees("run 81, submission 4, 0.05038, silver")


async def test_a_score_says_how_many_of_kaggles_teams_it_beats(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Their scores are not ours to ship, so that no competition here has them.
    monkeypatch.setattr(
        "mlebench_console.console.nouns.competition.percentile", lambda _competition, score: score and 87.25
    )
    async with opened(screen="run:81", size=(120, 40)) as console:
        await console.sees("now silver 0.05038", "better than 87.2 % of the teams")
        await console.press("tab", "tab")
        await console.sees("better than 87.2 % of the teams", "exactly what silver needs")
    async with opened(screen="run:49", size=(120, 40)) as console:
        await console.sees("agent crash")
        assert "87.2 %" not in console.text()
