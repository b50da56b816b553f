"""Apply the recipes of docs/architecture/recipes to scratch copies, build them and run their tests.

    python tests/docs/recipes.py                       all recipes, some minutes each
    python tests/docs/recipes.py pass layer            these
    python tests/docs/recipes.py pass --folder DIR     keep the copies in DIR
    python tests/docs/recipes.py --together            all in one copy, with one build
    python tests/docs/recipes.py --cmake=-DCMAKE_CXX_FLAGS_RELEASE=-O1

A recipe is its page. A line such as "`FILE`, after `LINE`:" says where the block below it goes,
and the last block is the commands that test it. `test_recipes.py` checks the places of all edits.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "architecture" / "recipes"
EDIT = re.compile(
    r"^`(?P<file>[^`]+)`, (?:(?P<where>before|after|instead of) `(?P<anchor>[^`]+)`|new):\n\n"
    r"```\w+\n(?P<block>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
CAPTION = re.compile(r"^`[^`]+`, .*:$", re.MULTILINE)
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Edit:
    """A block and its place in a file; without an anchor, the whole of a new file."""

    file: str
    where: str | None
    anchor: str | None
    block: str

    def apply(self, root: pathlib.Path) -> None:
        """Change the file below a folder.

        Raises:
            ValueError: The anchor is not in exactly one line, or a new file exists.
        """
        path = root / self.file
        if self.anchor is None:
            if path.exists():
                raise ValueError(f"{self.file} exists already")
            path.write_text(self.block)
            return
        lines = path.read_text().splitlines(keepends=True)
        found = [number for number, line in enumerate(lines) if self._is_at(line)]
        whole = [number for number in found if lines[number] == f"{self.anchor}\n"]
        found = whole or found
        if len(found) != 1:
            raise ValueError(f"{self.file} has {len(found)} lines with {self.anchor!r}")
        begin = found[0] + (self.where == "after")
        lines[begin : begin + (self.where == "instead of")] = [self.block]
        path.write_text("".join(lines))

    def _is_at(self, line: str) -> bool:
        assert self.anchor is not None
        whole = line == f"{self.anchor}\n"
        return whole or (self.where == "before" and line.startswith(self.anchor))


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The edits and commands of a page."""

    name: str
    edits: list[Edit]
    commands: str

    @property
    def files(self) -> list[str]:
        return sorted({edit.file for edit in self.edits})

    def apply(self, root: pathlib.Path) -> None:
        for edit in self.edits:
            edit.apply(root)


def read(page: pathlib.Path) -> Recipe:
    """Return the recipe of a page.

    Raises:
        ValueError: A block has no place, a place has no block, or the commands are missing.
    """
    text = page.read_text()
    edits = [
        Edit(found["file"], found["where"], found["anchor"], found["block"])
        for found in EDIT.finditer(text)
    ]
    blocks = [found.groups() for found in BLOCK.finditer(text)]
    commands = [block for language, block in blocks if language == "bash"]
    if len(commands) != 1 or len(blocks) != len(edits) + 1 or not edits:
        raise ValueError(f"{page.name}: {len(blocks)} blocks, {len(edits)} places")
    if len(CAPTION.findall(text)) != len(edits):
        raise ValueError(f"{page.name}: a place is not followed by a block")
    return Recipe(page.stem, edits, commands[0])


def recipes() -> dict[str, Recipe]:
    """Return all recipes by name."""
    pages = sorted(PAGES.glob("*.md"))
    return {page.stem: read(page) for page in pages if page.stem != "README"}


def copy(folder: pathlib.Path) -> None:
    """Copy the tracked files."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run(*command: str, folder: pathlib.Path, output: int | None = subprocess.DEVNULL) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(folder / "python"),
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "CCACHE_BASEDIR": str(folder),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",
    }
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=output)


def build(folder: pathlib.Path, options: list[str]) -> None:
    """Build the module of a copy and put it into its package."""
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run(
        "cmake", "-G", "Ninja", "-S", ".", "-B", "build/recipe", "-DCMAKE_BUILD_TYPE=Release",
        "-DSAMEGRAD_BUILD_PYTHON=ON", "-DSAMEGRAD_BUILD_TESTS=OFF",
        f"-DPython_EXECUTABLE={sys.executable}", *launcher, *options, folder=folder,
    )  # fmt: skip
    run("cmake", "--build", "build/recipe", "-j2", folder=folder, output=None)
    run("cmake", "--install", "build/recipe", "--prefix", "python", folder=folder)


def try_out(tried: list[Recipe], folder: pathlib.Path, options: list[str]) -> Iterator[str]:
    """Apply, build and test recipes in an empty folder; yield lines for the report."""
    copy(folder)
    for recipe in tried:
        recipe.apply(folder)
    files = {file for recipe in tried for file in recipe.files}
    if any(file.startswith("cpp/") for file in files):
        started = time.monotonic()
        build(folder, options)
        yield f"{folder.name}: built in {time.monotonic() - started:.0f} s"
    else:
        for library in (ROOT / "python" / "samegrad").glob("*.so*"):
            shutil.copy2(library, folder / "python" / "samegrad")
    for recipe in tried:
        started = time.monotonic()
        run("bash", "-ec", recipe.commands, folder=folder, output=None)
        seconds = time.monotonic() - started
        yield f"{recipe.name}: {len(recipe.files)} files, tested in {seconds:.0f} s"


def main() -> None:
    known = recipes()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)}; all if none is given")
    parser.add_argument("--folder", type=pathlib.Path, help="where copies are made and kept")
    parser.add_argument("--together", action="store_true", help="apply all to one copy")
    parser.add_argument("--cmake", action="append", default=[], help="option of the build")
    arguments = parser.parse_args()
    tried = [known[name] for name in arguments.names or known]
    groups = {"together": tried} if arguments.together else {one.name: [one] for one in tried}
    with tempfile.TemporaryDirectory() as scratch:
        reports = []
        for name, group in groups.items():
            folder = (arguments.folder or pathlib.Path(scratch)) / name
            folder.mkdir(parents=True)
            reports += try_out(group, folder, arguments.cmake)
        print("\n".join(reports))


if __name__ == "__main__":
    main()
