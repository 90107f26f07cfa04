"""What stands in the repository works elsewhere: links, first programs, no machine's names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = {".cfg", ".ini", ".ipynb", ".lock", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
BARE = {"LICENSE", "Makefile", "run", ".gitignore"}
# A path that exists on one machine only. Written so that this file does not hold one.
MACHINE_PATH = re.compile(r"(?<![\w.:~*/-])/(?:home|root|work|Users|mnt|data)/\w")
HOSTS = [
    "pypi" + ".org",
    "python" + "hosted",
    "npmjs" + ".",
    "debian" + ".org",
    "download.py" + "torch",
]
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def _is_ours(folder: Path) -> bool:
    if folder.name in (".ci", ".github"):
        return True
    made = folder.name in ("__pycache__", "build", "dist") or (folder / "pyvenv.cfg").exists()
    return not made and not folder.name.startswith(".")


def _files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [name for name in folders if _is_ours(here / name)]
        yield from (here / name for name in names if Path(name).suffix in TEXT or name in BARE)


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        yield f"{file.relative_to(ROOT)}:{number}", line


def _prose(file: Path) -> str:
    if file.suffix == ".md":
        return file.read_text(encoding="utf-8")
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def test_the_search_finds_the_files_that_matter() -> None:
    found = {str(file.relative_to(ROOT)) for file in _files()}
    assert found >= {"README.md", "Makefile", "LICENSE", ".ci/run", "requirements.lock"}
    assert found >= {"ringlab/__init__.py", ".github/workflows/test.yml", "tests/test_texts.py"}


def test_no_file_names_a_path_of_one_machine() -> None:
    assert [at for file in _files() for at, line in _lines(file) if MACHINE_PATH.search(line)] == []


def test_no_file_names_a_registry() -> None:
    named = [at for file in _files() for at, line in _lines(file) if any(h in line for h in HOSTS)]
    assert named == []


def test_no_file_holds_unfinished_work() -> None:
    assert [at for file in _files() for at, line in _lines(file) if UNFINISHED.search(line)] == []


@pytest.mark.parametrize(
    "text", [" /ho" + "me/ann/x", "'/ro" + "ot/x'", "(/Us" + "ers/x)", "=/wo" + "rk/x"]
)
def test_a_path_of_one_machine_is_recognised(text: str) -> None:
    assert MACHINE_PATH.search(text)


def test_links_within_the_repository_lead_somewhere() -> None:
    broken = []
    for file in _files():
        if file.suffix not in (".md", ".ipynb"):
            continue
        for target in LINK.findall(_prose(file)):
            path = target.split("#")[0]
            if path and ":" not in target and not (file.parent / path).exists():
                broken.append(f"{file.relative_to(ROOT)}: {target}")
    assert broken == []


def _programs() -> list[str]:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [program for program in programs if not program.startswith("# train.py")]


@pytest.mark.parametrize(
    "program", _programs(), ids=["first result", "proof", "decode", "memory", "price"]
)
def test_a_program_of_the_readme_runs_as_it_stands(program: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
