/** The binding of a sealed secret; opening it under any other binding fails. */
export interface SealBinding {
  /** The use of the secret: the chain type of a wallet's key, otherwise a separate name. */
  readonly purpose: string;
  /** The row that contains the secret. */
  readonly rowId: string;
  readonly appId: string;
}

/** A secret under envelope encryption, as stored in the database. */
export interface SealedKey {
  /** 12-byte nonce || ciphertext || 16-byte tag of the secret under its own data key. */
  sealedSecret: Uint8Array;
  /** 12-byte nonce || ciphertext || 16-byte tag of the data key under the master key. */
  wrappedDataKey: Uint8Array;
  /** Id of the master key that wrapped the data key. */
  masterKeyId: string;
}

/** Seals and opens secrets. An open secret exists only during the `use` callback and is wiped afterwards. */
export interface KeyVault {
  seal(secret: Uint8Array, binding: SealBinding): Promise<SealedKey>;
  withSecret<T>(
    sealed: SealedKey,
    binding: SealBinding,
    use: (secret: Uint8Array) => T | Promise<T>,
  ): Promise<T>;
}
