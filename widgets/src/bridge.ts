// The widget's side of a host: JSON-RPC with the frame around it, as the MCP Apps standard has it, or `window.openai`
// where ChatGPT does not speak that. Nothing else here knows which of the two it is.
//
// The official client library does the same with a schema validator on board: 129 KB packed with all it needs (2.0.4),
// where a whole widget may have 60. What is needed of it fits on a page, and is tested against its other half, the
// official host (widgets/host).
import { object, type ToolResult } from "./payload";

export type Mode = "inline" | "fullscreen" | "pip";

/** What a host says about itself; each member may be missing. */
export interface Surroundings {
  theme?: unknown;
  locale?: unknown;
  displayMode?: unknown;
  availableDisplayModes?: unknown;
  styles?: unknown;
  safeAreaInsets?: unknown;
}

export interface Listener {
  /** The arguments of the call, which may come long before its result. */
  input?(args: unknown): void;
  result(result: ToolResult): void;
  cancelled?(): void;
  surroundings(now: Surroundings): void;
}

/** What ChatGPT puts into the frame, as far as it is used here. */
interface OpenAi {
  toolInput?: unknown;
  toolOutput?: unknown;
  toolResponseMetadata?: unknown;
  theme?: unknown;
  locale?: unknown;
  displayMode?: unknown;
  callTool?(name: string, args: unknown): Promise<ToolResult>;
  sendFollowUpMessage?(message: { prompt: string }): Promise<unknown>;
  openExternal?(link: { href: string }): void;
  requestDisplayMode?(wish: { mode: Mode }): Promise<{ mode?: unknown }>;
  notifyIntrinsicHeight?(height: number): void;
}

declare global {
  interface Window {
    openai?: OpenAi;
  }
}

const PROTOCOL = "2026-01-26";
/** How long a host that speaks the standard may take to greet. */
const GREETING_MS = 3_000;
const ANSWER_MS = 45_000;
const MAX_VARIABLES = 200;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
  timer: number;
}

export class Bridge {
  #last = 0;
  #standard = false;
  #heard = false;
  #waiting = new Map<unknown, Waiting>();
  #around: Surroundings = {};

  constructor(private readonly name: string, private readonly to: Listener) {}

  /** Greets the host and begins to listen. */
  async connect(): Promise<void> {
    window.addEventListener("message", (event) => this.#hear(event));
    try {
      const host = object(await this.#ask("ui/initialize", {
        protocolVersion: PROTOCOL,
        appInfo: { name: this.name, version: "1" },
        appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
      }, GREETING_MS));
      this.#standard = true;
      this.#surround(object(host.hostContext));
      this.#send({ method: "ui/notifications/initialized", params: {} });
    } catch {
      // A ChatGPT that speaks its own language alone, or no host at all.
      this.#listenToOpenAi();
    }
    let last = 0;
    new ResizeObserver(() => {
      const page = document.documentElement;
      const height = Math.ceil(page.getBoundingClientRect().height);
      if (height === last) return;
      last = height;
      if (this.#standard) this.#send({ method: "ui/notifications/size-changed", params: { width: page.scrollWidth, height } });
      else window.openai?.notifyIntrinsicHeight?.(height);
    }).observe(document.documentElement);
  }

  get mode(): Mode {
    const mode = this.#around.displayMode;
    return mode === "fullscreen" || mode === "pip" ? mode : "inline";
  }

  get canGrow(): boolean {
    const modes = this.#around.availableDisplayModes;
    return this.#standard ? Array.isArray(modes) && modes.includes("fullscreen") : Boolean(window.openai?.requestDisplayMode);
  }

  get canSay(): boolean {
    return this.#standard || Boolean(window.openai?.sendFollowUpMessage);
  }

