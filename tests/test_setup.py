"""The set-up: the lock, the choice of a Python, and the environment that make builds."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements.lock"
PLATFORMS = [
    {"python_full_version": f"{version}.9", "python_version": version, **system}
    for version in ("3.10", "3.11", "3.12", "3.13")
    for system in (
        {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
        {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    )
]


def _pins(platform: dict[str, str]) -> dict[str, str]:
    """The versions that the lock gives on a platform."""
    pins: dict[str, str] = {}
    for line in LOCK.read_text().splitlines():
        if line.startswith("#"):
            continue
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate(platform):
            assert need.name not in pins, f"{need.name} is locked twice on {platform}"
            pins[need.name] = str(need.specifier)
    return pins


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda p: "-".join(p.values()))
def test_the_lock_satisfies_what_the_package_declares(platform: dict[str, str]) -> None:
    pins = _pins(platform)
    for text in metadata.requires("ringlab") or []:
        need = Requirement(text)
        wanted = [{**platform, "extra": extra} for extra in ("", "lab", "test")]
        if need.marker is None or any(need.marker.evaluate(where) for where in wanted):
            assert need.specifier.contains(pins[canonicalize_name(need.name)].removeprefix("==")), (
                text
            )


def test_the_lock_has_exact_versions_only() -> None:
    lines = [line for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    exact = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; .+)?")
    assert [line for line in lines if not exact.fullmatch(line)] == []


def test_the_lock_leaves_cuda_libraries_to_the_build_of_torch() -> None:
    names = {Requirement(pin).name for pin in LOCK.read_text().splitlines() if "==" in pin}
    assert {name for name in names if name.startswith(("nvidia", "cuda", "triton"))} == set()
    assert "torch" in names


def _executable(folder: Path, name: str, says: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{says}\n")
    file.chmod(0o755)


@pytest.fixture
def find_python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the search for a Python among fakes in a folder that is the whole PATH."""
    grep = shutil.which("grep")
    assert grep
    (tmp_path / "grep").symlink_to(grep)

    def find(venv: str = "none", python: str = "", torch: str = "") -> subprocess.CompletedProcess:
        command = ["/bin/sh", str(ROOT / "tools/find-python.sh"), venv, python, torch]
        environment = {"PATH": str(tmp_path)}
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    return find


