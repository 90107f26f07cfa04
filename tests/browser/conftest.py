"""A JupyterLab of its own for a test, and a browser that looks at it."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Error

ROOT = Path(__file__).parents[2]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(0.2)
    raise TimeoutError(f"{url} gave no answer in {seconds} s")


class Lab:
    """A running JupyterLab, as a learner on a fresh clone meets it."""

    def __init__(self, address, folder, browser):
        self.address, self.folder = address, folder
        self.page = browser.new_page(viewport={"width": 1280, "height": 1000})
        self.console = []
        self.page.on(
            "console",
            lambda message: self.console.append(message.text) if message.type == "error" else None,
        )

    def open(self, notebook):
        """Open a notebook and wait until its kernel answers."""
        self.page.goto(f"{self.address}/lab/tree/{notebook}?token=test&reset")
        self.page.wait_for_function(
            "window.jupyterapp?.shell.currentWidget?.context", timeout=60_000
        )
        self.page.evaluate(
            "async () => { const w = jupyterapp.shell.currentWidget; await w.context.ready;"
            " await w.context.sessionContext.ready;"
            " await w.context.sessionContext.session.kernel.info; }"
        )

    def run_all(self):
        """Run every cell; True if none failed."""
        return self.page.evaluate(
            "async () => await jupyterapp.commands.execute('notebook:run-all-cells')"
        )

    def cells(self):
        """The cells of the notebook with their outputs, as the front end holds them."""
        return self.page.evaluate(
            "() => jupyterapp.shell.currentWidget.content.model.sharedModel.toJSON().cells"
        )

    def scroll_through(self):
        """Bring every cell into view once; a front end draws what is far away only then."""
        self.page.evaluate(
            "async () => { const panel = jupyterapp.shell.currentWidget.content;"
            " for (let i = 0; i < panel.widgets.length; i++) { panel.activeCellIndex = i;"
            " await panel.scrollToItem(i); await new Promise(r => setTimeout(r, 60)); } }"
        )


@pytest.fixture
def lab(browser, tmp_path):
    folder = tmp_path / "clone"
    for name in ("notebooks", "exercises"):
        shutil.copytree(ROOT / name, folder / name)
    port = free_port()
    private = {
        f"JUPYTER_{name}_DIR": str(tmp_path / name.lower())
        for name in ("CONFIG", "DATA", "RUNTIME")
    }
    private["JUPYTERLAB_WORKSPACES_DIR"] = str(tmp_path / "workspaces")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--allow-root",
         f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token=test",
         f"--ServerApp.root_dir={folder}", "--expose-app-in-browser"],
        env={**os.environ, **private, "PYTHONPATH": str(ROOT)}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/api", 60)
        started = Lab(address, folder, browser)
        yield started
        with contextlib.suppress(Error):
            started.page.close()
    finally:
        server.terminate()
        server.wait(20)
