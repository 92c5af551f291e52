"""docs/examples/peer.py against a real stage server, and against the bytes that docs/protocol.md shows.

Usage: peer_test.py STAGE_SERVER
"""

import struct
import subprocess
import sys
import unittest

import pages

STAGE_SERVER = sys.argv[1]
del sys.argv[1]

sys.path.insert(0, str(pages.root() / "docs" / "examples"))
import peer  # noqa: E402


def example(name):
    page = pages.Page(pages.root() / "docs" / "protocol.md")
    return bytes.fromhex(next(b.text for b in page.blocks if (b.note, b.reason) == ("example", name)))


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([STAGE_SERVER, "--listen", "127.0.0.1:0", "--device", "cpu"], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        cls.address = cls.server.stdout.readline().split()[1]

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        cls.server.stdout.close()

    def test_a_free_stage_describes_itself(self):
        reply = peer.describe(self.address)
        self.assertEqual((reply.device, reply.state, reply.job_id), ("cpu", "EMPTY", ""))
        self.assertLessEqual(reply.min_protocol_version, 1)
        self.assertGreaterEqual(reply.max_protocol_version, 1)

    def test_a_session_attaches_and_releases_by_a_newer_epoch_each_time(self):
        for epoch in (7, 8):
            answer = peer.attach(self.address, epoch=epoch)
            self.assertTrue(answer.HasField("attached"), answer)
            self.assertEqual((answer.fence.epoch, answer.fence.generation), (epoch, 1))
            self.assertEqual(peer.describe(self.address).state, "EMPTY")
        refused = peer.attach(self.address, epoch=8).refused
        self.assertEqual((refused.holder_job_id, refused.holder_fence.epoch), ("example", 8))


class Bytes(unittest.TestCase):
    def test_the_message_on_the_page_is_what_the_page_says(self):
        header, values = peer.decode(example("message"))
        self.assertEqual(values, [1, -0.5, 0.25, 3])
        self.assertEqual((header.step, header.link, header.micro_batch, header.scale_exponent), (5, 1, 2, 13))
        self.assertEqual(list(header.dims), [1, 1, 2, 2])

    def test_every_row_of_the_table_of_offsets_is_at_its_offset(self):
        message = example("message")
        end = 0
        for line in (pages.root() / "docs" / "protocol.md").read_text().split("\n"):
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) == 5 and cells[1].isdigit() and cells[2].startswith("`"):
                data = bytes.fromhex(cells[2].strip("`"))
                self.assertEqual(int(cells[1]), end, line)
                self.assertEqual(message[end:end + len(data)], data, line)
                end += len(data)
        self.assertEqual(end, len(message))

    def test_any_changed_byte_of_payload_or_checksum_is_noticed(self):
        message = example("message")
        for at in [*range(41, 49), *range(51, 59)]:
            changed = message[:at] + bytes([message[at] ^ 1]) + message[at + 1:]
            with self.assertRaisesRegex(ValueError, "checksum"):
                peer.decode(changed)

    def test_int4_blocks(self):
        header = peer.link.TensorHeader(codec=peer.layer.CODEC_INT4, block_size=64, dims=[5])
        self.assertEqual(peer.values_of(header, example("int4")), [7, -7, 1, -1, 3])

    def test_int8_blocks_have_a_scale_each(self):
        header = peer.link.TensorHeader(codec=peer.layer.CODEC_INT8, block_size=64, dims=[1, 66])
        payload = struct.pack("<2f66b", 1, 2, 127, *[0] * 63, -127, 3)
        values = peer.values_of(header, payload)
        self.assertEqual((values[0], values[64], values[65]), (127, -254, 6))

    def test_bf16_is_the_upper_half_of_fp32(self):
        header = peer.link.TensorHeader(codec=peer.layer.CODEC_BF16, dims=[2])
        self.assertEqual(peer.values_of(header, bytes.fromhex("803f 40c0")), [1, -3])


if __name__ == "__main__":
    unittest.main()
