import { hash } from 'node:crypto';
import { baseOfKey, baseOfUser, quorumReference } from '../../../authorization/quorum-records.ts';
import type { PinnedUsers } from '../../../authorization/user-vouchers.ts';
import type { AuthorizedUse, WalletAuthority } from '../../../authorization/wallet-authority.ts';
import {
  ifPinned,
  noPolicies,
  type PolicyPin,
  policiesAfter,
  policyOfParty,
  type WalletPolicies,
} from '../../../authorization/wallet-policies.ts';
import { InvalidPublicKeyError, parseP256PublicKey } from '../../../crypto/p256.ts';
import { ApiError } from '../../../errors.ts';
import type { AdditionalSignerInput, WalletAdditionalSigner } from '../../../generated/schemas.ts';
import type { OperationContext, PreparationContext } from '../../../operation-context.ts';
import { knownUsers, loadQuorumRecords } from '../../access/key-quorums/quorum-records.ts';
import { withRecordedOwner } from '../../access/key-quorums/recorded-owner.ts';
import { findQuorumOf, type OwnerFields } from '../../access/key-quorums/resolve-owner.ts';
import { pinUsers } from '../../access/key-quorums/voucher-keys.ts';
import { evidenceOf, signerOf } from '../../access/owners/request-evidence.ts';
import { findPins, loadPolicyRecords } from '../../access/policies/policy-seals.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import type { Tables } from '../../tables.ts';
import { findWalletKey } from './find-wallet-key.ts';
import type { WalletRow } from './wallet-row.ts';

// HOT: the authorized use is built for every signature of a wallet with an authority.

