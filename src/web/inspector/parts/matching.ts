/** Returns the rows whose text contains the search text, regardless of case. */
export function matching<Row>(
  rows: readonly Row[],
  text: string,
  textsOf: (row: Row) => readonly (string | null | undefined)[],
): Row[] {
  const wanted = text.trim().toLowerCase();
  return rows.filter((row) => textsOf(row).some((value) => (value ?? '').toLowerCase().includes(wanted)));
}
