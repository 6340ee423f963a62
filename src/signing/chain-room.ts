export type CurveType = 'secp256k1' | 'ed25519' | 'starknet';

/** What a wallet shows of its key. */
export interface WalletKeys {
  readonly address: string;
  /**
   * secp256k1: compressed, 66 hex digits without 0x. ed25519: 00 and the key, 66 hex digits.
   * starknet: the x coordinate as a 0x felt without leading zeros.
   */
  readonly publicKey: string;
}

/** Choices that are a deployment's, not a wallet's. */
export interface AddressOptions {
  /** Which account contract a Starknet address is computed for. Default `ready`. */
  readonly starknetAccountClass?: 'ready' | 'openzeppelin' | undefined;
  /** Default `mainnet`. */
  readonly sparkNetwork?: 'mainnet' | 'regtest' | undefined;
}

/** One chain's pure functions. Secrets are 32 bytes and never kept. */
export interface ChainRoom {
  walletKeys(secret: Uint8Array, options: AddressOptions): WalletKeys;
  /**
   * `raw_sign`: the signature over the payload in the chain's own form.
   * Throws InvalidPayloadError when the chain does not sign payloads of this length.
   */
  signPayload(secret: Uint8Array, payload: Uint8Array): Uint8Array;
}
