import { defineEntity, p } from '@mikro-orm/core';

/** One text by which the search finds a user. The key is the index that the search reads, and it holds all of it. */
export const UserSearchTermEntity = defineEntity({
  name: 'UserSearchTerm',
  tableName: 'user_search_terms',
  properties: {
    appId: p.text().primary(),
    /** UTF-8 of the text in lower case. As bytes it sorts the same everywhere, whatever the database's collation. */
    term: p.blob().primary(),
    userCreatedAtMs: p.bigint('number').primary(),
    userId: p.text().primary(),
    accountId: p.text().primary(),
  },
  indexes: [{ name: 'user_search_terms_by_account', properties: ['accountId'] }],
});
