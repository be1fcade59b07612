// Helpers that create DOM elements. Text from outside is only inserted as text nodes, never as HTML.

type Child = Node | string | null | undefined | false;
type Options = Record<string, string | boolean | ((event: Event) => void) | undefined>;

/** Creates an element with attributes, event listeners (`onclick`) and children. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, options: Options = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (typeof value === "string") element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const PATHS = {
  open: "M9 3h4v4M13 3 7.5 8.5M11.5 9.5v2.8a.7.7 0 0 1-.7.7H3.7a.7.7 0 0 1-.7-.7V5.2a.7.7 0 0 1 .7-.7h2.8",
  ask: "M3 3.7A.7.7 0 0 1 3.7 3h8.6a.7.7 0 0 1 .7.7v6.1a.7.7 0 0 1-.7.7H7L4.2 13v-2.5h-.5a.7.7 0 0 1-.7-.7z",
  grow: "M9.5 3H13v3.5M6.5 13H3V9.5M13 3 9 7M3 13l4-4",
  shrink: "M13 6.5H9.5V3M3 9.5h3.5V13M9.5 6.5 13.5 2.5M6.5 9.5l-4 4",
  back: "M9.5 3.5 5 8l4.5 4.5",
  copy: "M5.5 5.5V3.7a.7.7 0 0 1 .7-.7h6.1a.7.7 0 0 1 .7.7v6.1a.7.7 0 0 1-.7.7h-1.8M3.7 5.5h6.1a.7.7 0 0 1 .7.7v6.1a.7.7 0 0 1-.7.7H3.7a.7.7 0 0 1-.7-.7V6.2a.7.7 0 0 1 .7-.7z",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  close: "M4 4l8 8M12 4l-8 8",
  find: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5 13.5 13.5",
  alert: "M8 5v3.5M8 11v.01M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12z",
} as const;

export type Icon = keyof typeof PATHS;

export function icon(name: Icon): SVGSVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", width: "16", height: "16", "aria-hidden": "true", class: "icon" })) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** Replaces the children of an element. The focus moves to the new element with the same `data-key`. */
export function redraw(root: HTMLElement, ...children: Child[]): void {
  const active = document.activeElement;
  const key = active instanceof HTMLElement ? active.dataset.key : undefined;
  root.replaceChildren(...children.filter((child) => child !== null && child !== undefined && child !== false));
  if (!key) return;
  for (const one of root.querySelectorAll<HTMLElement>("[data-key]")) {
    if (one.dataset.key === key) return one.focus({ preventScroll: true });
  }
}

/** Creates a placeholder for an empty or failed view. */
export function state(name: Icon, title: string, text: string, ...children: Child[]): HTMLElement {
  return make("div", { class: "state" }, icon(name), make("p", { class: "state-title" }, title), text ? make("p", {}, text) : null, ...children);
}

/** Creates a skeleton: gray lines in place of content that is being loaded. */
export function skeleton(label: string, rows: number): HTMLElement {
  const lines = Array.from({ length: rows }, () =>
    make("div", { class: "bones", "aria-hidden": "true" }, make("i"), make("i"), make("i")));
  return make("div", { role: "status", "aria-busy": "true" }, make("p", { class: "hidden" }, label), ...lines);
}
