"""A substitute for `conda` in agents' images that installs packages with the library rattler.

It is in the image as `__main__.py` of a folder beside rattler, and is called by the script `conda`, which finds the
environments. An environment made with `python -m venv`, as `agent` is, keeps its Python, which the solver treats as
an installed package that can't be changed. Channels are those of `-c`, then of `.condarc`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from rattler import (
    BuildString,
    Channel,
    ChannelConfig,
    ChannelPriority,
    Client,
    Config,
    Gateway,
    MatchSpec,
    PackageRecord,
    PrefixRecord,
    RepoDataRecord,
    Subdir,
    VirtualPackage,
    install,
    solve,
)
from rattler.exceptions import (
    GatewayError,
    InstallerError,
    InvalidMatchSpecError,
    LinkError,
    SolverError,
    TransactionError,
)

_META = "conda-meta"
_USUAL = {
    "channels": ["conda-forge"],
    "channel_alias": "https://conda.anaconda.org",
    "channel_priority": "strict",
}
_VENV_VERSION = "import platform; print(platform.python_version())"
# conda's users write `name=1.2` where a match specification has a space.
_NAME_AND_VERSION = re.compile(r"([^=<>!~ \[]+)=([^=].*)")


class Refusal(Exception):
    """A request that can't be fulfilled; the message is for readers of the build's log."""


_EXPECTED = (
    Refusal,
    OSError,
    yaml.YAMLError,
    GatewayError,
    InstallerError,
    InvalidMatchSpecError,
    LinkError,
    SolverError,
    TransactionError,
)


def channels_of(options: argparse.Namespace) -> tuple[list[Channel], bool]:
    """Return the channels of the command line before those of `.condarc`, and whether their order is strict."""
    condarc_values = _read_condarc(options.condarc)
    alias = os.environ.get("CONDA_CHANNEL_ALIAS", str(condarc_values["channel_alias"]))
    config = ChannelConfig(channel_alias=f"{alias.rstrip('/')}/")
    names = dict.fromkeys(
        [*options.channel, *([] if options.override_channels else condarc_values["channels"])]
    )
    return [Channel(name, config) for name in names], condarc_values["channel_priority"] == "strict"


def main() -> int:
    """Run the command of the script `conda`; the first argument is the folder of the environment."""
    options = _parser().parse_args()
    made = not options.prefix.exists()
    try:
        options.do(options)
    except _EXPECTED as problem:
        if made:  # the next try must not find an incomplete environment
            shutil.rmtree(options.prefix, ignore_errors=True)
        sys.stderr.write(f"conda: {problem}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    # Accepted and ignored: options about confirmation, output and the choice of the solver.
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-y", "--yes", action="store_true")
    common.add_argument("-q", "--quiet", action="store_true")
    common.add_argument("-v", "--verbose", action="count")
    common.add_argument("--solver")
    common.add_argument("--json", action="store_true")
    common.add_argument("--strict-channel-priority", action="store_true")

    solving = argparse.ArgumentParser(add_help=False)
    solving.add_argument("-c", "--channel", action="append", default=[])
    solving.add_argument("--override-channels", action="store_true")
    solving.add_argument("-d", "--dry-run", action="store_true")

    parser = argparse.ArgumentParser(prog="conda", description="Install packages into an environment.")
    parser.add_argument("prefix", type=Path)
    parser.add_argument("condarc", type=Path)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, do: Any, *parents: argparse.ArgumentParser, **more: Any
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name, parents=[common, *parents], **more)
        made.set_defaults(do=do)
        return made

    for name in ("install", "create", "update"):
        made = command(name, _install, solving, aliases=["upgrade"] if name == "update" else [])
        made.set_defaults(command=name)
        made.add_argument("specs", nargs="*", metavar="PACKAGE")
        made.add_argument("--file", action="append", default=[], type=Path)
        made.add_argument("--all", action="store_true")
        made.add_argument("--freeze-installed", "--no-update-deps", action="store_true")
        made.add_argument("--force-reinstall", action="store_true")
    made = command("remove", _remove, aliases=["uninstall"])
    made.add_argument("specs", nargs="*", metavar="PACKAGE")
    made.add_argument("--all", action="store_true")
    made = command("search", _search, solving)
    made.add_argument("specs", nargs=1, metavar="PACKAGE")
    command("list", _list).add_argument("pattern", nargs="?", default="")
    made = command("config", _configure)
    made.add_argument("--add", "--prepend", nargs=2, action="append", default=[])
    made.add_argument("--append", nargs=2, action="append", default=[])
    made.add_argument("--set", nargs=2, action="append", default=[])
    made.add_argument("--show", nargs="*")
    for name in ("env-create", "env-update"):
        made = command(name, _install_file, solving)
        made.set_defaults(command=name)
        made.add_argument("-f", "--file", type=Path, default=Path("environment.yml"))
        made.add_argument("--prune", action="store_true")
    return parser


def _install(options: argparse.Namespace) -> None:
    specs = [*options.specs, *(spec for file in options.file for spec in _lines(file))]
    if not specs and options.command != "create" and not options.all:
        raise Refusal(f"'{options.command}' needs the name of a package")
    if options.command == "create":
        _make(options.prefix)
    free = {_name(spec) for spec in specs} if options.command == "update" else set()
    asyncio.run(
        _solve_and_link(
            options,
            specs,
            kept=lambda record: not options.all and record.name.normalized not in free,
            again={_name(spec) for spec in specs} if options.force_reinstall else set(),
        )
    )


def _install_file(options: argparse.Namespace) -> None:
    """Create or update an environment from an `environment.yml`, including its pip packages."""
    content = yaml.safe_load(options.file.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise Refusal(f"{options.file} is not a description of an environment")
    dependencies = content.get("dependencies") or []
    specs = [one for one in dependencies if isinstance(one, str)]
    of_pip = [line for one in dependencies if isinstance(one, dict) for line in one.get("pip") or []]
    if options.command == "env-create":
        _make(options.prefix)
    channels = content.get("channels") or []
    options.channel += [name for name in channels if name not in ("nodefaults", "defaults")]
    options.override_channels |= "nodefaults" in channels
    asyncio.run(_solve_and_link(options, specs, kept=lambda _record: True, again=set()))
    if of_pip and not options.dry_run:
        pip = [options.prefix / "bin" / "python", "-m", "pip", "install", *of_pip]
        if (code := subprocess.run(pip, check=False).returncode) != 0:
            raise Refusal(f"pip ended with {code}")


def _remove(options: argparse.Namespace) -> None:
    if options.all:
        shutil.rmtree(_existing(options.prefix))
        return
    gone = {_name(spec) for spec in options.specs}
    installed = _installed(options.prefix)
    unknown = sorted(gone - {record.name.normalized for record in installed})
    if unknown:
        raise Refusal(f"package '{unknown[0]}' is not installed in {options.prefix}")
    changed = True
    while changed:  # packages that depend on a removed one are removed too
        more = {
            record.name.normalized
            for record in installed
            if any(_name(needed) in gone for needed in record.depends) and record.name.normalized not in gone
        }
        gone |= more
        changed = bool(more)
    asyncio.run(_link(options.prefix, [one for one in installed if one.name.normalized not in gone], set()))


def _search(options: argparse.Namespace) -> None:
    channels, _ = channels_of(options)
    spec = _spec(options.specs[0])
    found = asyncio.run(
        _gateway().query(channels, [Subdir.current(), Subdir("noarch")], [spec], recursive=False)
    )
    records = sorted((record for one in found for record in one), key=lambda record: record.version)
    if not records:
        raise Refusal(f"no channel has a package '{options.specs[0]}'")
    _show(records)


def _list(options: argparse.Namespace) -> None:
    records = [one for one in _installed(_existing(options.prefix)) if options.pattern in one.name.normalized]
    _show(sorted(records, key=lambda record: record.name.normalized))


def _show(records: Iterable[Any]) -> None:
    for one in records:
        sys.stdout.write(
            f"{one.name.normalized:<30} {one.version!s:<15} {one.build!s:<20} {one.channel or ''}\n"
        )


def _configure(options: argparse.Namespace) -> None:
    values = _read_condarc(options.condarc)
    for key, value in options.set:
        values[key] = value
    for at, pairs in ((0, options.add), (None, options.append)):
        for key, value in pairs:
            kept = [one for one in values.get(key) or [] if one != value]
            kept.insert(len(kept) if at is None else at, value)
            values[key] = kept
    if options.set or options.add or options.append:
        options.condarc.write_text(yaml.safe_dump(values), encoding="utf-8")
    else:
        sys.stdout.write(yaml.safe_dump(values))


def _read_condarc(condarc: Path) -> dict[str, Any]:
    found = yaml.safe_load(condarc.read_text(encoding="utf-8")) if condarc.is_file() else None
    values = _USUAL | (found if isinstance(found, dict) else {})
    # "defaults" is conda's name for channels that need a licence.
    values["channels"] = [name for name in values["channels"] if name != "defaults"] or _USUAL["channels"]
    return values


async def _solve_and_link(
    options: argparse.Namespace, specs: list[str], *, kept: Any, again: set[str]
) -> None:
    """Solve for the installed and the requested packages, and link the result."""
    prefix = _existing(options.prefix)
    installed = _installed(prefix)
    own = _python_of_a_venv(prefix, installed)
    requested = [_spec(one) for one in specs]
    names = {_name(one) for one in specs}
    kept_specs = [MatchSpec(one.name.normalized) for one in installed if one.name.normalized not in names]
    channels, is_strict = channels_of(options)
    if not requested and not kept_specs:
        return
    try:
        solved = await solve(
            sources=channels,
            specs=[*requested, *kept_specs],
            gateway=_gateway(),
            locked_packages=[one for one in installed if kept(one) and one.name.normalized not in again],
            pinned_packages=own,
            virtual_packages=VirtualPackage.detect(),
            channel_priority=ChannelPriority.Strict if is_strict else ChannelPriority.Disabled,
        )
    except SolverError as error:
        about = f" (its Python {own[0].version}, which belongs to the system, stays)" if own else ""
        raise Refusal(f"{' '.join(specs)} can't be installed into {prefix}{about}: {error}") from error
    if options.dry_run:
        _show(solved)
        return
    await _link(prefix, solved, {record.name.normalized for record in own}, again)
    for spec in requested:
        record = next((one for one in solved if spec.matches(one)), None)
        if record is not None:
            sys.stdout.write(f"{prefix}: {record.name.normalized} {record.version} {record.build}\n")


async def _link(prefix: Path, records: list[Any], untouched: set[str], again: set[str] | None = None) -> None:
    await install(
        records,
        target_prefix=prefix,
        cache_dir=_cache() / "pkgs",
        reinstall_packages=again or None,
        ignored_packages=untouched or None,
        execute_link_scripts=True,
        show_progress=False,
        client=Client.from_config(_network()),
    )


def _gateway() -> Gateway:
    return Gateway(cache_dir=_cache() / "repodata", client=Client.from_config(_network()))


def _network() -> Config:
    """Return a configuration that trusts the system's certificates, and those that SSL_CERT_FILE names."""
    return Config.from_toml('tls-root-certs = "system"')


