import { RequestTermsError } from '../../../engine/actions/request-terms-error.ts';
import {
  InvalidSolanaTransactionError,
  SigningInputError,
  UnsupportedMethodError,
} from '../../../engine/signing/signing-errors.ts';
import { ApiError, invalidField } from '../../../errors.ts';

/**
 * Calls `read` and translates its `RequestTermsError` into an `ApiError`.
 *
 * @throws ApiError with the code of the error, usually invalid_data or not_supported, naming the field.
 */
export function refusingTerms<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RequestTermsError)) throw error;
    const { code, pointer, message } = error;
    throw code === 'invalid_data'
      ? invalidField(pointer, message)
      : new ApiError(code, `${pointer}: ${message}`);
  }
}

/** Returns the ApiError for an input that cannot be signed, or any other error unchanged. */
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
