# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.inception_resnet_v2 import InceptionResNetV2 as InceptionResNetV2
from keras.src.applications.inception_resnet_v2 import decode_predictions as decode_predictions
from keras.src.applications.inception_resnet_v2 import preprocess_input as preprocess_input
