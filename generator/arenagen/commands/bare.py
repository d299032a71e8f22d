"""`generate` and `check` of what pyproject.toml lists, which most runs are.

To load the parser of arguments takes longer than to parse all schemas, and there is
nothing to parse.
"""

from __future__ import annotations

from .outcome import Misuse, exit_code


def run(command: str, tool: str | None) -> int | None:
    """The exit code of a command; None where its name does not say enough.

    `tool` is the digest of the tool; None where no earlier run is trusted.
    """

    def work() -> int:
        if command == "check":
            from .checking import check_packages

            return check_packages(no_cache=tool is None, tool=tool)
        from .emitting import emit_packages

        emit_packages(tool=tool)
        return 0

    try:
        return exit_code(work)
    except Misuse:
        return None
    except BrokenPipeError:
        # Nobody reads on.
        return 1
