// An MCP server by its address: requests in, results out, in the newer or the older way to speak.

const MODERN = "2026-07-28";
const LEGACY = "2025-11-25";
const META = "io.modelcontextprotocol/";
const EXTENSIONS = { extensions: { [META + "ui"]: { mimeTypes: ["text/html;profile=mcp-app"] } } };
const CLIENT = { name: "docent-preview", version: "1" };

class Refused extends Error {
  constructor(message, code, status) { super(message); this.code = code; this.status = status; }
}

class Server {
  #lastId = 0; #session; #version; #modern = false;

  constructor(url, { proxy, token, authorization, log }) {
    Object.assign(this, { url, proxy, token, authorization, log });
  }

  // Greets in the way that almost every server knows, then in the way of those that know only the newer.
  async connect() {
    this.#version = undefined;
    try {
      const greeting = { protocolVersion: LEGACY, capabilities: EXTENSIONS, clientInfo: CLIENT };
      const result = await this.request("initialize", greeting);
      this.#version = result.protocolVersion;
      await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" }, {});
      return { info: result.serverInfo, revision: result.protocolVersion, instructions: result.instructions };
    } catch (error) {
      if (!(error instanceof Refused) || ![-32601, -32602, -32022, -32020].includes(error.code)) throw error;
    }
    this.#modern = true;
    this.#version = MODERN;
    const found = await this.request("server/discover", {});
    return { info: found._meta?.[META + "serverInfo"], revision: MODERN, instructions: found.instructions };
  }

  async request(method, params, { quiet = false } = {}) {
    const id = ++this.#lastId;
    if (this.#modern) {
      params = { ...params, _meta: { ...params._meta, [META + "protocolVersion"]: MODERN,
        [META + "clientInfo"]: CLIENT, [META + "clientCapabilities"]: EXTENSIONS } };
    }
    const message = { jsonrpc: "2.0", id, method, params };
    if (!quiet) this.log("to server", method, message);
    const answer = await this.#post(message, params);
    if (!quiet) this.log("from server", method, answer, Boolean(answer.error));
    if (answer.error) throw new Refused(answer.error.message, answer.error.code);
    return answer.result;
  }

  // Every page of a list, up to a bound.
  async all(method, key) {
    const items = [];
    let cursor;
    for (let page = 0; page < 20; page++) {
      const result = await this.request(method, cursor ? { cursor } : {});
      items.push(...(result[key] ?? []));
      cursor = result.nextCursor;
      if (!cursor) break;
    }
    return items;
  }

  async #post(message, params) {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    if (this.#version) headers["mcp-protocol-version"] = this.#version;
    if (this.#session) headers["mcp-session-id"] = this.#session;
    if (this.authorization) headers.authorization = this.authorization;
    if (this.#modern) {
      headers["mcp-method"] = message.method;
      const name = params.name ?? params.uri;
      if (name !== undefined) headers["mcp-name"] = headerSafe(String(name));
    }
    if (this.proxy) Object.assign(headers, { "x-docent-target": this.url, "x-docent-token": this.token });
    let response;
    try {
      response = await fetch(this.proxy ? "/preview/proxy" : this.url, { method: "POST", headers, body: JSON.stringify(message) });
    } catch {
      throw new Error(`${this.url} cannot be reached from this page`);
    }
    this.#session = response.headers.get("mcp-session-id") ?? this.#session;
    const text = await response.text();
    if (message.id === undefined) return {};
    const found = messages(text, response.headers.get("content-type") ?? "");
    for (const other of found) if (other.method) this.log("from server", other.method, other);
    const answer = found.find((one) => one.id === message.id && (one.result || one.error)) ?? found.find((one) => one.error);
    if (answer) return answer;
    if (response.status === 401) throw new Refused("the server wants you to sign in: fill in the Authorization header", 0, 401);
    throw new Refused(`the server answered ${response.status}: ${text.slice(0, 300)}`, 0, response.status);
  }
}

function messages(text, type) {
  const read = (json) => { try { return JSON.parse(json); } catch { return undefined; } };
  if (!type.includes("event-stream")) return [read(text)].flat().filter(Boolean);
  const events = text.split(/\r?\n\r?\n/).map((event) =>
    event.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n"));
  return events.map(read).filter(Boolean);
}

function headerSafe(text) {
  if (/^[\x21-\x7e]+$/.test(text)) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}
