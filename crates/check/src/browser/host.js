// Mock host page: mounts the widget in a sandboxed frame of another origin, answers its requests, and reports its
// messages through the binding `docentHeard`. The program substitutes SETTING.
(() => {
  const setting = SETTING;
  const heard = (what) => docentHeard(String(what).slice(0, 100));
  const frame = document.createElement('iframe');
  frame.sandbox = 'allow-scripts allow-same-origin allow-forms';
  frame.style.cssText = 'border:0;width:640px;height:480px';
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: '2.0', ...message }, '*');
  const refused = { content: [{ type: 'text', text: 'no tool is called during a check' }], isError: true };
  const answers = {
    'ui/initialize': () => ({ protocolVersion: '2026-01-26', hostInfo: { name: setting.host, version: '1.0.0' },
      hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} }, hostContext: setting.context }),
    'tools/call': (params) => setting.results[params?.name] ?? (heard('tool not called'), refused),
    'ui/request-display-mode': () => ({ mode: 'inline' }),
  };
  addEventListener('message', ({ source, data }) => {
    if (source !== frame.contentWindow || typeof data !== 'object' || data === null) return;
    if (data.docentOpenai) return heard(data.uncalled ? 'tool not called' : 'window.openai');
    if (data.jsonrpc !== '2.0' || typeof data.method !== 'string') return;
    heard(data.method);
    if (data.id !== undefined) send({ id: data.id, result: answers[data.method]?.(data.params) ?? {} });
    if (data.method !== 'ui/notifications/initialized') return;
    send({ method: 'ui/notifications/tool-input', params: { arguments: setting.input } });
    if (setting.result) send({ method: 'ui/notifications/tool-result', params: setting.result });
  });
  frame.onload = () => heard('loaded');
  frame.src = setting.address;
  document.body.append(frame);
})();
