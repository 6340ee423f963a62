import { readFileSync } from 'node:fs';
import {
  type Abi,
  createPublicClient,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  http,
  parseEther,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { mainnet } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { longestSlice, MAX_SLICE_MS } from '../../support/monitoring/longest-slice.ts';

// The same signed transactions on a simulated chain and on anvil: their traces are equal. And the bounds of executions.

const CHAIN_ID = 31_337;
const { Token, Vault } = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as Record<'Token' | 'Vault', { abi: Abi; bytecode: Hex }>;

let sandbox: TestSandbox;
let anvil: Anvil;
let url: string;
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0, seedData: false });
  url = `${sandbox.rpcUrl}/${CHAIN_ID}`;
  anvil = await startAnvil(CHAIN_ID, 'osaka');
});
afterAll(async () => {
  await sandbox.close();
  await anvil[Symbol.asyncDispose]();
});

async function ask(method: string, ...params: unknown[]): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
  if (error !== undefined) throw new Error(error.message);
  return result;
}

const account = privateKeyToAccount(`0x${'4d'.repeat(32)}`);
let nonce = 0;

/** Sends a transaction to both chains. Returns its hash and the contract that it creates. */
async function send(transaction: { to?: Hex; data?: Hex; value?: bigint }) {
  const contract = getContractAddress({ from: account.address, nonce: BigInt(nonce) });
  const signed = await account.signTransaction({
    ...{ type: 'eip1559', chainId: CHAIN_ID, nonce, gas: 4_000_000n, ...transaction },
    ...{ maxFeePerGas: 3_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n },
  });
  nonce += 1;
  const hash = (await ask('eth_sendRawTransaction', signed)) as Hex;
  await anvil.ask('eth_sendRawTransaction', signed);
  await anvil.ask('evm_mine');
  return { hash, contract };
}

interface Frame {
  readonly to?: string;
  readonly error?: string;
  readonly calls?: readonly Frame[];
}

/** Without calls of precompiles, which anvil leaves out, and with errors in one wording. */
function normal(frame: Frame): Frame {
  const { error, calls, ...rest } = frame;
  const kept = calls?.filter(({ to = '0xff01' }) => BigInt(to) > 0x100n).map(normal);
  return {
    ...rest,
    ...(error === undefined ? {} : { error: /revert/.test(error) ? 'execution reverted' : 'failed' }),
    ...(kept === undefined || kept.length === 0 ? {} : { calls: kept }),
  };
}

/** The whole trace, without the gas of the first call: geth and we have the limit of the transaction there. */
function whole(trace: unknown): Frame {
  const { gas: _, ...rest } = normal(trace as Frame) as Frame & { gas?: string };
  return rest;
}

async function bothTraces(hash: Hex, tracerConfig: object = {}): Promise<[Frame, Frame]> {
  const options = { tracer: 'callTracer', tracerConfig };
  const here = (await ask('debug_traceTransaction', hash, options)) as Frame;
  return [whole(here), whole(await anvil.ask('debug_traceTransaction', hash, options))];
}

/** Code that makes a call of one kind to a contract, with the calldata of its own call, and returns what it returns. */
function forwarder(kind: 'CALL' | 'STATICCALL' | 'DELEGATECALL' | 'CALLCODE', to: Hex): Hex {
  const op = { CALL: 'f1', STATICCALL: 'fa', DELEGATECALL: 'f4', CALLCODE: 'f2' }[kind];
  const value = kind === 'CALL' || kind === 'CALLCODE' ? '34' : '';
  // calldatacopy(0, 0, calldatasize); kind(gas, to, [callvalue], 0, calldatasize, 0, 0); return(returndata)
  return `0x365f5f37${'5f5f365f'}${value}73${to.slice(2)}5a${op}503d5f5f3e3d5ff3`;
}

/** Initialization code that deploys this code. */
const deploying = (code: Hex): Hex =>
  `0x61${((code.length - 2) / 2).toString(16).padStart(4, '0')}80600a3d393df3${code.slice(2)}`;

