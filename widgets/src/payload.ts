// What the tools hand to the widgets, and the one place where it is read. The same shapes are written by
// crates/docent/src/tools/show_results.rs and show_document.rs.
//
// `structuredContent` is small and for the model too; what only a widget needs is in `_meta`. Nothing is taken on
// trust: a member that is missing or of another kind becomes an empty one, and every list has an end.

/** The members of `_meta`. */
export const RESULTS_META = "docent/results";
export const DOCUMENT_META = "docent/document";

/** A stretch of text with one look. */
export interface Span {
  text: string;
  mark: boolean;
  em: boolean;
  strong: boolean;
  code: boolean;
  /** An http or https address, or nothing. */
  href: string;
}

export interface Item {
  /** Its number, or nothing. */
  number: number;
  depth: number;
  spans: Span[];
}

/** One block of a text; crates/docent/src/layout.rs writes them. */
export type Block =
  | { kind: "heading"; level: number; spans: Span[] }
  | { kind: "paragraph" | "quote" | "code"; spans: Span[] }
  | { kind: "list"; ordered: boolean; items: Item[] }
  | { kind: "table"; rows: Span[][][] };

export interface FieldValue {
  name: string;
  value: string;
}

/** What `show_results` takes. */
export interface Asked {
  query: string;
  ids: string[];
  filters: Record<string, string[]>;
  from: string;
  to: string;
  sort: "relevance" | "newest" | "oldest";
  offset: number;
}

/** One document among results. */
export interface Card {
  id: string;
  title: string;
  /** An http or https address, or nothing. */
  url: string;
  source: string;
  /** `YYYY-MM-DD`, or nothing. */
  date: string;
  /** The place of the passage in its document. */
  passage: number;
  /** The headings above the passage. */
  path: string;
  excerpt: Span[];
  fields: FieldValue[];
}

export interface Facet {
  field: string;
  values: { value: string; count: number }[];
}

/** How many results there are in each stretch of time. */
export interface Histogram {
  unit: "year" | "month" | "day";
  bars: { from: string; to: string; count: number }[];
}

/** `_meta["docent/results"]`. */
export interface ResultsView {
  /** What the documents are called together. */
  corpus: string;
  asked: Asked;
  total: number;
  cards: Card[];
  facets: Facet[];
  histogram: Histogram | null;
  /** What to know about the search, such as a filter that was ignored. */
  note: string;
  /** The offset of the next page, or nothing. */
  next: number | null;
}

/** One passage of a document. */
export interface Passage {
  index: number;
  path: string;
  blocks: Block[];
}

/** `_meta["docent/document"]`. */
export interface DocumentView {
  id: string;
  title: string;
  url: string;
  source: string;
  date: string;
  query: string;
  fields: FieldValue[];
  /** How many passages the document has. */
  total: number;
  /** The passage at which it opens. */
  at: number;
  /** The passages that hold a match, in their order. */
  hits: number[];
  outline: { level: number; title: string; passage: number }[];
  /** Some passages, side by side. */
  passages: Passage[];
}

/** What a host hands over when a tool has been called. */
export interface ToolResult {
  structuredContent?: unknown;
  _meta?: unknown;
  content?: unknown;
  isError?: unknown;
}

const MAX_TEXT = 20_000;
const MAX_LINE = 2_000;
const MAX_LIST = 500;
const MAX_SPANS = 5_000;

type Json = Record<string, unknown>;

export const object = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
const line = (value: unknown): string => (typeof value === "string" ? value.slice(0, MAX_LINE) : "");
const number = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);
const whole = (value: unknown, most: number): number => Math.min(Math.max(Math.trunc(number(value)), 0), most);
const list = <T>(value: unknown, read: (item: unknown) => T, most = MAX_LIST): T[] =>
  Array.isArray(value) ? value.slice(0, most).map(read) : [];
const day = (value: unknown): string => (typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value) ? value : "");

function span(value: unknown): Span {
  const given = object(value);
  const text = typeof given.text === "string" ? given.text.slice(0, MAX_TEXT) : "";
  return {
    text, mark: given.mark === true, em: given.em === true, strong: given.strong === true, code: given.code === true,
    href: webAddress(given.href),
  };
}

const plain = (text: string): Span => span({ text });
const spans = (value: unknown): Span[] => list(value, span, MAX_SPANS);

function item(value: unknown): Item {
  const given = object(value);
  return { number: whole(given.number, 9_999), depth: whole(given.depth, 3), spans: spans(given.spans) };
}

