// The reader shows one document. It opens at a passage, has an outline, loads more of the text on demand and copies a
// citation. Both widgets use it.
import type { Bridge, Mode } from "./bridge";
import { icon, make, redraw, skeleton, state, type Icon } from "./dom";
import { object, readDocument, readError, type DocumentView, type Passage, type ToolResult } from "./payload";
import { prose } from "./prose";
import type { Strings } from "./strings";

/** The number of passages that are loaded at a time. */
const STEP = 4;
/** The number of passages that are kept in memory. */
const MAX_KEPT = 200;
const MAX_TITLE_SAID = 200;

export interface ReaderOptions {
  bridge: Bridge;
  strings(): Strings;
  /** Closes the reader, in a widget that has another view. */
  back?: () => void;
}

export class Reader {
  readonly root = make("article", { class: "reader" });
  #view: DocumentView | undefined;
  #passages = new Map<number, Passage>();
  #shown: [number, number] = [0, 0];
  #problem: string | undefined;
  #retry: (() => void) | undefined;
  #busy = true;
  #turn = 0;
  #said = "";
  #byHand = false;
  #mode: Mode = "inline";

  constructor(private readonly frame: ReaderOptions) {}

  /** Loads a document and opens it at a passage. */
  open(id: string, query: string, passage: number): Promise<void> {
    this.#view = undefined;
    return this.#fetch({ id, query, passage }, (view) => this.#take(view));
  }

