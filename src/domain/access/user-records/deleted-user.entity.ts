import { defineEntity, p } from '@mikro-orm/core';

/**
 * The place that a deleted user had in the list: a caller who deletes page by page goes on from the last user of the
 * page. Nothing else of the user is kept.
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
