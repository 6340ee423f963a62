import { defineEntity, p } from '@mikro-orm/core';

/** One use of a wallet as it was judged: what was asked, what was decided, and in a form that can be judged again. */
export const WalletUseEntity = defineEntity({
  name: 'WalletUse',
  tableName: 'wallet_uses',
  properties: {
    /** Grows with every use; the order in which they are read and dropped. */
    sequence: p.bigint('number').primary().autoincrement().ignoreSchemaChanges('type'),
    appId: p.text(),
    walletId: p.text(),
    /** The operation by its id: `walletRpc`, `rawSignWallet`, `exportWallet`, `transferFromWallet`. */
    operation: p.text(),
    /** The method as rules name it. */
    method: p.text(),
    requestId: p.text(),
    judgedAtMs: p.bigint('number'),
    /** `allowed` or `denied`. */
    decision: p.text(),
    /** JSON array of the policies that judged, in order; empty when none applied. */
    policyIds: p.text(),
    /** The request's body as JSON; null when it was too large to be kept. */
    request: p.text().strictNullable(),
    /** Names the trace of a denial; null of what was allowed. */
    traceId: p.text().strictNullable(),
    /** JSON array of the decisions with their traces. Only of a denial, and null when too large to be kept. */
    trace: p.text().strictNullable(),
  },
  indexes: [
    { name: 'wallet_uses_by_wallet', properties: ['walletId', 'sequence'] },
    // Only denials are looked up one by one, so that what is allowed pays for one index alone.
    { name: 'wallet_uses_by_trace', properties: ['traceId'], where: 'trace_id is not null' },
    { name: 'wallet_uses_denied_request', properties: ['requestId'], where: 'trace_id is not null' },
  ],
});
