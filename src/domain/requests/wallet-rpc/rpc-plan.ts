import type { PolicyAction } from '../../../policy/action.ts';
import type { PlannedSend } from '../../money/sending/rpc-sender.ts';

/** What an rpc request needed from outside, asked before its transaction begins. */
export type RpcPlan =
  | { readonly kind: 'send'; readonly send: PlannedSend }
  /** What a Spark network says of the wallet: the wire data of the answer. */
  | { readonly kind: 'spark'; readonly answer: object }
  /** A signature alone. `pendingCount` is the chain's, for an authorization whose nonce the caller left out. */
  | { readonly kind: 'signature'; readonly pendingCount?: bigint | undefined };

/** An rpc request as policies judge it, and what is done once they have allowed it. */
export interface DecodedRpc {
  readonly action: PolicyAction;
  /** Does it, calls `record` once, and returns the wire data of the method's answer. */
  perform(record: () => Promise<void>): Promise<unknown>;
}
