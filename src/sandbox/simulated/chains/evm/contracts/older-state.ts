import { NATIVE } from '../../ledger.ts';
import { FAUCET_ADDRESS } from '../faucet.ts';
import type { EvmState } from '../state.ts';
import { DISTRIBUTOR_ADDRESS } from './addresses.ts';
import { solidity } from './generated/solidity.ts';
import { reservesWord } from './genesis.ts';
import { claimSlot, publishRoot } from './rewards.ts';
import { wordOf } from './storage-layout.ts';
import { type VaultPlan, writeVault } from './vaults.ts';

/* Before version 9 of the store, the sandbox's contracts had no bytecode, and their state was in separate tables. */

interface OldPool {
  readonly reserves: readonly [bigint, bigint];
}

interface OldVault extends Omit<VaultPlan, 'address' | 'decimals' | 'symbol'> {
  readonly isPaused: boolean;
  readonly lent: bigint;
  readonly claimableFees: bigint;
  readonly paidSeconds: number;
  readonly remainder: bigint;
}

interface OldClaim {
  readonly amount: bigint;
  readonly seconds: number;
  readonly root: string;
}

/**
 * Moves the state of contracts from the tables of older versions into the contracts' storage. Must be called in a
 * transaction of the store.
 */
export function convertOlderState(state: EvmState): void {
  const { world, caip2, ledger, accounts, contracts } = state;
  const { store } = world;
  const balances = store.all<{ owner: string; asset: string; amount: string }>(
    `select owner, asset, amount from balances where caip2 = ? and asset <> ''`,
    caip2,
  );
  const allowances = store.all<{ token: string; owner: string; spender: string; amount: string }>(
    'select token, owner, spender, amount from allowances where caip2 = ?',
    caip2,
  );
  const pools = new Map(contracts.having<OldPool>('pool').map(({ contract, value }) => [contract, value]));
  const vaults = contracts.having<OldVault | true>('vault');
  if (balances.length === 0 && allowances.length === 0) return;
  for (const { address, ...token } of store.all<{ address: string; decimals: number; symbol: string }>(
    'select address, decimals, symbol from tokens where caip2 = ?',
    caip2,
  )) {
    if (!vaults.some(({ contract }) => contract === address)) state.registerToken({ address, ...token });
  }
  for (const { contract: address, value } of vaults) {
    if (value !== true) convertVault(state, address, value);
  }
  for (const [pair, { reserves }] of pools) {
    state.bytecode.setWord(pair, wordOf(solidity.Pair.slots.reserve0), reservesWord(reserves));
  }
  backWrappedNative(state, new Set(pools.keys()));
  for (const { owner, asset, amount } of balances) ledger.setBalance(owner, asset, BigInt(amount));
  for (const { amount, ...key } of allowances) accounts.setAllowance(key, BigInt(amount));
  convertClaims(state);
  deleteStocking(state, [...pools.keys()]);
  store.run(`delete from balances where caip2 = ? and asset <> ''`, caip2);
  store.run('delete from allowances where caip2 = ?', caip2);
  store.run(`delete from contract_state where caip2 = ? and (key = 'pool' or key like 'claimed %')`, caip2);
}

/**
 * Adds the native asset that backs the wrapped native asset in the initial reserves of unused pairs. Stored balances
 * of older versions do not contain it.
 */
function backWrappedNative({ genesis, ledger }: EvmState, used: ReadonlySet<string>): void {
  const backing = genesis.native();
  if (backing === undefined) return;
  const unused = genesis
    .allocations()
    .filter(({ owner, asset }) => asset === backing.owner && !used.has(owner))
    .reduce((sum, { amount }) => sum + amount, 0n);
  const held = ledger.balance(backing.owner, NATIVE);
  if (held !== backing.amount) ledger.setBalance(backing.owner, NATIVE, held + unused);
}

/**
 * Deletes the old deposits of the faucet to pairs. Older versions funded a pair on its first use; now pairs begin
 * with their reserves.
 */
function deleteStocking({ world, caip2, genesis }: EvmState, pairs: readonly string[]): void {
  const forget = (recipient: string, isNative: boolean): void =>
    world.store.run(
      `delete from transfers where caip2 = ? and sender = ? and recipient = ? and (asset = '') = ?`,
      ...[caip2, FAUCET_ADDRESS, recipient, isNative ? 1 : 0],
    );
  for (const pair of pairs) forget(pair, false);
  const backing = genesis.native();
  if (backing !== undefined) forget(backing.owner, true);
}

function convertVault(state: EvmState, address: string, old: OldVault): void {
  const { slots } = solidity.Vault;
  const { decimals = 18, symbol = 'TOKEN' } = state.accounts.token(old.asset) ?? {};
  writeVault(state, { ...old, address, decimals, symbol });
  for (const [slot, value] of [
    [slots.isPaused, old.isPaused],
    [slots.lent, old.lent],
    [slots.claimableFees, old.claimableFees],
    [slots.paidAt, old.paidSeconds],
    [slots.remainder, old.remainder],
  ] as const) {
    state.bytecode.setWord(address, wordOf(slot), wordOf(value));
  }
}

function convertClaims(state: EvmState): void {
  const { world, caip2, contracts, bytecode } = state;
  const keys = world.store.all<{ key: string }>(
    `select key from contract_state where caip2 = ? and key like 'claimed %'`,
    caip2,
  );
  for (const { key } of keys) {
    const [, user, token] = key.split(' ') as [string, string, string];
    const { amount, seconds, root } = contracts.get<OldClaim>(DISTRIBUTOR_ADDRESS, key)!;
    const slot = claimSlot({ user, token });
    bytecode.setWord(DISTRIBUTOR_ADDRESS, slot, wordOf((BigInt(seconds) << 208n) | amount));
    bytecode.setWord(DISTRIBUTOR_ADDRESS, wordOf(BigInt(`0x${slot}`) + 1n), root.slice(2));
  }
  publishRoot(state);
}
