"""README and the pages of docs/: what they show is what runs, and their links lead somewhere."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(ROOT / f"{name}.md" for name in ("CODE_OF_CONDUCT", "CONTRIBUTING", "SECURITY")),
    ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# The code of other pages is a part of the sources (see recipes.py).
FOLDERS = (ROOT, ROOT / "docs", ROOT / "docs" / "cookbook")
PROGRAMS = [page for page in PAGES if page.parent in FOLDERS]


def test_ci_runs_the_command_of_the_readme():
    commands = re.findall(r"```bash\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tests,) = [command for command in commands if "pytest" in command]
    assert f"\n{tests}\n" in (ROOT / ".ci" / "run").read_text()


def shown(page):
    """Return the page's Python as one program, and the output that it shows.

    What imports the doctor's own wheel runs in tests/packaging/test_doctor_wheel.py.
    """
    block = r"```python\n(.*?)\n```(?:\n\n```text\n(.*?\n)```)?"
    found = re.findall(block, page.read_text(), re.DOTALL)
    own = [(code, output) for code, output in found if "samegrad_doctor" not in code]
    return "\n".join(code for code, _ in own), "".join(output for _, output in own)


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_python_of_a_page_prints_what_the_page_shows(page):
    code, output = shown(page)
    if not code:
        pytest.skip("no Python")
    from samegrad import _core

    if not _core.isa_fused()[_core.isa()]:
        pytest.skip("these kernels round products once more")
    counts = (1, 2, 4, 8) if page.stem in ("README", "quickstart") else (4,)
    for count in counts:
        program = code.replace("replicas=4", f"replicas={count}")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stdout == output, (count, done.stdout, done.stderr)


def test_links_of_pages_lead_to_files_and_sections():
    broken = []
    for page in [*PAGES, ROOT / "cpp" / "README.md", *(ROOT / "python").rglob("README.md")]:
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)]+)\)", prose):
            path, _, section = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            headings = re.findall(r"^#+ (.+)$", file.read_text(), re.M) if section else []
            anchors = [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]
            if not file.exists() or (section and section not in anchors):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert not broken


def test_files_that_pages_name_exist():
    python = ROOT / "python"
    folders = (ROOT, ROOT / "cpp", python, python / "samegrad", python / "samegrad" / "_keras")
    missing = []
    for page in [ROOT / "cpp" / "README.md", *PAGES]:
        prose = re.sub(r"^`.*`, new:$", "", page.read_text(), flags=re.MULTILINE)
        for name in re.findall(r"`([\w/.]+/[\w.]+\.(?:py|cpp|h|def|md))`", prose):
            if "NAME" not in name and not any((folder / name).exists() for folder in folders):
                missing.append(f"{page.relative_to(ROOT)}: {name}")
    assert not missing


def test_names_that_pages_mention_exist():
    import samegrad

    mentioned, missing = 0, []
    for page in PAGES:
        for name in re.findall(r"`(?:tf|samegrad)\.([a-z][\w.]*\w)[^`]*`", page.read_text()):
            found = samegrad
            for part in name.split("."):
                found = getattr(found, part, None)
            mentioned += 1
            if found is None:
                missing.append(f"{page.name}: {name}")
    assert mentioned > 30
    assert not missing


def test_readme_and_pages_are_short():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 150
    assert len(readme.encode()) <= 8192
    assert not [page.name for page in PAGES[1:] if len(page.read_text().splitlines()) > 120]
