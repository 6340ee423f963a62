import { useSignal } from '@preact/signals';
import { readDecimal, toRaw } from '../../../engine/assets/decimal.ts';
import { assetNamed } from '../../../engine/assets/known-assets.ts';
import { chainNamed } from '../../../engine/assets/known-chains.ts';
import type { Wallet } from '../../../generated/schemas.ts';
import type { SandboxOwner } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { SentResult, SignerChoice, useSending, useSigners } from '../parts/sent-result.tsx';
import { hrefOf } from '../routes.ts';
import { faucetAssets } from '../wallet-facts.ts';

/** The chain on which the seed data has a pool for swaps. */
const POOL_CHAIN = 'base';

export interface SendBoxProps {
  readonly wallet: Wallet;
  /** Undefined while it is loaded. Null for a wallet without an owner. */
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
  return (
    <>
      <Transfer wallet={wallet} owner={owner} />
      <Swap wallet={wallet} owner={owner} />
      <p class="quiet small">
        Watch it under <a href={hrefOf('actions')}>Actions</a> and{' '}
        <a href={hrefOf('transactions')}>Transactions</a>.
      </p>
    </>
  );
}

function Transfer({ wallet, owner }: SendBoxProps) {
  const assets = faucetAssets(wallet.chain_type);
  const chosen = useSignal(0);
  const amount = useSignal('1');
  const to = useSignal('');
  const signAs = useSigners(owner);
  const sending = useSending();
  const send = (submitted: Event): void => {
    submitted.preventDefault();
    const { chain, asset } = assets[chosen.value]!;
    const body = {
      source: { asset, chain, amount: amount.value.trim() },
      destination: { address: to.value.trim() },
    };
    const path = { wallet_id: wallet.id };
    void sending.run(() =>
      control('sendRequest', {
        body: { operation: 'transferFromWallet', path, body, sign_as: [...signAs.value] },
      }),
    );
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
            <select onChange={({ currentTarget }) => (chosen.value = currentTarget.selectedIndex)}>
              {assets.map(({ chain, asset }) => (
                <option key={`${chain} ${asset}`}>
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
        <SignerChoice chosen={signAs} />
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          Transfer
        </button>
      </form>
      <SentResult sending={sending} />
    </section>
  );
}

function Swap({ wallet, owner }: SendBoxProps) {
  const assets = faucetAssets(wallet.chain_type);
  const chain = useSignal((assets.find((each) => each.chain === POOL_CHAIN) ?? assets[0]!).chain);
  const here = assets.filter((each) => each.chain === chain.value).map(({ asset }) => asset);
  const from = useSignal(here[0]!);
  const amount = useSignal('0.1');
  const signAs = useSigners(owner);
  const sending = useSending();
  const to = here.find((asset) => asset !== from.value) ?? from.value;
  const send = (submitted: Event): void => {
    submitted.preventDefault();
    const known = chainNamed(chain.value)!;
    const source = assetNamed(known, from.value)!;
    const decimal = readDecimal(amount.value.trim());
    const base = decimal === undefined ? undefined : toRaw(decimal, source.decimals);
    if (base === undefined) {
      sending.error.value = `The amount must be a number with at most ${source.decimals} decimals.`;
      return;
    }
    const body = {
      source: { asset_address: source.tokenAddress ?? 'native', caip2: known.caip2 },
      destination: { asset_address: assetNamed(known, to)!.tokenAddress ?? 'native' },
      base_amount: String(base),
    };
    void sending.run(() =>
      control('sendRequest', {
        body: {
          ...{ operation: 'executeWalletSwap', path: { wallet_id: wallet.id }, body },
          sign_as: [...signAs.value],
        },
      }),
    );
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
        <SignerChoice chosen={signAs} />
        <button type="submit" disabled={sending.isRunning.value}>
          Swap
        </button>
      </form>
      <SentResult sending={sending} />
    </section>
  );
}
