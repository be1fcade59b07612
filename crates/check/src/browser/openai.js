// Mock of `window.openai`, injected into every frame where the host is ChatGPT. It reports the first access.
(() => {
  if (window === window.top) return;
  const setting = SETTING;
  const later = (value) => () => Promise.resolve(value);
  const openai = {
    ...setting.context, toolInput: setting.input, toolOutput: setting.result?.structuredContent ?? null,
    toolResponseMetadata: setting.result ? { status: 'completed', mcp_tool_result: setting.result } : null,
    widgetState: null, maxHeight: 480, setWidgetState: later(undefined), sendFollowUpMessage: later({}), openExternal: later({}),
    notifyIntrinsicHeight: later(undefined), requestDisplayMode: later({ mode: 'inline' }), requestClose: later({}),
    callTool: (name) => {
      if (!setting.results[name]) window.parent.postMessage({ docentOpenai: true, uncalled: true }, '*');
      return Promise.resolve(setting.results[name] ?? { content: [], isError: true });
    },
  };
  let reported = false;
  Object.defineProperty(window, 'openai', { configurable: true, get() {
    if (!reported) { reported = true; window.parent.postMessage({ docentOpenai: true }, '*'); }
    return openai;
  } });
})();
