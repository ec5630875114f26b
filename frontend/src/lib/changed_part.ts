/** The part of a text in which it differs from another, for a cell of a table. */

import { type Piece, wordDiff } from "./word_diff";

/** So many characters before the first difference are kept. */
const CONTEXT = 24;

export interface ChangedTexts {
  before: Piece[];
  after: Piece[];
}

/** Two texts, each with the words that the other lacks, from shortly before the first of them. */
export function changedTexts(before: string, after: string): ChangedTexts {
  const pieces = wordDiff(before, after);
  const shortened = fromFirstChange(pieces);
  return {
    before: shortened.filter((piece) => piece.kind !== "added"),
    after: shortened.filter((piece) => piece.kind !== "removed"),
  };
}

function fromFirstChange(pieces: Piece[]): Piece[] {
  const [first, ...rest] = pieces;
  if (first?.kind !== "same" || rest.length === 0 || first.text.length <= 2 * CONTEXT) return pieces;
  const kept = first.text.slice(-CONTEXT).replace(/^\S*\s/, "");
  return [{ kind: "same", text: `… ${kept}` }, ...rest];
}
