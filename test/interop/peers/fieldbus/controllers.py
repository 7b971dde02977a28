"""Two controllers on loopback ports, as those who have no MQTT: one speaks Modbus
TCP, one S7. They hold the values that docs/other-protocols.md reads.

usage: controllers.py MODBUS_PORT S7_PORT
"""

import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "site"))

from pymodbus.server import StartTcpServer  # noqa: E402
from pymodbus.simulator import DataType, SimData, SimDevice  # noqa: E402
from snap7.server import Server  # noqa: E402
from snap7.type import SrvArea  # noqa: E402

modbus_port, s7_port = int(sys.argv[1]), int(sys.argv[2])

# DB1: a real at byte 4 (rpm), a bit at byte 2, bit 1 (status_ok).
db = bytearray(struct.pack(">HBxf", 0, 0b10, 712.5))
s7 = Server()
s7.host = "127.0.0.1"
s7.register_area(SrvArea.DB, 1, db)
s7.start(tcp_port=s7_port)

# Holding registers: 0 the speed, 1 the temperature in tenths of a degree.
device = SimDevice(id=1, simdata=[SimData(0, values=[1480, 615], datatype=DataType.REGISTERS)])
StartTcpServer(device, address=("127.0.0.1", modbus_port))
os._exit(1)  # it serves until it is ended
