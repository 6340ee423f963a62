import { defineEntity, p } from '@mikro-orm/core';

/** An account that may send again after the last restore. */
export const AcceptedAccountEntity = defineEntity({
  name: 'AcceptedAccount',
  tableName: 'accepted_accounts',
  properties: {
    caip2: p.text().primary(),
    /** In the notation of wallet addresses. */
    address: p.text().primary(),
    acceptedAtMs: p.bigint('number'),
    /** `chain`: the chain has nothing of it that the database lacks. `operator`: an operator has accepted it. */
    acceptedBy: p.text(),
  },
});

/** The database that the rows were in when a server last used them. At most one row, with the id `current`. */
export const DatabaseIdentityEntity = defineEntity({
  name: 'DatabaseIdentity',
  tableName: 'database_identity',
  properties: {
    id: p.text().primary(),
    /** PostgreSQL's identifier of the cluster, the database and this table in it. */
    cluster: p.text(),
    /** Goes up with every promotion, and at the end of a recovery to a point in time. */
    timeline: p.bigint('number'),
  },
});

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
