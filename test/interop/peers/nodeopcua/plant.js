// The nodes of the plant.
//
//   Objects/Line3/press-07, press-08   analog tags with units and ranges, a state, a serial number
//   Objects/Line3/_System              what a browse rule leaves out
//   Objects/Counters/c0…               one more with each value, never a step left out
//   Objects/History/h0…h4              one value a second, kept
//   Objects/Types                      a variable of every type, arrays and structures
//   Objects/Many/d00…/v0…              as many as were asked for, in folders of 100
"use strict";
const {
  DataType, VariantArrayType, StatusCodes, DataValue, Variant, VariableHistorian,
  coerceLocalizedText, coerceNodeId, standardUnits, makeEUInformation,
} = require("node-opcua");

const plantURI = "urn:tidemark:test:plant";
const otherURI = "urn:tidemark:test:other";

function build(space, options) {
  const order = options.swap ? [otherURI, plantURI] : [plantURI, otherURI];
  for (const uri of order) space.registerNamespace(uri);
  const plant = { namespaces: order, ns: space.getNamespace(plantURI), space, paused: false, timers: [] };
  const root = space.rootFolder.objects;
  line(plant, root);
  counters(plant, root, options);
  history(plant, root, options);
  types(plant, root);
  if (options.many > 0) many(plant, root, options);
  space.getNamespace(otherURI).addVariable({
    organizedBy: root, browseName: "Elsewhere", nodeId: "s=Elsewhere", dataType: "Double", value: { dataType: "Double", value: 1 },
  });
  return plant;
}

function folder(plant, parent, name, id = name) {
  return plant.ns.addObject({ organizedBy: parent, browseName: name, nodeId: `s=${id}`, typeDefinition: "FolderType" });
}

function variable(plant, parent, name, id, dataType, value, more = {}) {
  return plant.ns.addVariable({
    componentOf: parent, browseName: name, nodeId: `s=${id}`, dataType, minimumSamplingInterval: 0,
    value: { dataType, arrayType: VariantArrayType.Scalar, value }, ...more,
  });
}

function analog(plant, parent, id, name, unit, low, high, value) {
  return plant.ns.addAnalogDataItem({
    componentOf: parent, browseName: name, nodeId: `s=${id}`, dataType: "Double", minimumSamplingInterval: 0,
    engineeringUnitsRange: { low, high }, engineeringUnits: unit, definition: `${name} of the press`,
    description: `${name} as the controller has it`,
    value: { dataType: "Double", value },
  });
}

function line(plant, root) {
  const lineFolder = folder(plant, root, "Line3");
  for (const [asset, base] of [["press-07", 60], ["press-08", 40]]) {
    const press = plant.ns.addObject({ organizedBy: lineFolder, browseName: asset, nodeId: `s=Line3.${asset}` });
    const tag = (name) => `Line3.${asset}.${name}`;
    const temperature = analog(plant, press, tag("temperature"), "temperature", standardUnits.degree_celsius, -40, 200, base);
    const pressure = analog(plant, press, tag("pressure"), "pressure", standardUnits.bar, 0, 16, 6);
    analog(plant, press, tag("flow"), "flow", makeEUInformation("XYZ", "furlong/fortnight", "no unit of the list"), 0, 1, 0.5);
    variable(plant, press, "state", tag("state"), "String", "running");
    variable(plant, press, "setpoint", tag("setpoint"), "Double", 55);
    const hints = folder(plant, press, "_Hints", tag("_Hints"));
    variable(plant, hints, "maximum", tag("_Hints.maximum"), "Double", 200);
    every(plant, 1000, (n) => {
      assign(temperature, DataType.Double, base + 5 * Math.sin(n / 10));
      assign(pressure, DataType.Double, 6 + Math.cos(n / 7));
    });
  }
  const system = folder(plant, lineFolder, "_System", "Line3._System");
  variable(plant, system, "ErrorCount", "Line3._System.ErrorCount", "UInt32", 0);
}

function counters(plant, root, { counters: count, every: interval }) {
  const parent = folder(plant, root, "Counters");
  const all = Array.from({ length: count }, (_, i) => variable(plant, parent, `c${i}`, `Counters.c${i}`, "UInt32", 0));
  every(plant, interval, (n) => all.forEach((v) => assign(v, DataType.UInt32, n)));
}

