#!/usr/bin/env python3
"""Speaks enough of the protocol to look at a stage server and at what crosses a link; docs/protocol.md explains it.

  peer.py describe HOST:PORT      what the stage server says of itself
  peer.py attach HOST:PORT        open a session as a coordinator does, be attached, and release the stage
  peer.py decode HEX...           a LinkMessage with a tensor of one chunk: header, checksum, values

Needs Debian's python3-grpcio, python3-protobuf, python3-xxhash and protobuf-compiler. The messages are compiled from
the .proto files of this repository when it starts.
"""

import importlib
import pathlib
import queue
import struct
import subprocess
import sys
import tempfile
import time

import grpc
import xxhash

ROOT = pathlib.Path(__file__).resolve().parents[2]


def compile_messages():
    """The modules of control.proto, layer.proto and link.proto."""
    folder = tempfile.TemporaryDirectory()
    files = [str(path.relative_to(ROOT)) for path in (ROOT / "proto/resbm/v1").glob("*.proto")]
    subprocess.run(["protoc", f"--proto_path={ROOT}", f"--python_out={folder.name}", *files], check=True)
    sys.path.insert(0, folder.name)
    modules = [importlib.import_module(f"proto.resbm.v1.{name}_pb2") for name in ("control", "layer", "link")]
    folder.cleanup()
    return modules


control, layer, link = compile_messages()


def describe(address):
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary("/resbm.v1.StageControl/Describe",
                                   request_serializer=control.DescribeRequest.SerializeToString,
                                   response_deserializer=control.DescribeReply.FromString)
        return call(control.DescribeRequest(), timeout=10)


def attach(address, job_id="example", epoch=None):
    """Attached or Refused, as the stage answers. A stage obeys only a newer epoch of a job than it has seen."""
    epoch = epoch or int(time.time())
    requests = queue.Queue()
    with grpc.insecure_channel(address) as channel:
        session = channel.stream_stream("/resbm.v1.StageControl/Session",
                                        request_serializer=control.ControlRequest.SerializeToString,
                                        response_deserializer=control.ControlEvent.FromString)
        events = session(iter(requests.get, None), timeout=10)
        fence = link.Fence(epoch=epoch, generation=1)
        requests.put(control.ControlRequest(fence=fence, attach=control.Attach(
            min_protocol_version=1, max_protocol_version=1, job_id=job_id, stage=0, stages=1, lease_seconds=60)))
        answer = next(events)
        if answer.HasField("attached"):
            requests.put(control.ControlRequest(fence=fence, release=control.Release()))
            for _ in events:  # until the stage ends the stream
                pass
        requests.put(None)
        return answer


def checksum(fence, header, index, payload):
    """Of a chunk. header: the serialized TensorHeader in the first chunk, empty in the others."""
    seed = (fence.epoch << 32 | fence.generation) & (2**64 - 1)
    return xxhash.xxh3_64_intdigest(header + struct.pack("<I", index) + payload, seed=seed)


def values_of(header, payload):
    """The tensor's values, flattened."""
    count = 1
    for dim in header.dims:
        count *= dim
    codec = layer.Codec.Name(header.codec)
    if codec == "CODEC_FP32":
        return list(struct.unpack(f"<{count}f", payload))
    if codec == "CODEC_FP16":
        return [value * 2.0**-header.scale_exponent for value in struct.unpack(f"<{count}e", payload)]
    if codec == "CODEC_BF16":  # the upper half of an fp32
        return [struct.unpack("<f", bytes(2) + payload[2 * i:2 * i + 2])[0] for i in range(count)]
    if codec in ("CODEC_INT8", "CODEC_INT4"):
        blocks = -(-count // header.block_size)
        scales = struct.unpack_from(f"<{blocks}f", payload)
        rest = payload[4 * blocks:]
        if codec == "CODEC_INT8":
            quantised = struct.unpack(f"<{count}b", rest)
        else:
            nibbles = [n for byte in rest for n in (byte & 15, byte >> 4)][:count]
            quantised = [n - 16 if n > 7 else n for n in nibbles]
        return [q * scales[i // header.block_size] for i, q in enumerate(quantised)]
    raise ValueError(f"no values for {codec}")


def decode(message):
    """Header and values of a tensor that one chunk holds. ValueError: what is wrong with it."""
    chunk = link.LinkMessage.FromString(message).chunk
    header = link.TensorHeader.FromString(chunk.header)
    if header.chunk_count != 1:
        raise ValueError(f"{header.chunk_count} chunks; this example reads one")
    if checksum(header.fence, chunk.header, chunk.index, chunk.payload) != chunk.checksum:
        raise ValueError("the checksum is wrong")
    if len(chunk.payload) != header.payload_bytes:
        raise ValueError(f"{len(chunk.payload)} bytes of payload, the header says {header.payload_bytes}")
    return header, values_of(header, chunk.payload)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("describe", "attach", "decode"):
        sys.exit(__doc__)
    if sys.argv[1] == "describe":
        print(describe(sys.argv[2]), end="")
    elif sys.argv[1] == "attach":
        print(attach(sys.argv[2]), end="")
    else:
        header, values = decode(bytes.fromhex("".join(sys.argv[2:])))
        print(header, end="")
        print("values:", *values)


if __name__ == "__main__":
    main()
