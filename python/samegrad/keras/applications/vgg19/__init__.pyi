# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.vgg19 import VGG19 as VGG19
from keras.src.applications.vgg19 import decode_predictions as decode_predictions
from keras.src.applications.vgg19 import preprocess_input as preprocess_input
