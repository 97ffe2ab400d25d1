"""MLE-bench's module names, implemented by mlebench-console; importing it beside MLE-bench itself is refused."""

from importlib.metadata import PackageNotFoundError, version


def _refuse_the_real_one() -> None:
    try:
        found = version("mlebench")
    except PackageNotFoundError:
        return
    raise ImportError(
        f"mlebench-compat stands in for MLE-bench, and mlebench {found} is installed here too. "
        "Remove one of them, then install the other again: pip uninstall mlebench-compat"
    )


_refuse_the_real_one()
