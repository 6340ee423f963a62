import { decimalText, fromRaw } from '../../../assets/decimal.ts';
import type { KnownAsset } from '../../../assets/known-assets.ts';
import { normalizeAddress } from '../../../assets/normalize-address.ts';
import type { TransactionDetail, WalletTransaction } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { ChainTransfer } from '../../../ports/chain-transfers.ts';
import type { Tables } from '../../tables.ts';
import type { TransactionRow } from './transaction-row.ts';
import type { Asked } from './wallet-transactions.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

/** One list entry: one of our transactions, or a transfer from the chain's list. */
export type Seen = { readonly atMs: number } & (
  | { readonly row: TransactionRow; readonly transfer?: undefined }
  | { readonly transfer: ChainTransfer; readonly row?: undefined }
);

/** The wire objects of a page. */
export async function transactionViews(
  context: Pick<OperationContext, 'app' | 'em'>,
  asked: Asked,
  page: readonly Seen[],
): Promise<WalletTransaction[]> {
  const parties = page.flatMap(({ row, transfer }) =>
    row === undefined ? [transfer.sender, transfer.recipient] : [row.sender, movedBy(row).recipient],
  );
  const users = await findUsers(context, parties);
  return page.map((seen) =>
    seen.row === undefined ? transferView(asked, seen.transfer, users) : rowView(asked, seen.row, users),
  );
}

type Users = ReadonlyMap<string, string>;

/**
 * What one of our transactions moved, and to whom.
 *
 * CHOICE: one that is not a plain transfer of one asset shows the native asset that it sends along, perhaps none, and
 * the contract that it calls; the wallet itself where there are several calls or none.
 */
function movedBy(row: TransactionRow): Pick<ChainTransfer, 'sender' | 'recipient' | 'rawAmount'> {
  const { sender, moved_to: recipient, moved_amount: amount } = row;
  if (recipient !== null && amount !== null) return { sender, recipient, rawAmount: BigInt(amount) };
  const request = JSON.parse(row.transaction_request ?? '{}') as {
    readonly to?: string;
    readonly value?: string | number;
  };
  return { sender, recipient: request.to ?? sender, rawAmount: BigInt(request.value ?? 0) };
}

function rowView(asked: Asked, row: TransactionRow, users: Users): WalletTransaction {
  const { moved_token: token } = row;
  const asset = assetOf(asked, token === 'native' ? null : token);
  return {
    wallet_id: row.wallet_id,
    service_transaction_id: row.id,
    caip2: row.caip2,
    transaction_hash: row.transaction_hash,
    ...(row.user_operation_hash === null ? {} : { user_operation_hash: row.user_operation_hash }),
    status: row.status,
    created_at: row.created_at_ms,
    sponsored: row.is_sponsored === 1,
    details: detailOf(asked, asset, movedBy(row), users),
  };
}

function transferView(asked: Asked, transfer: ChainTransfer, users: Users): WalletTransaction {
  const asset = assetOf(asked, transfer.tokenAddress);
  return {
    wallet_id: asked.wallet.id,
    service_transaction_id: null,
    caip2: asked.chain.caip2,
    transaction_hash: transfer.hash,
    status: 'confirmed',
    created_at: transfer.blockTimestampSeconds * 1000,
    details: detailOf(asked, asset, transfer, users),
  };
}

/** One of the assets that were asked for: the lists hold no others. */
function assetOf({ assets }: Asked, token: string | null): KnownAsset {
  const asset = assets.find(({ tokenAddress }) =>
    tokenAddress === null || token === null
      ? tokenAddress === token
      : normalizeAddress(tokenAddress) === normalizeAddress(token),
  );
  if (asset === undefined) throw new Error(`a transfer of ${token ?? 'the native asset'} was not asked for`);
  return asset;
}

function detailOf(
  { wallet, chain }: Asked,
  { asset, decimals }: KnownAsset,
  moved: Pick<ChainTransfer, 'sender' | 'recipient' | 'rawAmount'>,
  users: Users,
): TransactionDetail {
  const sender = normalizeAddress(moved.sender);
  const recipient = normalizeAddress(moved.recipient);
  return {
    type: sender === wallet.address ? 'transfer_sent' : 'transfer_received',
    sender,
    sender_service_user_id: users.get(sender) ?? null,
    recipient,
    recipient_service_user_id: users.get(recipient) ?? null,
    chain: chain.name,
    asset,
    raw_value: String(moved.rawAmount),
    raw_value_decimals: decimals,
    display_values: { [asset]: decimalText(fromRaw(moved.rawAmount, decimals)) },
  };
}

/**
 * The app's users who own the wallets at these addresses.
 *
 * CHOICE: a wallet belongs to the user who is its entity, otherwise to the first user in its owning quorum.
 */
async function findUsers(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  addresses: readonly string[],
): Promise<Users> {
  const wanted = [...new Set(addresses.map(normalizeAddress))];
  if (wanted.length === 0) return new Map();
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .leftJoin('key_quorum_members as owner', (join) =>
      join.onRef('owner.key_quorum_id', '=', 'wallets.owner_id').on('owner.kind', '=', 'user'),
    )
    .select(['wallets.address', 'wallets.entity_type', 'wallets.entity_id', 'owner.member'])
    .where('wallets.app_id', '=', app.id)
    .where('wallets.address', 'in', wanted)
    .orderBy('wallets.id')
    .orderBy('owner.position')
    .execute();
  const users = new Map<string, string>();
  for (const { address, entity_type: type, entity_id: entity, member } of rows) {
    const user = type === 'user' ? entity : member;
    if (user !== null && !users.has(address)) users.set(address, user);
  }
  return users;
}
