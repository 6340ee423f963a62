import { raw } from '@mikro-orm/core';

/** A condition of `em.find`: the column, which is in lower case, contains the text, whatever case it was asked in. */
export function containsText(column: string, text: string) {
  const pattern = `%${text.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
  return { [raw(`${column} like ? escape '\\'`, [pattern])]: [] };
}
