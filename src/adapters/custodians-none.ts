import type { Custodians } from '../services.ts';

/** A server that works with no custodian: custodial wallets are not supported. */
export const noCustodians: Custodians = { find: () => undefined };
