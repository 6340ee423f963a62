import { invalidField } from '../../../errors.ts';
import type {
  AccountWalletConfigurationItem,
  CreateAccountRequest,
  UpdateAccountRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { createWallet } from '../wallets/create-wallet.ts';
import { generateWalletKey } from '../wallets/generate-wallet-key.ts';
import { type WalletRow, walletColumns } from '../wallets/wallet-row.ts';
import { type Account, type AccountRow, findAccountForUpdate } from './find-account.ts';

const MAX_WALLETS = 5;
/** The chain types whose balances are read. */
const CHAIN_TYPES = new Set(['ethereum', 'solana']);

type NewKey = ReturnType<typeof generateWalletKey>;

/**
 * Makes an account of existing wallets or of new ones, which have neither owner nor policy.
 *
 * @throws ApiError invalid_data when a wallet is not there, archived or of an extended chain type.
 */
export async function createAccount(
  context: OperationContext,
  input: CreateAccountRequest,
): Promise<Account> {
  const keys = drawKeys(context, input);
  const row: AccountRow = {
    id: context.ids.cuid(),
    app_id: context.app.id,
    ...nameColumns(input.display_name ?? null),
    created_at_ms: context.nowMs,
  };
  const wallets = await walletsFor(context, input, await keys);
  await context.em.getKysely<Tables>().insertInto('accounts').values(row).execute();
  await addWallets(context, row.id, wallets, 0);
  return { row, wallets };
}

/**
 * Renames an account, adds wallets to it, or both. Wallets are never taken out.
 *
 * @throws ApiError not_found; invalid_data as for a new account, for a wallet that is in it and for more than five.
 */
export async function updateAccount(
  context: OperationContext,
  id: string,
  input: UpdateAccountRequest,
): Promise<Account> {
  const keys = drawKeys(context, input);
  const { row, wallets } = await findAccountForUpdate(context, id);
  const { field, count } = askedWallets(input);
  if (wallets.length + count > MAX_WALLETS) {
    throw invalidField(
      `/${field}`,
      `an account has at most ${MAX_WALLETS} wallets, this one has ${wallets.length}`,
    );
  }
  for (const [index, walletId] of ('wallet_ids' in input ? input.wallet_ids : []).entries()) {
    if (wallets.some((wallet) => wallet.id === walletId)) {
      throw invalidField(`/wallet_ids/${index}`, `the wallet \`${walletId}\` is in the account already`);
    }
  }
  const added = await walletsFor(context, input, await keys);
  await addWallets(context, row.id, added, wallets.length);
  const name = input.display_name === undefined ? {} : nameColumns(input.display_name);
  if (input.display_name !== undefined) {
    await context.em.getKysely<Tables>().updateTable('accounts').set(name).where('id', '=', row.id).execute();
  }
  return { row: { ...row, ...name }, wallets: [...wallets, ...added] };
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

function nameColumns(name: string | null): Pick<AccountRow, 'display_name' | 'search_name'> {
  return { display_name: name, search_name: name?.toLowerCase() ?? null };
}

/**
 * The keys of new wallets. Drawn and derived before the database is touched: on SQLite the first statement begins the
 * transaction that everybody else waits for.
 */
async function drawKeys(
  { entropy }: OperationContext,
  input: CreateAccountRequest | UpdateAccountRequest,
): Promise<Awaited<NewKey>[]> {
  return Promise.all(configurationOf(input).map(({ chain_type }) => generateWalletKey(chain_type, entropy)));
}

async function walletsFor(
  context: OperationContext,
  input: CreateAccountRequest | UpdateAccountRequest,
  keys: readonly Awaited<NewKey>[],
): Promise<WalletRow[]> {
  if ('wallet_ids' in input) return requireWallets(context, input.wallet_ids);
  const made: WalletRow[] = [];
  for (const [index, { chain_type }] of configurationOf(input).entries()) {
    made.push(await createWallet(context, { chain_type }, Promise.resolve(keys[index] as Awaited<NewKey>)));
  }
  return made;
}

/** The wallets of these ids, in their order. */
async function requireWallets({ app, em }: OperationContext, ids: readonly string[]): Promise<WalletRow[]> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select(walletColumns)
    .where('app_id', '=', app.id)
    .where('archived_at_ms', 'is', null)
    .where('id', 'in', ids)
    .execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
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

async function addWallets(
  { em }: OperationContext,
  accountId: string,
  wallets: readonly WalletRow[],
  from: number,
): Promise<void> {
  if (wallets.length === 0) return;
  await em
    .getKysely<Tables>()
    .insertInto('account_wallets')
    .values(
      wallets.map(({ id }, index) => ({ account_id: accountId, wallet_id: id, position: from + index })),
    )
    .execute();
}
