import { readWithBigints, writeWithBigints } from '../../ledger.ts';
import type { ChainStore } from '../../store.ts';

/**
 * Data about the contracts of one chain that is not in their storage, by contract and key. Values are JSON that may
 * contain bigints.
 */
export interface ContractState {
  /** Returns a stored value, or undefined if nothing was stored. */
  get<T>(contract: string, key: string): T | undefined;
  set(contract: string, key: string, value: unknown): void;
  /** Returns the values of one key in all contracts that have it, in the order of their addresses. */
  having<T>(key: string): readonly { readonly contract: string; readonly value: T }[];
}

export function makeContractState(store: ChainStore, caip2: string): ContractState {
  return {
    get<T>(contract: string, key: string) {
      const row = store.first<{ value: string }>(
        'select value from contract_state where caip2 = ? and contract = ? and key = ?',
        ...[caip2, contract, key],
      );
      return row && (readWithBigints(row.value) as T);
    },
    set: (contract, key, value) =>
      store.run(
        'insert or replace into contract_state values (?, ?, ?, ?)',
        ...[caip2, contract, key, writeWithBigints(value)],
      ),
    having: <T>(key: string) =>
      store
        .all<{ contract: string; value: string }>(
          'select contract, value from contract_state where caip2 = ? and key = ? order by contract',
          ...[caip2, key],
        )
        .map(({ contract, value }) => ({ contract, value: readWithBigints(value) as T })),
  };
}
