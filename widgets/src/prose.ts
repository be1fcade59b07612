// Renders blocks and spans as DOM elements. The server has parsed them (crates/docent/src/layout.rs). Text is inserted
// as text nodes, and links are opened by the host.
import { make } from "./dom";
import type { Block, Span } from "./payload";

/** A callback that opens an address. */
export type Open = (address: string) => void;

/** Renders the blocks of a passage. */
export function prose(blocks: Block[], open: Open): HTMLElement[] {
  return blocks.map((block) => {
    switch (block.kind) {
      case "heading":
        // The title of the document is the only `h1`.
        return make(`h${Math.min(block.level + 1, 6) as 2 | 3 | 4 | 5 | 6}`, {}, ...spans(block.spans, open));
      case "quote":
        return make("blockquote", {}, ...spans(block.spans, open));
      case "code":
        return make("pre", { tabindex: "0" }, ...spans(block.spans, open));
      case "list":
        return make(block.ordered ? "ol" : "ul", {}, ...block.items.map((item) =>
          make("li", { value: item.number ? String(item.number) : undefined, class: item.depth ? `in-${item.depth}` : undefined },
            ...spans(item.spans, open))));
      case "table":
        return make("div", { class: "table", tabindex: "0" }, make("table", {}, ...block.rows.map((row, at) =>
          make("tr", {}, ...row.map((cell) => make(at ? "td" : "th", { dir: "auto" }, ...spans(cell, open)))))));
      default:
        return make("p", {}, ...spans(block.spans, open));
    }
  });
}

/** Renders spans with their formatting. Without `open`, links become plain text. */
export function spans(all: Span[], open?: Open): Node[] {
  return all.map((span) => {
    let node: Node = document.createTextNode(span.text);
    for (const look of ["mark", "code", "em", "strong"] as const) if (span[look]) node = make(look, {}, node);
    const { href } = span;
    if (!href || !open) return node;
    const follow = (event: Event) => { event.preventDefault(); open(href); };
    return make("a", { href, rel: "noopener noreferrer", title: href, onclick: follow }, node);
  });
}
