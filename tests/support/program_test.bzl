"""Tests of the programs as users run them."""

def program_test(name, data = [], deps = [], size = "medium", **kwargs):
    """A cc_test of NAME.cc that finds `resbm` and `stage_server` in its environment (program_test.h)."""
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"],
        data = data + [
            "//coordinator/cli:resbm",
            "//stage_server",
        ],
        env = {
            "RESBM": "$(rootpath //coordinator/cli:resbm)",
            "STAGE_SERVER": "$(rootpath //stage_server)",
        },
        deps = deps + [
            "//tests/support:gtest_main",
            "//tests/support:program_test",
        ],
        **kwargs
    )
