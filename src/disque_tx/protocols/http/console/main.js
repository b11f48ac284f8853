// The frame around the pages: routes, the session, regular refreshing, keys.

import { get, part, post, scope } from "/console/api.js";
import { changed, known, look, name as nodeName, others, summary } from "/console/cluster.js";
import { empty, h, put, s, segments } from "/console/dom.js";
import { duration } from "/console/format.js";
import { Heartbeat } from "/console/heartbeat.js";
import { listen } from "/console/keys.js";

const PAGES = [
  ["", "Overview", "overview", "o"],
  ["queues", "Queues", "queues", "q"],
  ["search", "Search", "search", "f"],
  ["schedules", "Delayed, recurring", "schedules", "r"],
  ["nodes", "Nodes", "nodes", "n"],
  ["workers", "Workers", "workers", "w"],
  ["clients", "Clients", "clients", "c"],
  ["slowlog", "Slow log", "slowlog", "s"],
  ["actions", "Actions", "actions", "a"],
];
const DETAILS = new Map([["queues", "queue"], ["jobs", "job"]]);
const THEMES = new Map([["auto", ["◐", "Colours as in the system"]], ["light", ["☀", "Light colours"]], ["dark", ["☾", "Dark colours"]]]);
const NOTICE_MS = 6000;
const PROBLEM_MS = 20000;
// A page is asked for again when so many times as long has passed as the answer took, most of which is waiting: a
// console costs a busy node little.
const RESTS = 40;
const REST_MAX_MS = 30000;
// For how long one can read where the page goes when its node does not answer.
const LEAVE_MS = 1500;

const $ = (id) => document.getElementById(id);
const state = { page: null, role: "none", needed: false, held: false, timer: 0, abort: null, asking: false, noticed: 0, warned: 0, began: 0, leaving: 0 };

/** What pages use of the frame. */
const app = {
  get writes() {
    return state.role === "full";
  },
  notice(text) {
    $("notice").hidden = false;
    put($("notice"), text);
    clearTimeout(state.noticed);
    state.noticed = setTimeout(() => { $("notice").hidden = true; }, NOTICE_MS);
  },
  /** Show an error, or that there is none any more. `lasting`: refreshing does not remove it. */
  problem(error, lasting = false) {
    const box = $("problem");
    if (!error) {
      box.hidden = true;
      return;
    }
    box.dataset.lasting = lasting;
    box.hidden = false;
    box.replaceChildren(h("b", {}, error.title ?? "Fault in the console"), ...[error.detail ?? error.message].flat());
    clearTimeout(state.warned);
    if (lasting) state.warned = setTimeout(() => { box.hidden = true; }, PROBLEM_MS);
  },
  /** Do something that changes the node, report how it went, and show what is so now. */
  async act(work, done) {
    try {
      const result = await work();
      app.problem(null);
      app.notice(typeof done === "function" ? done(result) : done);
    } catch (error) {
      if (error.status === 401) return start();
      app.problem(error, true);
    }
    return refresh();
  },
  refresh: () => refresh(),
};

// -- refreshing ---------------------------------------------------------------------------------

function live(kind, text) {
  $("live").className = `live ${kind}`;
  put($("live"), text);
  $("live").title = text;
}

function showState() {
  document.title = `${document.hidden || state.held ? "⏸ " : ""}${state.page?.title ?? "Log in"} · Disque`;
  if (document.hidden) live("still", "No updates while this tab is hidden");
  else if (state.held) live("still", "Updates stopped");
  $("hold").replaceChildren(s("svg", { class: "sign", viewBox: "0 0 10 10", "aria-hidden": "true" }, s("path", { d: state.held ? "M2 1L9 5L2 9Z" : "M2 1H4V9H2ZM6 1H8V9H6Z" })));
  $("hold").title = state.held ? "Resume updates (p)" : "Stop updates (p)";
  $("hold").setAttribute("aria-label", state.held ? "Resume updates" : "Stop updates");
  $("hold").setAttribute("aria-pressed", String(state.held));
  $("hold").hidden = !state.page;
  $("scope").hidden = !state.page || known.members < 2;
  if (state.page && !document.hidden && !state.held) heartbeat.start();
  else heartbeat.end();
}

