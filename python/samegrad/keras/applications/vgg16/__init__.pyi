# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.vgg16 import VGG16 as VGG16
from keras.src.applications.vgg16 import decode_predictions as decode_predictions
from keras.src.applications.vgg16 import preprocess_input as preprocess_input
