"""The fields of an explanation are the printed plan: rendered again, they give its text."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._function.explanation import Explanation, PlanOperation, PlanStep

ROWS = np.arange(24, dtype=np.float32).reshape(12, 2)
# Imitates markup, reasons, and all that is printed below them.
HOSTILE = """<script src='x' onload="y">&amp;'</script>
  - a.py:1: mul is bad
machine: L1 1 KiB, 9 thread(s)
memory between steps: 9 bytes (of 9 bytes without reuse)
time: predicted 9.0 us
  once:
    %1 add float32 ()
    predicted 9.0 us
"""


def batch_of(strategy: Any, *arrays: np.ndarray) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(arrays if len(arrays) > 1 else arrays[0])
    return next(iter(strategy.experimental_distribute_dataset(dataset.batch(len(arrays[0])))))


def all_reduced(value: Any, op: str = "sum") -> Any:
    context: Any = tf.distribute.get_replica_context()
    return context.all_reduce(op, value)


def of_fit(strategy: Any, measure: int) -> Any:
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(4, "relu"), tf.keras.layers.Dense(1)])
        model.compile("adam", "mse", metrics=["mae"])
    model.fit(ROWS, ROWS[:, :1], batch_size=12, epochs=1, verbose=0)
    batch = batch_of(strategy, ROWS, ROWS[:, :1])
    return strategy.explain(model.train_step, args=(batch,), measure=measure)


def training(strategy: Any, loss_of: Callable[[Any, Any], Any], rows: Any, w: Any) -> Any:
    """Return a compiled step of Adam."""
    with strategy.scope():
        variable, optimizer = tf.Variable(w), tf.keras.optimizers.Adam()

    def replica_step(batch: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(loss_of(variable, batch))
        optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])
        return loss

    @tf.function
    def step(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica_step, args=(batch,)), axis=None)

    return step, batch_of(strategy, rows)


def of_custom_loop(strategy: Any, measure: int) -> Any:
    step, batch = training(
        strategy,
        lambda w, rows: tf.reduce_sum(tf.square((rows + tf.random.normal(tf.shape(rows))) @ w), 1),
        ROWS,
        np.ones((2, 1), np.float32),
    )
    step(batch)
    first = step.explain(batch, measure=measure)
    step(batch)
    again = step.explain(batch, measure=measure)
    assert again.reasons == first.reasons and again.memory == first.memory
    assert [(one.title, one.operations) for one in again.steps] == [
        (one.title, one.operations) for one in first.steps
    ]
    return again


def of_wide_layers(strategy: Any, measure: int) -> Any:
    def loss(w: Any, rows: Any) -> Any:
        return tf.reduce_sum(tf.tanh(tf.tanh(rows @ w) @ w), 1)

    wide = np.full((600, 600), 0.01, np.float32)
    step, batch = training(strategy, loss, np.ones((96, 600), np.float32), wide)
    return step.explain(batch, measure=measure)


def of_embedding(strategy: Any, measure: int) -> Any:
    with strategy.scope():
        table = tf.Variable(np.ones((100_000, 16), np.float32))

    @tf.function
    def step(ids: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table, ids)))
        gradients: Any = [tape.gradient(loss, table)]
        clipped: Any = tf.clip_by_global_norm(gradients, 0.5)
        table.assign_sub(0.1 * clipped[0][0])
        return clipped[1]

    return step.explain(tf.constant(np.arange(96) % 40), measure=measure)


def of_embedding_with_adam(strategy: Any, measure: int) -> Any:
    def loss(table: Any, ids: Any) -> Any:
        return tf.reduce_sum(tf.square(tf.gather(table, ids)), 1)

    step, batch = training(strategy, loss, np.arange(96) % 40, np.ones((20_000, 8), np.float32))
    return step.explain(batch, measure=measure)


def of_mean_per_replica(strategy: Any, measure: int) -> Any:
    def replica_step(rows: Any) -> Any:
        loss = tf.reduce_mean(tf.square(rows))
        return all_reduced(loss, "mean")

    return strategy.explain(replica_step, args=(batch_of(strategy, ROWS),), measure=measure)


def of_hostile_names(strategy: Any, measure: int) -> Any:
    with strategy.scope():
        own: Any = tf.Variable(
            1.0,
            name=HOSTILE,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    source = compile("lambda rows: total(top(rows, axis=0) * 0.3)", f"{HOSTILE}.py", "eval")
    hostile = eval(source, {"total": all_reduced, "top": tf.reduce_max})

    def replica_step(rows: Any) -> Any:
        return all_reduced(own * 2.0), hostile(rows)

    return strategy.explain(replica_step, args=(batch_of(strategy, ROWS),), measure=measure)


def of_control_flow(strategy: Any, measure: int) -> Any:
    def replica_step(rows: Any) -> Any:
        total = tf.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, x + tf.reduce_sum(rows)), (0, 0.0)
        )[1]
        return all_reduced(tf.cond(total > 0.0, lambda: total, lambda: -total))

    return strategy.explain(replica_step, args=(batch_of(strategy, ROWS),), measure=measure)


def of_lengths(strategy: Any, measure: int) -> Any:
    @tf.function(input_signature=[tf.TensorSpec([None, None], "float32")])
    def summed(rows: Any) -> Any:
        return rows * 2.0 if int(rows.shape[1]) > 4 else rows

    return summed.explain(tf.ones((3, 5)), measure=measure)


def of_nothing_traced_yet(strategy: Any, measure: int) -> Any:
    return tf.function(lambda x: tf.matmul(x, x)).explain(tf.ones((512, 512)), measure=measure)


KINDS = {
    "loop", "all_reduce", "once", "side_by_side", "rows", "block_update", "sparse_rows",
    "sparse_reduce", "sparse_update",
}  # fmt: skip
PROGRAMS = {
    name.removeprefix("of_"): program
    for name, program in list(globals().items())
    if name.startswith("of_")
}


def explained(name: str, replicas: int, measure: int = 0) -> Explanation:
    with tf.config.loss_normalization_check("off"), tf.config.replica_dependence_check("off"):
        found = PROGRAMS[name](tf.distribute.MirroredStrategy(replicas=replicas), measure)
    assert isinstance(found, Explanation)
    return found


def time_text(seconds: float | None) -> str:
    assert seconds is not None
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def bytes_text(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):  # noqa: B007
        if number < 1024:
            break
        number /= 1024
    return f"{number:.1f}".removesuffix(".0") + f" {unit}"


def times_text(of: Explanation | PlanStep, mean: str = "") -> str:
    predicted = f"predicted {time_text(of.predicted)}"
    if of.measured is None:
        assert of.least is None
        return predicted
    measured = f"measured {time_text(of.measured)} ({mean}least {time_text(of.least)})"
    shared = ""
    if isinstance(of, PlanStep) and of.parallel_loops:
        shared = f", {of.pieces} pieces in {of.parallel_loops} parallel loop(s)"
    return f"{predicted}, {measured}{shared}"


def operation_text(operation: PlanOperation) -> str:
    flags = " deferred from the loop" * operation.deferred + " by all threads" * operation.parallel
    fused = f": '{' '.join(operation.fused)}'" if operation.fused else ""
    return f"    % {operation.name} {operation.type}{flags}{fused}"


def step_text(step: PlanStep) -> list[str]:
    listed = [f"  {step.title}:", *map(operation_text, step.operations)]
    if step.kind == "sparse_rows":
        listed = [f"  {step.title}: of" + " %" * len(step.operations)]
    return [
        *listed,
        *(f"    {note}" for note in step.notes),
        f"    {times_text(step)}",
    ]


def rendered(plan: Explanation) -> str:
    """Return the fields as `str` prints them, without the numbers of values and operations."""
    assert plan.memory is not None
    heading = []
    if plan.lengths is not None:
        which = "those of which this is true" if plan.lengths else "any"
        heading = [f"traced once for lengths, {which}", *(f"  {line}" for line in plan.lengths)]
    bits = ("yes, this is one replica" if plan.replicas == 1 else "yes") if plan.bitwise else "no:"
    memory = (bytes_text(n) for n in (plan.memory.bytes, plan.memory.bytes_without_reuse))
    mean = f"mean of {plan.runs} runs that changed nothing; "
    lines = [
        *heading,
        f"{plan.replicas} replica(s), operations, {len(plan.steps)} steps",
        f"bitwise identical to one replica: {bits}",
        *(f"  - {reason}" for reason in plan.reasons),
        f"machine: {plan.machine}, {plan.threads} thread(s)",
        "memory between steps: {} (of {} without reuse)".format(*memory),
        f"time: {times_text(plan, mean)}",
        *(line for step in plan.steps for line in step_text(step)),
    ]
    return "\n".join(lines) + "\n"


def compared(text: str) -> str:
    """Return a printed plan without what the fields leave out."""
    text = re.sub(r"%\d+", "%", text)
    text = re.sub(r"\d+ operations, ", "operations, ", text)
    return re.sub(r"trace_of_count (.*): '.*'", r"trace_of_count \1", text)


@pytest.mark.parametrize("measure", [0, 2])
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_fields_hold_all_that_is_printed(name: str, replicas: int, measure: int) -> None:
    plan = explained(name, replicas, measure)
    assert compared(rendered(plan)) == compared(str(plan))
    assert plan.bitwise is (not plan.reasons)
    assert plan.runs == measure and (plan.measured is None) is (measure == 0)
    fields = json.loads(plan.to_json())
    assert fields["version"] == 1 and fields["replicas"] == plan.replicas
    assert fields["bitwise"] is plan.bitwise and fields["predicted"] == plan.predicted
    assert [reason["text"] for reason in fields["reasons"]] == [r.text for r in plan.reasons]
    for step, found in zip(plan.steps, fields["steps"], strict=True):
        assert found["measured"] == step.measured and found["title"] == step.title
        assert [o["name"] for o in found["operations"]] == [o.name for o in step.operations]


def test_programs_have_steps_of_every_kind() -> None:
    plans = [explained(name, replicas) for name in PROGRAMS for replicas in (1, 3)]
    assert {step.kind for plan in plans for step in plan.steps} == KINDS
    operations = [one for plan in plans for step in plan.steps for one in step.operations]
    assert any(one.deferred for one in operations) and any(one.fused for one in operations)


def test_reasons_hold_file_and_line() -> None:
    plan = explained("mean_per_replica", 3)
    (reason,) = plan.reasons
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert reason.file == "test_explanation_fields.py" and reason.line is not None
    assert "loss = tf.reduce_mean(tf.square(rows))" in lines[reason.line - 1]
    assert reason.text == "div changes a per-replica sum before the all-reduce"
    assert f"\n  - {reason}\n" in str(plan)
    assert explained("mean_per_replica", 1).bitwise


def test_operations_hold_the_line_that_called_them() -> None:
    plan = explained("mean_per_replica", 3)
    called = [one for step in plan.steps for one in step.operations if one.name == "all_reduce"]
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert called and all(one.file == "test_explanation_fields.py" for one in called)
    assert all("context.all_reduce(" in lines[int(one.line or 0) - 1] for one in called)


def test_reason_about_a_variable_holds_its_name_and_no_line() -> None:
    (reason, *_) = explained("hostile_names", 3).reasons
    assert reason.text == f"variable '{HOSTILE}' has a value per replica"
    assert reason.file is None and reason.line is None


def test_function_that_python_runs_has_no_plan() -> None:
    @tf.function
    def summed(data: Any) -> Any:
        return sum(data, tf.constant(0, tf.int64))

    plan = summed.explain(tf.data.Dataset.range(3))
    assert not plan.bitwise and str(plan) == f"{plan.reasons[0].text}\n"
    assert plan.reasons[0].text.startswith("Python runs the function")
    assert plan.steps == () and plan.memory is None
    assert plan.predicted is None and plan.measured is None and plan.runs is None
    assert json.loads(plan.to_json(indent=1))["memory"] is None
    assert Page(plan._repr_html_()).text == str(plan)


def test_explanation_is_immutable_and_has_a_short_repr() -> None:
    plan = explained("custom_loop", 3)
    with pytest.raises(AttributeError):
        plan.bitwise = False  # type: ignore[misc]
    assert repr(plan) == f"<Explanation: bitwise=True, 0 reasons, {len(plan.steps)} steps>"
    assert len({plan, plan}) == 1


class Page(html.parser.HTMLParser):
    """The tags, styles, texts and rows of a page, of which each element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[str] = []
        self.widths: list[list[float]] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append("")
            self.widths.append([])
        for _, value in attrs:
            assert "url" not in value
            self.widths[-1].extend(map(float, re.findall(r"width:([\d.]+)%", value)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "tr" in self.open:
            self.rows[-1] += data


@pytest.mark.parametrize("measure", [0, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_html_has_a_bar_for_each_time_and_escapes_names(name: str, measure: int) -> None:
    plan = explained(name, 3, measure)
    page = Page(plan._repr_html_())
    assert page.tags <= {
        "div", "b", "ul", "li", "table", "tr", "th", "td", "details", "summary", "br",
    }  # fmt: skip
    assert page.attributes <= {"style"}
    assert all(str(reason) in page.text for reason in plan.reasons)
    _, *rows = page.rows
    _, *widths = page.widths
    assert len(rows) == len(plan.steps)
    for row, bars, step in zip(rows, widths, plan.steps, strict=True):
        assert step.title in row and all(one.name in row for one in step.operations)
        assert len(bars) == (2 if measure else 1) and all(0 <= bar <= 100 for bar in bars)
    assert max(max(bars) for bars in widths) == 100


def test_html_names_the_cell_of_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = explained("mean_per_replica", 3)
    monkeypatch.setattr("samegrad._base.user_files.cell_of", lambda name: "Cell In[4]")
    assert f"Cell In[4], line {plan.reasons[0].line}: div " in Page(plan._repr_html_()).text


W = np.array([[1.0], [2.0]], np.float32)
RESULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rows": (lambda x: x @ W, ""),
    "a sum": (lambda x: tf.reduce_sum(x), ""),
    "a share of the mean": (lambda x: tf.nn.compute_average_loss(tf.reduce_sum(x, 1)), ""),
    "an all-reduced sum": (lambda x: all_reduced(tf.reduce_sum(x)), ""),
    "a local mean": (lambda x: tf.reduce_mean(x), "div changes a per-replica sum"),
    "a function of a sum": (lambda x: tf.exp(tf.reduce_sum(x)), "exp changes a per-replica sum"),
    "a maximum": (lambda x: tf.reduce_max(x), "reduce_max is computed from one replica's batch"),
    "a slice": (lambda x: x[0], "slice is computed from one replica's batch"),
    "a softmax of the batch": (
        lambda x: tf.nn.softmax(x, axis=0),
        "softmax is computed from one replica's batch",
    ),
    "a size": (lambda x: tf.shape(x)[0], "dimension_sizes depends on the per-replica batch size"),
    "by the size": (
        lambda x: x / tf.cast(tf.shape(x)[0], tf.float32),
        "dimension_sizes depends on the per-replica batch size",
    ),
    "nested": (
        lambda x: {"rows": x, "of replicas": [tf.reduce_max(x)]},
        "reduce_max is computed from one replica's batch",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_depends_on_the_replicas_is_named(name: str) -> None:
    function, reason = RESULTS[name]
    strategy = tf.distribute.MirroredStrategy(replicas=3)
    plan = strategy.explain(function, args=(batch_of(strategy, ROWS),))
    assert plan.bitwise == (not reason)
    assert [found.text.startswith(reason) for found in plan.reasons] == [True] * bool(reason)
    assert all(found.file == __file__.rpartition("/")[2] for found in plan.reasons)
