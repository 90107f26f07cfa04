"""Make the virtual environment that ``make lab`` and ``make test`` run in.

The first run creates it and installs requirements.lock. Later runs compare a digest and
return at once. With ``--torch system`` the environment borrows the torch of the Python
that runs this script: pip never sees that torch, so it can neither replace nor remove it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
PYPROJECT = ROOT / "pyproject.toml"
# Read after every other .pth file, so that the environment's own packages come first.
BORROWED = "zz_borrowed_torch.pth"
LAB = {
    # JupyterLab's question about news, which would go out over the network.
    "share/jupyter/lab/settings/overrides.json": {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}
    },
    # The tests use nbgrader. Its menus and buttons are for those who make assignments.
    "etc/jupyter/labconfig/page_config.json": {"disabledExtensions": {"@jupyter/nbgrader": True}},
}
"""Files of the environment, and what JupyterLab shall read there."""


def digest() -> str:
    """What the environment is made from, as one word."""
    parts = [LOCK, PYPROJECT, Path(__file__)]
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()[:16]


class Environment:
    """A virtual environment and what it was made with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.stamp = folder / "ringlab-setup.json"

    def made_with(self) -> dict[str, str]:
        """Read the stamp of the last finished set-up; empty if there is none."""
        try:
            made: dict[str, str] = json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return {}
        return made

    def finished(self, **made: str) -> None:
        """Write the stamp."""
        self.stamp.write_text(json.dumps(made))

    def check_strange(self, torch: str) -> None:
        """Refuse a folder that is not of our making, unless it will do as it is."""
        version = sys.version_info[:2]
        if not (self.folder / "pyvenv.cfg").exists():
            what = "is there and is no virtual environment"
        elif torch == "system":
            what = "was not made by this Makefile, so it may hold a torch of its own"
        elif not runs(self.python, f"import sys; assert sys.version_info[:2] == {version}"):
            what = f"was not made by this Makefile, and is not of Python {version[0]}.{version[1]}"
        else:
            return
        raise SystemExit(
            f"{self.folder} {what}. Remove it, or choose another folder: make VENV=folder ..."
        )

    def create(self, interpreter: str) -> None:
        """Make the environment anew, in place of an older one."""
        print(f"creating {self.folder} with {interpreter}", flush=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)
        run([interpreter, "-m", "venv", str(self.folder)])

    def site_packages(self) -> Path:
        """Where pip puts packages in this environment."""
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        return Path(ask(str(self.python), code))


def run(command: list[str], **env: str) -> None:
    """Run a step, and stop with its exit code if it fails."""
    code = subprocess.call(command, cwd=ROOT, env=os.environ | env)
    if code:
        raise SystemExit(f"set-up stopped: this step failed ({code}): {shlex.join(command)}")


