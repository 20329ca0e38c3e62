"""The command line: thin, everything it does is one call away in Python."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None
        Arguments, by default those of the process, which then ends with the command.

    Returns
    -------
    int
        The exit code; ``treewright --help`` lists them.

    Examples
    --------
    >>> main(["show", "no-such-model.json", "--json"])
    {"error": {"type": "ModelFileError", "message": "no-such-model.json: there is no such file"}}
    4
    """
    from treewright.cli.interrupts import Interrupts, end_process

    # Before all other imports: a Ctrl-C that comes while they last is answered as any other.
    with Interrupts(own_process=argv is None) as interrupts:
        from treewright.cli.entry import run

        code = run(argv, interrupts)
        if argv is None:
            end_process(code, interrupts.seen)
    return code
