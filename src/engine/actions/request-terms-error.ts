/** Thrown when a request's body describes something that cannot be done. */
export class RequestTermsError extends Error {
  readonly code: 'invalid_data' | 'not_supported';
  /** JSON pointer to the field in the body. */
  readonly pointer: string;

  constructor(code: RequestTermsError['code'], pointer: string, message: string) {
    super(message);
    this.name = 'RequestTermsError';
    this.code = code;
    this.pointer = pointer;
  }
}

export function notSupported(pointer: string, message: string): RequestTermsError {
  return new RequestTermsError('not_supported', pointer, message);
}

export function invalid(pointer: string, message: string): RequestTermsError {
  return new RequestTermsError('invalid_data', pointer, message);
}
