import type { IntentType } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../operation-context.ts';
import type { Planned } from '../../../planned.ts';
import type { AdditionalSigner } from '../../access/owners/require-owner.ts';
import { addConditionSetItemsProposal, replaceConditionSetItemsProposal } from './condition-set-proposals.ts';
import { updateKeyQuorumProposal } from './key-quorum-proposals.ts';
import {
  createPolicyRuleProposal,
  deletePolicyRuleProposal,
  updatePolicyProposal,
  updatePolicyRuleProposal,
} from './policy-proposals.ts';
import type { Subject } from './proposal.ts';
import { transferProposal, updateWalletProposal, walletRpcProposal } from './wallet-proposals.ts';

/** Every operation that can be proposed, by its id. */
const proposals = {
  addConditionSetItems: addConditionSetItemsProposal,
  createPolicyRule: createPolicyRuleProposal,
  deletePolicyRule: deletePolicyRuleProposal,
  replaceConditionSetItems: replaceConditionSetItemsProposal,
  transferFromWallet: transferProposal,
  updateKeyQuorum: updateKeyQuorumProposal,
  updatePolicy: updatePolicyProposal,
  updatePolicyRule: updatePolicyRuleProposal,
  updateWallet: updateWalletProposal,
  walletRpc: walletRpcProposal,
};

export type ProposableId = keyof typeof proposals;

/** The path and body of any operation, as stored. */
export interface AnyInput {
  readonly path: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** An untyped proposal; the compiler has checked each against its operation in the table. */
export interface AnyProposal {
  readonly intentType: IntentType;
  hold(context: OperationContext, path: AnyInput['path']): Promise<Subject<unknown>>;
  pathOf(subject: Subject<unknown>, path: AnyInput['path']): AnyInput['path'];
  resourceId?(path: AnyInput['path']): string;
  signers?(subject: Subject<unknown>, input: AnyInput): readonly AdditionalSigner[];
  check(context: OperationContext, subject: Subject<unknown>, input: AnyInput): Promise<void> | void;
  priorState?(context: OperationContext, subject: Subject<unknown>, path: AnyInput['path']): unknown;
  prepare?(context: PlanContext, input: AnyInput): Promise<unknown>;
  actionOf?(answer: unknown): string;
  /** Without a `prepare`, `planned` is not read. */
  run(context: OperationContext, input: AnyInput, planned: Planned<unknown>): Promise<unknown>;
}

/** The proposal of an operation that a row names. */
export function proposalOf(operationId: string): AnyProposal {
  return proposals[operationId as ProposableId] as unknown as AnyProposal;
}
