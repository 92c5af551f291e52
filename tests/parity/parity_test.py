"""Repeats in PyTorch what dump.cc did in C++ and compares: outputs 1e-5, gradients 1e-4 relative."""

import os
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import load_file
from torch import nn
import torch.nn.functional as F

from twin import Block, GlobalPool, Model, Normalise, ReluLinear, ResBMBlock, Stem

OUTPUT, GRADIENT = 1e-5, 1e-4
MEAN, STD = 0.3, 0.35  # as tests/model/support/models.cc


def with_prefix(tensors, prefix):
    return {k[len(prefix):]: v for k, v in tensors.items() if k.startswith(prefix)}


def small_resnet():
    return Model(
        [
            ("stem", Stem(1, 8, 1, 4)),
            ("group0.0", Block(8, 8, 1, 4)),
            ("group0.1", Block(8, 8, 1, 4)),
            ("group1.0", Block(8, 16, 2, 4)),
            ("group1.1", Block(16, 16, 1, 4, inner_groups=2)),
            ("pool", GlobalPool()),
            ("head", nn.Linear(16, 5)),
        ],
        {"stem": ResBMBlock(8, 4, 1), "group0.0": ResBMBlock(8, 2, 2), "group0.1": ResBMBlock(8, 8, 0)},
    )


def small_mlp():
    return Model(
        [
            ("flatten", nn.Flatten()),
            ("hidden0", ReluLinear(32, 24)),
            ("hidden1", ReluLinear(24, 16)),
            ("head", nn.Linear(16, 5)),
        ],
        {},
    )


