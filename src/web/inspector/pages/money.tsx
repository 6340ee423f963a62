import { ChartNoAxesColumn } from 'lucide';
import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import type { SandboxAssetBooks, SandboxFiatBooks } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { flowOf } from '../money-flow.ts';
import { groupedText, inWords, shortAmount, shortened } from '../names.ts';
import { Flow } from '../parts/flow.tsx';
import { Chain, Label } from '../parts/label.tsx';
import { Empty, Failure, Skeleton } from '../parts/states.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { hrefOf } from '../routes.ts';

/** Where the money of every asset came from, and where it is. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('getBooks', {}, signal), []);
  const books = value.value;
  const assets =
    books?.data.filter(({ given, minted }) => given !== '0' || minted !== '0').sort(byHolders) ?? [];
  const fiat = books?.fiat.filter(({ balance, paid_in: paidIn }) => balance !== '0' || paidIn !== '0') ?? [];
  return (
    <div class="page">
      <div class="title">
        <h1>Money</h1>
        <div class="actions">
          <button type="button" onClick={reload}>
            Refresh
          </button>
        </div>
      </div>
      <p class="quiet">
        Every asset is counted at both ends. What the faucet gave and contracts minted equals what is held.
      </p>
      <Failure message={error.value} retry={reload} />
      {books === undefined && error.value === '' && <Skeleton />}
      {books !== undefined && assets.length === 0 && (
        <Empty icon={ChartNoAxesColumn} title="No money yet">
          <span>Fund a wallet, and its money is drawn here from the faucet to its holders.</span>
          <a class="button" href={hrefOf('wallets')}>
            Choose a wallet
          </a>
        </Empty>
      )}
      <div class="cards wide">
        {assets.map((each) => (
          <Asset key={`${each.caip2} ${each.token_address}`} books={each} />
        ))}
      </div>
      {fiat.map((each) => (
        <Fiat key={`${each.environment} ${each.currency}`} books={each} />
      ))}
    </div>
  );
}

/** Sorts the assets with the most kinds of holders first. */
function byHolders(a: SandboxAssetBooks, b: SandboxAssetBooks): number {
  return Object.keys(b.held).length - Object.keys(a.held).length;
}

function Asset({ books }: { readonly books: SandboxAssetBooks }) {
  const { symbol, token_address: token, decimals } = books;
  const title = symbol?.toUpperCase() ?? (token === null ? 'Native' : shortened(token));
  return (
    <section class="card" aria-label={`${title} on ${books.caip2}`}>
      <h2>
        {title} <Chain id={books.caip2} />
      </h2>
      <Flow
        label={`${title}: from its sources to its holders`}
        flow={flowOf(books)}
        amountText={(amount) => shortAmount(decimalText(fromRaw(amount, decimals)))}
      />
    </section>
  );
}

const fiatRows = ['capital', 'paid_in', 'paid_out', 'refunded', 'fees', 'developer_fees', 'balance'] as const;

function Fiat({ books }: { readonly books: SandboxFiatBooks }) {
  const title = books.currency.toUpperCase();
  return (
    <section class="card" aria-label={`${title} of the bank`}>
      <h2>
        {title} of the bank <Label>{books.environment}</Label>
      </h2>
      <table class="plain">
        <tbody>
          {fiatRows.map((row) => (
            <tr key={row}>
              <th scope="row">{inWords(row)}</th>
              <td class="end amount">{groupedText(books[row])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
