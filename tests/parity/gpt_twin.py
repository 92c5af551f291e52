"""The language models of model/ in plain PyTorch, with the same state_dict names."""

import torch
from torch import nn
import torch.nn.functional as F

EPSILON = 1e-5


class SelfAttention(nn.Module):
    """Causal, with rotary positions as transformers' Llama has them: the halves of a head turn together."""

    def __init__(self, width, heads, base=10000.0):
        super().__init__()
        self.heads, self.base = heads, base
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def rotate(self, x):  # [N, heads, T, size]
        size = x.shape[-1]
        frequencies = 1.0 / self.base ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
        angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequencies)
        angles = torch.cat((angles, angles), -1)
        half_turned = torch.cat((-x[..., size // 2 :], x[..., : size // 2]), -1)
        return x * angles.cos().float() + half_turned * angles.sin().float()

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        q, k = self.rotate(q), self.rotate(k)
        # Written out: another road to the same result than the fused kernel.
        scores = (q @ k.mT) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, width))


class SwiGlu(nn.Module):
    def __init__(self, width, hidden, out=None):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, out or width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class DecoderBlock(nn.Module):
    def __init__(self, width, heads, hidden, attention=True, mlp=True):
        super().__init__()
        if attention:
            self.norm1, self.attention = nn.RMSNorm(width, EPSILON), SelfAttention(width, heads)
        if mlp:
            self.norm2, self.mlp = nn.RMSNorm(width, EPSILON), SwiGlu(width, hidden)

    def forward(self, h):
        if hasattr(self, "attention"):
            h = h + self.attention(self.norm1(h))
        return h + self.mlp(self.norm2(h)) if hasattr(self, "mlp") else h


class LanguageHead(nn.Module):
    def __init__(self, width, vocabulary):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        self.norm = nn.RMSNorm(width, EPSILON)

    def forward(self, h):
        return F.linear(self.norm(h), self.weight)


class Projections(nn.Module):
    """T and T'. projection: "truncate", "orthogonal" (fixed) or "learned"."""

    def __init__(self, width, low, projection):
        super().__init__()
        self.width, self.low, self.projection = width, low, projection
        if projection != "truncate":
            self.shortcut_down = nn.Linear(width, low, bias=False)
            self.shortcut_up = nn.Linear(low, width, bias=False)
            for layer in (self.shortcut_down, self.shortcut_up):
                layer.weight.requires_grad_(projection == "learned")

    def narrow(self, h):
        return h[..., : self.low] if self.projection == "truncate" else self.shortcut_down(h)

    def widen(self, z):
        return F.pad(z, (0, self.width - self.low)) if self.projection == "truncate" else self.shortcut_up(z)


class InBranch(Projections):
    def __init__(self, width, heads, hidden, low, projection):
        super().__init__(width, low, projection)
        self.norm2, self.mlp = nn.RMSNorm(width, EPSILON), SwiGlu(width, hidden, low)
        self.decompressor = nn.Linear(low, width, bias=False)
        self.norm1, self.attention = nn.RMSNorm(width, EPSILON), SelfAttention(width, heads)

    def forward(self, h1):
        z = self.narrow(h1) + self.mlp(self.norm2(h1))
        return self.widen(z) + self.attention(self.norm1(F.relu(self.decompressor(z))))


class Adapter(Projections):
    def __init__(self, width, low, projection):
        super().__init__(width, low, projection)
        self.norm_in, self.compressor = nn.RMSNorm(width, EPSILON), nn.Linear(width, low, bias=False)
        wide = max(4 * low, width)
        self.norm1, self.low_dim = nn.RMSNorm(low, EPSILON), nn.Linear(low, wide, bias=False)
        self.expander = nn.Linear(wide, width, bias=False)

    def forward(self, h):
        z = self.narrow(h) + self.compressor(self.norm_in(h))
        return self.widen(z) + self.expander(F.silu(self.low_dim(self.norm1(z))))


class LinearOnSequences(nn.Module):
    def __init__(self, width, low):
        super().__init__()
        self.compressor = nn.Linear(width, low, bias=False)
        self.expander = nn.Linear(low, width, bias=False)

    def forward(self, h):
        return self.expander(self.compressor(h))


class TopK(nn.Module):
    """At each position the coordinates of the largest magnitudes."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, h):
        return h * torch.zeros_like(h).scatter(-1, h.abs().topk(self.kept, -1).indices, 1)
