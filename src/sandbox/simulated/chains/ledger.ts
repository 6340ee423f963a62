import type { ChainStore } from './store.ts';

/**
 * The account that receives all fees, so that the total supply stays equal to the sum of all deposits. The name is
 * not a valid address.
 */
export const FEE_ACCOUNT = 'fees';
/** The key of the native asset in the ledger. */
export const NATIVE = '';

const MAX_AMOUNT = 2n ** 256n - 1n;

/** Thrown when an execution must be reverted. The message becomes the revert reason. */
export class RevertError extends Error {
  /** Whether the cause is that the account has too little of the native asset. */
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
  setBalance(owner: string, asset: string, amount: bigint): void;
  /**
   * Decreases a balance.
   *
   * @throws RevertError with the message `shortfall` if the balance is too low.
   */
  debit(entry: { owner: string; asset: string; amount: bigint; shortfall: string }): void;
  /**
   * Increases a balance.
   *
   * @throws RevertError if the balance would exceed 256 bits.
   */
  credit(owner: string, asset: string, amount: bigint): void;
  /** Returns the sum over all owners, including fees. */
  total(asset: string): bigint;
}

/** The initial balances of the native asset, for accounts that have no stored balance. */
interface NativeBeginning {
  native(owner: string): bigint;
  /** Returns the account whose initial balance is part of the total supply. Undefined if there is none. */
  counted(): { readonly owner: string; readonly amount: bigint } | undefined;
}

const nothing: NativeBeginning = { native: () => 0n, counted: () => undefined };

/** Returns the stored balances of a chain. */
export function makeLedger(store: ChainStore, caip2: string, begun: NativeBeginning = nothing): Ledger {
  const stored = (owner: string, asset: string): bigint | undefined => {
    const row = store.first<{ amount: string }>(
      'select amount from balances where caip2 = ? and owner = ? and asset = ?',
      ...[caip2, owner, asset],
    );
    return row && BigInt(row.amount);
  };
  const balance = (owner: string, asset: string): bigint =>
    stored(owner, asset) ?? (asset === NATIVE ? begun.native(owner) : 0n);
  const write = (owner: string, asset: string, amount: bigint): void =>
    store.run('insert or replace into balances values (?, ?, ?, ?)', caip2, owner, asset, String(amount));
  return {
    balance,
    setBalance: write,
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
      const counted = asset === NATIVE ? begun.counted() : undefined;
      const isUnchanged = counted !== undefined && stored(counted.owner, asset) === undefined;
      const unchanged = isUnchanged ? counted.amount : 0n;
      return rows.reduce((sum, { amount }) => sum + BigInt(amount), unchanged);
    },
  };
}

/** The nonces and delegations of accounts, for chains with smart contracts. Addresses are in the ledger's notation. */
export interface ContractAccounts {
  nonce(address: string, lane: string): number;
  setNonce(address: string, lane: string, nonce: number): void;
  /** Returns the smart contract to which the account delegates (EIP-7702), or undefined if it does not. */
  delegate(address: string): string | undefined;
  setDelegate(address: string, contract: string | undefined): void;
  allowance(key: { token: string; owner: string; spender: string }): bigint;
  setAllowance(key: { token: string; owner: string; spender: string }, amount: bigint): void;
  token(address: string): { decimals: number; symbol: string } | undefined;
}

/**
 * Returns the stored state of accounts.
 *
 * @param begun the initial state, for accounts that have no stored state.
 */
export function makeContractAccounts(
  store: ChainStore,
  caip2: string,
  begun: {
    nonce(address: string): number;
    delegate(address: string): string | undefined;
  } = { nonce: () => 0, delegate: () => undefined },
): ContractAccounts {
  const row = (address: string, lane: string) =>
    store.first<{ nonce: number; delegate: string | null }>(
      'select nonce, delegate from accounts where caip2 = ? and address = ? and lane = ?',
      ...[caip2, address, lane],
    );
  const nonce = (address: string, lane: string): number =>
    row(address, lane)?.nonce ?? (lane === '' ? begun.nonce(address) : 0);
  const delegate = (address: string): string | undefined => {
    const stored = row(address, '');
    return stored === undefined ? begun.delegate(address) : (stored.delegate ?? undefined);
  };
  return {
    nonce,
    setNonce: (address, lane, next) =>
      store.run(
        `insert into accounts values (?, ?, ?, ?, ?)
         on conflict (caip2, address, lane) do update set nonce = excluded.nonce`,
        ...[caip2, address, lane, next, lane === '' ? (delegate(address) ?? null) : null],
      ),
    delegate,
    setDelegate: (address, contract) =>
      store.run(
        `insert into accounts values (?, ?, '', ?, ?)
         on conflict (caip2, address, lane) do update set delegate = excluded.delegate`,
        ...[caip2, address, nonce(address, ''), contract ?? null],
      ),
    allowance: ({ token, owner, spender }) =>
      BigInt(
        store.first<{ amount: string }>(
          'select amount from allowances where caip2 = ? and token = ? and owner = ? and spender = ?',
          ...[caip2, token, owner, spender],
        )?.amount ?? 0,
      ),
    setAllowance: ({ token, owner, spender }, amount) =>
      store.run(
        'insert or replace into allowances values (?, ?, ?, ?, ?)',
        ...[caip2, token, owner, spender, String(amount)],
      ),
    token: (address) =>
      store.first('select decimals, symbol from tokens where caip2 = ? and address = ?', caip2, address),
  };
}

// Stores bigints in JSON, as digits followed by `n`. No string that is stored in this way has that format.

export function writeWithBigints(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member));
}

export function readWithBigints(text: string): unknown {
  return JSON.parse(text, (_, member: unknown) =>
    typeof member === 'string' && /^\d+n$/.test(member) ? BigInt(member.slice(0, -1)) : member,
  );
}

/** Thrown when work is done whose changes must not stay, so that the store rolls them back. Only `rollBack` sees it. */
class RollBackError extends Error {}

/** Runs `work`, rolls back its changes to the store, and returns its result. */
export function rollBack<T>(store: ChainStore, work: () => T): T {
  let result: { value: T } | undefined;
  try {
    store.atomically(() => {
      result = { value: work() };
      throw new RollBackError();
    });
  } catch (error) {
    if (!(error instanceof RollBackError)) throw error;
  }
  return result!.value;
}
