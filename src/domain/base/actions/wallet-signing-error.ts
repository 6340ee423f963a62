import { ApiError, invalidField } from '../../../errors.ts';
import {
  InvalidSolanaTransactionError,
  SigningInputError,
  UnsupportedMethodError,
} from '../../../signing/signing-errors.ts';

/** The ApiError for an input that cannot be signed; any other error is returned unchanged. */
export function asSigningRefusal(error: unknown): unknown {
  if (!(error instanceof SigningInputError)) return error;
  if (error instanceof UnsupportedMethodError) return invalidField(error.field, error.message);
  const pointer = `/params${error.field}`;
  if (error instanceof InvalidSolanaTransactionError) {
    return new ApiError('invalid_solana_transaction', `${pointer}: ${error.message}`, {
      data: { issues: [{ in: 'body', pointer, message: error.message }] },
    });
  }
  return invalidField(pointer, error.message);
}
