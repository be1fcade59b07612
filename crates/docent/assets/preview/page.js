// The page itself: tools, form, switches, the stage and what went over the wire.

const CONFIG = JSON.parse(document.getElementById("config").textContent);
const $ = (id) => document.getElementById(id);
const MAX_MESSAGES = 500;
const STRUCTURED_BYTES = 10 * 1024;
const NAMES = { chatgpt: "ChatGPT", claude: "Claude" };
const LOCALES = ["en-US", "de-DE", "fr-FR", "es-ES", "ja-JP", "zh-CN", "pt-BR", "ar-EG"];
const look = { host: "chatgpt", theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
  locale: LOCALES.includes(navigator.language) ? navigator.language : "en-US", mode: "inline", width: 768, live: true };
let server, tools = [], chosen, form, run, mounted, count = 0;

// Elements are made with text as text; nothing from a server becomes markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== "" || name === "hidden") element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== ""));
  return element;
}

function status(text, kind = "") { $("status").textContent = text; $("status").className = kind; }

// ---- what went over the wire

const WAYS = { "to server": "→ server", "from server": "← server", "to widget": "→ widget", "from widget": "← widget", ignored: "✕ widget" };

function log(way, what, message, bad = false) {
  const list = $("messages");
  const pinned = list.scrollTop + list.clientHeight >= list.scrollHeight - 24;
  const details = make("details", {}, make("summary", {}, make("span", { class: "way" }, WAYS[way]), make("span", { class: "what" }, what),
    make("time", {}, new Date().toLocaleTimeString([], { hour12: false }))));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(json(make("pre"), message)); }, { once: true });
  list.append(make("li", { class: bad ? "bad" : "" }, details));
  while (list.children.length > MAX_MESSAGES) list.firstChild.remove();
  $("counts").textContent = `${++count} in all`;
  if (pinned) list.scrollTop = list.scrollHeight;
}

// Pretty JSON with a little colour.
function json(pre, value) {
  pre.replaceChildren();
  if (value === undefined) { pre.append(make("span", { class: "quiet" }, "none")); return pre; }
  let text = JSON.stringify(value, null, 2);
  if (text.length > 200_000) text = text.slice(0, 200_000) + "\n… cut off here";
  const parts = /("(?:\\.|[^"\\])*")(\s*:)?|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/g;
  let last = 0;
  for (const match of text.matchAll(parts)) {
    pre.append(text.slice(last, match.index));
    const kind = match[1] ? (match[2] ? "key" : "text") : "number";
    pre.append(make("span", { class: kind }, match[1] ?? match[3]), match[2] ?? "");
    last = match.index + match[0].length;
  }
  pre.append(text.slice(last));
  return pre;
}

