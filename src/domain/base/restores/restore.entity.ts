import { defineEntity, p } from '@mikro-orm/core';

/** A moment at which the database was found to be older than what the server had done. */
export const RestoreEntity = defineEntity({
  name: 'Restore',
  tableName: 'restores',
  properties: {
    id: p.text().primary(),
    /** One of `RestoreCause`. */
    cause: p.text(),
    noticedAtMs: p.bigint('number'),
    /** The time of the newest record that the database had; null if it had none. */
    newestRecordAtMs: p.bigint('number').strictNullable(),
    /** When an operator allowed changes again; null while they are held. */
    releasedAtMs: p.bigint('number').strictNullable(),
    /** 0 or 1: an operator has accepted all accounts. */
    areAllAccepted: p.integer().default(0),
  },
  indexes: [{ name: 'restores_by_age', properties: ['noticedAtMs'] }],
});
