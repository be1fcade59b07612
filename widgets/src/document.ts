// The widget of `show_document`: only the reader.
import "./look.css";
import { Bridge } from "./bridge";
import { make } from "./dom";
import { Reader } from "./reader";
import { Strings } from "./strings";

let strings = new Strings(document.documentElement.lang);
const bridge = new Bridge("docent-document", {
  input: (args) => reader.asked(args),
  result: (result) => reader.show(result),
  cancelled: () => reader.stopped(),
  surroundings(now) {
    strings = new Strings(now.locale ?? document.documentElement.lang);
    reader.draw();
  },
});
const reader = new Reader({ bridge, strings: () => strings });

document.getElementById("app")?.append(make("main", {}, reader.root));
reader.draw();
void bridge.connect().then(() => reader.draw());
