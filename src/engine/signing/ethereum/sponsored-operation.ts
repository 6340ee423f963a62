import { bytesToUtf8, utf8ToBytes } from '../../crypto/encoding.ts';
import { InvalidTransactionError } from '../signing-errors.ts';
import { ENTRY_POINT_ADDRESS } from './simple-account.ts';
import type { SignedAuthorization } from './transaction.ts';
import type { UserOperationInput, UserOperationParams } from './user-operation.ts';

/** A signed user operation for a bundler, with the EIP-7702 authorization that the account may still need. */
export interface SponsoredOperation {
  readonly user_operation: UserOperationInput & { readonly signature: string };
  readonly authorization?: SignedAuthorization | undefined;
}

/** The params of `eth_signUserOperation` for entry point 0.8. */
export function sponsoredOperationParams({
  chainId,
  operation,
}: {
  readonly chainId: number;
  readonly operation: UserOperationInput;
}): UserOperationParams {
  return { contract: ENTRY_POINT_ADDRESS, chain_id: chainId, user_operation: operation };
}

/** The bytes that are stored and sent to the bundler: UTF-8 JSON. */
export function encodeSponsoredOperation(operation: SponsoredOperation): Uint8Array {
  return utf8ToBytes(JSON.stringify(operation));
}

/** @throws InvalidTransactionError when the bytes are not a signed user operation. */
export function decodeSponsoredOperation(bytes: Uint8Array): SponsoredOperation {
  try {
    const decoded = JSON.parse(bytesToUtf8(bytes) ?? '') as Partial<SponsoredOperation>;
    if (typeof decoded.user_operation?.signature === 'string') return decoded as SponsoredOperation;
  } catch {
    // refused below
  }
  throw new InvalidTransactionError('', 'expected a signed user operation');
}
