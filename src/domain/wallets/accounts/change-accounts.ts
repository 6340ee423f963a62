import { invalidField } from '../../../errors.ts';
import type {
  AccountWalletConfigurationItem,
  CreateAccountRequest,
  UpdateAccountRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { createCustodialWallet } from '../custodial-wallets/create-custodial-wallet.ts';
import { createWallet } from '../wallets/create-wallet.ts';
import { createWalletKey, type KeyOfWallet } from '../wallets/create-wallet-key.ts';
import { listWalletsOfIds } from '../wallets/find-wallet.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';
import { AccountEntity, type StoredAccount } from './account.entity.ts';
import { AccountWalletEntity } from './account-wallet.entity.ts';
import { type Account, findAccountForUpdate } from './find-account.ts';

const MAX_WALLETS = 5;
/** The chain types whose balances are read. */
const CHAIN_TYPES = new Set(['ethereum', 'solana']);

/**
 * Creates an account from existing wallets or from new ones without owner and policy.
 *
 * @throws ApiError invalid_data when a wallet does not exist, is archived or has an extended chain type; what
 * `createCustodialWallet` throws for a wallet with custody.
 */
export async function createAccount(
  context: OperationContext,
  input: CreateAccountRequest,
): Promise<Account> {
  const keys = drawKeys(context, input);
  const wallets = await walletsFor(context, input, await keys);
  const account = context.em.create(AccountEntity, {
    id: context.ids.cuid(),
    appId: context.app.id,
    ...namesOf(input.display_name ?? null),
    createdAtMs: context.nowMs,
  });
  addWallets(context, account, wallets, 0);
  await context.em.flush();
  return { account, wallets };
}

/**
 * Renames an account, adds wallets to it, or both. Wallets cannot be removed.
 *
 * @throws ApiError not_found; invalid_data as for a new account, for a wallet that it already contains, and for more
 * than five.
 */
export async function updateAccount(
  context: OperationContext,
  id: string,
  input: UpdateAccountRequest,
): Promise<Account> {
  const keys = drawKeys(context, input);
  const { account, wallets } = await findAccountForUpdate(context, id);
  const { field, count } = askedWallets(input);
  if (wallets.length + count > MAX_WALLETS) {
    throw invalidField(
      `/${field}`,
      `expected at most ${MAX_WALLETS} wallets in an account, which already has ${wallets.length}`,
    );
  }
  for (const [index, walletId] of ('wallet_ids' in input ? input.wallet_ids : []).entries()) {
    if (wallets.some((wallet) => wallet.id === walletId)) {
      throw invalidField(`/wallet_ids/${index}`, `the wallet \`${walletId}\` is already in the account`);
    }
  }
  const added = await walletsFor(context, input, await keys);
  addWallets(context, account, added, wallets.length);
  if (input.display_name !== undefined) Object.assign(account, namesOf(input.display_name));
  await context.em.flush();
  return { account, wallets: [...wallets, ...added] };
}

function askedWallets(input: UpdateAccountRequest): { field: string; count: number } {
  if ('wallet_ids' in input) return { field: 'wallet_ids', count: input.wallet_ids.length };
  return { field: 'wallets_configuration', count: configurationOf(input).length };
}

function configurationOf(
  input: CreateAccountRequest | UpdateAccountRequest,
): readonly AccountWalletConfigurationItem[] {
  return 'wallets_configuration' in input ? (input.wallets_configuration ?? []) : [];
}

function namesOf(name: string | null): Pick<StoredAccount, 'displayName' | 'searchName'> {
  return { displayName: name, searchName: name?.toLowerCase() ?? null };
}

/**
 * The keys of new wallets, drawn before the first statement: a transaction begins with it, and on SQLite all
 * other requests wait for that.
 */
async function drawKeys(
  context: OperationContext,
  input: CreateAccountRequest | UpdateAccountRequest,
): Promise<(KeyOfWallet | undefined)[]> {
  const configuration = configurationOf(input);
  return Promise.all(
    configuration.map(({ chain_type, custody }) =>
      custody === undefined ? createWalletKey(context, chain_type) : undefined,
    ),
  );
}

async function walletsFor(
  context: OperationContext,
  input: CreateAccountRequest | UpdateAccountRequest,
  keys: readonly (KeyOfWallet | undefined)[],
): Promise<WalletRow[]> {
  if ('wallet_ids' in input) return requireWallets(context, input.wallet_ids);
  const made: WalletRow[] = [];
  for (const [index, { chain_type, custody }] of configurationOf(input).entries()) {
    const at = `/wallets_configuration/${index}/custody`;
    made.push(
      custody === undefined
        ? await createWallet(context, { chain_type }, Promise.resolve(keys[index] as KeyOfWallet))
        : await createCustodialWallet(context, { ...custody, chain_type }, at),
    );
  }
  return made;
}

/** The wallets of these ids, in their order. */
async function requireWallets(context: OperationContext, ids: readonly string[]): Promise<WalletRow[]> {
  const rows = await listWalletsOfIds(context, ids);
  const byId = new Map(rows.filter((row) => row.archived_at_ms === null).map((row) => [row.id, row]));
  return ids.map((id, index) => {
    const row = byId.get(id);
    if (row === undefined) throw invalidField(`/wallet_ids/${index}`, `no wallet \`${id}\``);
    if (CHAIN_TYPES.has(row.chain_type)) return row;
    throw invalidField(
      `/wallet_ids/${index}`,
      `expected a wallet on ethereum or solana, got ${row.chain_type}`,
    );
  });
}

function addWallets(
  { em }: OperationContext,
  { id: accountId }: StoredAccount,
  wallets: readonly WalletRow[],
  from: number,
): void {
  for (const [index, { id: walletId }] of wallets.entries()) {
    em.create(AccountWalletEntity, { accountId, walletId, position: from + index });
  }
}
