// A test host built with the official library, so that widgets are not only tested with our own host. It is bundled
// when the tests run and is not part of any widget.
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

/** The requests of the widget, in order. */
window.asked = [];

window.mountOfficial = async ({ widget, context, args, result, answers }) => {
  const frame = document.createElement("iframe");
  frame.title = "widget";
  frame.setAttribute("sandbox", "allow-scripts");
  frame.style.cssText = "width: 100%; height: 900px; border: 0";
  const bridge = new AppBridge(null, { name: "official", version: "1" }, { openLinks: {}, serverTools: {}, updateModelContext: { text: {} }, message: { text: {} } }, { hostContext: context });
  const note = (method, answer) => async (params) => {
    window.asked.push({ method, params });
    return typeof answer === "function" ? answer(params) : answer;
  };
  bridge.oncalltool = note("tools/call", ({ name }) => answers[name]);
  bridge.onopenlink = note("ui/open-link", {});
  bridge.onmessage = note("ui/message", {});
  bridge.onupdatemodelcontext = note("ui/update-model-context", {});
  bridge.onrequestdisplaymode = note("ui/request-display-mode", ({ mode }) => ({ mode }));
  bridge.addEventListener("sizechange", (size) => window.asked.push({ method: "size", params: size }));
  bridge.addEventListener("initialized", () => {
    bridge.sendToolInput({ arguments: args });
    bridge.sendToolResult(result);
  });
  document.body.replaceChildren(frame);
  frame.src = `/widget/${widget}?speaks=standard`;
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  window.teardown = () => bridge.teardownResource({});
};
