import { defineEntity, p } from '@mikro-orm/core';

/**
 * The list position of a deleted user, so that a caller who deletes page by page can continue from a deleted cursor.
 * Nothing else of the user is kept.
 */
export const DeletedUserEntity = defineEntity({
  name: 'DeletedUser',
  tableName: 'deleted_users',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    createdAtMs: p.bigint('number'),
  },
});
