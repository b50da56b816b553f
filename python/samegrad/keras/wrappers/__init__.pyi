# Made by samegrad._keras.stubs. Do not edit.
from keras.src.wrappers.sklearn_wrapper import SKLearnClassifier as SKLearnClassifier
from keras.src.wrappers.sklearn_wrapper import SKLearnRegressor as SKLearnRegressor
from keras.src.wrappers.sklearn_wrapper import SKLearnTransformer as SKLearnTransformer
