"""``make lab`` in a fresh copy of the sources, as a newcomer on a GPU node types it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
LESSON = "notebooks/03_the_ring.ipynb"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _without_make() -> dict[str, str]:
    """The environment, less what an outer make hands to an inner one."""
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
    return {name: value for name, value in os.environ.items() if name not in outer}


def _make(folder: Path, *args: str) -> str:
    command = ["make", "--no-print-directory", *args]
    result = subprocess.run(
        command, cwd=folder, env=_without_make(), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def _torch_of(python: Path | str) -> str:
    code = "import torch; print(torch.__version__, torch.__file__)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with an environment of its own, around this Python's torch."""
    folder = tmp_path_factory.mktemp("fresh") / "ringlab"
    left_out = shutil.ignore_patterns(".git", "*venv*", "build", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, folder, ignore=left_out)
    _make(folder, "env", "TORCH=system", f"PYTHON={sys.executable}")
    return folder


@pytest.fixture(scope="module")
def lab(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of ``make lab``, started by somebody who has no JupyterLab settings."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--no-browser --port={port} --ServerApp.port_retries=0 --IdentityProvider.token=t"
    settings = str(tmp_path_factory.mktemp("settings"))
    # A session of its own, so that make, its shell and JupyterLab can be ended together.
    server = subprocess.Popen(
        ["make", "lab", f"LAB_ARGS={options} --expose-app-in-browser"],
        cwd=fresh,
        env=_without_make() | {"JUPYTER_CONFIG_DIR": settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api?token=t", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=60)


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert server.poll() is None, "make lab ended by itself"
        try:
            urlopen(address, timeout=5).close()
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
        else:
            return
    pytest.fail("make lab did not answer within a minute")


def test_a_borrowed_torch_is_used_as_it_is(fresh: Path) -> None:
    assert _torch_of(fresh / ".venv/bin/python") == _torch_of(sys.executable)
    assert list((fresh / ".venv").glob("lib/python*/site-packages/torch")) == []


def test_the_second_set_up_has_nothing_to_do(fresh: Path) -> None:
    begin = time.monotonic()
    assert _make(fresh, "env") == ""
    assert time.monotonic() - begin < 10


def test_make_lab_serves_the_first_lesson(lab: str) -> None:
    with urlopen(f"{lab}/api/contents/{LESSON}?token=t", timeout=30) as answer:
        assert json.load(answer)["type"] == "notebook"


@pytest.mark.browser
def test_the_first_lesson_opens_with_a_kernel_and_no_question(lab: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{lab}/lab/tree/{LESSON}?token=t&reset")
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context", timeout=60_000)
    kernel = page.evaluate(
        """async () => {
            const session = jupyterapp.shell.currentWidget.context.sessionContext;
            await session.ready;
            return (await session.session.kernel.info).language_info.name;
        }"""
    )
    questions = page.locator(".jp-toast-message, .Toastify__toast, .jp-Dialog").all_inner_texts()
    page.close()
    assert kernel == "python"
    assert questions == []
