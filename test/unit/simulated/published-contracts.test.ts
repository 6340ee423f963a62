import { readFileSync } from 'node:fs';
import { encodeFunctionData, erc20Abi, erc4626Abi, type Hex } from 'viem';
import { expect, test } from 'vitest';
import { bytesTo0xHex, hexToBytes } from '../../../src/engine/crypto/encoding.ts';
import { swapRouter, tokenVault } from '../../../src/engine/signing/ethereum/contract-calls.ts';
import { writeVault } from '../../../src/sandbox/simulated/chains/evm/contracts/vaults.ts';
import type { Recording } from '../../vectors/contracts/record.ts';
import { type SimulatedEvm, simulatedEvm } from './simulated-evm.ts';

// What the published contracts did on a node, written by test/vectors/contracts/record.ts.

const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const router = '0x7a250d5630b4cf539739df2c5dacb4c659f2488d';
const eurc = '0x60a3e35cc302bfa44cb288bc5a4f316fdb1adb42';
const tokens = [
  { address: usdc, symbol: 'USDC', decimals: 6 },
  { address: eurc, symbol: 'EURC', decimals: 6 },
];

function recorded<T>(name: string): T {
  return JSON.parse(
    readFileSync(new URL(`../../vectors/contracts/golden/${name}`, import.meta.url), 'utf8'),
  ) as T;
}

// Simulated tokens speak like version 4 of OpenZeppelin's, the recorded ones like version 5.
const tokenErrors: Readonly<Record<string, string>> = {
  'ERC20: insufficient allowance': 'ERC20InsufficientAllowance',
  'ERC20: transfer amount exceeds balance': 'ERC20InsufficientBalance',
};

/** Executes the recorded calls and compares every balance, revert and answer. */
async function replay(evm: SimulatedEvm, { tokens: assets, balances, calls }: Recording): Promise<void> {
  const ledger = ['', ...assets];
  for (const [who, amounts] of Object.entries(balances)) {
    for (const [index, amount] of amounts.entries()) {
      if (amount !== '0') evm.give(who, ledger[index]!, BigInt(amount), 6);
    }
  }
  for (const [step, { reads, reverts, balances: after, value, ...call }] of calls.entries()) {
    const { revert } = await evm.call({ ...call, value: BigInt(value) });
    const text = revert?.replace(/^execution reverted(: )?/, '').replace(/\(.*\)$/, '');
    const reason = text === undefined ? undefined : (tokenErrors[text] ?? text);
    expect({ step, reverts: reason }).toEqual({ step, reverts });
    for (const [who, amounts] of Object.entries(after)) {
      const held = ledger.map((asset) => String(evm.state.ledger.balance(who, asset)));
      expect({ step, who, held }).toEqual({ step, who, held: amounts });
    }
    for (const { to, data, returns } of reads) {
      const answer = bytesTo0xHex((await evm.read(to, data, call.seconds)) ?? new Uint8Array());
      // The time in the reserves of a pair is that of its last trade, also when the pair was just stocked.
      const end = data === '0x0902f1ac' ? 130 : undefined;
      expect({ step, data, answer: answer.slice(0, end) }).toEqual({
        step,
        data,
        answer: returns.slice(0, end),
      });
    }
  }
}

test('swaps do what the published Uniswap V2 contracts do', async () => {
  using evm = simulatedEvm(tokens);
  await replay(evm, recorded<Recording>('swap-calls.json'));
});

test('the router calculates the amounts of the Uniswap SDK', async () => {
  using evm = simulatedEvm(tokens);
  const { cases } = recorded<{
    cases: { reserves: [string, string]; amount: string; output: string | null; input: string | null }[];
  }>('swap-amounts.json');
  // The SDK refuses what leaves nothing to trade; the contract's library rounds down to 0.
  const ask = async (name: 'getAmountOut' | 'getAmountIn', ...args: bigint[]): Promise<string | null> => {
    const answer = await evm.read(router, bytesTo0xHex(swapRouter.encodeCall(name, ...args)), 0);
    if (answer === undefined) return null;
    const [amount] = swapRouter.decodeResult(name, answer) as [bigint];
    return amount === 0n ? null : String(amount);
  };
  for (const { reserves, amount, output, input } of cases) {
    const [one, other] = reserves.map(BigInt) as [bigint, bigint];
    expect(await ask('getAmountOut', BigInt(amount), one, other)).toBe(output);
    expect(await ask('getAmountIn', BigInt(amount), one, other)).toBe(input);
  }
});

test('vaults do what the vault of OpenZeppelin does', async () => {
  using evm = simulatedEvm(tokens);
  const recording = recorded<Recording & { offsets: Record<string, number> }>('vault-calls.json');
  for (const [address, offset] of Object.entries(recording.offsets)) {
    const terms = { apyBps: 0, feeBps: 0, feeKind: 'shares', admin: usdc } as const;
    writeVault(evm.state, { ...terms, address, asset: usdc, offset, decimals: 6, symbol: 'VLT' });
  }
  await replay(evm, recording);
});

test('calls of vaults are those of the ERC-4626 interface', () => {
  const [one, other] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`] as [Hex, Hex];
  const calls = [
    ['deposit', 5n, one],
    ['mint', 5n, one],
    ['withdraw', 5n, one, other],
    ['redeem', 5n, one, other],
    ['previewDeposit', 5n],
    ['maxWithdraw', one],
    ['totalAssets'],
  ] as const;
  for (const [functionName, ...args] of calls) {
    const theirs = encodeFunctionData({ abi: [...erc4626Abi, ...erc20Abi], functionName, args } as never);
    expect(bytesTo0xHex(tokenVault.encodeCall(functionName, ...args))).toBe(theirs);
    expect(tokenVault.decodeCall(hexToBytes((theirs as string).slice(2)))).toEqual({
      name: functionName,
      args,
    });
  }
});
