"""Repeats in PyTorch what dump_gpt.cc did in C++: outputs 1e-5, gradients 1e-4 relative."""

import os
import subprocess
import sys
import tempfile
import unittest

from safetensors.torch import load_file
from torch import nn
import torch
import torch.nn.functional as F

from gpt_twin import Adapter, DecoderBlock, InBranch, LanguageHead, LinearOnSequences, TopK
from twin import Model

OUTPUT, GRADIENT = 1e-5, 1e-4
VOCABULARY, WIDTH, HEADS, HIDDEN, BLOCKS, LOW = 13, 16, 2, 24, 4, 4  # as tests/model/support/gpt.cc


def gpt(boundary, in_branch):
    layers = [("embedding", nn.Embedding(VOCABULARY, WIDTH))]
    for i in range(BLOCKS):
        attention = not in_branch or i == 0
        mlp = not in_branch or i == BLOCKS - 1
        layers.append((f"block{i}", DecoderBlock(WIDTH, HEADS, HIDDEN, attention, mlp)))
    layers.append(("head", LanguageHead(WIDTH, VOCABULARY)))
    return Model(layers, {f"block{i}": boundary() for i in range(BLOCKS - 1)})


def in_branch(projection):
    return gpt(lambda: InBranch(WIDTH, HEADS, HIDDEN, LOW, projection), True)


def adapter(projection):
    return gpt(lambda: Adapter(WIDTH, LOW, projection), False)


VARIANTS = {
    "in_branch_truncate": lambda: in_branch("truncate"),
    "in_branch_orthogonal": lambda: in_branch("orthogonal"),
    "in_branch_learned": lambda: in_branch("learned"),
    "adapter_truncate": lambda: adapter("truncate"),
    "adapter_orthogonal": lambda: adapter("orthogonal"),
    "adapter_learned": lambda: adapter("learned"),
    "identity": lambda: gpt(nn.Identity, False),
    "linear": lambda: gpt(lambda: LinearOnSequences(WIDTH, LOW), False),
    "top_k": lambda: gpt(lambda: TopK(WIDTH // 4), False),
    "long": lambda: in_branch("truncate"),
}


def with_prefix(tensors, prefix):
    return {k[len(prefix):]: v for k, v in tensors.items() if k.startswith(prefix)}


class GptParity(unittest.TestCase):
    def close(self, got, wanted, relative, what):
        """The largest error against the largest value: one value near zero does not decide."""
        self.assertEqual(got.shape, wanted.shape, what)
        error = (got - wanted).abs().max().item()
        self.assertLessEqual(error, relative * wanted.abs().max().item(), what)

    def check_gradients(self, twin, gradients):
        trained = {name: p for name, p in twin.named_parameters() if p.requires_grad}
        self.assertEqual(sorted(gradients), sorted(trained))
        for name, parameter in trained.items():
            self.assertGreater(parameter.grad.abs().max().item(), 0, name)
            self.close(gradients[name], parameter.grad, GRADIENT, name)
        twin.zero_grad()

    def check(self, tensors, twin):
        # strict: no name is missing on either side
        twin.load_state_dict(with_prefix(tensors, "weights."), strict=True)
        logits = twin(tensors["tokens"].long())
        self.close(tensors["logits"], logits.detach(), OUTPUT, "logits")
        logits.backward(tensors["logits_gradient"])
        self.check_gradients(twin, with_prefix(tensors, "gradients."))

        labels = tensors["labels"].long()
        self.assertTrue((labels == -1).any())
        loss = F.cross_entropy(
            twin(tensors["tokens"].long()).flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="sum"
        )
        loss_sum, weight = tensors["loss_sum_and_weight"].tolist()
        self.assertAlmostEqual(loss_sum / loss.item(), 1, delta=OUTPUT)
        self.assertEqual(weight, (labels != -1).sum().item())
        loss.backward()
        self.check_gradients(twin, with_prefix(tensors, "loss_gradients."))

    def test_language_models_with_every_boundary_equal_pytorch(self):
        torch.set_num_threads(1)
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        subprocess.run([DUMP, folder], check=True)
        self.assertEqual(sorted(os.listdir(folder)), sorted(name + ".safetensors" for name in VARIANTS))
        for name, make in VARIANTS.items():
            with self.subTest(name):
                self.check(load_file(os.path.join(folder, name + ".safetensors")), make())


if __name__ == "__main__":
    DUMP = sys.argv.pop(1)
    unittest.main()
