import type { PolicyAction } from '../../../policy/action.ts';
import type { AnyChain } from '../../../ports/chains.ts';

/** A transaction whose bytes are fixed but for the signature, made inside the transaction that signs it. */
export interface BuiltTransaction {
  readonly chain: AnyChain;
  /** What policies judge, decoded from the bytes to be signed. */
  readonly action: PolicyAction;
  /** The number it takes of its sender; undefined on chains without, and for lanes that count by themselves. */
  readonly nonce?: number | undefined;
  /** What is signed, in the contract's names; EVM only. */
  readonly request?: object | undefined;
  /** Set where somebody else pays the gas: as a user operation's paymaster, or as a fee payer who signs as well. */
  readonly sponsorship?: 'operation' | 'fee_payer';
  /** Throws SigningInputError. */
  sign(privateKey: Uint8Array): Promise<SignedBytes>;
}

export interface SignedBytes {
  /** What the chain takes. */
  readonly bytes: Uint8Array;
  /** As the chain type writes it; of a user operation its own, since it is no transaction yet. */
  readonly hash: string;
}
