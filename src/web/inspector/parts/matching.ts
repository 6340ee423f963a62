/** The rows of which a text contains what is searched for, in either case. */
export function matching<Row>(
  rows: readonly Row[],
  text: string,
  textsOf: (row: Row) => readonly (string | null | undefined)[],
): Row[] {
  const wanted = text.trim().toLowerCase();
  return rows.filter((row) => textsOf(row).some((value) => (value ?? '').toLowerCase().includes(wanted)));
}
