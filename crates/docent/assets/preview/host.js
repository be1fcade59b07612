// The host's side of a widget: its frame, its policy, and the messages both ways.

const MODES = { chatgpt: ["inline", "fullscreen", "pip"], claude: ["inline", "fullscreen"] };
const MCP_APP = "text/html;profile=mcp-app";

// What the hosts give a widget to look like them; values are ours, names are the standard's.
const LOOKS = {
  "chatgpt light": ["#ffffff", "#f4f4f4", "#0d0d0d", "#5d5d5d", "#e3e3e3"],
  "chatgpt dark": ["#212121", "#2f2f2f", "#ececec", "#b4b4b4", "#424242"],
  "claude light": ["#faf9f5", "#f0eee6", "#141413", "#5e5d59", "#dedcd1"],
  "claude dark": ["#262624", "#30302e", "#faf9f5", "#b0aea5", "#3f3e3a"],
};

function hostContext(look, tool) {
  const [page, well, text, soft, line] = LOOKS[`${look.host} ${look.theme}`];
  const variables = {
    "--color-background-primary": page, "--color-background-secondary": well, "--color-text-primary": text,
    "--color-text-secondary": soft, "--color-border-primary": line, "--color-border-secondary": line,
    "--font-sans": "system-ui, sans-serif", "--font-text-md-size": "16px", "--border-radius-md": "8px", "--border-radius-lg": "12px",
  };
  return {
    theme: look.theme, styles: { variables }, displayMode: look.mode, availableDisplayModes: MODES[look.host],
    containerDimensions: { maxHeight: look.mode === "fullscreen" ? 2000 : 5000, width: look.width || 768 },
    locale: look.locale, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, userAgent: "docent-preview", platform: "web",
    deviceCapabilities: { hover: true, touch: false }, safeAreaInsets: { top: 0, right: 0, bottom: 0, left: 0 },
    toolInfo: { tool },
  };
}

class Mounted {
  #ready = false; #modes = ["inline"]; #id = 0;

  // `run` is the call that is shown; `page` is the contents item of the widget's resource; `on` is what
  // the preview does when the widget asks for something.
  constructor(run, page, look, on) {
    Object.assign(this, { run, page, look: { ...look }, on });
    this.hears = (event) => this.#hear(event);
  }

  // ChatGPT speaks the standard with pages of the standard's type alone.
  get #speaksStandard() { return this.page.mimeType === MCP_APP; }

