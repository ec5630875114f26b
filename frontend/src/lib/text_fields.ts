/** The entries of a text that is a JSON map, as previews have the inputs of samples; null for any other text. */
export function textFields(text: string): { name: string; value: string }[] | null {
  if (!text.startsWith("{")) return null;
  try {
    const entries = Object.entries(JSON.parse(text) as Record<string, unknown>);
    return entries.map(([name, value]) => ({ name, value: typeof value === "string" ? value : JSON.stringify(value) }));
  } catch {
    // A long text is cut, and no JSON any more.
    return null;
  }
}
