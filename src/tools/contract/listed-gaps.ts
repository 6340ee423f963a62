/** A documented result that is not tested, and the reason. */
export interface Gap {
  readonly name: string;
  readonly reason: string;
}

/** Parses lines such as `createWallet 500 internal_error  # the reason`. */
export function parseGaps(text: string): Gap[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const [name = '', reason = ''] = line.split('#', 2);
      return { name: name.trim(), reason: reason.trim() };
    });
}

/** Returns the list without the lines of these names. Comments and reasons are kept. */
export function withoutGaps(text: string, names: readonly string[]): string {
  const closed = new Set(names);
  return text
    .split('\n')
    .filter((line) => !parseGaps(line).some(({ name }) => closed.has(name)))
    .join('\n');
}
