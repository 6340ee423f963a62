import { ChainUnavailableError } from '../../adapters/chain-unavailable-error.ts';
import type { BroadcastOutcome, BroadcastRefusal } from '../../ports/chains.ts';
import { SigningInputError } from '../../signing/signing-errors.ts';
import type { Sentinel } from './sentinels.ts';

export type Refusal = BroadcastOutcome & { readonly isAccepted: false };

export function refuse(reason: BroadcastRefusal, message: string): Refusal {
  return { isAccepted: false, reason, message };
}

/** What bytes were decoded to, or the refusal of bytes that are no transaction. */
export async function decodeOrRefuse<T extends object>(decode: () => T | Promise<T>): Promise<T | Refusal> {
  try {
    return await decode();
  } catch (error) {
    if (error instanceof SigningInputError) return refuse('invalid', error.message);
    throw error;
  }
}

/** Behaves as a node that is down where the recipient asks for it. Throws ChainUnavailableError. */
export function assertNodeAnswers(sentinel: Sentinel | null): void {
  if (sentinel !== 'provider_error') return;
  throw new ChainUnavailableError(
    'the node did not answer: the recipient is the sentinel that asks for this',
  );
}