  #globals() {
    const { result, args } = this.run;
    return {
      theme: this.look.theme, locale: this.look.locale, displayMode: this.look.mode, maxHeight: 5000, userAgent: { device: { type: "desktop" } },
      safeArea: { insets: { top: 0, right: 0, bottom: 0, left: 0 } }, view: null, widgetState: null, toolInput: args,
      toolOutput: result?.structuredContent ?? null,
      toolResponseMetadata: result ? { ...result._meta, status: "completed", call_tool_result: result, mcp_tool_result: result } : null,
    };
  }

  async mount(card) {
    const meta = this.page._meta ?? {};
    const csp = meta.ui?.csp ?? (this.look.host === "chatgpt" ? fromOld(meta["openai/widgetCSP"]) : undefined) ?? null;
    const state = this.look.host === "chatgpt" ? JSON.stringify(this.#globals()) : "null";
    // A page must not be able to end the script that its data stands in.
    const first = CONFIG.frame.replace("STATE;", () => `${state.replaceAll("<", "\\u003c").replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029")};`);
    const html = withFirst(this.page.text ?? atobText(this.page.blob ?? ""), `<script>${first}</` + "script>");
    const { src, policy } = await this.on.frame({ html, csp, host: this.look.host });
    this.policy = policy;
    this.iframe = make("iframe", { title: this.run.tool.title ?? this.run.tool.name, sandbox: "allow-scripts", allow: allowed(meta.ui?.permissions), src });
    this.iframe.style.colorScheme = this.look.theme;
    window.addEventListener("message", this.hears);
    card.replaceChildren(this.iframe);
  }

  unmount() {
    if (this.#ready) this.#send({ id: `teardown-${++this.#id}`, method: "ui/resource-teardown", params: { reason: "the preview closed it" } });
    window.removeEventListener("message", this.hears);
    this.iframe?.remove();
  }

  // The look changed: theme, language, width or mode.
  changed(look) {
    this.look = { ...look };
    if (this.iframe) this.iframe.style.colorScheme = look.theme;
    if (this.#ready) {
      this.#checkMode();
      this.#send({ method: "ui/notifications/host-context-changed", params: hostContext(look, this.run.tool) });
    }
    if (look.host === "chatgpt") this.iframe?.contentWindow?.postMessage({ docent: "globals", globals: this.#globals() }, "*");
  }

  // A host must not show a widget in a mode that it did not declare.
  #checkMode() {
    if (!this.#modes.includes(this.look.mode))
      this.on.note("warn", `no host would show it ${this.look.mode}: the widget declares ${this.#modes.join(", ")}`);
  }

  #send(message) {
    this.on.log("to widget", message.method ?? "answer", message, Boolean(message.error));
    this.iframe?.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  async #hear(event) {
    // Only the widget's own frame may speak, whatever a message says about itself.
    if (!this.iframe || event.source !== this.iframe.contentWindow || !event.data) return;
    const message = event.data;
    if (message.docent === "violation") return this.on.note("bad", `the policy refused ${message.directive}: ${message.blocked} ${message.sample ?? ""}`);
    if (message.docent === "error") return this.on.note("bad", `error in the widget: ${message.message}`);
    if (message.docent === "openai") return this.#openai(message);
    if (message.jsonrpc !== "2.0") return;
    if (this.look.host === "chatgpt" && !this.#speaksStandard)
      return this.on.log("ignored", `${message.method} (ChatGPT speaks this with ${MCP_APP} alone)`, message, true);
    this.on.log("from widget", message.method ?? "answer", message, Boolean(message.error));
    if (message.method === undefined) return;
    try {
      const result = await this.#answer(message.method, message.params ?? {});
      if (message.id !== undefined) this.#send({ id: message.id, result });
    } catch (error) {
      if (message.id !== undefined) this.#send({ id: message.id, error: { code: error.code ?? -32000, message: error.message } });
    }
    if (message.method === "ui/notifications/initialized") this.#deliver();
  }

  #deliver() {
    this.#ready = true;
    this.#checkMode();
    this.#send({ method: "ui/notifications/tool-input", params: { arguments: this.run.args } });
    if (this.run.result) this.#send({ method: "ui/notifications/tool-result", params: this.run.result });
  }

  async #answer(method, params) {
    switch (method) {
      case "ui/initialize":
        this.#modes = params.appCapabilities?.availableDisplayModes ?? ["inline"];
        return { protocolVersion: "2026-01-26", hostInfo: { name: `docent-preview (${this.look.host})`, version: "1" },
          hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} }, hostContext: hostContext(this.look, this.run.tool) };
      case "tools/call": return this.on.call(params.name, params.arguments ?? {}, true);
      case "resources/read": return this.on.read(params.uri);
      case "ui/open-link": this.on.open(params.url); return {};
      case "ui/message": this.on.said([params.content].flat().map((item) => item?.text ?? "").join("\n")); return {};
      case "ui/update-model-context": this.on.told(params); return {};
      case "ui/request-display-mode": return { mode: this.#mode(params.mode) };
      case "ui/notifications/size-changed": this.#resize(params.height); return {};
      case "ui/notifications/initialized": case "notifications/message": case "ping": return {};
      default: throw Object.assign(new Error(`this host has no ${method}`), { code: -32601 });
    }
  }

  #mode(mode) {
    const may = MODES[this.look.host].includes(mode) && (this.#modes.includes(mode) || !this.#ready);
    if (may) this.on.mode(mode);
    else this.on.note("warn", `the mode ${mode} was not given: the widget declares ${this.#modes.join(", ")}`);
    return may ? mode : this.look.mode;
  }

  #resize(height) {
    const most = Math.min(Math.max(Number(height) || 0, 24), 5000);
    this.iframe.style.height = `${most}px`;
  }

  async #openai({ id, method, args = [] }) {
    if (this.look.host !== "chatgpt") return;
    this.on.log("from widget", `window.openai.${method}`, args);
    const work = {
      callTool: () => this.on.call(args[0], args[1] ?? {}, true),
      sendFollowUpMessage: () => this.on.said(args[0]?.prompt ?? ""),
      requestDisplayMode: () => { this.on.mode(args[0]?.mode); return { mode: args[0]?.mode }; },
      openExternal: () => this.on.open(args[0]?.href), notifyIntrinsicHeight: () => this.#resize(args[0]),
      setWidgetState: () => this.on.told({ structuredContent: args[0] }), requestClose: () => undefined,
    }[method];
    let answer = {};
    try { answer = { result: await work?.() }; } catch (error) { answer = { error: error.message }; }
    if (id) this.iframe?.contentWindow?.postMessage({ docent: "answer", id, ...answer }, "*");
  }
}

// Behind the doctype, so that the page stays in standards mode, and before everything else.
function withFirst(html, script) {
  const doctype = /^\s*(<!--[\s\S]*?-->\s*)*<!doctype[^>]*>/i.exec(html)?.[0] ?? "";
  return doctype + script + html.slice(doctype.length);
}

function fromOld(old) {
  return old && { connectDomains: old.connect_domains, resourceDomains: old.resource_domains, frameDomains: old.frame_domains };
}

function allowed(permissions = {}) {
  const names = { camera: "camera", microphone: "microphone", geolocation: "geolocation", clipboardWrite: "clipboard-write" };
  return Object.keys(permissions).map((key) => names[key]).filter(Boolean).join("; ");
}

function atobText(base64) { return new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))); }

// The only origin that Claude takes from a widget, by the exact address of the server.
async function claudeDomain(url) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(url)));
  return [...digest.slice(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("") + ".claudemcpcontent.com";
}
