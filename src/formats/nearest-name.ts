/** The name a person may have meant: within two changes of a letter, or one for names of up to five; else undefined. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const distances = known.map((other) => ({ other, distance: editDistance(name.toLowerCase(), other) }));
  const nearest = distances.reduce<(typeof distances)[number] | undefined>(
    (best, entry) => (best && best.distance <= entry.distance ? best : entry),
    undefined,
  );
  return nearest && nearest.distance <= (name.length > 5 ? 2 : 1) ? nearest.other : undefined;
}

/** Letters to insert, delete, replace or swap with their neighbor between two words (optimal string alignment). */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swap =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : change;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, change, swap));
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
