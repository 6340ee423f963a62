import { describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import { findToken } from '../../../src/domain/access/chains/chains.ts';
import { callChain } from '../../../src/domain/money/sending/call-chain.ts';
import { planEthereum } from '../../../src/domain/money/sending/plan-ethereum.ts';
import type { EvmCeilings } from '../../../src/engine/assets/fee-ceilings.ts';
import { chainOfCaip2 } from '../../../src/engine/assets/known-chains.ts';
import type { UnsignedEthereumTransaction } from '../../../src/generated/schemas.ts';
import { type Scripted, type ScriptedNode, startScriptedNode } from '../../support/scripted-node.ts';

// What a node says must not decide what a wallet pays.

const address = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const token = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const caip2 = 'eip155:1';
const gwei = 1_000_000_000n;
const hex = (value: bigint | number): string => `0x${value.toString(16)}`;

interface Said {
  readonly baseFee?: bigint;
  readonly tip?: bigint;
  readonly gas?: bigint;
  readonly nonce?: number;
  readonly decimals?: number;
}

/** A node that answers honestly, except for what it is given to say. */
function startNode(said: Said | ((method: string) => Said) = {}): Promise<ScriptedNode> {
  return startScriptedNode((method): Scripted => {
    const {
      baseFee = gwei,
      tip = gwei,
      gas = 21_000n,
      nonce = 7,
      decimals = 6,
    } = typeof said === 'function' ? said(method) : said;
    const answers: Record<string, unknown> = {
      eth_chainId: '0x1',
      eth_getBlockByNumber: { baseFeePerGas: hex(baseFee) },
      eth_maxPriorityFeePerGas: hex(tip),
      eth_estimateGas: hex(gas),
      eth_getTransactionCount: hex(nonce),
      eth_getBalance: hex(10n ** 24n),
      eth_call: `0x${decimals.toString(16).padStart(64, '0')}`,
    };
    return { result: answers[method] };
  });
}

function chainsOf(nodes: readonly ScriptedNode[], ceilings: Partial<EvmCeilings> = {}) {
  return connectChains(
    [{ caip2, urls: nodes.map(({ url }) => url), ceilings, compareAgainMs: 1 }],
    silentLog,
  );
}

function plan(
  nodes: readonly ScriptedNode[],
  { transaction = {}, ceilings }: { transaction?: object; ceilings?: Partial<EvmCeilings> } = {},
) {
  const whole = { to: token, value: 1, ...transaction } as UnsignedEthereumTransaction;
  const chains = chainsOf(nodes, ceilings);
  return planEthereum({ chains }, { caip2, address, transaction: whole });
}

const refusedFor = (message: string) => ({
  code: 'transaction_broadcast_failure',
  message: expect.stringContaining(message),
});

describe('ceilings', () => {
  test.each([
    [
      'a base fee of 0.001 ether',
      { baseFee: 10n ** 15n },
      'wei per gas, more than the ceiling of 2000000000000',
    ],
    [
      'a tip of 501 gwei',
      { tip: 501n * gwei },
      'wei per gas as a tip, more than the ceiling of 500000000000',
    ],
    ['30 million gas', { gas: 30_000_000n }, 'ask for 36000000 gas, more than the ceiling of 16777216'],
    ['a fee of more than 1 ether', { baseFee: 500n * gwei, gas: 1_000_000n }, 'wei as the fee'],
  ] as const)('ceilings refuse a node that suggests %s', async (_name, said, message) => {
    await using node = await startNode(said);
    await expect(plan([node])).rejects.toMatchObject(refusedFor(message));
  });

  test('ceilings are set by the operator', async () => {
    await using node = await startNode({ baseFee: 10n * gwei });
    const ceilings = { maxFeePerGas: 20n * gwei };
    const message = 'ask for 21000000000 wei per gas, more than the ceiling of 20000000000';
    await expect(plan([node], { ceilings })).rejects.toMatchObject(refusedFor(message));
    const raised = await plan([node], { ceilings: { maxFeePerGas: 21n * gwei } });
    expect(raised.transaction).toMatchObject({ max_fee_per_gas: hex(21n * gwei), gas_limit: hex(21_000) });
  });

  test('ceilings do not limit values set by the caller', async () => {
    await using node = await startNode({ baseFee: 10n ** 15n, gas: 30_000_000n });
    const transaction = {
      gas_limit: 40_000_000,
      max_fee_per_gas: hex(3000n * gwei),
      max_priority_fee_per_gas: hex(600n * gwei),
    };
    expect((await plan([node], { transaction })).transaction).toMatchObject(transaction);
  });
});

describe('several nodes', () => {
  test('several nodes that agree are believed, and the lower tip counts', async () => {
    await using first = await startNode({ baseFee: 10n * gwei, tip: 100n * gwei });
    await using second = await startNode({ baseFee: 11n * gwei, tip: 2n * gwei });
    const { transaction, pendingCount } = await plan([first, second]);
    expect(pendingCount).toBe(7n);
    expect(transaction).toMatchObject({
      max_fee_per_gas: hex(22n * gwei),
      max_priority_fee_per_gas: hex(2n * gwei),
    });
  });

  test.each([
    ['the fees', { baseFee: 21n * gwei }],
    [`the nonce of \`${address}\``, { nonce: 8 }],
  ])('several nodes that disagree about %s are not', async (what, said) => {
    await using first = await startNode({ baseFee: 10n * gwei });
    await using second = await startNode({ baseFee: 10n * gwei, ...said });
    await expect(plan([first, second])).rejects.toMatchObject(
      refusedFor(`the nodes of \`eip155:1\` disagree about ${what}; nothing was signed`),
    );
  });

  test('that disagree about the decimals of a token cannot move the point', async () => {
    await using honest = await startNode();
    await using liar = await startNode({ decimals: 24 });
    const chain = chainOfCaip2(caip2)!;
    const find = (nodes: readonly ScriptedNode[]) =>
      callChain(findToken({ chains: chainsOf(nodes) }, chain, token));
    await expect(find([honest, liar])).rejects.toMatchObject(
      refusedFor(`disagree about the contract \`${token}\``),
    );
    expect((await find([honest, honest])).decimals).toBe(6);
  });

  test('several nodes are queried again when one is slightly behind', async () => {
    let isBehind = true;
    await using first = await startNode();
    await using second = await startNode((method) => {
      const nonce = isBehind ? 6 : 7;
      if (method === 'eth_getTransactionCount') isBehind = false;
      return { nonce };
    });
    expect((await plan([first, second])).pendingCount).toBe(7n);
  });

  test('of which one does not answer are believed without it', async () => {
    await using first = await startNode();
    const gone = await startNode({ nonce: 99 });
    await gone[Symbol.asyncDispose]();
    expect((await plan([first, gone])).pendingCount).toBe(7n);
  });

  test('of which one is of another chain are not believed', async () => {
    await using first = await startNode();
    await using second = await startScriptedNode(() => ({ result: '0x7a69' }));
    await expect(plan([first, second])).rejects.toMatchObject({ code: 'transaction_broadcast_failure' });
  });
});

describe('responses', () => {
  const body = (result: string) => ({ status: 200, text: `{"jsonrpc":"2.0","id":1,"result":${result}}` });
  const answeredWith = async (result: string, method = 'eth_getTransactionCount') => {
    await using node = await startScriptedNode((asked) =>
      asked === 'eth_chainId' ? { result: '0x1' } : asked === method ? body(result) : { result: '0x1' },
    );
    const chain = chainsOf([node]).find(caip2);
    if (chain?.kind !== 'evm') throw new Error('no chain');
    return method === 'eth_getTransactionCount' ? await chain.nonce(address) : await chain.fees();
  };

  test.each([
    ['of more than 1 MB', `"0x${'0'.repeat(2 ** 20)}1"`, 'expected a response of at most 1048576 bytes'],
    ['with a number of 81 digits', '1'.repeat(81), 'without a JSON-RPC response'],
    ['with 65 digits in hex', `"0x${'1'.repeat(65)}"`, 'expected a valid response to nonce'],
    ['nested 33 deep', `${'['.repeat(32)}${']'.repeat(32)}`, 'without a JSON-RPC response'],
  ])('responses: %s are not read', async (_name, result, message) => {
    await expect(answeredWith(result)).rejects.toThrow(message);
  });

  test('responses may be large when they are blocks, and contain brackets, digits and quotes in text', async () => {
    const text = JSON.stringify(`${'['.repeat(99)}\\" ${'1'.repeat(999)}`);
    const block = `{"baseFeePerGas":"0x1","extra":${text},"transactions":[${'"0x00",'.repeat(200_000)}"0x00"]}`;
    expect(block.length).toBeGreaterThan(2 ** 20);
    expect(await answeredWith(block, 'eth_getBlockByNumber')).toMatchObject({ maxPriorityFeePerGas: 1n });
  });
});
