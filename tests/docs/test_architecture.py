"""Types, members, functions and files that the architecture pages name exist in the sources."""

import pathlib
import re

import definitions
import pytest
import recipes

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "architecture").rglob("*.md"))
PAGES += sorted((ROOT / "docs" / "decisions").glob("*.md"))
NAME = re.compile(r"`((?:\w+(?:::|\.))*\w+)(?:\([^`]*\)|<\w+>)?`")
TYPE = re.compile(r"(?:[A-Z][a-z0-9]*)+")
SUFFIXES = {"cpp", "h", "def", "py", "md", "toml"}
# Words of other projects, and of what the sources avoid.
FOREIGN = {"NAME", "MPI_Allreduce", "__del__", "keras.layers.Layer"}


@pytest.fixture(scope="module")
def is_defined():
    """Return a function that tells whether the sources define a name of a page."""
    cpp = definitions.CppDefinitions(
        {
            str(path.relative_to(ROOT / "cpp")): path.read_text()
            for path in definitions.files("cpp", ".h", ".cpp", ".def")
        }
    )
    package = [path.read_text() for path in definitions.files("python/samegrad", ".py")]
    python = definitions.PythonDefinitions(package)
    cmake = "".join((ROOT / folder / "CMakeLists.txt").read_text() for folder in ("", "cpp"))
    options = re.findall(r"^(?:option|set)\((\w+)", cmake, re.MULTILINE)
    folders = [path.name for path in (ROOT / "python").rglob("*") if path.is_dir()]
    names = cpp.names | python.names | {*options, *folders}

    def found(name: str) -> bool:
        *owners, last = re.split(r"::|\.", name)
        owner = owners[-1] if owners else ""
        if "::" in name:
            return last in cpp.members.get(owner, ())
        if TYPE.fullmatch(owner):
            return last in python.members(owner)
        if TYPE.fullmatch(last) and len(last) > 1:
            return last in cpp.types or last in python.exported
        return last in names

    return found


def test_every_name_on_the_pages_is_defined(is_defined):
    files = {path.name for top in ("cpp", "python", "tests") for path in (ROOT / top).rglob("*.*")}
    named, missing = 0, []
    for page in PAGES:
        prose = page.read_text()
        own = set(re.findall(r"\w+", str(recipes.BLOCK.findall(prose))))
        for name in sorted(set(NAME.findall(recipes.BLOCK.sub("", prose))) - FOREIGN):
            named += 1
            if name.rpartition(".")[2] in SUFFIXES:
                found = name in files or "NAME" in name
            else:
                found = is_defined(name) or name in own
            if not found:
                missing.append(f"{page.relative_to(ROOT)}: {name}")
    assert named > 200
    assert not missing


DEFINED = [
    *("ExecuteParams::dry", "WorldSums::Summands::add_up", "PassOptions::sink_masks", "LoopStep"),
    *("OpDef::flops", "Function.__call__", "TensorSpec", "find_live_ranges", "segment_sum"),
]
INVENTED = [
    *("ExecuteParams::call", "Call::dry", "Context", "InventedStep", "invented_function"),
    "Function.invented",
]


@pytest.mark.parametrize("name", DEFINED)
def test_definition_is_found(is_defined, name):
    assert is_defined(name)


@pytest.mark.parametrize("name", INVENTED)
def test_name_without_a_definition_is_missing(is_defined, name):
    assert not is_defined(name)
