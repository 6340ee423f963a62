import { feeVault, tokenVault } from '../../../../../engine/signing/ethereum/contract-calls.ts';
import { decodeTokenCall } from '../../../../../engine/signing/ethereum/token-calls.ts';
import { RevertError } from '../../ledger.ts';
import { applyTokenCall, spendAllowance } from '../../token-effects.ts';
import { effectsOf, type Frame, pullToken, sendToken } from '../frame.ts';
import { findVault } from './deploy-vault.ts';
import type { Program, ProgramCall, ProgramView } from './program.ts';
import { assetsFor, sharesFor } from './vault-arithmetic.ts';
import {
  type AccruedVault,
  accrue,
  burnShares,
  liquidityOf,
  mintShares,
  payInterest,
  type Vault,
  writeVault,
} from './vault-state.ts';

const MAX_UINT256 = 2n ** 256n - 1n;
// CHOICE: gas close to that of vaults that lend on.
const VAULT_GAS = 160_000n;
const TOKEN_GAS = 35_000n;

/** An ERC-4626 vault, and its fees as a vault on Aave keeps them. */
export function vaultProgram(address: string): Program {
  return {
    run(frame, call) {
      const vault = findVault(frame, address);
      const token = decodeTokenCall(call.data);
      if (token !== undefined) {
        frame.gas += TOKEN_GAS;
        const { from, value } = call;
        return applyTokenCall(effectsOf(frame), { from, token: address, value }, token);
      }
      if (vault === undefined || call.value > 0n) throw new RevertError('execution reverted');
      frame.gas += VAULT_GAS;
      return runVault(frame, { address, ...payInterest(frame, address, vault) }, call);
    },
    read(view, data) {
      const vault = findVault(view, address);
      if (vault === undefined) return undefined;
      const fees = feeVault.decodeCall(data);
      if (fees?.name === 'getClaimableFees' && vault.feeKind === 'claimable') {
        const { claimableFees } = accrue(view, address, vault).vault;
        return feeVault.encodeResult('getClaimableFees', claimableFees);
      }
      const call = tokenVault.decodeCall(data);
      if (call === undefined) return undefined;
      if (call.name === 'asset') return tokenVault.encodeResult('asset', vault.asset);
      const amount = queryOf(view, { address, ...accrue(view, address, vault) }, call);
      return amount === undefined ? undefined : tokenVault.encodeResult(call.name, amount);
    },
  };
}

interface OpenVault extends AccruedVault {
  readonly address: string;
}

type Query = NonNullable<ReturnType<typeof tokenVault.decodeCall>>;

function queryOf(view: ProgramView, open: OpenVault, { name, args: [first] }: Query): bigint | undefined {
  const { totals } = open;
  const amount = typeof first === 'bigint' ? first : 0n;
  const owner = typeof first === 'string' ? first : '';
  const answers: Readonly<Record<string, () => bigint>> = {
    totalAssets: () => totals.assets,
    convertToShares: () => sharesFor(totals, amount, 'down'),
    convertToAssets: () => assetsFor(totals, amount, 'down'),
    maxDeposit: () => maxDepositOf(open.vault),
    maxMint: () => maxDepositOf(open.vault),
    maxWithdraw: () => maxWithdrawOf(view, open, owner),
    maxRedeem: () => maxRedeemOf(view, open, owner),
    previewDeposit: () => sharesFor(totals, amount, 'down'),
    previewMint: () => assetsFor(totals, amount, 'up'),
    previewWithdraw: () => sharesFor(totals, amount, 'up'),
    previewRedeem: () => assetsFor(totals, amount, 'down'),
  };
  return answers[name]?.();
}

function maxDepositOf({ isPaused }: Vault): bigint {
  return isPaused ? 0n : MAX_UINT256;
}

function maxWithdrawOf(view: ProgramView, open: OpenVault, owner: string): bigint {
  if (open.vault.isPaused) return 0n;
  const position = assetsFor(open.totals, view.state.ledger.balance(owner, open.address), 'down');
  return least(position, payableNow(view, open));
}

function maxRedeemOf(view: ProgramView, open: OpenVault, owner: string): bigint {
  if (open.vault.isPaused) return 0n;
  const shares = view.state.ledger.balance(owner, open.address);
  const payable = payableNow(view, open);
  return assetsFor(open.totals, shares, 'down') <= payable
    ? shares
    : least(shares, sharesFor(open.totals, payable, 'down'));
}

/** What the vault can pay to depositors: what it holds, and what the borrower owes, without fees. */
function payableNow(view: ProgramView, { address, vault, unpaid }: OpenVault): bigint {
  const payable = liquidityOf(view, address, vault) + unpaid - vault.claimableFees;
  return payable > 0n ? payable : 0n;
}

