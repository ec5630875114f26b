/** Answers of the API from the files of a static export. Each file calls `deemsterData(KEY, VALUE)`. */

import { type GridColumns, selectGrid, shownVariants } from "./grid_query";
import { type Columns, selectPositions, type Texts } from "./sample_query";
import type { CompareDetail, CompareRow, CompareSamplePage, Comparison, Execution, GridPage, GridRow, RunSide, SampleDetail, SamplePage, SampleRow } from "./types";

const SAMPLES_A_FILE = 200;
const GRID_ROWS_A_FILE = 50;

declare global {
  interface Window {
    DEEMSTER_EXPORT?: { experiment: string | null };
    deemsterData?: (key: string, value: unknown) => void;
  }
}

export function isExport(): boolean {
  return window.DEEMSTER_EXPORT !== undefined;
}

const values = new Map<string, unknown>();
const pending = new Map<string, Promise<unknown>>();

/** The file of a key: each segment percent-encoded, so that every metric name is a file name. */
export function fileOfKey(key: string): string {
  const encode = (segment: string) =>
    encodeURIComponent(segment).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`).replaceAll("%2C", ",");
  return `data/${key.split("/").map(encode).join("/")}.js`;
}

function loadKey<T>(key: string): Promise<T> {
  let promise = pending.get(key);
  if (!promise) {
    promise = new Promise((resolve, reject) => {
      window.deemsterData = (name, value) => values.set(name, value);
      const script = document.createElement("script");
      script.src = fileOfKey(key).replaceAll("%", "%25");
      script.onload = () => {
        script.remove();
        if (values.has(key)) resolve(values.get(key));
        else reject(new Error("This export does not hold what the page asks for."));
      };
      script.onerror = () => reject(new Error("This export does not hold what the page asks for."));
      document.head.append(script);
    });
    pending.set(key, promise);
  }
  return promise as Promise<T>;
}

/** Answer a path of the API, such as `runs/ID/samples?only=tag:policy`. */
export async function answerFromExport(request: string): Promise<unknown> {
  const [path, search = ""] = request.split("?", 2);
  const query = new URLSearchParams(search);
  const segments = path.split("/").map(decodeURIComponent);
  if (segments[0] === "runs" && segments[2] === "samples") {
    return segments.length > 3 ? oneSample(segments[1], Number(segments[3]), query) : samplePage(segments[1], query);
  }
  if (segments[0] === "runs" && segments[2] === "score-length") return loadKey(`runs/${segments[1]}/score-length/${query.get("metric")}`);
  if (segments[0] === "runs" && segments.length === 1) return filterRuns(query);
  if (segments[0] === "experiments" && segments[2] === "samples") return gridPage(segments[1], query);
  if (segments[0] === "compare") return answerComparison(segments, query);
  return loadKey(segments.join("/"));
}

async function filterRuns(query: URLSearchParams): Promise<unknown> {
  const all = await loadKey<{ total: number; runs: Record<string, unknown>[] }>("runs");
  const text = query.get("q")?.toLowerCase() ?? "";
  const runs = all.runs.filter(
    (run) =>
      ["kind", "suite", "dataset", "label"].every((name) => !query.get(name) || run[name] === query.get(name)) &&
      (!query.get("status") || [run.status, run.gate].includes(query.get("status"))) &&
      ["id", "suite", "dataset", "label", "target"].some((name) => String(run[name] ?? "").toLowerCase().includes(text)),
  );
  return { total: runs.length, lines: new Set(runs.map((run) => run.experiment ?? run)).size, runs };
}

async function selected(run: string, query: URLSearchParams): Promise<{ columns: Columns; positions: number[] }> {
  const columns = await loadKey<Columns>(`runs/${run}/columns`);
  const texts = query.get("text") ? await loadKey<Texts>(`runs/${run}/texts`) : null;
  return { columns, positions: selectPositions(columns, query, texts) };
}

async function samplePage(run: string, query: URLSearchParams): Promise<SamplePage> {
  const { columns, positions } = await selected(run, query);
  const offset = Number(query.get("offset") ?? 0);
  const limit = Number(query.get("limit") ?? 100);
  const rows = await Promise.all(positions.slice(offset, offset + limit).map((position) => rowAt(run, columns, position)));
  return { total: columns.total, matched: positions.length, offset, rows };
}

const fileAt = (position: number) => Math.floor(position / SAMPLES_A_FILE);

async function rowAt(run: string, columns: Columns, position: number): Promise<SampleRow> {
  const { rows } = columns;
  const previews = await loadKey<SampleRow["preview"][]>(`runs/${run}/previews/${fileAt(position)}`);
  const scores = Object.fromEntries(
    columns.metrics.map((name) => {
      const column = rows.scores[name];
      const absent = column.score[position] === null && column.cause[position] === null && column.passed[position] === null;
      const cell = { score: column.score[position], passed: column.passed[position], cause: column.cause[position], stdev: column.stdev?.[position] };
      return [name, absent ? null : cell];
    }),
  );
  return {
    position,
    id: rows.id[position],
    tags: rows.tags[position],
    metadata: rows.metadata?.[position],
    scores,
    repetitions: rows.repetitions[position],
    passed: rows.passed[position],
    unstable: rows.unstable[position],
    latency_ms: rows.latency_ms[position],
    output_chars: rows.output_chars[position],
    preview: previews[position % SAMPLES_A_FILE],
  };
}

async function storedSample(run: string, position: number): Promise<SampleDetail> {
  const file = await loadKey<{ samples: SampleDetail[] }>(`runs/${run}/samples/${fileAt(position)}`);
  const sample = file.samples.find((one) => one.position === position);
  if (!sample) throw new Error(`There is no sample ${position} in this run.`);
  return sample;
}

async function oneSample(run: string, position: number, query: URLSearchParams): Promise<SampleDetail> {
  const [sample, { positions }] = await Promise.all([storedSample(run, position), selected(run, query)]);
  const place = positions.indexOf(position);
  const found = place >= 0;
  return {
    ...sample,
    previous: found ? (positions[place - 1] ?? null) : null,
    next: found ? (positions[place + 1] ?? null) : null,
    place: found ? place : null,
    matched: positions.length,
  };
}

async function gridPage(experiment: string, query: URLSearchParams): Promise<GridPage> {
  const columns = await loadKey<GridColumns>(`experiments/${experiment}/columns`);
  const variants = shownVariants(columns, query);
  const text = query.get("text")?.toLowerCase();
  const texts = new Map(await Promise.all((text ? variants : []).map(async (variant) => [variant, await searched(columns.runs[variant])] as const)));
  const found = selectGrid(columns, query, text ? (variant, place) => Boolean(texts.get(variant)?.some((column) => column[place]?.includes(text))) : null);

  const offset = Number(query.get("offset") ?? 0);
  const page = found.slice(offset, offset + Number(query.get("limit") ?? 100));
  const rows = await Promise.all(page.map((sample) => gridRow(experiment, sample)));
  return { total: columns.places.length, matched: found.length, offset, rows: rows.map((row) => ({ ...row, cells: variants.map((variant) => row.cells[variant]) })) };
}

/** Every text of the samples of a run in which words are looked for, in lower case, field by field. */
async function searched(run: string): Promise<string[][]> {
  const [columns, texts] = await Promise.all([loadKey<Columns>(`runs/${run}/columns`), loadKey<Texts>(`runs/${run}/texts`)]);
  return [columns.rows.id.map((id) => id.toLowerCase()), ...Object.values(texts)];
}

async function gridRow(experiment: string, sample: number): Promise<GridRow> {
  const rows = await loadKey<GridRow[]>(`experiments/${experiment}/rows/${Math.floor(sample / GRID_ROWS_A_FILE)}`);
  return rows[sample % GRID_ROWS_A_FILE];
}

async function answerComparison(segments: string[], query: URLSearchParams): Promise<unknown> {
  const runs = query.get("runs") ?? "";
  if (segments.length === 1) return loadKey(`compare/${runs}`);
  const { rows } = await loadKey<CompareSamplePage>(`compare/${runs}/samples`);
  if (segments[1] === "points") return comparePoints(rows, query.get("metric") ?? "");
  const chosen = await filterCompared(runs.split(","), rows, query);
  if (segments.length > 2) return comparedSample(runs.split(","), rows, chosen, segments[2]);
  const offset = Number(query.get("offset") ?? 0);
  return { total: rows.length, matched: chosen.length, offset, rows: chosen.slice(offset, offset + Number(query.get("limit") ?? 100)) };
}

function comparePoints(rows: CompareRow[], metric: string): unknown {
  const points = rows
    .map((row) => [row.scores[metric]?.[0] ?? null, row.scores[metric]?.[1] ?? null, row.row_hash])
    .filter((point) => point[0] !== null && point[1] !== null);
  return { metric, total: points.length, points };
}

/** The rows that a query asks for; they are stored in the order of the change. */
async function filterCompared(runs: string[], rows: CompareRow[], query: URLSearchParams): Promise<CompareRow[]> {
  const statuses = query.get("status")?.split(",") ?? [];
  const text = query.get("text")?.toLowerCase();
  const texts = text ? await Promise.all(runs.slice(0, 2).map((run) => loadKey<Texts>(`runs/${run}/texts`))) : [];
  const has = (row: CompareRow) => texts.some((fields, side) => Object.values(fields).some((column) => column[row.positions[side] ?? -1]?.includes(text ?? "")));
  const found = rows.filter(
    (row) => (!statuses.length || statuses.includes(row.status ?? "")) && (!text || row.id.toLowerCase().includes(text) || has(row)),
  );
  if (query.get("sort") === "id") found.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  return query.get("order") === "desc" ? found.reverse() : found;
}

async function comparedSample(runs: string[], rows: CompareRow[], chosen: CompareRow[], hash: string): Promise<CompareDetail> {
  const row = rows.find((one) => one.row_hash === hash);
  if (!row) throw new Error("This sample is in neither run.");
  const place = chosen.indexOf(row);
  const comparison = await loadKey<Comparison>(`compare/${runs.join(",")}`);
  const known = new Map<string, RunSide>([comparison.baseline, comparison.candidate].filter(Boolean).map((side) => [side.id, side]));
  const details = await Promise.all(row.positions.map((position, index) => (position === null ? null : storedSample(runs[index], position))));
  const sides = details.map((detail, index): { run: RunSide; position: number; executions: Execution[] } | null =>
    detail === null ? null : { run: known.get(runs[index]) ?? ({ id: runs[index] } as RunSide), position: detail.position, executions: detail.executions },
  );
  const first = details.find((detail) => detail !== null);
  return {
    row_hash: hash,
    id: row.id,
    tags: row.tags,
    input: first?.input,
    expected_output: first?.expected_output,
    status: row.status,
    previous: chosen[place - 1]?.row_hash ?? null,
    next: chosen[place + 1]?.row_hash ?? null,
    sides,
  };
}
