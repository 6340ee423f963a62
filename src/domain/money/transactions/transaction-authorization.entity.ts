import { defineEntity, p } from '@mikro-orm/core';

/** An EIP-7702 authorization in a transaction. The chain counts it as a transaction of the account that signed it. */
export const TransactionAuthorizationEntity = defineEntity({
  name: 'TransactionAuthorization',
  tableName: 'transaction_authorizations',
  properties: {
    transactionId: p.text().primary(),
    /** From 0. */
    position: p.integer().primary(),
    caip2: p.text(),
    /** The account that delegates, in the notation of wallet addresses. */
    authority: p.text(),
    /** The nonce of the authority that it uses. */
    nonce: p.bigint('number'),
    /** What the account delegates to; 0x hex, lower case. */
    contract: p.text(),
  },
  indexes: [{ name: 'transaction_authorizations_by_nonce', properties: ['caip2', 'authority', 'nonce'] }],
});
