"""Operations under TensorFlow's names that move, make, select or print elements."""
