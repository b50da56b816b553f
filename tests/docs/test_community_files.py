"""Commands, presets and files that workflows, templates and CONTRIBUTING name exist."""

from __future__ import annotations

import json
import pathlib
import re

import pytest
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))
YAML = [*WORKFLOWS, *FORMS, ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml"]
PAGES = [
    *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT")),
    *(ROOT / "docs" / f"{name}.md" for name in ("releasing", "versioning")),
    GITHUB / "PULL_REQUEST_TEMPLATE.md",
]
FILES = [*YAML, *PAGES]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = SETTINGS["project"]
TOPS = r"\.ci|\.github|cpp|docs|examples|notebooks|python|tests"

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
every_yaml = pytest.mark.parametrize("file", YAML, ids=lambda file: file.name)


def parsed(file: pathlib.Path) -> dict:
    return pytest.importorskip("yaml").safe_load(file.read_text())


@every_file
def test_paths_of_a_file_exist(file: pathlib.Path) -> None:
    named = re.findall(rf"(?<![\w./-])((?:{TOPS})/[\w./-]*\w)", file.read_text())
    assert not [path for path in named if not (ROOT / path).exists()]


@every_file
def test_presets_of_a_file_exist(file: pathlib.Path) -> None:
    text = file.read_text()
    settings = json.loads((ROOT / "CMakePresets.json").read_text())
    presets = {preset["name"] for preset in settings["configurePresets"]}
    folders = re.findall(r"(?:--test-dir |--install )build/(\w+)", text)
    assert {*re.findall(r"--preset (\w+)", text), *folders} <= presets


@every_file
def test_options_of_the_scripts_of_a_file_exist(file: pathlib.Path) -> None:
    missing = []
    for script, options in re.findall(
        r"((?:\.ci|tests)/\S+?(?:\.py|sanitize))\b([^\n`&|]*)", file.read_text()
    ):
        source = (ROOT / script).read_text()
        for option in re.findall(r"(?<!\S)--[\w-]+", options.partition("#")[0]):
            if f'"{option}"' not in source and not script.startswith("tests/unit/test_"):
                missing.append(f"{script} {option}")
    assert not missing


@every_file
def test_commands_of_samegrad_in_a_file_exist(file: pathlib.Path) -> None:
    folder = ROOT / "python" / "samegrad" / "cli"
    named = re.findall(r"(?:`|run: )samegrad ([a-z][\w-]+)", file.read_text())
    assert not [name for name in named if not (folder / f"{name.replace('-', '_')}.py").exists()]


@every_file
def test_extras_of_a_file_exist(file: pathlib.Path) -> None:
    extras = re.findall(r"(?<=[ '\"])(?:\.|samegrad)\[(\w+)\]", file.read_text())
    assert set(extras) <= set(PROJECT["optional-dependencies"])


@every_file
def test_targets_and_names_of_the_engine_in_a_file_exist(file: pathlib.Path) -> None:
    text = file.read_text()
    fuzzers = (ROOT / "tests" / "fuzz" / "libfuzzer" / "CMakeLists.txt").read_text()
    for name in re.findall(r"\bfuzz_(\w+)", text):
        assert f"samegrad_fuzz_target({name})" in fuzzers
    for name, header in re.findall(r"`(k[A-Z]\w+)` \(`(\S+?)`\)", text):
        assert re.search(rf"\b{name} = ", (ROOT / header).read_text())
    for option in re.findall(r'-D "?(SAMEGRAD_\w+)=', text):
        sources = [ROOT / "CMakeLists.txt", ROOT / "cpp" / "kernels" / "CMakeLists.txt"]
        assert any(option in source.read_text() for source in sources)


def test_contributing_has_the_test_command_of_the_readme() -> None:
    (command,) = [
        block
        for block in re.findall(r"```bash\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL)
        if "pytest" in block
    ]
    assert command in (ROOT / "CONTRIBUTING.md").read_text()


@every_yaml
def test_yaml_is_a_mapping(file: pathlib.Path) -> None:
    assert isinstance(parsed(file), dict)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflow_has_jobs_that_end_and_few_rights(file: pathlib.Path) -> None:
    workflow = parsed(file)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 240
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_form_has_fields_with_labels(file: pathlib.Path) -> None:
    form = parsed(file)
    if file.stem == "config":
        return
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert form["name"] and form["description"]
    assert len({field["id"] for field in fields}) == len(fields) > 0
    assert all(field["attributes"]["label"] for field in fields)


def test_hooks_are_programs_of_the_test_extra() -> None:
    (local,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    needed = {re.split(r"[<>=;\[]", name)[0] for name in PROJECT["optional-dependencies"]["test"]}
    programs = {"lint-imports": "import-linter", "python": "pytest"}
    for hook in local["hooks"]:
        program = re.sub(r"^env \S+ ", "", hook["entry"]).split()[0]
        assert hook["language"] == "system" and programs.get(program, program) in needed


def test_citation_has_the_fields_of_its_format() -> None:
    citation = parsed(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0" and citation["message"]
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == [{"name": "The samegrad authors"}] == PROJECT["authors"]


def test_package_is_typed_and_has_a_license() -> None:
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "python" / "samegrad" / "py.typed").exists()
    assert all((ROOT / name).exists() for name in PROJECT["license-files"])


def test_wheels_and_tests_are_of_the_same_pythons() -> None:
    tested = parsed(GITHUB / "workflows" / "tests.yml")["jobs"]["gcc"]["strategy"]["matrix"][
        "python"
    ]
    assert tested == [f"3.{minor}" for minor in range(11, 11 + len(tested))]
    assert PROJECT["requires-python"] == f">={tested[0]}"
    built = [f"cp{version.replace('.', '')}" for version in tested]
    wheels = parsed(GITHUB / "workflows" / "wheels.yml")["jobs"]["wheels"]
    assert wheels["strategy"]["matrix"]["python"] == built
    assert SETTINGS["tool"]["cibuildwheel"]["build"] == [f"{name}-manylinux_*" for name in built]


def test_metadata_name_pythons_that_are_tested() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    tests = parsed(GITHUB / "workflows" / "tests.yml")["jobs"]["gcc"]
    assert named and set(named) <= set(tests["strategy"]["matrix"]["python"])


def test_wheels_are_repaired_without_symbols_and_tested() -> None:
    settings = SETTINGS["tool"]["cibuildwheel"]
    processors = ("x86_64", "aarch64")
    assert {settings[f"manylinux-{name}-image"] for name in processors} == {"manylinux_2_28"}
    assert "--strip" in settings["repair-wheel-command"]
    script = settings["test-command"].removeprefix("python {project}/").split()[0]
    assert (ROOT / script).exists()
