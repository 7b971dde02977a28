"""An OPC UA server of asyncua's that the interop suite steers: three counters, each
with one more every 100 ms. It prints one line when it serves; from then on each line
on stdin is a command, answered by a line on stdout. It ends when stdin does.

    python3 server.py --port N [--dir DIR]
"""

import argparse
import asyncio
import json
import logging
import os
import sys
from datetime import UTC, datetime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site"))

from asyncua import Server, ua  # noqa: E402


class Plant:
    def __init__(self):
        self.paused = False
        self.n = 0

    async def start(self, port):
        self.server = Server()
        await self.server.init()
        self.server.set_endpoint(f"opc.tcp://127.0.0.1:{port}")
        self.server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
        ns = await self.server.register_namespace("urn:tidemark:test:asyncua")
        parent = await self.server.nodes.objects.add_folder(ua.NodeId("Counters", ns), ua.QualifiedName("Counters", ns))
        self.counters = [
            await parent.add_variable(ua.NodeId(f"c{i}", ns), ua.QualifiedName(f"c{i}", ns), 0, ua.VariantType.UInt32) for i in range(3)
        ]
        await self.server.start()

    async def count(self):
        while True:
            await asyncio.sleep(0.1)
            if self.paused:
                continue
            self.n += 1
            now = datetime.now(UTC)
            value = ua.DataValue(ua.Variant(self.n, ua.VariantType.UInt32), SourceTimestamp=now, ServerTimestamp=now)
            for c in self.counters:
                await c.write_value(value)

    # Connections break without a word.
    def cut(self):
        for transport in list(self.server.iserver.asyncio_transports):
            transport.abort()

    def pause(self):
        self.paused = True

    def read(self):
        return {"value": self.n}


async def main():
    plant = Plant()
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--dir")  # where other servers keep their keys
    port = options.parse_args().port
    await plant.start(port)
    counting = asyncio.create_task(plant.count())
    print(json.dumps({"ready": True, "endpoint": f"opc.tcp://127.0.0.1:{port}", "port": port}), flush=True)
    commands = {"cut": plant.cut, "pause": plant.pause, "read": plant.read}
    stdin = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    while line := await stdin.readline():
        try:
            answer = {"ok": True, **(commands[json.loads(line)["do"]]() or {})}
        except Exception as error:  # the command's, to be answered
            answer = {"ok": False, "error": repr(error)}
        print(json.dumps(answer), flush=True)
    counting.cancel()
    os._exit(0)


logging.basicConfig(level=logging.WARNING)
asyncio.run(main())
