import { hash } from 'node:crypto';
import {
  ifPinned,
  noPolicies,
  policiesAfter,
  type WalletPolicies,
} from '../../../engine/authorization/policy-seals.ts';
import {
  baseOfKey,
  baseOfUser,
  type QuorumRecord,
  quorumReference,
} from '../../../engine/authorization/quorum-records.ts';
import type { PinnedUsers } from '../../../engine/authorization/user-vouchers.ts';
import type { WalletAuthority } from '../../../engine/authorization/wallet-authority.ts';
import { InvalidPublicKeyError, parseP256PublicKey } from '../../../engine/crypto/p256.ts';
import type { AdditionalSignerInput, WalletChainType } from '../../../generated/schemas.ts';
import type { SealedKey } from '../../../ports/key-store.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import { loadQuorumRecords } from '../../access/key-quorums/quorum-records.ts';
import { findQuorumOf, type OwnerFields } from '../../access/key-quorums/resolve-owner.ts';
import { pinUsers } from '../../access/key-quorums/voucher-keys.ts';
import { defaultOwnerOf, type WalletEntity } from '../../access/organizations/organization.ts';
import { findPins } from '../../access/policies/policy-seals.ts';
import { walletKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';

interface KnownOwner {
  readonly ownerId: string;
  readonly authority: WalletAuthority;
}

/** The future owner of a new wallet. Undefined if the wallet's key is sealed without an authority. */
export type NewAuthority =
  | KnownOwner
  | {
      /** The key quorum of the owner is created with the wallet. */
      readonly newOwner: NewOwner;
      readonly signers: readonly string[];
      readonly policies: WalletPolicies | undefined;
    }
  | undefined;

type NewOwner =
  | {
      /** Canonical base64 SubjectPublicKeyInfo. */
      readonly publicKey: string;
    }
  | { readonly userId: string; readonly users: PinnedUsers };

/** The authority under which the key of a new wallet is sealed, and the key quorum that must own the wallet. */
export interface SealedFor {
  readonly authority?: WalletAuthority | undefined;
  readonly ownerId?: string | undefined;
  /** The id of the owner's key quorum, if it is created with the wallet. */
  readonly newOwnerId?: string | undefined;
}

/** The additional signers and policies of a wallet's authority. */
export interface PartyFields {
  readonly policy_ids?: readonly string[] | undefined;
  readonly additional_signers?: AdditionalSignerInput | undefined;
}

interface AuthorityFields extends OwnerFields, PartyFields {
  readonly entity?: WalletEntity | undefined;
}

/**
 * Returns the authority under which the key of a new wallet is sealed. Reads the key quorums that the body names.
 *
 * @returns undefined for a wallet without an owner, for a wallet of a user for whose keys the key store does not vouch,
 * and for a body that will be refused.
 */
export async function authorityOfNewWallet(
  context: AuthorityContext,
  fields: AuthorityFields,
): Promise<NewAuthority> {
  const { owner, owner_id: ownerId } = fields;
  if (owner != null && 'public_key' in owner && ownerId === undefined) {
    const key = readKey(owner.public_key);
    if (key === undefined) return undefined;
    const known = await findQuorumOf(context, 'public_key', key);
    if (known !== undefined) return authorityOf(context, known, fields);
    return authorityWithNewOwner(context, { publicKey: key }, fields);
  }
  if (owner != null && 'user_id' in owner && ownerId === undefined) {
    return authorityOfUser(context, owner.user_id, fields);
  }
  if (owner !== undefined || ownerId === null) return undefined;
  const known = ownerId ?? (await defaultOwnerOf(context, fields.entity));
  return known === undefined ? undefined : authorityOf(context, known, fields);
}

type AuthorityContext = Pick<PlanContext, 'app' | 'em' | 'keyStore'>;

async function authorityWithNewOwner(
  context: AuthorityContext,
  newOwner: NewOwner,
  fields: AuthorityFields,
): Promise<NewAuthority> {
  const signers = await referencesOf(context, signerIdsOf(fields));
  if (signers === undefined) return undefined;
  return { newOwner, signers, policies: ifPinned(await policiesOf(context, fields)) };
}

/**
 * Returns the authority of a wallet that a user owns.
 *
 * CHOICE: if the user's key quorum is older than the configuration of the app's login, nothing can be verified, and the
 * wallet gets no authority.
 */
async function authorityOfUser(
  context: AuthorityContext,
  userId: string,
  fields: AuthorityFields,
): Promise<NewAuthority> {
  const users = await pinUsers(context, [userId]);
  if (users === undefined) return undefined;
  const known = await findQuorumOf(context, 'user', userId);
  if (known === undefined) return authorityWithNewOwner(context, { userId, users }, fields);
  const [record] = await loadQuorumRecords(context, [known]);
  return record?.base.users === undefined ? undefined : authorityOf(context, known, fields);
}

function signerIdsOf({ additional_signers: signers = [] }: PartyFields): string[] {
  return signers.map((signer) => signer.signer_id);
}

/** Returns the authority of an existing owner and signers; undefined when one of their key quorums does not exist. */
async function authorityOf(
  context: Pick<PlanContext, 'app' | 'em'>,
  ownerId: string,
  fields: PartyFields,
): Promise<KnownOwner | undefined> {
  const [owner, ...signers] = (await referencesOf(context, [ownerId, ...signerIdsOf(fields)])) ?? [];
  if (owner === undefined) return undefined;
  const policies = ifPinned(await policiesOf(context, fields));
  return { ownerId, authority: { owner, signers, isAutomated: false, policies } };
}

/**
 * Returns the authority of a wallet whose owner already exists. Returns undefined if a key quorum does not exist, and
 * if the key store could verify nothing, because all members of the owner are users for whose keys only the server
 * vouches.
 */
export async function authorityUnder(
  context: Pick<PlanContext, 'app' | 'em'>,
  ownerId: string,
  fields: PartyFields,
): Promise<WalletAuthority | undefined> {
  const [record] = await loadQuorumRecords(context, [ownerId]);
  if (record === undefined || !hasKeys(record)) return undefined;
  return (await authorityOf(context, ownerId, fields))?.authority;
}

function hasKeys({ base, changes }: QuorumRecord): boolean {
  const { users, publicKeys, quorums } = base;
  return users !== undefined || publicKeys.length > 0 || quorums.length > 0 || changes.length > 0;
}

/** Returns the pins of the policies that a body or a row names. Policies that cannot be pinned are left out. */
export async function policiesOf(
  context: Pick<PlanContext, 'app' | 'em'>,
  fields: PartyFields,
): Promise<WalletPolicies> {
  const { policy_ids = [], additional_signers = [] } = fields;
  const pins = await findPins(context, policyIdsOf(fields));
  const find = (id: string) => pins.find((pin) => pin.id === id) ?? null;
  return policiesAfter(noPolicies(0), { policy_ids, additional_signers }, find);
}

export function policyIdsOf({
  policy_ids: own = [],
  additional_signers: signers = [],
}: PartyFields): string[] {
  return [...own, ...signers.flatMap(({ override_policy_ids: ids = [] }) => ids)];
}

export function sealedFor(appId: string, walletId: string, planned: NewAuthority): SealedFor {
  if (planned === undefined) return {};
  if ('authority' in planned) return planned;
  const newOwnerId = quorumIdWith(walletId);
  const owner = quorumReference(baseOfNewOwner(appId, newOwnerId, planned.newOwner));
  const { signers, policies } = planned;
  const authority = { owner, signers, isAutomated: false, policies };
  return { authority, ownerId: newOwnerId, newOwnerId };
}

function baseOfNewOwner(appId: string, id: string, owner: NewOwner) {
  return 'publicKey' in owner
    ? baseOfKey(appId, id, owner.publicKey)
    : baseOfUser(appId, id, owner.userId, owner.users);
}

/**
 * Derives the id of a key quorum that is created with a wallet from the wallet's id. So the id is known before the key
 * quorum is stored, and is as random as the wallet's.
 */
function quorumIdWith(walletId: string): string {
  const digits = BigInt(`0x${hash('sha256', `key quorum made with ${walletId}`)}`).toString(36);
  return `q${digits.slice(-23)}`;
}

/** Returns the authority with another owner, for a wallet whose owner turned out to be a different key quorum. */
export async function authorityWithOwner(
  context: Pick<PlanContext, 'app' | 'em'>,
  authority: WalletAuthority,
  ownerId: string,
): Promise<NewAuthority> {
  const [owner] = (await referencesOf(context, [ownerId])) ?? [];
  return owner === undefined ? undefined : { ownerId, authority: { ...authority, owner } };
}

/** Calls `authorityOfNewWallet` for each wallet. */
export async function authoritiesOfNewWallets(
  context: AuthorityContext,
  wallets: readonly AuthorityFields[],
): Promise<NewAuthority[]> {
  const authorities: NewAuthority[] = [];
  for (const wallet of wallets) authorities.push(await authorityOfNewWallet(context, wallet));
  return authorities;
}

function readKey(key: string): string | undefined {
  try {
    return parseP256PublicKey(key);
  } catch (error) {
    if (error instanceof InvalidPublicKeyError) return undefined;
    throw error;
  }
}

/** Returns the references of key quorums; undefined when one of them does not exist. */
async function referencesOf(
  context: Pick<PlanContext, 'app' | 'em'>,
  ids: readonly string[],
): Promise<string[] | undefined> {
  if (ids.length === 0) return [];
  const records = await loadQuorumRecords(context, [...new Set(ids)]);
  const byId = new Map(records.map((record) => [record.base.id, record]));
  const found = ids.flatMap((id) => byId.get(id) ?? []);
  return found.length < ids.length ? undefined : found.map(({ base }) => quorumReference(base));
}

interface DrawnKey extends SealedFor {
  readonly walletId: string;
  readonly sealed: SealedKey;
}

interface OwnedWallet extends PartyFields {
  readonly chain_type: WalletChainType;
}

/**
 * Seals the keys of new wallets under their owner. The keys were created before the key quorum of the users was stored.
 * If the key store has no means to verify the key quorum, returns the keys unchanged.
 *
 * @param keys the key of `wallets[i]` is `keys[i]`.
 * @param ownerId a key quorum of users.
 */
export async function sealUnderUsers<Key extends DrawnKey>(
  context: Pick<OperationContext, 'app' | 'em' | 'keyStore'>,
  keys: readonly Key[],
  { ownerId, wallets }: { readonly ownerId: string; readonly wallets: readonly OwnedWallet[] },
): Promise<Key[]> {
  const { app, keyStore } = context;
  // Most apps have no login that the key store verifies. They need no read of the key quorum.
  if (keyStore.loginApps?.includes(app.id) !== true) return [...keys];
  const authorities: Awaited<ReturnType<typeof authorityUnder>>[] = [];
  for (const wallet of wallets) {
    authorities.push(await authorityUnder(context, ownerId, wallet));
    if (authorities[0] === undefined) return [...keys];
  }
  // Start all calls together, so that one run can make them all if the key store is in another process.
  return Promise.all(
    keys.map(async (key, index) => {
      const authority = authorities[index];
      if (authority === undefined) return key;
      const { chain_type } = wallets[index]!;
      const binding = walletKeyBinding({ id: key.walletId, app_id: app.id, chain_type });
      const sealed = await keyStore.sealUnderAuthority(key.sealed, binding, authority);
      return { ...key, sealed, authority, ownerId };
    }),
  );
}
