"""Methods of models that older programs call, with the ones of today."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.location import warn

# Settings of generators, which the reading threads of `fit` do not need.
_READING = ("max_queue_size", "workers", "use_multiprocessing")
# What may follow the generator of fit_generator, in this order.
_OF_FIT = (
    "steps_per_epoch", "epochs", "verbose", "callbacks", "validation_data", "validation_steps",
    "validation_freq", "class_weight",
)  # fmt: skip


class OlderModel:
    """The mix-in of Keras's models."""

    def fit_generator(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `fit`, with the order of arguments that it had for generators.

        Args:
            generator: Of batches, or a `PyDataset`.
            *args: steps_per_epoch, epochs, verbose, callbacks, validation_data, validation_steps,
                validation_freq, class_weight, in this order.
            **kwargs: These, and those of `fit`; how many threads read is of no use here.
        """
        arguments = _named("fit_generator", _OF_FIT, args, kwargs)
        return self.fit(generator, **arguments)  # type: ignore[attr-defined]

    def evaluate_generator(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `evaluate`; `steps` and `callbacks` may follow the generator."""
        arguments = _named("evaluate_generator", ("steps", "callbacks"), args, kwargs)
        return self.evaluate(generator, **{"verbose": 0, **arguments})  # type: ignore[attr-defined]

    def predict_generator(self, generator: Any, *args: Any, **kwargs: Any) -> Any:
        """Call `predict`; `steps` and `callbacks` may follow the generator."""
        arguments = _named("predict_generator", ("steps", "callbacks"), args, kwargs)
        return self.predict(generator, **{"verbose": 0, **arguments})  # type: ignore[attr-defined]

    def predict_proba(self, x: Any, batch_size: int | None = None, verbose: Any = 0) -> Any:
        """Call `predict`."""
        return self.predict(x, batch_size=batch_size, verbose=verbose)  # type: ignore[attr-defined]

    def predict_classes(self, x: Any, batch_size: int | None = None, verbose: Any = 0) -> Any:
        """The class of each example: of several outputs the largest one, of one whether above 0.5.

        Args:
            x: As for `predict`.
            batch_size: As for `predict`.
            verbose: As for `predict`.

        Returns:
            Whole numbers [examples], or [examples, 1] of a single output.
        """
        found = self.predict_proba(x, batch_size, verbose)
        return np.argmax(found, axis=-1) if found.shape[-1] > 1 else (found > 0.5).astype("int32")

    def to_yaml(self, **kwargs: Any) -> Any:
        """Refuses: it left TensorFlow with version 2.6, as YAML may run code that is read.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("[to_yaml] models are written as JSON: call model.to_json().")

    @property
    def compiled_loss(self) -> CompiledLoss:
        """The losses given to `compile`, as a `train_step` of its own called them."""
        return CompiledLoss(self)

    @property
    def compiled_metrics(self) -> CompiledMetrics:
        """The metrics given to `compile`, as a `train_step` of its own updated them."""
        return CompiledMetrics(self)

    def reset_states(self) -> None:
        """Reset to zero the states that layers keep between batches."""
        for layer in self._flatten_layers(include_self=False):  # type: ignore[attr-defined]
            if getattr(layer, "stateful", False) and hasattr(layer, "reset_state"):
                layer.reset_state()


class CompiledLoss:
    """Class of `model.compiled_loss` until TensorFlow 2.15.

    Args:
        model: Compiled.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def metrics(self) -> list[Any]:
        """The mean of the loss, and those of several outputs."""
        inner = self._model._compile_loss
        return [self._model._loss_tracker, *(inner.metrics if inner is not None else [])]

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None,
        regularization_losses: Any = None,
    ) -> Any:  # fmt: skip
        """A replica's share of the mean loss, which the model's metric `loss` counts.

        Args:
            y_true: Labels, or a structure of them.
            y_pred: What the model gave for them.
            sample_weight: None, or weights of the examples.
            regularization_losses: Added, as `model.losses`; each replica has its share of them.

        Raises:
            ValueError: The model was compiled without a loss, and there is nothing to be added.
        """
        model, parts = self._model, []
        if model._compile_loss is not None:
            parts.append(model._compile_loss(y_true, y_pred, sample_weight))
        parts += [model._aggregate_additional_loss(part) for part in regularization_losses or ()]
        if not parts:
            raise ValueError(
                "[compiled_loss] a loss is needed: got a model compiled with loss=None; call "
                "compile(loss=...), or pass regularization_losses."
            )
        total = sum(parts[1:], parts[0])
        model._track_loss(total, y_pred)
        return total


class CompiledMetrics:
    """Class of `model.compiled_metrics` until TensorFlow 2.15.

    Args:
        model: Compiled.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    @property
    def metrics(self) -> list[Any]:
        """Those given to `compile`, once they have seen a batch."""
        inner = self._model._compile_metrics
        return [] if inner is None else list(inner.metrics)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch; do nothing without metrics.

        Args:
            y_true: Labels, or a structure of them.
            y_pred: What the model gave for them.
            sample_weight: Of the weighted metrics.
        """
        if self._model._compile_metrics is not None:
            self._model._compile_metrics.update_state(y_true, y_pred, sample_weight)


def told_of_reading(who: str, *given: Any) -> None:
    """Warn of arguments of older programs that are not used.

    Args:
        who: "fit", "evaluate" or "predict".
        *given: What max_queue_size, workers and use_multiprocessing are, None if left out.
    """
    named = [f"{n}={v!r}" for n, v in zip(_READING, given, strict=True) if v is not None]
    if named:
        warn(
            f"[{who}] how generators are read is the data's: got {', '.join(named)}, not used; "
            "leave it out, and give a keras.utils.PyDataset its workers: "
            "super().__init__(workers=...)."
        )


def _named(who: str, names: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their names, without those of reading threads."""
    if len(args) > len(names):
        raise TypeError(
            f"[{who}] at most {len(names)} arguments follow the generator: got {len(args)}; give "
            "the others by name."
        )
    given = dict(zip(names, args, strict=False))
    twice = sorted(given.keys() & kwargs.keys())
    if twice:
        raise TypeError(f"[{who}] {twice[0]} is needed once: got it twice.")
    return given | {name: value for name, value in kwargs.items() if name not in _READING}
