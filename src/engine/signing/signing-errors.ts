/**
 * Thrown when input cannot be signed. `field` is a JSON pointer into the caller's `params`, for example
 * `/transaction/nonce`, or empty for all params. The message never contains keys or the bytes to sign.
 */
export class SigningInputError extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.name = new.target.name;
    this.field = field;
  }
}

/** Thrown when a field has the wrong format or is out of range. */
export class InvalidFieldError extends SigningInputError {}

/**
 * Thrown when a transaction is invalid for its chain: it cannot be encoded or decoded, is not signed as required, or
 * does not fit the wallet.
 */
export class InvalidTransactionError extends SigningInputError {}

/** Thrown when Solana wire bytes cannot be decoded, or when the wallet is not a required signer. */
export class InvalidSolanaTransactionError extends SigningInputError {}

/** Thrown when the message of EIP-712 typed data does not match its types. */
export class InvalidTypedDataError extends SigningInputError {}

/** Thrown when the chain does not sign digests or messages of this length or encoding. */
export class InvalidPayloadError extends SigningInputError {}

/** Thrown when the bytes are not a valid private key for the chain's curve. */
export class InvalidPrivateKeyError extends SigningInputError {}

/** Thrown when the chain does not support the method. The message lists the supported methods. */
export class UnsupportedMethodError extends SigningInputError {
  constructor(method: string, chainType: string, supported: readonly string[]) {
    const names = supported.map((name) => `\`${name}\``).join(', ');
    super('/method', `expected a method of \`${chainType}\` (${names}), got \`${method}\``);
  }
}

/**
 * Thrown when the decrypted content of an import is not a key of the chain type. The message never contains the
 * content.
 */
export class InvalidImportedKeyError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidImportedKeyError';
  }
}
