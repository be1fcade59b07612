// Builds one widget into a self-contained HTML file. `WIDGET` names the widget: each is built alone, because
// self-contained files cannot share a chunk.
import { defineConfig } from "vite";

const widget = process.env.WIDGET ?? "results";

/** Replaces the tags that load the script and the style by their contents. */
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
          // Escape `</script`, which would end the element. The script runs at the end of the body, after its elements.
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
    // Hosts use current browsers. For older targets, the build would replace colors that follow the host's theme.
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