def runs(python: Path, code: str = "") -> bool:
    """Whether an interpreter starts and runs some code; it may have been removed."""
    try:
        return subprocess.call([str(python), "-c", code], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def ask(python: str, code: str) -> str:
    """Return what ``python -c code`` prints."""
    result = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{python} could not run {code!r}:\n{result.stderr.strip()}")
    return result.stdout.strip()


def torch_of(python: str) -> tuple[str, str]:
    """Version and file of the torch that an interpreter imports."""
    version, file = ask(
        python, "import torch; print(torch.__version__, torch.__file__, sep='\\n')"
    ).splitlines()[-2:]
    return version, file


def lowest_torch() -> tuple[int, ...]:
    """Read the lower bound that pyproject.toml sets for torch."""
    found = re.search(r'"torch>=([\d.]+)"', PYPROJECT.read_text())
    assert found, "pyproject.toml sets no lower bound for torch"
    return tuple(int(part) for part in found[1].split("."))


def check_version(version: str, python: str) -> None:
    """Refuse a torch that ringlab does not run on, before anything is installed."""
    lowest = lowest_torch()
    given = tuple(int(part) for part in re.findall(r"\d+", version)[: len(lowest)])
    if given < lowest:
        raise SystemExit(
            f"{python} has torch {version}; ringlab needs {'.'.join(map(str, lowest))} or newer. "
            "Update that torch, name another Python (PYTHON=...), or leave out TORCH=system to "
            "install the locked torch."
        )


def pip(environment: Environment, *args: str, extra: list[str]) -> None:
    """Run the environment's pip, with a progress bar only where somebody looks."""
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    command = [str(environment.python), "-m", "pip", "install", *quiet, *args, *extra]
    run(command, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_USER="0")


def install_lock(environment: Environment, extra: list[str]) -> None:
    """Install every locked package, torch with the libraries that its build asks for."""
    print(f"installing {LOCK.name} (the first time this takes minutes)", flush=True)
    pip(environment, "--requirement", str(LOCK), extra=extra)
    install_ringlab(environment, extra)


def install_ringlab(environment: Environment, extra: list[str]) -> None:
    """Install this checkout, so that edits take effect without installing again."""
    pip(environment, "--no-build-isolation", "--no-deps", "--editable", str(ROOT), extra=extra)


def install_around(environment: Environment, lender: str, extra: list[str]) -> None:
    """Install all but torch, then let the environment see the lender's packages."""
    version, file = torch_of(lender)
    check_version(version, lender)
    borrowed = environment.site_packages() / BORROWED
    borrowed.unlink(missing_ok=True)
    # Images with a torch of their own may pin other packages through this variable. The
    # pins guard their Python, which stays as it is.
    if os.environ.pop("PIP_CONSTRAINT", None):
        print("PIP_CONSTRAINT is set aside: it is meant for another environment")
    print(f"installing {LOCK.name} around torch {version}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        others = Path(folder) / "without-torch.txt"
        pins = LOCK.read_text().splitlines(keepends=True)
        others.write_text("".join(pin for pin in pins if not pin.startswith("torch==")))
        pip(environment, "--no-deps", "--requirement", str(others), extra=extra)
    install_ringlab(environment, extra)
    code = "import sys; print(*[p for p in sys.path if p.endswith('-packages')], sep='\\n')"
    shared = dict.fromkeys([*ask(lender, code).splitlines(), str(Path(file).parent.parent)])
    lines = [f"import site; site.addsitedir({folder!r})\n" for folder in shared]
    borrowed.write_text("".join(lines))
    seen = torch_of(str(environment.python))
    if seen != (version, file) or torch_of(lender) != (version, file):
        raise SystemExit(f"expected torch {version} from {file}, but the environment sees {seen}")


def quieten_lab(environment: Environment) -> None:
    """Let JupyterLab show a learner the course, and nothing beside it."""
    for name, content in LAB.items():
        path = environment.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))


def set_up(environment: Environment, torch: str, extra: list[str]) -> None:
    """Bring the environment to what the lock says, doing no more than needed."""
    made = environment.made_with()
    torch = torch or made.get("torch", "lock")
    inside = Path(sys.prefix).resolve() == environment.folder.resolve()
    base = getattr(sys, "_base_executable", sys.executable)
    interpreter = made.get("python", base) if inside else sys.executable
    want = {"digest": digest(), "torch": torch, "python": interpreter}
    usable = runs(environment.python)
    if usable and made == want:
        return
    same_kind = all(made.get(key) == want[key] for key in ("torch", "python"))
    if environment.folder.exists() and not made:
        environment.check_strange(torch)
    elif not (usable and same_kind):
        environment.create(interpreter)
    environment.finished(**want | {"digest": "unfinished"})
    if torch == "system":
        install_around(environment, interpreter, extra)
    else:
        install_lock(environment, extra)
    quieten_lab(environment)
    environment.finished(**want)


def main() -> None:
    """Read the arguments that the Makefile gives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", default=".venv", help="folder of the environment")
    parser.add_argument("--torch", default="", choices=["", "lock", "system"])
    parser.add_argument("--pip-args", default="", help="handed to every pip install")
    args = parser.parse_args()
    set_up(Environment((ROOT / args.venv).absolute()), args.torch, shlex.split(args.pip_args))


if __name__ == "__main__":
    main()
