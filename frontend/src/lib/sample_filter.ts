/** The part of a page's query that chooses and orders samples. It travels from the table to a sample and back. */

export const FILTER_NAMES = ["metric", "min", "max", "passed", "unstable", "cause", "only", "min_ms", "max_ms", "text", "in", "sort", "order"];

export function filterQuery(query: URLSearchParams): URLSearchParams {
  return new URLSearchParams([...query].filter(([name, value]) => FILTER_NAMES.includes(name) && value !== ""));
}
