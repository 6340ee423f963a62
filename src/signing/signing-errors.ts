/**
 * An input that cannot be signed. `field` is a JSON pointer into what the caller passed as `params`
 * (`/transaction/nonce`; empty for the whole). The message never holds keys or the signed bytes.
 */
export class SigningInputError extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.name = new.target.name;
    this.field = field;
  }
}

/** A scalar of the wrong form or out of bounds. */
export class InvalidFieldError extends SigningInputError {}

/** A transaction that the chain's encoding cannot carry, or that is not this wallet's to sign. */
export class InvalidTransactionError extends SigningInputError {}

/** Solana wire bytes that do not decode, or that do not ask for this wallet's signature. */
export class InvalidSolanaTransactionError extends SigningInputError {}

/** EIP-712 typed data whose message does not fit its types. */
export class InvalidTypedDataError extends SigningInputError {}

/** A digest or message of a length or encoding the chain does not sign. */
export class InvalidPayloadError extends SigningInputError {}

/** Bytes that are no private key of the chain's curve. */
export class InvalidPrivateKeyError extends SigningInputError {}

/** A method that does not fit the chain; the message names those that do. */
export class UnsupportedMethodError extends SigningInputError {
  constructor(method: string, chainType: string, fitting: readonly string[]) {
    const names = fitting.map((name) => `\`${name}\``).join(', ');
    super('/method', `expected a method of \`${chainType}\` (${names}), got \`${method}\``);
  }
}
