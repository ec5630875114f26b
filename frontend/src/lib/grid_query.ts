/** The query of the grid of an experiment, answered in the browser over exported columns. It means what the server's query means. */

/** By sample and variant; null where there is nothing. */
type Table = (number | null)[][];

export interface GridColumns {
  names: string[];
  runs: string[];
  /** The sample's place in the run of each variant; -1 where that does not have it. */
  places: number[][];
  /** The share of repetitions that passed, by metric; of all metrics together under an empty name. */
  shares: Record<string, Table>;
  scores: Record<string, Table>;
  /** A number for each output, the same for equal ones. */
  outputs: Table;
}

/** The places of the variants that a query names; of all where it names none. */
export function shownVariants(columns: GridColumns, query: URLSearchParams): number[] {
  const named = query.getAll("column");
  return named.length ? named.map((name) => columns.names.indexOf(name)) : columns.names.map((_, place) => place);
}

/** The samples that a query asks for, in its order. `hasText` says whether the words occur in a sample of a variant. */
export function selectGrid(columns: GridColumns, query: URLSearchParams, hasText: ((variant: number, place: number) => boolean) | null): number[] {
  const variants = shownVariants(columns, query);
  const metric = query.get("metric") ?? "";
  const shares = columns.shares[metric] ?? [];
  const failing = query.get("failing");
  const of = (table: Table, sample: number) => variants.map((variant) => table[sample][variant]).filter((value) => value !== null);
  const tests: ((sample: number) => boolean)[] = [];

  const show = query.get("show");
  if (show === "verdicts_differ") tests.push((sample) => variance(of(shares, sample)) > 0);
  if (show === "outputs_differ") tests.push((sample) => variance(of(columns.outputs, sample)) > 0);
  if (show === "failing" || show === "failing_everywhere") tests.push((sample) => of(shares, sample).some((share) => share < 1));
  if (show === "failing_everywhere") tests.push((sample) => !of(shares, sample).includes(1));
  if (failing) {
    const variant = columns.names.indexOf(failing);
    tests.push((sample) => (shares[sample][variant] ?? 1) < 1);
  }
  if (hasText) tests.push((sample) => variants.some((variant) => columns.places[sample][variant] >= 0 && hasText(variant, columns.places[sample][variant])));

  const found = columns.places.map((_, sample) => sample).filter((sample) => tests.every((test) => test(sample)));
  const sort = query.get("sort");
  if (sort === "worst") return sortBy(found, (sample) => [mean(of(shares, sample)) ?? Infinity]);
  if (sort === "disagreement") return sortBy(found, (sample) => [metric ? -variance(of(columns.scores[metric], sample)) : 0, -variance(of(shares, sample))]);
  return found;
}

/** Samples in the order of their keys; those with equal ones stay in the order of the dataset. */
function sortBy(samples: number[], keys: (sample: number) => number[]): number[] {
  const known = new Map(samples.map((sample) => [sample, keys(sample)]));
  return samples.sort((a, b) => {
    const other = known.get(b) ?? [];
    for (const [place, key] of (known.get(a) ?? []).entries()) if (key !== other[place]) return key - other[place];
    return a - b;
  });
}

function mean(values: number[]): number | null {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

/** To nine decimals, as on the server, so that equal ones stay equal. */
function variance(values: number[]): number {
  const middle = mean(values) ?? 0;
  return Math.round((mean(values.map((value) => (value - middle) ** 2)) ?? 0) * 1e9) / 1e9;
}
