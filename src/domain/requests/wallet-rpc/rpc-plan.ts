import type { PolicyAction } from '../../../policy/action.ts';
import type { LightAccountFactory, VerifyingAccount } from '../../../signing/ethereum/light-account.ts';
import type { PlannedSend } from '../../money/sending/rpc-sender.ts';

/** The external data an rpc request needs, fetched before its transaction begins. */
export type RpcPlan =
  | { readonly kind: 'send'; readonly send: PlannedSend }
  /** A Spark network's response about the wallet, in wire form. */
  | { readonly kind: 'spark'; readonly answer: object }
  /** Only a signature. `pendingCount` is the chain's transaction count, for an authorization without a nonce. */
  | {
      readonly kind: 'signature';
      readonly pendingCount?: bigint | undefined;
      /** The smart wallet that is to verify the signature. */
      readonly smartAccount?: SmartAccount | undefined;
    };

/** A smart wallet of the wallet's user, on one chain. */
export interface SmartAccount {
  readonly verifying: VerifyingAccount;
  readonly factory: LightAccountFactory;
  readonly isDeployed: boolean;
}

/** An rpc request as policies see it, and its execution once they have allowed it. */
export interface DecodedRpc {
  readonly action: PolicyAction;
  /** As `DecodedUse` has it. */
  readonly onlySigns?: boolean;
  /** Executes the request, calls `record` once, and returns the wire data of the method's response. */
  perform(record: () => Promise<void>): Promise<unknown>;
}
