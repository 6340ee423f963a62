import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { PolicyContent, PolicyPin, PolicyRecord } from '../../../engine/authorization/policy-seals.ts';
import { quorumReference } from '../../../engine/authorization/quorum-records.ts';
import { ApiError } from '../../../errors.ts';
import type { SealBinding, SealedKey } from '../../../ports/key-store.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { policyBinding, sentSeal } from '../../base/sealed-keys/sealed-keys.ts';
import { prepareQueryOfIds } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { knownUsers, loadQuorumRecords, withRecordedOwner } from '../key-quorums/quorum-records.ts';
import { type Authorization, evidenceOf } from '../owners/require-authorization.ts';
import type { StoredPolicy } from './find-policy.ts';
import { PolicySealEntity } from './policy.entity.ts';

// HOT: runs for every use of a wallet whose policies have owners. The entity manager would take several times the CPU
// of these reads (bench `sqlite`, `postgres`).

type ReadContext = Pick<OperationContext, 'app' | 'em'>;

interface StoredSeal extends SealedKey {
  readonly id: string;
  readonly content: string;
}

const selectPins = prepareQueryOfIds<PolicyPin>((database, { ids, appId }) =>
  database
    .selectFrom('policy_seals')
    .select(['id', 'name as seal'])
    .where('app_id', '=', appId)
    .where('id', 'in', ids),
);

/** Returns the pins of the app's policies with these ids. A policy that never had an owner has no pin. */
export async function findPins(context: ReadContext, ids: readonly string[]): Promise<PolicyPin[]> {
  const rows = await selectPins(context, [...new Set(ids)]);
  return rows.map(({ id, seal }) => ({ id, seal }));
}

/**
 * Loads the records of the app's policies with these ids: the content of each policy, and the secret that is sealed
 * under it.
 */
export async function loadPolicyRecords(
  context: ReadContext,
  ids: readonly string[],
): Promise<PolicyRecord[]> {
  const seals = await selectSeals(context, [...new Set(ids)]);
  return seals.map(({ id, content, sealedSecret, wrappedDataKey, masterKeyId }) => ({
    id,
    content,
    seal: sentSeal({ sealedSecret, wrappedDataKey, masterKeyId }),
  }));
}

const selectSeals = prepareQueryOfIds<StoredSeal>((database, { ids, appId }) =>
  database
    .selectFrom('policy_seals')
    .select(['id', 'content', 'sealed_secret as sealedSecret', 'wrapped_data_key as wrappedDataKey'])
    .select('master_key_id as masterKeyId')
    .where('app_id', '=', appId)
    .where('id', 'in', ids),
);

/** Has the key store generate the secret of a policy that gets its first owner. Does nothing without an owner. */
export async function sealPolicy(context: OperationContext, policy: StoredPolicy): Promise<void> {
  if (policy.ownerId === null) return;
  const [owner] = await loadQuorumRecords(context, [policy.ownerId]);
  // INVARIANT: a key quorum that is an owner is never deleted.
  assert(owner !== undefined, `policy ${policy.id} is owned by a key quorum that does not exist`);
  const { sealed, content, name } = await context.keyStore.sealPolicy(bindingOf(context, policy), {
    chainType: policy.chainType,
    owner: quorumReference(owner.base),
    rules: policy.rules,
  });
  await context.em
    .getKysely<Tables>()
    .insertInto('policy_seals')
    .values({ id: policy.id, app_id: context.app.id, name, content, ...columnsOf(sealed) })
    .execute();
}

/**
 * Has the key store seal the secret of a policy under the policy's changed content. The key store verifies that the
 * request authorizes the change. The caller has locked the policy.
 *
 * @param authorization how the request to change the policy was authorized.
 * @throws ApiError invalid_state for an intent whose signatures an earlier version collected.
 */
export async function changePolicySeal(
  context: OperationContext,
  before: StoredPolicy,
  after: StoredPolicy,
  authorization: Authorization,
): Promise<void> {
  if (before.ownerId === after.ownerId && isDeepStrictEqual(before.rules, after.rules)) return;
  const [stored] = await selectSeals(context, [before.id]);
  if (stored === undefined) return sealPolicy(context, after);
  const evidence = evidenceOf(context, authorization);
  if (evidence === undefined) {
    throw new ApiError(
      'invalid_state',
      'the signatures are from an earlier version; propose the change again',
    );
  }
  // Put the new owner first. If both are key quorums of the same single key, the body names the new one.
  const owners = [after.ownerId, before.ownerId].filter((id) => id !== null);
  const quorums = await loadQuorumRecords(context, [...new Set(owners)]);
  const known = new Set(before.rules.map(({ id }) => id));
  const change = {
    content: stored.content,
    evidence,
    ...(before.ownerId === null ? { userKeys: {} } : await knownUsers(context, [before.ownerId], quorums)),
    ruleIds: after.rules.map(({ id }) => id).filter((id) => !known.has(id)),
  };
  const { owner } = JSON.parse(stored.content) as PolicyContent;
  const { sealed, content } = await withRecordedOwner(context, { owner, quorums }, (shown) =>
    context.keyStore.changePolicy(stored, bindingOf(context, before), { ...change, quorums: shown }),
  );
  await context.em
    .getKysely<Tables>()
    .updateTable('policy_seals')
    .set({ content, ...columnsOf(sealed) })
    .where('id', '=', before.id)
    .execute();
}

export async function deletePolicySeal({ em }: ReadContext, policyId: string): Promise<void> {
  await em.nativeDelete(PolicySealEntity, { id: policyId });
}

function bindingOf({ app }: ReadContext, { id }: StoredPolicy): SealBinding {
  return policyBinding({ id, app_id: app.id });
}

function columnsOf({ sealedSecret, wrappedDataKey, masterKeyId }: SealedKey) {
  return {
    sealed_secret: Buffer.from(sealedSecret),
    wrapped_data_key: Buffer.from(wrappedDataKey),
    master_key_id: masterKeyId,
  };
}
