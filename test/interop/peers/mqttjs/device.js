// A device that the interop suite steers: a command per line in, an answer per line
// out. It speaks MQTT with mqtt.js and Sparkplug B with sparkplug-payload.
//
//   {"connect": {"url": …, "clientId": …, "will": {"topic": …, "payload": …}}}
//   {"publish": [{"topic": …, "payload": …, "sparkplug": {…}, "qos": 1, "retain": false}]}
//   {"subscribe": TOPIC}
//
// What comes on a subscription is a line too: {"topic": …, "metrics": […]}, or "text"
// for a Sparkplug STATE. "compress" is GZIP or DEFLATE.
const readline = require('readline')
const zlib = require('zlib')
const mqtt = require('mqtt')
const sparkplug = require('sparkplug-payload').get('spBv1.0')
const Long = require('long')

let client

const say = (line) => process.stdout.write(JSON.stringify(line) + '\n')

// Integers beyond 2^53 come as text.
function encode(payload) {
  for (const m of payload.metrics) {
    if (typeof m.value === 'string' && /Int64$/.test(m.type)) m.value = Long.fromString(m.value, m.type === 'UInt64')
  }
  return Buffer.from(sparkplug.encodePayload(payload))
}

// As Eclipse Tahu's sparkplug-client has it: the payload in the body of another.
function compressed(m) {
  const pack = { GZIP: zlib.gzipSync, DEFLATE: zlib.deflateSync }[m.compress]
  if (!m.sparkplug) return pack(m.payload)
  const algorithm = { name: 'algorithm', type: 'String', value: m.compress }
  return encode({ timestamp: m.sparkplug.timestamp, uuid: 'SPBV1.0_COMPRESSED', body: pack(encode(m.sparkplug)), metrics: [algorithm] })
}

const commands = {
  async connect(c) {
    const will = c.will && { ...c.will, payload: c.will.sparkplug ? encode(c.will.sparkplug) : Buffer.from(c.will.payload), qos: 1 }
    client = await mqtt.connectAsync(c.url, { clientId: c.clientId, clean: true, protocolVersion: c.version || 4, reconnectPeriod: 0, will })
    client.on('message', (topic, payload) => topic.startsWith('spBv1.0/STATE/') ? say({ topic, text: payload.toString() }) : say({ topic, metrics: sparkplug.decodePayload(payload).metrics.map((m) => ({ name: m.name, type: m.type, value: m.value })) }))
  },
  async publish(messages) {
    await Promise.all(messages.map((m) => {
      const payload = m.compress ? compressed(m) : m.sparkplug ? encode(m.sparkplug) : m.size ? Buffer.alloc(m.size, 'x') : m.payload
      return client.publishAsync(m.topic, payload, { qos: m.qos ?? 1, retain: !!m.retain })
    }))
  },
  async subscribe(topic) {
    await client.subscribeAsync(topic, { qos: 0 })
  },
}

readline.createInterface({ input: process.stdin }).on('line', async (line) => {
  try {
    const [[name, argument]] = Object.entries(JSON.parse(line))
    await commands[name](argument)
    say({ done: name })
  } catch (e) {
    say({ failed: String(e.stack || e) })
  }
}).on('close', () => process.exit(0))
