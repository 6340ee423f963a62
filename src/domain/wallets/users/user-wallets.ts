import { setImmediate } from 'node:timers/promises';
import { lightAccountAddress } from '../../../engine/signing/ethereum/smart-accounts.ts';
import { invalidField, relocateIssues } from '../../../errors.ts';
import type { LinkedAccountBaseWallet, WalletCreationInput } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findSmartAccountFactory } from '../../access/apps/smart-account-factory.ts';
import { resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { findUserForUpdate } from '../../access/user-records/find-user.ts';
import type { StoredUser } from '../../access/user-records/user.entity.ts';
import { recordEvent } from '../../base/events/events.ts';
import { sealUnderUsers } from '../wallet-authorities/new-authority.ts';
import { createWallet, createWalletKeys, KEYS_AT_ONCE, type KeyOfWallet } from '../wallets/create-wallet.ts';
import type { WalletRow } from '../wallets/wallet.entity.ts';
import { type NewAccount, storeAccounts } from './store-accounts.ts';
import { isLinkable, userView } from './user-view.ts';

// CHOICE: the maximum number of wallets that one request creates for a user. It is the same as in a batch of wallets,
// because deriving a key takes milliseconds.
const MAX_WALLETS = 100;

/** Wallets to create for a user, with their new keys by index. */
export interface PlannedWallets {
  readonly inputs: readonly WalletCreationInput[];
  readonly keys: readonly KeyOfWallet[];
}

/**
 * Validates the requested wallets and creates their keys before the first statement. That statement begins the
 * transaction, and on SQLite all other requests wait for it to end.
 *
 * @throws ApiError invalid_data
 */
export async function planWallets(
  context: OperationContext,
  inputs: readonly WalletCreationInput[] = [],
): Promise<PlannedWallets> {
  if (inputs.length > MAX_WALLETS) throw invalidField('/wallets', `must have at most ${MAX_WALLETS} items`);
  for (const [index, input] of inputs.entries()) {
    if (input.create_smart_wallet === true && input.chain_type !== 'ethereum') {
      throw invalidField(`/wallets/${index}/create_smart_wallet`, 'only a wallet of `ethereum` can have one');
    }
  }
  const types = inputs.map((input) => input.chain_type);
  return { inputs, keys: await createWalletKeys(context, types) };
}

/** A user with new wallets. `made` contains the wallets that events report. */
export interface UserWithWallets {
  readonly user: StoredUser;
  readonly made: readonly LinkedAccountBaseWallet[];
}

/**
 * Creates wallets that a user owns and links them to the user. Each gets the next index of its chain type.
 *
 * NOTE: `spark` wallets are not linked accounts, because the API has no schema for them.
 *
 * @param user must be locked by this transaction, or created in it.
 * @throws ApiError invalid_data when a policy or signer does not exist; resource_conflict when an external id is taken.
 */
export async function addWallets(
  context: OperationContext,
  user: StoredUser,
  { inputs, keys: drawn }: PlannedWallets,
): Promise<UserWithWallets> {
  if (inputs.length === 0) return { user, made: [] };
  const owner_id = (await resolveOwner(context, { owner: { user_id: user.row.id } }))!;
  const keys = await sealUnderUsers(context, drawn, { ownerId: owner_id, wallets: inputs });
  const accounts: NewAccount[] = [];
  const takeIndex = countIndexes(user);
  for (const [index, { create_smart_wallet, ...input }] of inputs.entries()) {
    if (index % KEYS_AT_ONCE === 0) await setImmediate();
    const key = Promise.resolve(keys[index] as KeyOfWallet);
    const wallet = await createWallet(context, { ...input, owner_id }, key).catch((error: unknown) => {
      throw relocateIssues(error, `/wallets/${index}`);
    });
    if (isLinkable(wallet.chain_type)) accounts.push(embeddedAccount(wallet, takeIndex(wallet.chain_type)));
    if (create_smart_wallet === true) accounts.push(await smartAccount(context, wallet));
  }
  await setImmediate();
  const stored = await storeAccounts(context, user.row, { linked: user.linkedAccounts, accounts });
  return {
    user: { row: user.row, linkedAccounts: [...user.linkedAccounts, ...stored] },
    made: accounts.flatMap(announcement),
  };
}

/**
 * Creates wallets for a user before they are needed, all or none.
 *
 * @throws ApiError not_found; invalid_data; resource_conflict when an external id is taken.
 */
export async function pregenerateWallets(
  context: OperationContext,
  userId: string,
  inputs: readonly WalletCreationInput[],
): Promise<StoredUser> {
  const wallets = await planWallets(context, inputs);
  const user = await findUserForUpdate(context, userId);
  const withWallets = await addWallets(context, user, wallets);
  await announceWallets(context, withWallets);
  return withWallets.user;
}

/** Records an event for each wallet in `made`. */
export async function announceWallets(
  context: OperationContext,
  { user, made }: UserWithWallets,
): Promise<void> {
  if (made.length === 0) return;
  const view = userView(user);
  for (const wallet of made) {
    // Each event contains all wallets of the user and takes time to record, so let other requests run in between.
    await setImmediate();
    await recordEvent(context, {
      appId: context.app.id,
      type: 'user.wallet_created',
      payload: { user: view, wallet },
    });
  }
}

/** Returns a function that gives the next free `wallet_index` of a chain type, starting at 0. */
function countIndexes({ linkedAccounts }: StoredUser): (chainType: string) => number {
  const next = new Map<string, number>();
  for (const { wallet, details } of linkedAccounts) {
    if (wallet === null) continue;
    const after = JSON.parse(details).wallet_index + 1;
    next.set(wallet.chain_type, Math.max(after, next.get(wallet.chain_type) ?? 0));
  }
  return (chainType) => {
    const index = next.get(chainType) ?? 0;
    next.set(chainType, index + 1);
    return index;
  };
}

function embeddedAccount(wallet: WalletRow, walletIndex: number): NewAccount {
  return {
    type: 'wallet',
    subject: wallet.address,
    username: null,
    details: { wallet_index: walletIndex },
    wallet,
  };
}

/** Returns the smart wallet that an embedded wallet owns, at its counterfactual address. */
async function smartAccount(context: OperationContext, wallet: WalletRow): Promise<NewAccount> {
  const factory = await findSmartAccountFactory(context);
  const address = lightAccountAddress(factory, wallet.address);
  return {
    type: 'smart_wallet',
    subject: address,
    username: null,
    details: {
      address,
      smart_wallet_type: 'light_account',
      smart_wallet_version: factory.version,
    },
  };
}

/** Returns the wallet in the form that events have; empty for other chain types, for which the API defines no form. */
function announcement({ type, subject, wallet }: NewAccount): LinkedAccountBaseWallet[] {
  if (type === 'smart_wallet') return [{ type, address: subject, chain_type: 'ethereum' }];
  const chain_type = wallet?.chain_type;
  if (chain_type !== 'ethereum' && chain_type !== 'solana') return [];
  return [{ type: 'wallet', address: subject, chain_type }];
}
