"""A stage server as a service: what it tells systemd, and what health_probe sees.

Usage: service_test.py STAGE_SERVER HEALTH_PROBE
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

STAGE_SERVER, HEALTH_PROBE = sys.argv[1:3]
del sys.argv[1:3]


def probe(address, *more):
    return subprocess.run([HEALTH_PROBE, address, *more], capture_output=True, text=True, timeout=60)


class Service(unittest.TestCase):
    def test_it_is_ready_when_it_listens_and_says_when_it_stops(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # short: a socket's path has room for 108 bytes
            manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(manager.close)
            manager.settimeout(60)
            manager.bind(folder + "/notify")
            server = subprocess.Popen([STAGE_SERVER, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True,
                                      env={**os.environ, "NOTIFY_SOCKET": folder + "/notify"})
            self.addCleanup(server.stdout.close)
            self.addCleanup(server.kill)
            self.assertEqual(manager.recv(100), b"READY=1")
            address = server.stdout.readline().split()[1]
            self.assertEqual(probe(address).returncode, 0, probe(address).stderr)
            server.send_signal(signal.SIGTERM)
            self.assertEqual(manager.recv(100), b"STOPPING=1")
            self.assertEqual(server.wait(60), 0)
            gone = probe(address)
            self.assertEqual(gone.returncode, 1)
            self.assertIn(address, gone.stderr)

    def test_a_service_manager_that_is_not_there_is_a_line_in_the_log(self):
        server = subprocess.Popen([STAGE_SERVER, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "NOTIFY_SOCKET": "/nonexistent/notify"})
        self.addCleanup(server.kill)
        self.assertIn("LISTENING", server.stdout.readline())
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=60)
        self.assertEqual(server.returncode, 0)
        self.assertIn("/nonexistent/notify", log)


class HealthProbe(unittest.TestCase):
    def test_it_asks_for_a_service_by_its_name(self):
        server = subprocess.Popen([STAGE_SERVER, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        address = server.stdout.readline().split()[1]
        ready = probe(address, "--service", "ready")
        self.assertEqual((ready.returncode, ready.stderr), (0, ""))
        unknown = probe(address, "--service", "nonsense")
        self.assertEqual(unknown.returncode, 1)
        self.assertIn('no service "nonsense"', unknown.stderr)

    def test_a_server_that_does_not_answer_is_given_up_in_time(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            result = probe("127.0.0.1:%d" % silent.getsockname()[1], "--timeout", "0.2")
        self.assertEqual(result.returncode, 1)
        self.assertIn("health_probe: 127.0.0.1:", result.stderr)

    def test_it_wants_an_address(self):
        result = subprocess.run([HEALTH_PROBE], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()
