import { defineEntity, p } from '@mikro-orm/core';

/** An attempt of a user to decide on a code that does not exist. */
export const OauthWrongCodeEntity = defineEntity({
  name: 'OauthWrongCode',
  tableName: 'oauth_wrong_codes',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** By the clock of the machine. */
    atMs: p.bigint('number'),
  },
  indexes: [
    { name: 'oauth_wrong_codes_by_app', properties: ['appId', 'atMs'] },
    { name: 'oauth_wrong_codes_by_user', properties: ['userId', 'atMs'] },
    { name: 'oauth_wrong_codes_by_age', properties: ['atMs'] },
  ],
});
