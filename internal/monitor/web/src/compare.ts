// Two texts, side by side.

import { diffLines } from 'diff';

export interface Row {
  kind: 'same' | 'removed' | 'added' | 'changed' | 'skipped';
  left?: { line: number; text: string };
  right?: { line: number; text: string };
  // skipped is how many lines that are the same were left out.
  skipped?: number;
}

const split = (text: string): string[] => text.replace(/\n$/, '').split('\n');

// compare returns the rows of a comparison, with `around` lines before and after each difference.
export function compare(before: string, after: string, around = 3): Row[] {
  return skip(allRows(before, after), around);
}

function allRows(before: string, after: string): Row[] {
  const rows: Row[] = [];
  let left = 0;
  let right = 0;
  let removed: string[] = [];
  const flush = (added: string[]) => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      const [a, b] = [removed[i], added[i]];
      rows.push({
        kind: a === undefined ? 'added' : b === undefined ? 'removed' : 'changed',
        left: a === undefined ? undefined : { line: ++left, text: a },
        right: b === undefined ? undefined : { line: ++right, text: b },
      });
    }
    removed = [];
  };
  for (const part of diffLines(before, after)) {
    const texts = split(part.value);
    if (part.removed) removed = texts;
    else if (part.added) flush(texts);
    else {
      flush([]);
      for (const text of texts) rows.push({ kind: 'same', left: { line: ++left, text }, right: { line: ++right, text } });
    }
  }
  flush([]);
  return rows;
}

function skip(rows: Row[], around: number): Row[] {
  const near = rows.map(() => false);
  rows.forEach((row, i) => {
    if (row.kind !== 'same') near.fill(true, Math.max(0, i - around), i + around + 1);
  });
  const kept: Row[] = [];
  let skipped = 0;
  const flush = () => {
    if (skipped > 0) kept.push({ kind: 'skipped', skipped });
    skipped = 0;
  };
  rows.forEach((row, i) => {
    if (!near[i]) {
      skipped++;
      return;
    }
    flush();
    kept.push(row);
  });
  flush();
  return kept;
}
