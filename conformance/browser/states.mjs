// Test data: tool results for every state of the widgets, with speeches of an invented parliament.

/** A text as the server sends it, split where words match. */
export const spans = (text, words = ['ferries', 'ferry', 'winter']) =>
  text.split(new RegExp(`(${words.join('|')})`, 'i')).filter(Boolean).map((piece) => (words.includes(piece.toLowerCase()) ? { text: piece, mark: true } : { text: piece }));

/** A passage as the server lays it out. crates/docent/src/layout.rs does it for any text, this for the texts below. */
export const blocks = (text) => text.split('\n\n').map((part) => {
  const [, marks, title] = /^(#+) (.*)$/.exec(part) ?? [];
  if (marks) return { kind: 'heading', level: marks.length, spans: spans(title) };
  if (part.startsWith('> ')) return { kind: 'quote', spans: spans(part.slice(2)) };
  const lines = part.split('\n');
  const item = /^(?:- |(\d+)\. )/;
  if (!lines.every((line) => item.test(line))) return { kind: 'paragraph', spans: spans(part) };
  const items = lines.map((line) => ({ number: Number(item.exec(line)[1]) || undefined, spans: spans(line.replace(item, '')) }));
  return { kind: 'list', ordered: items[0].number !== undefined, items };
});

/** All constructs of Markdown in one passage. */
const RICH = [
  { kind: 'paragraph', spans: [{ text: 'The fare is set by ' }, { text: 'order', em: true }, { text: ', and ' }, { text: 'every ', strong: true }, { text: 'winter', strong: true, mark: true },
    { text: ' order', strong: true }, { text: ' is laid before the House with the code ' }, { text: 'FS-7', code: true }, { text: '; see ' },
    { text: 'the register', href: 'https://parliament.example/register' }, { text: '.' }] },
  { kind: 'table', rows: [['Crossing', 'Summer', 'Winter'], ['Skell – Far Skerries', '6.40', '7.10'], ['Skell – Ness', '3.20', '3.20']].map((row) => row.map((cell) => spans(cell))) },
  { kind: 'list', ordered: false, items: [{ spans: spans('Children pay half') }, { depth: 1, spans: spans('under five, nothing') }, { spans: spans('A ferry card is good for ten crossings') }] },
  { kind: 'code', spans: [{ text: 'fare = base * distance\nif season == "' }, { text: 'winter', mark: true }, { text: '":\n    fare += surcharge_for_every_crossing_between_november_and_march\n' }] },
];

const SPEECHES = [
  ['Three boats a week: the winter ferry timetable to Far Skerries', 'Aurel Whitmarron', 'Civic Labour', '2023-02-14',
    'From November the ferry will sail on Mondays, Wednesdays and Fridays alone. A winter of three boats a week is a winter in which nobody on Far Skerries sees a dentist.'],
  ['A second operator on the Pale Strait', 'Isaura Venn', 'Harbour', '2024-06-03',
    'Competition has never put a boat into the water by itself. The ferries that run at a loss in winter are the ones that the Strait cannot do without.'],
  ['Replacing the Gannet', 'Teodor Ashgrove', 'Greenway', '2024-10-22',
    'The Gannet is forty-one years old. We are told that a new ferry costs ninety-four million; we are not told what a winter without her would cost.'],
  ['Fares for children under twelve', 'Maris Oakhallow', 'Meadow Alliance', '2025-03-11',
    'A family of five pays more to cross the Strait by ferry than to fly to the mainland. That is not a fare; it is a wall.'],
  ['Estimates: harbour works at Skell', 'Aurel Whitmarron', 'Civic Labour', '2025-05-20',
    'Two of the three ferry berths will be closed for the winter, and the third was built for boats half the length.'],
  ['On the closing of the Ness road', 'Isaura Venn', 'Harbour', '2025-09-02',
    'When the road is under water the ferry is the road.'],
];

const card = ([title, speaker, party, date, text], n) => ({
  id: `speeches/${n}.md`, title, url: n === 3 ? '' : `https://parliament.example/speeches/${n}`, source: `speeches/${date}.md`, date,
  passage: n % 3, path: n % 2 ? 'Second reading' : '', excerpt: spans(text),
  fields: [{ name: 'speaker', value: speaker }, { name: 'party', value: party }, { name: 'chamber', value: n % 2 ? 'Senate' : 'House of Assembly' }],
});

const asked = { query: 'winter ferry', ids: [], filters: {}, from: '', to: '', sort: 'relevance', offset: 0 };

const bars = [3, 0, 2, 5, 1, 0, 4, 9, 6, 2, 3, 7].map((count, n) => {
  const year = 2023 + Math.floor(n / 4);
  const month = String((n % 4) * 3 + 1).padStart(2, '0');
  return { from: `${year}-${month}-01`, to: `${year}-${month}-28`, count };
});

export const view = (news = {}) => ({
  corpus: 'Parliament of Corrowin', asked, total: 42, cards: SPEECHES.map(card), next: 6, note: '',
  facets: [
    { field: 'party', values: [['Civic Labour', 17], ['Harbour', 12], ['Greenway', 8], ['Meadow Alliance', 4], ['Independent', 1]].map(([value, count]) => ({ value, count })) },
    { field: 'chamber', values: [{ value: 'House of Assembly', count: 29 }, { value: 'Senate', count: 13 }] },
    { field: 'topic_tags', values: [['ferries', 40], ['transport', 22], ['islands', 19], ['budget', 6]].map(([value, count]) => ({ value, count })) },
  ],
  histogram: { unit: 'month', bars }, ...news,
});

const words = (all) => all.map((span) => span.text).join('');

export const results = (news) => {
  const full = view(news);
  return {
    content: [{ type: 'text', text: 'The user sees the results.' }],
    structuredContent: { query: full.asked.query, total: full.total,
      results: full.cards.map(({ id, title, url, date, excerpt }) => ({ id, title, url, date, text: words(excerpt) })) },
    _meta: { 'docent/results': full },
  };
};

const PASSAGES = [
  ['Opening', '# Three boats a week\n\nMr Speaker, I rise to speak for nine hundred and twelve people who could not be here, because there was no boat.'],
  ['Opening › The timetable', '## The timetable\n\nFrom November the ferry will sail on Mondays, Wednesdays and Fridays alone. The department calls this the winter timetable. On Far Skerries it is called the gap.\n\nThree things are lost by it:\n\n- the Tuesday boat, which carries the post and the district nurse;\n- the Thursday boat, by which the school’s older children come home from Skell;\n- and any ferry at all when one of the three is cancelled for weather, which last winter was one in four.'],
  ['Opening › The figures', '## The figures\n\nThe saving is put at two hundred and eighteen thousand a year. I have asked three times how that figure was made and have been told three times that it is indicative.\n\n> An indicative saving is a saving that nobody has yet found.'],
  ['Opening › What we ask', '## What we ask\n\n1. That the Tuesday ferry be kept, at half its size if need be.\n2. That a cancelled winter sailing be made up within two days.\n3. That the department publish its figures before the House votes on them.'],
  ['Closing', '## Closing\n\nA ferry is not a kindness done to islands. It is the road, and nobody closes a road four days a week.'],
];

export const documentView = (news = {}) => ({
  id: 'speeches/0.md', title: SPEECHES[0][0], url: 'https://parliament.example/speeches/0', source: 'speeches/2023-02-14-whitmarron.md', date: '2023-02-14',
  query: 'winter ferry', total: 12, at: 1, hits: [1, 3, 4, 9],
  fields: [{ name: 'speaker', value: 'Aurel Whitmarron' }, { name: 'party', value: 'Civic Labour' }, { name: 'reference', value: 'House Debates, 14 February 2023, p. 112' }],
  outline: [[1, 'Three boats a week', 0], [2, 'The timetable', 1], [2, 'The figures', 2], [2, 'What we ask', 3], [2, 'Closing', 4]].map(([level, title, passage]) => ({ level, title, passage })),
  passages: PASSAGES.map(([path, text], index) => ({ index, path, blocks: blocks(text) })), ...news,
});

export const document = (news) => {
  const full = documentView(news);
  const here = full.passages.find((passage) => passage.index === full.at);
  return {
    content: [{ type: 'text', text: 'The user sees the document.' }],
    structuredContent: { id: full.id, title: full.title, url: full.url, date: full.date, passage: full.at, total: full.total, text: here ? PASSAGES[here.index]?.[1] ?? '' : '' },
    _meta: { 'docent/document': full },
  };
};

export const failed = (text) => ({ isError: true, content: [{ type: 'text', text }] });

/** Every state by its name: the widget, the tool's result, and what shows that the state is reached. */
export const STATES = {
  results: { widget: 'results', result: results(), ready: `document.querySelectorAll('.card').length >= 4` },
  'results-narrowed': { widget: 'results', result: results({ total: 9, next: null,
    asked: { ...asked, filters: { party: ['Harbour'] }, from: '2024-10-01', to: '2024-10-28' },
    note: 'Ignored `chambr:Senate`: there is no field `chambr`; write `chamber:Senate`.' }), ready: `document.querySelector('.chip[aria-pressed=true]')` },
  'results-ids': { widget: 'results', result: results({ asked: { ...asked, query: '', ids: ['a', 'b'] }, total: 2, cards: SPEECHES.slice(0, 2).map(card), facets: [], histogram: null, next: null }),
    ready: `document.querySelectorAll('.card').length === 2` },
  'results-empty': { widget: 'results', result: results({ total: 0, cards: [], facets: [], histogram: null, next: null, asked: { ...asked, query: 'submarine' } }), ready: `document.querySelector('.state')` },
  'results-error': { widget: 'results', args: { query: 'winter ferry' }, result: failed('the index is being mended\nhint: try again in a minute'), ready: `document.querySelector('[role=alert]')` },
  'results-loading': { widget: 'results', ready: `document.querySelector('.bones')` },
  document: { widget: 'document', result: document(), ready: `document.querySelector('.passage.here mark')` },
  'document-rich': { widget: 'document', result: document({ passages: [{ index: 1, path: 'Opening › Fares', blocks: RICH }] }), ready: `document.querySelector('.passage table')` },
  'document-plain': { widget: 'document', result: document({ query: '', hits: [], outline: [], fields: [], url: '', date: '', total: 1, at: 0, passages: documentView().passages.slice(0, 1) }), ready: `document.querySelector('.passage')` },
  'document-empty': { widget: 'document', result: document({ total: 0, at: 0, passages: [], outline: [], hits: [] }), ready: `document.querySelector('.state')` },
  'document-error': { widget: 'document', args: { id: 'speeches/9.md' }, result: failed('no document with id `speeches/9.md`\nhint: ids come from `search`; search again'), ready: `document.querySelector('[role=alert]')` },
  'document-loading': { widget: 'document', ready: `document.querySelector('.bones')` },
};

/** Injection payloads: every way to break out of text, with every way to run a script. */
export function attacks() {
  const runs = ['window.hurt=1', 'top.hurt=1', "fetch('/hurt')", "new Image().src='/hurt'", "import('/hurt')"];
  const ways = [
    (run) => `<script>${run}</script>`, (run) => `<img src=x onerror="${run}">`, (run) => `<svg onload="${run}">`,
    (run) => `<iframe srcdoc="<script>${run}</script>">`, (run) => `<body onload="${run}">`, (run) => `"><script>${run}</script>`,
    (run) => `'><img src=x onerror=${run}>`, (run) => `</script><script>${run}</script>`, (run) => `</style><script>${run}</script>`,
    (run) => `</textarea><script>${run}</script>`, (run) => `</title><svg/onload=${run}>`, (run) => `javascript:${run}`,
    (run) => `JaVaScRiPt:${run}//`, (run) => `java\tscript:${run}`, (run) => `data:text/html,<script>${run}</script>`,
    (run) => `<a href="javascript:${run}">x</a>`, (run) => `<math><mtext></form><form><mglyph><style></math><img src onerror=${run}>`,
    (run) => `<style>@import '/hurt';</style>${run}`, (run) => `<link rel=stylesheet href=/hurt>${run}`, (run) => `<meta http-equiv=refresh content="0;url=javascript:${run}">`,
    (run) => `<base href="/hurt/">${run}`, (run) => `<object data="javascript:${run}">`, (run) => `<embed src="javascript:${run}">`,
    (run) => `<details open ontoggle="${run}">`, (run) => `<input autofocus onfocus="${run}">`, (run) => `<video><source onerror="${run}"></video>`,
    (run) => `<marquee onstart="${run}">`, (run) => `\${${run}}`, (run) => `{{constructor.constructor("${run}")()}}`, (run) => `<%= ${run} %>`,
    (run) => `\`\`\`\n<script>${run}</script>\n\`\`\``, (run) => `# <img src=x onerror="${run}">`, (run) => `- [x](javascript:${run})`,
    (run) => `![x](/hurt)${run}`, (run) => `<!--><script>${run}</script>-->`, (run) => `<![CDATA[<script>${run}</script>]]>`,
    (run) => `\u2028<script>${run}</script>\u2029`, (run) => `\u202e<script>${run}</script>`, (run) => `%3Cscript%3E${run}%3C/script%3E`,
    (run) => `&lt;img src=x onerror=${run}&gt;<img src=x onerror=${run}>`,
  ];
  return runs.flatMap((run) => ways.map((way) => way(run)));
}

/** The same result with every text replaced by `text`, and with it as the name of every filter. */
export function poisoned(value, text) {
  if (typeof value === 'string') return text;
  if (Array.isArray(value)) return value.map((one) => (typeof one === 'number' ? one : poisoned(one, text)));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, name === 'filters' ? { [text]: [text] } : name === 'kind' ? one : poisoned(one, text)]));
}
