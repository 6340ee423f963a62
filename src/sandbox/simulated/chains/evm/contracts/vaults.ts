import { contractAbi } from '../../../../../engine/signing/ethereum/contract-calls.ts';
import { rawAmountWorth } from '../../../exchange/rates.ts';
import { fixedUsd } from '../../../prices.ts';
import type { Movement } from '../../ledger.ts';
import type { Block } from '../../pool.ts';
import { give } from '../faucet.ts';
import type { Interpreter } from '../interpreter.ts';
import { BLOCK_GAS_LIMIT } from '../machine.ts';
import { makeOverlay } from '../overlay.ts';
import type { EvmState } from '../state.ts';
import { derivedAddress } from './addresses.ts';
import { solidity } from './generated/solidity.ts';
import { codeOf } from './genesis.ts';
import { addressIn, addressWord, numberIn, wordOf } from './storage-layout.ts';
import { allowanceSlot, tokenWords } from './token-storage.ts';

/**
 * CHOICE: the amount that the faucet gives a vault's borrower, in US dollars, or in whole units of an asset that has
 * no price.
 */
const BORROWER_USD = 1_000_000n;
const MAX_UINT256 = 2n ** 256n - 1n;
/** The key that marks a contract as a vault. */
const VAULT = 'vault';

const lender = contractAbi(['function accrue()']);

type Variable = keyof typeof solidity.Vault.slots;

/** A new vault. Addresses are lower-case 0x hex. */
export interface VaultPlan {
  readonly address: string;
  readonly asset: string;
  /** The decimals and the symbol of the asset. */
  readonly decimals: number;
  readonly symbol: string;
  /** The number of decimals of the shares minus that of the asset. */
  readonly offset: number;
  /** The yield of the vault before the app's fee is deducted. */
  readonly apyBps: number;
  /** The app's share of the yield. */
  readonly feeBps: number;
  /** `claimable`: fees wait until the admin claims them. `shares`: fees become shares of the admin. */
  readonly feeKind: 'claimable' | 'shares';
  readonly admin: string;
}

/** Returns the vaults of a chain, in the order of their addresses. */
export function vaultsOn({ contracts }: Pick<EvmState, 'contracts'>): readonly string[] {
  return contracts.having(VAULT).map(({ contract }) => contract);
}

/** Returns the borrower of a vault: the account that holds the lent assets and pays the interest. */
export function borrowerOf(address: string): string {
  return derivedAddress(`borrower of ${address}`);
}

export function vaultAddress(state: EvmState, name: string): string {
  return derivedAddress(`vault ${vaultsOn(state).length} ${name} on ${state.caip2}`);
}

/**
 * Deploys a vault at an address. Its borrower gets the assets from which it will pay interest.
 *
 * @throws InvalidDepositError
 */
export function deployVault(state: EvmState, block: Block, plan: VaultPlan): void {
  const { address, asset, decimals, symbol } = plan;
  const price = fixedUsd(symbol.toLowerCase()) ?? '1';
  const rawAmount = rawAmountWorth(BORROWER_USD, { price, decimals });
  give(state, block, { owner: borrowerOf(address), asset, rawAmount, decimals, symbol });
  writeVault(state, plan);
  write(state, address, 'paidAt', BigInt(block.seconds));
}

/** Writes the code and the terms of a vault. */
export function writeVault({ bytecode, contracts, registerToken }: EvmState, plan: VaultPlan): void {
  const { address, asset, apyBps, feeBps, feeKind, admin, offset } = plan;
  const share = { decimals: plan.decimals + offset, symbol: `v${plan.symbol}` };
  const borrower = borrowerOf(address);
  const terms: [Variable, string][] = [
    ['asset', addressWord(asset)],
    ['virtualShares', wordOf(10n ** BigInt(offset))],
    ['hasClaimableFees', wordOf(feeKind === 'claimable')],
    ['apyBps', wordOf(apyBps)],
    ['owner', addressWord(admin)],
    ['feeBps', wordOf(feeBps)],
    ['borrower', addressWord(borrower)],
  ];
  bytecode.setCode(address, codeOf('Vault'));
  for (const [slot, word] of tokenWords(share)) bytecode.setWord(address, slot, word);
  for (const [variable, word] of terms) bytecode.setWord(address, slotOf(variable), word);
  bytecode.setWord(asset, allowanceSlot(borrower, address), wordOf(MAX_UINT256));
  contracts.set(address, VAULT, true);
  registerToken({ address, ...share });
}

