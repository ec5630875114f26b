/** The ids of the passages that a sample's metadata names as relevant: a list of ids, or a map of ids to gains. */
export function relevantPassages(metadata: Record<string, unknown> | null | undefined): string[] {
  const relevant = metadata?.relevant;
  if (Array.isArray(relevant)) return relevant.map(String);
  if (typeof relevant === "string") return relevant.split("|");
  return relevant && typeof relevant === "object" ? Object.entries(relevant).filter(([, gain]) => Number(gain) > 0).map(([id]) => id) : [];
}