def _cache() -> Path:
    """Return the folder of packages that is kept between builds' steps; `conda clean` removes it."""
    return Path(os.environ.get("CONDA_PKGS_DIRS") or Path.home() / ".cache" / "conda")


def _python_of_a_venv(prefix: Path, installed: list[PrefixRecord]) -> list[RepoDataRecord]:
    """Return the Python of an environment that `venv` made, as a package; none where conda installed one."""
    python = prefix / "bin" / "python"
    if any(one.name.normalized == "python" for one in installed) or not python.exists():
        return []
    done = subprocess.run([python, "-I", "-c", _VENV_VERSION], capture_output=True, text=True, check=True)
    version = done.stdout.strip()
    short = ".".join(version.split(".")[:2])
    record = PackageRecord(
        "python",
        version,
        BuildString("0_cpython"),
        0,
        Subdir.current(),
        python_site_packages_path=f"lib/python{short}/site-packages",
    )
    name = f"python-{version}-0_cpython.conda"
    return [RepoDataRecord(record, name, f"file:///{name}", "file:///")]


def _installed(prefix: Path) -> list[PrefixRecord]:
    return [PrefixRecord.from_path(path) for path in sorted((prefix / _META).glob("*.json"))]


def _make(prefix: Path) -> None:
    if (prefix / _META).is_dir() or (prefix / "bin").exists():
        raise Refusal(f"an environment exists at {prefix} already")
    (prefix / _META).mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / _META / "history").touch()


def _existing(prefix: Path) -> Path:
    if not (prefix / "bin").is_dir():
        raise Refusal(f"there is no environment at {prefix}")
    return prefix


def _spec(text: str) -> MatchSpec:
    """Parse a package as conda's users write it: `name=1.2` means any 1.2."""
    found = _NAME_AND_VERSION.fullmatch(text)
    if found is None:
        return MatchSpec(text)
    name, version = found.groups()
    version, _, build = version.partition("=")
    starred = version if re.search(r"[*<>,|]", version) else f"{version}.*"
    return MatchSpec(f"{name} {starred if not build else version} {build}".strip())


def _name(text: str) -> str:
    """Return the name of the package in a specification."""
    return re.split(r"[=<>!~ \[]", text.rpartition("::")[2], maxsplit=1)[0].lower()


def _lines(file: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("@")]


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Without the interpreter's finalization, which has crashed while threads of rattler were still running.
    os._exit(code)
