"""The ``ringlab`` command: one small dispatch, each subcommand in a module of its own."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module

from ringlab import __version__

# Name of the subcommand: (module with a main(argv) that returns an exit code, what it does).
COMMANDS: dict[str, tuple[str, str]] = {
    "doctor": (
        "ringlab.commands.doctor",
        "say what this machine can run, and what to do about the rest",
    ),
    "demo": ("ringlab.commands.demo", "ring attention on real ranks: checked, counted and drawn"),
    "check": (
        "ringlab.commands.check",
        "run a script of torch.distributed on virtual ranks and say what is wrong with it",
    ),
    "bench": ("ringlab.commands.bench", "how fast the ranks are beside one process with SDPA"),
    "simulate": (
        "ringlab.commands.simulate",
        "a model's attention on a machine that is not here: how long, and why",
    ),
    "grade": ("ringlab.commands.grade", "grade a folder of students' notebooks"),
}


def _parser() -> ArgumentParser:
    lines = [f"  {name:<10} {what}" for name, (_, what) in COMMANDS.items()]
    parser = ArgumentParser(
        prog="ringlab",
        description="Attention over many ranks.\n\ncommands:\n" + "\n".join(lines),
        epilog="ringlab COMMAND --help tells what a command takes.",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ringlab {__version__}")
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ringlab COMMAND ...``.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        The exit code: 0 if all went well.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not argv:
        parser.print_help()
        return 2
    command = parser.parse_args(argv[:1]).command
    module, _ = COMMANDS[command]
    code: int = import_module(module).main(argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(main())
