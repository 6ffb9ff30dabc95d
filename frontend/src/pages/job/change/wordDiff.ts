/** Two texts as one: the words that stay, those that go, and those that come. */

export interface Part {
  kind: 'same' | 'gone' | 'new';
  text: string;
}

const WORDS = /\s+|\w+|[^\s\w]/g;
/** Texts that differ in more than this are shown one after the other. */
const CELLS_MAX = 1_000_000;

const wordsOf = (text: string): string[] => text.match(WORDS) ?? [];

/** Parts in a row of one kind as one part. */
function joined(parts: Part[]): Part[] {
  const out: Part[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if (part.text === '') continue;
    if (last?.kind === part.kind) last.text += part.text;
    else out.push({ ...part });
  }
  return out;
}

/** The longest words in common of two texts that begin and end with different words. */
function aligned(old: string[], now: string[]): Part[] {
  if (old.length * now.length > CELLS_MAX) {
    return [
      { kind: 'gone', text: old.join('') },
      { kind: 'new', text: now.join('') },
    ];
  }
  const wide = now.length + 1;
  const common = new Uint32Array((old.length + 1) * wide);
  const at = (row: number, column: number): number => common[row * wide + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      common[row * wide + column] =
        old[row] === now[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const parts: Part[] = [];
  let row = 0;
  let column = 0;
  while (row < old.length || column < now.length) {
    const one = old[row];
    const other = now[column];
    if (one !== undefined && one === other) {
      parts.push({ kind: 'same', text: one });
      row += 1;
      column += 1;
    } else if (one !== undefined && (other === undefined || at(row + 1, column) >= at(row, column + 1))) {
      parts.push({ kind: 'gone', text: one });
      row += 1;
    } else if (other !== undefined) {
      parts.push({ kind: 'new', text: other });
      column += 1;
    }
  }
  return parts;
}

/** Without blanks between two changes: what stays between them is a word at least. */
function withoutIslands(parts: Part[]): Part[] {
  return parts.flatMap((part, place): Part[] => {
    const isIsland =
      part.kind === 'same' &&
      part.text.trim() === '' &&
      parts[place - 1]?.kind !== undefined &&
      parts[place + 1]?.kind !== undefined;
    return isIsland
      ? [
          { kind: 'gone', text: part.text },
          { kind: 'new', text: part.text },
        ]
      : [part];
  });
}

/** What goes stands before what comes, in each run of changes. */
function inOrder(parts: Part[]): Part[] {
  const out: Part[] = [];
  let gone = '';
  let come = '';
  const settle = () => {
    out.push({ kind: 'gone', text: gone }, { kind: 'new', text: come });
    gone = come = '';
  };
  for (const part of parts) {
    if (part.kind === 'gone') gone += part.text;
    else if (part.kind === 'new') come += part.text;
    else {
      settle();
      out.push(part);
    }
  }
  settle();
  return joined(out);
}

export function wordDiff(before: string, after: string): Part[] {
  const old = wordsOf(before);
  const now = wordsOf(after);
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  return inOrder([
    { kind: 'same', text: old.slice(0, head).join('') },
    ...withoutIslands(joined(aligned(old.slice(head, old.length - tail), now.slice(head, now.length - tail)))),
    { kind: 'same', text: old.slice(old.length - tail).join('') },
  ]);
}
