import type { PolicyAction } from '../../../policy/action.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import type { SigningMethod, SigningMethods } from '../../../signing/sign-with-key.ts';
import type { HeldAuthorization } from '../transactions/record-transaction.ts';

/** A transaction that is complete except for its signature, built inside the database transaction that signs it. */
export interface BuiltTransaction {
  readonly chain: AnyChain;
  /** The action that policies evaluate, decoded from the bytes to be signed. */
  readonly action: PolicyAction;
  /** The sender's nonce; undefined on chains without nonces and for nonce lanes that count separately. */
  readonly nonce?: number | undefined;
  /** The transaction with a lower nonce that has to reach the chain first. */
  readonly afterTransactionId?: string | undefined;
  /** The authorizations that use nonces, of the sender or of other accounts. */
  readonly authorizations?: readonly HeldAuthorization[] | undefined;
  /** What is signed, in the contract's names; EVM only. */
  readonly request?: object | undefined;
  /** Set when someone else pays the gas: the paymaster of a user operation, or a fee payer who also signs. */
  readonly sponsorship?: 'operation' | 'fee_payer';
  /** Throws SigningInputError. */
  sign(key: SigningKey): Promise<SignedBytes>;
}

/** The key of the wallet that a transaction is built for. */
export interface SigningKey {
  sign<Method extends SigningMethod>(
    method: Method,
    params: SigningMethods[Method]['params'],
  ): Promise<SigningMethods[Method]['data']>;
}

export interface SignedBytes {
  /** The bytes to broadcast. */
  readonly bytes: Uint8Array;
  /**
   * In the chain type's notation. For a user operation this is the operation's hash, because its transaction does not
   * exist yet.
   */
  readonly hash: string;
}
