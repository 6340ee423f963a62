import { ChainUnavailableError } from '../../../adapters/outside-services.ts';
import { SigningInputError } from '../../../engine/signing/signing-errors.ts';
import type { BroadcastOutcome, BroadcastRefusal } from '../../../ports/chains.ts';
import type { Sentinel } from './sentinels.ts';

export type Refusal = BroadcastOutcome & { readonly isAccepted: false };

export function refuse(reason: BroadcastRefusal, message: string): Refusal {
  return { isAccepted: false, reason, message };
}

/** Returns the result of `decode`, or a refusal if the bytes are not a valid transaction. */
export async function decodeOrRefuse<T extends object>(decode: () => T | Promise<T>): Promise<T | Refusal> {
  try {
    return await decode();
  } catch (error) {
    if (error instanceof SigningInputError) return refuse('invalid', error.message);
    throw error;
  }
}

/**
 * Simulates an unavailable node if the recipient is the address that triggers it.
 *
 * @throws ChainUnavailableError
 */
export function assertNodeAvailable(sentinel: Sentinel | null): void {
  if (sentinel !== 'provider_error') return;
  throw new ChainUnavailableError('no response from the node, as requested by the sentinel recipient');
}
