import type { ChainType } from '../../../engine/signing/chains.ts';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { OperationId, Operations } from '../../../generated/operations.ts';
import { requestValidators } from '../../../generated/request-validators.js';
import type {
  IntentType,
  PolicyRuleProposal,
  PolicyRuleRequest,
  TransferActionResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext, Planned } from '../../../ports/operation-context.ts';
import type { StoredConditionSet } from '../../access/condition-sets/condition-set.entity.ts';
import {
  addConditionSetItems,
  findConditionSetForUpdate,
  listConditionSetItems,
  replaceConditionSetItems,
  requireText,
} from '../../access/condition-sets/condition-set.ts';
import {
  findKeyQuorum,
  keyQuorumView,
  type StoredKeyQuorum,
} from '../../access/key-quorums/find-key-quorum.ts';
import { checkKeyQuorumChange, lockKeyQuorum, updateKeyQuorum } from '../../access/key-quorums/key-quorum.ts';
import { checkOwner } from '../../access/key-quorums/resolve-owner.ts';
import type { AdditionalSigner } from '../../access/owners/require-authorization.ts';
import {
  findPolicyForUpdate,
  policyView,
  requirePartsAfterUpdate,
  requirePartsOfOwner,
  type StoredPolicy,
} from '../../access/policies/find-policy.ts';
import {
  checkRuleCount,
  checkRules,
  createPolicyRule,
  deletePolicyRule,
  updatePolicy,
  updatePolicyRule,
} from '../../access/policies/policy.ts';
import {
  type PlannedTransferRequest,
  planTransferRequest,
  readTransferBody,
  transferFromWallet,
} from '../../money/wallet-actions/transfer.ts';
import { walletActionView } from '../../money/wallet-actions/wallet-action.ts';
import { findWalletForUpdate, walletView } from '../../wallets/wallets/find-wallet.ts';
import { checkWalletChange, updateWallet } from '../../wallets/wallets/update-wallet.ts';
import { signersOf, type WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { decodeUse } from '../policy-analysis/explain-policy.ts';
import { planRpc, type RpcPlan } from '../wallet-rpc/plan-rpc.ts';
import { runWalletRpc } from '../wallet-rpc/wallet-rpc.ts';
import { findIntent } from './find-intent.ts';

/** The resource that a proposed request would change or use, locked until the transaction ends. */
export interface Subject<Row> {
  readonly id: string;
  /** The key quorum that owns the resource; null for a resource without an owner. */
  readonly ownerId: string | null;
  readonly row: Row;
}

/** The proposed request as received, with the field names of the API document. */
interface ProposedInput<Id extends OperationId> {
  readonly path: Operations[Id]['path'];
  readonly body: Operations[Id]['body'];
}

/** An operation that can be proposed: the functions with which an intent checks and executes its request. */
interface Proposal<Id extends OperationId, Row> {
  readonly intentType: IntentType;
  /**
   * Finds and locks the resource.
   *
   * @throws ApiError not_found
   */
  hold(context: OperationContext, path: Operations[Id]['path']): Promise<Subject<Row>>;
  /** Returns the path parameters with the resource's own id. The caller may have used another id for it. */
  pathOf(subject: Subject<Row>, path: Operations[Id]['path']): Operations[Id]['path'];
  /** Returns the `resource_id` of the intent. If absent, it is the subject's id. */
  resourceId?(path: Operations[Id]['path']): string;
  /** Returns the additional signers who may authorize the request. If absent, only the owner may. */
  signers?(subject: Subject<Row>, input: ProposedInput<Id>): readonly AdditionalSigner[];
  /**
   * Refuses requests that the operation itself would refuse, as far as that does not depend on the time of execution.
   * Changes nothing.
   */
  check(context: OperationContext, subject: Subject<Row>, input: ProposedInput<Id>): Promise<void>;
  /** Returns the resource before the change, in wire form. */
  priorState?(context: OperationContext, subject: Subject<Row>, path: Operations[Id]['path']): unknown;
  /** Always absent: this operation needs no plan. For an operation that needs one, see `PlannedProposal`. */
  readonly plan?: never;
  /**
   * Reads from the response the id of the wallet action that the execution started. The action's outcome settles the
   * intent.
   */
  actionOf?(answer: Operations[Id]['response']): string;
  /** Calls the operation's own verb and returns its response. */
  run(context: OperationContext, input: ProposedInput<Id>): Promise<Operations[Id]['response']>;
}

/** An operation that can be proposed and that reads external data before its transaction. */
interface PlannedProposal<Id extends OperationId, Row, Found>
  extends Omit<Proposal<Id, Row>, 'plan' | 'run'> {
  /** Runs the plan of the operation. */
  plan(context: PlanContext, input: ProposedInput<Id>): Promise<Found>;
  /** Calls the operation's own verb and returns its response. */
  run(
    context: OperationContext,
    input: ProposedInput<Id>,
    planned: Planned<Found>,
  ): Promise<Operations[Id]['response']>;
}

type ItemsOperation = 'addConditionSetItems' | 'replaceConditionSetItems';

const shared = {
  intentType: 'CONDITION_SET',
  async hold(context, { condition_set_id: id }) {
    const row = await findConditionSetForUpdate(context, id);
    return { id, ownerId: row.ownerId, row };
  },
  pathOf: (_, path) => path,
  check: async (_, _subject, { body }) => requireText(body),
  // CHOICE: at most the newest hundred items, which is one page. A set can have any number of items.
  priorState: async (context: OperationContext, { id }) =>
    (await listConditionSetItems(context, id, {})).items,
} satisfies Omit<Proposal<ItemsOperation, StoredConditionSet>, 'run'>;

const addConditionSetItemsProposal: Proposal<'addConditionSetItems', StoredConditionSet> = {
  ...shared,
  run: (context, { path, body }) => addConditionSetItems(context, path.condition_set_id, body),
};

const replaceConditionSetItemsProposal: Proposal<'replaceConditionSetItems', StoredConditionSet> = {
  ...shared,
  run: (context, { path, body }) => replaceConditionSetItems(context, path.condition_set_id, body),
};

const updateKeyQuorumProposal: Proposal<'updateKeyQuorum', StoredKeyQuorum> = {
  intentType: 'KEY_QUORUM',
  async hold(context, { key_quorum_id: id }) {
    await lockKeyQuorum(context, id);
    const row = await findKeyQuorum(context, id);
    return { id, ownerId: id, row };
  },
  pathOf: (_, path) => path,
  async check(context, { row }, { body }) {
    await checkKeyQuorumChange(context, row, body);
  },
  priorState: (_, { row }) => keyQuorumView(row),
  run: async (context, { path, body }) =>
    keyQuorumView(await updateKeyQuorum(context, path.key_quorum_id, body)),
};

const AT_ROOT = () => '';
const fromRoot = (_: number, place: string): string => place;

async function hold(
  context: OperationContext,
  { policy_id: id }: { policy_id: string },
): Promise<Subject<StoredPolicy>> {
  const row = await findPolicyForUpdate(context, id);
  return { id: row.id, ownerId: row.ownerId, row };
}

const samePath = <Path>(_: unknown, path: Path): Path => path;
const ruleOf = ({ rule_id: id }: { rule_id: string }): string => id;

function findRule({ row }: Subject<StoredPolicy>, { rule_id: ruleId }: { rule_id: string }) {
  return row.rules.find(({ id }) => id === ruleId);
}

function requireRule(subject: Subject<StoredPolicy>, path: { rule_id: string }): void {
  if (findRule(subject, path) === undefined) throw notFound('Rule');
}

/** Returns the proposed rule if it is complete, or a message that names the first missing field. */
function completeRule(proposed: PolicyRuleProposal): PolicyRuleRequest | { lacks: string; message: string } {
  const validate = requestValidators.createPolicyRule.body!;
  if (validate(proposed)) return proposed as PolicyRuleRequest;
  const [fault] = validate.errors ?? [];
  const missing = fault?.params.missingProperty;
  const lacks = `${fault?.instancePath ?? ''}${missing === undefined ? '' : `/${missing}`}`;
  return { lacks, message: missing === undefined ? (fault?.message ?? 'is not valid') : 'is required' };
}

const updatePolicyProposal: Proposal<'updatePolicy', StoredPolicy> = {
  intentType: 'POLICY',
  hold,
  pathOf: samePath,
  async check(context, { row }, { body }) {
    const ownerId = await checkOwner(context, body);
    if (body.rules !== undefined) {
      await checkRules(context, body.rules, row.chainType, (index) => `/rules/${index}`);
    }
    await requirePartsAfterUpdate(context, row, body, ownerId);
  },
  priorState: (_, { row }) => policyView(row),
  run: async (context, { path, body }) => policyView(await updatePolicy(context, path.policy_id, body)),
};

const createPolicyRuleProposal: Proposal<'createPolicyRule', StoredPolicy> = {
  intentType: 'RULE',
  hold,
  pathOf: samePath,
  async check(context, { row }, { body }) {
    checkRuleCount(row.rules.length + 1);
    const rule = completeRule(body);
    // The API allows incomplete rules to be proposed.
    if ('lacks' in rule) return;
    await checkRules(context, [rule], row.chainType, AT_ROOT);
    await requirePartsOfOwner(context, row.ownerId, [rule], fromRoot);
  },
  async run(context, { path, body }) {
    const rule = completeRule(body);
    if ('lacks' in rule) throw invalidField(rule.lacks, rule.message);
    return createPolicyRule(context, path.policy_id, rule);
  },
};

const updatePolicyRuleProposal: Proposal<'updatePolicyRule', StoredPolicy> = {
  intentType: 'RULE',
  hold,
  pathOf: samePath,
  resourceId: ruleOf,
  async check(context, subject, { path, body }) {
    requireRule(subject, path);
    await checkRules(context, [body], subject.row.chainType, AT_ROOT);
    await requirePartsOfOwner(context, subject.row.ownerId, [body], fromRoot);
  },
  priorState: (_, subject, path) => findRule(subject, path),
  run: (context, { path, body }) => updatePolicyRule(context, path.policy_id, path.rule_id, body),
};

const deletePolicyRuleProposal: Proposal<'deletePolicyRule', StoredPolicy> = {
  intentType: 'RULE',
  hold,
  pathOf: samePath,
  resourceId: ruleOf,
  check: async (_, subject, { path }) => requireRule(subject, path),
  priorState: (_, subject, path) => findRule(subject, path),
  async run(context, { path }) {
    await deletePolicyRule(context, path.policy_id, path.rule_id);
    return { success: true };
  },
};

async function holdWallet(
  context: OperationContext,
  { wallet_id: walletId }: { wallet_id: string },
): Promise<Subject<WalletRow>> {
  const row = await findWalletForUpdate(context, walletId);
  return { id: row.id, ownerId: row.owner_id, row };
}

// CHOICE: the wallet id replaces an external id in the path, so that signatures never cover an alias.
const ownPath = ({ id }: Subject<WalletRow>): { wallet_id: string } => ({ wallet_id: id });

/** Methods that only the owner may authorize. */
const ownersMethods: ReadonlySet<string> = new Set(['exportPrivateKey', 'exportSeedPhrase']);

const updateWalletProposal: Proposal<'updateWallet', WalletRow> = {
  intentType: 'WALLET',
  hold: holdWallet,
  pathOf: ownPath,
  check: async (context, { row }, { body }) => checkWalletChange(context, row, body),
  priorState: (_, { row }) => walletView(row),
  run: async (context, { path, body }) => walletView(await updateWallet(context, path.wallet_id, body)),
};

const walletRpcProposal: PlannedProposal<'walletRpc', WalletRow, RpcPlan> = {
  intentType: 'RPC',
  hold: holdWallet,
  pathOf: ownPath,
  signers: ({ row }, { body }) => (ownersMethods.has(body.method) ? [] : signersOf(row)),
  async check(_, { row }, { body }) {
    if (row.custody_provider !== null)
      throw new ApiError('not_supported', 'a custodial wallet does not support rpc');
    // Decoding the request finds params that cannot be signed. Checks that depend on a network are made on execution.
    await decodeUse(
      { chainType: row.chain_type as ChainType, address: row.address },
      { operation: 'walletRpc', request: body },
    );
  },
  plan: (context, { path, body }) => planRpc(context, path.wallet_id, body),
  run: (context, { path, body }, planned) =>
    runWalletRpc(context, { walletId: path.wallet_id, request: body, planned }),
};

const transferProposal: PlannedProposal<'transferFromWallet', WalletRow, PlannedTransferRequest> = {
  intentType: 'TRANSFER',
  hold: holdWallet,
  pathOf: ownPath,
  signers: ({ row }) => signersOf(row),
  check: async (_, { row }, { body }) => void readTransferBody(row, body),
  plan: (context, { path, body }) => planTransferRequest(context, path.wallet_id, body),
  actionOf: ({ id }) => id,
  async run(context, { path, body }, planned) {
    const action = await transferFromWallet(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as TransferActionResponse;
  },
};

/** The operations that can be proposed, by `operationId`. */
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

/** The path parameters and the body of any operation, as stored. */
export interface AnyInput {
  readonly path: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/**
 * A proposal without the types of its operation. The compiler has checked each entry of the table against its
 * operation.
 */
export interface AnyProposal {
  readonly intentType: IntentType;
  hold(context: OperationContext, path: AnyInput['path']): Promise<Subject<unknown>>;
  pathOf(subject: Subject<unknown>, path: AnyInput['path']): AnyInput['path'];
  resourceId?(path: AnyInput['path']): string;
  signers?(subject: Subject<unknown>, input: AnyInput): readonly AdditionalSigner[];
  check(context: OperationContext, subject: Subject<unknown>, input: AnyInput): Promise<void>;
  priorState?(context: OperationContext, subject: Subject<unknown>, path: AnyInput['path']): unknown;
  plan?(context: PlanContext, input: AnyInput): Promise<unknown>;
  actionOf?(answer: unknown): string;
  /** Calls the operation's own verb and returns its response. Without a `plan`, `planned` is ignored. */
  run(context: OperationContext, input: AnyInput, planned: Planned<unknown>): Promise<unknown>;
}

/** Returns the proposal for the `operationId` of a stored intent. */
export function proposalOf(operationId: string): AnyProposal {
  return proposals[operationId as ProposableId];
}

/**
 * Plans the request of an intent, in case this signature is the last one needed.
 *
 * @returns the plan for `run` of the same proposal, where both are typed; undefined for a request that needs no plan,
 * and for an intent that is not pending.
 * @throws ApiError not_found; the errors of the proposed operation's plan.
 */
export async function planProposed(context: PlanContext, intentId: string): Promise<unknown> {
  const {
    status,
    operation_id: operationId,
    path_parameters: path,
    body,
  } = await findIntent(context, intentId);
  const proposal = proposalOf(operationId);
  if (status !== 'pending' || proposal.plan === undefined) return undefined;
  const input = {
    path: JSON.parse(path) as AnyInput['path'],
    body: body === null ? undefined : JSON.parse(body),
  };
  return proposal.plan(context, input);
}
