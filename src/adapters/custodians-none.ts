import type { Custodians } from '../ports/custodians.ts';

/** For servers without a custodian: custodial wallets are not supported. */
export const noCustodians: Custodians = { find: () => undefined };