function block(value: unknown): Block {
  const given = object(value);
  switch (given.kind) {
    case "heading": return { kind: "heading", level: Math.max(whole(given.level, 6), 1), spans: spans(given.spans) };
    case "list": return { kind: "list", ordered: given.ordered === true, items: list(given.items, item) };
    case "table": return { kind: "table", rows: list(given.rows, (row) => list(row, spans, 24)) };
    case "quote": case "code": return { kind: given.kind, spans: spans(given.spans) };
    default: return { kind: "paragraph", spans: spans(given.spans) };
  }
}

const fieldValue = (value: unknown): FieldValue => ({ name: line(object(value).name), value: line(object(value).value) });

/** An address that a person may be sent to, or nothing. */
export function webAddress(value: unknown): string {
  const text = line(value);
  try {
    const { protocol } = new URL(text);
    return protocol === "https:" || protocol === "http:" ? text : "";
  } catch {
    return "";
  }
}

function card(value: unknown): Card {
  const given = object(value);
  return {
    id: line(given.id),
    title: line(given.title) || line(given.id),
    url: webAddress(given.url),
    source: line(given.source),
    date: day(given.date),
    passage: number(given.passage),
    path: line(given.path),
    // Where `_meta` did not come through, what the model was told has the passage as a plain text.
    excerpt: typeof given.text === "string" ? [plain(line(given.text))] : spans(given.excerpt),
    fields: list(given.fields, fieldValue, 16),
  };
}

/** The arguments of `show_results`, as a host or the server tells them. */
export function readAsked(value: unknown): Asked {
  const given = object(value);
  const sort = given.sort === "newest" || given.sort === "oldest" ? given.sort : "relevance";
  const filters: Record<string, string[]> = Object.create(null) as Record<string, string[]>;
  for (const [name, values] of Object.entries(object(given.filters)).slice(0, 16)) filters[name] = list(values, line, 16);
  return {
    query: line(given.query), ids: list(given.ids, line, 20), filters, sort,
    from: day(given.from), to: day(given.to), offset: number(given.offset),
  };
}

function histogram(value: unknown): Histogram | null {
  const given = object(value);
  const bars = list(given.bars, (bar) => ({
    from: day(object(bar).from), to: day(object(bar).to), count: number(object(bar).count),
  }), 60).filter((bar) => bar.from && bar.to);
  const unit = given.unit === "month" || given.unit === "day" ? given.unit : "year";
  return bars.length > 1 ? { unit, bars } : null;
}

/** What a result of `show_results` shows; nothing when it is none. */
export function readResults(result: ToolResult): ResultsView | undefined {
  const meta = object(result._meta)[RESULTS_META];
  const given = object(meta ?? result.structuredContent);
  const cards = meta ? given.cards : given.results;
  if (!Array.isArray(cards)) return undefined;
  return {
    corpus: line(given.corpus),
    asked: readAsked(meta ? given.asked : given),
    total: number(given.total),
    cards: list(cards, card, 50),
    facets: list(given.facets, (facet) => ({
      field: line(object(facet).field),
      values: list(object(facet).values, (one) => ({ value: line(object(one).value), count: number(object(one).count) }), 50),
    }), 16).filter((facet) => facet.field && facet.values.length > 0),
    histogram: histogram(given.histogram),
    note: line(given.note),
    next: typeof given.next === "number" ? given.next : null,
  };
}

/** What a result of `show_document` shows; nothing when it is none. */
export function readDocument(result: ToolResult): DocumentView | undefined {
  const meta = object(result._meta)[DOCUMENT_META];
  const given = object(meta ?? result.structuredContent);
  if (typeof given.id !== "string" || !given.id) return undefined;
  const passages = list(given.passages, (passage) => ({
    index: number(object(passage).index), path: line(object(passage).path), blocks: list(object(passage).blocks, block),
  }), 200);
  if (!meta && typeof given.text === "string") {
    passages.push({ index: number(given.passage), path: line(given.path), blocks: [{ kind: "paragraph", spans: [plain(given.text)] }] });
  }
  return {
    id: line(given.id),
    title: line(given.title) || line(given.id),
    url: webAddress(given.url),
    source: line(given.source),
    date: day(given.date),
    query: line(given.query),
    fields: list(given.fields, fieldValue, 64),
    total: number(given.total),
    at: number(meta ? given.at : given.passage),
    hits: list(given.hits, number, MAX_LIST),
    outline: list(given.outline, (one) => ({
      level: Math.min(Math.max(number(object(one).level), 1), 6), title: line(object(one).title), passage: number(object(one).passage),
    }), 200),
    passages,
  };
}

/** What went wrong, in the server's words. */
export function readError(result: ToolResult): string | undefined {
  if (result.isError !== true) return undefined;
  const text = list(result.content, (item) => line(object(item).text), 4).join("\n");
  return text.replace(/^hint: /gm, "");
}
