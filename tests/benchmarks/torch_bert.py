"""A block of BERT's encoder in PyTorch (see tf_bert.py)."""

from __future__ import annotations

from typing import Any

from workloads import BERT, TAGS, EncoderSizes

EPSILON = 1e-12  # of the normalizations


def block_model(torch: Any, sizes: EncoderSizes = BERT) -> Any:
    """Returns the model: `model(x [n, length, width], real [n, length])` to logits of the tags."""
    nn, f = torch.nn, torch.nn.functional

    class Tagger(nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            width = sizes.width
            self.project = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.rise = nn.Linear(width, sizes.hidden)
            self.fall = nn.Linear(sizes.hidden, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
            self.drop = nn.Dropout(sizes.dropout)
            self.tags = nn.Linear(width, TAGS)

        def forward(self, x: Any, real: Any) -> Any:
            n, length, width = x.shape
            parts = self.project(x).view(n, length, 3, sizes.heads, -1).permute(2, 0, 3, 1, 4)
            found = f.scaled_dot_product_attention(
                *parts, attn_mask=real[:, None, None, :], dropout_p=sizes.attention_dropout
            )
            found = self.out(found.transpose(1, 2).reshape(n, length, width))
            x = self.norm1(x + self.drop(found))
            return self.tags(self.norm2(x + self.drop(self.fall(f.gelu(self.rise(x))))))

    return Tagger()
