import type { ChainStore } from './store.ts';

/** Holds every fee that was ever paid, so that what a chain holds in all is what was given out. No address is it. */
export const FEE_ACCOUNT = 'fees';
/** The native asset, as the ledger writes it. */
export const NATIVE = '';

const MAX_AMOUNT = 2n ** 256n - 1n;

/** Thrown inside an execution: its effects are undone and the reason is kept. */
export class RevertError extends Error {
  /** Whether the account lacks the native asset that it wants to send. */
  readonly isShortfall: boolean;

  constructor(reason: string, isShortfall = false) {
    super(reason);
    this.name = 'RevertError';
    this.isShortfall = isShortfall;
  }
}

/** One movement of an asset, as the list of transfers shows it. */
export interface Movement {
  readonly sender: string;
  readonly recipient: string;
  readonly asset: string;
  readonly amount: bigint;
}

/** What one chain's accounts hold. */
export interface Ledger {
  balance(owner: string, asset: string): bigint;
  /** Throws RevertError with `shortfall` when the owner holds less. */
  debit(entry: { owner: string; asset: string; amount: bigint; shortfall: string }): void;
  /** Throws RevertError where the sum has no room in 256 bits. */
  credit(owner: string, asset: string, amount: bigint): void;
  /** Sum over every owner, fees included. */
  total(asset: string): bigint;
}

/** The ledger of one chain. */
export function makeLedger(store: ChainStore, caip2: string): Ledger {
  const balance = (owner: string, asset: string): bigint => {
    const row = store.first<{ amount: string }>(
      'select amount from balances where caip2 = ? and owner = ? and asset = ?',
      ...[caip2, owner, asset],
    );
    return BigInt(row?.amount ?? 0);
  };
  const write = (owner: string, asset: string, amount: bigint): void =>
    store.run('insert or replace into balances values (?, ?, ?, ?)', caip2, owner, asset, String(amount));
  return {
    balance,
    debit({ owner, asset, amount, shortfall }) {
      const rest = balance(owner, asset) - amount;
      if (rest < 0n) throw new RevertError(shortfall, asset === NATIVE);
      write(owner, asset, rest);
    },
    credit(owner, asset, amount) {
      const sum = balance(owner, asset) + amount;
      if (sum > MAX_AMOUNT) throw new RevertError('the balance would exceed 2^256 - 1');
      write(owner, asset, sum);
    },
    total(asset) {
      const rows = [
        ...store.all<{ amount: string }>(
          'select amount from balances where caip2 = ? and asset = ?',
          caip2,
          asset,
        ),
        ...store.all<{ amount: string }>(
          'select amount from token_accounts where caip2 = ? and mint = ?',
          caip2,
          asset,
        ),
      ];
      return rows.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
    },
  };
}