/** Which nodes there are, and which are missing in what the page shows. */
function showCluster() {
  const { good, short, long } = summary();
  const here = scope.everywhere || known.members < 2;
  $("cluster").hidden = false;
  $("cluster").className = `badge ${good ? "good" : "bad"}`;
  put($("cluster"), short);
  $("cluster").title = long;
  $("scope").hidden = known.members < 2;
  $("lacking").hidden = good && here;
  $("lacking").className = good ? "soft" : "bad";
  put($("lacking"), here ? `Figures are of ${long}` : `Figures and actions are of this node only, ${nodeName(known.me)}.${good ? "" : ` Of the cluster: ${long}`}`);
}

async function refresh() {
  clearTimeout(state.timer);
  const page = state.page;
  if (!page) return;
  state.abort?.abort();
  const abort = new AbortController();
  state.abort = abort;
  state.asking = true;
  const begun = performance.now();
  let rest = page.every_s * 1000;
  try {
    await Promise.all([page.refresh(abort.signal), look(abort.signal).then(showCluster)]);
    if (abort.signal.aborted) return;
    // Answers that lack a node were waited for, and cost this one nothing.
    if (!known.missing.length) rest = Math.min(REST_MAX_MS, Math.max(rest, (performance.now() - begun) * RESTS));
    if ($("problem").dataset.lasting !== "true") app.problem(null);
    if (!document.hidden && !state.held && heartbeat.answers) live("", `Live, every ${duration(Math.round(rest / 1000))}`);
  } catch (error) {
    if (error.name === "AbortError" || abort.signal.aborted) return;
    if (error.status === 401) return start();
    live("broken", error.status ? "Error" : "Offline, trying again");
    if (error.status || heartbeat.answers) app.problem(error);
  } finally {
    if (state.abort === abort) state.asking = false;
  }
  again(rest);
}

function again(rest_ms) {
  clearTimeout(state.timer);
  if (!document.hidden && !state.held) state.timer = setTimeout(refresh, rest_ms);
}

function hold() {
  state.held = !state.held;
  showState();
  if (state.held) clearTimeout(state.timer);
  else refresh();
}

document.addEventListener("visibilitychange", () => {
  showState();
  state.page?.hidden?.(document.hidden);
  if (document.hidden) {
    clearTimeout(state.timer);
    state.abort?.abort();
  } else if (!state.held) refresh();
});

/** The node of this page has stopped answering, or answers again. Another node shows the same page: the address has all that it needs. */
const heartbeat = new Heartbeat((answers) => {
  clearTimeout(state.leaving);
  if (answers) {
    app.problem(null);
    refresh();
    return;
  }
  const [next] = others();
  live("broken", "This node does not answer");
  const place = next && `${next}/${location.hash}`;
  const detail = next ? [`The page goes on at another node: `, h("a", { href: place }, next)] : "The console goes on trying. It knows no other node with a console.";
  app.problem({ title: "This node does not answer", message: detail });
  if (next) state.leaving = setTimeout(() => location.replace(place), LEAVE_MS);
}, watch);

/** A page whose node has lost another one, or found it again, is asked for at once. Errors are for the next refresh to tell. */
function watch(nodes) {
  if (!state.asking && state.page && changed(nodes)) refresh();
}

// -- pages --------------------------------------------------------------------------------------

/** What an address shows that is none of ours. */
function nowhere() {
  const text = empty("There is no such page", "The address may be incomplete, or made by somebody who wants you to click. Nothing was done.");
  const node = h("div", { class: "page" }, h("div", { class: "head" }, h("h1", {}, "No such page")), h("section", { class: "card" }, text));
  return { title: "No such page", node, refresh: async () => {}, every_s: 60 };
}

/** The pages with filters in their address: behind a question mark, as in a query. */
const FILTERED = new Set(["search"]);

async function load(name, rest, words) {
  const parts = rest.map(part);
  if (parts.length > 1 || parts.includes(null) || (parts.length && !DETAILS.has(name))) return nowhere;
  const entry = PAGES.find(([word]) => word === name);
  if (!entry && !parts.length) return nowhere;
  const module = parts.length ? DETAILS.get(name) : entry?.[2] || "overview";
  const { default: make } = await import(`/console/${module}.js`);
  return (frame) => make(frame, ...(words ? [words] : parts));
}

