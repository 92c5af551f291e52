"""The models of model/ in plain PyTorch, with the same state_dict names: what an exported model loads into."""

import torch
from torch import nn
import torch.nn.functional as F


class SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        hidden = max(1, channels // 4)
        self.fc1 = nn.Conv2d(channels, hidden, 1)
        self.fc2 = nn.Conv2d(hidden, channels, 1)

    def forward(self, h):
        return h * torch.sigmoid(self.fc2(F.silu(self.fc1(h.mean((2, 3), keepdim=True)))))


class SelfAttention(nn.Module):
    """One head over the pixels."""

    def __init__(self, channels):
        super().__init__()
        for name in ("query", "key", "value", "projection"):
            setattr(self, name, nn.Conv2d(channels, channels, 1))

    def forward(self, h):
        q, k, v = (layer(h).flatten(2).mT.unsqueeze(1) for layer in (self.query, self.key, self.value))
        read = F.scaled_dot_product_attention(q, k, v)  # [N, 1, pixels, channels]
        return h + self.projection(read.squeeze(1).mT.reshape(h.shape))


class ResBMBlock(nn.Module):
    """Both halves. forward(x) is the whole boundary; encode and decode are what runs on either side of a cut.
    shortcut: "reconstruct", "transmit" or None; attention: SqueezeExcite, SelfAttention or None."""

    def __init__(self, channels, ratio, groups, out_channels=None, *, shortcut="reconstruct", depth=2, width=1,
                 norm_first=True, attention=None, stride=1):
        super().__init__()
        self.low = low = channels // ratio
        out_channels = out_channels or channels
        self.depth, self.norm_first = depth, norm_first
        normalise = lambda n: nn.GroupNorm(groups, n) if groups else nn.Identity()
        self.compressor = nn.Conv2d(channels, low, 1, stride)
        if shortcut == "transmit":
            self.shortcut_conv = nn.Conv2d(channels, low, 1, stride)
        for i in range(1, depth + 1):
            a = low if i == 1 else low * width
            b = low if i == depth else low * width
            if norm_first:
                self.add_module(f"norm{i}", normalise(a))
            self.add_module(f"low_dim_conv{i}", nn.Conv2d(a, b, 3, padding=1))
        if not norm_first:
            self.norm1 = normalise(low)
        if attention:
            self.attention = attention(low)
        self.expander = nn.Conv2d(low, out_channels, 1)
        if shortcut:
            self.shortcut_recon = nn.Conv2d(low, out_channels, 1)

    def encode(self, x):
        z = self.compressor(x)
        return torch.cat((z, self.shortcut_conv(x)), 1) if hasattr(self, "shortcut_conv") else z

    def decode(self, crossed):
        z, sent = crossed[:, : self.low], crossed[:, -self.low :]  # the same, unless transmitted
        h = z
        for i in range(1, self.depth + 1):
            if self.norm_first:
                h = F.silu(getattr(self, f"norm{i}")(h))
            elif i > 1:
                h = F.silu(h)
            h = getattr(self, f"low_dim_conv{i}")(h)
        if not self.norm_first:
            h = self.norm1(h)
        if hasattr(self, "attention"):
            h = self.attention(h)
        out = self.expander(h)
        return out + self.shortcut_recon(sent) if hasattr(self, "shortcut_recon") else out

    def forward(self, x):
        return self.decode(self.encode(x))


class ResBMLayer(ResBMBlock):
    """The block within a stage, where x is at hand. shortcut: "direct", "projected", "reconstruct" or None."""

    def __init__(self, channels, ratio, groups, out_channels=None, *, shortcut, stride=1):
        rebuilt = shortcut if shortcut == "reconstruct" else None
        super().__init__(channels, ratio, groups, out_channels, shortcut=rebuilt, stride=stride)
        self.kind = shortcut
        if shortcut == "projected":
            self.shortcut_conv = nn.Conv2d(channels, out_channels or channels, 1, stride)

    def forward(self, x):
        out = self.decode(self.compressor(x))
        if self.kind == "direct":
            return out + x
        return out + self.shortcut_conv(x) if self.kind == "projected" else out


class IdentityBlock(ResBMBlock):
    """The uncompressed baseline with as many parameters."""

    def forward(self, x):
        return x + super().forward(x)


class LinearBoundary(nn.Module):
    def __init__(self, channels, ratio):
        super().__init__()
        self.compressor = nn.Conv2d(channels, channels // ratio, 1)
        self.expander = nn.Conv2d(channels // ratio, channels, 1)

    def forward(self, x):
        return self.expander(self.compressor(x))


class TopKBoundary(nn.Module):
    """Of each sample the 1/ratio values of largest magnitude, the rest 0."""

    def __init__(self, ratio):
        super().__init__()
        self.ratio = ratio

    def forward(self, x):
        flat = x.flatten(1)
        kept = flat.detach().abs().topk(flat.shape[1] // self.ratio, dim=1).indices
        return (flat * torch.zeros_like(flat).scatter(1, kept, 1)).view(x.shape)


class BottleneckBoundary(nn.Module):
    """The classic bottleneck block without its skip; cut after its first ReLU."""

    def __init__(self, channels, ratio, groups, output_groups):
        super().__init__()
        low = channels // ratio
        self.conv1 = nn.Conv2d(channels, low, 1, bias=False)
        self.norm1 = nn.GroupNorm(groups, low)
        self.conv2 = nn.Conv2d(low, low, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(groups, low)
        self.conv3 = nn.Conv2d(low, channels, 1, bias=False)
        self.norm3 = nn.GroupNorm(output_groups, channels)

    def forward(self, x):
        z = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm3(self.conv3(F.relu(self.norm2(self.conv2(z))))))


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
