import { defineEntity, p } from '@mikro-orm/core';

/** The size of an app's requests and traces on one day, whether they were stored in full or as digests. */
export const UseVolumeEntity = defineEntity({
  name: 'UseVolume',
  tableName: 'use_volumes',
  properties: {
    appId: p.text().primary(),
    /** Days since 1970-01-01, UTC. */
    day: p.integer().primary(),
    bytes: p.bigint('number'),
  },
});

/** A use of a wallet: the request, the decision, and enough to evaluate it again. */
export const WalletUseEntity = defineEntity({
  name: 'WalletUse',
  tableName: 'wallet_uses',
  properties: {
    /** Increases with every use. Uses are read and deleted in this order. */
    sequence: p.bigint('number').primary().autoincrement().ignoreSchemaChanges('type'),
    appId: p.text(),
    walletId: p.text(),
    /** The `operationId` of the request, for example `walletRpc`, `rawSignWallet` or `transferFromWallet`. */
    operation: p.text(),
    /** The method, under the name that policy rules use. */
    method: p.text(),
    requestId: p.text(),
    judgedAtMs: p.bigint('number'),
    /** `allowed` or `denied`. */
    decision: p.text(),
    /** JSON array of the evaluated policies, in order; empty when none applied. */
    policyIds: p.text(),
    /** The request's body as JSON. Null if it, or all records of the app on that day, were too large to be stored. */
    request: p.text().strictNullable(),
    /** SHA-256 of the body as hex, if the body was left out because of the records of that day. */
    requestDigest: p.text().strictNullable(),
    /** The trace id of a denial; null for allowed uses. */
    traceId: p.text().strictNullable(),
    /** JSON array of the decisions with their traces. Only for denials; null when too large to be stored. */
    trace: p.text().strictNullable(),
  },
  indexes: [
    { name: 'wallet_uses_by_wallet', properties: ['walletId', 'sequence'] },
    // A partial index, because only denials are looked up individually. Allowed uses do not pay for it.
    { name: 'wallet_uses_by_trace', properties: ['traceId'], where: 'trace_id is not null' },
    { name: 'wallet_uses_denied_request', properties: ['requestId'], where: 'trace_id is not null' },
  ],
});
