"""What is asked of `sample_distorted_bounding_box`: image size, boxes, and the other arguments."""

SETTINGS = {
    "defaults": ([90, 60, 3], [[0.2, 0.2, 0.6, 0.6]], {}),
    "much_covered": ([64, 100, 3], [[0.1, 0.5, 0.4, 0.9]], {"min_object_covered": 0.9}),
    "two_objects": (
        [50, 50, 1],
        [[0.0, 0.0, 0.3, 0.3], [0.7, 0.7, 1.0, 1.0]],
        {"min_object_covered": 0.5, "area_range": [0.05, 0.3]},
    ),
    "narrow": (
        [80, 40, 3],
        [[0.0, 0.0, 1.0, 1.0]],
        {"aspect_ratio_range": [0.4, 0.6], "area_range": [0.2, 0.5], "max_attempts": 20},
    ),
    "no_object": ([30, 30, 3], [], {"use_image_if_no_bounding_boxes": True}),
}
DRAWS = 2000
