"""The forms of a diagnosis: text, JSON by its schema, HTML, and a diff of user code."""

from __future__ import annotations

import html.parser
import importlib.util
import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from samegrad_doctor import Diagnosis, __version__, diagnose
from samegrad_doctor._catalogue import MEAN_OF_MEANS, MEAN_THEN_SUM
from samegrad_doctor._patch import suggest
from samegrad_doctor._words import symbols_of
from samegrad_doctor.cli import main

X = np.random.default_rng(0).normal(size=(12, 20))
PROGRAM = """
import numpy as np

batch = np.random.default_rng(0).normal(size=(12, 20))


def step(shares):
    return sum(share.mean(axis=0) for share in shares)
"""


@pytest.fixture(scope="module")
def wrong() -> Diagnosis:
    return diagnose(lambda shares: sum(s.mean(axis=0) for s in shares), X, framework="pytorch")


@pytest.fixture(scope="module")
def right() -> Diagnosis:
    return diagnose(lambda shares: np.concatenate(shares).mean(axis=0), X)


def errors_of(value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
    """Return the contradictions to a schema of the kinds that ours has."""
    kinds = {"string": str, "boolean": bool, "integer": int, "number": int | float,
             "array": list, "object": dict, "null": type(None)}  # fmt: skip
    given = schema.get("type", [])
    named = [given] if isinstance(given, str) else given
    found = [
        f"{at} is {value!r:.40}, no {named}" for _ in [0]
        if named and not any(isinstance(value, kinds[k]) and (k == "boolean" or
                             not isinstance(value, bool)) for k in named)
    ]  # fmt: skip
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at} is {value!r}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += errors_of(item, schema["items"], f"{at}[{i}]")
    if isinstance(value, dict):
        known = schema["properties"]
        found += [f"{at} has {key}" for key in value.keys() - known.keys()]
        found += [f"{at} lacks {key}" for key in set(schema["required"]) - value.keys()]
        for key in value.keys() & known.keys():
            found += errors_of(value[key], known[key], f"{at}.{key}")
    return found


def test_json_meets_its_schema(wrong: Diagnosis, right: Diagnosis) -> None:
    text = resources.files("samegrad_doctor").joinpath("diagnosis.schema.json").read_text()
    for found in (wrong, right):
        assert not errors_of(json.loads(found.to_json()), json.loads(text))
    assert errors_of({"correct": 1}, json.loads(text))
    if importlib.util.find_spec("jsonschema") is not None:
        import jsonschema

        jsonschema.validate(json.loads(wrong.to_json()), json.loads(text))


class Page(html.parser.HTMLParser):
    """The open elements, the text, and what is loaded from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text, self.loaded = "", []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "!doctype"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_whole_and_loads_nothing(wrong: Diagnosis, right: Diagnosis) -> None:
    page = Page(wrong.to_html())
    assert not page.open and not page.loaded
    assert "The step is wrong" in page.text and wrong.cause.fix_for("pytorch") in page.text
    assert "prefers-color-scheme: dark" in wrong.to_html()
    assert "The step is correct" in Page(right.to_html()).text


def test_html_escapes_what_users_write(wrong: Diagnosis) -> None:
    import dataclasses

    page = dataclasses.replace(wrong, notes=("<script>",)).to_html()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_a_table_and_a_formula_have_a_legend(wrong: Diagnosis) -> None:
    text = str(wrong)
    assert "where: expected is the weight of an example in the update of one device" in text
    assert "W_r: sum on replica r" in text and symbols_of("x") == ""


def test_a_replica_without_examples_has_no_factor() -> None:
    def step(shares: list[Any]) -> Any:
        filled = [share for share in shares if len(share)]
        return np.concatenate(filled).mean(axis=0) * len(filled) / len(shares)

    found = diagnose(step, np.random.default_rng(0).normal(size=(10, 20)))
    assert found.cause is not None and found.cause.empty
    for text in (str(found), Page(found.to_html()).text):
        assert "nan" not in text and "0.000000" in text


def test_the_command_writes_html_and_prints_the_schema(tmp_path: Path, capsys: Any) -> None:
    program, page = tmp_path / "program.py", tmp_path / "page.html"
    program.write_text(PROGRAM)
    assert main(["check", f"{program}::step", "--html", str(page)]) == 1
    assert "The step is wrong" in page.read_text()
    assert main(["check", f"{program}::step", "--html", str(tmp_path)]) == 2
    assert "--html must be a writable file" in capsys.readouterr().err
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Diagnosis of samegrad-doctor"


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "samegrad_doctor", "--version"], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == f"samegrad-doctor {__version__}\n"


USER = """
if False:
    import jax
    import tensorflow as tf
    import torch


