// All texts of the widgets in six languages, and the formatting of dates and numbers.

interface Translation {
  loading: string;
  stopped: string;
  /** The plural forms of the language. `#` stands for the number. */
  results: Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };
  matches: Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };
  nothing: string;
  nothingHint: string;
  noText: string;
  failed: string;
  retry: string;
  read: string;
  source: string;
  ask: string;
  /** The message of the button `ask`, with the placeholders `{title}` and `{id}`. */
  question: string;
  expand: string;
  collapse: string;
  back: string;
  clear: string;
  dates: string;
  filters: string;
  more: string;
  outline: string;
  earlier: string;
  later: string;
  previous: string;
  next: string;
  cite: string;
  copied: string;
  copyByHand: string;
  details: string;
  /** The position of a passage, with the placeholders `{n}` and `{all}`. */
  place: string;
  everything: string;
}

const WORDS: Record<string, Translation> = {
  en: {
    loading: "Searching…", stopped: "Stopped.", results: { one: "# result", other: "# results" },
    matches: { one: "# match", other: "# matches" }, nothing: "Nothing found",
    nothingHint: "Try other or fewer words, or fewer filters.", noText: "This document has no text.",
    failed: "That did not work", retry: "Try again", read: "Read", source: "Open source", ask: "Ask about this",
    question: "Tell me more about the document “{title}” (id: {id}).", expand: "Open full view", collapse: "Close full view",
    back: "Back to results", clear: "Clear filters", dates: "Results over time", filters: "Filters", more: "More results",
    outline: "Contents", earlier: "Earlier passages", later: "Later passages", previous: "Previous match", next: "Next match",
    cite: "Copy citation", copied: "Copied", copyByHand: "Copy this citation:", details: "Details",
    place: "Passage {n} of {all}", everything: "All documents",
  },
  de: {
    loading: "Suche läuft …", stopped: "Abgebrochen.", results: { one: "# Treffer", other: "# Treffer" },
    matches: { one: "# Fundstelle", other: "# Fundstellen" }, nothing: "Nichts gefunden",
    nothingHint: "Versuchen Sie andere oder weniger Wörter oder weniger Filter.", noText: "Dieses Dokument hat keinen Text.",
    failed: "Das ging nicht", retry: "Noch einmal", read: "Lesen", source: "Quelle öffnen", ask: "Dazu fragen",
    question: "Erzähle mir mehr über das Dokument „{title}“ (id: {id}).", expand: "Groß anzeigen", collapse: "Verkleinern",
    back: "Zurück zu den Treffern", clear: "Filter aufheben", dates: "Treffer im Lauf der Zeit", filters: "Filter", more: "Weitere Treffer",
    outline: "Inhalt", earlier: "Frühere Abschnitte", later: "Spätere Abschnitte", previous: "Vorige Fundstelle", next: "Nächste Fundstelle",
    cite: "Zitat kopieren", copied: "Kopiert", copyByHand: "Kopieren Sie dieses Zitat:", details: "Einzelheiten",
    place: "Abschnitt {n} von {all}", everything: "Alle Dokumente",
  },
  fr: {
    loading: "Recherche…", stopped: "Interrompu.", results: { one: "# résultat", other: "# résultats" },
    matches: { one: "# occurrence", other: "# occurrences" }, nothing: "Aucun résultat",
    nothingHint: "Essayez d’autres mots, moins de mots ou moins de filtres.", noText: "Ce document n’a pas de texte.",
    failed: "Cela n’a pas fonctionné", retry: "Réessayer", read: "Lire", source: "Ouvrir la source", ask: "Poser une question",
    question: "Dis-m’en plus sur le document « {title} » (id : {id}).", expand: "Agrandir", collapse: "Réduire",
    back: "Retour aux résultats", clear: "Effacer les filtres", dates: "Résultats dans le temps", filters: "Filtres", more: "Plus de résultats",
    outline: "Sommaire", earlier: "Passages précédents", later: "Passages suivants", previous: "Occurrence précédente", next: "Occurrence suivante",
    cite: "Copier la citation", copied: "Copié", copyByHand: "Copiez cette citation :", details: "Détails",
    place: "Passage {n} sur {all}", everything: "Tous les documents",
  },
  es: {
    loading: "Buscando…", stopped: "Detenido.", results: { one: "# resultado", other: "# resultados" },
    matches: { one: "# coincidencia", other: "# coincidencias" }, nothing: "No se encontró nada",
    nothingHint: "Pruebe otras palabras, menos palabras o menos filtros.", noText: "Este documento no tiene texto.",
    failed: "No ha funcionado", retry: "Reintentar", read: "Leer", source: "Abrir la fuente", ask: "Preguntar sobre esto",
    question: "Cuéntame más sobre el documento «{title}» (id: {id}).", expand: "Ampliar", collapse: "Reducir",
    back: "Volver a los resultados", clear: "Quitar filtros", dates: "Resultados en el tiempo", filters: "Filtros", more: "Más resultados",
    outline: "Contenido", earlier: "Pasajes anteriores", later: "Pasajes siguientes", previous: "Coincidencia anterior", next: "Coincidencia siguiente",
    cite: "Copiar la cita", copied: "Copiado", copyByHand: "Copie esta cita:", details: "Detalles",
    place: "Pasaje {n} de {all}", everything: "Todos los documentos",
  },
  ja: {
    loading: "検索中…", stopped: "中止しました。", results: { other: "#件の結果" }, matches: { other: "#件の一致" },
    nothing: "見つかりませんでした", nothingHint: "別の言葉や、より少ない言葉・絞り込みをお試しください。", noText: "この文書には本文がありません。",
    failed: "うまくいきませんでした", retry: "再試行", read: "読む", source: "出典を開く", ask: "これについて質問",
    question: "文書「{title}」（id: {id}）について詳しく教えてください。", expand: "大きく表示", collapse: "元の大きさに戻す",
    back: "結果に戻る", clear: "絞り込みを解除", dates: "期間ごとの結果", filters: "絞り込み", more: "さらに表示",
    outline: "目次", earlier: "前の部分", later: "続きの部分", previous: "前の一致", next: "次の一致",
    cite: "引用をコピー", copied: "コピーしました", copyByHand: "この引用をコピーしてください：", details: "詳細",
    place: "{all}件中{n}番目の部分", everything: "すべての文書",
  },
  zh: {
    loading: "正在搜索…", stopped: "已停止。", results: { other: "# 条结果" }, matches: { other: "# 处匹配" },
    nothing: "没有找到内容", nothingHint: "请尝试其他或更少的词，或减少筛选条件。", noText: "此文档没有文本。",
    failed: "操作未成功", retry: "重试", read: "阅读", source: "打开来源", ask: "就此提问",
    question: "请进一步介绍文档“{title}”（id：{id}）。", expand: "展开查看", collapse: "收起",
    back: "返回结果", clear: "清除筛选", dates: "结果的时间分布", filters: "筛选", more: "更多结果",
    outline: "目录", earlier: "前面的段落", later: "后面的段落", previous: "上一处匹配", next: "下一处匹配",
    cite: "复制引文", copied: "已复制", copyByHand: "请复制此引文：", details: "详细信息",
    place: "第 {n} 段，共 {all} 段", everything: "全部文档",
  },
};

