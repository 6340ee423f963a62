import type { EthereumEarnPositionResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { EvmChain } from '../../../ports/chains.ts';
import { readChain, requireKnownChain } from '../../access/chains/ask-chains.ts';
import type { Tables } from '../../tables.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { chainOfVault, type EarnVault } from './find-vault.ts';
import { askVault } from './read-vault.ts';
import { assetView, userApyOf } from './vault-view.ts';

/** Rows read at once. */
const BATCH = 500;

/**
 * The position of a wallet in a vault now, and what its actions moved.
 *
 * CHOICE: the totals are those of succeeded actions of this server; transactions that were sent by other means count in
 * the position, not in the totals.
 *
 * @throws ApiError not_supported; unavailable.
 */
export async function getPosition(
  context: OperationContext,
  wallet: WalletRow,
  vault: EarnVault,
): Promise<EthereumEarnPositionResponse> {
  const known = chainOfVault(vault);
  const chain = requireKnownChain(context, known) as EvmChain;
  const [shares = 0n] =
    wallet.chain_type === 'ethereum'
      ? await readChain(chain.balances(wallet.address, [vault.address]), known)
      : [];
  const assets =
    shares === 0n ? 0n : await readChain(askVault(chain, vault, 'convertToAssets', shares), known);
  const rate = await context.vaultRates?.rateOf(vault.caip2, vault.address);
  return {
    asset: assetView(vault),
    shares_in_vault: String(shares),
    assets_in_vault: String(assets ?? 0n),
    total_deposited: String(await movedBy(context, wallet, { vault, type: 'earn_deposit' })),
    total_withdrawn: String(await movedBy(context, wallet, { vault, type: 'earn_withdraw' })),
    ...(rate === undefined ? {} : { apy_bps: Math.floor(userApyOf(rate)) }),
  };
}

interface MovedFilter {
  readonly vault: EarnVault;
  readonly type: 'earn_deposit' | 'earn_withdraw';
}

// HOT: read in batches, only the columns that are summed. No bench case covers it.
async function movedBy(
  { em }: OperationContext,
  wallet: WalletRow,
  { vault, type }: MovedFilter,
): Promise<bigint> {
  let sum = 0n;
  for (let after = ''; ; ) {
    const rows = await em
      .getKysely<Tables>()
      .selectFrom('wallet_actions')
      .select(['id', 'details', 'outcome'])
      .where('wallet_id', '=', wallet.id)
      .where('type', '=', type)
      .where('status', '=', 'succeeded')
      .where('id', '>', after)
      .orderBy('id')
      .limit(BATCH)
      .execute();
    for (const { details, outcome } of rows) {
      const moved = { ...JSON.parse(details), ...JSON.parse(outcome ?? '{}') };
      if (moved.vault_id === vault.id) sum += BigInt(moved.raw_amount);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return sum;
    after = last.id;
  }
}
