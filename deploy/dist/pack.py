"""Packs programs and the shared libraries they need into a tarball that runs on a bare Debian 12.

What is packed is what the dynamic linker finds for the programs here, except the C library, which is the target's own,
and NVIDIA's driver, which belongs to the target's kernel. With each library goes its licence: from its Debian package
or its Python wheel. The result is the same for the same input, byte for byte.
"""

import argparse
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

RPATH = "$ORIGIN/../lib"
C_LIBRARY = "libc6"  # the Debian package
# Of NVIDIA's driver; a container or a package manager puts the one that fits the kernel there.
DRIVER = re.compile(r"lib(cuda|nvidia-[a-z-]+)\.so\.\d+")


def needed(path):
    """The libraries that the linker loads with `path`: name -> where it is, None if it is nowhere."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    text = subprocess.run(["ldd", str(path)], check=True, capture_output=True, text=True, env=environment).stdout
    libraries = {}
    for line in text.splitlines():
        match = re.match(r"\s*(\S+) => (?:(/\S+) \(0x|not found)", line)
        if match:
            libraries[match[1]] = pathlib.Path(os.path.normpath(match[2])) if match[2] else None
    return libraries


def debian_packages(paths):
    """The Debian package of each of `paths` that belongs to one: path -> package."""
    names = {}  # as dpkg may know it: by the link or the file, in /lib or in /usr/lib -> path
    for path in paths:
        for name in {str(path), str(path.resolve())}:
            names[name] = path
            names[name[len("/usr"):] if name.startswith("/usr/") else "/usr" + name] = path
    if not names:
        return {}
    # One call: each reads dpkg's whole database. It fails when one name is unknown, as half of them are.
    found = subprocess.run(["dpkg-query", "--search", *sorted(names)], capture_output=True, text=True).stdout
    packages = {}
    for line in found.splitlines():
        owners, _, name = line.rpartition(": ")
        if name in names:
            packages[names[name]] = owners.split(",")[0].split(":")[0]
    return packages


def wheel_info(path):
    """The .dist-info folder of the Python wheel that `path` belongs to, or None."""
    for site in path.parents:
        if site.name != "site-packages":
            continue
        name = str(path.relative_to(site)) + ","
        for record in sorted(site.glob("*.dist-info/RECORD")):
            if any(line.startswith(name) for line in record.read_text().splitlines()):
                return record.parent
    return None


def wheel_licences(info):
    """Of the wheel of that .dist-info folder: in it, or beside the libraries where it has none there."""
    licence = re.compile(rf"{re.escape(info.name)}/licenses/.*|(.*/)?(LICEN[CS]E|NOTICE|EULA)(\.(txt|md|rst))?", re.I)
    names = [line.split(",")[0] for line in (info / "RECORD").read_text().splitlines()]
    return [info.parent / name for name in names if licence.fullmatch(name)]


def closure(programs):
    """Libraries to pack: name -> path."""
    libraries = {}
    for program in programs:
        for name, path in needed(program).items():
            if DRIVER.fullmatch(name):
                continue
            if path is None:
                sys.exit(f"pack: {program} needs {name}, which is not found here")
            if libraries.setdefault(name, path).resolve() != path.resolve():
                sys.exit(f"pack: two libraries are called {name}: {libraries[name]} and {path}")
    packages = debian_packages(libraries.values())
    libraries = {name: path for name, path in libraries.items() if packages.get(path) != C_LIBRARY}
    # What is loaded by name while the program runs: CUDA's libraries load others of their folder, LibTorch its own.
    for name, path in list(libraries.items()):
        later = []
        if path.parent.parent.parent.name == "nvidia":
            later = path.parent.glob("*.so*")
        elif name == "libtorch_cuda.so":
            later = path.parent.glob("libtorch_cuda_*.so")
        for other in later:
            libraries.setdefault(other.name, other)
    return libraries


def copy_licences(libraries, compiled_in, folder):
    owners = debian_packages(libraries.values())
    packages = {*compiled_in, *owners.values()}
    for name, path in libraries.items():
        if path in owners:
            continue
        info = wheel_info(path)
        if info is None:
            sys.exit(f"pack: {path} belongs to no Debian package and no wheel: its licence is unknown")
        target = folder / info.name.removesuffix(".dist-info")
        for licence in wheel_licences(info):
            inside = licence.is_relative_to(info)
            copy = target / (licence.relative_to(info) if inside else licence.name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(licence, copy)
        if not target.is_dir():
            sys.exit(f"pack: {info} has no licence for {name}")
    for package in sorted(packages):
        copyright_file = pathlib.Path("/usr/share/doc", package, "copyright")
        if not copyright_file.is_file():
            sys.exit(f"pack: {copyright_file} is missing: the licence of {package} is unknown")
        (folder / package).mkdir(parents=True, exist_ok=True)
        shutil.copy(copyright_file, folder / package / "copyright")


def check(root):
    """Every library of the packed programs comes from the package itself or from the C library."""
    for program in sorted((root / "bin").iterdir()):
        libraries = needed(program)
        outside = {n: p for n, p in libraries.items() if p is None or root / "lib" not in p.resolve().parents}
        packages = debian_packages([p for p in outside.values() if p])
        for name, path in outside.items():
            if not DRIVER.fullmatch(name) and packages.get(path) != C_LIBRARY:
                sys.exit(f"pack: packed {program.name} would take {name} from {path}")


def pack(root, out):
    def anonymous(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = "root"
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        return info

    # Level 6: 9 takes three times as long for 1 % less.
    with open(out, "wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            tar.add(root, root.name, recursive=False, filter=anonymous)
            for path in sorted(root.rglob("*")):
                tar.add(path, f"{root.name}/{path.relative_to(root)}", recursive=False, filter=anonymous)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--program", action="append", default=[], help="goes to bin/")
    parser.add_argument("--file", action="append", default=[], metavar="FOLDER=PATH", help="goes to FOLDER/")
    parser.add_argument("--package", action="append", default=[], help="Debian package compiled in, for its licence")
    options = parser.parse_args()

    libraries = closure(options.program)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "resbm")
        for name in ["bin", "lib", "licenses"]:
            (root / name).mkdir(parents=True)
        for name, path in libraries.items():
            shutil.copy(path, root / "lib" / name)
            (root / "lib" / name).chmod(0o644)
        for program in options.program:
            target = root / "bin" / pathlib.Path(program).name
            shutil.copy(program, target)
            target.chmod(0o755)
            # RPATH, not RUNPATH: it also serves the libraries of libraries.
            subprocess.run(["patchelf", "--force-rpath", "--set-rpath", RPATH, str(target)], check=True)
        for entry in options.file:
            where, path = entry.split("=", 1)
            (root / where).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / where)
        copy_licences(libraries, options.package, root / "licenses")
        check(root)
        pack(root, options.out)


if __name__ == "__main__":
    main()