describe('traces of calls equal those of anvil', () => {
  beforeAll(async () => {
    for (const call of [ask, anvil.ask])
      await call('anvil_setBalance', account.address, '0x56bc75e2d63100000');
  });

  test('of a token and a vault, with logs, and of reverts', async () => {
    const { contract: token, ...first } = await send({ data: encodeDeployData({ ...Token, args: [6] }) });
    const { contract: vault } = await send({
      data: encodeDeployData({ ...Vault, args: [token, 0] }),
    });
    const hashes = [first.hash];
    const calls: [Hex, Abi, string, unknown[]][] = [
      [token, Token.abi, 'mint', [account.address, 1_000n]],
      [token, Token.abi, 'approve', [vault, 600n]],
      [vault, Vault.abi, 'deposit', [500n, account.address]],
      [vault, Vault.abi, 'deposit', [500n, account.address]],
      [vault, Vault.abi, 'redeem', [100n, account.address, account.address]],
      [token, Token.abi, 'transfer', [account.address, 10_000n]],
    ];
    for (const [to, abi, functionName, args] of calls) {
      hashes.push((await send({ to, data: encodeFunctionData({ abi, functionName, args }) })).hash);
    }
    // Later changes do not matter: the state of that time is executed.
    for (const hash of hashes) {
      for (const config of [{}, { withLog: true }, { onlyTopCall: true }]) {
        const [here, there] = await bothTraces(hash, config);
        expect(here).toEqual(there);
      }
    }
  });

  test('traces of calls equal those of anvil of every kind of call and creation, nested', async () => {
    const { contract: token } = await send({ data: encodeDeployData({ ...Token, args: [6] }) });
    const hashes: Hex[] = [];
    let inner = token;
    for (const kind of ['CALL', 'STATICCALL', 'DELEGATECALL', 'CALLCODE', 'CALL'] as const) {
      const made = await send({ data: deploying(forwarder(kind, inner)) });
      hashes.push(made.hash);
      inner = made.contract;
      for (const data of [
        encodeFunctionData({ abi: Token.abi, functionName: 'mint', args: [account.address, 5n] }),
        encodeFunctionData({ abi: Token.abi, functionName: 'totalSupply' }),
        '0xdeadbeef' as Hex,
      ]) {
        hashes.push((await send({ to: inner, data })).hash);
      }
      hashes.push((await send({ to: inner, value: 3n })).hash);
    }
    // create(0, 0, 0); create2(0, 0, 0, 7); invalid in a contract that is created: codecopy is not needed for 0xfe.
    hashes.push(
      (await send({ data: deploying('0x5f5f5ff05060075f5f5ff550600160fe5f536001601f5ff000') })).hash,
    );
    const factory = await send({ data: deploying('0x5f5f5ff05060075f5f5ff55060fe5f5360015f5ff000') });
    hashes.push((await send({ to: factory.contract })).hash);
    // An endless loop uses up its gas.
    const loop = await send({ data: deploying('0x5b5f56') });
    hashes.push((await send({ to: loop.contract })).hash);
    for (const hash of hashes) {
      const [here, there] = await bothTraces(hash);
      expect(here).toEqual(there);
    }
  });

  test('traces of calls equal those of anvil of a call that is not sent', async () => {
    const data = encodeDeployData({ ...Token, args: [6] });
    const call = { from: account.address, data, gas: '0x3d0900' };
    const options = { tracer: 'callTracer' };
    const [here, there] = await Promise.all(
      [ask, anvil.ask].map((on) => on('debug_traceCall', call, 'latest', options)),
    );
    expect(whole(here)).toEqual(whole(there));
  });
});

test('the state before a transaction and what it changed', async () => {
  const to: Hex = `0x${'3e'.repeat(20)}`;
  await send({ to, value: 5n });
  const { hash } = await send({ to, value: 6n });
  await send({ to, value: 7n });
  const options = { tracer: 'prestateTracer' };
  expect(await ask('debug_traceTransaction', hash, options)).toMatchObject({
    [to]: { balance: '0x5' },
    [account.address.toLowerCase()]: { nonce: nonce - 2 },
  });
  const diff = { ...options, tracerConfig: { diffMode: true } };
  expect(await ask('debug_traceTransaction', hash, diff)).toMatchObject({
    ...{ pre: { [to]: { balance: '0x5' } }, post: { [to]: { balance: '0xb' } } },
  });
});

