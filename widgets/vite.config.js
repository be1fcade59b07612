// One widget's sources into one HTML file with everything in it. `WIDGET` names the widget, because a file that
// holds everything can share no chunk with another.
import { defineConfig } from "vite";

const widget = process.env.WIDGET ?? "results";

/** Puts the script and the style into the page, in place of the tags that would load them. */
function inlined() {
  return {
    name: "inlined",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = Object.values(bundle).find((file) => file.fileName.endsWith(".html"));
      if (page?.type !== "asset") return;
      let html = String(page.source);
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") {
          const tag = new RegExp(`\\s*<script[^>]*src="[^"]*${file.fileName}"[^>]*></script>`);
          // A script must not be able to end its own element, and it runs when the body is there.
          const code = file.code.trim().replaceAll("</script", "<\\/script");
          html = html.replace(tag, "").replace("</body>", () => `<script>${code}</script>\n</body>`);
        } else if (name.endsWith(".css")) {
          const tag = new RegExp(`\\s*<link[^>]*href="[^"]*${file.fileName}"[^>]*>`);
          html = html.replace(tag, () => `\n<style>${String(file.source).trim()}</style>`);
        } else continue;
        delete bundle[name];
      }
      page.source = html;
    },
  };
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [inlined()],
  build: {
    outDir: process.env.OUT ?? "dist",
    emptyOutDir: false,
    target: "es2022",
    // Hosts of widgets are evergreen; what is older would get colours that do not follow the theme of the host.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: false,
    assetsInlineLimit: 1_000_000,
    cssCodeSplit: false,
    rolldownOptions: {
      input: `${widget}.html`,
      output: { format: "iife", codeSplitting: false },
    },
  },
});
