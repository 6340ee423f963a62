import { RequestTermsError } from '../../../actions/request-terms-error.ts';
import { ApiError, invalidField } from '../../../errors.ts';

/** What `read` makes of a body. @throws ApiError invalid_data naming the field; not_supported. */
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
