/** Which samples a rule of the gate is about. */

import type { Gate } from "./types";

type Query = Record<string, string>;

/** What a gate decided: `skipped` where every check was, null where it has none. */
export function decisionOf(gate: Gate | null | undefined): string | null {
  if (!gate?.checks.length) return null;
  return gate.checks.every((check) => check.status === "skipped") ? "skipped" : gate.decision;
}

const OF_QUALITY = /^min_(macro_f1|pass_rate|mean)$|^max_mean$/;

/** The samples that can break a rule, as a query of the table of samples; null where the rule is about no samples. */
export function samplesOfCheck(check: string, metrics: string[], cohorts: string[]): Query | null {
  let rest = check;
  const query: Query = {};

  const cohort = longestOf(cohorts.filter((label) => rest.startsWith(`cohorts.${label}.`)));
  if (cohort !== null) {
    query.only = `tag:${cohort}`;
    rest = rest.slice(`cohorts.${cohort}.`.length);
  }
  const metric = longestOf(metrics.filter((name) => rest.startsWith(`metrics.${name}.`)));
  if (metric !== null) {
    query.metric = metric;
    rest = rest.slice(`metrics.${metric}.`.length);
  }

  if (rest === "max_unscored") return { ...query, cause: "any" };
  return OF_QUALITY.test(rest) ? { ...query, passed: "no", sort: "worst" } : null;
}

function longestOf(names: string[]): string | null {
  return names.reduce<string | null>((longest, name) => (name.length > (longest ?? "").length ? name : longest), null);
}

export interface TextPart {
  text: string;
  /** The name that the text is, where it is one. */
  name: string | null;
}

/** A sentence cut where it names samples, so that each name can be a link. */
export function cutAtNames(sentence: string, names: string[]): TextPart[] {
  const parts: TextPart[] = [];
  let rest = sentence;
  while (rest) {
    const next = firstName(rest, names);
    const start = next ? next.index : rest.length;
    if (start > 0) parts.push({ text: rest.slice(0, start), name: null });
    if (next) parts.push({ text: next.name, name: next.name });
    rest = rest.slice(start + (next?.name.length ?? 0));
  }
  return parts;
}

/** The name that comes first in a text, the longest of those that begin there; a part of a word is none. */
function firstName(text: string, names: string[]): { index: number; name: string } | null {
  let first: { index: number; name: string } | null = null;
  for (const name of names) {
    const index = indexOfWord(text, name);
    if (index < 0) continue;
    if (first === null || index < first.index || (index === first.index && name.length > first.name.length)) first = { index, name };
  }
  return first;
}

const IN_WORD = /[\p{L}\p{N}_-]/u;

function indexOfWord(text: string, word: string): number {
  for (let index = text.indexOf(word); index >= 0 && word; index = text.indexOf(word, index + 1)) {
    if (!IN_WORD.test(text.charAt(index - 1)) && !IN_WORD.test(text.charAt(index + word.length))) return index;
  }
  return -1;
}
