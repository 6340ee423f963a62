import { useSignal } from '@preact/signals';
import type { Wallet } from '../../../generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { groupedText } from '../names.ts';
import { Chain } from '../parts/label.tsx';
import { Failure } from '../parts/states.tsx';
import { useLoaded, useReload } from '../parts/use-loaded.tsx';
import { balanceQueries, faucetAssets } from '../wallet-facts.ts';

/** The balances of a wallet in the assets of the faucet. They are read again when `round` changes. */
export function useBalances({ id, chain_type: chainType }: Wallet, round: number) {
  return useLoaded(
    async (signal) => {
      const read = balanceQueries(chainType).map((query) =>
        readApi('getWalletBalance', { path: { wallet_id: id }, query }, signal),
      );
      return (await Promise.all(read)).flatMap(({ balances }) => balances);
    },
    [id, round],
  );
}

interface BalancesProps {
  readonly wallet: Wallet;
  readonly round: number;
  /** The balances are read again, at most once a second, when this changes. */
  readonly change: unknown;
}

/** The balances of a wallet as a table. */
export function Balances({ wallet, round, change }: BalancesProps) {
  const { value, error, isLoading, reload } = useBalances(wallet, round);
  useReload({ isLoading, reload }, change);
  const balances = value.value;
  return (
    <section aria-label="Balances">
      <h3>Balances</h3>
      <Failure message={error.value} />
      {balances?.length === 0 && <p class="empty">Balances of this chain type are not listed.</p>}
      {balances !== undefined && balances.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Chain</th>
              <th scope="col">Asset</th>
              <th scope="col" class="end">
                Amount
              </th>
            </tr>
          </thead>
          <tbody>
            {balances.map(({ chain, asset, display_values }) => (
              <tr key={`${chain} ${asset}`}>
                <td>
                  <Chain id={chain} />
                </td>
                <td>{asset.toUpperCase()}</td>
                <td class="end amount">{groupedText(display_values[asset] ?? '0')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

/** The form that credits assets to a wallet. */
export function Faucet({ wallet, onFunded }: { readonly wallet: Wallet; readonly onFunded: () => void }) {
  const assets = faucetAssets(wallet.chain_type);
  const chosen = useSignal(0);
  const amount = useSignal('1');
  const note = useSignal('');
  const place = assets[chosen.value];
  if (place === undefined) return null;
  const fund = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const { chain, asset } = place;
      const body = { chain, asset, address: wallet.address, amount: amount.value };
      await control('fundAddress', { body });
      note.value = `${amount.value} ${asset} credited on ${chain}`;
      onFunded();
    } catch (error) {
      note.value = (error as Error).message;
    }
  };
  return (
    <section aria-label="Faucet">
      <h3>Faucet</h3>
      <form class="fields" onSubmit={fund}>
        <label>
          Asset
          <select
            onChange={({ currentTarget }) => {
              chosen.value = currentTarget.selectedIndex;
            }}
          >
            {assets.map(({ chain, asset }) => (
              <option key={`${chain} ${asset}`}>
                {asset} on {chain}
              </option>
            ))}
          </select>
        </label>
        <label>
          Amount
          <input
            inputMode="decimal"
            value={amount}
            onInput={({ currentTarget }) => {
              amount.value = currentTarget.value;
            }}
          />
        </label>
        <button type="submit">Credit</button>
      </form>
      <p role="status">{note.value}</p>
    </section>
  );
}
