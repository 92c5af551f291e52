"""The system's libraries by pkg-config: one cc_library each. Headers are in /usr/include."""

# name: (pkg-config packages, further link options, defines)
_LIBS = {
    "abseil": (["absl_status", "absl_statusor", "absl_strings", "absl_str_format", "absl_time", "absl_span", "absl_flat_hash_map", "absl_hash"], [], []),
    "benchmark": (["benchmark"], [], []),
    "cli11": ([], [], []),
    "grpcpp": (["grpc++", "protobuf"], ["-lgrpc++_reflection"], []),
    "gtest": (["gmock", "gtest"], [], []),
    "isal": (["libisal"], [], []),
    "json": (["nlohmann_json"], [], []),
    "prometheus": (["prometheus-cpp-pull"], [], []),
    "protobuf": (["protobuf"], [], []),
    "spdlog": (["spdlog"], [], ["SPDLOG_COMPILED_LIB", "SPDLOG_SHARED_LIB", "SPDLOG_FMT_EXTERNAL"]),
    "xxhash": (["libxxhash"], [], []),
    "zlib": (["zlib"], [], []),
}

# What is compiled in as it is: the chart library of reports (Debian's libjs-chart.js), and its licence.
_FILES = {
    "chart.min.js": "/usr/share/javascript/chart.js/chart.min.js",
    "chart.js.copyright": "/usr/share/doc/libjs-chart.js/copyright",
}

def _impl(rctx):
    out = ['package(default_visibility = ["//visibility:public"])']
    for name, (packages, extra, defines) in _LIBS.items():
        opts = list(extra)
        if packages:
            r = rctx.execute(["pkg-config", "--libs"] + packages)
            if r.return_code != 0:
                fail("system library %s: %s\nRun deploy/setup.sh, it installs what is missing." % (name, r.stderr))

            # Shared libraries: order does not matter, so keep one of each.
            for t in r.stdout.strip().split(" "):
                if t and (t not in opts or not t.startswith("-l")):
                    opts.append(t)
        out.append("cc_library(name = %r, linkopts = %r, defines = %r)" % (name, opts, defines))
    for tool in ["protoc", "grpc_cpp_plugin"]:
        p = rctx.which(tool)
        if not p:
            fail("no %s in PATH. Run deploy/setup.sh, it installs what is missing." % tool)
        rctx.symlink(p, tool)
    files = ["protoc", "grpc_cpp_plugin"]
    for name, path in _FILES.items():
        if not rctx.path(path).exists:
            fail("no %s. Run deploy/setup.sh, it installs what is missing." % path)
        rctx.symlink(path, name)
        files.append(name)
    out.append("exports_files(%r)" % files)
    rctx.file("BUILD.bazel", "\n".join(out) + "\n", executable = False)

system_configure = repository_rule(
    implementation = _impl,
    local = True,
    configure = True,
    environ = ["PATH", "PKG_CONFIG_PATH"],
)
