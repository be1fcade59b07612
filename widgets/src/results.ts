// The widget of `show_results`: result cards with their best passages, facets and a histogram of dates that narrow the
// search, and a reader for one document.
import "./look.css";
import { Bridge } from "./bridge";
import { icon, make, redraw, skeleton, state, type Icon } from "./dom";
import { readAsked, readError, readResults, type SearchArguments, type ResultCard, type ResultsView, type ToolResult } from "./payload";
import { spans } from "./prose";
import { Reader, ask } from "./reader";
import { Strings } from "./strings";

/** Limits of the inline view in a conversation, and of the facets and fields in all views. */
const INLINE_CARDS = 4;
const INLINE_FACETS = 2;
const INLINE_VALUES = 4;
const VALUES = 8;
const CARD_FIELDS = 4;

const root = document.getElementById("app") as HTMLElement;
const status = make("p", { class: "hidden", role: "status" });
const main = make("main");
root.append(status, main);

let strings = new Strings(document.documentElement.lang);
let view: ResultsView | undefined;
let problem: string | undefined;
let busy = true;
let turn = 0;
let reading: Reader | undefined;
let opened = "";
let again: SearchArguments | undefined;

const bridge = new Bridge("docent-results", {
  // Store the arguments, so that the user can retry if the call fails.
  input(args) {
    again ??= readAsked(args);
  },
  result: show,
  cancelled() {
    busy = false;
    problem = strings.say("stopped");
    draw();
  },
  surroundings(now) {
    strings = new Strings(now.locale ?? document.documentElement.lang);
    draw();
  },
});
const frame = { bridge, strings: () => strings, back };

function show(result: ToolResult): void {
  busy = false;
  const next = readResults(result);
  problem = readError(result) ?? (next ? undefined : "");
  if (next && problem === undefined) {
    view = next;
    status.textContent = strings.count("results", next.total);
  }
  draw();
}

/** Searches again. The old results stay visible until the new ones arrive. */
async function search(asked: SearchArguments, keep = false): Promise<void> {
  const mine = ++turn;
  const before = view;
  busy = true;
  again = asked;
  problem = undefined;
  draw();
  let result: ToolResult;
  try {
    result = await bridge.call("show_results", wire(asked));
  } catch (error) {
    result = { isError: true, content: [{ text: error instanceof Error ? error.message : "" }] };
  }
  // A later search supersedes this one, so its response is dropped.
  if (mine !== turn) return;
  show(result);
  if (keep && before && view && view !== before) {
    view.cards = [...before.cards, ...view.cards].slice(0, 200);
    view.asked.offset = 0;
    draw();
  }
}

/** The arguments of the tool call, without those that have their default. */
function wire(asked: SearchArguments): Record<string, unknown> {
  const filters = Object.fromEntries(Object.entries(asked.filters).filter(([, values]) => values.length > 0));
  const args: Record<string, unknown> = { query: asked.query };
  if (asked.ids.length > 0) args.ids = asked.ids;
  if (Object.keys(filters).length > 0) args.filters = filters;
  if (asked.from) args.from = asked.from;
  if (asked.to) args.to = asked.to;
  if (asked.sort !== "relevance") args.sort = asked.sort;
  if (asked.offset > 0) args.offset = asked.offset;
  return args;
}

function read(card: ResultCard): void {
  if (!view) return;
  opened = `read-${card.id}`;
  reading = new Reader(frame);
  const go = () => reading?.open(card.id, view?.asked.query ?? "", card.passage);
  if (bridge.canGrow && bridge.mode === "inline") void bridge.grow("fullscreen").then(go);
  else void go();
  draw();
}

function back(): void {
  reading = undefined;
  draw();
  for (const one of main.querySelectorAll<HTMLElement>("[data-key]")) if (one.dataset.key === opened) one.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && reading) back();
});

function draw(): void {
  main.setAttribute("aria-busy", String(busy));
  if (reading) {
    if (!main.contains(reading.root)) redraw(main, reading.root);
    return reading.draw();
  }
  if (!view) {
    return redraw(main, busy ? skeleton(strings.say("loading"), 3) : trouble());
  }
  const inline = bridge.mode === "inline";
  const narrowing = [histogram(view), ...facets(view, inline)].filter((part) => part !== null);
  redraw(main, head(view), problem === undefined ? null : trouble(),
    make("div", { class: narrowing.length > 0 ? "spread" : "spread alone" },
      narrowing.length > 0 ? make("section", { class: "narrow", "aria-label": strings.say("filters") }, ...narrowing) : null,
      make("div", { class: "found" }, view.note ? make("p", { class: "note", dir: "auto" }, view.note) : null, cards(view, inline))));
}

