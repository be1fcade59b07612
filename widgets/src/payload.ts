// Parses and validates the tool results that widgets show. crates/docent/src/tools/show_results.rs and show_document.rs
// write them.
//
// `structuredContent` is small, because the model reads it too. Data that only a widget needs is in `_meta`. Results
// are not trusted: a member that is missing or has the wrong type becomes an empty value, and the length of every list
// is limited.

/** Names of members of `_meta`. */
export const RESULTS_META = "docent/results";
export const DOCUMENT_META = "docent/document";

/** A range of text with one formatting. */
export interface Span {
  text: string;
  mark: boolean;
  em: boolean;
  strong: boolean;
  code: boolean;
  /** An http or https address, or an empty string. */
  href: string;
}

export interface Item {
  /** The number in an ordered list, or 0. */
  number: number;
  depth: number;
  spans: Span[];
}

/** A block of text, as crates/docent/src/layout.rs writes it. */
export type Block =
  | { kind: "heading"; level: number; spans: Span[] }
  | { kind: "paragraph" | "quote" | "code"; spans: Span[] }
  | { kind: "list"; ordered: boolean; items: Item[] }
  | { kind: "table"; rows: Span[][][] };

export interface FieldValue {
  name: string;
  value: string;
}

/** The arguments of `show_results`. */
export interface SearchArguments {
  query: string;
  ids: string[];
  filters: Record<string, string[]>;
  from: string;
  to: string;
  sort: "relevance" | "newest" | "oldest";
  offset: number;
}

/** A search result. */
export interface ResultCard {
  id: string;
  title: string;
  /** An http or https address, or an empty string. */
  url: string;
  source: string;
  /** `YYYY-MM-DD`, or an empty string. */
  date: string;
  /** The index of the passage in its document. */
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

/** The number of results in each period of time. */
export interface Histogram {
  unit: "year" | "month" | "day";
  bars: { from: string; to: string; count: number }[];
}

/** `_meta["docent/results"]`. */
export interface ResultsView {
  /** The title of the corpus. */
  corpus: string;
  asked: SearchArguments;
  total: number;
  cards: ResultCard[];
  facets: Facet[];
  histogram: Histogram | null;
  /** A note about the search, such as a filter that was ignored. */
  note: string;
  /** The offset of the next page, or null. */
  next: number | null;
}

/** A passage of a document. */
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
  /** The number of passages in the document. */
  total: number;
  /** The index of the passage at which the document opens. */
  at: number;
  /** The indexes of the passages with a match, in ascending order. */
  hits: number[];
  outline: { level: number; title: string; passage: number }[];
  /** A contiguous range of passages. */
  passages: Passage[];
}

/** The result of a tool call, before validation. */
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

/** Returns an http or https address, or an empty string for any other value. */
export function webAddress(value: unknown): string {
  const text = line(value);
  try {
    const { protocol } = new URL(text);
    return protocol === "https:" || protocol === "http:" ? text : "";
  } catch {
    return "";
  }
}

function card(value: unknown): ResultCard {
  const given = object(value);
  return {
    id: line(given.id),
    title: line(given.title) || line(given.id),
    url: webAddress(given.url),
    source: line(given.source),
    date: day(given.date),
    passage: number(given.passage),
    path: line(given.path),
    // If the host dropped `_meta`, `structuredContent` has the passage as plain text.
    excerpt: typeof given.text === "string" ? [plain(line(given.text))] : spans(given.excerpt),
    fields: list(given.fields, fieldValue, 16),
  };
}

/** Parses the arguments of `show_results`, from the host or from the server's result. */
export function readAsked(value: unknown): SearchArguments {
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

/** Parses a result of `show_results`. Returns undefined for any other result. */
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

/** Parses a result of `show_document`. Returns undefined for any other result. */
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

/** Returns the server's error message, if the result is an error. */
export function readError(result: ToolResult): string | undefined {
  if (result.isError !== true) return undefined;
  const text = list(result.content, (item) => line(object(item).text), 4).join("\n");
  return text.replace(/^hint: /gm, "");
}
