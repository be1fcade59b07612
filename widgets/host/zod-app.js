// A small MCP App with all of zod in it, as most apps of others have. Zod's code names addresses that nothing loads, and
// probes `eval` inside `try`: `docent check` must report neither. It is bundled when the tests run and is no part of any
// widget.
import { App } from "@modelcontextprotocol/ext-apps";
import * as z from "zod";

const Board = z.object({
  columns: z.array(z.object({ id: z.string(), title: z.string(), count: z.number() })),
});
// The bundler leaves out what nothing uses, so everything is used.
window.zod = z;

const list = document.querySelector("main");
const show = (text) => {
  const line = document.createElement("p");
  line.textContent = text;
  list.replaceChildren(line);
};

const app = new App({ name: "zod", version: "1.0.0" }, {}, { autoResize: true });
app.addEventListener("toolresult", ({ structuredContent }) => {
  const board = Board.safeParse(structuredContent);
  show(board.success ? board.data.columns.map(({ title, count }) => `${title}: ${count}`).join(", ") : "No board");
});
app.connect();
