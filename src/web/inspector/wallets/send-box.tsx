import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { decimalText, fromRaw, readDecimal, toRaw } from '../../../engine/assets/decimal.ts';
import { assetNamed } from '../../../engine/assets/known-assets.ts';
import { chainNamed } from '../../../engine/assets/known-chains.ts';
import type { SwapQuoteResponse, Wallet } from '../../../generated/schemas.ts';
import type { SandboxOwner } from '../../../sandbox/generated/schemas.ts';
import { errorOf } from '../api.ts';
import { control } from '../control.ts';
import { groupedText } from '../names.ts';
import { isRefusal, SentResult, SignerChoice, useSending, useSigners } from '../parts/sent-result.tsx';
import { hrefOf } from '../routes.ts';
import { faucetAssets } from '../wallet-facts.ts';
import { useBalances } from './balances.tsx';

/** The chain on which the seed data has a pool for swaps. */
const POOL_CHAIN = 'base';

export interface SendBoxProps {
  readonly wallet: Wallet;
  /** The owner of the wallet: undefined while it is loaded, null if there is none. */
  readonly owner: SandboxOwner | null | undefined;
}

/** The forms that transfer and swap the assets of a wallet. */
export function SendBox({ wallet, owner }: SendBoxProps) {
  if (faucetAssets(wallet.chain_type).length === 0) {
    return (
      <p class="empty">
        The sandbox transfers named assets on EVM chains, Solana and Tron. This wallet signs hashes: see
        “Sign”.
      </p>
    );
  }
  return <Forms wallet={wallet} owner={owner} />;
}

/** Returns what a wallet has of an asset, as text. Undefined while it is loaded. */
type Held = (chain: string, asset: string) => string | undefined;

function Forms({ wallet, owner }: SendBoxProps) {
  const round = useSignal(0);
  const { value: balances } = useBalances(wallet, round.value);
  const held: Held = (chain, asset) =>
    balances.value?.find((each) => each.chain === chain && each.asset === asset)?.display_values[asset];
  const onSent = (): void => {
    round.value += 1;
  };
  return (
    <>
      <Transfer wallet={wallet} owner={owner} held={held} onSent={onSent} />
      <Swap wallet={wallet} owner={owner} held={held} onSent={onSent} />
      <p class="quiet small">
        Watch it under <a href={hrefOf('actions')}>Actions</a> and{' '}
        <a href={hrefOf('transactions')}>Transactions</a>.
      </p>
    </>
  );
}

interface FormProps extends SendBoxProps {
  readonly held: Held;
  readonly onSent: () => void;
}

/** What the wallet has of the asset to send. */
function Available({ amount, asset }: { readonly amount: string | undefined; readonly asset: string }) {
  return (
    <p class="quiet small" role="status">
      {amount === undefined ? '' : `The wallet has ${groupedText(amount)} ${asset.toUpperCase()}.`}
    </p>
  );
}

function Transfer({ wallet, owner, held, onSent }: FormProps) {
  const assets = faucetAssets(wallet.chain_type);
  const chosen = useSignal<number | undefined>(undefined);
  const amount = useSignal('1');
  const to = useSignal('');
  // Initially, an asset that the wallet holds is selected.
  const funded = assets.findIndex((each) => Number(held(each.chain, each.asset) ?? 0) > 0);
  const index = chosen.value ?? Math.max(0, funded);
  const source = assets[index]!;
  const signAs = useSigners(owner);
  const sending = useSending();
  const send = (submitted: Event): void => {
    submitted.preventDefault();
    const { chain, asset } = source;
    const body = {
      source: { asset, chain, amount: amount.value.trim() },
      destination: { address: to.value.trim() },
    };
    const path = { wallet_id: wallet.id };
    void sending
      .run(() =>
        control('sendRequest', {
          body: { operation: 'transferFromWallet', path, body, sign_as: [...signAs.value] },
        }),
      )
      .then(onSent);
  };
  return (
    <section class="card" aria-label="Transfer">
      <h3>Transfer</h3>
      <form onSubmit={send}>
        <div class="fields">
          <label>
            Amount
            <input
              inputMode="decimal"
              value={amount}
              onInput={({ currentTarget }) => (amount.value = currentTarget.value)}
            />
          </label>
          <label>
            Asset
            <select
              value={index}
              onChange={({ currentTarget }) => (chosen.value = currentTarget.selectedIndex)}
            >
              {assets.map(({ chain, asset }, at) => (
                <option key={`${chain} ${asset}`} value={at}>
                  {asset} on {chain}
                </option>
              ))}
            </select>
          </label>
          <label class="wide">
            To address
            <input
              required
              spellcheck={false}
              value={to}
              onInput={({ currentTarget }) => (to.value = currentTarget.value)}
            />
          </label>
        </div>
        <Available amount={held(source.chain, source.asset)} asset={source.asset} />
        <SignerChoice chosen={signAs} owner={owner} />
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          Transfer
        </button>
      </form>
      <SentResult sending={sending} />
    </section>
  );
}