test('steps are those of anvil, and bounded', async () => {
  const { contract } = await send({ data: deploying('0x60056007015f525f5160205260405ff3') });
  const call = { from: account.address, to: contract, gas: '0xf4240' };
  const options = { enableMemory: false };
  interface Steps {
    gas: number;
    failed: boolean;
    structLogs: { pc: number; op: string; gas: number; gasCost: number; depth: number; stack: string[] }[];
  }
  const [here, there] = (await Promise.all([
    ask('debug_traceCall', call, 'latest', options),
    anvil.ask('debug_traceCall', call, 'latest', options),
  ])) as [Steps, Steps];
  const shown = ({ gas, failed, structLogs }: Steps) => ({
    ...{ gas, failed },
    steps: structLogs.map(({ pc, op, gas: left, gasCost, depth, stack }) => ({
      pc,
      op,
      left,
      gasCost,
      depth,
      stack,
    })),
  });
  expect(shown(here)).toEqual(shown(there));
  const loop = await send({ data: deploying('0x5b5f56') });
  const looped = (await ask('debug_traceTransaction', (await send({ to: loop.contract })).hash)) as Steps;
  expect(looped.structLogs.length).toBe(10_000);
});

test('an access list names what a call uses', async () => {
  const { contract: token } = await send({ data: encodeDeployData({ ...Token, args: [6] }) });
  const data = encodeFunctionData({ abi: Token.abi, functionName: 'mint', args: [account.address, 5n] });
  const call = { from: account.address, to: token, data };
  const [here, there] = (await Promise.all(
    [ask, anvil.ask].map((on) => on('eth_createAccessList', call)),
  )) as { accessList: { storageKeys: string[] }[]; gasUsed: Hex }[];
  const sorted = (list: { storageKeys: string[] }[]) =>
    list.map((each) => ({ ...each, storageKeys: [...each.storageKeys].sort() }));
  expect(sorted(here!.accessList)).toEqual(sorted(there!.accessList));
});

describe('calls with changed state and block equal those of anvil', () => {
  const [from, to]: Hex[] = [`0x${'f0'.repeat(20)}`, `0x${'f1'.repeat(20)}`];
  const stateDiff = { [`0x${'0'.repeat(64)}`]: `0x${'5'.padStart(64, '0')}` };
  const both = (method: string, ...params: unknown[]) =>
    Promise.all(
      [ask, anvil.ask].map((on) => on(method, ...params).catch((error: Error) => ({ fails: error.message }))),
    );

  beforeAll(async () => {
    for (const on of [ask, anvil.ask]) {
      await on('anvil_setStorageAt', to, '0x1', `0x${'7'.padStart(64, '0')}`);
    }
  });

  test('what a program reads', async () => {
    // Returns number, time, coinbase, randomness, gas limit, base fee, slots 0 and 1, and its balance.
    const code = '0x435f52426020524160405244606052456080524860a0525f5460c05260015460e05247610100526101205ff3';
    const block = {
      ...{ number: '0x1234', time: '0x7fffffff', feeRecipient: `0x${'fe'.repeat(20)}` },
      ...{ prevRandao: `0x${'ab'.repeat(32)}`, gasLimit: '0x1000000', baseFeePerGas: '0x9' },
    };
    const call = { from, to, gasPrice: '0x9', gas: '0x186a0' };
    const sender = { [from!]: { balance: '0xde0b6b3a7640000' } };
    for (const storage of [{ stateDiff }, { state: stateDiff }, {}]) {
      const overrides = { ...sender, [to!]: { code, balance: '0x2a', ...storage } };
      const [here, there] = await both('eth_call', call, 'latest', overrides, block);
      expect(here).toMatch(/^0x[0-9a-f]{576}$/);
      expect(here).toBe(there);
    }
  });

  test('the gas of a changed slot is that of one that was there before', async () => {
    // Writes 1 into slot 0.
    const overrides = { [to!]: { code: '0x60015f55', stateDiff } };
    // 21,000, PUSH1 and PUSH0, and for a cold slot that is not zero 2,100 + 2,900 (EIP-2929).
    const least = 21_000 + 3 + 2 + 5_000;
    for (const [gas, outcome] of [
      [least, '0x'],
      [least - 1, { fails: expect.stringMatching(/gas/i) }],
    ] as const) {
      const call = { from, to, gas: `0x${gas.toString(16)}` };
      expect(await both('eth_call', call, 'latest', overrides)).toEqual([outcome, outcome]);
    }
    const [estimate] = await both('eth_estimateGas', { from, to }, 'latest', overrides);
    expect(Number(estimate)).toBeGreaterThanOrEqual(least);
    expect(Number(estimate)).toBeLessThan((least * 65) / 64);
    expect(await both('eth_estimateGas', { from, to }, 'latest')).toEqual(['0x5208', '0x5208']);
  });

  test.each([
    ['both kinds of storage', { [to!]: { state: stateDiff, stateDiff } }, "both 'state' and 'stateDiff'"],
    ['no list', [to], 'expected overrides by address'],
    ['a name', { alice: {} }, 'expected an address'],
    ['a nonce of 256 bits', { [to!]: { nonce: `0x${'f'.repeat(64)}` } }, 'expected `nonce` below 2^53'],
    ['storage as a word', { [to!]: { stateDiff: '0x1' } }, 'expected words by slot'],
    ['a precompile elsewhere', { [to!]: { movePrecompileToAddress: to } }, 'is not supported'],
  ])('refused: %s', async (_, overrides, message) => {
    await expect(ask('eth_call', { to }, 'latest', overrides)).rejects.toThrow(message);
  });

  test('a block that is not an object is refused, and so is a number of 256 bits', async () => {
    await expect(ask('eth_estimateGas', { to }, 'latest', {}, '0x1')).rejects.toThrow('overrides of a block');
    const number = `0x${'f'.repeat(64)}`;
    await expect(ask('eth_call', { to }, 'latest', {}, { number })).rejects.toThrow('`number` below 2^53');
  });
});

