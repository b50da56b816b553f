"""The layers of the sources, and the walls between the instruction-set variants."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[2]
CPP = ROOT / "cpp"
PYTHON = ROOT / "python"

# A folder includes lower levels and itself; folders of one level are blind to each other.
LEVELS = {
    "base": 0,
    "tensor": 1,
    "kernels": 2,
    "ir": 2,
    "ops": 3,
    "data": 3,
    "analysis": 4,
    "autodiff": 4,
    "passes": 4,
    "plan": 5,
    "runtime": 6,
    "train": 7,
    "bind": 8,
}
# Each library is used in one folder only.
HOMES = {"Eigen": "ops", "tbb": "runtime", "oneapi": "runtime", "pybind11": "bind"}
# The headers other folders may include of the kernels: the rest is written per variant.
KERNEL_HEADERS = {
    "table.h", "random_key.h", "geometry.h", "dispatch.h", "elementwise_fn.h", "unary.def",
    "binary.def", "scalar_functions.h",
}  # fmt: skip
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def sources():
    return sorted(p for p in CPP.rglob("*") if p.suffix in {".h", ".cpp", ".def"})


def includes():
    """(file, its folder, what it includes) for every include of the sources."""
    for path in sources():
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            yield path.relative_to(CPP), path.relative_to(CPP).parts[0], target


def test_every_folder_has_a_level():
    assert {path.relative_to(CPP).parts[0] for path in sources()} <= LEVELS.keys()


def test_a_folder_includes_lower_levels_only():
    wrong = []
    for file, folder, target in includes():
        other = target.split("/")[0]
        if other in LEVELS and other != folder and LEVELS[other] >= LEVELS[folder]:
            wrong.append(f"{file} includes {target}")
    assert not wrong


def test_a_library_is_used_in_its_own_folder_only():
    wrong = []
    for file, folder, target in includes():
        home = HOMES.get(target.split("/")[0])
        if home is not None and home != folder:
            wrong.append(f"{file} includes {target}")
    assert not wrong


def test_headers_expose_no_library():
    wrong = [
        f"{file} includes {target}"
        for file, folder, target in includes()
        if file.suffix == ".h" and folder != "bind" and target.split("/")[0] in HOMES
    ]
    assert not wrong


def test_only_the_table_of_kernels_is_seen_from_outside():
    wrong = []
    for file, folder, target in includes():
        if folder == "kernels" or not target.startswith("kernels/"):
            continue
        if target.split("/")[1] not in KERNEL_HEADERS:
            wrong.append(f"{file} includes {target}")
    assert not wrong


def test_instructions_are_named_in_the_files_of_their_sets_only():
    names = re.compile(r"\b_mm\d*_|__AVX|__SSE|__FMA__|__ARM_|immintrin\.h|arm_neon\.h")
    allowed = {CPP / "base" / "float_environment.cpp", CPP / "base" / "streaming_copy.h"}
    wrong = [
        str(path.relative_to(CPP))
        for path in sources()
        if path not in allowed
        and not path.name.startswith("simd_")
        and names.search(path.read_text(encoding="utf-8"))
    ]
    assert not wrong


def test_every_row_of_variants_names_a_file_of_instructions_that_is_there():
    table = (CPP / "kernels" / "variants.def").read_text(encoding="utf-8")
    row = r'^SAMEGRAD_VARIANT\((\w+), "[^"]+", \w+, [01], "(simd_\w+\.h)", "[^"]*", .+\)$'
    rows = re.findall(row, table, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^SAMEGRAD_VARIANT", table, re.MULTILINE)) >= 4
    assert len({suffix for suffix, _ in rows}) == len(rows)
    assert all((CPP / "kernels" / file).is_file() for _, file in rows)


def variant_libraries():
    """The built variants: in SAMEGRAD_KERNEL_DIR, or beside the installed package."""
    folders = []
    if "SAMEGRAD_KERNEL_DIR" in os.environ:
        folders.append(Path(os.environ["SAMEGRAD_KERNEL_DIR"]))
    try:
        import samegrad

        folders.append(Path(samegrad.__file__).parent)
    except ImportError:
        pass
    for folder in folders:
        found = sorted(folder.rglob("libsamegrad_kernels_*.so"))
        if found:
            return found
    return []


def symbols(library, *options):
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    command = [nm, *options, str(library)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split() for line in listed.stdout.splitlines()]


@pytest.fixture(scope="module")
def libraries():
    found = variant_libraries()
    if not found:
        pytest.skip("the kernels are not built")
    return found


def test_a_variant_exports_its_table_and_nothing_else(libraries):
    for library in libraries:
        names = [fields[-1] for fields in symbols(library, "-D", "--defined-only")]
        assert names == ["samegrad_kernel_table"], library.name


def test_a_variant_takes_no_template_from_outside(libraries):
    """A weak function left undefined could be bound to another variant's code."""
    tools = {"__cxa_finalize", "__gmon_start__"}
    tools |= {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
    for library in libraries:
        for fields in symbols(library, "-D", "--undefined-only"):
            if fields[-2] in "wv":
                assert fields[-1].split("@")[0] in tools, library.name
            assert "samegrad" not in fields[-1], library.name


def lint_imports(folder):
    """What import-linter says of the package in a folder, by the contract of pyproject.toml."""
    program = Path(sys.executable).parent / "lint-imports"
    if not program.exists():
        pytest.skip("import-linter is not installed")
    command = [program, "--config", ROOT / "pyproject.toml", "--no-cache"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copied(tmp_path):
    """A copy of the Python sources, to be spoiled."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyi")
    shutil.copytree(PYTHON / "samegrad", tmp_path / "samegrad", ignore=ignored)
    return tmp_path


def test_python_imports_lower_layers_only():
    done = lint_imports(PYTHON)
    assert done.returncode == 0 and "2 kept, 0 broken" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("_base/enums.py", "from samegrad.distribute import Strategy", "samegrad.distribute"),
        ("_tensor/dim.py", "    from samegrad._ops import arrays", "samegrad._ops.arrays"),
        ("nn/_depth.py", "    import samegrad.linalg", "samegrad.linalg"),
    ],
    ids=["of_a_module", "of_a_function", "of_a_neighbour"],
)
def test_an_import_of_a_higher_layer_is_found(copied, file, line, said):
    with (copied / "samegrad" / file).open("a") as text:
        text.write(f"\n\ndef late():\n{line}\n" if line[0] == " " else f"\n{line}\n")
    done = lint_imports(copied)
    module = f"samegrad.{file.removesuffix('.py').replace('/', '.')}"
    assert done.returncode == 1 and f"{module} -> {said}" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("folder", "module", "line"),
    [
        ("_ops", "arrays.py", "from samegrad._ops.creation import zeros"),
        ("_keras", "conversion.py", "from samegrad._keras.control import scan"),
    ],
)
def test_a_circle_in_a_folder_is_found(copied, folder, module, line):
    with (copied / "samegrad" / folder / module).open("a") as text:
        text.write(f"\n\ndef late():\n    {line}\n")
    done = lint_imports(copied)
    said = f"No cycles are allowed in samegrad.{folder}"
    assert done.returncode == 1 and said in done.stdout, done.stdout + done.stderr


def test_a_module_in_no_layer_is_found(copied):
    (copied / "samegrad" / "_elsewhere.py").write_text('"""In no layer."""\n')
    done = lint_imports(copied)
    assert done.returncode == 1 and "_elsewhere" in done.stdout + done.stderr


def test_the_text_on_the_architecture_has_the_layers():
    with (ROOT / "pyproject.toml").open("rb") as file:
        contract = tomllib.load(file)["tool"]["importlinter"]["contracts"][0]
    layers = [sorted(layer.split(" | ")) for layer in reversed(contract["layers"])]
    text = (ROOT / "docs" / "architecture" / "python.md").read_text()
    rows = re.findall(r"^\| (`.+?`) \|", text.partition("\n## ")[0], re.MULTILINE)
    named = [
        [name.removesuffix(".py") for name in re.findall(r"`(\w+(?:\.py)?)/?`", row)]
        for row in rows
    ]
    assert [sorted(row) for row in named] == layers


def uses_of_the_root(text):
    """Lines that import samegrad itself, whose names are those of the layer `_api`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            if any(alias.name == "samegrad" for alias in node.names):
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "samegrad":
            package = PYTHON / "samegrad"
            for alias in node.names:
                module = package / alias.name
                if alias.name != "_core" and not (
                    module.is_dir() or module.with_suffix(".py").exists()
                ):
                    yield node.lineno


def test_layers_below_the_public_names_do_not_use_them():
    """import-linter cannot see it: the root loads its names when they are asked for."""
    above = {"keras", "_keras", "cli", "compat", "__init__.py"}
    # Written as users' programs.
    programs = {Path("testing/adapters/_samegrad.py"), Path("testing/_training.py")}
    package, wrong = PYTHON / "samegrad", []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package)
        if file.parts[0] not in above and file not in programs:
            found = uses_of_the_root(path.read_text(encoding="utf-8"))
            wrong += [f"{file}:{line}" for line in found]
    assert not wrong
    assert list(uses_of_the_root("def f():\n    from samegrad import cast, nn")) == [2]
    assert list(uses_of_the_root("import samegrad as tf\nimport samegrad.nn")) == [1]
