import type { ChainStore } from './store.ts';

/** Collects all fees, so that the total supply stays equal to the sum of all deposits. Not a valid address. */
export const FEE_ACCOUNT = 'fees';
/** The native asset in the ledger. */
export const NATIVE = '';

const MAX_AMOUNT = 2n ** 256n - 1n;

/** Reverts an execution; the message becomes the revert reason. */
export class RevertError extends Error {
  /** Whether the account holds too little of the native asset. */
  readonly isShortfall: boolean;

  constructor(reason: string, isShortfall = false) {
    super(reason);
    this.name = 'RevertError';
    this.isShortfall = isShortfall;
  }
}

/** One transfer of an asset, as recorded in the list of transfers. */
export interface Movement {
  readonly sender: string;
  readonly recipient: string;
  readonly asset: string;
  readonly amount: bigint;
}

/** The balances of one chain. */
export interface Ledger {
  balance(owner: string, asset: string): bigint;
  /** Throws RevertError with the message `shortfall` when the owner holds too little. */
  debit(entry: { owner: string; asset: string; amount: bigint; shortfall: string }): void;
  /** Throws RevertError when the balance would exceed 256 bits. */
  credit(owner: string, asset: string, amount: bigint): void;
  /** The sum over all owners, including fees. */
  total(asset: string): bigint;
}

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