function runVault(frame: Frame, open: OpenVault, { from, data }: ProgramCall): Uint8Array | undefined {
  const fees = feeVault.decodeCall(data);
  if (fees?.name === 'withdrawFees') {
    const [to, amount] = fees.args as [string, bigint];
    withdrawFees(frame, open, { from, to, amount });
    return undefined;
  }
  const call = tokenVault.decodeCall(data);
  const [amount, receiver, owner] = (call?.args ?? []) as [bigint, string, string];
  const moves: Readonly<Record<string, () => bigint>> = {
    deposit: () => deposit(frame, open, { from, receiver, assets: amount }),
    mint: () => mint(frame, open, { from, receiver, shares: amount }),
    withdraw: () => withdraw(frame, open, { from, receiver, owner, assets: amount }),
    redeem: () => redeem(frame, open, { from, receiver, owner, shares: amount }),
  };
  const move = call && moves[call.name];
  if (move === undefined) throw new RevertError('execution reverted');
  return tokenVault.encodeResult(call!.name, move());
}

interface Depositing {
  readonly from: string;
  readonly receiver: string;
}

function deposit(frame: Frame, open: OpenVault, order: Depositing & { assets: bigint }): bigint {
  const max = maxDepositOf(open.vault);
  if (order.assets > max) throw exceeded('Deposit', order.receiver, order.assets, max);
  const shares = sharesFor(open.totals, order.assets, 'down');
  moveIn(frame, open, { ...order, shares });
  return shares;
}

function mint(frame: Frame, open: OpenVault, order: Depositing & { shares: bigint }): bigint {
  const max = maxDepositOf(open.vault);
  if (order.shares > max) throw exceeded('Mint', order.receiver, order.shares, max);
  const assets = assetsFor(open.totals, order.shares, 'up');
  moveIn(frame, open, { ...order, assets });
  return assets;
}

function moveIn(
  frame: Frame,
  { address, vault }: OpenVault,
  { from, receiver, assets, shares }: Depositing & { assets: bigint; shares: bigint },
): void {
  pullToken(frame, vault.asset, { spender: address, owner: from, to: address, amount: assets });
  mintShares(frame, address, receiver, shares);
}

interface Withdrawing extends Depositing {
  readonly owner: string;
}

function withdraw(frame: Frame, open: OpenVault, order: Withdrawing & { assets: bigint }): bigint {
  const max = maxWithdrawOf(frame, open, order.owner);
  if (order.assets > max) throw exceeded('Withdraw', order.owner, order.assets, max);
  const shares = sharesFor(open.totals, order.assets, 'up');
  moveOut(frame, open, { ...order, shares });
  return shares;
}

function redeem(frame: Frame, open: OpenVault, order: Withdrawing & { shares: bigint }): bigint {
  const max = maxRedeemOf(frame, open, order.owner);
  if (order.shares > max) throw exceeded('Redeem', order.owner, order.shares, max);
  const assets = assetsFor(open.totals, order.shares, 'down');
  moveOut(frame, open, { ...order, assets });
  return assets;
}

function moveOut(
  frame: Frame,
  { address, vault }: OpenVault,
  { from, receiver, owner, assets, shares }: Withdrawing & { assets: bigint; shares: bigint },
): void {
  if (from !== owner) {
    spendAllowance(frame.state.accounts, { token: address, owner, spender: from }, shares);
  }
  burnShares(frame, address, owner, shares);
  sendToken(frame, vault.asset, address, receiver, assets);
}

function withdrawFees(
  frame: Frame,
  { address, vault }: OpenVault,
  { from, to, amount }: { from: string; to: string; amount: bigint },
): void {
  if (from !== vault.admin) throw new RevertError('execution reverted: Ownable: caller is not the owner');
  if (vault.feeKind !== 'claimable' || amount > vault.claimableFees) {
    throw new RevertError('execution reverted: INSUFFICIENT_FEES');
  }
  writeVault(frame, address, { ...vault, claimableFees: vault.claimableFees - amount });
  sendToken(frame, vault.asset, address, to, amount);
}

/** The account that a call of a vault pays; undefined for other calls. */
export function vaultRecipient(data: Uint8Array): string | undefined {
  const call = tokenVault.decodeCall(data);
  return call?.name === 'withdraw' || call?.name === 'redeem' ? (call.args[1] as string) : undefined;
}

function exceeded(what: string, who: string, amount: bigint, max: bigint): RevertError {
  return new RevertError(`execution reverted: ERC4626ExceededMax${what}(${who}, ${amount}, ${max})`);
}

function least(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