/** Who will own a new wallet; undefined for one whose key is sealed without an authority. */
export type NewAuthority =
  | { readonly ownerId: string; readonly authority: WalletAuthority }
  | {
      /** Its key quorum is made with the wallet. */
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

/** What the key of a new wallet is sealed under, and the key quorum that must own the wallet then. */
export interface SealedFor {
  readonly authority?: WalletAuthority | undefined;
  readonly ownerId?: string | undefined;
  /** Set if the key quorum is made with the wallet. */
  readonly newOwnerId?: string | undefined;
}

interface AuthorityFields extends OwnerFields {
  readonly policy_ids?: readonly string[] | undefined;
  readonly additional_signers?: AdditionalSignerInput | undefined;
}

/**
 * The authority under which the key of a new wallet is sealed. Reads the key quorums that the body names.
 *
 * Result: undefined for a wallet whose owner holds no keys: without an owner, owned by a user whose keys the vault does
 * not vouch for, or by the default key quorum of an organization; and for a body that will be refused.
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
  if (typeof ownerId !== 'string' || owner !== undefined) return undefined;
  return authorityOf(context, ownerId, fields);
}

type AuthorityContext = Pick<PreparationContext, 'app' | 'em' | 'vault'>;

async function authorityWithNewOwner(
  context: AuthorityContext,
  newOwner: NewOwner,
  fields: AuthorityFields,
): Promise<NewAuthority> {
  const signers = await referencesOf(context, signerIdsOf(fields));
  if (signers === undefined) return undefined;
  return { newOwner, signers, policies: ifPinned(await policiesOf(context, fields)) };
}

/** CHOICE: the user's key quorum may be from before its app's login was configured; then nothing can be verified. */
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

function signerIdsOf({ additional_signers: signers = [] }: AuthorityFields): string[] {
  return signers.map((signer) => signer.signer_id);
}

/** Undefined when one of these key quorums does not exist. */
async function authorityOf(
  context: Pick<PreparationContext, 'app' | 'em'>,
  ownerId: string,
  fields: AuthorityFields,
): Promise<NewAuthority> {
  const [owner, ...signers] = (await referencesOf(context, [ownerId, ...signerIdsOf(fields)])) ?? [];
  if (owner === undefined) return undefined;
  const policies = ifPinned(await policiesOf(context, fields));
  return { ownerId, authority: { owner, signers, isAutomated: false, policies } };
}

/** The policies that a body or a row names, as far as they can be pinned. */
async function policiesOf(
  context: Pick<PreparationContext, 'app' | 'em'>,
  fields: Pick<AuthorityFields, 'policy_ids' | 'additional_signers'>,
): Promise<WalletPolicies> {
  const { policy_ids = [], additional_signers = [] } = fields;
  const pins = await findPins(context, policyIdsOf(fields));
  const find = (id: string) => pins.find((pin) => pin.id === id) ?? null;
  return policiesAfter(noPolicies(0), { policy_ids, additional_signers }, find);
}

function policyIdsOf({
  policy_ids: own = [],
  additional_signers: signers = [],
}: Pick<AuthorityFields, 'policy_ids' | 'additional_signers'>): string[] {
  return [...own, ...signers.flatMap(({ override_policy_ids: ids = [] }) => ids)];
}

/** The authority of a wallet whose id is known. */
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

/** The id of a key quorum that is made with a wallet: known before it is stored, and as random as the wallet's. */
function quorumIdWith(walletId: string): string {
  const digits = BigInt(`0x${hash('sha256', `key quorum made with ${walletId}`)}`).toString(36);
  return `q${digits.slice(-23)}`;
}

/** The authority with another owner: the one that was expected is not the owner any more. */
export async function authorityWithOwner(
  context: Pick<PreparationContext, 'app' | 'em'>,
  authority: WalletAuthority,
  ownerId: string,
): Promise<NewAuthority> {
  const [owner] = (await referencesOf(context, [ownerId])) ?? [];
  return owner === undefined ? undefined : { ownerId, authority: { ...authority, owner } };
}

/** `authorityOfNewWallet` of each. */
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

/** Undefined when one of them does not exist. */
async function referencesOf(
  context: Pick<PreparationContext, 'app' | 'em'>,
  ids: readonly string[],
): Promise<string[] | undefined> {
  if (ids.length === 0) return [];
  const records = await loadQuorumRecords(context, [...new Set(ids)]);
  const byId = new Map(records.map((record) => [record.base.id, record]));
  const found = ids.flatMap((id) => byId.get(id) ?? []);
  return found.length < ids.length ? undefined : found.map(({ base }) => quorumReference(base));
}

type UseContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof'>;

/** What shows the vault that a wallet's key may be used for a request; undefined for a key without an authority. */
export async function authorizedUse(
  context: UseContext,
  wallet: Pick<WalletRow, 'owner_id' | 'additional_signers' | 'address'>,
  authority: string | null,
): Promise<AuthorizedUse | undefined> {
  if (authority === null) return undefined;
  const use = await useOf(context, JSON.parse(authority) as WalletAuthority, partiesOf(wallet));
  const { policies } = use.authority;
  if (policies === undefined || use.evidence === undefined) return use;
  const pin = pinFor(policies, signersOf(wallet), signerOf(context.proof));
  if (pin === null) return use;
  const records = await loadPolicyRecords(context, [pin.id]);
  return { ...use, address: wallet.address, policies: records, judgedAtMs: context.nowMs };
}

/** Asks the vault for a use, with the owner that it knows where the database has another one of the same single key. */
export async function askForUse<Use extends AuthorizedUse | undefined, T>(
  context: Pick<OperationContext, 'app' | 'em'>,
  use: Use,
  ask: (use: Use) => Promise<T>,
): Promise<T> {
  if (use === undefined) return ask(use);
  const known = { owner: use.authority.owner, quorums: use.quorums };
  return withRecordedOwner(context, known, (quorums) =>
    ask(quorums === use.quorums ? use : { ...use, quorums }),
  );
}

/** The policy of who has authorized a request: the owner, or a signer. */
function pinFor(
  policies: WalletPolicies,
  signers: WalletAdditionalSigner,
  signerId: string | undefined,
): PolicyPin | null {
  if (signerId === undefined) return policies.wallet;
  return policyOfParty(policies, 1 + signers.findIndex(({ signer_id: id }) => id === signerId));
}

async function useOf(
  context: UseContext,
  authority: WalletAuthority,
  quorumIds: readonly string[],
): Promise<AuthorizedUse> {
  const evidence = evidenceOf(context);
  // Servers of earlier versions, which may still be running, do not keep what members sign.
  if (evidence === undefined && context.proof.agreed !== undefined) {
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

function signersOf({ additional_signers: signers }: Pick<PartyColumns, 'additional_signers'>) {
  return JSON.parse(signers) as WalletAdditionalSigner;
}

function partiesOf(wallet: PartyColumns): string[] {
  const ids = signersOf(wallet).map(({ signer_id: id }) => id);
  return [...new Set(wallet.owner_id === null ? ids : [wallet.owner_id, ...ids])];
}

function policyFieldsOf(wallet: Pick<WalletRow, 'policy_id' | 'additional_signers'>) {
  return {
    policy_ids: wallet.policy_id === null ? [] : [wallet.policy_id],
    additional_signers: signersOf(wallet),
  };
}

/**
 * Has the vault seal a wallet's key under the authority after a change that the request makes. The wallet is locked.
 *
 * @param before the wallet before the change, `after` the wallet after it.
 */
export async function changeAuthority(
  context: OperationContext,
  before: WalletRow,
  after: WalletRow,
): Promise<void> {
  const { authority, ...sealed } = await findWalletKey(context, before);
  if (authority === null) return;
  // The new owner first: of two key quorums of one key, the body names this one.
  const ids = [...new Set([...partiesOf(after), ...partiesOf(before)])];
  const use = await useOf(context, JSON.parse(authority) as WalletAuthority, ids);
  const pins = {
    before: await policiesOf(context, policyFieldsOf(before)),
    named: await findPins(context, policyIdsOf(policyFieldsOf(after))),
  };
  const changed = await askForUse(context, { ...use, pins }, (shown) =>
    context.vault.changeAuthority(sealed, walletKeyBinding(before), shown),
  );
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
