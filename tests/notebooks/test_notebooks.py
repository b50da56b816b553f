"""The notebooks run from the first cell to the last."""

import pathlib
import re

import pytest

from samegrad_doctor import FailureMode, _catalogue

nbformat = pytest.importorskip("nbformat", reason="comes with nbclient")
nbclient = pytest.importorskip("nbclient", reason="runs the notebooks")
pytest.importorskip("ipykernel", reason="runs the cells")

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("NOTEBOOK_EXAMPLES", "4000")
    monkeypatch.setenv("NOTEBOOK_EPOCHS", "1")
    monkeypatch.setenv("NOTEBOOK_ITERATIONS", "6")
    book = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3", resources=resources).execute()
    outputs = [out for cell in book.cells for out in cell.get("outputs", [])]
    shown = "".join(out.get("text", "") for out in outputs)
    assert "ReplicaDependenceWarning" not in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_results_of_a_whole_run(path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    numbers = [cell.execution_count for cell in cells]
    assert numbers == list(range(1, len(cells) + 1))
    errors = [out for cell in cells for out in cell.outputs if out.output_type == "error"]
    assert not errors


def test_the_doctors_notebook_names_ten_mistakes_and_fixes_each():
    book = nbformat.read(FOLDER / "03_loss_normalization_doctor.ipynb", as_version=4)
    source = "\n".join(cell.source for cell in book.cells)
    sections = re.split(r"^## \d+\. ", source, flags=re.M)[1:]
    assert len(sections) == 10
    assert all("diagnose(" in s and "assert_replica_equivalent(" in s for s in sections)
    shown = "\n".join(out.get("text", "") for cell in book.cells for out in cell.get("outputs", []))
    named = re.findall(r"^cause: ([^:]+)", shown, flags=re.M)
    rows = (*_catalogue.CATALOGUE, *vars(_catalogue).values())
    known = {row.name for row in rows if isinstance(row, FailureMode)}
    assert set(named) - known == {"regularisation counts once on every replica"}
    assert len(set(named)) >= 9  # the tenth is that of a reported loss
    assert shown.count("green") >= 10


def test_the_transformers_notebook_translates_and_shows_a_leak():
    book = nbformat.read(FOLDER / "06_transformer.ipynb", as_version=4)
    shown = "\n".join(out.get("text", "") for cell in book.cells for out in cell.get("outputs", []))
    good, leaked = map(int, re.findall(r"reproduced (\d+) of 100 seen sentences", shown))
    assert good >= 80
    assert leaked <= 5
    (part,) = re.findall(r"held out: ([\d.]+) of the unigram model's perplexity", shown)
    assert float(part) < 1 / 3
    judged = [float(found) for found in re.findall(r"epoch 10: .*held out +([\d.]+)", shown)]
    assert judged[1] < 2 < judged[0]  # no translator is so sure of sentences it has never seen
    losses = re.findall(r"replicas: loss (\S+)", shown)
    assert len(losses) == 5 and len(set(losses)) == 1
    most = re.findall(r"mean of local means .* \.\.\. ([\d.]+)", shown)
    assert [float(factor) > 2 for factor in most] == [True, True]
