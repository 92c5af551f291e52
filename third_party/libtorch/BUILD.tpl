load(":defs.bzl", "detected_flag", "make_vars")

package(default_visibility = ["@//third_party/libtorch:__pkg__"])

cc_library(
    name = "torch",
    hdrs = glob([
        "include/**/*.h",
        "include/**/*.hpp",
        "include/**/*.cuh",
        "cuda/**",
    ]),
    defines = %{DEFINES},
    includes = %{INCLUDES},  # -isystem: no warnings from these headers
    linkopts = %{LINKOPTS},
)

detected_flag(
    name = "has_cuda",
    build_setting_default = %{CUDA},
)

config_setting(
    name = "cuda",
    flag_values = {":has_cuda": "true"},
    visibility = ["//visibility:public"],
)

# toolchains = ["@libtorch//:vars"] gives $(NVCC) and $(LIBTORCH_PYTHON).
make_vars(
    name = "vars",
    visibility = ["//visibility:public"],
)

exports_files(["FOUND"])