  async call(name: string, args: unknown): Promise<ToolResult> {
    if (this.#standard) return object(await this.#ask("tools/call", { name, arguments: args }));
    if (!window.openai?.callTool) throw new Error(name);
    return object(await window.openai.callTool(name, args));
  }

  /** Puts words into the conversation, as the user's. */
  async say(text: string): Promise<void> {
    if (this.#standard) await this.#ask("ui/message", { role: "user", content: [{ type: "text", text }] });
    else await window.openai?.sendFollowUpMessage?.({ prompt: text });
  }

  /** Tells the model what the user is looking at; a host that has no ear for it is no trouble. */
  tell(text: string): void {
    if (this.#standard) this.#ask("ui/update-model-context", { content: [{ type: "text", text }] }).catch(() => undefined);
  }

  async open(url: string): Promise<void> {
    // ChatGPT knows by this call which addresses need no warning.
    if (window.openai?.openExternal) window.openai.openExternal({ href: url });
    else await this.#ask("ui/open-link", { url });
  }

  /** Asks for another size; says what it is in the end. */
  async grow(mode: Mode): Promise<Mode> {
    try {
      const answer = this.#standard
        ? object(await this.#ask("ui/request-display-mode", { mode }))
        : object(await window.openai?.requestDisplayMode?.({ mode }));
      if (answer.mode === "inline" || answer.mode === "fullscreen") this.#surround({ displayMode: answer.mode });
    } catch {
      // It stays as it is.
    }
    return this.mode;
  }

  #send(message: object): void {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  #ask(method: string, params: unknown, patience = ANSWER_MS): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.#last;
      const timer = window.setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(method));
      }, patience);
      this.#waiting.set(id, { resolve, reject, timer });
      this.#send({ id, method, params });
    });
  }

  #hear(event: MessageEvent): void {
    // Only the frame around this one is the host, whatever a message says about itself.
    if (event.source !== window.parent) return;
    const message = object(event.data);
    if (message.jsonrpc !== "2.0") return;
    const params = object(message.params);
    switch (message.method) {
      case undefined: return this.#answered(message);
      case "ui/notifications/tool-input": return this.to.input?.(params.arguments);
      case "ui/notifications/tool-result": this.#heard = true; return this.to.result(params);
      case "ui/notifications/tool-cancelled": return this.to.cancelled?.();
      case "ui/notifications/host-context-changed": return this.#surround(params);
      case "ui/resource-teardown": case "ping": return this.#send({ id: message.id, result: {} });
      default:
        if (message.id !== undefined) this.#send({ id: message.id, error: { code: -32601, message: "method not found" } });
    }
  }

  #answered(message: Record<string, unknown>): void {
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    window.clearTimeout(waiting.timer);
    if (message.error === undefined) waiting.resolve(message.result);
    else waiting.reject(new Error(String(object(message.error).message ?? "")));
  }

  #surround(news: Surroundings): void {
    this.#around = { ...this.#around, ...news };
    dress(this.#around);
    this.to.surroundings(this.#around);
  }

  #listenToOpenAi(): void {
    const take = () => {
      const host = window.openai;
      if (!host) return;
      const { theme, locale, displayMode } = host;
      this.#surround({ theme, locale, displayMode });
      if (this.#heard) return;
      if (host.toolInput) this.to.input?.(host.toolInput);
      if (host.toolOutput) this.to.result({ structuredContent: host.toolOutput, _meta: metaOf(host.toolResponseMetadata) });
    };
    window.addEventListener("openai:set_globals", take);
    take();
  }
}

/** ChatGPT handed over `_meta` itself at first, and since May 2026 the whole result around it. */
function metaOf(metadata: unknown): unknown {
  const given = object(metadata);
  const whole = object(given.mcp_tool_result ?? given.call_tool_result);
  return whole._meta ?? given._meta ?? given;
}

/** Makes the page look like its host. */
function dress(around: Surroundings): void {
  const page = document.documentElement;
  if (around.theme === "light" || around.theme === "dark") {
    page.style.colorScheme = around.theme;
    page.dataset.theme = around.theme;
  }
  page.dataset.mode = around.displayMode === "fullscreen" ? "fullscreen" : "inline";
  if (typeof around.locale === "string") page.lang = around.locale.slice(0, 35);
  const variables = object(object(around.styles).variables);
  for (const [name, value] of Object.entries(variables).slice(0, MAX_VARIABLES)) {
    // A value that loads something is not a look.
    if (name.startsWith("--") && typeof value === "string" && !/url\(/i.test(value)) page.style.setProperty(name, value);
  }
  const insets = object(around.safeAreaInsets);
  for (const side of ["top", "right", "bottom", "left"]) {
    const inset = insets[side];
    if (typeof inset === "number") page.style.setProperty(`--inset-${side}`, `${Math.min(Math.max(inset, 0), 200)}px`);
  }
}
