"""``ringlab check``: run a script of torch.distributed on virtual ranks and say what is wrong.

Deadlocks, operations that nobody matched or waited for, ends that do not agree, and buffers that
are touched while a message uses them are found by rules, not by timing, without a GPU.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from ringlab.draw import bytes_text
from ringlab.timeline import Timeline
from ringlab.world import World, WorldError
from ringlab.world.virtual.script import Script

ORDERS = {"stream": "NCCL's rules", "host": "gloo's rules"}
SHOWN = 8
"""How many ranks the summary lists before it only counts."""


def main(argv: Sequence[str]) -> int:
    """Check a script.

    Parameters
    ----------
    argv : sequence of str

    Returns
    -------
    int
        0 if nothing was found, 1 if the script is wrong or failed, 2 if it cannot be run.
    """
    ours, _, theirs = _split(argv)
    arguments, rest = _parser().parse_known_args(ours)
    if arguments.ranks < 1:
        _parser().error(f"--ranks is {arguments.ranks}; a world has at least 1.")
    try:
        script = Script(arguments.script, [*rest, *theirs])
    except (OSError, SyntaxError) as error:
        print(f"ringlab check: {arguments.script} cannot be run: {error}", file=sys.stderr)
        return 2
    where = (
        f"{arguments.script.name} on {arguments.ranks} virtual ranks, "
        f"under {ORDERS[arguments.order]}"
    )
    with World(arguments.ranks, order=arguments.order, timeout=arguments.timeout) as world:
        try:
            with script.started() as run:
                world.run(run)
        except WorldError as error:
            print(f"{where}:\n\n{type(error).__name__}: {error}\n{_hint(script, arguments.order)}")
            return 1
        print(f"{where}: nothing wrong was found.\n{_summary(world.timeline)}")
        print(_hint(script, arguments.order), end="")
    return 0


def _split(argv: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Cut the arguments at ``--``."""
    if "--" not in argv:
        return list(argv), "", []
    place = list(argv).index("--")
    return list(argv[:place]), "--", list(argv[place + 1 :])


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="ringlab check",
        usage="ringlab check SCRIPT [--ranks N] [--order stream|host] [--timeout S] [ARGUMENT ...]",
        description=__doc__,
        epilog=(
            "Write the script for torchrun: every rank runs it and reads RANK and WORLD_SIZE. It "
            "must use CPU or meta tensors. What is unknown here, and everything behind --, goes "
            "to the script. Ranks share what they import; only the script itself is each rank's "
            "own."
        ),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("script", type=Path, help="the script")
    parser.add_argument("--ranks", type=int, default=4, help="how many ranks (default 4)")
    parser.add_argument(
        "--order", choices=ORDERS, default="stream",
        help="whose rules: stream, NCCL's (default), or host, gloo's",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=float, default=60.0,
        help="seconds that a rank may compute without communicating (default 60)",
    )  # fmt: skip
    return parser


def _summary(timeline: Timeline) -> str:
    lines = []
    for rank in range(min(timeline.world_size, SHOWN)):
        posted = [e for e in timeline.of(rank) if e.kind not in ("wait", "compute")]
        operators = len(timeline.of(rank, "compute"))
        lines.append(
            f"  rank {rank}: {len(posted)} operations of communication, "
            f"{bytes_text(timeline.bytes_sent(rank))} sent, {operators} operators computed"
        )
    more = timeline.world_size - SHOWN
    return "\n".join(lines + ([f"  ... and {more} more ranks"] if more > 0 else []))


def _hint(script: Script, order: str) -> str:
    """Say so if the script asks for the backend whose rules were not applied."""
    rules = {"stream": "nccl", "host": "gloo"}
    (other,) = (name for name in rules if name != order)
    asked = {name for name in rules if any(rules[name] in asked for asked in script.backends)}
    if asked != {other}:
        return ""
    return (
        f"The script asks for {rules[other]}: check it under its rules too, with --order {other}.\n"
    )