/** Returns the body of a swap, or the reason why the amount cannot be swapped. */
function swapOf(
  chain: string,
  { from, to, amount }: { readonly from: string; readonly to: string; readonly amount: string },
) {
  const known = chainNamed(chain)!;
  const [source, target] = [assetNamed(known, from)!, assetNamed(known, to)!];
  const decimal = readDecimal(amount.trim());
  const base = decimal === undefined ? undefined : toRaw(decimal, source.decimals);
  if (base === undefined) return `The amount must be a number with at most ${source.decimals} decimals.`;
  const body = {
    source: { asset_address: source.tokenAddress ?? 'native', caip2: known.caip2 },
    destination: { asset_address: target.tokenAddress ?? 'native' },
    base_amount: String(base),
  };
  return { body, decimals: target.decimals };
}

const QUOTE_DELAY_MS = 300;

function Swap({ wallet, owner, held, onSent }: FormProps) {
  const assets = faucetAssets(wallet.chain_type);
  const chain = useSignal((assets.find((each) => each.chain === POOL_CHAIN) ?? assets[0]!).chain);
  const here = assets.filter((each) => each.chain === chain.value).map(({ asset }) => asset);
  const from = useSignal(here[0]!);
  const amount = useSignal('0.1');
  const signAs = useSigners(owner);
  const sending = useSending();
  const quote = useSignal('');
  const to = here.find((asset) => asset !== from.value) ?? from.value;
  const given = { from: from.value, to, amount: amount.value };
  const path = { wallet_id: wallet.id };
  useEffect(() => {
    const swap = swapOf(chain.value, given);
    quote.value = '';
    if (typeof swap === 'string' || swap.body.base_amount === '0') return;
    const leaving = new AbortController();
    const text = (raw: string): string => decimalText(fromRaw(BigInt(raw), swap.decimals));
    const timer = setTimeout(() => {
      const sent = { operation: 'quoteWalletSwap', path, body: swap.body, is_recorded: false };
      control('sendRequest', { body: { ...sent, sign_as: [...signAs.value] } }, leaving.signal).then(
        (answer) => {
          // The request was aborted, so its response is incomplete.
          if (leaving.signal.aborted) return;
          if (isRefusal(answer.status)) {
            quote.value = `No quote: ${errorOf(answer)}`;
            return;
          }
          const { est_output_amount: estimate, minimum_output_amount: least } =
            answer.body as SwapQuoteResponse;
          quote.value = `About ${text(estimate)} ${to.toUpperCase()}, at least ${text(least)}.`;
        },
        (error: Error) => {
          if (!leaving.signal.aborted) quote.value = `No quote: ${error.message}`;
        },
      );
    }, QUOTE_DELAY_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [chain.value, from.value, amount.value, signAs.value]);
  const send = (submitted: Event): void => {
    submitted.preventDefault();
    const swap = swapOf(chain.value, given);
    if (typeof swap === 'string') {
      sending.error.value = swap;
      return;
    }
    void sending
      .run(() =>
        control('sendRequest', {
          body: { operation: 'executeWalletSwap', path, body: swap.body, sign_as: [...signAs.value] },
        }),
      )
      .then(onSent);
  };
  return (
    <section class="card" aria-label="Swap">
      <h3>Swap</h3>
      <form onSubmit={send}>
        <div class="fields">
          <label>
            Chain
            <select
              value={chain}
              onChange={({ currentTarget }) => {
                chain.value = currentTarget.value;
                from.value = assets.find((each) => each.chain === currentTarget.value)!.asset;
              }}
            >
              {[...new Set(assets.map((each) => each.chain))].map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          <label>
            Amount
            <input
              inputMode="decimal"
              value={amount}
              onInput={({ currentTarget }) => (amount.value = currentTarget.value)}
            />
          </label>
          <label>
            From
            <select value={from} onChange={({ currentTarget }) => (from.value = currentTarget.value)}>
              {here.map((asset) => (
                <option key={asset}>{asset}</option>
              ))}
            </select>
          </label>
          <span>
            into <strong>{to}</strong>
          </span>
        </div>
        <Available amount={held(chain.value, from.value)} asset={from.value} />
        <p role="status">{quote}</p>
        <SignerChoice chosen={signAs} owner={owner} />
        <button type="submit" disabled={sending.isRunning.value}>
          Swap
        </button>
      </form>
      <SentResult sending={sending} />
    </section>
  );
}
