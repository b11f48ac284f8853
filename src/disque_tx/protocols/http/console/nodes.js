// The nodes that this one knows, as a map and as a table.

import { at, get } from "/console/api.js";
import { address, consoles, known } from "/console/cluster.js";
import { card, h, put, renew, s } from "/console/dom.js";
import { bytes, count, distance, many } from "/console/format.js";
import { Table } from "/console/table.js";

const [WIDTH, HEIGHT] = [760, 400];
const MAPPED_MAX = 60;
const BEND = 60;

/** The state of a node and of the link to it: a text and a sign for it. */
function state(node) {
  if (node.flags.includes("myself")) return ["this node", "good"];
  if (node.flags.includes("fail")) return ["failed", "bad"];
  if (node.flags.includes("fail?")) return ["suspected to have failed", "warn"];
  if (node.flags.includes("handshake")) return ["introduces itself", "warn"];
  return node.link === "connected" ? ["connected", "good"] : ["not connected", "warn"];
}

const short = (id) => id.slice(0, 8);

/** This node in the middle, the others around it; an arrow from each that does not reach another. */
function draw(svg, nodes) {
  const me = nodes.find((node) => node.flags.includes("myself"));
  const others = nodes.filter((node) => node !== me).slice(0, MAPPED_MAX);
  const place = (at) => {
    const angle = (2 * Math.PI * at) / others.length - Math.PI / 2;
    return [WIDTH / 2 + Math.cos(angle) * (WIDTH / 2 - 110), HEIGHT / 2 - 8 + Math.sin(angle) * (HEIGHT / 2 - 60)];
  };
  const lines = others.map((node, at) => {
    const [x, y] = place(at);
    return s("line", { class: `s-${state(node)[1]}`, x1: WIDTH / 2, y1: HEIGHT / 2 - 8, x2: x, y2: y });
  });
  const places = new Map([[me?.id, [WIDTH / 2, HEIGHT / 2 - 8]], ...others.map((node, at) => [node.id, place(at)])]);
  const lacks = nodes.filter((node) => places.has(node.id)).flatMap((node) => node.unreached_by.filter((id) => places.has(id)).map((id) => {
    const [[fromX, fromY], [toX, toY]] = [places.get(id), places.get(node.id)];
    // Bent, so that it does not hide a link or pass through the node in the middle.
    const bend = BEND / Math.hypot(toX - fromX, toY - fromY);
    const [midX, midY] = [(fromX + toX) / 2 + (fromY - toY) * bend, (fromY + toY) / 2 + (toX - fromX) * bend];
    const part = 24 / Math.hypot(toX - midX, toY - midY);
    const end = `${toX + (midX - toX) * part} ${toY + (midY - toY) * part}`;
    return s("path", { class: "s-bad lack", "marker-end": "url(#arrow)", d: `M${fromX} ${fromY}Q${midX} ${midY} ${end}` },
    s("title", {}, `${short(id)} does not reach ${short(node.id)}`));
  }));
  const arrow = lacks.length && s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" },
    s("path", { class: "arrow", d: "M0 0L8 4L0 8Z" }));
  // Labels are outside, where no link of the node is.
  const label = (y, mine) => (mine || y > HEIGHT / 2 - 20 ? y + (mine ? 42 : 36) : y - 42);
  const dot = (node, x, y, mine) => s("g", {}, s("title", {}, `${node.id}: ${state(node)[0]}`),
    s("circle", { class: `s-${state(node)[1]}${mine ? " me" : ""}`, cx: x, cy: y, r: mine ? 24 : 18 }),
    others.length <= 24 && s("text", { x, y: label(y, mine) }, address(node)),
    others.length <= 24 && s("text", { class: "sub", x, y: label(y, mine) + 15 }, `${short(node.id)}, ${state(node)[0]}`));
  const dots = others.map((node, at) => dot(node, ...place(at), false));
  renew(svg, ...(arrow ? [arrow] : []), ...lines, ...lacks, ...dots, ...(me ? [dot(me, WIDTH / 2, HEIGHT / 2 - 8, true)] : []));
}

/** What a node says of itself; empty where it does not answer. */
function figure(node, show) {
  const row = known.rows.find((one) => one.node === node.id);
  return row ? show(row) : "";
}

/** A link to the console of another node. */
function open(cell, node) {
  const url = node.id === known.me ? undefined : consoles(node.id)[0];
  renew(cell, url && h("a", { href: `${url}/#/nodes` }, "open"));
}

export default function nodes() {
  const summary = h("span", { class: "soft" });
  const svg = s("svg", { class: "map", role: "img", "aria-label": "Map of nodes", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const table = new Table("Nodes", [
    { title: "Node", class: "mono", text: (node) => short(node.id) },
    { title: "Address", text: address },
    { title: "State", fill: (cell, node) => {
      const [text, kind] = state(node);
      renew(cell, h("span", { class: `badge ${kind}` }, text));
    } },
    { title: "Not reached by", text: (node) => node.unreached_by.map(short).join(", ") },
    { title: "Queued (jobs)", num: true, minor: true, text: (node) => figure(node, (row) => count(row.queued)) },
    { title: "Memory", num: true, minor: true, text: (node) => figure(node, (row) => bytes(row.memory_bytes)) },
    { title: "Version", minor: true, text: (node) => figure(node, (row) => row.version) },
    { title: "Console", minor: true, fill: open },
    { title: "Flags", minor: true, text: (node) => node.flags.filter((flag) => flag !== "noflags").join(", ") },
    { title: "Last heartbeat", num: true, text: (node) => (Number(node.pong_received) ? distance(Number(node.pong_received)) : "") },
  ], { key: (node) => node.id });
  const alone = h("p", { class: "soft" }, "This node is alone. To make it a member of a cluster: ", h("code", {}, "disque cluster meet HOST PORT"));
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "Nodes"), summary),
    card("Links of this node, and what other nodes report", null, h("div", { class: "body" }, svg, alone)), card("Nodes", null, table.node));

  async function refresh(signal) {
    const found = (await get(at("nodes"), signal)).nodes;
    const bad = found.filter((one) => !["this node", "connected"].includes(state(one)[0]));
    const missed = found.filter((one) => one.unreached_by.length).length;
    put(summary, `${many(found.length, "node")}, ${bad.length ? `${bad.length} not connected` : "all connected"}${
      missed ? `, ${missed} not reached by others` : ""}`);
    svg.setAttribute("aria-label", `Map of ${many(found.length, "node")}: ${found.map((one) => `${address(one)} ${state(one)[0]}`).join(", ")}`);
    draw(svg, found);
    alone.hidden = found.length > 1;
    table.update(found);
  }
  return { title: "Nodes", node, refresh, every_s: 5 };
}
