/** A name counts as misspelled up to this many edits per character. */
const MAX_EDITS = 0.34;
const MAX_LENGTH = 100;

/**
 * Returns the known name that is most similar to a name, or undefined if none is similar. Case, `-` and `_` are
 * ignored, so `chainType` finds `chain_type`.
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  let nearest: { name: string; edits: number } | undefined;
  for (const candidate of known) {
    const edits = editsBetween(plain(name), plain(candidate));
    const most = Math.floor(Math.max(name.length, candidate.length) * MAX_EDITS);
    if (edits <= most && (nearest === undefined || edits < nearest.edits))
      nearest = { name: candidate, edits };
  }
  return nearest?.name;
}

function plain(name: string): string {
  return name.slice(0, MAX_LENGTH).toLowerCase().replaceAll(/[-_]/g, '');
}

/**
 * Returns the Levenshtein distance: the number of insertions, deletions and substitutions that turn one string into
 * the other.
 */
export function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, substitution));
    }
    row = next;
  }
  return row[b.length]!;
}
