"""cc_protos: a cc_library of .proto files and, where they hold services, their gRPC stubs."""

def cc_protos(name, srcs, deps = [], services = False, **kwargs):
    """name: what depends on it sees the generated headers as proto/.../x.pb.h.

    Args:
      name: of the cc_library; NAME_gen makes its files with the system's protoc.
      srcs: .proto files of this package.
      deps: other cc_protos that these import.
      services: also generate x.grpc.pb.h.
      **kwargs: for the cc_library.
    """
    outs = []
    for s in srcs:
        stem = s[:-len(".proto")]
        outs += [stem + e for e in [".pb.h", ".pb.cc"] + ([".grpc.pb.h", ".grpc.pb.cc"] if services else [])]
    plugin = "--grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$(execpath @system//:grpc_cpp_plugin) " if services else ""
    native.filegroup(
        name = name + "_srcs",
        srcs = srcs + [d + "_srcs" for d in deps],
        visibility = ["//visibility:public"],
    )
    native.genrule(
        name = name + "_gen",
        srcs = srcs + [d + "_srcs" for d in deps],
        outs = outs,
        tools = ["@system//:protoc"] + (["@system//:grpc_cpp_plugin"] if services else []),
        cmd = "$(execpath @system//:protoc) -I. -I/usr/include --cpp_out=$(GENDIR) " + plugin +
              " ".join(["$(execpath %s)" % s for s in srcs]),
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outs if o.endswith(".cc")],
        hdrs = [o for o in outs if o.endswith(".h")],
        copts = ["-w"],
        deps = deps + ["@system//:grpcpp" if services else "@system//:protobuf"],
        **kwargs
    )
