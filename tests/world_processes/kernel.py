"""A real notebook kernel, driven cell by cell."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.manager import KernelManager

from tests.world_processes.observe import ROOT

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Outcome:
    """What a cell has put below itself."""

    text: str = ""
    error: str = ""
    traceback: str = ""
    times: dict[str, float] = field(default_factory=dict)  # when each piece of text came

    def take(self, kind: str, content: dict[str, Any]) -> None:
        if kind == "stream":
            self.text += content["text"]
            for line in content["text"].splitlines():
                self.times[line] = time.monotonic()
        elif kind == "execute_result":
            self.text += content["data"]["text/plain"]
        elif kind == "error":
            self.error = content["ename"]
            self.traceback = _COLOUR.sub("", "\n".join(content["traceback"]))


class Kernel:
    """A kernel in which the library is imported."""

    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3")
        path = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self.manager.start_kernel(env={**os.environ, **path})
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    @property
    def pid(self) -> int:
        """Process id of the kernel."""
        return int(self.manager.provisioner.pid)

    def run(self, cell: str, when: str = "", act: Callable[[], object] = lambda: None) -> Outcome:
        """Run a cell; call `act` when the text `when` has appeared below it."""
        request = self.client.execute(cell, allow_stdin=False)
        outcome, acted = Outcome(), not when
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=90)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            outcome.take(kind, content)
            if not acted and when in outcome.text:
                acted = True
                act()
            if kind == "status" and content["execution_state"] == "idle":
                return outcome
        raise TimeoutError(f"the cell did not end:\n{cell}\n{outcome}")

    def interrupt(self) -> None:
        """What the stop button does."""
        self.manager.interrupt_kernel()

    def close(self) -> None:
        """Shut the kernel down as JupyterLab does."""
        self.client.stop_channels()
        if self.manager.is_alive():
            self.manager.shutdown_kernel()
        self.manager.cleanup_resources()
