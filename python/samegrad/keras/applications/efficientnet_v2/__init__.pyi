# Made by samegrad._keras.stubs. Do not edit.
from keras.src.applications.efficientnet_v2 import EfficientNetV2B0 as EfficientNetV2B0
from keras.src.applications.efficientnet_v2 import EfficientNetV2B1 as EfficientNetV2B1
from keras.src.applications.efficientnet_v2 import EfficientNetV2B2 as EfficientNetV2B2
from keras.src.applications.efficientnet_v2 import EfficientNetV2B3 as EfficientNetV2B3
from keras.src.applications.efficientnet_v2 import EfficientNetV2L as EfficientNetV2L
from keras.src.applications.efficientnet_v2 import EfficientNetV2M as EfficientNetV2M
from keras.src.applications.efficientnet_v2 import EfficientNetV2S as EfficientNetV2S
from keras.src.applications.efficientnet_v2 import decode_predictions as decode_predictions
from keras.src.applications.efficientnet_v2 import preprocess_input as preprocess_input
