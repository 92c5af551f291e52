#!/usr/bin/env python3
"""Relays TCP with a rate and a delay: a slow link for demonstrations.

  slow_link.py --listen 0.0.0.0:50051 --to stage-1:50051 --mbit-per-second 10 --delay-ms 20

All connections share the rate, each direction has its own. The delay is one way, and is added to what the real
network takes. It is an emulation for showing, not for measuring TCP: connections open without delay, nothing is lost,
and TCP's own windows see only the hop to the relay. A connection keeps what is under way and half a second of traffic
waiting for the rate, as a router's queue does; then the sender has to wait.
"""

import argparse
import asyncio
import contextlib
import signal
import sys

QUEUE_SECONDS = 0.5


class Direction:
    """One way over the link: `arrival` says when bytes that are sent now come out at the other end."""

    def __init__(self, bytes_per_second, delay_seconds):
        self.bytes_per_second = bytes_per_second
        self.delay_seconds = delay_seconds
        # The grain of the rate: 2 ms, but not below a packet and not above what asyncio reads at once.
        self.chunk_bytes = int(min(max(bytes_per_second * 0.002, 1500), 65536))
        self.max_chunks = 16 + int(bytes_per_second * (QUEUE_SECONDS + delay_seconds) / self.chunk_bytes)
        self._free_at = 0.0

    def arrival(self, now, size):
        self._free_at = max(self._free_at, now) + size / self.bytes_per_second
        return self._free_at + self.delay_seconds


async def relay(reader, writer, direction):
    """Carries bytes from reader to writer until the end, which is carried too."""
    now = asyncio.get_running_loop().time
    under_way = asyncio.Queue(direction.max_chunks)

    async def take():
        data = None
        while data != b"":
            data = await reader.read(direction.chunk_bytes)
            await under_way.put((direction.arrival(now(), len(data)), data))

    async def deliver():
        data = None
        while data != b"":
            at, data = await under_way.get()
            await asyncio.sleep(at - now())
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async with asyncio.TaskGroup() as group:
        group.create_task(take())
        group.create_task(deliver())


async def connect(*arguments):
    # Cancelled when the relay ends; asyncio would print that.
    with contextlib.suppress(asyncio.CancelledError):
        await connect_through(*arguments)


async def connect_through(reader, writer, to, there, back):
    try:
        far_reader, far_writer = await asyncio.open_connection(*to)
    except OSError as error:
        print(f"slow_link: cannot reach {to[0]}:{to[1]}: {error}", file=sys.stderr, flush=True)
        writer.close()
        return
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(relay(reader, far_writer, there))
            group.create_task(relay(far_reader, writer, back))
    except* OSError:
        # Broken at one end, so at the other.
        for end in (writer, far_writer):
            end.transport.abort()
    else:
        for end in (writer, far_writer):
            end.close()


async def serve(options):
    rate = options.mbit_per_second * 1e6 / 8
    there, back = (Direction(rate, options.delay_ms / 1e3) for _ in range(2))
    server = await asyncio.start_server(
        lambda reader, writer: connect(reader, writer, options.to, there, back), *options.listen)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"LISTENING {host}:{port}", flush=True)
    async with server:
        await stop.wait()


def address(text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f'"{text}" is not HOST:PORT')
    return host.strip("[]"), int(port)


def positive(text):
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=address, required=True, metavar="HOST:PORT", help="port 0 takes a free one")
    parser.add_argument("--to", type=address, required=True, metavar="HOST:PORT", help="the server behind the link")
    parser.add_argument("--mbit-per-second", type=positive, required=True, help="rate of each direction")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="one way (default 0)")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
