"""Types, functions and files that the architecture pages name exist in the sources."""

import pathlib
import re

import recipes

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "architecture").rglob("*.md"))
PAGES += sorted((ROOT / "docs" / "decisions").glob("*.md"))
NAME = re.compile(r"`((?:\w+(?:::|\.))*\w+)(?:\([^`]*\))?`")
TYPE = re.compile(r"(?:[A-Z][a-z0-9]+)+")
SUFFIXES = {"cpp", "h", "def", "py", "md", "toml"}
# Words of other projects, and of what the sources avoid.
FOREIGN = {"NAME", "MPI_Allreduce", "__del__"}
DEFINITION = re.compile(
    r"^\s*(?:template.*>\s*)?(?:class|struct|enum(?: class)?|using) (\w+)", re.M
)


def code() -> str:
    """Return the sources, C++ without comments."""
    texts = [(ROOT / "CMakeLists.txt").read_text()]
    for path in [*(ROOT / "cpp").rglob("*"), *(ROOT / "python" / "samegrad").rglob("*.py")]:
        if path.suffix in (".cpp", ".h", ".def"):
            texts.append(re.sub(r"//.*", "", path.read_text()))
        elif path.suffix in (".py", ".txt"):
            texts.append(path.read_text())
    return "\n".join(texts)


def test_every_name_on_the_pages_exists():
    text = code()
    words, types = set(re.findall(r"\w+", text)), set(DEFINITION.findall(text))
    files = {path.name for top in ("cpp", "python", "tests") for path in (ROOT / top).rglob("*.*")}
    named, missing = 0, []
    for page in PAGES:
        prose = page.read_text()
        own = set(re.findall(r"\w+", str(recipes.BLOCK.findall(prose))))
        for name in sorted(set(NAME.findall(recipes.BLOCK.sub("", prose))) - FOREIGN):
            named += 1
            parts = re.split(r"::|\.", name)
            if parts[-1] in SUFFIXES:
                found = name in files or "NAME" in name
            else:
                found = all(
                    part in (types if TYPE.fullmatch(part) else words) or part in own
                    for part in parts
                )
            if not found:
                missing.append(f"{page.relative_to(ROOT)}: {name}")
    assert named > 200
    assert not missing
