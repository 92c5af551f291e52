"""deploy/dist/pack.py makes a package that stands on its own. Usage: pack_test.py PACK PROGRAM"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

PACK, PROGRAM = sys.argv[1:3]
del sys.argv[1:3]

specification = importlib.util.spec_from_file_location("pack", PACK)
pack = importlib.util.module_from_spec(specification)
specification.loader.exec_module(pack)


class Pack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.packages = [cls.folder / name for name in ("one.tar.gz", "two.tar.gz")]
        for out in cls.packages:
            subprocess.run([sys.executable, PACK, "--out", out, "--program", PROGRAM, "--file", f"some/where={PACK}"],
                           check=True)
        with tarfile.open(cls.packages[0]) as tar:
            tar.extractall(cls.folder / "a place")
        cls.root = cls.folder / "a place" / "resbm"

    def test_the_program_runs_elsewhere_without_an_environment(self):
        program = self.root / "bin" / pathlib.Path(PROGRAM).name
        result = subprocess.run([program, "--version"], env={}, cwd="/", capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(program.name, result.stdout)

    def test_only_the_c_library_is_the_systems(self):
        program = self.root / "bin" / pathlib.Path(PROGRAM).name
        outside = [path for path in pack.needed(program).values() if self.root not in path.parents]
        packages = pack.debian_packages(outside)
        self.assertEqual({packages.get(path) for path in outside}, {"libc6"}, outside)
        inside = {path.name for path in (self.root / "lib").iterdir()}
        self.assertIn("libstdc++.so.6", inside)
        self.assertTrue(any(name.startswith("libgrpc++.so") for name in inside), inside)

    def test_no_folder_of_the_build_is_left_in_the_program(self):
        program = self.root / "bin" / pathlib.Path(PROGRAM).name
        rpath = subprocess.run(["patchelf", "--print-rpath", program], check=True, capture_output=True, text=True)
        self.assertEqual(rpath.stdout.strip(), "$ORIGIN/../lib")

    def test_every_library_has_its_licence(self):
        self.assertIn("Apache", (self.root / "licenses" / "libgrpc++1.51" / "copyright").read_text())
        libraries = pack.closure([PROGRAM])
        packages = pack.debian_packages(libraries.values())
        for name, path in libraries.items():
            self.assertTrue((self.root / "licenses" / packages[path] / "copyright").is_file(), name)

    def test_a_file_goes_where_it_is_told(self):
        self.assertEqual((self.root / "some" / "where" / pathlib.Path(PACK).name).read_bytes(),
                         pathlib.Path(PACK).read_bytes())

    def test_the_same_input_gives_the_same_bytes(self):
        self.assertEqual(self.packages[0].read_bytes(), self.packages[1].read_bytes())

    def test_owners_and_times_of_the_build_are_not_in_it(self):
        with tarfile.open(self.packages[0]) as tar:
            for member in tar:
                self.assertEqual((member.uid, member.gid, member.mtime), (0, 0, 0), member.name)
                self.assertTrue(member.isdir() or member.isfile(), member.name)

    def test_a_library_that_is_not_there_is_named(self):
        program = self.folder / "broken"
        program.write_bytes(pathlib.Path(PROGRAM).read_bytes())
        subprocess.run(["patchelf", "--add-needed", "libnowhere.so.7", program], check=True)
        os.chmod(program, 0o755)
        result = subprocess.run([sys.executable, PACK, "--out", self.folder / "broken.tar.gz", "--program", program],
                                capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("libnowhere.so.7", result.stderr)


if __name__ == "__main__":
    unittest.main()
