import type { CardEnvironment, CardRefusal } from '../../../ports/cards.ts';
import { derivedAddress } from '../chains/evm/contracts/addresses.ts';
import { RevertError } from '../chains/ledger.ts';
import type { ChainStore } from '../chains/store.ts';
import type { Deposit, Funded, Simulated } from '../chains/world.ts';
import type { FiatParts } from '../fiat/parts.ts';

/** The components that one environment of the simulated issuer uses. */
export interface CardParts extends FiatParts {
  readonly environment: CardEnvironment;
  /** The secret from which card numbers, PINs and keys are derived, so that none of them is stored. */
  readonly secret: Uint8Array;
}

/**
 * Returns the lower-case address of the issuer's account, which is the same on every simulated EVM chain. This
 * account is the approved spender, and receives the money of payments.
 */
export function issuerAddress(environment: CardEnvironment): string {
  return derivedAddress(`custos card issuer ${environment}`);
}

export function refuse(fault: CardRefusal['fault'], message: string): CardRefusal {
  return { fault, message };
}

/** The reason why the ledger rejects a transfer. A rejected transfer changes nothing. */
export type Shortfall = 'insufficient_funds' | 'insufficient_allowance';

/**
 * Pays atomically, or returns the reason why the ledger rejects the transfer. Must be called in a transaction of the
 * store.
 */
export function pay(store: ChainStore, chain: Simulated, deposit: Deposit): Funded | Shortfall {
  try {
    return store.atomically(() => chain.fund(deposit));
  } catch (error) {
    if (!(error instanceof RevertError)) throw error;
    return error.message.includes('allowance') ? 'insufficient_allowance' : 'insufficient_funds';
  }
}
