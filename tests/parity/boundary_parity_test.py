"""Repeats in PyTorch what dump_boundaries.cc did in C++: outputs 1e-5, gradients 1e-4 relative."""

import os
import subprocess
import sys
import tempfile
import unittest

from safetensors.torch import load_file
from torch import nn
import torch

from twin import (
    Block, BottleneckBoundary, IdentityBlock, LinearBoundary, Model, ResBMBlock, ResBMLayer, SelfAttention,
    SqueezeExcite, TopKBoundary
)

OUTPUT, GRADIENT = 1e-5, 1e-4


def resbm(**options):
    return ResBMBlock(16, 4, 2, **options)


# As tests/model/support/boundary_variants.cc.
VARIANTS = {
    "published": resbm,
    "no_shortcut": lambda: resbm(shortcut=None),
    "transmit": lambda: resbm(shortcut="transmit"),
    "depth_1": lambda: resbm(depth=1),
    "depth_3_width_2": lambda: resbm(depth=3, width=2),
    "conv_conv_norm": lambda: resbm(norm_first=False),
    "squeeze_excite": lambda: resbm(attention=SqueezeExcite),
    "self_attention": lambda: resbm(attention=SelfAttention),
    "fan_in": resbm,
    "tied_orthogonal": resbm,
    "stride": lambda: resbm(stride=2),
    "out_channels": lambda: resbm(out_channels=24),
    "linear": lambda: LinearBoundary(16, 4),
    "identity_block": lambda: IdentityBlock(16, 4, 2),
    "bottleneck": lambda: BottleneckBoundary(16, 4, 2, 8),
    "top_k": lambda: TopKBoundary(4),
}
LAYERS = {
    "layer_direct": lambda: ResBMLayer(16, 4, 2, shortcut="direct"),
    "layer_projected": lambda: ResBMLayer(16, 4, 2, 24, shortcut="projected", stride=2),
    "layer_reconstruct": lambda: ResBMLayer(16, 4, 2, 24, shortcut="reconstruct"),
    "layer_none": lambda: ResBMLayer(16, 4, 2, shortcut=None),
}


def with_prefix(tensors, prefix):
    return {k[len(prefix):]: v for k, v in tensors.items() if k.startswith(prefix)}


class BoundaryParity(unittest.TestCase):
    def close(self, got, wanted, relative, what):
        """The largest error against the largest value: one value near zero does not decide."""
        self.assertEqual(got.shape, wanted.shape, what)
        error = (got - wanted).abs().max().item()
        self.assertLessEqual(error, relative * wanted.abs().max().item(), what)

    def check(self, tensors, twin):
        twin.load_state_dict(with_prefix(tensors, "weights."), strict=True)
        x = tensors["input"].requires_grad_(True)
        output = twin(x)
        self.close(tensors["output"], output.detach(), OUTPUT, "output")
        output.backward(tensors["output_gradient"])
        self.close(tensors["input_gradient"], x.grad, GRADIENT, "input")
        gradients = with_prefix(tensors, "gradients.")
        for name, parameter in twin.named_parameters():
            if name.endswith("attention.key.bias"):  # softmax does not see it: rounding on both sides
                self.assertLess(max(gradients[name].abs().max(), parameter.grad.abs().max()).item(), 1e-4, name)
                continue
            self.assertGreater(parameter.grad.abs().max().item(), 0, name)
            self.close(gradients[name], parameter.grad, GRADIENT, name)

    def test_every_boundary_equals_pytorch(self):
        torch.set_num_threads(1)
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run([DUMP, folder], check=True)
        self.assertEqual(sorted(os.listdir(folder)), sorted(name + ".safetensors" for name in {**VARIANTS, **LAYERS}))
        block, flatten = lambda: ("group0.0", Block(16, 16, 1, 4)), ("flatten", nn.Flatten())
        twins = {name: Model([block(), flatten], {"group0.0": make()}) for name, make in VARIANTS.items()}
        twins |= {name: Model([block(), ("group0.1", make()), flatten], {}) for name, make in LAYERS.items()}
        for name, twin in twins.items():
            with self.subTest(name):
                self.check(load_file(os.path.join(folder, name + ".safetensors")), twin)


if __name__ == "__main__":
    DUMP = sys.argv.pop(1)
    unittest.main()
