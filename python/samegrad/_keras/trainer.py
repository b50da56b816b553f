"""fit, evaluate, predict: Keras's loops around compiled steps on all replicas."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src import tree
from keras.src.backend import config
from keras.src.backend.common.global_state import get_global_attribute
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

import samegrad as tf
from samegrad._base.tracebacks import keep_user_frames
from samegrad._context import state as _context
from samegrad._keras.epochs import EpochIterator, of_all, of_first, shares, symbolic
from samegrad._keras.losses import reduce_values, value_of_all
from samegrad._keras.older.models import told_of_reading
from samegrad._keras.over_processes import (
    any_stops,
    check_all_stop,
    check_backups,
    is_silent,
    silent,
)
from samegrad._keras.penalties import share_of_held
from samegrad._keras.resuming import Backups
from samegrad._keras.text_steps import TextSteps, as_text
from samegrad._keras.variable import global_values
from samegrad._tensor.example_axis import as_examples
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import elements_of


def _as_batch(x: Any) -> Any:
    x = as_text(x)
    return as_examples(x) if isinstance(x, Tensor | np.ndarray) else x


class Trainer(base_trainer.Trainer):  # type: ignore[misc]
    """Keras's trainer: a step is traced once and runs on all replicas of the model's strategy."""

    _initial_epoch: int | None

    def __init__(self) -> None:
        super().__init__()
        self.train_function: Any = None
        self.test_function: Any = None
        self.predict_function: Any = None
        self._distribute_strategy = _context.current().strategy

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope the model was made, or the default one."""
        return self._distribute_strategy or tf.distribute.get_strategy()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs; plain arrays given to the outermost model have their examples on axis 0."""
        try:
            if args and get_global_attribute("current_call_ctx") is None:
                args = (tree.map_structure(_as_batch, args[0]), *args[1:])
            return super().__call__(*args, **kwargs)
        except Exception as error:
            keep_user_frames(error)
            raise

    # Steps of one batch, on one of the replicas. Users override them.

    def train_step(self, data: Any) -> Any:
        """One step of training on a replica's part of a batch; returns metrics by name."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True) if self._call_has_training_arg else self(x)
            loss = self._compute_loss(
                x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )
            scaled = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
        self._track_loss(loss, x)
        weights = list(self.trainable_weights)
        if weights:
            gradients = tape.gradient(scaled, weights)
            self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> Any:
        """One step of evaluation on a replica's part of a batch; returns metrics by name."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False) if self._call_has_training_arg else self(x)
        loss = self._compute_loss(
            x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False
        )
        self._track_loss(loss, x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """The outputs of a replica's part of a batch."""
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self(x, training=False) if self._call_has_training_arg else self(x)

    def _track_loss(self, loss: Any, x: Any) -> None:
        """The mean loss of an epoch weighs each batch by its examples on all replicas."""
        first = next(leaf for leaf in tree.flatten(x) if leaf is not None)
        first = getattr(first, "rows", first)  # of strings
        count = tf.cast(elements_of(first, (0,), True), self._loss_tracker.dtype)
        if len(loss.shape):  # without reduction: a value for each example
            loss = reduce_values(loss)
        with global_values():
            self._loss_tracker.update_state(value_of_all(loss), sample_weight=count)

    def _aggregate_additional_loss(self, loss: Any) -> Any:
        """The replica's share of a loss that `add_loss` was given, or of a regularizer."""
        share = share_of_held(loss, super()._aggregate_additional_loss(loss))
        return tf.cast(share, config.floatx())  # as the loss that it is added to

    # Compiled steps.

    def _make_function(self, step: Any, join: Any) -> Any:
        """A function of a list of batches that makes one step with each.

        The `steps_per_execution` steps of a call are a loop in Python around one compiled step, and
        have the bits of single ones. What they save is what callbacks and the loop over the data
        take: on a model of two dense layers, 16 rows a batch, 52 µs a step become 36 with 10 steps
        and 33 with 100. A traced `while_loop` over the same batches, stacked, is not faster: 18.0
        µs a step where the loop in Python takes 14.6; 10 steps one after the other in one program
        save 3 µs of 22, and take ten times as long to trace. (Medians of 40, by turns, on two cores
        of an AMD EPYC.)
        """

        def compiled(step: Any) -> Any:
            def one_step(data: Any) -> Any:
                strategy = self.distribute_strategy
                return join(strategy, strategy.run(step, args=(data,)))

            run = one_step if self.run_eagerly else tf.function(one_step)
            return lambda batch: run(shares(batch, self.distribute_strategy))

        run = TextSteps(step, compiled)
        return lambda batches: [run(batch) for batch in batches]

    def make_train_function(self, force: bool = False) -> Any:
        """The function that trains on a list of batches."""
        if self.train_function is None or force:
            self.train_function = _last(
                self._make_function(_metrics_of(self.train_step), _first_of)
            )
        return self.train_function

    def make_test_function(self, force: bool = False) -> Any:
        """The function that evaluates a list of batches."""
        if self.test_function is None or force:
            self.test_function = _last(self._make_function(_metrics_of(self.test_step), _first_of))
        return self.test_function

    def make_predict_function(self, force: bool = False) -> Any:
        """The function that gives the outputs of a list of batches."""
        if self.predict_function is None or force:
            self.predict_function = self._make_function(self.predict_step, _outputs_of)
        return self.predict_function

    # Loops over batches.

    @traceback_utils.filter_traceback  # type: ignore[untyped-decorator]
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: Any = None,
        workers: Any = None,
        use_multiprocessing: Any = None,
    ) -> Any:
        """Train for a number of epochs; see keras.Model.fit. The last three are not used."""
        told_of_reading("fit", max_queue_size, workers, use_multiprocessing)
        self._assert_compile_called("fit")
        epochs = min(epochs, config.max_epochs() or epochs)
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        batches = EpochIterator(
            x=x, y=y, sample_weight=sample_weight, batch_size=batch_size,
            steps_per_epoch=steps_per_epoch, shuffle=shuffle, class_weight=class_weight,
            steps_per_execution=self.steps_per_execution, strategy=self.distribute_strategy,
        )  # fmt: skip
        validation = _Validation(self, validation_data, validation_batch_size or batch_size,
                                 validation_steps, validation_freq)  # fmt: skip
        self._build_for(batches, "fit")
        calls = self._callbacks(callbacks, batches, verbose, epochs, history=True)
        backups = Backups(self, calls, batches, validation.batches)
        try:
            return self._run_epochs(calls, batches, epochs, initial_epoch, validation, backups)
        finally:
            backups.end()

    def _run_epochs(
        self,
        calls: Any,
        batches: Any,
        epochs: int,
        initial_epoch: int,
        validation: Any,
        backups: Backups,
    ) -> Any:
        self.stop_training = False
        self.make_train_function()
        calls.on_train_begin()
        check_backups(self.distribute_strategy, calls)
        initial_epoch, self._initial_epoch = self._initial_epoch or initial_epoch, None
        logs: dict[str, Any] = {}
        for epoch in range(backups.begin(initial_epoch), epochs):
            self.reset_metrics()
            calls.on_epoch_begin(epoch)
            step_logs: Any = backups.begin_epoch()
            for begin, end, data in batches:
                calls.on_train_batch_begin(begin)
                step_logs = self.train_function(data)
                calls.on_train_batch_end(end, step_logs)
                backups.save_due(end + 1, step_logs)
                if self.stop_training:
                    if end + 1 != batches.num_batches:  # else all come to the epoch's end
                        check_all_stop(self.distribute_strategy)
                    break
            logs = dict(self._get_metrics_result_or_logs(step_logs))
            logs.update(validation.logs(epoch, calls))
            calls.on_epoch_end(epoch, logs)
            backups.save_due(0, logs)
            self.stop_training = any_stops(self.distribute_strategy, self.stop_training)
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        calls.on_train_end(logs=logs)
        return self.history

    @traceback_utils.filter_traceback  # type: ignore[untyped-decorator]
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        max_queue_size: Any = None,
        workers: Any = None,
        use_multiprocessing: Any = None,
        **kwargs: Any,
    ) -> Any:
        """The loss and the metrics over all batches; see keras.Model.evaluate and `fit`."""
        told_of_reading("evaluate", max_queue_size, workers, use_multiprocessing)
        batches = kwargs.pop("_batches", None)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        self._assert_compile_called("evaluate")
        if batches is None:
            batches = EpochIterator(
                x=x, y=y, sample_weight=sample_weight, batch_size=batch_size,
                steps_per_epoch=steps, shuffle=False,
                steps_per_execution=self.steps_per_execution, strategy=self.distribute_strategy,
            )  # fmt: skip
        self._build_for(batches, "evaluate")
        calls = self._callbacks(callbacks, batches, verbose, 1)
        self.make_test_function()
        self.stop_evaluating = False
        calls.on_test_begin()
        self.reset_metrics()
        logs: Any = {}
        for begin, end, data in batches:
            calls.on_test_batch_begin(begin)
            logs = self.test_function(data)
            calls.on_test_batch_end(end, logs)
            if self.stop_evaluating:
                break
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        calls.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback  # type: ignore[untyped-decorator]
    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        max_queue_size: Any = None,
        workers: Any = None,
        use_multiprocessing: Any = None,
    ) -> Any:
        """The outputs of all examples, in their order; see keras.Model.predict and `fit`."""
        told_of_reading("predict", max_queue_size, workers, use_multiprocessing)
        batches = EpochIterator(
            x=x, batch_size=batch_size, steps_per_epoch=steps, shuffle=False,
            steps_per_execution=self.steps_per_execution,
        )  # fmt: skip
        batches.needed_by = "predict"
        calls = self._callbacks(callbacks, batches, verbose, 1)
        self.make_predict_function()
        self.stop_predicting = False
        calls.on_predict_begin()
        found: list[Any] = []
        for begin, end, data in batches:
            calls.on_predict_batch_begin(begin)
            outputs = self.predict_function(data)
            found += outputs
            calls.on_predict_batch_end(end, {"outputs": _joined_rows(outputs)})
            if self.stop_predicting:
                break
        calls.on_predict_end()
        return _joined_rows(found)

    # One batch.

    @traceback_utils.filter_traceback  # type: ignore[untyped-decorator]
    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """One step of training on one batch; see keras.Model.train_on_batch."""
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same "
                    f"time. Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        return self._on_batch(self.make_train_function, (x, y, sample_weight), return_dict)

    @traceback_utils.filter_traceback  # type: ignore[untyped-decorator]
    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """The loss and the metrics of one batch; see keras.Model.test_on_batch."""
        self._assert_compile_called("test_on_batch")
        return self._on_batch(self.make_test_function, (x, y, sample_weight), return_dict)

    def _on_batch(self, make: Any, batch: Any, return_dict: bool) -> Any:
        arrays = tree.map_structure(_array, batch)
        self._build_by(arrays)
        function = make()
        self.reset_metrics()
        logs = pythonify_logs(function([arrays]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback  # type: ignore[untyped-decorator]
    def predict_on_batch(self, x: Any) -> Any:
        """The outputs of one batch."""
        function = self.make_predict_function()
        return _joined_rows(function([(tree.map_structure(_array, x),)]))

    def _build_for(self, batches: Any, who: str) -> None:
        """Create missing variables, by the shapes of the first batch."""
        batches.needed_by = who
        built = all(layer.built for layer in self._flatten_layers())
        parts = (self._compile_metrics, self._compile_loss, self.optimizer)
        if not built or not all(part is None or part.built for part in parts):
            self._build_by(batches.first_batch())
        batches.reset()

    def _build_by(self, batch: Any) -> None:
        """Create variables by the shapes of a batch.

        A model with a `train_step` of its own may have no `call`, or one of other inputs: what is
        not made here is made while the step is traced.
        """
        try:
            with _scope_of(self):
                self._symbolic_build(data_batch=symbolic(batch))
        except RuntimeError:
            if type(self).train_step is Trainer.train_step:
                raise

    def _callbacks(
        self, given: Any, batches: Any, verbose: Any, epochs: int, history: bool = False
    ) -> Any:
        if isinstance(given, callbacks_module.CallbackList):
            return given
        if is_silent(self.distribute_strategy):
            given, verbose = silent(given), 0
        return callbacks_module.CallbackList(
            given, add_history=history, add_progbar=verbose != 0, verbose=verbose, epochs=epochs,
            steps=batches.num_batches, model=self,
        )  # fmt: skip


class _Validation:
    """The validation at the end of an epoch."""

    def __init__(self, model: Any, data: Any, batch_size: Any, steps: Any, freq: Any) -> None:
        self._model, self._freq = model, freq
        self.batches = None
        if data is not None:
            x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
            self.batches = EpochIterator(
                x=x, y=y, sample_weight=sample_weight, batch_size=batch_size,
                steps_per_epoch=steps, shuffle=False,
                steps_per_execution=model.steps_per_execution, strategy=model.distribute_strategy,
            )  # fmt: skip

    def logs(self, epoch: int, callbacks: Any) -> dict[str, Any]:
        """The metrics by name with "val_" before it; nothing where it is not their turn."""
        if self.batches is None or not self._model._should_eval(epoch, self._freq):
            return {}
        found = self._model.evaluate(callbacks=callbacks, return_dict=True, _batches=self.batches)
        return {f"val_{name}": value for name, value in found.items()}


def _scope_of(model: Any) -> Any:
    strategy = model._distribute_strategy
    inside = strategy is None or _context.current().strategy is strategy
    return _context.changed() if inside else strategy.scope()


def _array(value: Any) -> Any:
    return value if value is None or tf.is_tensor(value) else np.asarray(value)


def _last(function: Any) -> Any:
    return lambda batches: function(batches)[-1]


def _metrics_of(step: Any) -> Any:
    """The step, which returns what is equal on all replicas; of shares their sum."""

    def summed(data: Any) -> Any:
        results = step(data)
        if isinstance(results, dict):
            return {name: _of_all(name, value) for name, value in results.items()}
        return _of_all("the result", results)

    return summed


def _of_all(name: str, value: Any) -> Any:
    return tree.map_structure(lambda leaf: of_all(name, leaf), value)


def _first_of(strategy: Any, results: Any) -> Any:
    return tree.map_structure(of_first, results)


def _outputs_of(strategy: Any, results: Any) -> Any:
    return tree.map_structure(lambda v: strategy.gather(v, axis=0), results)


def _joined_rows(outputs: list[Any]) -> Any:
    arrays = [tree.map_structure(np.asarray, output) for output in outputs]
    return tree.map_structure(lambda *parts: np.concatenate(parts, axis=0), *arrays)
