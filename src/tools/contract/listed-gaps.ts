/** Something that is documented and not exercised, and why. */
export interface Gap {
  readonly name: string;
  readonly reason: string;
}

/** Lines of `createWallet 500 internal_error  # the reason`. */
export function parseGaps(text: string): Gap[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'))
    .map((line) => {
      const [name = '', reason = ''] = line.split('#', 2);
      return { name: name.trim(), reason: reason.trim() };
    });
}

/** The list without the lines of these names; comments and reasons are kept. */
export function withoutGaps(text: string, names: readonly string[]): string {
  const closed = new Set(names);
  return text
    .split('\n')
    .filter((line) => !parseGaps(line).some(({ name }) => closed.has(name)))
    .join('\n');
}
