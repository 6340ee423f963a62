import type { ChainStore } from './store.ts';

/** Account state other than balances, for chains with contracts. Addresses are in the ledger's notation. */
export interface ContractAccounts {
  nonce(address: string, lane: string): number;
  setNonce(address: string, lane: string, nonce: number): void;
  /** The contract that the account delegates to (EIP-7702). */
  delegate(address: string): string | undefined;
  setDelegate(address: string, contract: string | undefined): void;
  allowance(key: { token: string; owner: string; spender: string }): bigint;
  setAllowance(key: { token: string; owner: string; spender: string }, amount: bigint): void;
  token(address: string): { decimals: number; symbol: string } | undefined;
}

export function makeContractAccounts(store: ChainStore, caip2: string): ContractAccounts {
  const row = (address: string, lane: string) =>
    store.first<{ nonce: number; delegate: string | null }>(
      'select nonce, delegate from accounts where caip2 = ? and address = ? and lane = ?',
      ...[caip2, address, lane],
    );
  return {
    nonce: (address, lane) => row(address, lane)?.nonce ?? 0,
    setNonce: (address, lane, nonce) =>
      store.run(
        `insert into accounts values (?, ?, ?, ?, null)
         on conflict (caip2, address, lane) do update set nonce = excluded.nonce`,
        ...[caip2, address, lane, nonce],
      ),
    delegate: (address) => row(address, '')?.delegate ?? undefined,
    setDelegate: (address, contract) =>
      store.run(
        `insert into accounts values (?, ?, '', 0, ?)
         on conflict (caip2, address, lane) do update set delegate = excluded.delegate`,
        ...[caip2, address, contract ?? null],
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
