import { debitPayer } from '../fund.ts';
import { NATIVE } from '../ledger.ts';
import type { Block } from '../pool.ts';
import { spendAllowance } from '../token-effects.ts';
import { type Deposit, type Funded, InvalidDepositError } from '../world.ts';
import { numberIn, wordOf } from './contracts/storage-layout.ts';
import { tokenAt } from './contracts/tokens.ts';
import type { EvmParts } from './parts.ts';
import type { EvmState } from './state.ts';
import { findBalanceSlot } from './token-slots.ts';

/** The sender of faucet deposits in lists of transfers. */
export const FAUCET_ADDRESS = '0x00000000000000000000000000000000000fa0ce';
const MAX_AMOUNT = 2n ** 256n - 1n;
/** The maximum balance of an account after a deposit, for a token of a real chain. */
const MAX_TOKEN_AMOUNT = 2n ** 127n - 1n;

/**
 * Deposits an asset from the faucet or a payer.
 *
 * @throws InvalidDepositError; RevertError if the payer's balance or the spender's allowance is too low.
 */
export function fundEvm({ state, blocks }: EvmParts, deposit: Deposit): Funded {
  const owner = checkAddress(deposit.address, 'address');
  const asset = deposit.tokenAddress === null ? NATIVE : checkAddress(deposit.tokenAddress, 'tokenAddress');
  if (asset !== NATIVE && state.bytecode.code(asset).length > 0 && tokenAt(state, asset) === undefined) {
    const hint = 'the contract keeps its balances itself; call one of its functions that mints';
    throw new InvalidDepositError('tokenAddress', `expected a token of the sandbox: ${hint}`);
  }
  return give(state, blocks.head(), { ...deposit, owner, asset });
}

/**
 * Deposits an asset on a chain that forks a real one. For a token of the real chain, changes the balance in the
 * token's storage, but not the total supply.
 *
 * @throws InvalidDepositError
 */
export async function fundContinued(parts: EvmParts, deposit: Deposit): Promise<Funded> {
  const { state, blocks } = parts;
  const owner = checkAddress(deposit.address, 'address');
  const token = deposit.tokenAddress === null ? NATIVE : checkAddress(deposit.tokenAddress, 'tokenAddress');
  const isReal = token !== NATIVE && tokenAt(state, token) === undefined;
  if (!isReal || state.bytecode.code(token).length === 0)
    return blocks.exclusively(() => fundEvm(parts, deposit));
  const found = await findBalanceSlot(parts, { token, owner });
  if (found === undefined) {
    const hint = 'send it from an account that has it, which JSON-RPC can impersonate';
    throw new InvalidDepositError('tokenAddress', `expected a token that stores its balances: ${hint}`);
  }
  const { address, slot } = found;
  return blocks.exclusively(() => {
    const block = blocks.head();
    // The balance may have changed since its slot was found. Some tokens keep flags in the bits above the balance.
    const word = numberIn(state.bytecode.word(address, slot));
    const rawBalance = (word & MAX_TOKEN_AMOUNT) + deposit.rawAmount;
    if (rawBalance > MAX_TOKEN_AMOUNT) {
      throw new InvalidDepositError('rawAmount', 'expected a balance below 2^127');
    }
    state.bytecode.setWord(address, slot, wordOf(word + deposit.rawAmount));
    const movement = { sender: FAUCET_ADDRESS, recipient: owner, asset: token, amount: deposit.rawAmount };
    const hash = state.recordDeposit({ ...movement, block });
    return { hash, rawBalance, blockNumber: BigInt(block.number) };
  });
}

/** A deposit in the ledger's notation. */
type Gift = Pick<Deposit, 'payer' | 'spender' | 'rawAmount' | 'decimals' | 'symbol'> & {
  readonly owner: string;
  readonly asset: string;
};

/**
 * Deposits an asset in a block that may still be executing.
 *
 * @throws InvalidDepositError, RevertError
 */
export function give(state: EvmState, block: Block, gift: Gift): Funded {
  const { ledger, accounts } = state;
  const { owner, asset, payer, spender, rawAmount, decimals = 18, symbol = 'TOKEN' } = gift;
  if (payer === undefined && ledger.total(asset) + rawAmount > MAX_AMOUNT) {
    throw new InvalidDepositError('rawAmount', 'expected a total supply below 2^256');
  }
  if (asset !== NATIVE) state.registerToken({ address: asset, decimals, symbol });
  if (payer !== undefined && spender !== undefined) {
    spendAllowance(accounts, { token: asset, owner: payer, spender }, rawAmount);
  }
  if (payer !== undefined) debitPayer(ledger, { payer, asset, rawAmount });
  ledger.credit(owner, asset, rawAmount);
  const movement = { sender: payer ?? FAUCET_ADDRESS, recipient: owner, asset, amount: rawAmount };
  const hash = state.recordDeposit({ ...movement, block });
  return { hash, rawBalance: ledger.balance(owner, asset), blockNumber: BigInt(block.number) };
}

function checkAddress(address: string, field: 'address' | 'tokenAddress'): string {
  if (/^0x[0-9a-fA-F]{40}$/.test(address)) return address.toLowerCase();
  throw new InvalidDepositError(field, `expected 0x and 40 hex digits, got \`${address}\``);
}