def test_the_first_python_that_fits_is_taken(
    tmp_path: Path, find_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    _executable(tmp_path, "python3", "echo is Python 3.9")
    _executable(tmp_path, "python3.13", "exit 127")
    _executable(tmp_path, "python3.12", "echo fits")
    _executable(tmp_path, "python3.11", "echo fits")
    assert find_python().stdout.strip() == str(tmp_path / "python3.12")


def test_without_a_python_that_fits_each_is_told_with_its_fault(
    tmp_path: Path, find_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    _executable(tmp_path, "python3", "echo is Python 3.9")
    _executable(tmp_path, "python3.12", "exit 127")
    result = find_python()
    assert result.returncode == 1
    assert "python3 is Python 3.9" in result.stderr
    assert "python3.12 does not start" in result.stderr
    assert "PYTHON=/path/to/python3" in result.stderr


def test_a_python_that_is_asked_for_is_not_replaced_by_another(
    tmp_path: Path, find_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    _executable(tmp_path, "python3", "echo fits")
    _executable(tmp_path, "mine", "echo has no torch")
    result = find_python(python="mine", torch="system")
    assert (result.returncode, result.stdout) == (1, "")
    assert "mine has no torch" in result.stderr


@pytest.mark.parametrize(
    ("made_with", "asked", "kept"),
    [("system", "", True), ("system", "system", True), ("system", "lock", False)],
)
def test_an_environment_of_the_wanted_kind_is_used_again(
    tmp_path: Path,
    find_python: Callable[..., subprocess.CompletedProcess[str]],
    made_with: str,
    asked: str,
    kept: bool,
) -> None:
    _executable(tmp_path, "python3", "echo fits")
    (tmp_path / "venv/bin").mkdir(parents=True)
    _executable(tmp_path / "venv/bin", "python", "echo fits")
    (tmp_path / "venv/ringlab-setup.json").write_text(json.dumps({"torch": made_with}))
    found = find_python(venv=str(tmp_path / "venv"), torch=asked).stdout.strip()
    assert found == str(tmp_path / ("venv/bin/python" if kept else "python3"))


def test_the_python_of_the_tests_fits() -> None:
    command = ["sh", str(ROOT / "tools/find-python.sh"), "none", sys.executable, "system"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout.strip() == sys.executable, result.stderr


@pytest.fixture
def setup_env() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_env", ROOT / "tools/setup_env.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _no_pip(*_: object, **__: object) -> None:
    raise AssertionError("pip was run")


def _environment(folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "bin/python").symlink_to(sys.executable)


def test_a_finished_environment_is_left_alone(
    setup_env: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _environment(tmp_path / "venv")
    monkeypatch.setattr(setup_env, "pip", lambda *_, **__: None)
    environment = setup_env.Environment(tmp_path / "venv")
    setup_env.set_up(environment, "", [])
    monkeypatch.setattr(setup_env, "pip", _no_pip)
    setup_env.set_up(environment, "", [])


def test_a_changed_lock_is_installed_into_the_same_environment(
    setup_env: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _environment(tmp_path / "venv")
    installed: list[str] = []
    monkeypatch.setattr(setup_env, "pip", lambda _, *args, extra: installed.append(args[0]))
    environment = setup_env.Environment(tmp_path / "venv")
    setup_env.set_up(environment, "", [])
    monkeypatch.setattr(setup_env, "digest", lambda: "another")
    monkeypatch.setattr(setup_env.Environment, "create", pytest.fail)
    setup_env.set_up(environment, "", [])
    assert installed == ["--requirement", "--no-build-isolation"] * 2


def test_a_set_up_that_was_interrupted_goes_on(
    setup_env: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _environment(tmp_path / "venv")
    environment = setup_env.Environment(tmp_path / "venv")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup_env, "pip", interrupted)
    with pytest.raises(KeyboardInterrupt):
        setup_env.set_up(environment, "", [])
    installed: list[str] = []
    monkeypatch.setattr(setup_env, "pip", lambda _, *args, extra: installed.append(args[0]))
    setup_env.set_up(environment, "", [])
    assert installed == ["--requirement", "--no-build-isolation"]


def test_the_lab_of_an_environment_asks_nothing_and_shows_no_menus_of_the_tests(
    setup_env: ModuleType, tmp_path: Path
) -> None:
    setup_env.quieten_lab(setup_env.Environment(tmp_path))
    page = json.loads((tmp_path / "etc/jupyter/labconfig/page_config.json").read_text())
    assert page == {"disabledExtensions": {"@jupyter/nbgrader": True}}
    settings = json.loads((tmp_path / "share/jupyter/lab/settings/overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"] == {"fetchNews": "false"}


def test_a_folder_of_other_things_is_refused(
    setup_env: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis.tex").touch()
    monkeypatch.setattr(setup_env, "pip", _no_pip)
    with pytest.raises(SystemExit, match="is no virtual environment"):
        setup_env.set_up(setup_env.Environment(tmp_path), "", [])
    assert (tmp_path / "thesis.tex").exists()


def test_borrowing_torch_never_builds_on_a_strange_environment(
    setup_env: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _environment(tmp_path / "venv")
    monkeypatch.setattr(setup_env, "pip", _no_pip)
    with pytest.raises(SystemExit, match="may hold a torch of its own"):
        setup_env.set_up(setup_env.Environment(tmp_path / "venv"), "system", [])


def test_a_torch_that_is_too_old_is_not_borrowed(setup_env: ModuleType) -> None:
    lowest = ".".join(map(str, setup_env.lowest_torch()))
    setup_env.check_version(f"{lowest}.0+cu126", "python")
    with pytest.raises(SystemExit, match=rf"has torch 1\.13\.1; ringlab needs {lowest} or newer"):
        setup_env.check_version("1.13.1", "python")
