"""Finds LibTorch inside a PyTorch wheel and exposes it as @libtorch//:torch."""

# Ask Python where the wheel is without importing torch (no 2-second import).
_PROBE = """
import importlib.util, os, sys
s = importlib.util.find_spec('torch')
if s is None or not s.origin:
    sys.exit('no torch in ' + sys.executable)
d = os.path.dirname(os.path.abspath(s.origin))
v = {}
exec(open(os.path.join(d, 'version.py')).read(), v)
print(d)
print(v['__version__'])
"""

# Only these: google/ (protobuf 3.13), fmt/ and pybind11/ would shadow the system's.
_INCLUDE_DIRS = ["ATen", "c10", "torch"]

def _python(rctx):
    env = rctx.os.environ
    vars = ["LIBTORCH_VENV", "VIRTUAL_ENV"]
    if env.get("LIBTORCH_CUDA") == "1":
        vars = ["LIBTORCH_CUDA_VENV"] + vars
    for var in vars:
        if env.get(var):
            py = rctx.path(env[var] + "/bin/python")
            if not py.exists:
                fail("libtorch: %s=%s has no bin/python" % (var, env[var]))
            return py
    home = env.get("XDG_CACHE_HOME") or (env.get("HOME", "") + "/.cache")
    py = rctx.path(home + "/resbm/venv/bin/python")  # where deploy/setup.sh puts it
    if py.exists:
        return py
    py = rctx.which("python3")
    if not py:
        fail("libtorch: run deploy/setup.sh, or set LIBTORCH_VENV to a virtual environment with torch")
    return py

def _cuda_home(rctx):
    home = rctx.os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    if rctx.path(home + "/bin/nvcc").exists:
        return home
    nvcc = rctx.which("nvcc")
    return str(nvcc.dirname.dirname) if nvcc else None

def _impl(rctx):
    py = _python(rctx)
    res = rctx.execute([py, "-I", "-c", _PROBE])
    if res.return_code != 0:
        fail("libtorch: %s\nRun deploy/setup.sh, or set LIBTORCH_VENV to a virtual environment with torch." % res.stderr)
    root, version = res.stdout.strip().split("\n")
    lib = root + "/lib"
    want = rctx.os.environ.get("LIBTORCH_CUDA", "")  # 1: must have; 0: never; else: if there
    in_wheel = rctx.path(lib + "/libtorch_cuda.so").exists
    home = _cuda_home(rctx)
    cuda = in_wheel and home != None and want != "0"
    if want == "1" and not cuda:
        fail("libtorch: --config=cuda needs libtorch_cuda.so (in %s: %s) and nvcc (CUDA_HOME: %s)" % (lib, in_wheel, home))

    for d in _INCLUDE_DIRS:
        rctx.symlink(root + "/include/" + d, "include/" + d)

    # gcc puts these after the objects; the rpath serves bazel-bin and the tests alike.
    linkopts = ["-L" + lib, "-Wl,-rpath," + lib, "-ltorch_cpu", "-lc10"]
    includes = ["include", "include/torch/csrc/api/include"]
    if cuda:
        nvidia = rctx.path(root[:root.rfind("/")] + "/nvidia")
        libs = [str(d.get_child("lib")) for d in nvidia.readdir() if d.get_child("lib").exists]
        rt = [str(f) for l in libs for f in rctx.path(l).readdir() if f.basename.startswith("libcudart.so.")]

        # no-as-needed: libtorch_cuda registers its kernels from static initialisers.
        linkopts = ["-L" + lib, "-Wl,-rpath," + lib, "-Wl,--no-as-needed", "-ltorch", "-ltorch_cuda", "-lc10_cuda", "-ltorch_cpu", "-lc10"] + \
                   rt[:1] + ["-Wl,-rpath," + l for l in libs] + ["-Wl,-rpath-link," + l for l in libs]
        rctx.symlink(home + "/include", "cuda/toolkit")
        includes.append("cuda/toolkit")
        for d in nvidia.readdir():  # cublas_v2.h, cudnn.h, ...: only the wheel has these
            if d.basename.startswith("cu") and d.get_child("include").exists:
                rctx.symlink(d.get_child("include"), "cuda/" + d.basename)
                includes.append("cuda/" + d.basename)

    rctx.file("defs.bzl", """
def _flag_impl(ctx):
    return []

detected_flag = rule(implementation = _flag_impl, build_setting = config.bool(flag = False))

def _vars_impl(ctx):
    return [platform_common.TemplateVariableInfo({"NVCC": %r, "LIBTORCH_PYTHON": %r})]

make_vars = rule(implementation = _vars_impl)
""" % ((home or "") + "/bin/nvcc", str(py)), executable = False)
    rctx.template("BUILD.bazel", rctx.attr._build_file, {
        "%{LINKOPTS}": repr(linkopts),
        "%{INCLUDES}": repr(includes),
        "%{DEFINES}": repr(["RESBM_CUDA=1"] if cuda else []),
        "%{CUDA}": repr(cuda),
    }, executable = False)
    rctx.file("FOUND", "%s %s cuda=%s\n" % (root, version, cuda), executable = False)

libtorch_configure = repository_rule(
    implementation = _impl,
    local = True,
    configure = True,
    environ = ["HOME", "XDG_CACHE_HOME", "LIBTORCH_VENV", "LIBTORCH_CUDA_VENV", "VIRTUAL_ENV", "LIBTORCH_CUDA", "CUDA_HOME", "PATH"],
    attrs = {"_build_file": attr.label(default = "//third_party/libtorch:BUILD.tpl")},
)
