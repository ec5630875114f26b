/** One way to data: over HTTP from `deemster view`, or from the files of a static export. */

import { untrack } from "svelte";
import { answerFromExport, isExport } from "./exported_data";

export class LoadError extends Error {}

const TOKEN = "deemster-token";
let token: string | null = null;

/** Take the token from the address (`#token=...`), where a server beyond loopback puts it, and remove it from there. */
export function takeToken(): void {
  const given = /^#token=(.+)$/.exec(window.location.hash)?.[1];
  if (given) {
    token = decodeURIComponent(given);
    sessionStorage.setItem(TOKEN, token);
    window.history.replaceState(null, "", "#/runs");
  } else if (!isExport()) {
    token = sessionStorage.getItem(TOKEN);
  }
}

async function request(method: "GET" | "POST", path: string, options: { body?: unknown; signal?: AbortSignal } = {}): Promise<Response> {
  const headers: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};
  if (method === "POST") headers["Content-Type"] = "application/json";
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const response = await fetch(`api/${path}`, { method, headers, body, signal: options.signal });
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    throw new LoadError(answer?.error?.message ?? `The server answered ${response.status}.`);
  }
  return response;
}

/** How many answers are on their way. */
export const pending = $state({ count: 0 });

/** The answer of the API to `path`, such as `runs/ID/samples?only=tag:policy`. */
export async function load<T>(path: string, signal?: AbortSignal): Promise<T> {
  pending.count = untrack(() => pending.count) + 1;
  try {
    if (isExport()) return (await answerFromExport(path)) as T;
    return (await (await request("GET", path, { signal })).json()) as T;
  } finally {
    pending.count--;
  }
}

export async function send<T>(path: string, body: unknown): Promise<T> {
  return (await (await request("POST", path, { body })).json()) as T;
}

/** Save what the API answers as a file. A link would not carry the token. */
export async function download(path: string, name: string): Promise<void> {
  const address = URL.createObjectURL(await (await request("GET", path)).blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser reads the address after the click: it must live until then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** An answer of the API that follows its path. While another is on its way, the last one stays. */
export class Answer<T> {
  value = $state.raw<T | null>(null);
  error = $state<string | null>(null);
  busy = $state(false);
  #path: string | null;
  #again = $state(0);

  constructor(path: () => string | null) {
    this.#path = $derived(path());
    $effect(() => {
      void this.#again;
      return this.#start(this.#path);
    });
  }

  refresh(): void {
    this.#again = untrack(() => this.#again) + 1;
  }

  #start(path: string | null): (() => void) | undefined {
    if (path === null) {
      this.value = null;
      return undefined;
    }
    const abort = new AbortController();
    this.busy = true;
    load<T>(path, abort.signal)
      .then((value) => {
        if (abort.signal.aborted) return;
        this.value = value;
        this.error = null;
        this.busy = false;
      })
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        this.error = error instanceof Error ? error.message : String(error);
        this.busy = false;
      });
    return () => abort.abort();
  }
}