test('viem simulates calls in blocks', async () => {
  const client = createPublicClient({ chain: { ...mainnet, id: CHAIN_ID }, transport: http(url) });
  const to: Hex = `0x${'6e'.repeat(20)}`;
  const [block] = await client.simulateBlocks({
    blocks: [
      {
        stateOverrides: [{ address: to, balance: 0n }],
        calls: [
          { from: account.address, to, value: parseEther('1') },
          { from: to, to: account.address, value: parseEther('0.4') },
          { from: to, to: account.address, value: parseEther('0.7') },
        ],
      },
    ],
    traceTransfers: true,
  });
  expect(block!.calls.map(({ status }) => status)).toEqual(['success', 'success', 'failure']);
  expect(block!.calls[0]!.logs).toMatchObject([{ address: `0x${'e'.repeat(40)}` }]);
  expect(await client.getBalance({ address: to })).toBe(0n);
});

describe('bounds', () => {
  const loop = `0x${'77'.repeat(20)}`;
  const endless = { to: loop, gas: '0x1c9c380' };
  beforeAll(async () => void (await ask('anvil_setCode', loop, '0x5b5f56')));

  test('a batch of endless loops ends after five seconds of the processor', async () => {
    const calls = Array(50).fill({ jsonrpc: '2.0', id: 1, method: 'eth_call', params: [endless, 'latest'] });
    const { result: errors, longestMs } = await longestSlice(async () => {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(calls) });
      return (await response.json()) as { error: { message: string } }[];
    });
    // Each of them would take seconds.
    expect(errors.at(-1)).toMatchObject({ error: { code: -32_002 } });
    // An execution gives others a turn every 10 ms.
    expect(longestMs).toBeLessThan(MAX_SLICE_MS);
  });

  test('a trace of calls has at most 10 MB of inputs', async () => {
    // An endless loop that calls an account with a megabyte of memory each time.
    const { contract } = await send({ data: deploying('0x5b5f5f621000005f5f60ff5af1505f56') });
    const call = { from: account.address, to: contract, gas: '0xf00000' };
    const traced = ask('debug_traceCall', call, 'latest', { tracer: 'callTracer' });
    await expect(traced).rejects.toThrow('the inputs and outputs of the trace exceed 10000000 bytes');
    expect(await ask('eth_chainId')).toBe('0x7a69');
  });

  test('a client that leaves ends its calls', async () => {
    const sockets = Array.from({ length: 20 }, () => new WebSocket(url.replace('http', 'ws')));
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('open', resolve))));
    const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params: [endless, 'latest'] });
    for (const socket of sockets) socket.send(call);
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const socket of sockets) socket.terminate();
    const startMs = performance.now();
    await ask('eth_call', { to: `0x${'78'.repeat(20)}` }, 'latest');
    // Each of them would take five seconds of the processor.
    expect(performance.now() - startMs).toBeLessThan(40_000);
  });

  test('a transaction has at most 16,777,216 gas (EIP-7825)', async () => {
    const sign = (gas: bigint) =>
      account.signTransaction({
        type: 'legacy',
        chainId: CHAIN_ID,
        nonce,
        gas,
        gasPrice: 3_000_000_000n,
        to: `0x${'79'.repeat(20)}`,
      });
    await expect(ask('eth_sendRawTransaction', await sign(16_777_217n))).rejects.toThrow(
      'gas limit too high',
    );
    expect(await ask('eth_sendRawTransaction', await sign(16_777_216n))).toMatch(/^0x/);
    nonce += 1;
  });
});
