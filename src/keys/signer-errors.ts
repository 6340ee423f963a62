import { FeeAboveCeilingError } from '../engine/actions/filled-fees.ts';
import { NotComparableError } from '../engine/authorization/requested/built-part.ts';
import { UnauthorizedUseError } from '../engine/authorization/signed-evidence.ts';
import { SigningBudgetError } from '../engine/authorization/signing-budget.ts';
import { HpkeError } from '../engine/crypto/hpke.ts';
import * as signing from '../engine/signing/signing-errors.ts';
import { KeyStoreError, MasterKeyUnavailableError } from './master-keys.ts';

/** Thrown when the signer cannot be reached, is busy, or has failed. It may have signed, but nothing was stored. */
export class SignerUnavailableError extends Error {
  /** Marks the error for `isUnavailable` in `errors.ts`. */
  readonly isUnavailable = true;
  readonly unavailable = 'the signer';

  constructor(message: string) {
    super(message);
    this.name = 'SignerUnavailableError';
  }
}

/** Thrown when a call exceeds the maximum length of a message. The call was not sent. */
export class CallTooLargeError extends Error {
  /** Marks the error for `isTooLarge` in `errors.ts`. */
  readonly isTooLarge = true;

  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'CallTooLargeError';
  }
}

/** Thrown when the signer refuses to start with its settings. `faults` lists the reasons. */
export class SignerRefusedError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('; '));
    this.name = 'SignerRefusedError';
    this.faults = faults;
  }
}

/**
 * An error as the signer sends it. Only errors in `known` are sent with their message, because their messages never
 * contain secrets.
 */
interface SentError {
  readonly code: string;
  readonly message: string;
  /** The field that a SigningInputError names. */
  readonly field?: string;
}

type MakeError = (message: string, field: string) => Error;

/** The errors of a key store that callers handle in different ways: code, class, and how to create one. */
const known: readonly [string, new (...args: never[]) => Error, MakeError][] = [
  ['kms', MasterKeyUnavailableError, (message) => new MasterKeyUnavailableError(message)],
  ['vault', KeyStoreError, (message) => new KeyStoreError(message)],
  ['unauthorized', UnauthorizedUseError, (message) => new UnauthorizedUseError(message)],
  ['comparison', NotComparableError, (message) => new NotComparableError(message)],
  ['fee', FeeAboveCeilingError, (message) => new FeeAboveCeilingError(message)],
  ['spent', SigningBudgetError, (message) => new SigningBudgetError(message)],
  ['hpke', HpkeError, (message) => new HpkeError(message)],
  [
    'imported_key',
    signing.InvalidImportedKeyError,
    (message) => new signing.InvalidImportedKeyError(message),
  ],
  [
    'solana_transaction',
    signing.InvalidSolanaTransactionError,
    (message, field) => new signing.InvalidSolanaTransactionError(field, message),
  ],
  [
    'method',
    signing.UnsupportedMethodError,
    // Callers read only the field and the message of this error.
    (message, field) => Object.assign(new signing.UnsupportedMethodError('', '', []), { message, field }),
  ],
  // Must be last, because it is the base class of the errors above. Callers handle all its other subclasses alike.
  ['input', signing.SigningInputError, (message, field) => new signing.InvalidFieldError(field, message)],
];

/** The maximum length of an error message that is sent, because messages can quote input of any length. */
const MAX_TEXT = 1_000;

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT).toWellFormed()}…` : text;
}

/**
 * Returns the error in the form that is sent; undefined for an unexpected error, whose message may contain a secret.
 */
export function toSentError(error: unknown): SentError | undefined {
  const [code] = known.find(([, type]) => error instanceof type) ?? [];
  if (code === undefined) return undefined;
  const message = cut((error as Error).message);
  return error instanceof signing.SigningInputError
    ? { code, message, field: cut(error.field) }
    : { code, message };
}

/** The codes of an error in the signer itself. */
const faults: ReadonlySet<unknown> = new Set(['internal', 'protocol']);

/**
 * Returns whether an unknown code is a refusal: a newer signer may refuse with a code that this version does not know.
 * The client of the server then gets 503, not 500.
 */
function isRefusal(code: unknown): boolean {
  return typeof code === 'string' && !faults.has(code);
}

/** Turns a sent error back into the error that the key store threw. */
export function fromSentError(sent: unknown): Error {
  const { code, message, field } = (sent ?? {}) as Partial<SentError>;
  const [, , make] = known.find(([each]) => each === code) ?? [];
  if (make === undefined)
    return isRefusal(code)
      ? new SignerUnavailableError(`the signer refuses: ${message}`)
      : new Error('the signer failed');
  return make(String(message), String(field ?? ''));
}
