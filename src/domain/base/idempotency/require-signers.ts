import { verifySignatures } from '../../../authorization/request-signatures.ts';
import { ApiError } from '../../../errors.ts';
import type { KeyUse } from '../../../ports/idempotency.ts';
import { inSlices } from '../../in-slices.ts';

/**
 * Requires that all these keys signed the request. Whether they still own anything does not matter: a client gets the
 * first response to its retry even if the owner has changed since.
 *
 * Shape: `signers` canonical base64 SubjectPublicKeyInfo. Throws `missing_or_empty_authorization_header`,
 * `incorrect_quantity_of_authorization_signatures`, `zero_correct_authorization_signatures`,
 * `insufficient_correct_authorization_signatures`.
 */
export async function requireSigners(
  { signatures, canonicalPayloads }: KeyUse['proof'],
  signers: readonly string[],
): Promise<void> {
  if (signers.length === 0) return;
  if (signatures.length === 0) throw new ApiError('missing_or_empty_authorization_header');
  if (signatures.length < signers.length)
    throw new ApiError('incorrect_quantity_of_authorization_signatures');
  const payloads = canonicalPayloads();
  const isEnough = (verified: ReadonlySet<string>) => verified.size === signers.length;
  const { keys } = await inSlices(verifySignatures({ signatures, payloads, keys: signers, isEnough }));
  if (keys.size === 0) throw new ApiError('zero_correct_authorization_signatures');
  if (!isEnough(keys)) throw new ApiError('insufficient_correct_authorization_signatures');
}
