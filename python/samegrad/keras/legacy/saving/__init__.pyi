# Made by samegrad._keras.stubs. Do not edit.
from keras.src.legacy.saving.serialization import deserialize_keras_object as deserialize_keras_object
from keras.src.legacy.saving.serialization import serialize_keras_object as serialize_keras_object