function history(plant, root, { past, historyEvery }) {
  const parent = folder(plant, root, "History");
  const all = Array.from({ length: 5 }, (_, i) => variable(plant, parent, `h${i}`, `History.h${i}`, "Double", 0));
  for (const v of all) {
    const historian = new VariableHistorian(v, { maxOnlineValues: 100000 });
    plant.space.installHistoricalDataNode(v, { historian });
    // It has begun with the present value; this one begins with the past.
    while (historian._timeline.length > 0) historian._timeline.shift();
    historian.lastDate = new Date(0);
    const start = Date.now() - past * 1000;
    for (let s = 0; s < past; s++) {
      const at = new Date(start + s * 1000);
      historian.push(new DataValue({ value: new Variant({ dataType: DataType.Double, value: s - past }), statusCode: StatusCodes.Good, sourceTimestamp: at, serverTimestamp: at }));
    }
  }
  every(plant, historyEvery, (n) => all.forEach((v) => assign(v, DataType.Double, n)));
}

// extremes of every scalar type: what a reader must not round.
const samples = {
  Boolean: true, SByte: -128, Byte: 255, Int16: -32768, UInt16: 65535, Int32: -2147483648, UInt32: 4294967295,
  Int64: [0x80000000, 0x00000000], // -2^63, as high and low words
  UInt64: [0xffffffff, 0xffffffff],
  Float: 1.5, Double: 0.1, String: "grün", DateTime: new Date("2026-01-02T03:04:05.678Z"),
  Guid: "72962b91-fa75-4ae6-8d28-b404dc7daf63", ByteString: Buffer.from([1, 2, 3]), XmlElement: "<a/>",
  NodeId: coerceNodeId("ns=0;i=85"), StatusCode: StatusCodes.BadNoData,
  QualifiedName: { namespaceIndex: 1, name: "q" }, LocalizedText: coerceLocalizedText("laeuft"),
};

function types(plant, root) {
  const parent = folder(plant, root, "Types");
  for (const [type, value] of Object.entries(samples)) {
    variable(plant, parent, type, `Types.${type}`, type, value);
    variable(plant, parent, `${type}Array`, `Types.${type}Array`, type, [value, value], {
      valueRank: 1, arrayDimensions: [2], value: { dataType: type, arrayType: VariantArrayType.Array, value: [value, value] },
    });
  }
  variable(plant, parent, "Matrix", "Types.Matrix", "Double", [], {
    valueRank: 2, arrayDimensions: [2, 3],
    value: { dataType: "Double", arrayType: VariantArrayType.Matrix, dimensions: [2, 3], value: [1, 2, 3, 4, 5, 6] },
  });
  const range = plant.space.constructExtensionObject(plant.space.findDataType("Range"), { low: -1, high: 7 });
  variable(plant, parent, "Structure", "Types.Structure", "Range", range, { value: { dataType: DataType.ExtensionObject, value: range } });
  own(plant, parent);
  plant.ns.addVariable({ componentOf: parent, browseName: "Null", nodeId: "s=Types.Null", dataType: "Double" });
  plant.ns.addVariable({
    componentOf: parent, browseName: "Enumeration", nodeId: "s=Types.Enumeration", dataType: "ServerState", value: { dataType: DataType.Int32, value: 1 },
  });
}

// own has a structure of the server's own, with an enumeration and structures in it.
function own(plant, parent) {
  const types = plant.space.getNamespaceIndex("urn:tidemark:test:types");
  const weld = plant.space.constructExtensionObject(plant.space.findDataType("Weld", types), {
    number: 4294967295, phase: 2, good: true, operator: "M. Kühn",
    points: [{ force: 1.5, travel: 0.25 }, { force: 2.5, travel: 0.5 }],
  });
  variable(plant, parent, "Weld", "Types.Weld", `ns=${types};i=1020`, weld, { value: { dataType: DataType.ExtensionObject, value: weld } });
}

function many(plant, root, { many: count, manyEvery }) {
  const parent = folder(plant, root, "Many");
  const all = [];
  let group;
  for (let i = 0; i < count; i++) {
    if (i % 100 === 0) group = folder(plant, parent, `d${i / 100}`, `Many.d${i / 100}`);
    all.push(variable(plant, group, `v${i}`, `Many.v${i}`, "Double", i));
  }
  every(plant, manyEvery, (n) => all.forEach((v, i) => assign(v, DataType.Double, n + i)));
}

// every calls tick with 1, 2, 3 …, without leaving one out.
function every(plant, ms, tick) {
  let n = 0;
  plant.timers.push(setInterval(() => plant.paused || tick(++n), ms));
}

function assign(node, dataType, value) {
  if (node.held) return;
  node.setValueFromSource({ dataType, value }, StatusCodes.Good, node.frozen ?? new Date());
}

module.exports = { build };
