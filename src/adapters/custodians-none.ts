import type { Custodians } from '../ports/custodians.ts';

/** A server that works with no custodian: custodial wallets are not supported. */
export const noCustodians: Custodians = { find: () => undefined };
