// The connection between a widget and its host: JSON-RPC with the parent frame, as MCP Apps defines it, or
// `window.openai` in a ChatGPT that does not support MCP Apps. The other modules do not know which of the two is used.
//
// The official client library is not used because of its size. With its schema validator it has 129 KB compressed
// (version 2.0.4), and a whole widget may have 60 KB. Tests run this module against the official host library
// (widgets/host).
import { object, type ToolResult } from "./payload";

export type Mode = "inline" | "fullscreen" | "pip";

/** The host context: theme, locale, display mode and styles. Each member may be missing. */
export interface HostContext {
  theme?: unknown;
  locale?: unknown;
  displayMode?: unknown;
  availableDisplayModes?: unknown;
  styles?: unknown;
  safeAreaInsets?: unknown;
}

export interface HostListener {
  /** Receives the arguments of the tool call, possibly long before its result. */
  input?(args: unknown): void;
  result(result: ToolResult): void;
  cancelled?(): void;
  surroundings(now: HostContext): void;
}

/** The members of ChatGPT's `window.openai` that widgets use. */
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
/** The timeout of `ui/initialize`. A host that does not answer in this time does not support MCP Apps. */
const GREETING_MS = 3_000;
const ANSWER_MS = 45_000;
const MAX_VARIABLES = 200;

interface PendingRequest {
  resolve(value: unknown): void;
  reject(error: Error): void;
  timer: number;
}

export class Bridge {
  #last = 0;
  #standard = false;
  #heard = false;
  #waiting = new Map<unknown, PendingRequest>();
  #around: HostContext = {};

  constructor(private readonly name: string, private readonly to: HostListener) {}

  /** Starts to listen for messages, and does the handshake with the host. */
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
      // There is no answer from a ChatGPT that only has `window.openai`, or if there is no host.
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

  /** Sends a message to the conversation in the name of the user. */
  async say(text: string): Promise<void> {
    if (this.#standard) await this.#ask("ui/message", { role: "user", content: [{ type: "text", text }] });
    else await window.openai?.sendFollowUpMessage?.({ prompt: text });
  }

  /** Tells the model what the user is looking at. Errors are ignored, because not every host supports this. */
  tell(text: string): void {
    if (this.#standard) this.#ask("ui/update-model-context", { content: [{ type: "text", text }] }).catch(() => undefined);
  }

  async open(url: string): Promise<void> {
    // ChatGPT opens trusted addresses without a warning if they are opened by this function.
    if (window.openai?.openExternal) window.openai.openExternal({ href: url });
    else await this.#ask("ui/open-link", { url });
  }

  /** Requests another display mode. Returns the mode that the host chose. */
  async grow(mode: Mode): Promise<Mode> {
    try {
      const answer = this.#standard
        ? object(await this.#ask("ui/request-display-mode", { mode }))
        : object(await window.openai?.requestDisplayMode?.({ mode }));
      if (answer.mode === "inline" || answer.mode === "fullscreen") this.#surround({ displayMode: answer.mode });
    } catch {
      // The host refused, so the mode stays the same.
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
    // Only messages of the parent frame are from the host. Any other frame could send the same content.
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

  #surround(news: HostContext): void {
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

/** Returns `_meta` of a result. ChatGPT first passed `_meta` itself, and since May 2026 the whole result. */
function metaOf(metadata: unknown): unknown {
  const given = object(metadata);
  const whole = object(given.mcp_tool_result ?? given.call_tool_result);
  return whole._meta ?? given._meta ?? given;
}

/** Applies the host's theme, display mode, locale, style variables and insets to the page. */
function dress(around: HostContext): void {
  const page = document.documentElement;
  if (around.theme === "light" || around.theme === "dark") {
    page.style.colorScheme = around.theme;
    page.dataset.theme = around.theme;
  }
  page.dataset.mode = around.displayMode === "fullscreen" ? "fullscreen" : "inline";
  if (typeof around.locale === "string") page.lang = around.locale.slice(0, 35);
  const variables = object(object(around.styles).variables);
  for (const [name, value] of Object.entries(variables).slice(0, MAX_VARIABLES)) {
    // A value with `url()` would load a resource, so it is skipped.
    if (name.startsWith("--") && typeof value === "string" && !/url\(/i.test(value)) page.style.setProperty(name, value);
  }
  const insets = object(around.safeAreaInsets);
  for (const side of ["top", "right", "bottom", "left"]) {
    const inset = insets[side];
    if (typeof inset === "number") page.style.setProperty(`--inset-${side}`, `${Math.min(Math.max(inset, 0), 200)}px`);
  }
}