class Parity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run([DUMP, cls.folder], check=True)

    def load(self, case):
        return load_file(os.path.join(self.folder, case + ".safetensors"))

    def close(self, got, wanted, relative, what):
        """The largest error against the largest value: one value near zero does not decide."""
        self.assertEqual(got.shape, wanted.shape, what)
        error = (got - wanted).abs().max().item()
        self.assertLessEqual(error, relative * wanted.abs().max().item(), what)

    def check_stage(self, case, twin, input_gets_gradient=True):
        tensors = self.load(case)
        # strict: no name is missing on either side
        twin.load_state_dict(with_prefix(tensors, "weights."), strict=True)
        self.assertEqual(list(with_prefix(tensors, "weights.")), list(with_prefix(tensors, "gradients.")))
        x = tensors["input"]
        if input_gets_gradient:
            x.requires_grad_(True)
        output = twin(x)
        self.close(tensors["output"], output.detach(), OUTPUT, "output")
        output.backward(tensors["output_gradient"])
        if input_gets_gradient:
            self.close(tensors["input_gradient"], x.grad, GRADIENT, "input")
        gradients = with_prefix(tensors, "gradients.")
        for name, parameter in twin.named_parameters():
            self.assertGreater(parameter.grad.abs().max().item(), 0, name)
            self.close(gradients[name], parameter.grad, GRADIENT, name)

    def test_the_published_block_equals_pytorch(self):
        twin = Model(
            [("group0.0", Block(256, 256, 1, 8)), ("flatten", nn.Flatten())], {"group0.0": ResBMBlock(256, 16, 8)}
        )
        self.check_stage("block", twin)

    def test_the_published_decoder_alone_equals_pytorch(self):
        class Decoder(ResBMBlock):
            def __init__(self):
                super().__init__(256, 16, 8)
                del self.compressor

            def forward(self, z):
                return self.decode(z).flatten(1)

        class Stage(nn.Module):
            def __init__(self):
                super().__init__()
                self.boundaries = nn.ModuleDict({"group0_0": Decoder()})

            def forward(self, z):
                return self.boundaries["group0_0"](z)

        self.check_stage("decoder", Stage())

    def test_a_whole_resnet_equals_pytorch(self):
        layers = [
            ("stem", Stem(3, 16, 2, 8, kernel=5)),
            ("group0.0", Block(24, 16, 1, 8)),
            ("group0.1", Block(16, 16, 1, 8)),
            ("group1.0", Block(16, 32, 2, 8)),
            ("group1.1", Block(32, 48, 1, 8, inner_groups=2)),
            ("group1.2", Block(48, 48, 2, 8, inner_groups=2)),
            ("pool", GlobalPool()),
            ("head", nn.Linear(48, 7)),
        ]
        boundaries = {
            "stem": ResBMBlock(16, 4, 2, out_channels=24),
            "group0.0": ResBMBlock(16, 16, 0),
            "group1.0": ResBMBlock(32, 8, 1),
        }
        model = Model(layers, boundaries)
        model.order.insert(0, Normalise([MEAN] * 3, [STD] * 3))
        self.check_stage("resnet", model, input_gets_gradient=False)

    def check_training(self, case, twin, optimizer, clip_norm, exact):
        tensors = self.load("training_" + case)
        before = with_prefix(tensors, "weights.")
        twin.load_state_dict(before, strict=True)
        channels = tensors["images.0"].shape[1]
        normalise = Normalise([MEAN] * channels, [STD] * channels)
        optimizer = optimizer(twin.parameters())
        for step in range(4):
            optimizer.zero_grad()
            # The whole batch at once, mean loss.
            loss = F.cross_entropy(twin(normalise(tensors[f"images.{step}"])), tensors[f"labels.{step}"])
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(twin.parameters(), clip_norm or float("inf"))
            self.assertAlmostEqual(tensors[f"loss.{step}"].item() / loss.item(), 1, delta=GRADIENT)
            self.assertAlmostEqual(tensors[f"norm.{step}"].item() / norm.item(), 1, delta=GRADIENT)
            if step == 0:
                sums = with_prefix(tensors, "gradient_sums.")
                scale = min(1, clip_norm / norm.item()) if clip_norm else 1
                if clip_norm:
                    self.assertLess(scale, 1)
                for name, parameter in twin.named_parameters():
                    self.close(sums[name] * (scale / 8), parameter.grad, GRADIENT, name)
            optimizer.step()
        after = with_prefix(tensors, "after.")
        for name, parameter in twin.named_parameters():
            if exact:
                self.assertTrue(torch.equal(after[name], parameter.detach()), name)
            moved = (parameter.detach() - before[name]).abs().max().item()
            self.assertGreater(moved, 0, name)
            error = (after[name] - parameter.detach()).abs().max().item()
            self.assertLessEqual(error, 1e-3 * moved, name)

    def test_steps_of_a_split_resnet_follow_pytorch_on_the_whole_batch(self):
        sgd = lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
        self.check_training("resnet_nesterov", small_resnet(), sgd, 0.5, exact=False)

    def test_steps_of_a_split_mlp_follow_pytorch_on_the_whole_batch(self):
        sgd = lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
        self.check_training("mlp_nesterov_split", small_mlp(), sgd, 0.5, exact=False)

    def test_plain_sgd_equals_pytorch_bit_for_bit(self):
        self.check_training("mlp_sgd", small_mlp(), lambda p: torch.optim.SGD(p, 0.1), 0, exact=True)

    def test_nesterov_sgd_equals_pytorch_bit_for_bit(self):
        sgd = lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
        self.check_training("mlp_nesterov", small_mlp(), sgd, 0, exact=True)

    def test_dampened_sgd_equals_pytorch_bit_for_bit(self):
        sgd = lambda p: torch.optim.SGD(p, 0.1, momentum=0.8, dampening=0.3, weight_decay=0.02)
        self.check_training("mlp_dampened", small_mlp(), sgd, 0, exact=True)

    def test_adamw_equals_pytorch_bit_for_bit(self):
        adamw = lambda p: torch.optim.AdamW(p, 0.01, betas=(0.85, 0.98), eps=1e-7, weight_decay=0.1)
        self.check_training("mlp_adamw", small_mlp(), adamw, 0, exact=True)

    def check_muon(self, case, adjust, nesterov, ns_steps):
        tensors = self.load("steps_" + case)
        adamw_takes = lambda name, w: w.dim() < 2 or name.startswith(("stem.", "head."))
        matrices, rest = {}, {}
        for name, w in with_prefix(tensors, "weights.0.").items():
            if adamw_takes(name, w):
                rest[name] = nn.Parameter(w.clone())
            else:
                matrices[name] = nn.Parameter(w.flatten(1).clone())
        self.assertTrue(matrices)
        self.assertTrue(rest)
        muon = torch.optim.Muon(
            matrices.values(), 0.02, 0.2, 0.9, nesterov=nesterov, ns_steps=ns_steps, adjust_lr_fn=adjust
        )
        adamw = torch.optim.AdamW(rest.values(), 0.01, betas=(0.85, 0.98), eps=1e-7, weight_decay=0.1)
        for step in range(4):
            gradients = with_prefix(tensors, f"gradient_sums.{step}.")
            after = with_prefix(tensors, f"weights.{step + 1}.")
            for name, parameter in (matrices | rest).items():
                parameter.grad = (gradients[name] / 8).reshape(parameter.shape)
            muon.step()
            adamw.step()
            for name, parameter in (matrices | rest).items():
                got = after[name].reshape(parameter.shape)
                self.assertTrue(torch.equal(got, parameter.detach()), f"{name}, step {step}")

    def test_muon_equals_pytorch_bit_for_bit_on_convolutions(self):
        self.check_muon("muon", "original", True, 5)

    def test_muon_without_nesterov_equals_pytorch_bit_for_bit_on_matrices(self):
        self.check_muon("muon_mlp", "match_rms_adamw", False, 3)


if __name__ == "__main__":
    DUMP = sys.argv.pop(1)
    unittest.main()
