"""Names of older versions of Keras that have no place here, and what to use instead."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from samegrad._base.tracebacks import user_frames_only

_FEATURES = "feature columns left Keras: use preprocessing layers, or keras.utils.FeatureSpace"
_ARCHITECTURE = (
    "it left Keras with version 3: use applications.ResNet50V2 or applications.EfficientNetV2B0"
)
_READERS = "fit reads generators itself: give it a keras.utils.PyDataset, or a data.Dataset"
_SCIKIT = "it is wrappers.SKLearnClassifier and wrappers.SKLearnRegressor now"
_CUDA = "there is no GPU: use the layer of the same name without CuDNN"
_PLACE = "import from the public module: keras.layers, keras.models, keras.optimizers"
_REPLICAS = "make the model in distribute.MirroredStrategy(replicas=N).scope()"

# By the name after `tf.keras.`, as a pattern.
REASONS = {
    r"__internal__": "it is a private part of Keras: use the public name",
    r"applications\.(RegNet[XY]\d+|ResNetRS\d+|regnet|resnet_rs)": _ARCHITECTURE,
    r"backend\.experimental": "draws of samegrad are always those of its own generator: leave it "
    "out, and seed with keras.utils.set_random_seed",
    r"backend\.normalize_batch_in_training": "use nn.moments and nn.batch_normalization",
    r"callbacks\.BaseLogger": "metrics are means of an epoch already: leave it out",
    r"callbacks\.SidecarEvaluatorModelExport": "save with callbacks.ModelCheckpoint",
    r"dtensor": _REPLICAS,
    r"estimator": "train with keras.Model.fit",
    r"experimental\.(LinearModel|WideDeepModel)": "add up the outputs of two branches: "
    "layers.Add()([layers.Dense(1)(wide), deep])",
    r"experimental\.PeepholeLSTMCell": "write a cell: see layers.AbstractRNNCell",
    r"experimental\.SequenceFeatures": _FEATURES,
    r"experimental\.SidecarEvaluator": "evaluate with validation_data of fit",
    r"engine|legacy_tf_layers|np_utils|layers\.(core|recurrent|convolutional|normalization|embeddings"
    r"|wrappers|pooling|merge|advanced_activations|noise|local)": _PLACE,
    r"layers\.DenseFeatures": _FEATURES,
    r"layers\.CuDNN(LSTM|GRU)": _CUDA,
    r"layers\.experimental\.RandomFourierFeatures": "write a layer: the cosine of a Dense layer "
    "with trainable=False and drawn weights",
    r"layers\.experimental\.preprocessing\.CategoryCrossing": "use layers.HashedCrossing",
    r"layers\.experimental\.preprocessing\.PreprocessingLayer": "inherit from layers.Layer",
    r"metrics\.experimental": "inherit from metrics.Metric, or compute in a callback",
    r"mixed_precision\.experimental\.get_layer_policy": "read layer.dtype_policy",
    r"models\.experimental": "write Model.train_step with two gradients",
    r"models\.model_from_yaml": "it left TensorFlow with version 2.6: use model.to_json() and "
    "models.model_from_json",
    r"utils\.(Generator|Ordered|Sequence)Enqueuer": _READERS,
    r"utils\.experimental": "give fit a data.Dataset; the strategy's scope shares it out",
    r"utils\.SidecarEvaluator": "evaluate with validation_data of fit",
    r"utils\.StepsPerExecutionTuner": "give compile a steps_per_execution; it costs no time here",
    r"utils\.TimedThread": "use a thread of Python",
    r"utils\.multi_gpu_model": _REPLICAS,
    r"utils\.np_utils": "it is keras.utils.to_categorical",
    r"utils\.warmstart_embedding_matrix": "copy the rows of words that both vocabularies have, "
    "with NumPy",
    r"wrappers\.scikit_learn": _SCIKIT,
}


def reason_of(name: str) -> str | None:
    """Explain why a name of an older version is missing, and what to use.

    Args:
        name: After `tf.keras.`

    Example:
        >>> reason_of("utils.multi_gpu_model")
        'make the model in distribute.MirroredStrategy(replicas=N).scope()'
        >>> reason_of("layers.Dense") is None
        True
    """
    found = (reason for pattern, reason in REASONS.items() if re.fullmatch(pattern, name))
    return next(found, None)


def refusing(module: str, otherwise: Callable[[str], Any]) -> Callable[[str], Any]:
    """The `__getattr__` of a module of samegrad.keras.

    Args:
        module: Its name.
        otherwise: What is asked for all names that are not older ones.
    """
    inside = f"{module}.".removeprefix("samegrad.keras.")

    @user_frames_only
    def found(name: str) -> Any:
        reason = reason_of(inside + name)
        if reason is not None:
            text = f"module {module!r} has no attribute {name!r}: {reason}."
            raise AttributeError(text, name=None, obj=sys.modules[module])
        return otherwise(name)

    return found
