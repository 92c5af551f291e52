"""deploy/slow_link.py carries every byte, at its rate and with its delay. Usage: slow_link_test.py SLOW_LINK"""

import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SLOW_LINK = sys.argv.pop(1)


class Link:
    """A relay in front of a listening socket of ours."""

    def __init__(self, mbit_per_second, delay_ms, stderr=None):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.process = subprocess.Popen(
            [sys.executable, SLOW_LINK, "--listen", "127.0.0.1:0",
             "--to", "127.0.0.1:%d" % self.server.getsockname()[1], "--mbit-per-second",
             str(mbit_per_second), "--delay-ms", str(delay_ms)],
            stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        self.server.close()

    def connect(self):
        near = socket.create_connection(("127.0.0.1", self.port))
        far, _ = self.server.accept()
        for end in (near, far):
            end.settimeout(60)
        return near, far


def receive(end, size):
    data = b""
    while len(data) < size:
        part = end.recv(65536)
        if not part:
            break
        data += part
    return data


def pattern(size, seed):
    return bytes((i * 31 + seed + i // 251) & 0xff for i in range(size))


class SlowLink(unittest.TestCase):
    def test_every_byte_arrives_in_both_directions_of_several_connections(self):
        with Link(mbit_per_second=1000, delay_ms=1) as link:
            pairs = [link.connect() for _ in range(3)]
            messages = []
            for k, (near, far) in enumerate(pairs):
                for sender, receiver in ((near, far), (far, near)):
                    data = pattern(300_000, 2 * k + (sender is far))
                    thread = threading.Thread(target=sender.sendall, args=(data,))
                    thread.start()
                    messages.append((thread, receiver, data))
            for thread, receiver, data in messages:
                self.assertEqual(receive(receiver, len(data)), data)
                thread.join()
            for pair in pairs:
                for end in pair:
                    end.close()

    def test_the_rate_bounds_what_arrives_and_is_shared(self):
        # 2 x 100,000 bytes at 4 Mbit/s take 0.4 s, over two connections as over one.
        with Link(mbit_per_second=4, delay_ms=0) as link:
            pairs = [link.connect() for _ in range(2)]
            start = time.monotonic()
            for near, _ in pairs:
                near.sendall(pattern(100_000, 1))
            for _, far in pairs:
                self.assertEqual(len(receive(far, 100_000)), 100_000)
            self.assertGreaterEqual(time.monotonic() - start, 0.39)
            for pair in pairs:
                for end in pair:
                    end.close()

    def test_a_round_trip_takes_the_delay_twice(self):
        with Link(mbit_per_second=1000, delay_ms=40) as link:
            near, far = link.connect()
            start = time.monotonic()
            near.sendall(b"ping")
            self.assertEqual(receive(far, 4), b"ping")
            far.sendall(b"pong")
            self.assertEqual(receive(near, 4), b"pong")
            self.assertGreaterEqual(time.monotonic() - start, 0.08)
            near.close()
            far.close()

    def test_an_end_of_one_direction_is_carried_and_the_other_goes_on(self):
        with Link(mbit_per_second=1000, delay_ms=1) as link:
            near, far = link.connect()
            near.sendall(b"question")
            near.shutdown(socket.SHUT_WR)
            self.assertEqual(receive(far, 100), b"question")
            far.sendall(b"answer")
            far.close()
            self.assertEqual(receive(near, 100), b"answer")
            near.close()

    def test_a_receiver_that_dawdles_still_gets_everything_after_the_end(self):
        with Link(mbit_per_second=1000, delay_ms=1) as link:
            near = socket.socket()
            near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            near.connect(("127.0.0.1", link.port))
            near.settimeout(60)
            far, _ = link.server.accept()
            data = pattern(3_000_000, 5)
            near.shutdown(socket.SHUT_WR)
            far.sendall(data)  # returns when the relay holds what no socket does
            far.close()
            self.assertEqual(receive(near, len(data) + 1), data)
            near.close()

    def test_a_broken_connection_is_broken_at_the_other_end_too(self):
        with Link(mbit_per_second=1000, delay_ms=1) as link:
            near, far = link.connect()
            near.sendall(b"hello")
            self.assertEqual(receive(far, 5), b"hello")
            far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close() resets
            far.close()
            try:
                self.assertEqual(near.recv(1), b"")
            except ConnectionResetError:
                pass
            near.close()

    def test_a_server_that_is_not_there_closes_the_connection(self):
        with Link(mbit_per_second=1000, delay_ms=1) as link:
            link.server.close()
            near = socket.create_connection(("127.0.0.1", link.port))
            near.settimeout(60)
            self.assertEqual(near.recv(1), b"")
            near.close()

    def test_ended_with_connections_open_it_says_nothing(self):
        with tempfile.TemporaryFile() as said, Link(mbit_per_second=1000, delay_ms=1, stderr=said) as link:
            near, far = link.connect()
            near.sendall(b"x")
            self.assertEqual(receive(far, 1), b"x")
            link.process.terminate()
            self.assertEqual(link.process.wait(), 0)
            near.close()
            far.close()
            said.seek(0)
            self.assertEqual(said.read(), b"")

    def test_a_rate_of_nothing_is_refused(self):
        result = subprocess.run([sys.executable, SLOW_LINK, "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1",
                                 "--mbit-per-second", "0"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("0 is not above 0", result.stderr)


if __name__ == "__main__":
    unittest.main()
