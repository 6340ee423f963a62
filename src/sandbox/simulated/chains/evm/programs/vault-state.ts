import { type Frame, sendToken } from '../frame.ts';
import { derivedAddress } from './addresses.ts';
import type { ProgramView } from './program.ts';
import { sharesFor, type VaultTotals } from './vault-arithmetic.ts';

/** The key of a vault in the state of contracts. */
export const VAULT = 'vault';
const FULL_BPS = 10_000n;
const YEAR_SECONDS = 31_536_000n;
const NO_ADDRESS = `0x${'0'.repeat(40)}`;

/** What is stored of a vault. Amounts are in base units of the asset. */
export interface Vault {
  readonly asset: string;
  /** Decimals of the shares less those of the asset. */
  readonly offset: number;
  /** The yield of the vault before the app's fee. */
  readonly apyBps: number;
  /** The app's part of the yield. */
  readonly feeBps: number;
  /** Whether fees are kept for the admin to collect, or become shares of the admin. */
  readonly feeKind: 'claimable' | 'shares';
  readonly admin: string;
  readonly isPaused: boolean;
  /** What the borrower holds of the depositors' assets. */
  readonly lent: bigint;
  readonly claimableFees: bigint;
  /** When interest was last paid. */
  readonly paidSeconds: number;
  /** Interest below one base unit, in units of 1 / (10000 · seconds of a year). */
  readonly remainder: bigint;
}

/** A vault with the interest up to a block. */
export interface AccruedVault {
  readonly vault: Vault;
  readonly totals: VaultTotals;
  /** Interest that the borrower still owes. */
  readonly unpaid: bigint;
  /** New shares of the admin, counted in the totals. */
  readonly feeShares: bigint;
}

export function readVault({ state }: ProgramView, address: string): Vault | undefined {
  return state.contracts.get<Vault>(address, VAULT);
}

export function writeVault({ state }: ProgramView, address: string, vault: Vault): void {
  state.contracts.set(address, VAULT, vault);
}

/** Who pays the interest of a vault. */
export function borrowerOf(address: string): string {
  return derivedAddress(`borrower of ${address}`);
}

/** How much of the asset the vault holds and can pay out. */
export function liquidityOf({ state }: ProgramView, address: string, { asset }: Vault): bigint {
  return state.ledger.balance(address, asset);
}

/**
 * The vault as if its interest had been paid now: assets · apy · time, rounded down, at most what the borrower has of
 * its own.
 */
export function accrue(view: ProgramView, address: string, vault: Vault): AccruedVault {
  const { ledger } = view.state;
  const held = ledger.balance(address, vault.asset);
  const assets = held + vault.lent - vault.claimableFees;
  const shares = ledger.total(address);
  const elapsed = BigInt(Math.max(0, view.block.seconds - vault.paidSeconds));
  const due = vault.remainder + assets * BigInt(vault.apyBps) * elapsed;
  const divisor = FULL_BPS * YEAR_SECONDS;
  const funds = ledger.balance(borrowerOf(address), vault.asset) - vault.lent;
  const interest = due / divisor < funds ? due / divisor : funds;
  const fee = (interest * BigInt(vault.feeBps)) / FULL_BPS;
  const isClaimable = vault.feeKind === 'claimable';
  const virtualShares = 10n ** BigInt(vault.offset);
  const total = assets + interest - (isClaimable ? fee : 0n);
  // The admin's new shares are worth the fee. Source: morpho-org/metamorpho, MetaMorpho._accruedFeeShares.
  const feeShares = isClaimable ? 0n : sharesFor({ assets: total - fee, shares, virtualShares }, fee, 'down');
  return {
    vault: {
      ...vault,
      claimableFees: vault.claimableFees + (isClaimable ? fee : 0n),
      paidSeconds: view.block.seconds,
      remainder: due % divisor,
    },
    totals: { assets: total, shares: shares + feeShares, virtualShares },
    unpaid: interest,
    feeShares,
  };
}

/** Pays the interest up to the block. */
export function payInterest(frame: Frame, address: string, vault: Vault): AccruedVault {
  const accrued = accrue(frame, address, vault);
  if (accrued.unpaid > 0n) sendToken(frame, vault.asset, borrowerOf(address), address, accrued.unpaid);
  if (accrued.feeShares > 0n) mintShares(frame, address, vault.admin, accrued.feeShares);
  writeVault(frame, address, accrued.vault);
  return { ...accrued, unpaid: 0n, feeShares: 0n };
}

export function mintShares({ state, movements }: Frame, vault: string, to: string, amount: bigint): void {
  state.ledger.credit(to, vault, amount);
  movements.push({ sender: NO_ADDRESS, recipient: to, asset: vault, amount });
}

/** Throws RevertError. */
export function burnShares({ state, movements }: Frame, vault: string, owner: string, amount: bigint): void {
  const balance = state.ledger.balance(owner, vault);
  const shortfall = `execution reverted: ERC20InsufficientBalance(${owner}, ${balance}, ${amount})`;
  state.ledger.debit({ owner, asset: vault, amount, shortfall });
  movements.push({ sender: owner, recipient: NO_ADDRESS, asset: vault, amount });
}
