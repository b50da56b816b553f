# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.densenet import DenseNet121 as DenseNet121
from keras.src.applications.densenet import DenseNet169 as DenseNet169
from keras.src.applications.densenet import DenseNet201 as DenseNet201
from keras.src.applications.densenet import decode_predictions as decode_predictions
from keras.src.applications.densenet import preprocess_input as preprocess_input
