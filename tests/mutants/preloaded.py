"""A process that has loaded torch, pytest and Hypothesis, and forks a child for each run of tests.

Loading them takes longer than most runs. The library and its tests are loaded by the child, from
the folder that it is sent to. Requests and answers are lines of JSON; see `tests.mutants.trial`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from typing import Any


def main() -> int:
    """Answer requests until there are no more."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    import hypothesis  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import torch.distributed._functional_collectives
    import torch.testing

    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_answer(request)), flush=True)
    return 0


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    child = os.fork()
    if child == 0:
        os._exit(_run(request))
    end = time.monotonic() + request["limit"]
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return {"code": os.waitstatus_to_exitcode(status)}
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return {"code": None}


def _run(request: dict[str, Any]) -> int:
    """Run pytest in the child, as if it had been started in the folder."""
    import pytest

    os.setsid()
    with open(request["output"], "wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.chdir(request["folder"])
    sys.path.insert(0, request["folder"])
    try:
        return int(pytest.main(request["arguments"]))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
