"""The models of model/ in plain PyTorch, with the same state_dict names: what an exported model loads into."""

import torch
from torch import nn
import torch.nn.functional as F


class ResBMBlock(nn.Module):
    """Both halves. forward(x) is the whole boundary; encode and decode are what runs on either side of a cut."""

    def __init__(self, channels, ratio, groups, out_channels=None):
        super().__init__()
        low = channels // ratio
        out_channels = out_channels or channels
        self.compressor = nn.Conv2d(channels, low, 1)
        self.norm1 = nn.GroupNorm(groups, low) if groups else nn.Identity()
        self.low_dim_conv1 = nn.Conv2d(low, low, 3, padding=1)
        self.norm2 = nn.GroupNorm(groups, low) if groups else nn.Identity()
        self.low_dim_conv2 = nn.Conv2d(low, low, 3, padding=1)
        self.expander = nn.Conv2d(low, out_channels, 1)
        self.shortcut_recon = nn.Conv2d(low, out_channels, 1)

    def encode(self, x):
        return self.compressor(x)

    def decode(self, z):
        h = self.low_dim_conv1(F.silu(self.norm1(z)))
        h = self.low_dim_conv2(F.silu(self.norm2(h)))
        return self.expander(h) + self.shortcut_recon(z)

    def forward(self, x):
        return self.decode(self.encode(x))


class Stem(nn.Module):
    def __init__(self, in_channels, channels, stride, groups, kernel=3):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, channels, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Block(nn.Module):
    """Basic (3x3, 3x3) or bottleneck (1x1 to a quarter, 3x3, 1x1) residual block."""

    def __init__(self, in_channels, channels, stride, groups, inner_groups=None):
        super().__init__()
        self.bottleneck = inner_groups is not None
        if self.bottleneck:
            inner = channels // 4
            self.conv1 = nn.Conv2d(in_channels, inner, 1, bias=False)
            self.norm1 = nn.GroupNorm(inner_groups, inner)
            self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
            self.norm2 = nn.GroupNorm(inner_groups, inner)
            self.conv3 = nn.Conv2d(inner, channels, 1, bias=False)
            self.norm3 = nn.GroupNorm(groups, channels)
        else:
            self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
            self.norm1 = nn.GroupNorm(groups, channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.norm2 = nn.GroupNorm(groups, channels)
        if stride > 1 or in_channels != channels:
            self.downsample = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride, bias=False), nn.GroupNorm(groups, channels)
            )
        else:
            self.downsample = nn.Identity()

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        if self.bottleneck:
            y = self.norm3(self.conv3(F.relu(y)))
        return F.relu(y + self.downsample(x))


class Model(nn.Module):
    """Layers in order with boundaries between: layers is a list of (name, module), boundaries maps the name of
    the layer before to a module. A name "group0.1" registers as nested modules, as state_dict wants it."""

    def __init__(self, layers, boundaries):
        super().__init__()
        self.order = []
        self.boundaries = nn.ModuleDict()
        for name, module in layers:
            parent = self
            *path, last = name.split(".")
            for part in path:
                if not hasattr(parent, part):
                    parent.add_module(part, nn.Module())
                parent = getattr(parent, part)
            parent.add_module(last, module)
            self.order.append(module)
            if name in boundaries:
                boundary = boundaries[name]
                self.boundaries[name.replace(".", "_")] = boundary
                self.order.append(boundary)

    def forward(self, x):
        for module in self.order:
            x = module(x)
        return x


class ReluLinear(nn.Linear):
    def forward(self, x):
        return F.relu(super().forward(x))


class GlobalPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class Normalise(nn.Module):
    """What the first stage does with uint8 images."""

    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = torch.tensor(mean).view(-1, 1, 1), torch.tensor(std).view(-1, 1, 1)

    def forward(self, images):
        return (images.float() / 255 - self.mean) / self.std
