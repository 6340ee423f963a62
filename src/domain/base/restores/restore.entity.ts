import { defineEntity, p } from '@mikro-orm/core';

/** An account that may send transactions again after the last restore. */
export const AcceptedAccountEntity = defineEntity({
  name: 'AcceptedAccount',
  tableName: 'accepted_accounts',
  properties: {
    caip2: p.text().primary(),
    /** The address in the notation of wallet addresses. */
    address: p.text().primary(),
    acceptedAtMs: p.bigint('number'),
    /**
     * Who accepted the account. `chain`: the chain shows nothing of the account that the database lacks. `operator`:
     * an operator accepted it.
     */
    acceptedBy: p.text(),
  },
});

/** The database in which a server last used these rows. There is at most one row, with the id `current`. */
export const DatabaseIdentityEntity = defineEntity({
  name: 'DatabaseIdentity',
  tableName: 'database_identity',
  properties: {
    id: p.text().primary(),
    /** PostgreSQL's identifier of the cluster, the database, and this table in it. */
    cluster: p.text(),
    /** Increases with every promotion, and at the end of a recovery to a point in time. */
    timeline: p.bigint('number'),
  },
});

/** A time at which the database was found to lack changes that a server had made. */
export const RestoreEntity = defineEntity({
  name: 'Restore',
  tableName: 'restores',
  properties: {
    id: p.text().primary(),
    /** One of `RestoreCause`. */
    cause: p.text(),
    noticedAtMs: p.bigint('number'),
    /** The time of the newest record in the database at that time; null if it had none. */
    newestRecordAtMs: p.bigint('number').strictNullable(),
    /** When an operator allowed changes again; null while changes are refused. */
    releasedAtMs: p.bigint('number').strictNullable(),
    /** 1 if an operator has accepted all accounts, otherwise 0. */
    areAllAccepted: p.integer().default(0),
  },
  indexes: [{ name: 'restores_by_age', properties: ['noticedAtMs'] }],
});
