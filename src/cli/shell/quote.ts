/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return /^[A-Za-z0-9_./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
