"""Configure the documentation site: `python -m sphinx -W --keep-going -b html docs build/site`."""

import importlib.resources
import pathlib
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / path) for path in ("docs/_ext", "tests/docs", "tests/tf_conformance")]

project = "samegrad"
author = "the samegrad authors"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.intersphinx",
    "site_pages",
]
exclude_patterns = ["_ext", "_static"]

# Pages from other folders of the repository, by their names in the site.
site_pages = {
    "index": "README.md",
    "contents": "docs/index.md",
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "code-of-conduct": "CODE_OF_CONDUCT.md",
    "distributed-sums": "python/samegrad/distribute/README.md",
    "doctor-package": "python/samegrad_doctor/README.md",
    "doctor-evaluation": "tests/evals/doctor/README.md",
    "doctor-evaluation/*": "tests/evals/doctor/*/README.md",
    "benchmarks": "tests/benchmarks/README.md",
    "behaviours": "tests/contract/parity/BEHAVIOURS.md",
    "public-programs": "tests/unit/cli/public_programs.md",
    "architecture/engine": "cpp/README.md",
    "notebooks/*": "notebooks/*.ipynb",
}
# Folders whose programs have a page each.
site_folders = {
    "examples": "examples",
    "doctor-examples": "python/samegrad_doctor/examples",
    "jobs": "python/samegrad/distribute/jobs",
}

# The captions of the sidebar. A pattern stands for the pages that no other entry names.
site_contents = {
    "index": {
        "Getting started": [
            "quickstart",
            "notebooks/01_custom_training",
            "notebooks/08_fit_fashion_mnist",
            "running-tensorflow-programs",
            "towers",
        ],
        "Concepts": [
            "guarantees",
            "notebooks/02_one_model_any_replicas",
            "notebooks/07_all_reduce",
            "checks",
            "verification",
            "reliability",
        ],
        "Guides": [
            "processes",
            "distributed-sums",
            "jobs",
            "notebooks/04_wgan_gp",
            "notebooks/05_staged_gan",
            "notebooks/06_transformer",
            "notebooks/09_neural_collaborative_filter",
            "two-runs",
            "A fault between two runs </notebooks/10_two_runs_that_differ>",
            "profiling",
            "*",
            "notebooks/*",
            "examples",
        ],
        "Cookbook": ["cookbook/README"],
        "Doctor": [
            "doctor",
            "notebooks/03_loss_normalization_doctor",
            "The package of the doctor </doctor-package>",
            "doctor-examples",
            "reference/failure-modes",
            "doctor-evaluation",
        ],
        "Reference": [
            "reference/api",
            "commands",
            "reference/command-options",
            "environment",
            "reference/errors",
            "reference/ops",
            "extensions",
        ],
        "Compatibility": ["differences", "reference/coverage", "behaviours", "public-programs"],
        "Performance": [
            "performance",
            "performance-models",
            "performance-sixteen-models",
            "benchmarks",
        ],
        "Numerics": ["numerics"],
        "Project": [
            "architecture/overview",
            "architecture/python",
            "architecture/*",
            "architecture/recipes/README",
            "decisions/README",
            "contributing",
            "code-of-conduct",
            "security",
            "versioning",
            "releasing",
            "changelog",
            "All pages </contents>",
        ],
    },
    "cookbook/README": {"": ["cookbook/*"]},
    "architecture/recipes/README": {"": ["architecture/recipes/*"]},
    "decisions/README": {"": ["decisions/*"]},
    "doctor-evaluation": {"": ["doctor-evaluation/*"]},
}

myst_heading_anchors = 6
nb_execution_mode = "off"  # tests run the notebooks; their outputs are stored
nb_merge_streams = True
nb_number_source_lines = False
default_role = "literal"  # docstrings write code in single backticks
smartquotes = False  # options begin with two hyphens
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = True
autosummary_generate = False  # reference_pages writes the pages
add_module_names = False
maximum_signature_line_length = 70
toc_object_entries = False  # each page would copy them all for its sidebar
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "samegrad"
MERMAID = importlib.resources.files("mermaidx") / "assets" / "mermaid.js"  # draws diagrams
html_static_path = ["_static", str(MERMAID)]
html_css_files = ["site.css"]
html_js_files = ["diagrams.js"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "tango"
pygments_dark_style = "monokai"


def _inventories() -> dict[str, tuple[str, str]]:
    """Return the inventories of other projects; without a network, those of earlier builds."""
    cached, found = ROOT / "build" / "inventories", {}
    cached.mkdir(parents=True, exist_ok=True)
    for name, url in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
    }.items():
        file = cached / f"{name}.inv"
        if not file.exists():
            try:
                with urllib.request.urlopen(f"{url}objects.inv", timeout=5) as answer:
                    file.write_bytes(answer.read())
            except OSError:
                continue  # links to this project are plain text then
        found[name] = (url, str(file))
    return found


intersphinx_mapping = _inventories()
