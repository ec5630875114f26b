/** The difference of two texts, word by word. */

export interface Piece {
  kind: "same" | "removed" | "added";
  text: string;
}

const WORD = /\s+|[\p{L}\p{N}\p{M}_]+|[^\s\p{L}\p{N}\p{M}_]/gu;

/** Beyond this many edits the texts have too little in common for a difference to say anything. */
const MOST_EDITS = 1500;

export function splitWords(text: string): string[] {
  return text.match(WORD) ?? [];
}

/**
 * The pieces that turn `before` into `after`, by Myers' shortest edit script over words.
 * Texts that differ by more than 1,500 words count as wholly different, apart from a common beginning and end.
 */
export function wordDiff(before: string, after: string): Piece[] {
  const a = splitWords(before);
  const b = splitWords(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;

  const pieces: Piece[] = [];
  const push = (kind: Piece["kind"], text: string) => {
    if (text === "") return;
    const last = pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  push("same", a.slice(0, start).join(""));
  for (const [kind, text] of editScript(a.slice(start, a.length - end), b.slice(start, b.length - end))) push(kind, text);
  push("same", a.slice(a.length - end).join(""));
  return joinAcrossSpaces(pieces);
}

/** Texts that share less than this are shown as they are: marks all over would say nothing. Reports draw the same line. */
const LEAST_ALIKE = 0.3;

/** Whether two texts are alike enough for their difference to say something. */
export function isAlike(pieces: Piece[]): boolean {
  return shareInCommon(pieces) >= LEAST_ALIKE;
}

/** How much two texts share, by their words: 1 where they are equal, 0 where no word is in both. */
function shareInCommon(pieces: Piece[]): number {
  let same = 0;
  let all = 0;
  for (const piece of pieces) {
    const words = piece.text.match(/[\p{L}\p{N}\p{M}_]+/gu)?.length ?? 0;
    const count = piece.kind === "same" ? 2 * words : words;
    all += count;
    if (piece.kind === "same") same += count;
  }
  return all === 0 ? 1 : same / all;
}

/** Changes with nothing but spaces between them read better as one: all that went, then all that came. */
function joinAcrossSpaces(pieces: Piece[]): Piece[] {
  const joined: Piece[] = [];
  let removed = "";
  let added = "";
  const flush = () => {
    if (removed) joined.push({ kind: "removed", text: removed });
    if (added) joined.push({ kind: "added", text: added });
    removed = added = "";
  };
  pieces.forEach((piece, index) => {
    if (piece.kind === "removed") removed += piece.text;
    else if (piece.kind === "added") added += piece.text;
    else if ((removed || added) && index + 1 < pieces.length && /^\s+$/.test(piece.text)) {
      removed += piece.text;
      added += piece.text;
    } else {
      flush();
      joined.push(piece);
    }
  });
  flush();
  return joined;
}

function editScript(a: string[], b: string[]): [Piece["kind"], string][] {
  const whole: [Piece["kind"], string][] = [
    ["removed", a.join("")],
    ["added", b.join("")],
  ];
  if (a.length === 0 || b.length === 0) return whole;
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const trace: Int32Array[] = [];
  let reach = new Int32Array(2 * most + 2);
  const at = (diagonal: number) => diagonal + most;
  for (let edits = 0; edits <= most; edits++) {
    trace.push(reach.slice());
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && reach[at(k - 1)] < reach[at(k + 1)]);
      let x = down ? reach[at(k + 1)] : reach[at(k - 1)] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach[at(k)] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace, edits, at);
    }
  }
  return whole;
}

function walkBack(a: string[], b: string[], trace: Int32Array[], edits: number, at: (k: number) => number): [Piece["kind"], string][] {
  const script: [Piece["kind"], string][] = [];
  let x = a.length;
  let y = b.length;
  for (let d = edits; d > 0; d--) {
    const reach = trace[d];
    const k = x - y;
    const down = k === -d || (k !== d && reach[at(k - 1)] < reach[at(k + 1)]);
    const previous = down ? k + 1 : k - 1;
    const fromX = reach[at(previous)];
    const fromY = fromX - previous;
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      script.push(["same", a[--x]]);
      y--;
    }
    if (down) script.push(["added", b[--y]]);
    else script.push(["removed", a[--x]]);
  }
  while (x > 0 && y > 0) {
    script.push(["same", a[--x]]);
    y--;
  }
  return script.reverse();
}
