// The input schema of a tool into a form, and what was filled in back into arguments.

function schemaKind(schema) {
  const options = schema.anyOf ?? schema.oneOf;
  if (options) {
    const real = options.filter((option) => option.type !== "null");
    if (real.length === 1) return schemaKind({ ...real[0], description: schema.description });
  }
  if (Array.isArray(schema.enum)) return "choice";
  if (schema.const !== undefined) return "json";
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  if (type === "array") return schema.items?.type === "string" && !schema.items.enum ? "lines" : "json";
  return { string: "text", integer: "number", number: "number", boolean: "switch" }[type] ?? "json";
}

function inner(schema) {
  const real = (schema.anyOf ?? schema.oneOf)?.filter((option) => option.type !== "null");
  return real?.length === 1 ? real[0] : schema;
}

// A field for one property: the element, and how to read it (`undefined` leaves the argument out).
function field(name, schema, needed, isFile) {
  const kind = isFile ? "json" : schemaKind(schema);
  const id = `argument-${name}`;
  const label = make("label", { for: id }, name, needed ? make("span", { class: "need", title: "required" }, " *") : "");
  let input, read;
  if (kind === "choice") {
    const values = inner(schema).enum.filter((value) => value !== null);
    input = make("select", { id }, ...(needed ? [] : [make("option", { value: "" }, "—")]),
      ...values.map((value, index) => make("option", { value: String(index) }, String(value))));
    if (needed) input.value = "0";
    const given = values.indexOf(schema.default);
    if (given >= 0) input.value = String(given);
    read = () => (input.value === "" ? undefined : values[Number(input.value)]);
  } else if (kind === "switch") {
    input = make("input", { id, type: "checkbox" });
    input.checked = schema.default === true;
    read = () => (input.checked || needed || schema.default === true ? input.checked : undefined);
  } else if (kind === "number") {
    input = make("input", { id, type: "number", step: "any" });
    if (schema.default != null) input.value = schema.default;
    read = () => (input.value === "" ? undefined : Number(input.value));
  } else if (kind === "text") {
    input = make("input", { id, type: "text", autocomplete: "off" });
    if (schema.default != null) input.value = schema.default;
    read = () => (input.value === "" && !needed ? undefined : input.value);
  } else {
    input = make("textarea", { id, spellcheck: "false", placeholder: kind === "lines" ? "one on each line" : "JSON" });
    if (isFile) input.value = JSON.stringify({ file_id: "file-preview", download_url: "https://files.example/preview.png", file_name: "preview.png" }, null, 1);
    else if (schema.default != null) input.value = kind === "lines" ? schema.default.join("\n") : JSON.stringify(schema.default);
    read = () => {
      const text = input.value.trim();
      if (text === "") return needed && kind === "lines" ? [] : undefined;
      if (kind === "lines") return text.split("\n").map((line) => line.trim()).filter(Boolean);
      try { return JSON.parse(text); } catch { throw new Error(`${name} is not JSON`); }
    };
  }
  const about = schema.description ? make("small", {}, schema.description) : "";
  const write = (value) => {
    if (kind === "switch") input.checked = Boolean(value);
    else if (kind === "choice") input.value = String(Math.max(0, inner(schema).enum.filter((one) => one !== null).indexOf(value)));
    else if (kind === "lines") input.value = [value].flat().join("\n");
    else input.value = kind === "json" ? JSON.stringify(value, null, 1) : value;
  };
  return { name, read, write, element: make("div", { class: "field" }, label, input, about) };
}

// The whole form of a tool. `read` gives the arguments or throws with what is wrong.
function toolForm(tool) {
  const properties = tool.inputSchema?.properties ?? {};
  const needed = tool.inputSchema?.required ?? [];
  const files = tool._meta?.["openai/fileParams"] ?? [];
  const fields = Object.entries(properties).map(([name, schema]) =>
    field(name, schema ?? {}, needed.includes(name), files.includes(name)));
  const raw = make("textarea", { id: "argument-raw", spellcheck: "false", "aria-label": "Arguments as JSON", rows: "8" });
  const rawField = make("div", { class: "field", hidden: "" }, make("label", { for: "argument-raw" }, "Arguments as JSON"), raw);
  let asJson = false;
  const fromFields = () => Object.fromEntries(fields.map((one) => [one.name, one.read()]).filter(([, value]) => value !== undefined));
  return {
    elements: [...fields.map((one) => one.element), rawField],
    read() {
      if (!asJson) return fromFields();
      try { return JSON.parse(raw.value || "{}"); } catch { throw new Error("the arguments are not JSON"); }
    },
    write(values) { for (const one of fields) if (values[one.name] !== undefined) one.write(values[one.name]); },
    toggle() {
      if (!asJson) { try { raw.value = JSON.stringify(fromFields(), null, 2); } catch { raw.value = "{}"; } }
      asJson = !asJson;
      rawField.hidden = !asJson;
      for (const one of fields) one.element.hidden = asJson;
      return asJson;
    },
  };
}
