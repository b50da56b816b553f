"""The first evaluation set of the doctor: see README.md of the folder above."""
