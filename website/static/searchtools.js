"use strict";
// The search of the site: sections of pages, those first whose titles have the words that were asked for.

// Words for one thing: a question in one of them finds an answer in another.
const SYNONYMS = [
  ["share", "send", "pass", "publish", "export"],
  ["report", "result"],
  ["colleague", "team", "teammate", "someone", "others"],
  ["compare", "comparison", "versus", "vs", "diff", "difference"],
  ["prompt", "variant", "template"],
  ["choose", "choosing", "best", "better"],
  ["ab", "arm", "variant"],
  ["picture", "image", "photo", "vision", "screenshot"],
  ["conversation", "turn", "multiturn", "dialogue", "history"],
  ["key", "secret", "credential", "password"],
  ["cost", "price", "money", "budget", "expensive"],
  ["column", "field"],
  ["csv", "spreadsheet", "excel", "xlsx"],
  ["fail", "failure", "broken", "crash"],
  ["install", "pip", "setup"],
  ["github", "gitlab", "ci", "pipeline", "workflow", "action"],
  ["hallucination", "groundedness", "faithfulness"],
  ["attack", "jailbreak", "injection", "red", "safety"],
  ["typescript", "javascript", "node"],
  ["trust", "reliable", "validate", "validation"],
  ["parallel", "concurrency", "fast", "speed"],
  ["private", "privacy", "confidential"],
];
const STOP = new Set(
  "a an and are as at be by can could do does for from get has have how i if in is it its me my of on or our own should so that the there this to us use using want was we what when where which who why will with you your".split(" "),
);
const TITLE = 5;
const PAGE_TITLE = 4;
const TEXT = 3;
const AS_WRITTEN = 1.5;
const MOST_RESULTS = 20;

const ENDINGS = [[/ies$/, "y"], [/(ss|sh|ch)es$/, "$1"], [/([^s])s$/, "$1"], [/(ing|ed)$/, ""], [/e$/, ""]];
const stem = (word) => (word.length < 4 ? word : ENDINGS.reduce((rest, [ending, left]) => rest.replace(ending, left), word));
const split = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
const words = (text) => split(text).map(stem);
const askedWords = (query) => [...new Set(split(query).filter((word) => !STOP.has(word)).map(stem))];
const counts = (list) => list.reduce((table, word) => table.set(word, (table.get(word) || 0) + 1), new Map());

const ALIKE = new Map();
for (const group of SYNONYMS) for (const word of group) ALIKE.set(stem(word), group.map(stem));

// How well a table of words answers one word: itself, else a longer word or a synonym.
const occurrences = (table, word) => {
  const exact = table.get(word) || 0;
  if (exact) return exact;
  let near = 0;
  for (const other of ALIKE.get(word) || []) near = Math.max(near, 0.6 * (table.get(other) || 0));
  if (!near && word.length > 3) for (const [other, count] of table) if (other.startsWith(word)) near = Math.max(near, 0.5 * count);
  return near;
};

const Search = {
  entries: null,

  setIndex(entries) {
    Search.entries = entries.map((entry) => ({
      ...entry,
      titleWords: counts(words(entry.title)),
      pageWords: counts(words(entry.page)),
      textWords: counts(words(entry.text)),
    }));
    const lengths = Search.entries.map((entry) => entry.text.length);
    Search.usualLength = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    document.addEventListener("DOMContentLoaded", Search.show);
  },

  // The sections that answer, best first, one for each page.
  find(query) {
    const asked = askedWords(query);
    const rarity = asked.map((word) => {
      const holding = Search.entries.filter((entry) => occurrences(entry.textWords, word) || occurrences(entry.titleWords, word));
      return holding.length ? Math.log(1 + Search.entries.length / holding.length) : 0;
    });
    const asWritten = query.trim().toLowerCase();
    const scored = Search.entries.map((entry) => {
      const isThere = `${entry.title} ${entry.text}`.toLowerCase().includes(asWritten);
      return { entry, score: Search.score(entry, asked, rarity) * (isThere ? AS_WRITTEN : 1) };
    });
    scored.sort((one, other) => other.score - one.score || (one.entry.url < other.entry.url ? -1 : 1));

    const pages = new Set();
    return scored
      .filter(({ entry, score }) => {
        const page = entry.url.split("#")[0];
        const isFirst = score > 0 && !pages.has(page);
        if (isFirst) pages.add(page);
        return isFirst;
      })
      .slice(0, MOST_RESULTS)
      .map(({ entry }) => entry);
  },

  score(entry, asked, rarity) {
    let total = 0;
    let found = 0;
    asked.forEach((word, index) => {
      const count = occurrences(entry.textWords, word);
      const text = (TEXT * count) / (count + 0.5 + entry.text.length / Search.usualLength);
      const title = TITLE * Math.min(1, occurrences(entry.titleWords, word));
      const page = PAGE_TITLE * Math.min(1, occurrences(entry.pageWords, word));
      const points = text + Math.max(title, page);
      total += points * rarity[index];
      found += points > 0 ? rarity[index] : 0;
    });
    const possible = rarity.reduce((sum, value) => sum + value, 0);
    return possible ? total * (found / possible) ** 2 * entry.weight : 0;
  },

  show() {
    const query = new URLSearchParams(window.location.search).get("q") || "";
    document.querySelectorAll('input[name="q"]').forEach((input) => (input.value = query));
    if (!query) return;

    const results = Search.find(query);
    const box = document.getElementById("search-results");
    const status = box.appendChild(document.createElement("p"));
    status.className = "search-summary";
    status.textContent = results.length ? `${results.length} pages answer, best first.` : "Nothing was found. Try fewer or other words.";
    const list = box.appendChild(document.createElement("ul"));
    list.className = "search";
    for (const entry of results) Search.addResult(list, entry, query);
  },

  addResult(list, entry, query) {
    const item = list.appendChild(document.createElement("li"));
    const link = item.appendChild(document.createElement("a"));
    link.href = entry.url;
    link.textContent = entry.title === entry.page ? entry.title : `${entry.page}: ${entry.title}`;
    const context = item.appendChild(document.createElement("p"));
    context.className = "context";
    context.textContent = Search.excerpt(entry.text, query);
  },

  // The text around the first word that was asked for.
  excerpt(text, query) {
    const places = askedWords(query).map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
    const start = Math.max(0, (places.length ? Math.min(...places) : 0) - 60);
    const end = start + 240;
    const head = start ? "… " : "";
    const tail = end < text.length ? " …" : "";
    const part = text.slice(start, end).replace(head ? /^\S*\s/ : "", "").replace(tail ? /\s\S*$/ : "", "");
    return head + part + tail;
  },
};