function trouble(): HTMLElement {
  const wanted = again;
  const retry = wanted && make("button", { class: "button", type: "button", "data-key": "retry", onclick: () => void search(wanted) }, strings.say("retry"));
  return make("div", { role: "alert" }, state("alert", strings.say("failed"), problem ?? "", retry));
}

function button(name: Icon, label: string, key: string, act: () => void): HTMLButtonElement {
  return make("button", { class: "button quiet round", type: "button", "data-key": key, "aria-label": label, title: label, onclick: act }, icon(name));
}

function head(now: ResultsView): HTMLElement {
  const grows = bridge.canGrow && bridge.mode === "inline";
  const shrinks = bridge.canGrow && bridge.mode === "fullscreen";
  const title = now.asked.query || now.corpus || strings.say("everything");
  return make("header", { class: "head" },
    make("div", { class: "gap" },
      now.asked.query && now.corpus ? make("p", { class: "corpus", dir: "auto" }, now.corpus) : null,
      make("h1", { dir: "auto" }, title)),
    make("span", { class: "count" }, strings.count("results", now.total)),
    grows ? button("grow", strings.say("expand"), "grow", () => void bridge.grow("fullscreen")) : null,
    shrinks ? button("shrink", strings.say("collapse"), "grow", () => void bridge.grow("inline")) : null);
}

function isNarrowed({ filters, from, to }: SearchArguments): boolean {
  return Boolean(from || to) || Object.values(filters).some((values) => values.length > 0);
}

/** The histogram of dates. A click on a bar restricts the search to its period, and a second click removes that. */
function histogram(now: ResultsView): HTMLElement | null {
  if (!now.histogram) return null;
  const { unit, bars } = now.histogram;
  const most = Math.max(...bars.map((bar) => bar.count), 1);
  const { asked } = now;
  const chosen = (bar: { from: string; to: string }) => Boolean(asked.from || asked.to)
    && (!asked.from || bar.to >= asked.from) && (!asked.to || bar.from <= asked.to);
  const columns = bars.map((bar, at) => {
    const is = chosen(bar);
    const label = `${strings.date(bar.from, unit)}: ${strings.count("results", bar.count)}`;
    const only = is && asked.from === bar.from && asked.to === bar.to;
    const fill = make("i");
    fill.style.height = `${bar.count === 0 ? 0 : Math.max((bar.count / most) * 100, 6)}%`;
    return make("button", {
      type: "button", class: "column", "data-key": `bar-${at}`, "aria-pressed": String(is), "aria-label": label, title: label,
      // The Tab key stops only once at the histogram; the arrow keys move between bars.
      tabindex: at === Math.max(bars.findIndex(chosen), 0) ? "0" : "-1",
      onclick: () => void search({ ...asked, offset: 0, from: only ? "" : bar.from, to: only ? "" : bar.to }),
    }, fill);
  });
  const first = bars[0];
  const last = bars.at(-1);
  return make("figure", { class: "histogram" },
    make("figcaption", { class: "hidden" }, strings.say("dates")),
    make("div", { class: "columns", role: "group", "aria-label": strings.say("dates"), onkeydown: walk }, ...columns),
    make("div", { class: "ends", "aria-hidden": "true" },
      make("span", {}, first ? strings.date(first.from, unit) : ""), make("span", {}, last ? strings.date(last.from, unit) : "")));
}

function walk(event: Event): void {
  const key = (event as KeyboardEvent).key;
  const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (step === undefined || !(event.target instanceof HTMLElement)) return;
  const next = step > 0 ? event.target.nextElementSibling : event.target.previousElementSibling;
  if (next instanceof HTMLElement) {
    event.preventDefault();
    next.focus();
  }
}

