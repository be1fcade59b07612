// Runs first inside the widget's frame: tells the preview what the sandbox refused, and plays
// `window.openai` where the host is ChatGPT. Its state is put in before it is sent.
(() => {
  const state = STATE;
  const parent = window.parent;
  const tell = (docent, detail) => parent.postMessage({ docent, ...detail }, "*");
  document.addEventListener("securitypolicyviolation", (event) =>
    tell("violation", { directive: event.effectiveDirective, blocked: event.blockedURI, sample: event.sample }));
  window.addEventListener("error", (event) => tell("error", { message: String(event.message) }));
  window.addEventListener("unhandledrejection", (event) => tell("error", { message: String(event.reason) }));
  if (!state) return;
  let last = 0;
  const waiting = new Map();
  const call = (method) => (...args) => new Promise((resolve, reject) => {
    waiting.set(++last, { resolve, reject });
    tell("openai", { id: last, method, args });
  });
  window.openai = {
    ...state,
    callTool: call("callTool"), sendFollowUpMessage: call("sendFollowUpMessage"), requestDisplayMode: call("requestDisplayMode"),
    openExternal: (args) => tell("openai", { method: "openExternal", args: [args] }),
    notifyIntrinsicHeight: (height) => tell("openai", { method: "notifyIntrinsicHeight", args: [height] }),
    setWidgetState: (value) => { window.openai.widgetState = value; tell("openai", { method: "setWidgetState", args: [value] }); },
    requestClose: call("requestClose"),
  };
  window.addEventListener("message", (event) => {
    if (event.source !== parent || !event.data) return;
    if (event.data.docent === "globals") {
      event.stopImmediatePropagation();
      Object.assign(window.openai, event.data.globals);
      if (event.data.globals.locale) document.documentElement.lang = event.data.globals.locale;
      window.dispatchEvent(new CustomEvent("openai:set_globals", { detail: { globals: event.data.globals } }));
    } else if (event.data.docent === "answer") {
      event.stopImmediatePropagation();
      const waiter = waiting.get(event.data.id);
      waiting.delete(event.data.id);
      if (waiter) event.data.error ? waiter.reject(new Error(event.data.error)) : waiter.resolve(event.data.result);
    }
  });
})();
