/** The query of the samples table, answered in the browser over exported columns. It means what the server's query means. */

export interface Columns {
  total: number;
  metrics: string[];
  rows: {
    id: string[];
    tags: string[][];
    metadata: Record<string, unknown>[] | null;
    repetitions: number[];
    passed: (number | null)[];
    unstable: boolean[];
    latency_ms: (number | null)[];
    output_chars: (number | null)[];
    scores: Record<string, ScoreColumns>;
    /** The rank among the samples that did not pass, the worst first. */
    worst: (number | null)[];
  };
}

export interface ScoreColumns {
  score: (number | null)[];
  passed: (number | null)[];
  cause: (string | null)[];
  stdev?: (number | null)[];
}

/** Searchable text by field, one lower-cased string a sample. */
export type Texts = Record<string, string[]>;

export const TEXT_FIELDS = ["id", "input", "output", "expected", "passages", "messages", "reasons"] as const;

const UNTAGGED = "(untagged)";
const TOLERANCE = 1e-9;

/** The positions of the samples that match, in the order that the query asks for. */
export function selectPositions(columns: Columns, query: URLSearchParams, texts: Texts | null): number[] {
  const tests = rowTests(columns, query, texts);
  const matched: number[] = [];
  for (let position = 0; position < columns.total; position++) {
    if (tests.every((test) => test(position))) matched.push(position);
  }
  return sortPositions(columns, matched, query.get("sort") ?? "position", query.get("order") === "desc");
}

type Test = (position: number) => boolean;

function rowTests(columns: Columns, query: URLSearchParams, texts: Texts | null): Test[] {
  const rows = columns.rows;
  const tests: Test[] = [];
  tests.push(...onlyTests(columns, query.getAll("only")));
  tests.push(...scoreTests(columns, query));
  const minMs = readNumber(query, "min_ms");
  const maxMs = readNumber(query, "max_ms");
  if (minMs !== null) tests.push((position) => (rows.latency_ms[position] ?? -Infinity) >= minMs);
  if (maxMs !== null) tests.push((position) => (rows.latency_ms[position] ?? Infinity) <= maxMs);
  const text = query.get("text")?.toLowerCase();
  if (text && texts) {
    const fields = query.get("in")?.split(",") ?? [...TEXT_FIELDS];
    tests.push((position) => fields.some((field) => texts[field]?.[position]?.includes(text)));
  }
  return tests;
}

/** The tests that `--only` means; the server reads the same language. Several of one kind, or of one key, are alternatives. */
function onlyTests(columns: Columns, expressions: string[]): Test[] {
  const rows = columns.rows;
  const alternatives = new Map<string, Test[]>();
  const add = (kind: string, test: Test) => alternatives.set(kind, [...(alternatives.get(kind) ?? []), test]);
  for (const expression of expressions) {
    const [kind, value] = cutAt(expression, ":");
    const [path, wanted] = cutAt(expression, "=");
    if (kind === "tag") add(kind, (position) => (value === UNTAGGED ? rows.tags[position].length === 0 : rows.tags[position].includes(value)));
    else if (kind === "id") add(kind, (position) => globPattern(value).test(rows.id[position]));
    else if (expression === "failed") add(expression, (position) => rows.passed[position] !== 1);
    else if (expression === "answered") add(expression, (position) => rows.output_chars[position] !== null);
    else if (path.startsWith("input.")) add(path, () => false);
    else {
      const key = path.replace(/^(meta|metadata)\./, "");
      add(`meta.${key}`, (position) => metadataTexts(rows.metadata?.[position]?.[key]).includes(wanted));
    }
  }
  return [...alternatives.values()].map((tests) => (position: number) => tests.some((test) => test(position)));
}

function cutAt(text: string, sign: string): [string, string] {
  const cut = text.indexOf(sign);
  return cut < 0 ? [text, ""] : [text.slice(0, cut), text.slice(cut + 1)];
}

/** A pattern such as `q*` or `q[0-3]` as a regular expression. */
function globPattern(glob: string): RegExp {
  const parts = glob.split(/(\[[^\]]+\])/).map((part, index) => (index % 2 ? part.replace(/^\[!/, "[^") : plainPattern(part)));
  return new RegExp(`^${parts.join("")}$`, "u");
}

function plainPattern(text: string): string {
  return text.replace(/[.+^${}()|\\[\]]/g, "\\$&").replace(/\*/g, "[^]*").replace(/\?/g, "[^]");
}

/** The tests that speak of one metric, or of all metrics where the query names none. */
function scoreTests(columns: Columns, query: URLSearchParams): Test[] {
  const name = query.get("metric");
  const scores = name ? columns.rows.scores[name] : null;
  if (name && !scores) return [() => false];
  const tests: Test[] = [];
  const min = readNumber(query, "min");
  const max = readNumber(query, "max");
  if (scores && min !== null) tests.push((position) => (scores.score[position] ?? -Infinity) >= min - TOLERANCE);
  if (scores && max !== null) tests.push((position) => (scores.score[position] ?? Infinity) <= max + TOLERANCE);
  const share = scores ? scores.passed : columns.rows.passed;
  const passed = query.get("passed");
  if (passed === "yes") tests.push((position) => share[position] === 1);
  if (passed === "no") tests.push((position) => share[position] !== null && share[position] !== 1);
  const unstable = query.get("unstable");
  const varies = (position: number) => share[position] !== null && share[position] !== 0 && share[position] !== 1;
  if (unstable === "yes") tests.push(varies);
  if (unstable === "no") tests.push((position) => share[position] !== null && !varies(position));
  const cause = query.get("cause");
  if (cause) {
    const all = scores ? [scores] : Object.values(columns.rows.scores);
    const wanted = (one: string | null) => (cause === "any" ? one !== null : one === cause);
    tests.push((position) => all.some((column) => wanted(column.cause[position])));
  }
  return tests;
}

function readNumber(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  return text === null || text === "" || Number.isNaN(Number(text)) ? null : Number(text);
}

/** A value of metadata as texts to compare with: of a list each entry. */
function metadataTexts(value: unknown): string[] {
  if (value === undefined) return [];
  return (Array.isArray(value) ? value : [value]).map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
}

/** Sorted by one column; undefined values come last in both orders, equal ones in the order of the dataset. */
function sortPositions(columns: Columns, positions: number[], sort: string, descending: boolean): number[] {
  const values = sortColumn(columns, sort);
  if (values === null) return descending ? positions.reverse() : positions;
  const sign = descending ? -1 : 1;
  return positions.sort((a, b) => {
    const [x, y] = [values[a], values[b]];
    if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1;
    return x < y ? -sign : x > y ? sign : a - b;
  });
}

function sortColumn(columns: Columns, sort: string): (number | string | null)[] | null {
  const rows = columns.rows;
  if (sort === "id") return rows.id.map(codePointOrder);
  if (sort === "latency") return rows.latency_ms;
  if (sort === "chars") return rows.output_chars;
  if (sort === "pass_rate") return rows.passed;
  if (sort === "worst") return rows.worst;
  return rows.scores[sort]?.score ?? null;
}

/** A key that compares as code points do. JavaScript compares UTF-16 units, which puts U+1F600 before U+FFFD. */
function codePointOrder(text: string): string {
  return text.replace(/[\ud800-\udbff][\udc00-\udfff]|[\ue000-\uffff]/g, (one) => (one.length === 2 ? `\uffff${one}` : one));
}
