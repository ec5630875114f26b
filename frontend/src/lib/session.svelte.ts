/** Who looks, and at what: the store or the export that this page shows. */

import { load } from "./load.svelte";
import type { Session } from "./types";

class SessionState {
  value = $state.raw<Session | null>(null);
  error = $state<string | null>(null);

  async read(): Promise<void> {
    try {
      this.value = await load<Session>("session");
    } catch (problem) {
      this.error = problem instanceof Error ? problem.message : String(problem);
    }
  }
}

export const session = new SessionState();
