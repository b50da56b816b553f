"""The site builds without a warning, its links lead somewhere, and it shows each public name."""

import collections
import pathlib
import re
import subprocess
import sys

import pytest
from public_names import public_modules, public_names

for package in ("sphinx", "furo", "myst_nb", "mermaidx", "samegrad_doctor"):
    pytest.importorskip(package)
ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r'href="(?!\w+:|//)([^"#?]*)[^"#]*#?([^"]*)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as docs/architecture/development.md does."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs"]
    done = subprocess.run([*command, folder], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def anchors(site):
    """Return the anchors of each page."""
    return {
        page: set(re.findall(r'\bid="([^"]+)"', page.read_text("utf-8")))
        for page in site.rglob("*.html")
    }


def test_every_public_name_has_an_anchor_on_the_page_of_its_module(site, anchors):
    missing = [
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if f"{module.__name__}.{name}"
        not in anchors[site / "reference" / f"{module.__name__}.html"]
    ]
    assert not missing


def test_every_public_member_has_an_anchor_under_a_name_of_its_class(anchors):
    named, paths = set().union(*anchors.values()), collections.defaultdict(list)
    for module in public_modules():
        for name in module.__all__:
            paths[id(getattr(module, name))].append(f"{module.__name__}.{name}")
    others = {path: same for same in paths.values() for path in same}
    missing = []
    for public in public_names():
        owner, _, member = public.name.rpartition(".")
        if not any(f"{path}.{member}" in named for path in others.get(owner, [owner])):
            missing.append(public.name)
    assert not missing


def test_links_within_the_site_lead_to_pages_and_sections(anchors):
    broken = set()
    for page in anchors:
        for path, section in LINK.findall(page.read_text("utf-8")):
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (section and section not in anchors.get(target, {section})):
                broken.add(f"{page.name}: {path}#{section}")
    assert not broken


def test_pages_of_notebooks_show_stored_outputs(site):
    shown = (site / "notebooks" / "02_one_model_any_replicas.html").read_text("utf-8")
    assert 'class="output' in shown
