import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  type PolicyPin,
  policyOfParty,
  type WalletPolicies,
} from '../../../engine/authorization/policy-seals.ts';
import type { KeyUseClaim, WalletAuthority } from '../../../engine/authorization/wallet-authority.ts';
import { ApiError } from '../../../errors.ts';
import type { WalletAdditionalSigner } from '../../../generated/schemas.ts';
import type { ChangedKey, KeyStore, SealedKey } from '../../../ports/key-store.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { knownUsers, loadQuorumRecords, withRecordedOwner } from '../../access/key-quorums/quorum-records.ts';
import {
  type AdditionalSigner,
  type Authorization,
  evidenceOf,
  type SignedBy,
} from '../../access/owners/require-authorization.ts';
import { findPins, loadPolicyRecords } from '../../access/policies/policy-seals.ts';
import { masterKeyCheckBinding, walletKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import {
  authorityUnder,
  type PartyFields,
  policiesOf,
  policyIdsOf,
} from '../wallet-authorities/new-authority.ts';
import { MasterKeyCheckEntity, signersOf, type WalletRow } from './wallet.entity.ts';

// HOT: runs for every signature (bench `stored`, `policy`).

export interface StoredWalletKey extends SealedKey {
  /** JSON of the `WalletAuthority` under which the key is sealed; null if it has none. */
  readonly authority: string | null;
}

/** The columns of `wallet_keys` that a use needs, under the names of `StoredWalletKey`. */
export const walletKeyColumns = [
  'wallet_keys.sealed_secret as sealedSecret',
  'wallet_keys.wrapped_data_key as wrappedDataKey',
  'wallet_keys.master_key_id as masterKeyId',
  'wallet_keys.authority',
] as const;

const selectKey = prepareQuery<{ walletId: string }, StoredWalletKey>((database, { walletId }) =>
  database.selectFrom('wallet_keys').select(walletKeyColumns).where('wallet_id', '=', walletId),
);

/** Returns the sealed key of a wallet. Reads it unless `findWalletWithKey` has already read it. */
export async function findWalletKey(
  { em }: Pick<OperationContext, 'em'>,
  wallet: Pick<WalletRow, 'id'> & { readonly [Name in keyof StoredWalletKey]?: StoredWalletKey[Name] | null },
): Promise<StoredWalletKey> {
  const { sealedSecret, wrappedDataKey, masterKeyId, authority } = wallet;
  if (sealedSecret != null && wrappedDataKey != null && masterKeyId != null && authority !== undefined)
    return { sealedSecret, wrappedDataKey, masterKeyId, authority };
  const {
    rows: [sealed],
  } = await selectKey(em, { walletId: wallet.id });
  // INVARIANT: every wallet except custodial ones has a key, stored in the transaction that created it.
  assert(sealed !== undefined, `wallet ${wallet.id} has no key`);
  return sealed;
}

type ClaimContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof'>;

/**
 * Loads the claim with which a request uses a wallet's key. The key store verifies it. Returns undefined for a key
 * without an authority, which needs no claim.
 *
 * @throws ApiError invalid_state for an intent whose signatures an earlier version collected.
 */
export async function loadKeyUseClaim(
  context: ClaimContext,
  wallet: Pick<WalletRow, 'owner_id' | 'additional_signers' | 'address'>,
  authority: string | null,
  authorization: Authorization,
): Promise<KeyUseClaim | undefined> {
  if (authority === null) return undefined;
  const claim = await loadClaim(context, authorization, {
    authority: JSON.parse(authority) as WalletAuthority,
    quorumIds: partiesOf(wallet),
  });
  const { policies } = claim.authority;
  if (policies === undefined || claim.evidence === undefined) return claim;
  const pin = pinFor(policies, signersOf(wallet), authorization.party);
  if (pin === null) return claim;
  const records = await loadPolicyRecords(context, [pin.id]);
  return { ...claim, address: wallet.address, policies: records, judgedAtMs: context.nowMs };
}

/**
 * Calls the key store with a claim, first with the owner in the database. If the key store refuses it because its own
 * record names another key quorum as the owner, and that key quorum has the same single key, calls the key store again
 * with that key quorum added to the claim.
 */
export async function askUnderRecordedOwner<Claim extends KeyUseClaim | undefined, T>(
  context: Pick<OperationContext, 'app' | 'em'>,
  claim: Claim,
  ask: (claim: Claim) => Promise<T>,
): Promise<T> {
  if (claim === undefined) return ask(claim);
  const known = { owner: claim.authority.owner, quorums: claim.quorums };
  return withRecordedOwner(context, known, (quorums) =>
    ask(quorums === claim.quorums ? claim : { ...claim, quorums }),
  );
}

/**
 * Returns the pin of the policy that applies to the party that authorized a request, the owner or a signer. Null if
 * that policy is not pinned.
 */
function pinFor(
  policies: WalletPolicies,
  signers: readonly AdditionalSigner[],
  party: SignedBy,
): PolicyPin | null {
  if (party.kind !== 'signer') return policies.wallet;
  return policyOfParty(policies, 1 + signers.findIndex(({ signerId }) => signerId === party.signerId));
}

/**
 * Loads a claim without policies: the authority, the records of the key quorums, and the evidence.
 *
 * @throws ApiError invalid_state for an intent whose signatures an earlier version collected.
 */
async function loadClaim(
  context: ClaimContext,
  authorization: Authorization,
  { authority, quorumIds }: { readonly authority: WalletAuthority; readonly quorumIds: readonly string[] },
): Promise<KeyUseClaim> {
  const evidence = evidenceOf(context, authorization);
  // Servers of earlier versions, which may still be running, do not store the requests that members sign.
  if (evidence === undefined && context.proof.agreement !== undefined) {
    throw new ApiError(
      'invalid_state',
      'the signatures are from an earlier version; propose the request again',
    );
  }
  const quorums = await loadQuorumRecords(context, quorumIds);
  const users = await knownUsers(context, quorumIds, quorums);
  return { authority, quorums, ...users, evidence };
}

type PartyColumns = Pick<WalletRow, 'owner_id' | 'additional_signers'>;

function partiesOf(wallet: PartyColumns): string[] {
  const ids = signersOf(wallet).map(({ signerId }) => signerId);
  return [...new Set(wallet.owner_id === null ? ids : [wallet.owner_id, ...ids])];
}

function partyFieldsOf(wallet: Pick<WalletRow, 'policy_id' | 'additional_signers'>): PartyFields {
  return {
    policy_ids: wallet.policy_id === null ? [] : [wallet.policy_id],
    additional_signers: JSON.parse(wallet.additional_signers) as WalletAdditionalSigner,
  };
}

/**
 * Seals a wallet's key under the authority that results from a request. The caller has locked the wallet. Does nothing
 * for a custodial wallet.
 *
 * @throws ApiError invalid_state for an intent whose signatures an earlier version collected.
 */
export async function changeAuthority(context: OperationContext, change: AuthorityChange): Promise<void> {
  const { before } = change;
  if (before.custody_provider !== null) return;
  const key = await findWalletKey(context, before);
  const changed =
    key.authority === null
      ? await firstAuthority(context, key, change)
      : await derivedAuthority(context, { ...key, authority: key.authority }, change);
  if (changed === undefined) return;
  await context.em
    .getKysely<Tables>()
    .updateTable('wallet_keys')
    .set({
      sealed_secret: Buffer.from(changed.sealed.sealedSecret),
      wrapped_data_key: Buffer.from(changed.sealed.wrappedDataKey),
      master_key_id: changed.sealed.masterKeyId,
      authority: JSON.stringify(changed.authority),
    })
    .where('wallet_id', '=', before.id)
    .execute();
}

/** A change of a wallet that may change who may use it. */
interface AuthorityChange {
  readonly before: WalletRow;
  readonly after: WalletRow;
  /** How the request for the change was authorized. */
  readonly authorization: Authorization;
}

/**
 * Returns the key sealed under the authority that the key store derives from the request, which the previous owner
 * signed.
 */
async function derivedAuthority(
  context: OperationContext,
  { authority, ...sealed }: StoredWalletKey & { readonly authority: string },
  { before, after, authorization }: AuthorityChange,
): Promise<ChangedKey> {
  // Put the new owner first. If both are key quorums of the same single key, the body names the new one.
  const quorumIds = [...new Set([...partiesOf(after), ...partiesOf(before)])];
  const claim = await loadClaim(context, authorization, {
    authority: JSON.parse(authority) as WalletAuthority,
    quorumIds,
  });
  const pins = {
    before: await policiesOf(context, partyFieldsOf(before)),
    named: await findPins(context, policyIdsOf(partyFieldsOf(after))),
  };
  return askUnderRecordedOwner(context, { ...claim, pins }, (shown) =>
    context.keyStore.changeAuthority(sealed, walletKeyBinding(before), shown),
  );
}

/**
 * Returns the key sealed under its first authority; undefined if the wallet still has no owner that the key store can
 * verify.
 */
async function firstAuthority(
  context: OperationContext,
  { authority: _, ...sealed }: StoredWalletKey,
  { before, after }: AuthorityChange,
): Promise<ChangedKey | undefined> {
  const { owner_id: ownerId } = after;
  const found = ownerId === null ? undefined : await authorityUnder(context, ownerId, partyFieldsOf(after));
  if (found === undefined) return undefined;
  // A change of the owner ends attachments, so the wallet is then no longer automated.
  const isAutomated = ownerId === before.owner_id && (await isAttached(context, after.id));
  const authority = { ...found, isAutomated };
  return {
    authority,
    sealed: await context.keyStore.sealUnderAuthority(sealed, walletKeyBinding(before), authority),
  };
}

async function isAttached({ em }: OperationContext, walletId: string): Promise<boolean> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('wallet_automation_attachments')
    .select('id')
    .where('wallet_id', '=', walletId)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

const KNOWN_VALUE = 'custos master key check';

/**
 * Checks that the key store has the master keys under which the stored secrets are sealed. The first start under a
 * master key seals and stores a known value for this check. Call it before requests are served, and outside
 * transactions, because it calls the key store. Rejects with the key store's error, which names the master key, when a
 * key is missing or has the right name and the wrong bytes.
 */
export async function checkMasterKey(em: SqlEntityManager, keyStore: KeyStore): Promise<void> {
  for (const check of await em.find(MasterKeyCheckEntity, {})) {
    await keyStore.open(check, masterKeyCheckBinding);
  }
  const sealed = await keyStore.seal(Buffer.from(KNOWN_VALUE, 'utf8'), masterKeyCheckBinding);
  const check = {
    masterKeyId: sealed.masterKeyId,
    sealedSecret: Buffer.from(sealed.sealedSecret),
    wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
  };
  // Several processes may start for the first time at the same time.
  await em.upsert(MasterKeyCheckEntity, check, { onConflictAction: 'ignore' });
}