/** Returns the yield of a vault and the app's share of it, or undefined if there is no vault at the address. */
export function ratesOf(
  state: EvmState,
  address: string,
): { readonly apyBps: number; readonly feeBps: number } | undefined {
  if (state.contracts.get(address, VAULT) === undefined) return undefined;
  return { apyBps: Number(read(state, address, 'apyBps')), feeBps: Number(read(state, address, 'feeBps')) };
}

/** A change of a vault. `rawLiquidity` is the amount that the vault can pay out after it. */
export interface VaultChange {
  readonly apyBps?: number | undefined;
  readonly rawLiquidity?: bigint | undefined;
  readonly isPaused?: boolean | undefined;
}

/**
 * Prepares a change of a vault, after paying its interest. To reduce what the vault can pay out, assets are lent to the
 * borrower. Nothing is stored until `store` is called, in a transaction of the store; it returns false if the state has
 * changed since the preparation. If `rawLiquidity` exceeds what the vault could pay out, there is no `store`, and
 * `most` is the maximum.
 */
export async function changeVault(
  interpreter: Interpreter,
  state: EvmState,
  { block, address, change }: { block: Block; address: string; change: VaultChange },
): Promise<{ readonly most: bigint } | { store(): boolean }> {
  if (ratesOf(state, address) === undefined) {
    throw new Error(`expected the address of a vault, got \`${address}\``);
  }
  const overlay = makeOverlay(state);
  const changed = overlay.state;
  const { ledger } = changed;
  const movements = await interpreter.transaction(overlay, block, async (calls) => {
    const { revert } = await calls.run({
      ...{ from: address, to: address, value: 0n, data: lender.encodeCall('accrue') },
      ...{ gasLimit: BLOCK_GAS_LIMIT, gasPrice: 0n, accessList: [] },
    });
    if (revert !== undefined) throw revert;
    return calls.movements;
  });
  const asset = addressIn(state.bytecode.word(address, slotOf('asset')));
  const borrower = borrowerOf(address);
  const [held, lent] = [ledger.balance(address, asset), read(changed, address, 'lent')];
  const { apyBps, isPaused, rawLiquidity = held } = change;
  const most = held + lent;
  if (rawLiquidity > most) return { most };
  ledger.setBalance(address, asset, rawLiquidity);
  ledger.setBalance(borrower, asset, ledger.balance(borrower, asset) + held - rawLiquidity);
  write(changed, address, 'lent', most - rawLiquidity);
  if (apyBps !== undefined) write(changed, address, 'apyBps', BigInt(apyBps));
  if (isPaused !== undefined) write(changed, address, 'isPaused', isPaused ? 1n : 0n);
  const all = [...movements, ...lending({ address, borrower, asset, amount: held - rawLiquidity })];
  return {
    store() {
      if (!overlay.isCurrent()) return false;
      overlay.apply();
      for (const movement of all) state.recordDeposit({ ...movement, block });
      return true;
    },
  };
}

function lending(loan: { address: string; borrower: string; asset: string; amount: bigint }): Movement[] {
  const { address, borrower, asset, amount } = loan;
  if (amount === 0n) return [];
  return amount > 0n
    ? [{ sender: address, recipient: borrower, asset, amount }]
    : [{ sender: borrower, recipient: address, asset, amount: -amount }];
}

function slotOf(variable: Variable): string {
  return wordOf(solidity.Vault.slots[variable]);
}

function read({ bytecode }: EvmState, address: string, variable: Variable): bigint {
  return numberIn(bytecode.word(address, slotOf(variable)));
}

function write({ bytecode }: EvmState, address: string, variable: Variable, value: bigint): void {
  bytecode.setWord(address, slotOf(variable), wordOf(value));
}
