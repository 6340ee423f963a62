import {
  baseOfOne,
  type QuorumRecord,
  quorumReference,
  type UserKeys,
} from '../../../authorization/quorum-records.ts';
import type { AuthorizedUse, WalletAuthority } from '../../../authorization/wallet-authority.ts';
import { InvalidPublicKeyError, parseP256PublicKey } from '../../../crypto/p256.ts';
import type { AdditionalSignerInput, WalletAdditionalSigner } from '../../../generated/schemas.ts';
import type { OperationContext, PreparationContext } from '../../../operation-context.ts';
import { loadQuorumRecords, userKeysOf } from '../../access/key-quorums/quorum-records.ts';
import type { OwnerFields } from '../../access/key-quorums/resolve-owner.ts';
import { evidenceOf } from '../../access/owners/request-evidence.ts';
import { walletKeyBinding } from '../../base/sealed-keys/seal-bindings.ts';
import type { Tables } from '../../tables.ts';
import { findWalletKey } from './find-wallet-key.ts';
import type { WalletRow } from './wallet-row.ts';

// HOT: the authorized use is built for every signature of a wallet with an authority.

/** Undefined for a wallet whose key is sealed without one. */
export type NewAuthority = WalletAuthority | undefined;

interface AuthorityFields extends OwnerFields {
  readonly additional_signers?: AdditionalSignerInput | undefined;
}

/**
 * The authority under which the key of a new wallet is sealed. Reads only where the body names key quorums.
 *
 * Result: undefined for a wallet whose owner holds no keys: without an owner, owned by a user whose keys the server
 * hands out, or by the default key quorum of an organization; and for a body that will be refused.
 */
export async function authorityOfNewWallet(
  context: Pick<PreparationContext, 'app' | 'em'>,
  { owner, owner_id: ownerId, additional_signers: inputs = [] }: AuthorityFields,
): Promise<NewAuthority> {
  const signerIds = inputs.map((signer) => signer.signer_id);
  if (owner != null && 'public_key' in owner) {
    const reference = referenceOfKey(context.app.id, owner.public_key);
    const signers = await referencesOf(context, signerIds);
    if (reference === undefined || signers === undefined || ownerId !== undefined) return undefined;
    return { owner: reference, signers, isAutomated: false };
  }
  if (typeof ownerId !== 'string' || owner !== undefined) return undefined;
  const [reference, ...signers] = (await referencesOf(context, [ownerId, ...signerIds])) ?? [];
  return reference === undefined ? undefined : { owner: reference, signers, isAutomated: false };
}

/** `authorityOfNewWallet` of each. */
export async function authoritiesOfNewWallets(
  context: Pick<PreparationContext, 'app' | 'em'>,
  wallets: readonly AuthorityFields[],
): Promise<NewAuthority[]> {
  const authorities: NewAuthority[] = [];
  for (const wallet of wallets) authorities.push(await authorityOfNewWallet(context, wallet));
  return authorities;
}

function referenceOfKey(appId: string, key: string): string | undefined {
  try {
    return quorumReference(baseOfOne(appId, 'key', parseP256PublicKey(key)));
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
  const byId = new Map(records.map((record) => [record.id, record]));
  const found = ids.flatMap((id) => byId.get(id) ?? []);
  return found.length < ids.length ? undefined : found.map(({ base }) => quorumReference(base));
}

type UseContext = Pick<OperationContext, 'app' | 'em' | 'nowMs' | 'proof'>;

/** What shows the vault that a wallet's key may be used for a request; undefined for a key without an authority. */
export async function authorizedUse(
  context: UseContext,
  wallet: Pick<WalletRow, 'owner_id' | 'additional_signers'>,
  authority: string | null,
): Promise<AuthorizedUse | undefined> {
  if (authority === null) return undefined;
  return useOf(context, JSON.parse(authority) as WalletAuthority, partiesOf(wallet));
}

async function useOf(
  context: UseContext,
  authority: WalletAuthority,
  quorumIds: readonly string[],
): Promise<AuthorizedUse> {
  const quorums = await loadQuorumRecords(context, quorumIds);
  const userKeys: UserKeys = quorums.some(mayHaveUsers) ? await userKeysOf(context, quorumIds) : {};
  return { authority, quorums, userKeys, evidence: evidenceOf(context) };
}

function mayHaveUsers({ base, changes }: QuorumRecord): boolean {
  return base.userIds.length > 0 || changes.length > 0;
}

function partiesOf({
  owner_id: ownerId,
  additional_signers: signers,
}: Pick<WalletRow, 'owner_id' | 'additional_signers'>): string[] {
  const ids = (JSON.parse(signers) as WalletAdditionalSigner).map(({ signer_id: id }) => id);
  return [...new Set(ownerId === null ? ids : [ownerId, ...ids])];
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
  const ids = [...new Set([...partiesOf(before), ...partiesOf(after)])];
  const use = await useOf(context, JSON.parse(authority) as WalletAuthority, ids);
  const changed = await context.vault.changeAuthority(sealed, walletKeyBinding(before), use);
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
