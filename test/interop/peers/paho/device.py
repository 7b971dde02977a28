"""A device that the interop suite steers, with paho-mqtt: a command per line in, an
answer per line out. The commands are those of ../mqttjs/device.js, without Sparkplug.
"""

import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site"))

import paho.mqtt.client as mqtt  # noqa: E402

client = None


def connect(c):
    global client
    where = urllib.parse.urlparse(c["url"])
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=c["clientId"], transport="websockets" if where.scheme == "ws" else "tcp")
    client.max_inflight_messages_set(1000)
    if "user" in c:
        client.username_pw_set(c["user"], c["password"])
    if "will" in c:
        client.will_set(c["will"]["topic"], c["will"]["payload"], qos=1, retain=c["will"].get("retain", False))
    client.connect(where.hostname, where.port, keepalive=60)
    client.loop_start()


def publish(messages):
    for info in [client.publish(m["topic"], m["payload"], qos=m.get("qos", 1), retain=m.get("retain", False)) for m in messages]:
        info.wait_for_publish(30)
        if not info.is_published():
            raise RuntimeError("not published in 30 s")


commands = {"connect": connect, "publish": publish}

for line in sys.stdin:
    try:
        (name, argument), = json.loads(line).items()
        commands[name](argument)
        answer = {"done": name}
    except Exception as e:
        answer = {"failed": repr(e)}
    print(json.dumps(answer), flush=True)
