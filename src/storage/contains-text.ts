import { raw } from '@mikro-orm/core';

/** A condition for `em.find`: a column with lower-case text contains `text`, ignoring its case. */
export function containsText(column: string, text: string) {
  const pattern = `%${text.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
  return { [raw(`${column} like ? escape '\\'`, [pattern])]: [] };
}
