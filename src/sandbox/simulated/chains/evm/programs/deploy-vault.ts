import { rawAmountWorth } from '../../../exchange/rates.ts';
import { fixedUsd } from '../../../prices.ts';
import { give } from '../faucet.ts';
import { type Frame, sendToken } from '../frame.ts';
import { derivedAddress } from './addresses.ts';
import type { ProgramView } from './program.ts';
import {
  accrue,
  borrowerOf,
  liquidityOf,
  payInterest,
  readVault,
  VAULT,
  type Vault,
  writeVault,
} from './vault-state.ts';

/** CHOICE: what the faucet gives the borrower of a vault, in US dollars; units of an asset without a price. */
const BORROWER_USD = 1_000_000n;

/** A new vault. Addresses are lower-case 0x hex. */
export interface VaultPlan
  extends Pick<Vault, 'asset' | 'offset' | 'apyBps' | 'feeBps' | 'feeKind' | 'admin'> {
  readonly address: string;
  readonly decimals: number;
  readonly symbol: string;
}

/** Where the next vault goes. */
export function vaultAddress({ state }: ProgramView, name: string): string {
  return derivedAddress(`vault ${state.contracts.having(VAULT).length} ${name} on ${state.caip2}`);
}

/** Puts a vault at an address; its borrower gets what it will pay as interest. Throws InvalidDepositError. */
export function deployVault(view: ProgramView, { address, decimals, symbol, ...terms }: VaultPlan): void {
  const { state, block } = view;
  const price = fixedUsd(symbol.toLowerCase()) ?? '1';
  const rawAmount = rawAmountWorth(BORROWER_USD, { price, decimals });
  give(state, block, { owner: borrowerOf(address), asset: terms.asset, rawAmount, decimals, symbol });
  const share = { address, decimals: decimals + terms.offset, symbol: `v${symbol}` };
  state.registerToken(share);
  const start = { isPaused: false, lent: 0n, claimableFees: 0n, paidSeconds: block.seconds, remainder: 0n };
  writeVault(view, address, { ...terms, ...start });
}

/** A vault; a planned one is put on the chain now. Undefined where none is. */
export function findVault(view: ProgramView, address: string): Vault | undefined {
  const known = readVault(view, address);
  if (known !== undefined) return known;
  const { world, caip2 } = view.state;
  const plan = world.plannedVault(caip2, address);
  if (plan === undefined) return undefined;
  deployVault(view, plan);
  return readVault(view, address);
}

/** What changes in a vault. `rawLiquidity` is how much it can pay out from now on. */
export interface VaultChange {
  readonly apyBps?: number | undefined;
  readonly rawLiquidity?: bigint | undefined;
  readonly isPaused?: boolean | undefined;
}

/**
 * Changes a vault after paying its interest. What it cannot pay out is lent to the borrower. Returns the most that it
 * could pay out when `rawLiquidity` exceeds that, and changes nothing then.
 */
export function changeVault(view: ProgramView, address: string, change: VaultChange): bigint | undefined {
  const stored = findVault(view, address);
  if (stored === undefined) throw new Error(`expected the address of a vault, got \`${address}\``);
  const { totals, vault: accrued } = accrue(view, address, stored);
  const most = totals.assets + accrued.claimableFees;
  if (change.rawLiquidity !== undefined && change.rawLiquidity > most) return most;
  const frame: Frame = { ...view, movements: [], gas: 0n };
  const { vault } = payInterest(frame, address, stored);
  const more =
    change.rawLiquidity === undefined ? 0n : liquidityOf(frame, address, vault) - change.rawLiquidity;
  if (more > 0n) sendToken(frame, vault.asset, address, borrowerOf(address), more);
  if (more < 0n) sendToken(frame, vault.asset, borrowerOf(address), address, -more);
  const { apyBps = vault.apyBps, isPaused = vault.isPaused } = change;
  writeVault(frame, address, { ...vault, apyBps, isPaused, lent: vault.lent + more });
  for (const movement of frame.movements) {
    view.state.recordDeposit({ ...movement, block: view.block });
  }
  return undefined;
}
