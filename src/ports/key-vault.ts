/** What a sealed secret is bound to; opening it under any other binding fails. */
export interface SealBinding {
  walletId: string;
  appId: string;
  chainType: string;
}

/** A wallet's secret under envelope encryption, as stored. */
export interface SealedKey {
  /** 12-byte nonce || ciphertext || 16-byte tag of the secret under the wallet's data key. */
  sealedSecret: Uint8Array;
  /** 12-byte nonce || ciphertext || 16-byte tag of the data key under the master key. */
  wrappedDataKey: Uint8Array;
  /** Names the master key that wrapped the data key. */
  masterKeyId: string;
}

/** Holds wallets' secrets. A secret leaves it only into the `use` callback and is wiped afterwards. */
export interface KeyVault {
  seal(secret: Uint8Array, binding: SealBinding): Promise<SealedKey>;
  withSecret<T>(
    sealed: SealedKey,
    binding: SealBinding,
    use: (secret: Uint8Array) => T | Promise<T>,
  ): Promise<T>;
}
