// What the plant's server can be told to do.
"use strict";
const opcua = require("node-opcua");
const { ServerSecureChannelLayer } = require("node-opcua-secure-channel");

function commands(server, plant) {
  const endpoints = server.endpoints;
  const sessions = () => Object.values(server.engine._sessions);
  const subscriptions = () => sessions().flatMap((s) => s.publishEngine.subscriptions);
  const refusals = new Map(); // request class → { status, left }
  const muted = new Map(); // response class → whether this one goes out all the same

  // Requests that are refused get a ServiceFault in place of their answer.
  const serve = server.on_request.bind(server);
  server.on_request = (message, channel) => {
    const refusal = refusals.get(message.request.schema.name);
    if (!refusal || refusal.left === 0) return serve(message, channel);
    refusal.left--;
    refusal.count++;
    const fault = new opcua.ServiceFault({
      responseHeader: { timestamp: new Date(), requestHandle: message.request.requestHeader.requestHandle, serviceResult: refusal.status },
    });
    channel.send_response("MSG", fault, message, () => {});
  };

  // Responses that are muted never leave.
  const send = ServerSecureChannelLayer.prototype.send_response;
  ServerSecureChannelLayer.prototype.send_response = function (type, response, message, callback) {
    const passes = muted.get(response.schema.name);
    if (passes && !passes(response)) return callback?.();
    return send.call(this, type, response, message, callback);
  };

  const node = (id) => {
    const found = plant.space.findNode(id.replace(/^nsu=([^;]*);/, (_, uri) => `ns=${plant.space.getNamespaceIndex(uri)};`));
    if (!found) throw new Error(`no node ${id}`);
    return found;
  };

  return {
    // Connections break without a word; sessions stay until their time-out.
    cut: () => endpoints.forEach((e) => e.abruptlyInterruptChannels()),
    // Nobody listens any more; with cut, an outage of the network.
    deafen: () => Promise.all(endpoints.map((e) => new Promise((done) => e.suspendConnection(done)))).then(() => {}),
    listen: () => Promise.all(endpoints.map((e) => new Promise((done) => e.restoreConnection(done)))).then(() => {}),

    closeSessions: ({ deleteSubscriptions = true }) => {
      const all = sessions();
      for (const s of all) server.engine.closeSession(s.authenticationToken, deleteSubscriptions, "Forcing");
      return { closed: all.length };
    },
    deleteSubscriptions: () => {
      const all = subscriptions();
      for (const s of all) s.terminate();
      return { deleted: all.length };
    },

    // {"do":"refuse","service":"CreateSession","status":"BadTooManySessions","times":3}
    refuse: ({ service, status, times = -1 }) => {
      if (!opcua.StatusCodes[status]) throw new Error(`no status ${status}`);
      refusals.set(`${service}Request`, { status: opcua.StatusCodes[status], left: times, count: 0 });
    },
    admit: ({ service }) => {
      const refusal = refusals.get(`${service}Request`);
      refusals.delete(`${service}Request`);
      return { refused: refusal?.count ?? 0 };
    },

    // {"do":"mute","service":"Publish"}; "only":"keepAlives" or "data" mutes part of them.
    mute: ({ service, only }) => {
      const data = (r) => r.notificationMessage?.notificationData?.length > 0;
      muted.set(`${service}Response`, { keepAlives: data, data: (r) => !data(r) }[only] ?? (() => false));
    },
    unmute: ({ service }) => void muted.delete(`${service}Response`),

    // {"do":"set","node":…,"type":"Double","value":1,"status":"Bad…" or a number,
    //  "source":"1601" or a time,"server":the same}; without value, there is none.
    // The node keeps it until it is released.
    set: ({ node: id, type, value, status = 0, source, server: at }) => {
      const v = node(id);
      v.held = true;
      v._internal_set_dataValue(
        new opcua.DataValue({
          value: value === undefined ? undefined : new opcua.Variant({ dataType: opcua.DataType[type ?? "Double"], arrayType: Array.isArray(value) ? opcua.VariantArrayType.Array : opcua.VariantArrayType.Scalar, value }),
          statusCode: typeof status === "number" ? opcua.getStatusCodeFromCode(status) : opcua.StatusCodes[status],
          sourceTimestamp: time(source),
          serverTimestamp: time(at),
        }),
      );
    },
    // The values go on; with freeze, all with one source timestamp.
    release: ({ node: id }) => Object.assign(node(id), { held: false, frozen: undefined }) && undefined,
    freeze: ({ node: id, source }) => Object.assign(node(id), { frozen: time(source) }) && undefined,

    // No value changes by itself any more.
    pause: () => void (plant.paused = true),

    deleteNode: ({ node: id }) => plant.space.deleteNode(node(id)),
    addNode: ({ parent, name, id, type = "Double", value = 0 }) =>
      void plant.ns.addVariable({
        componentOf: node(parent), browseName: name, nodeId: `s=${id}`, dataType: type, minimumSamplingInterval: 0, value: { dataType: type, value },
      }),

    read: ({ node: id }) => {
      const dv = node(id).readValue();
      return { value: dv.value?.value, status: dv.statusCode.value, source: dv.sourceTimestamp };
    },
    count: () => ({
      channels: endpoints.reduce((n, e) => n + e.getChannels().length, 0),
      sessions: sessions().length,
      subscriptions: subscriptions().length,
      items: subscriptions().reduce((n, s) => n + s.monitoredItemCount, 0),
    }),
  };
}

// time reads null (no time), "1601" (OPC UA's zero) and RFC 3339; undefined is now.
function time(text) {
  if (text === undefined) return new Date();
  if (text === null) return null;
  return text === "1601" ? new Date(Date.UTC(1601, 0, 1)) : new Date(text);
}

module.exports = { commands };