/** Show the page of the address; x: its figures are of other nodes than before. */
async function show(elsewhere = false) {
  if (state.role === "none") return;
  const [, place, filters] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash);
  const words = FILTERED.has(place) ? new URLSearchParams(filters) : null;
  const [name, ...rest] = (words ? place : location.hash.replace(/^#\/?/, "")).split("/");
  clearTimeout(state.timer);
  state.abort?.abort();
  state.page?.end?.();
  const turn = (state.began += 1);
  $("main").inert = true; // what it shows was counted elsewhere than where its buttons would act now
  const make = await load(name, rest, words).finally(() => { if (turn === state.began) $("main").inert = false; });
  if (turn !== state.began) return;
  const page = make(app);
  state.page = page;
  for (const link of $("nav").children) {
    const here = link.dataset.name === name || (name === "jobs" && link.dataset.name === "queues");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  menu(false);
  app.problem(null);
  $("main").replaceChildren(page.node);
  if (elsewhere) showCluster(); // not before: the page that is gone showed figures of the others
  showState();
  window.scrollTo(0, 0);
  await refresh();
}

function menu(open) {
  $("nav").classList.toggle("open", open);
  $("menu").setAttribute("aria-expanded", String(open));
}

async function login() {
  clearTimeout(state.timer);
  state.page?.end?.();
  state.page = null;
  state.began += 1;
  $("cluster").hidden = $("lacking").hidden = true;
  const { default: make } = await import("/console/login.js");
  $("main").inert = false;
  $("main").replaceChildren(make(start));
  $("main").querySelector("input").focus();
  live("", "");
  showState();
}

/** Find out who we are, and show the page or the login. */
async function start() {
  try {
    const session = await get("/api/v1/session");
    state.role = session.role;
    state.needed = session.password_needed;
  } catch (error) {
    live("broken", "Offline, trying again");
    app.problem(error);
    state.timer = setTimeout(start, 3000);
    return;
  }
  app.problem(null);
  $("role").hidden = state.role !== "reader";
  $("logout").hidden = !state.needed || state.role === "none";
  $("nav").hidden = $("find").hidden = state.role === "none";
  await (state.role === "none" ? login() : show());
}

// -- colours, keys ------------------------------------------------------------------------------

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
  const [sign, label] = THEMES.get(name);
  put($("theme"), sign);
  $("theme").title = `${label} (t)`;
  $("theme").setAttribute("aria-label", label);
}

function nextTheme() {
  const names = [...THEMES.keys()];
  theme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
}

async function find() {
  const { default: palette } = await import("/console/palette.js");
  palette(PAGES, [
    [state.held ? "Resume updates" : "Stop updates", hold],
    ["Change colours", nextTheme],
    ...(known.members > 1 ? [[scope.everywhere ? "Show this node only" : "Show the cluster", () => choose(scope.everywhere ? "daemon" : "cluster")]] : []),
    ["Keyboard shortcuts", help],
    ...(state.needed ? [["Log out", logout]] : []),
  ]);
}

const help = listen({
  pages: PAGES, find, ready: () => state.role !== "none",
  commands: {
    p: hold,
    t: nextTheme,
    "/": () => {
      if ($("search")) $("search").focus();
      else location.hash = "#/queues";
    },
  },
});

async function logout() {
  await post("/logout").catch(app.problem);
  await start();
}

const SCOPES = segments("Whose figures are shown", [["cluster", "Cluster"], ["daemon", "This node"]], scope.value, choose);

function choose(word) {
  scope.value = word;
  for (const one of SCOPES.children) one.setAttribute("aria-pressed", String(one.dataset.value === word));
  show(true);
}

$("scope").append(SCOPES);
$("nav").append(...PAGES.map(([name, title]) => h("a", { href: `#/${name}`, "data-name": name }, title)));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  $("main").focus();
});
$("menu").addEventListener("click", () => menu(!$("nav").classList.contains("open")));
$("hold").addEventListener("click", hold);
$("theme").addEventListener("click", nextTheme);
$("help").addEventListener("click", help);
$("find").addEventListener("click", find);
$("logout").addEventListener("click", logout);
window.addEventListener("hashchange", () => {
  // A question about one page must not be answered on another.
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  show();
});
theme(THEMES.has(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto");
start();
