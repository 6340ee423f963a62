export type CurveType = 'secp256k1' | 'ed25519' | 'starknet';

/** The public part of a wallet's key. */
export interface WalletKeys {
  readonly address: string;
  /**
   * secp256k1: compressed, 66 hex digits without 0x. ed25519: 00 followed by the key, 66 hex digits.
   * starknet: the x coordinate as a 0x felt without leading zeros.
   */
  readonly publicKey: string;
}

/** Address options that are configured per deployment, not per wallet. */
export interface AddressOptions {
  /** The account contract that Starknet addresses are computed for. Default `ready`. */
  readonly starknetAccountClass?: 'ready' | 'openzeppelin' | undefined;
  /** Default `mainnet`. */
  readonly sparkNetwork?: 'mainnet' | 'regtest' | undefined;
}

/** Derives a wallet's address and signs payloads for one chain. Secrets are 32 bytes and never stored. */
export interface ChainSigner {
  walletKeys(secret: Uint8Array, options: AddressOptions): WalletKeys;
  /**
   * `raw_sign`: the signature over the payload in the chain's format.
   * Throws InvalidPayloadError when the chain does not sign payloads of this length.
   */
  signPayload(secret: Uint8Array, payload: Uint8Array): Uint8Array;
}
