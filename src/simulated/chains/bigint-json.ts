// A bigint is written as digits followed by `n`; no string that is stored so has that format.

export function writeWithBigints(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member));
}

export function readWithBigints(text: string): unknown {
  return JSON.parse(text, (_, member: unknown) =>
    typeof member === 'string' && /^\d+n$/.test(member) ? BigInt(member.slice(0, -1)) : member,
  );
}
