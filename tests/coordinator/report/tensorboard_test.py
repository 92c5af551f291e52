"""TensorBoard's own reader finds in an event file what the writer was given.

  tensorboard_test.py WRITE_TENSORBOARD
"""
import math
import os
import subprocess
import sys
import tempfile
import unittest

from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.util import tensor_util

WRITE = sys.argv.pop(1)


def load(path):
    accumulator = event_accumulator.EventAccumulator(path, size_guidance={event_accumulator.TENSORS: 0,
                                                                          event_accumulator.SCALARS: 0})
    accumulator.Reload()
    return accumulator


def events(path):
    return list(event_file_loader.LegacyEventFileLoader(path).Load())


class TensorboardTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        out = subprocess.run([WRITE, self.folder], check=True, capture_output=True, text=True)
        self.path = out.stdout.strip()

    def test_the_file_has_a_name_that_tensorboard_looks_for(self):
        self.assertTrue(os.path.basename(self.path).startswith("events.out.tfevents.1700000000."), self.path)
        self.assertEqual(os.listdir(self.folder), [os.path.basename(self.path)])

    def test_scalars_have_their_steps_times_and_values(self):
        accumulator = load(self.folder)
        self.assertEqual(sorted(accumulator.Tags()["scalars"]), ["bytes/group0.1/activations", "loss"])
        loss = accumulator.Scalars("loss")
        self.assertEqual([e.step for e in loss], list(range(1, 102)))
        for event in loss[:100]:
            self.assertAlmostEqual(event.value, 2.0 / event.step, places=6)
            self.assertAlmostEqual(event.wall_time, 1700000000 + 0.25 * event.step, places=3)
        self.assertTrue(math.isnan(loss[100].value))
        self.assertEqual(accumulator.Scalars("bytes/group0.1/activations")[99].value, 1e9 + 128)  # a float's precision

    def test_the_job_is_a_text(self):
        (text,) = [e for e in events(self.path) if e.HasField("summary") and e.summary.value[0].tag == "job"]
        value = text.summary.value[0]
        self.assertEqual(value.metadata.plugin_data.plugin_name, "text")
        self.assertEqual(list(tensor_util.make_ndarray(value.tensor)), [b'    name: "a"\n    seed: 1'])
        self.assertIn("job", load(self.folder).PluginTagToContent("text"))

    def test_the_first_event_says_the_version(self):
        self.assertEqual(events(self.path)[0].file_version, "brain.Event:2")

    def test_a_record_cut_short_by_a_crash_hides_nothing_before_it(self):
        whole = len(events(self.path))
        self.assertEqual(whole, 103)
        size = os.path.getsize(self.path)
        for cut in (1, 4, 20):
            os.truncate(self.path, size - cut)
            self.assertEqual(len(events(self.path)), whole - 1, cut)

    def test_a_damaged_record_is_noticed(self):
        with open(self.path, "r+b") as f:
            f.seek(200)
            byte = f.read(1)
            f.seek(200)
            f.write(bytes([byte[0] ^ 1]))
        self.assertLess(len(events(self.path)), 103)


if __name__ == "__main__":
    unittest.main()
