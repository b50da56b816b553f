# Made by samegrad._keras.stubs. Do not edit.
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.converters import affine_transform as affine_transform
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.converters import clip_to_image_size as clip_to_image_size
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.converters import convert_format as convert_format
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.converters import crop as crop
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.converters import decode_deltas_to_boxes as decode_deltas_to_boxes
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.converters import encode_box_to_deltas as encode_box_to_deltas
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.converters import pad as pad
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.iou import compute_ciou as compute_ciou
from keras.src.layers.preprocessing.image_preprocessing.bounding_boxes.iou import compute_iou as compute_iou
