"""Records PyTorch's outputs and gradients: `python record_transformer_torch.py FILE.npz`.

Run it where PyTorch is installed; test_transformer_torch.py compares with the recorded file.
"""

import sys

import numpy as np
from transformer_torch import all_results

if __name__ == "__main__":
    np.savez_compressed(sys.argv[1], **all_results())
