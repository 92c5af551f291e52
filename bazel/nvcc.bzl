"""nvcc_library: a .cu file compiled by nvcc, as a cc_library. Keep torch headers out of .cu files."""

def nvcc_library(name, src, hdrs, archs = ["80", "90"], copts = [], **kwargs):
    """Compiles for each sm_ in archs, with PTX for the last.

    Args:
      name: of the cc_library.
      src: one .cu file.
      hdrs: its headers.
      archs: compute capabilities without the dot.
      copts: for nvcc.
      **kwargs: for the cc_library.
    """
    gen = " ".join(["-gencode arch=compute_%s,code=sm_%s" % (a, a) for a in archs])
    gen += " -gencode arch=compute_%s,code=compute_%s" % (archs[-1], archs[-1])
    obj = name + ".pic.o"
    native.genrule(
        name = name + "_obj",
        srcs = [src] + hdrs,
        outs = [obj],
        cmd = "$(NVCC) -std=c++20 -O3 %s -Xcompiler -fPIC,-Wall -I. %s -c $(execpath %s) -o $@" % (gen, " ".join(copts), src),
        toolchains = ["@libtorch//:vars"],
        tags = ["manual"],  # only by way of a select on @libtorch//:cuda
    )
    native.cc_library(
        name = name,
        srcs = [obj],
        hdrs = hdrs,
        tags = ["manual"],
        **kwargs
    )
