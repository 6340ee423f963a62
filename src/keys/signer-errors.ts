import { FeeAboveCeilingError } from '../engine/actions/filled-fees.ts';
import { NotComparableError } from '../engine/authorization/requested/built-part.ts';
import { UnauthorizedUseError } from '../engine/authorization/signed-evidence.ts';
import { SigningBudgetError } from '../engine/authorization/signing-budget.ts';
import { HpkeError } from '../engine/crypto/hpke.ts';
import * as signing from '../engine/signing/signing-errors.ts';
import { KeyStoreError, MasterKeyUnavailableError } from './master-keys.ts';

/**
 * Thrown when the signer cannot be reached, is busy, or has failed. It may or may not have signed; nothing was stored.
 */
export class SignerUnavailableError extends Error {
  /** Recognized by `isUnavailable` of `errors.ts`. */
  readonly isUnavailable = true;
  readonly unavailable = 'the signer';

  constructor(message: string) {
    super(message);
    this.name = 'SignerUnavailableError';
  }
}

/** Thrown for a call that exceeds the length of a message. It was not sent. */
export class CallTooLargeError extends Error {
  /** Recognized by `isTooLarge` of `errors.ts`. */
  readonly isTooLarge = true;

  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'CallTooLargeError';
  }
}

/** Thrown when the signer cannot start with its settings. */
export class SignerRefusedError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('; '));
    this.name = 'SignerRefusedError';
    this.faults = faults;
  }
}

/**
 * An error on its way to the server. Messages of the errors below never contain secrets; other messages are not sent.
 */
interface SentError {
  readonly code: string;
  readonly message: string;
  /** The field of a SigningInputError. */
  readonly field?: string;
}

type MakeError = (message: string, field: string) => Error;

/** The errors of a key store that callers handle separately. */
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
    // Callers need only its field and its message.
    (message, field) => Object.assign(new signing.UnsupportedMethodError('', '', []), { message, field }),
  ],
  // Callers treat all other errors alike.
  ['input', signing.SigningInputError, (message, field) => new signing.InvalidFieldError(field, message)],
];

/** The maximum length of an error message that is sent, because messages can quote input of any length. */
const MAX_TEXT = 1_000;

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT).toWellFormed()}…` : text;
}

/** Undefined for an unexpected error, whose message may contain a secret. */
export function toSentError(error: unknown): SentError | undefined {
  const [code] = known.find(([, type]) => error instanceof type) ?? [];
  if (code === undefined) return undefined;
  const message = cut((error as Error).message);
  return error instanceof signing.SigningInputError
    ? { code, message, field: cut(error.field) }
    : { code, message };
}

/** Thrown when the signer itself has failed. */
const faults: ReadonlySet<unknown> = new Set(['internal', 'protocol']);

/** A newer signer may send an error that this version does not know. It is not an error of the server. */
function isRefusal(code: unknown): boolean {
  return typeof code === 'string' && !faults.has(code);
}

/** The reverse of `toSentError`. */
export function fromSentError(sent: unknown): Error {
  const { code, message, field } = (sent ?? {}) as Partial<SentError>;
  const [, , make] = known.find(([each]) => each === code) ?? [];
  if (make === undefined)
    return isRefusal(code)
      ? new SignerUnavailableError(`the signer refuses: ${message}`)
      : new Error('the signer failed');
  return make(String(message), String(field ?? ''));
}