  /** Stores the arguments of the tool call, so that the user can retry if it fails. */
  asked(args: unknown): void {
    const { id, query, passage } = object(args);
    if (typeof id !== "string" || this.#retry) return;
    const wanted = { id, query: typeof query === "string" ? query : "", ...(typeof passage === "number" ? { passage } : {}) };
    this.#retry = () => void this.#fetch(wanted, (view) => this.#take(view));
  }

  /** Shows the result of a call of `show_document`. */
  show(result: ToolResult): void {
    const view = readDocument(result);
    this.#busy = false;
    this.#problem = readError(result) ?? (view ? undefined : "");
    if (view && this.#problem === undefined) this.#take(view);
    this.draw();
  }

  stopped(): void {
    this.#busy = false;
    this.#problem = this.frame.strings().say("stopped");
    this.draw();
  }

  async #fetch(args: { id: string; query: string; passage?: number; first?: number }, take: (view: DocumentView) => void): Promise<void> {
    const turn = ++this.#turn;
    this.#busy = true;
    this.#problem = undefined;
    this.#retry = () => void this.#fetch(args, take);
    this.draw();
    let result: ToolResult;
    try {
      result = await this.frame.bridge.call("show_document", args);
    } catch (error) {
      result = { isError: true, content: [{ text: error instanceof Error ? error.message : "" }] };
    }
    // A later request supersedes this one, so its response is dropped.
    if (turn !== this.#turn) return;
    this.#busy = false;
    const view = readDocument(result);
    this.#problem = readError(result) ?? (view ? undefined : "");
    if (view && this.#problem === undefined) take(view);
    this.draw();
  }

  #take(view: DocumentView): void {
    this.#view = view;
    this.#passages = new Map(view.passages.map((passage) => [passage.index, passage]));
    const inline = this.frame.bridge.mode === "inline";
    const known = [...this.#passages.keys()];
    // Inline in a conversation, only one passage is shown; fullscreen has room for all that are loaded.
    this.#shown = inline ? [view.at, view.at] : [Math.min(...known, view.at), Math.max(...known, view.at)];
    this.#said = "";
    this.#byHand = false;
    requestAnimationFrame(() => {
      // The button that opened the reader no longer exists, so the focus would be lost.
      if (this.frame.back) this.root.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
      this.#goTo(view.at, false);
    });
    this.frame.bridge.tell(`The user is reading the document with the id ${JSON.stringify(view.id)}, passage ${view.at + 1} of ${view.total}.`);
  }

  draw(): void {
    const strings = this.frame.strings();
    const view = this.#view;
    const { mode } = this.frame.bridge;
    // When the display mode changes to fullscreen, show all passages that are loaded.
    if (mode === "fullscreen" && this.#mode === "inline" && view) this.#shown = this.#reach(0, view.total - 1);
    this.#mode = mode;
    this.root.setAttribute("aria-busy", String(this.#busy));
    const back = this.frame.back && this.#button("back", strings.say("back"), () => this.frame.back?.(), "back", true);
    if (!view) {
      const problem = this.#problem === undefined ? skeleton(strings.say("loading"), 2) : this.#trouble();
      return redraw(this.root, back, problem);
    }
    redraw(this.root, this.#head(view, back), this.#problem === undefined ? null : this.#trouble(),
      make("div", { class: "spread" }, this.#outline(view), this.#text(view)));
  }

  #trouble(): HTMLElement {
    const strings = this.frame.strings();
    const retry = this.#retry && make("button", { class: "button", "data-key": "retry", onclick: this.#retry }, strings.say("retry"));
    return make("div", { role: "alert" }, state("alert", strings.say("failed"), this.#problem ?? "", retry));
  }

  #button(name: Icon, label: string, act: () => void, key: string, worded = false): HTMLButtonElement {
    const options = { class: worded ? "button quiet" : "button quiet round", type: "button", "data-key": key, onclick: act };
    return worded ? make("button", options, icon(name), label) : make("button", { ...options, "aria-label": label, title: label }, icon(name));
  }

  #head(view: DocumentView, back: HTMLElement | undefined): HTMLElement {
    const strings = this.frame.strings();
    const { bridge } = this.frame;
    const facts = [view.source, view.date && strings.date(view.date), strings.fill("place", {
      n: strings.number(view.at + 1), all: strings.number(Math.max(view.total, 1)) })].filter(Boolean);
    const grows = bridge.canGrow && bridge.mode === "inline" && !this.frame.back;
    const shrinks = bridge.canGrow && bridge.mode === "fullscreen" && !this.frame.back;
    return make("header", {},
      make("div", { class: "bar" }, back ?? null, make("span", { class: "gap" }),
        grows ? this.#button("grow", strings.say("expand"), () => void bridge.grow("fullscreen"), "grow") : null,
        shrinks ? this.#button("shrink", strings.say("collapse"), () => void bridge.grow("inline"), "grow") : null),
      make("h1", { tabindex: "-1", dir: "auto" }, view.title),
      make("p", { class: "facts" }, ...facts.map((fact) => make("span", { dir: "auto" }, fact))),
      make("div", { class: "actions" },
        view.url ? this.#button("open", strings.say("source"), () => void bridge.open(view.url).catch(() => undefined), "source", true) : null,
        this.#button("copy", this.#said || strings.say("cite"), () => this.#copy(view), "cite", true),
        bridge.canSay ? this.#button("ask", strings.say("ask"), () => void ask(this.frame, view), "ask", true) : null),
      this.#byHand ? make("label", { class: "by-hand" }, strings.say("copyByHand"),
        make("textarea", { readonly: true, rows: "2", "data-key": "by-hand" }, citation(view, this.#at(), strings))) : null,
      this.#matches(view),
      this.#details(view));
  }

  #matches(view: DocumentView): HTMLElement | null {
    const strings = this.frame.strings();
    if (!view.query || view.hits.length === 0) return null;
    const step = (way: 1 | -1) => {
      const here = view.at;
      const target = way > 0 ? view.hits.find((hit) => hit > here) : view.hits.findLast((hit) => hit < here);
      if (target !== undefined) this.#jump(target);
    };
    const previous = this.#button("up", strings.say("previous"), () => step(-1), "previous");
    const next = this.#button("down", strings.say("next"), () => step(1), "next");
    previous.disabled = !view.hits.some((hit) => hit < view.at);
    next.disabled = !view.hits.some((hit) => hit > view.at);
    return make("div", { class: "matches" }, make("span", { dir: "auto" }, `“${view.query}”`),
      make("span", { class: "soft" }, strings.count("matches", view.hits.length)), previous, next);
  }

  #details(view: DocumentView): HTMLElement | null {
    const rows = view.fields.filter((field) => field.name && field.value);
    if (rows.length === 0) return null;
    const terms = rows.flatMap((field) => [make("dt", { dir: "auto" }, field.name.replaceAll("_", " ")), make("dd", { dir: "auto" }, field.value)]);
    return make("details", {}, make("summary", { "data-key": "details" }, this.frame.strings().say("details")), make("dl", {}, ...terms));
  }

  #outline(view: DocumentView): HTMLElement | null {
    if (view.outline.length < 2) return null;
    const strings = this.frame.strings();
    const items = view.outline.map((one, at) => {
      const current = this.#section(view) === at;
      const options = { type: "button", "data-key": `outline-${at}`, "aria-current": current ? "true" : undefined,
        class: `level-${Math.min(one.level, 3)}`, dir: "auto", onclick: () => this.#jump(one.passage) };
      return make("li", {}, make("button", options, one.title));
    });
    const open = this.frame.bridge.mode === "fullscreen" && window.innerWidth >= 800;
    return make("nav", { "aria-label": strings.say("outline") },
      make("details", { open, class: "outline" }, make("summary", { "data-key": "outline" }, strings.say("outline")), make("ol", { role: "list" }, ...items)));
  }

  /** The index of the last heading at or before the current passage. */
  #section(view: DocumentView): number {
    return view.outline.findLastIndex((one) => one.passage <= view.at);
  }

  #text(view: DocumentView): HTMLElement {
    const strings = this.frame.strings();
    const [from, to] = this.#shown;
    const shown = [...this.#passages.values()].filter(({ index }) => index >= from && index <= to).sort((a, b) => a.index - b.index);
    if (shown.length === 0) return make("div", { class: "text" }, state("find", strings.say("noText"), ""));
    let path = "";
    const { bridge } = this.frame;
    const sections = shown.map((passage) => {
      const news = passage.path !== path && passage.blocks[0]?.kind !== "heading";
      path = passage.path;
      const is = passage.index === view.at;
      return make("section", { id: `passage-${passage.index}`, class: is ? "passage here" : "passage", tabindex: "-1",
        "aria-current": is ? "location" : undefined, dir: "auto",
        "aria-label": strings.fill("place", { n: strings.number(passage.index + 1), all: strings.number(view.total) }) },
        news && path ? make("p", { class: "path" }, path) : null, 
        ...prose(passage.blocks, (address) => void bridge.open(address).catch(() => undefined)));
    });
    const more = (key: "earlier" | "later", act: () => void, is: boolean) => is
      ? make("button", { class: "button wide", type: "button", "data-key": key, disabled: this.#busy, onclick: act },
        icon(key === "earlier" ? "up" : "down"), strings.say(key)) : null;
    return make("div", { class: "text" }, more("earlier", () => this.#earlier(view), from > 0), ...sections,
      more("later", () => this.#later(view), to + 1 < view.total));
  }

  #earlier(view: DocumentView): void {
    const [from, to] = this.#shown;
    const first = Math.max(from - STEP, 0);
    this.#reveal(view, first, first, to);
  }

  #later(view: DocumentView): void {
    const [from, to] = this.#shown;
    this.#reveal(view, to + 1, from, Math.min(to + STEP, view.total - 1));
  }

  /** Shows more of the text. Loads the passages that are missing. */
  #reveal(view: DocumentView, first: number, from: number, to: number): void {
    const wanted = Array.from({ length: Math.min(to - from + 1, MAX_KEPT) }, (_, n) => from + n);
    const show = () => { this.#shown = this.#reach(from, to); };
    if (wanted.every((index) => this.#passages.has(index))) {
      show();
      return this.draw();
    }
    void this.#fetch({ id: view.id, query: view.query, first }, (more) => {
      for (const passage of more.passages) if (this.#passages.size < MAX_KEPT) this.#passages.set(passage.index, passage);
      show();
    });
  }

  /** Extends the shown range towards `from` and `to`, as far as there is no gap between loaded passages. */
  #reach(from: number, to: number): [number, number] {
    let [low, high] = this.#shown;
    while (low > from && this.#passages.has(low - 1)) low -= 1;
    while (high < to && this.#passages.has(high + 1)) high += 1;
    return [low, high];
  }

  #at(): Passage | undefined {
    return this.#view && this.#passages.get(this.#view.at);
  }

  /** Moves to another passage, and loads it if necessary. */
  #jump(passage: number): void {
    const view = this.#view;
    if (!view) return;
    const [from, to] = [Math.min(this.#shown[0], passage), Math.max(this.#shown[1], passage)];
    let known = from;
    while (known <= to && this.#passages.has(known)) known += 1;
    if (known > to) {
      this.#shown = [from, to];
      view.at = passage;
      this.draw();
      return this.#goTo(passage, true);
    }
    void this.#fetch({ id: view.id, query: view.query, passage }, (next) => {
      next.at = passage;
      this.#take(next);
    });
  }

  #goTo(passage: number, focus: boolean): void {
    const section = this.root.querySelector<HTMLElement>(`#passage-${passage}`);
    if (!section) return;
    if (focus) section.focus({ preventScroll: true });
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const target = section.querySelector("mark") ?? section;
    // Inline, scrolling would move the whole conversation, so only the user's own navigation scrolls.
    if (focus || this.frame.bridge.mode === "fullscreen") target.scrollIntoView({ block: focus ? "center" : "nearest", behavior: focus && !calm ? "smooth" : "auto" });
  }

  #copy(view: DocumentView): void {
    const strings = this.frame.strings();
    const done = copy(citation(view, this.#at(), strings));
    this.#said = done ? strings.say("copied") : "";
    this.#byHand = !done;
    this.draw();
    if (this.#byHand) this.root.querySelector<HTMLTextAreaElement>(".by-hand textarea")?.select();
    else window.setTimeout(() => { this.#said = ""; this.draw(); }, 2_000);
  }
}

/** Sends a question about a document to the conversation. */
export async function ask({ bridge, strings }: ReaderOptions, about: { id: string; title: string }): Promise<void> {
  // The title is untrusted text. It must not be long, have line breaks, or contain the quotation marks around it.
  const title = about.title.replace(/[\s“”„«»「」]+/g, " ").slice(0, MAX_TITLE_SAID).trim();
  await bridge.say(strings().fill("question", { title, id: about.id })).catch(() => undefined);
}

/** The citation of a passage: title, section, source, date and address. */
export function citation(view: DocumentView, passage: Passage | undefined, strings: Strings): string {
  const where = [passage?.path, view.source, view.date && strings.date(view.date)].filter(Boolean).join(", ");
  return [`${view.title}.`, where && `${where}.`, view.url].filter(Boolean).join(" ");
}

/** Copies a text with `execCommand`, which needs no permission. Returns false if the frame does not allow it. */
function copy(text: string): boolean {
  const field = make("textarea", { class: "hidden", "aria-hidden": "true" });
  field.value = text;
  const active = document.activeElement;
  document.body.append(field);
  field.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    // The frame does not allow copying.
  }
  field.remove();
  if (active instanceof HTMLElement) active.focus({ preventScroll: true });
  return done;
}
