# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.nasnet import NASNetLarge as NASNetLarge
from keras.src.applications.nasnet import NASNetMobile as NASNetMobile
from keras.src.applications.nasnet import decode_predictions as decode_predictions
from keras.src.applications.nasnet import preprocess_input as preprocess_input
