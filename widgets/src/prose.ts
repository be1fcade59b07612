// A passage of a document into paragraphs, headings, lists and code, its matches marked. Only the layout of Markdown is
// read, by lines; nothing in a text can become more than that.
import { make, marked } from "./dom";
import type { Marked } from "./payload";

interface Line {
  start: number;
  end: number;
}

function lines(text: string): Line[] {
  const all: Line[] = [];
  let start = 0;
  for (const piece of text.split("\n")) {
    all.push({ start, end: start + piece.length });
    start += piece.length + 1;
  }
  return all;
}

const HEADING = /^(#{1,6})[ \t]+\S/;
const ITEM = /^\s{0,6}(?:[-*+]|\d{1,3}[.)])[ \t]+/;
const QUOTE = /^>[ \t]?/;
const FENCE = /^\s{0,3}(?:```|~~~)/;

/** The elements that a passage is shown by. */
export function prose(body: Marked): HTMLElement[] {
  const { text } = body;
  const shown: HTMLElement[] = [];
  let paragraph: HTMLElement | undefined;
  let listing: HTMLElement | undefined;
  let code: HTMLElement | undefined;
  const close = () => { paragraph = listing = undefined; };
  for (const line of lines(text)) {
    const words = text.slice(line.start, line.end);
    if (FENCE.test(words)) {
      close();
      code = code ? undefined : make("pre", { tabindex: "0" });
      if (code) shown.push(code);
      continue;
    }
    if (code) {
      code.append(...marked(body, line.start, line.end), "\n");
      continue;
    }
    if (!words.trim()) { close(); continue; }
    const heading = HEADING.exec(words);
    if (heading) {
      close();
      const skip = /^#+[ \t]+/.exec(words)?.[0].length ?? 0;
      // The title of the document is the one heading above all of them.
      const level = Math.min((heading[1] ?? "").length + 1, 6) as 2 | 3 | 4 | 5 | 6;
      shown.push(make(`h${level}`, {}, ...marked(body, line.start + skip, line.end)));
      continue;
    }
    const item = ITEM.exec(words);
    if (item) {
      paragraph = undefined;
      if (!listing) shown.push(listing = make(/\d/.test(item[0]) ? "ol" : "ul"));
      // A list that begins with three is cited by its three.
      const count = /\d+/.exec(item[0])?.[0];
      listing.append(make("li", { value: count }, ...marked(body, line.start + item[0].length, line.end)));
      continue;
    }
    const quote = QUOTE.exec(words);
    if (!paragraph) {
      listing = undefined;
      paragraph = make(quote ? "blockquote" : "p");
      shown.push(paragraph);
    } else paragraph.append("\n");
    paragraph.append(...marked(body, line.start + (quote?.[0].length ?? 0), line.end));
  }
  return shown;
}
