import { defineEntity, p } from '@mikro-orm/core';

/** An account that may send transactions again after the last restore. */
export const AcceptedAccountEntity = defineEntity({
  name: 'AcceptedAccount',
  tableName: 'accepted_accounts',
  properties: {
    caip2: p.text().primary(),
    /** The account's address in the notation of wallet addresses. */
    address: p.text().primary(),
    acceptedAtMs: p.bigint('number'),
    /**
     * Who accepted the account: `operator`, or `chain` if the account has no activity on the chain that the database
     * lacks.
     */
    acceptedBy: p.text(),
  },
});

/** The identity of the database when a server last used it. There is at most one row, with the id `current`. */
export const DatabaseIdentityEntity = defineEntity({
  name: 'DatabaseIdentity',
  tableName: 'database_identity',
  properties: {
    id: p.text().primary(),
    /** PostgreSQL's identifier of the cluster, the database, and this table in it. */
    cluster: p.text(),
    /** PostgreSQL's timeline. It increases with every promotion, and at the end of a recovery to a point in time. */
    timeline: p.bigint('number'),
  },
});

/** A restore of the database, which a server detected or an operator declared. */
export const RestoreEntity = defineEntity({
  name: 'Restore',
  tableName: 'restores',
  properties: {
    id: p.text().primary(),
    /** A `RestoreCause`. */
    cause: p.text(),
    noticedAtMs: p.bigint('number'),
    /** The time of the newest event or audit record in the database at that time; null if it had none. */
    newestRecordAtMs: p.bigint('number').strictNullable(),
    /** When an operator allowed changes again; null while changes are refused. */
    releasedAtMs: p.bigint('number').strictNullable(),
    /** 1 if an operator has accepted all accounts, otherwise 0. */
    areAllAccepted: p.integer().default(0),
  },
  indexes: [{ name: 'restores_by_age', properties: ['noticedAtMs'] }],
});
