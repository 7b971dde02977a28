// An OPC UA server with a plant in it that can be told to misbehave.
//
//   node server.js [--port N] [--dir DIR] [--swap] [--strict] [--certificate PEM --key PEM]
//                  [--counters N] [--every MS] [--many N] [--many-every MS] [--past SECONDS]
//                  [--history-every MS] [--token-life MS]
//
// When it serves it prints one line, {"ready":true,"endpoint":…,"namespaces":…}. From
// then on each line on stdin is a command, {"do":"cut"}, answered by a line on stdout,
// {"ok":true,…} or {"ok":false,"error":…}. It ends when stdin does. plant.js has the
// nodes, faults.js the commands.
"use strict";
const path = require("node:path");
const readline = require("node:readline");
const { parseArgs } = require("node:util");
const opcua = require("node-opcua");
const { build } = require("./plant.js");
const { commands } = require("./faults.js");

const { values: options } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    dir: { type: "string", default: "." }, // keys and certificates
    swap: { type: "boolean", default: false }, // the two namespaces change places
    strict: { type: "boolean", default: false }, // clients' certificates need trust
    certificate: { type: "string" }, // of the server; without it, one is made
    key: { type: "string" },
    counters: { type: "string", default: "5" },
    every: { type: "string", default: "50" }, // ms between two values of a counter
    many: { type: "string", default: "0" },
    "many-every": { type: "string", default: "1000" },
    past: { type: "string", default: "60" }, // s of history before the start
    "token-life": { type: "string", default: "600000" }, // ms that a channel's keys last
    "history-every": { type: "string", default: "1000" }, // ms between two values that are kept
  },
});

const accounts = new Map([["operator", "open sesame"]]);

function say(object) {
  process.stdout.write(JSON.stringify(object) + "\n");
}

async function main() {
  const certificates = new opcua.OPCUACertificateManager({
    rootFolder: path.join(options.dir, "pki"),
    automaticallyAcceptUnknownCertificate: !options.strict,
  });
  await certificates.initialize();
  const server = new opcua.OPCUAServer({
    hostname: "127.0.0.1",
    port: Number(options.port),
    serverCertificateManager: certificates,
    certificateFile: options.certificate,
    privateKeyFile: options.key,
    securityPolicies: [
      opcua.SecurityPolicy.None,
      opcua.SecurityPolicy.Basic256Sha256,
      opcua.SecurityPolicy.Aes128_Sha256_RsaOaep,
      opcua.SecurityPolicy.Aes256_Sha256_RsaPss,
    ],
    securityModes: [
      opcua.MessageSecurityMode.None,
      opcua.MessageSecurityMode.Sign,
      opcua.MessageSecurityMode.SignAndEncrypt,
    ],
    userManager: { isValidUser: (name, password) => accounts.get(name) === password },
    serverInfo: { applicationName: { text: "Plant", locale: "en" }, productUri: "urn:tidemark:test:plant" },
    buildInfo: { productName: "plant", buildNumber: "1", buildDate: new Date(0) },
    // A rate of 0: who asks to sample as fast as can be gets every change.
    serverCapabilities: { maxSessions: 50, maxSubscriptions: 200, maxMonitoredItems: 200000, minSupportedSampleRate: 0 },
    maxConnectionsPerEndpoint: 50,
    defaultSecureTokenLifetime: Number(options["token-life"]),
    nodeset_filename: [opcua.nodesets.standard, path.join(__dirname, "types.xml")],
    registerServerMethod: opcua.RegisterServerMethod.HIDDEN,
    disableDiscovery: true,
  });
  await server.initialize();
  const plant = build(server.engine.addressSpace, {
    swap: options.swap,
    counters: Number(options.counters),
    every: Number(options.every),
    many: Number(options.many),
    manyEvery: Number(options["many-every"]),
    past: Number(options.past),
    historyEvery: Number(options["history-every"]),
  });
  await server.start();
  const port = server.endpoints[0].port;
  say({ ready: true, endpoint: `opc.tcp://127.0.0.1:${port}`, port, namespaces: plant.namespaces });

  const obey = commands(server, plant);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line.trim() === "") continue;
    try {
      const { do: what, ...given } = JSON.parse(line);
      if (!obey[what]) throw new Error(`no such command: ${what}; there are ${Object.keys(obey).join(", ")}`);
      say({ ok: true, ...(await obey[what](given)) });
    } catch (error) {
      say({ ok: false, error: String(error.message ?? error) });
    }
  }
  process.exit(0);
}

process.on("SIGTERM", () => process.exit(0));
main().catch((error) => {
  console.error(error);
  process.exit(1);
});