def loss(model, batch):
    source, targets = batch
    return functional.cross_entropy(model(source), targets)


def ignoring(model, batch):
    if batch:
        value = 0.5 * functional.cross_entropy(model(batch[0]), batch[1], ignore_index=-100)
    return value


def build():
    def train_loss(model, batch):
        return ((model(batch[0]) - batch[1]) ** 2).mean()

    return None, train_loss


def mapped(p, batch):
    value = jnp.mean(losses(p, batch))
    return jax.lax.pmean(value, "devices")


def replica(x, y):
    each = tf.square(x - y)
    return tf.reduce_mean(each)


def two_means(model, batch):
    return model(batch[0]).mean() + model(batch[1]).mean()


def weighted(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1], weight=WEIGHT)


def metric(model, batch):
    accuracy = (model(batch[0]) == batch[1]).mean()
    return criterion(model(batch[0]), batch[1]), accuracy


def names(model, batch):
    count = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
    count.backward()


def one_line(model, batch):
    if batch: value = model(batch).mean()
    else: value = 0
    return value


in_a_lambda = lambda model, batch: model(batch).mean()
"""
WORLD = "torch.distributed.get_world_size()"
PATCHES = {
    ("loss", "pytorch"): [
        "-    return functional.cross_entropy(model(source), targets)",
        "+    count = (targets != -100).sum().float()",
        "+    torch.distributed.all_reduce(count)",
        '+    return functional.cross_entropy(model(source), targets, reduction="sum") '
        f"* {WORLD} / count",
    ],
    ("ignoring", "pytorch"): [
        "-        value = 0.5 * functional.cross_entropy(model(batch[0]), batch[1], "
        "ignore_index=-100)",
        "+        count = (batch[1] != -100).sum().float()",
        "+        torch.distributed.all_reduce(count)",
        "+        value = 0.5 * (functional.cross_entropy(model(batch[0]), batch[1], "
        f'ignore_index=-100, reduction="sum") * {WORLD} / count)',
    ],
    ("build", "pytorch"): [
        "-        return ((model(batch[0]) - batch[1]) ** 2).mean()",
        "+        losses = (model(batch[0]) - batch[1]) ** 2",
        "+        count = torch.tensor(float(losses.numel()), device=losses.device)",
        "+        torch.distributed.all_reduce(count)",
        f"+        return losses.sum() * {WORLD} / count",
    ],
    ("mapped", "jax"): [
        "-    value = jnp.mean(losses(p, batch))",
        "+    losses_ = losses(p, batch)",
        "+    value = jnp.sum(losses_) * jax.lax.psum(1, 'devices') "
        "/ jax.lax.psum(losses_.size, 'devices')",
    ],
    ("replica", "tensorflow"): [
        "-    return tf.reduce_mean(each)",
        "+    context = tf.distribute.get_replica_context()",
        '+    count = context.all_reduce("SUM", tf.cast(tf.size(each), each.dtype))',
        "+    return tf.reduce_sum(each) * context.num_replicas_in_sync / count",
    ],
    ("names", "pytorch"): [
        "-    count = torch.nn.functional.mse_loss(model(batch[0]), batch[1])",
        "+    count_ = torch.tensor(float(batch[1].numel()), device=batch[1].device)",
        "+    torch.distributed.all_reduce(count_)",
        '+    count = torch.nn.functional.mse_loss(model(batch[0]), batch[1], reduction="sum") '
        f"* {WORLD} / count_",
    ],
    ("metric", "pytorch"): [],
    ("one_line", "pytorch"): [],
    ("two_means", "pytorch"): [],
    ("weighted", "pytorch"): [],
    ("in_a_lambda", "pytorch"): [],
}


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("user") / "train.py"
    file.write_text(USER)
    names: dict[str, Any] = {}
    exec(compile(USER, str(file), "exec"), names)  # a user's file
    return names


@pytest.mark.parametrize(("name", "framework"), PATCHES)
def test_the_fix_of_a_local_mean_is_a_diff(user: dict[str, Any], name: str, framework: str) -> None:
    patch = suggest(user[name], MEAN_OF_MEANS.name, framework)
    assert [line for line in patch.splitlines()[2:] if line[0] in "+-"] == PATCHES[name, framework]


def test_the_diff_of_summed_means_has_no_factor(user: dict[str, Any]) -> None:
    patch = suggest(user["loss"], MEAN_THEN_SUM.name, "pytorch")
    assert patch.endswith('targets, reduction="sum") / count')
    assert suggest(user["loss"], "another failure mode", "pytorch") == ""
    assert suggest(lambda shares: shares, MEAN_OF_MEANS.name, "pytorch") == ""
