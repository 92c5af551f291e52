"""Writes a C++ file that defines string constants with the contents of files.

embed.py OUT HEADER NAME=FILE[,FILE...] ...: several files of one name follow each other, each with a line end.
"""

import pathlib
import sys

# Compilers need not take longer literals than this; adjacent ones are joined.
PIECE = 16000


def literal(data):
    out = []
    for byte in data:
        char = chr(byte)
        # Octal escapes end after three digits, whatever follows. "?" is escaped for the sake of trigraphs.
        out.append(char if char.isascii() and char.isprintable() and char not in '"\\?' else f"\\{byte:03o}")
    pieces = ["".join(out[i : i + PIECE]) for i in range(0, len(out), PIECE)] or [""]
    return "\n    ".join(f'"{piece}"' for piece in pieces)


def main():
    out, header, *definitions = sys.argv[1:]
    text = [f'#include "{header}"\n\nnamespace resbm::coordinator {{\n']
    for definition in definitions:
        name, files = definition.split("=", 1)
        parts = [pathlib.Path(file).read_bytes() for file in files.split(",")]
        data = b"".join(part if part.endswith(b"\n") else part + b"\n" for part in parts)
        text.append(f"const absl::string_view {name}({literal(data)},\n    {len(data)});\n")
    text.append("}  // namespace resbm::coordinator\n")
    pathlib.Path(out).write_text("\n".join(text))


if __name__ == "__main__":
    main()
