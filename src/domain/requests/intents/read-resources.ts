import type {
  ConditionSet,
  KeyQuorum,
  Policy,
  PolicyRuleResponse,
  Wallet,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { conditionSetView, listConditionSetsOfIds } from '../../access/condition-sets/find-condition-set.ts';
import { listKeyQuorumsOfIds } from '../../access/key-quorums/find-key-quorum.ts';
import { keyQuorumView } from '../../access/key-quorums/key-quorum-view.ts';
import { listPoliciesOfIds } from '../../access/policies/find-policy.ts';
import { policyView } from '../../access/policies/policy-view.ts';
import { listWalletsOfIds } from '../../wallets/wallets/find-wallet.ts';
import { walletView } from '../../wallets/wallets/wallet-view.ts';
import type { IntentRow } from './intent-row.ts';

/** The current state of an intent's resource, as intents show it. */
export interface CurrentResource {
  readonly current_resource_data?: Wallet | Policy | PolicyRuleResponse | KeyQuorum | ConditionSet;
  readonly policy?: Policy;
}

type ReadContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * The resources of these intents, one query for each kind. Result: a function that returns one intent's resource;
 * empty when it no longer exists.
 */
export async function readResources(
  context: ReadContext,
  intents: readonly IntentRow[],
): Promise<(intent: IntentRow) => CurrentResource> {
  const idsOf = (...types: string[]) => [
    ...new Set(intents.filter((intent) => types.includes(intent.intent_type)).map((row) => row.subject_id)),
  ];
  const wallets = byId((await listWalletsOfIds(context, idsOf('RPC', 'TRANSFER', 'WALLET'))).map(walletView));
  const policies = byId((await listPoliciesOfIds(context, idsOf('POLICY', 'RULE'))).map(policyView));
  const quorums = byId((await listKeyQuorumsOfIds(context, idsOf('KEY_QUORUM'))).map(keyQuorumView));
  const sets = byId((await listConditionSetsOfIds(context, idsOf('CONDITION_SET'))).map(conditionSetView));
  return ({ intent_type: type, subject_id: subjectId, resource_id: resourceId }) => {
    if (type !== 'RULE') {
      const resource = [wallets, policies, quorums, sets].map((ofKind) => ofKind.get(subjectId));
      return present(
        'current_resource_data',
        resource.find((found) => found !== undefined),
      );
    }
    const policy = policies.get(subjectId);
    const rule = policy?.rules.find(({ id }) => id === resourceId);
    return { ...present('current_resource_data', rule), ...present('policy', policy) };
  };
}

function byId<Resource extends { id: string }>(resources: readonly Resource[]): Map<string, Resource> {
  return new Map(resources.map((resource) => [resource.id, resource]));
}

function present<Name extends string, Value>(name: Name, value: Value | undefined) {
  return (value === undefined ? {} : { [name]: value }) as { [N in Name]?: Value };
}