/** The facets, with the selected values first. */
function facets(now: ResultsView, inline: boolean): (HTMLElement | null)[] {
  const { asked } = now;
  const rows: (HTMLElement | null)[] = now.facets.slice(0, inline ? INLINE_FACETS : undefined).map((facet) => {
    const chosen = asked.filters[facet.field] ?? [];
    const counts = new Map(facet.values.map((one) => [one.value, one.count]));
    // Selected values stay visible even if no result has them, so that they can be deselected.
    const values = [...chosen, ...facet.values.map((one) => one.value).filter((value) => !chosen.includes(value))];
    const most = Math.max(inline ? INLINE_VALUES : VALUES, chosen.length);
    const chips = values.slice(0, most).map((value) => {
      const is = chosen.includes(value);
      const others = chosen.filter((one) => one !== value);
      const filters = { ...asked.filters, [facet.field]: is ? others : [...chosen, value] };
      const count = counts.get(value) ?? 0;
      return make("button", {
        class: "chip", type: "button", "aria-pressed": String(is), "data-key": `chip-${facet.field}-${value}`,
        onclick: () => void search({ ...asked, filters, offset: 0 }),
      }, make("span", { dir: "auto" }, value), make("span", { class: "soft" }, strings.number(count)), is ? icon("close") : null);
    });
    const name = facet.field.replaceAll("_", " ");
    return make("div", { class: "facet", role: "group", "aria-label": name }, make("span", { class: "label", dir: "auto" }, name), make("div", { class: "chips" }, ...chips));
  });
  if (isNarrowed(asked)) {
    const clear = () => void search({ ...asked, filters: {}, from: "", to: "", offset: 0 });
    rows.push(make("button", { class: "button", type: "button", "data-key": "clear", onclick: clear }, icon("close"), strings.say("clear")));
  }
  return rows;
}

function cards(now: ResultsView, inline: boolean): HTMLElement {
  if (now.cards.length === 0) return state("find", strings.say("nothing"), strings.say("nothingHint"));
  const folds = inline && bridge.canGrow;
  const shown = folds ? now.cards.slice(0, INLINE_CARDS) : now.cards;
  const list = make("ol", { class: "cards", role: "list" }, ...shown.map(card));
  const { next } = now;
  const isCut = folds && (now.cards.length > INLINE_CARDS || next !== null);
  const more = isCut
    ? make("button", { class: "button wide", type: "button", "data-key": "more", onclick: () => void bridge.grow("fullscreen") }, strings.say("more"))
    : next !== null
      ? make("button", { class: "button wide", type: "button", "data-key": "more", disabled: busy,
        onclick: () => void search({ ...now.asked, offset: next }, true) }, icon("down"), strings.say("more"))
      : null;
  return make("div", {}, list, more);
}

function card(one: ResultCard): HTMLElement {
  const facts = [one.source, one.date && strings.date(one.date)].filter(Boolean);
  const fields = one.fields.filter((field) => field.value).slice(0, CARD_FIELDS);
  return make("li", { class: "card" },
    make("h2", {}, make("button", { class: "title", type: "button", "data-key": `read-${one.id}`, dir: "auto", onclick: () => read(one) }, one.title)),
    make("p", { class: "facts" }, ...facts.map((fact) => make("span", { dir: "auto" }, fact))),
    one.excerpt.length ? make("blockquote", { class: "excerpt", dir: "auto" }, ...spans(one.excerpt)) : null,
    fields.length > 0 ? make("ul", { class: "tags", role: "list" }, ...fields.map((field) =>
      make("li", { title: field.name.replaceAll("_", " "), dir: "auto" }, field.value))) : null,
    make("div", { class: "actions" },
      make("button", { class: "button quiet", type: "button", "data-key": `open-reader-${one.id}`, onclick: () => read(one),
        "aria-label": `${strings.say("read")}: ${one.title}` }, strings.say("read")),
      one.url ? make("button", { class: "button quiet", type: "button", "data-key": `source-${one.id}`, "aria-label": `${strings.say("source")}: ${one.title}`,
        onclick: () => void bridge.open(one.url).catch(() => undefined) }, icon("open"), strings.say("source")) : null,
      bridge.canSay ? make("button", { class: "button quiet", type: "button", "data-key": `ask-${one.id}`, "aria-label": `${strings.say("ask")}: ${one.title}`,
        onclick: () => void ask(frame, one) }, icon("ask"), strings.say("ask")) : null));
}

draw();
void bridge.connect().then(draw);
