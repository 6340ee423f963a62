import { encodeErrorResult, hexToBytes, keccak256, toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { connectChains } from '../../../src/adapters/chain-rpc/connect.ts';
import { silentLog } from '../../../src/adapters/log.ts';
import type { EvmChain } from '../../../src/ports/chains.ts';
import type { Log } from '../../../src/ports/runtime.ts';
import { type Scripted, startScriptedNode } from '../../support/scripted-node.ts';

const address = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';
const alice = privateKeyToAccount(keccak256(toHex('alice')));
const bytes = hexToBytes(
  await alice.signTransaction({
    ...{ chainId: 1, type: 'eip1559', nonce: 0, gas: 21_000n, to: address },
    ...{ maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
  }),
);
/** A port on which nothing listens: its node was stopped. */
async function closedUrl(): Promise<string> {
  const node = await startScriptedNode(() => ({ status: 500 }));
  await node[Symbol.asyncDispose]();
  return node.url;
}

const down: Scripted = { status: 503 };

/** An Ethereum node that gives this response to every other call. */
function ethereum(other: (method: string) => Scripted) {
  return startScriptedNode((method) => (method === 'eth_chainId' ? { result: '0x1' } : other(method)));
}

function connect(urls: readonly string[], log: Log = silentLog): EvmChain {
  return connectChains([{ caip2: 'eip155:1', urls, compareAgainMs: 1 }], log).find('eip155:1') as EvmChain;
}

describe('a query', () => {
  test('goes to the next node when the first does not answer', async () => {
    await using second = await ethereum(() => ({ result: '0x2a' }));
    const chain = connect([await closedUrl(), second.url]);
    expect(await chain.nonce(address)).toBe(42n);
  });

  test('a query is retried after a failure', async () => {
    let failures = 2;
    await using node = await ethereum(() => {
      failures -= 1;
      return failures >= 0 ? down : { result: '0x2a' };
    });
    expect(await connect([node.url]).nonce(address)).toBe(42n);
    expect(node.calls).toEqual(['eth_chainId', ...Array(3).fill('eth_getTransactionCount')]);
  });

  test('that a node refuses is not sent to another one', async () => {
    await using first = await ethereum(() => ({ error: { code: -32602, message: 'invalid argument' } }));
    await using second = await ethereum(() => ({ result: '0x2a' }));
    const asked = connect([first.url, second.url]).balances(address, [null]);
    await expect(asked).rejects.toThrow('invalid argument');
    expect(second.calls).toEqual([]);
  });

  test('a query is sent to another node when one is overloaded', async () => {
    await using first = await ethereum(() => ({ error: { code: -32005, message: 'limit exceeded' } }));
    await using second = await ethereum(() => ({ result: '0x2a' }));
    expect(await connect([first.url, second.url]).nonce(address)).toBe(42n);
  });

  test('skips a node for a while after five consecutive failures', async () => {
    await using node = await ethereum(() => down);
    const chain = connect([node.url]);
    for (const _ of [1, 2, 3]) await expect(chain.nonce(address)).rejects.toThrow();
    expect(node.calls.filter((method) => method !== 'eth_chainId')).toHaveLength(5);
    await expect(chain.nonce(address)).rejects.toThrow('skipped after repeated failures');
  });

  test.each([
    ['an invalid number', { result: 'many' }],
    ['nothing', { result: null }],
    ['no JSON', { status: 200, text: '<html>' }],
    ['JSON of another kind', { status: 200, text: '[1]' }],
  ] as const)('answered with %s counts as unanswered', async (_name, answer) => {
    await using node = await ethereum(() => answer);
    await expect(connect([node.url]).nonce(address)).rejects.toMatchObject({ name: 'ChainUnavailableError' });
  });
});

describe('signed bytes', () => {
  test('signed bytes are sent once to each node until one accepts them', async () => {
    await using first = await ethereum(() => down);
    await using second = await ethereum(() => ({ result: keccak256(bytes) }));
    const outcome = await connect([first.url, second.url]).broadcast(bytes);
    expect(outcome).toEqual({ isAccepted: true, hash: keccak256(bytes) });
    expect(first.calls).toEqual(['eth_chainId', 'eth_sendRawTransaction']);
    expect(second.calls).toEqual(['eth_chainId', 'eth_sendRawTransaction']);
  });

  test('signed bytes of unknown outcome are neither accepted nor refused', async () => {
    await using node = await ethereum(() => down);
    await expect(connect([node.url]).broadcast(bytes)).rejects.toMatchObject({
      name: 'ChainUnavailableError',
    });
    expect(node.calls).toEqual(['eth_chainId', 'eth_sendRawTransaction']);
  });

  test.each([
    // go-ethereum
    ['already known', true],
    ['nonce too low: next nonce 5, tx nonce 0', 'stale'],
    ['insufficient funds for gas * price + value: balance 0, tx cost 21000', 'insufficient_funds'],
    ['replacement transaction underpriced', 'underpriced'],
    ['transaction underpriced: gas tip cap 1, minimum needed 1000000', 'underpriced'],
    ['max fee per gas less than block base fee', 'underpriced'],
    ['intrinsic gas too low: gas 1, minimum needed 21000', 'invalid'],
    // Nethermind, Besu, Erigon, Reth
    ['AlreadyKnown', true],
    ['Known transaction', true],
    ['OldNonce', 'stale'],
    ['Nonce too low', 'stale'],
    ['INSUFFICIENT_FUNDS: insufficient funds for transfer', 'insufficient_funds'],
    ['Upfront cost exceeds account balance', 'insufficient_funds'],
    ['InsufficientFunds, Account balance: 0, cumulative cost: 21000', 'insufficient_funds'],
    ['FeeTooLow, MaxFeePerGas too low', 'underpriced'],
    ['Transaction gas price below configured minimum gas price', 'underpriced'],
    ['already imported', true],
    ['transaction already imported', true],
  ])('signed bytes that a node answers with `%s`', async (message, expected) => {
    await using node = await ethereum(() => ({ error: { code: -32000, message } }));
    const outcome = await connect([node.url]).broadcast(bytes);
    expect(outcome.isAccepted ? true : outcome.reason).toBe(expected);
  });
});

describe('a long message of a node', () => {
  // The text and its length are those of an audit: it held the thread for 7 seconds.
  const message = 'vm execution error'.repeat(20_000);
  const call = { from: address, to: address, value: 0n, data: new Uint8Array() };

  test.each(['eth_estimateGas', 'eth_sendRawTransaction'])(
    'a long message of a node of %s is cut and read at once',
    async (method) => {
      await using node = await ethereum((asked) =>
        asked === method ? { error: { code: -32000, message } } : { result: '0x0' },
      );
      const chain = connect([node.url]);
      const { user } = process.threadCpuUsage();
      const answer =
        method === 'eth_estimateGas' ? await chain.simulate([call]) : await chain.broadcast(bytes);
      expect((process.threadCpuUsage().user - user) / 1000).toBeLessThan(2_000);
      expect(answer).toMatchObject({ reason: 'invalid', message: message.slice(0, 2048) });
    },
  );

  test('a long message of a node in the data of a revert is cut too', async () => {
    const words = encodeErrorResult({
      abi: [{ type: 'error', name: 'Error', inputs: [{ type: 'string', name: 'reason' }] }],
      args: ['no'.repeat(50_000)],
    });
    await using node = await ethereum(() => ({
      error: { code: 3, message: 'execution reverted', data: words },
    }));
    const { message: reason } = (await connect([node.url]).simulate([call])) as { message: string };
    expect(reason).toMatch(/^execution reverted: nono/);
    expect(reason).toHaveLength(2048);
  });
});

describe('a node of another chain', () => {
  test('a node of another chain is detected and receives no queries', async () => {
    await using node = await startScriptedNode(() => ({ result: '0x7a69' }));
    const chain = connect([node.url]);
    const complaint = 'expected a node of `eip155:1`, got one of `eip155:31337`';
    await expect(chain.nonce(address)).rejects.toThrow(complaint);
    await expect(chain.broadcast(bytes)).rejects.toThrow(complaint);
    expect(node.calls).toEqual(['eth_chainId']);
  });

  test('a node of another chain is detected on Solana by its genesis hash', async () => {
    await using node = await startScriptedNode(() => ({
      result: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG',
    }));
    const caip2 = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
    const chain = connectChains([{ caip2, urls: [node.url] }], silentLog).find(caip2)!;
    const complaint = 'got one of `solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1`';
    await expect(chain.balances('11111111111111111111111111111111', [null])).rejects.toThrow(complaint);
  });
});

test('messages and logs contain neither the API key of a node nor signed bytes', async () => {
  const lines: unknown[] = [];
  const note = (fields: object, message: string) => void lines.push({ fields, message });
  const log: Log = { debug: note, info: note, warn: note, error: note };
  await using node = await ethereum(() => down);
  const chain = connect([node.url, await closedUrl()], log);
  for (const _ of Array(6)) {
    const failure = (await chain.broadcast(bytes).catch((error: unknown) => error)) as Error;
    lines.push(failure.message, (failure.cause as Error | undefined)?.message);
  }
  const text = JSON.stringify(lines);
  expect(text).toContain('skipping it for a while');
  expect(text).not.toContain('secret-key');
  expect(text).not.toContain(toHex(bytes).slice(2, 40));
});

test('lamports beyond 2^53 stay exact', async () => {
  const caip2 = 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1';
  const body = (result: string) => ({ status: 200, text: `{"jsonrpc":"2.0","id":1,"result":${result}}` });
  await using node = await startScriptedNode((method) =>
    method === 'getGenesisHash'
      ? { result: 'EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG' }
      : body('{"context":{"slot":1},"value":18446744073709551615}'),
  );
  const chain = connectChains([{ caip2, urls: [node.url] }], silentLog).find(caip2)!;
  expect(await chain.balances('11111111111111111111111111111111', [null])).toEqual([2n ** 64n - 1n]);
});