function payload(id, value, most) {
  json($(id), value);
  const heading = $(id).previousElementSibling;
  heading.querySelector(".size")?.remove();
  if (value === undefined) return;
  const bytes = new TextEncoder().encode(JSON.stringify(value)).length;
  const size = bytes < 1000 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KB`;
  heading.append(make("small", { class: most && bytes > most ? "size bad" : "size" }, size));
  if (most && bytes > most) note("warn", `structuredContent has ${size}; keep it under 10 KB and put what only the widget needs into _meta`);
}

// ---- the server and its tools

async function connect() {
  const url = $("server").value.trim();
  status("Connecting…");
  leave();
  $("call").hidden = true;
  server = new Server(new URL(url, location.href).href, { proxy: CONFIG.proxy, token: CONFIG.token, authorization: $("authorization").value.trim(), log });
  try {
    const { info, revision } = await server.connect();
    tools = await server.all("tools/list", "tools");
    const name = [info?.title ?? info?.name ?? "server", info?.version].filter(Boolean).join(" ");
    status(`${name}, ${tools.length} ${tools.length === 1 ? "tool" : "tools"}, ${revision}`, "good");
    remember({ server: url });
    listTools();
  } catch (error) {
    tools = [];
    listTools();
    status(error.message, "bad");
  }
}

const template = (tool) => {
  const meta = tool._meta ?? {};
  const standard = meta.ui?.resourceUri ?? meta["ui/resourceUri"];
  return look.host === "chatgpt" ? meta["openai/outputTemplate"] ?? standard : standard;
};
const visibility = (tool) => tool._meta?.ui?.visibility ?? (tool._meta?.["openai/visibility"] === "private" ? ["app"] : ["model", "app"]);

function listTools() {
  const rows = tools.map((tool) => {
    const hints = tool.annotations ?? {};
    const badges = [
      template(tool) && ["widget", "strong"], !visibility(tool).includes("model") && ["widgets only", ""],
      hints.readOnlyHint === true && ["read-only", ""], hints.destructiveHint === true && ["destructive", "bad"],
      ["readOnlyHint", "destructiveHint", "openWorldHint"].some((hint) => typeof hints[hint] !== "boolean") && ["hints missing", "bad"],
    ].filter(Boolean).map(([text, kind]) => make("span", { class: `badge ${kind}` }, text));
    const row = make("button", { class: "tool", type: "button", "aria-current": String(tool === chosen) },
      make("span", {}, tool.title ?? tool.annotations?.title ?? tool.name), make("code", {}, tool.name), make("span", { class: "badges" }, ...badges));
    row.onclick = () => choose(tool);
    return row;
  });
  $("tools").replaceChildren(...(rows.length ? rows : [make("p", { class: "quiet" }, "This server has no tools.")]));
}

function choose(tool, values) {
  chosen = tool;
  listTools();
  form = toolForm(tool);
  if (values) form.write(values);
  const switcher = make("button", { class: "link", type: "button" }, "Edit as JSON");
  switcher.onclick = () => { switcher.textContent = form.toggle() ? "Edit as form" : "Edit as JSON"; };
  $("call").replaceChildren(make("h2", {}, tool.title ?? tool.name), make("p", { class: "about" }, tool.description ?? ""),
    ...form.elements, make("p", { class: "problem", role: "alert" }), make("div", { class: "row" }, make("button", { class: "primary" }, "Call"), switcher));
  $("call").hidden = false;
  remember({ tool: tool.name });
}

function requestMeta() {
  if (look.host !== "chatgpt") return undefined;
  return { "openai/locale": look.locale, "openai/userAgent": "docent-preview", "openai/subject": "v1/preview", "openai/session": "v1/preview",
    "openai/userLocation": { country: "PT", city: "Lisbon", timezone: "Europe/Lisbon" } };
}

async function callTool(name, args, fromWidget) {
  if (fromWidget) {
    const tool = tools.find((one) => one.name === name);
    if (!tool) throw new Error(`there is no tool ${name}`);
    const may = visibility(tool).includes("app") || tool._meta?.["openai/widgetAccessible"] === true;
    if (!may) { note("bad", `the widget may not call ${name}: its visibility lacks "app"`); throw new Error(`${name} is not for widgets`); }
  }
  const meta = requestMeta();
  return server.request("tools/call", { name, arguments: args, ...(meta ? { _meta: meta } : {}) });
}

// ---- the stage

async function call(event) {
  event?.preventDefault();
  let args;
  const problem = document.querySelector("#call .problem");
  problem.textContent = "";
  try { args = form.read(); } catch (error) { problem.textContent = error.message; return; }
  leave();
  run = { tool: chosen, args };
  remember({ args: JSON.stringify(args) });
  const meta = chosen._meta ?? {};
  const asked = Object.keys(args).length ? `${chosen.name} ${JSON.stringify(args)}` : chosen.name;
  const says = (key, otherwise) => (look.host === "chatgpt" && meta[`openai/toolInvocation/${key}`]) || otherwise;
  const step = make("p", { class: "step" }, says("invoking", `Calling ${chosen.name}…`));
  $("talk").replaceChildren(make("p", { class: "said" }, asked), step);
  for (const id of ["structured", "content", "meta"]) payload(id, undefined);
  try {
    run.result = await callTool(chosen.name, args);
  } catch (error) {
    step.textContent = `${chosen.name} failed`;
    return note("bad", error.message);
  }
  step.textContent = run.result.isError ? `${chosen.name} failed` : says("invoked", `Called ${chosen.name}`);
  payload("structured", run.result.structuredContent, template(chosen) ? STRUCTURED_BYTES : undefined);
  payload("content", run.result.content);
  payload("meta", run.result._meta);
  if (template(chosen)) await show();
  const words = (run.result.content ?? []).map((item) => item.text ?? `[${item.type}]`).join("\n");
  $("talk").append(make("p", { class: template(chosen) ? "told" : "answer" }, words.slice(0, 5000)));
}

// Reads the widget's page and mounts it.
async function show() {
  const uri = template(run.tool);
  if (!uri) {
    run.card?.remove();
    return note("warn", `${NAMES[look.host]} finds no widget: the tool's _meta has no ui.resourceUri`);
  }
  let page;
  try {
    page = (await server.request("resources/read", { uri })).contents?.[0];
  } catch (error) {
    return note("bad", `the widget ${uri} cannot be read: ${error.message}`);
  }
  if (!page) return note("bad", `the widget ${uri} is empty`);
  const kinds = look.host === "chatgpt" ? [MCP_APP, "text/html+skybridge"] : [MCP_APP];
  if (!kinds.includes(page.mimeType)) return note("bad", `${NAMES[look.host]} does not show the type ${page.mimeType}; it takes ${kinds.join(" or ")}`);
  const domain = page._meta?.ui?.domain;
  if (look.host === "claude" && domain && domain !== await claudeDomain(server.url))
    return note("bad", `Claude does not show this widget: its ui.domain is ${domain}, and must be ${await claudeDomain(server.url)} or absent`);
  run.page = page;
  const border = page._meta?.ui?.prefersBorder ?? page._meta?.["openai/widgetPrefersBorder"];
  run.card ??= make("div", {});
  run.card.className = border ? "card border" : "card";
  run.border = border;
  if (!run.card.isConnected) $("talk").append(run.card);
  mounted = new Mounted(run, page, look, { frame, call: callTool, log, note, said, told, open, mode: (mode) => set("mode", mode),
    read: (uri) => server.request("resources/read", { uri }) });
  await mounted.mount(run.card);
  log("to widget", "content-security-policy", { policy: mounted.policy, uri });
  place();
}