type Plain = { [K in keyof Translation]: Translation[K] extends string ? K : never }[keyof Translation];

export class Strings {
  #words: Translation;
  #locale: string;

  constructor(locale: unknown = "en") {
    const wished = typeof locale === "string" ? locale : "en";
    try {
      this.#locale = Intl.getCanonicalLocales(wished)[0] ?? "en";
    } catch {
      this.#locale = "en";
    }
    const language = this.#locale.split("-")[0] ?? "en";
    const words = Object.hasOwn(WORDS, language) ? WORDS[language] : undefined;
    // Without a translation everything is English, including the dates.
    if (!words) this.#locale = "en";
    this.#words = words ?? (WORDS.en as Translation);
  }

  say(key: Plain): string {
    return this.#words[key];
  }

  /** Returns a text with its placeholders replaced. */
  fill(key: Plain, values: Record<string, string>): string {
    return this.#words[key].replace(/\{(\w+)\}/g, (place, name: string) => values[name] ?? place);
  }

  count(key: "results" | "matches", count: number): string {
    const forms = this.#words[key];
    const rule = new Intl.PluralRules(this.#locale).select(count);
    return (forms[rule] ?? forms.other).replace("#", this.number(count));
  }

  number(value: number): string {
    return new Intl.NumberFormat(this.#locale).format(value);
  }

  /** Formats a calendar date. It is the same in every time zone. */
  date(day: string, unit: "day" | "month" | "year" = "day"): string {
    const at = new Date(`${day}T00:00:00Z`);
    if (Number.isNaN(at.getTime())) return day;
    const style: Intl.DateTimeFormatOptions = { year: "numeric", timeZone: "UTC" };
    if (unit !== "year") style.month = "short";
    if (unit === "day") style.day = "numeric";
    return new Intl.DateTimeFormat(this.#locale, style).format(at);
  }
}
