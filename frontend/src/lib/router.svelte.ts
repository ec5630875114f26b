/** The place in the viewer, read from the hash of the address: path and query. The whole state of a page is there. */

type Changes = Record<string, string | string[] | number | null | undefined>;

class Place {
  path = $state.raw<string[]>([]);
  query = $state.raw(new URLSearchParams());
  hash = "";

  read(): void {
    this.hash = window.location.hash;
    const [path, query = ""] = this.hash.replace(/^#\/?/, "").split("?", 2);
    this.path = path.split("/").filter(Boolean).map(decodeSegment);
    this.query = new URLSearchParams(query);
  }
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export const place = new Place();

/** The query with some names set, and those that became empty left out. */
export function changedQuery(query: URLSearchParams, changes: Changes): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    if (Array.isArray(value)) for (const one of value) next.append(name, one);
    else if (value !== null && value !== undefined && value !== "") next.set(name, String(value));
  }
  return next;
}

export function linkTo(path: (string | number)[], query?: URLSearchParams | Changes): string {
  const search = (query instanceof URLSearchParams ? query : changedQuery(new URLSearchParams(), query ?? {})).toString();
  return `#/${path.map((segment) => encodeURIComponent(segment)).join("/")}${search ? `?${search}` : ""}`;
}

export function goTo(link: string, { replace = false } = {}): void {
  if (replace) {
    window.history.replaceState(null, "", link);
    place.read();
  } else {
    window.location.hash = link;
  }
}

/** Change the query of this page. Typing replaces the entry of the history; a choice adds one, so that "back" undoes it. */
export function setQuery(changes: Changes, { replace = false } = {}): void {
  // The reader is on the way to another page, which this change is not about.
  if (window.location.hash !== place.hash) return;
  const link = linkTo(place.path, changedQuery(place.query, changes));
  if (link !== place.hash) goTo(link, { replace });
}

export function startRouter(): void {
  window.addEventListener("hashchange", () => place.read());
  place.read();
}