async function frame(body) {
  const response = await fetch("/preview/frame", { method: "POST", headers: { "content-type": "application/json", "x-docent-token": CONFIG.token }, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`the widget cannot be mounted: ${await response.text()}`);
  return response.json();
}

function leave() {
  mounted?.unmount();
  mounted = undefined;
  run = undefined;
}

async function remount() {
  if (!run?.result || !run.tool._meta) return;
  mounted?.unmount();
  mounted = undefined;
  await show();
}

function note(kind, text) {
  const all = [...$("talk").querySelectorAll(".note")];
  if (all.some((one) => one.textContent === text) || all.length >= 20) return;
  $("talk").append(make("p", { class: `note ${kind}`, role: "alert" }, text));
}

function said(text) { $("talk").append(make("p", { class: "said" }, String(text).slice(0, 5000))); }

function told(context) {
  $("talk").querySelector(".told.context")?.remove();
  const words = context.structuredContent ? JSON.stringify(context.structuredContent) : (context.content ?? []).map((item) => item.text ?? "").join("\n");
  $("talk").append(make("p", { class: "told context" }, `The model now knows: ${words.slice(0, 2000)}`));
}

function open(href) {
  let url;
  try { url = new URL(href); } catch { return note("bad", `the widget wants to open ${href}, which is no address`); }
  if (!["http:", "https:"].includes(url.protocol)) return note("bad", `no host opens ${url.protocol} addresses`);
  const free = run.page._meta?.["openai/widgetCSP"]?.redirect_domains ?? [];
  const warns = look.host === "chatgpt" && !free.includes(url.origin) ? " (ChatGPT would ask the user first: its origin is not in redirect_domains)" : "";
  const link = make("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, url.href);
  $("talk").append(make("p", { class: "told" }, "The widget opens ", link, warns));
}

function place() {
  document.documentElement.style.setProperty("--width", look.width ? `${look.width}px` : "100%");
  $("stage").className = `${look.host} ${look.theme}`;
  if (!run?.card) return;
  run.card.classList.toggle("fullscreen", look.mode === "fullscreen");
  run.card.classList.toggle("pip", look.mode === "pip");
  for (const old of run.card.querySelectorAll(".leave, .name")) old.remove();
  if (look.mode !== "inline") {
    const leave = make("button", { class: "leave", type: "button" }, "✕");
    leave.setAttribute("aria-label", "Back to inline");
    leave.onclick = () => set("mode", "inline");
    run.card.append(make("p", { class: "name" }, run.tool.title ?? run.tool.name), leave);
  }
}

// ---- the switches

function set(name, value) {
  if (look[name] === value) return;
  const before = look.host;
  look[name] = value;
  if (!MODES[look.host].includes(look.mode)) look.mode = "inline";
  remember({ [name]: String(value) });
  drawSwitches();
  place();
  if (before === look.host) return mounted?.changed(look);
  listTools();
  if (run?.tool && (template(run.tool) || run.page)) remount();
}

function choices(label, name, options) {
  const buttons = options.map(([value, text]) => {
    const button = make("button", { type: "button", "aria-pressed": String(look[name] === value) }, text);
    button.onclick = () => set(name, value);
    return button;
  });
  return make("div", { class: "switch", role: "group", "aria-label": label }, label, make("span", { class: "choices" }, ...buttons));
}

function drawSwitches() {
  const locale = make("select", { "aria-label": "Locale" }, ...LOCALES.map((tag) => make("option", { value: tag }, tag)));
  locale.value = look.locale;
  locale.onchange = () => set("locale", locale.value);
  const width = make("input", { type: "number", min: "240", max: "2000", "aria-label": "Width in pixels" });
  width.value = look.width || "";
  width.onchange = () => set("width", Math.min(Math.max(Number(width.value) || 768, 240), 2000));
  const live = make("input", { type: "checkbox" });
  live.checked = look.live;
  live.onchange = () => set("live", live.checked);
  const modes = { inline: "Inline", fullscreen: "Fullscreen", pip: "Picture" };
  $("switches").replaceChildren(
    choices("Host", "host", Object.entries(NAMES)),
    choices("Theme", "theme", [["light", "Light"], ["dark", "Dark"]]),
    choices("Mode", "mode", MODES[look.host].map((mode) => [mode, modes[mode]])),
    make("label", { class: "switch" }, "Locale", locale),
    make("div", { class: "switch" }, choices("Width", "width", [[320, "320"], [480, "480"], [768, "768"], [0, "Full"]]), width),
    make("label", { class: "switch", title: "Mount the widget anew when its page changes on the server" }, live, "Live"));
}

// A page that changed on the server is mounted anew with the same result.
setInterval(async () => {
  if (!look.live || !run?.page || document.hidden || !server) return;
  const before = run;
  try {
    const { contents } = await server.request("resources/read", { uri: run.page.uri }, { quiet: true });
    if (run !== before || !contents?.[0] || JSON.stringify(contents[0]) === JSON.stringify(run.page)) return;
    log("from server", "the widget's page has changed", {});
    await remount();
  } catch { /* The server may be restarting; the next look comes soon. */ }
}, 1000);

// ---- the address bar holds the state, so that a view can be shared and opened again

function remember(values) {
  const state = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(values)) state.set(name, value);
  history.replaceState(null, "", `#${state}`);
}

async function start() {
  const state = new URLSearchParams(location.hash.slice(1));
  for (const name of ["host", "theme", "locale", "mode"]) if (state.get(name)) look[name] = state.get(name);
  if (!LOOKS[`${look.host} ${look.theme}`]) Object.assign(look, { host: "chatgpt", theme: "light" });
  if (!MODES[look.host].includes(look.mode)) look.mode = "inline";
  if (!LOCALES.includes(look.locale)) look.locale = "en-US";
  if (state.get("width")) look.width = Math.min(Math.max(Number(state.get("width")) || 0, 0), 2000);
  drawSwitches();
  place();
  $("connect").onsubmit = (event) => { event.preventDefault(); connect(); };
  $("call").onsubmit = call;
  $("clear").onclick = () => { $("messages").replaceChildren(); count = 0; $("counts").textContent = ""; };
  $("server").value = state.get("server") ?? CONFIG.server ?? "";
  // A preview of one server calls no other, whatever a link says.
  if (CONFIG.server) { $("server").readOnly = true; $("server").value = CONFIG.server; }
  // An address with a server in it may come from anywhere: the person decides.
  else return $("server").focus();
  await connect();
  const tool = tools.find((one) => one.name === state.get("tool"));
  if (!tool) return;
  let args = {};
  try { args = JSON.parse(state.get("args") ?? "{}"); } catch { /* An address that somebody wrote by hand. */ }
  choose(tool, args);
  if (state.get("call") && tool.annotations?.readOnlyHint === true) await call();
}
start();
