import { defineEntity, p } from '@mikro-orm/core';

/** A search term of a user. The primary key is the covering index that the search reads. */
export const UserSearchTermEntity = defineEntity({
  name: 'UserSearchTerm',
  tableName: 'user_search_terms',
  properties: {
    appId: p.text().primary(),
    /** UTF-8 bytes of the lower-case text, which sort independently of the database's collation. */
    term: p.blob().primary(),
    userCreatedAtMs: p.bigint('number').primary(),
    userId: p.text().primary(),
    accountId: p.text().primary(),
  },
  indexes: [{ name: 'user_search_terms_by_account', properties: ['accountId'] }],
});
