# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.resnet_v2 import ResNet101V2 as ResNet101V2
from keras.src.applications.resnet_v2 import ResNet152V2 as ResNet152V2
from keras.src.applications.resnet_v2 import ResNet50V2 as ResNet50V2
from keras.src.applications.resnet_v2 import decode_predictions as decode_predictions
from keras.src.applications.resnet_v2 import preprocess_input as preprocess_input
