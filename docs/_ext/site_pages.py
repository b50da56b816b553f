"""Sphinx extension: pages of other folders, tables of contents, and links to them.

The source folder is `docs`. Pages that are elsewhere in the repository get a document name here,
and tables of contents are appended in memory, so that GitHub shows the same files without them.
"""

from __future__ import annotations

import fnmatch
import os
import pathlib
import sys
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from reference_pages import escape_docstring, write_pages
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.project import Project
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SiteProject(Project):
    """The pages of `docs`, of other folders, and the generated ones."""

    pages: dict[str, pathlib.Path]
    linked: dict[pathlib.Path, str]

    def discover(self, *args: Any, **kwargs: Any) -> set[str]:
        """Find all pages."""
        super().discover(*args, **kwargs)
        self.docnames |= self.pages.keys()
        return self.docnames

    def path2doc(self, filename: str | os.PathLike[str]) -> str | None:
        """Return the document name of a file, absolute or relative to the source folder."""
        path = pathlib.Path(self.srcdir, filename).resolve()
        if path in self.linked or not path.is_relative_to(self.srcdir):
            return self.linked.get(path)
        return super().path2doc(path)

    def doc2path(self, docname: str, absolute: bool) -> Any:
        """Return the file of a document."""
        if docname not in self.pages:
            return super().doc2path(docname, absolute)
        path = self.pages[docname]
        return type(self.srcdir)(path if absolute else os.path.relpath(path, self.srcdir))


def add_pages(app: Sphinx) -> None:
    """Give the pages of other folders, and of the reference, their document names."""
    pages = {
        name.replace("*", file.parent.name if file.stem == "README" else file.stem): file
        for name, path in app.config.site_pages.items()
        for file in ROOT.glob(path)
    }
    linked = {file: name for name, file in pages.items()}
    folders = {name: ROOT / path for name, path in app.config.site_folders.items()}
    programs = {name: sorted(path.glob("[!_]*.*")) for name, path in folders.items()}
    linked[ROOT / "notebooks"] = "contents"
    for name, files in programs.items():
        linked |= {folders[name]: name} | {file: f"{name}/{file.stem}" for file in files}
    generated = write_pages(pathlib.Path(app.doctreedir, "generated").resolve(), programs)
    app.project.__class__ = SiteProject  # Sphinx has no other way to add pages
    app.project.pages, app.project.linked = pages | generated, linked


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the tables of contents of a page to its text."""
    contents = app.config.site_contents
    tables = contents.get(docname, {})
    entries = [entry for table in contents.values() for part in table.values() for entry in part]
    named = {entry.rpartition("<")[2].strip("/>") for entry in entries}
    listed = {"reference", *app.config.site_folders}  # their pages are in generated contents
    taken = {name for name in app.project.docnames if name in named or name.split("/")[0] in listed}
    taken.add("index")
    for caption, entries in tables.items():
        lines = []
        for entry in entries:
            matches = set(fnmatch.filter(app.project.docnames, entry)) - taken
            same = sorted(n for n in matches if n.count("/") == entry.count("/"))
            lines += [entry] if "*" not in entry else same
        options = [":hidden:", f":caption: {caption}"][: 1 + bool(caption)]
        lines = [line if "<" in line else f"/{line}" for line in lines]
        body = "\n".join([*options, "", *lines])
        source[0] += f"\n\n```{{toctree}}\n{body}\n```\n"


class LinkPaths(SphinxTransform):
    """Link folders to the pages that list them; other paths without a page become plain text."""

    default_priority = 200

    def apply(self, **_: Any) -> None:
        """Replace the links of one page."""
        kinds = (addnodes.pending_xref, addnodes.download_reference)
        for node in list(self.document.findall(lambda n: isinstance(n, kinds))):
            if node.get("reftype") != "myst" or node.get("refdomain"):
                continue
            here = pathlib.Path(self.env.doc2path(self.env.docname)).parent
            path = (here / node["reftarget"].partition("#")[0]).resolve()
            if name := self.app.project.linked.get(path):
                attributes = {**node.attributes, "refdomain": "doc", "reftargetid": None}
                link = addnodes.pending_xref("", *node.children, **attributes)
                link["reftarget"] = name
                node.replace_self(link)
            elif path.exists():
                node.replace_self(node.children)


class LinkNames(SphinxPostTransform):
    """Link public names in inline code, such as `tf.math.abs`, to their reference."""

    default_priority = 20

    def run(self, **_: Any) -> None:
        """Replace the literals of one page."""
        objects = self.env.domains.python_domain.objects
        for literal in list(self.document.findall(nodes.literal)):
            words = literal.astext().removesuffix("()")
            name = f"samegrad.{words[3:]}" if words.startswith("tf.") else words
            entry = objects.get(name) if name.startswith("samegrad.") else None
            inside = (nodes.reference, nodes.title, addnodes.desc_signature)
            if entry is None or name in literal["ids"] or isinstance(literal.parent, inside):
                continue
            link = make_refnode(
                self.app.builder, self.env.docname, entry.docname, entry.node_id, literal.deepcopy()
            )
            literal.replace_self(link)


def anchor(_: str, raw: str, text: str, line: int, inliner: Any, **__: Any) -> tuple[Any, Any]:
    """Make inline code the place where a name is listed."""
    if text not in sys.modules:  # the page of a module notes it
        inliner.document.settings.env.domains.python_domain.note_object(text, "function", text)
    return [nodes.literal(raw, text, ids=[text])], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    for name in ("site_pages", "site_folders", "site_contents"):
        app.add_config_value(name, {}, "env")
    app.connect("builder-inited", add_pages)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", escape_docstring, priority=600)  # after napoleon
    app.add_role("anchor", anchor)
    app.add_lexer("mermaid", TextLexer)  # diagrams.js draws these blocks
    app.add_transform(LinkPaths)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
