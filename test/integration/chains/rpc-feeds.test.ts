import { readFileSync } from 'node:fs';
import {
  type Abi,
  createPublicClient,
  createTestClient,
  createWalletClient,
  encodeDeployData,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  http,
  keccak256,
  parseEther,
  publicActions,
  webSocket,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { mainnet } from 'viem/chains';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { randomOf } from '../../simulation/random.ts';

// Filters, subscriptions and the methods of anvil and Hardhat that change a chain, by clients that know nodes.

const { Token } = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as { Token: { abi: Abi; bytecode: Hex } };
const stranger: Hex = `0x${'5a'.repeat(20)}`;

/** Includes transactions at once. */
let sandbox: TestSandbox;
/** Includes transactions when a block is mined. */
let mining: TestSandbox;
let chains = 0;

interface Log {
  readonly blockHash: string;
  readonly logIndex: string;
  readonly removed: boolean;
}
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0, seedData: false });
  mining = await startSandbox({ clock: 'frozen', rpcPort: 0, seedData: false });
});
afterAll(() => Promise.all([sandbox.close(), mining.close()]));

/** Clients of a chain that no other test uses, whose account has 10 ether. */
async function onNewChain(on: TestSandbox = sandbox) {
  chains += 1;
  const id = 90_000 + chains;
  const chain = { ...mainnet, id };
  const url = `${on.rpcUrl}/${id}`;
  const account = privateKeyToAccount(`0x8${chains.toString(16).padStart(63, '0')}`);
  const reader = createPublicClient({ chain, transport: http(url), pollingInterval: 20 });
  const writer = createWalletClient({ chain, account, transport: http(url) });
  const tester = createTestClient({ chain, mode: 'anvil', transport: http(url) }).extend(publicActions);
  await tester.setBalance({ address: account.address, value: parseEther('10') });
  const ask = async (method: string, ...params: unknown[]) =>
    (tester.request as (call: object) => Promise<unknown>)({ method, params });
  const deploy = async () => {
    const hash = await writer.deployContract({ ...Token, args: [6] });
    return (await reader.waitForTransactionReceipt({ hash })).contractAddress!;
  };
  /** Where each block has to be mined. */
  const deployed = async () => {
    const hash = await writer.deployContract({ ...Token, args: [6] });
    await ask('evm_mine');
    return (await reader.getTransactionReceipt({ hash })).contractAddress!;
  };
  const mint = async (token: Hex, amount: bigint) =>
    writer.writeContract({ address: token, abi: Token.abi, functionName: 'mint', args: [stranger, amount] });
  return { id, chain, url, account, reader, writer, tester, ask, deploy, deployed, mint };
}

describe('filters', () => {
  test('report logs, blocks and pending transactions once', async () => {
    const { reader, deploy, mint, tester } = await onNewChain();
    const token = await deploy();
    const logs = await reader.createContractEventFilter({
      address: token,
      abi: erc20Abi,
      eventName: 'Transfer',
      fromBlock: 0n,
    });
    const blocks = await reader.createBlockFilter();
    const pending = await reader.createPendingTransactionFilter();
    const hash = await mint(token, 3n);
    await tester.mine({ blocks: 2 });
    const [found] = await reader.getFilterChanges({ filter: logs });
    expect(found).toMatchObject({
      transactionHash: hash,
      args: { value: 3n },
      removed: false,
    });
    expect(await reader.getFilterChanges({ filter: logs })).toEqual([]);
    expect(await reader.getFilterLogs({ filter: logs })).toHaveLength(1);
    const hashes = await reader.getFilterChanges({ filter: blocks });
    expect(hashes).toHaveLength(3);
    const chain = await Promise.all(hashes.map((blockHash) => reader.getBlock({ blockHash })));
    expect(chain.slice(1).map(({ parentHash }) => parentHash)).toEqual(hashes.slice(0, -1));
    expect(await reader.getFilterChanges({ filter: pending })).toEqual([hash]);
    expect(await reader.uninstallFilter({ filter: logs })).toBe(true);
    expect(await reader.uninstallFilter({ filter: logs })).toBe(false);
    await expect(reader.getFilterChanges({ filter: logs })).rejects.toThrow('filter not found');
  });

  test('a deposit of the faucet in a block that was reported is reported too', async () => {
    const { ask, id } = await onNewChain();
    const filter = await ask('eth_newFilter', { address: null });
    const token = `0x${'7d'.repeat(20)}`;
    await sandbox.faucet(stranger, { chain: `eip155:${id}`, token_address: token, amount: '2' });
    expect(await ask('eth_getFilterChanges', filter)).toMatchObject([{ address: token }]);
    expect(await ask('eth_getFilterChanges', filter)).toEqual([]);
  });

  test('there are at most 10,000 of a chain', async () => {
    const { url, ask } = await onNewChain();
    const call = { jsonrpc: '2.0', id: 1, method: 'eth_newBlockFilter', params: [] };
    const body = JSON.stringify(Array(1_000).fill(call));
    for (let batch = 0; batch < 10; batch += 1) {
      const response = await fetch(url, { method: 'POST', body });
      expect(((await response.json()) as unknown[]).at(-1)).toHaveProperty('result');
    }
    await expect(ask('eth_newBlockFilter')).rejects.toThrow('expected at most 10000 filters');
  });
});

describe('subscriptions', () => {
  test('viem watches blocks, logs and pending transactions', async () => {
    const { chain, url, deploy, mint } = await onNewChain();
    const token = await deploy();
    const transport = webSocket(url.replace('http', 'ws'));
    const watcher = createPublicClient({ chain, transport });
    const [blocks, logs, pending]: unknown[][] = [[], [], []];
    const stops = [
      watcher.watchBlocks({ onBlock: (block) => blocks!.push(block.number) }),
      watcher.watchContractEvent({ address: token, abi: erc20Abi, onLogs: (all) => logs!.push(...all) }),
      watcher.watchPendingTransactions({ onTransactions: (all) => pending!.push(...all) }),
    ];
    // The subscriptions begin with the next message.
    await watcher.getChainId();
    const hash = await mint(token, 4n);
    await expect.poll(() => [blocks!.length, logs!.length, pending!.length]).toEqual([1, 1, 1]);
    expect([logs![0], pending![0]]).toMatchObject([{ transactionHash: hash, eventName: 'Transfer' }, hash]);
    for (const stop of stops) stop();
    (await watcher.transport.getRpcClient()).close();
  });

  test('plain HTTP carries none; a connection has at most 100', async () => {
    const { ask, url } = await onNewChain();
    await expect(ask('eth_subscribe', 'newHeads')).rejects.toThrow('notifications not supported');
    const socket = new WebSocket(url.replace('http', 'ws'));
    const answers: { result?: unknown; error?: { code: number } }[] = [];
    socket.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString())));
    await new Promise((resolve) => socket.once('open', resolve));
    for (let id = 0; id <= 100; id += 1) {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params: ['newHeads'] }));
    }
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 101, method: 'eth_subscribe', params: ['syncing'] }));
    await expect.poll(() => answers.length).toBe(102);
    expect(answers.slice(0, 100).every(({ result }) => typeof result === 'string')).toBe(true);
    expect(answers.slice(100)).toMatchObject([{ error: { code: -32_005 } }, { error: { code: -32_602 } }]);
    socket.terminate();
  });
});

describe('reorganizations', () => {
  test('their logs are removed and come again; hashes change and chain up', async () => {
    const { reader, deployed, mint, ask, chain, url } = await onNewChain(mining);
    const token = await deployed();
    const watcher = createPublicClient({ chain, transport: webSocket(url.replace('http', 'ws')) });
    const seen: { removed: boolean; transactionHash: Hex | null; blockHash: Hex | null }[] = [];
    watcher.watchContractEvent({ address: token, abi: erc20Abi, onLogs: (logs) => seen.push(...logs) });
    await watcher.getChainId();
    const filter = await ask('eth_newFilter', { address: token });
    const hash = await mint(token, 9n);
    await ask('evm_mine');
    const first = await reader.getTransactionReceipt({ hash });
    await expect.poll(() => seen.length).toBe(1);
    expect(await ask('eth_getFilterChanges', filter)).toMatchObject([{ removed: false }]);
    const supply = { address: token, abi: erc20Abi, functionName: 'totalSupply' } as const;
    expect(await reader.readContract(supply)).toBe(9n);

    await ask('anvil_reorg', 1);
    await expect(reader.getTransactionReceipt({ hash })).rejects.toThrow('could not be found');
    expect(await reader.readContract(supply)).toBe(0n);
    expect(await reader.getTransaction({ hash })).toMatchObject({ blockNumber: null });
    const replacing = await reader.getBlock({ blockNumber: first.blockNumber });
    expect(replacing.hash).not.toBe(first.blockHash);
    await expect(reader.getBlock({ blockHash: first.blockHash })).rejects.toThrow('could not be found');

    await ask('evm_mine');
    const again = await reader.getTransactionReceipt({ hash });
    expect(again.blockNumber).toBe(first.blockNumber + 1n);
    expect((await reader.getBlock({ blockHash: again.blockHash })).parentHash).toBe(replacing.hash);
    expect(await reader.readContract(supply)).toBe(9n);
    const reported = [
      { removed: true, transactionHash: hash, blockHash: first.blockHash },
      { removed: false, transactionHash: hash, blockHash: again.blockHash },
    ];
    expect(await ask('eth_getFilterChanges', filter)).toMatchObject(reported);
    await expect.poll(() => seen.slice(1)).toMatchObject(reported);
    await expect(ask('anvil_reorg', 1_000)).rejects.toThrow('expected a depth from 1 to');
    (await watcher.transport.getRpcClient()).close();
  });

  test('a filter and a subscription know exactly the logs of the chain, whatever is replaced or reverted', async () => {
    const { deployed, mint, ask, url } = await onNewChain(mining);
    const token = await deployed();
    const fromBlock = await ask('eth_blockNumber');
    const filter = await ask('eth_newFilter', { address: token });
    const socket = new WebSocket(url.replace('http', 'ws'));
    await new Promise((resolve) => socket.once('open', resolve));
    const polled = new Set<string>();
    const pushed = new Set<string>();
    const heads = new Map<string, string>();
    /** Nothing is reported twice, and only what was reported is removed. */
    const learn = (known: Set<string>, { blockHash, logIndex, removed }: Log): void => {
      const key = `${blockHash} ${logIndex}`;
      expect({ key, removed, isKnown: known.has(key) }).toEqual({ key, removed, isKnown: removed });
      if (removed) known.delete(key);
      else known.add(key);
    };
    const poll = async () => {
      for (const log of (await ask('eth_getFilterChanges', filter)) as Log[]) learn(polled, log);
    };
    const pushes: Log[] = [];
    socket.on('message', (data: Buffer) => {
      const { result } = JSON.parse(data.toString()).params ?? {};
      if (result?.transactionHash !== undefined) pushes.push(result);
      else if (result !== undefined) heads.set(result.number, result.hash);
    });
    for (const [id, params] of [['logs', { address: token }], ['newHeads']].entries()) {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params }));
    }
    const random = randomOf('feeds');
    const snapshots: unknown[] = [];
    for (let step = 0; step < 60; step += 1) {
      await random
        .weighted<() => Promise<unknown>>([
          [4, () => mint(token, 1n)],
          [4, () => ask('evm_mine')],
          [2, () => ask('anvil_reorg', random.between(1, 2))],
          [2, async () => snapshots.push(await ask('evm_snapshot'))],
          [1, () => ask('evm_revert', snapshots.pop() ?? '0x0')],
          [2, poll],
          [2, () => new Promise((resolve) => setTimeout(resolve, 60))],
        ])()
        .catch((error: Error) => expect(error.message).toContain('expected a depth from 1 to'));
    }
    await poll();
    const logs = (await ask('eth_getLogs', { address: token, fromBlock })) as Log[];
    const expected = logs.map(({ blockHash, logIndex }) => `${blockHash} ${logIndex}`).sort();
    expect([...polled].sort()).toEqual(expected);
    const head = (await ask('eth_getBlockByNumber', 'latest', false)) as { number: string; hash: string };
    await expect.poll(() => heads.get(head.number)).toBe(head.hash);
    for (const log of pushes) learn(pushed, log);
    expect([...pushed].sort()).toEqual(expected);
    expect(expected.length).toBeGreaterThan(3);
    socket.terminate();
  });

  test('a fault rule that abandons a block changes the hashes from it on', async () => {
    const { reader, writer, tester } = await onNewChain(mining);
    await mining.faults.add({ effect: 'transaction_reorganization', blocks: 1 } as never);
    const hash = await writer.sendTransaction({ to: stranger, value: 1n });
    await tester.mine({ blocks: 1 });
    const abandoned = await reader.getBlock();
    await tester.mine({ blocks: 1 });
    await tester.mine({ blocks: 1 });
    expect((await reader.getTransactionReceipt({ hash })).status).toBe('success');
    expect((await reader.getBlock({ blockNumber: abandoned.number })).hash).not.toBe(abandoned.hash);
    await mining.faults.clear();
  });
});

describe('development methods', () => {
  test('a snapshot takes back everything of its chain, and the time that was moved', async () => {
    const { reader, writer, tester, account, deploy, mint } = await onNewChain();
    const token = await deploy();
    const before = {
      block: await reader.getBlock(),
      balance: await reader.getBalance({ address: account.address }),
      nonce: await reader.getTransactionCount({ address: account.address }),
      now: await sandbox.clock.now(),
    };
    const id = await tester.snapshot();
    await mint(token, 5n);
    await writer.sendTransaction({ to: stranger, value: 77n });
    await tester.increaseTime({ seconds: 86_400 });
    await tester.mine({ blocks: 3 });
    await tester.setCode({ address: stranger, bytecode: '0x60006000fd' });
    await tester.setStorageAt({ address: token, index: 2, value: `0x${'0'.repeat(63)}7` });
    expect((await reader.getBlock()).timestamp).toBeGreaterThanOrEqual(before.block.timestamp + 86_400n);
    await tester.revert({ id });
    expect({
      block: await reader.getBlock(),
      balance: await reader.getBalance({ address: account.address }),
      nonce: await reader.getTransactionCount({ address: account.address }),
      now: await sandbox.clock.now(),
    }).toEqual(before);
    expect(await reader.getBalance({ address: stranger })).toBe(0n);
    expect(await reader.getCode({ address: stranger })).toBeUndefined();
    expect(BigInt((await reader.getStorageAt({ address: token, slot: '0x2' }))!)).toBe(0n);
    await expect(tester.revert({ id })).resolves.toBeUndefined();
    // The chain goes on, with other hashes.
    const hash = await mint(token, 6n);
    expect((await reader.waitForTransactionReceipt({ hash })).status).toBe('success');
  });

  test('the time of the next block is exactly the one that was set', async () => {
    const { reader, writer, tester, ask } = await onNewChain();
    const { timestamp } = await reader.getBlock();
    await tester.setNextBlockTimestamp({ timestamp: timestamp + 1_001n });
    const hash = await writer.sendTransaction({ to: stranger, value: 1n });
    const { blockNumber } = await reader.waitForTransactionReceipt({ hash });
    expect((await reader.getBlock({ blockNumber })).timestamp).toBe(timestamp + 1_001n);
    await ask('evm_mine', Number(timestamp) + 5_000);
    expect((await reader.getBlock()).timestamp).toBe(timestamp + 5_000n);
    await ask('evm_mine', { timestamp: Number(timestamp) + 6_000, blocks: 3 });
    expect(await reader.getBlock()).toMatchObject({ timestamp: timestamp + 6_000n });
    await expect(ask('evm_setNextBlockTimestamp', 5)).rejects.toThrow('lower than previous block');
    await expect(ask('evm_increaseTime', 'soon')).rejects.toThrow('expected a number of seconds');
    const { number } = await reader.getBlock();
    await tester.mine({ blocks: 100 });
    expect(await reader.getBlockNumber()).toBe(number + 100n);
  });

  test('balance, nonce, code and storage can be set, and the books stay balanced', async () => {
    const { reader, tester, ask, id } = await onNewChain();
    const address: Hex = `0x${'c0'.repeat(20)}`;
    for (const value of [parseEther('7'), 5n, 0n, parseEther('2')]) {
      await tester.setBalance({ address, value });
      expect(await reader.getBalance({ address })).toBe(value);
    }
    await tester.setNonce({ address, nonce: 42 });
    expect(await reader.getTransactionCount({ address })).toBe(42);
    // Returns what slot 3 holds.
    await ask('hardhat_setCode', address, '0x60035460005260206000f3');
    await ask('hardhat_setStorageAt', address, '0x3', `0x${'ab'.repeat(32)}`);
    expect(await reader.call({ to: address })).toEqual({ data: `0x${'ab'.repeat(32)}` });
    const { data } = (await (await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/books`)).json()) as {
      data: { caip2: string; given: string; minted: string; held: Record<string, string> }[];
    };
    const books = data.filter(({ caip2 }) => caip2 === `eip155:${id}`);
    expect(books).toHaveLength(1);
    for (const { given, minted, held } of books) {
      const sum = Object.values(held).reduce((total, amount) => total + BigInt(amount), 0n);
      expect(sum).toBe(BigInt(given) + BigInt(minted));
    }
  });

  test('an impersonated account sends without a signature, also creations', async () => {
    const { reader, tester, ask, account } = await onNewChain();
    await expect(ask('eth_sendTransaction', { from: stranger, to: stranger })).rejects.toThrow(
      'unknown account',
    );
    await tester.impersonateAccount({ address: stranger });
    expect(await ask('eth_accounts')).toEqual([stranger]);
    await tester.setBalance({ address: stranger, value: parseEther('1') });
    const creation = { from: stranger, data: encodeDeployData({ ...Token, args: [6] }) };
    const created = (await ask('eth_sendTransaction', creation)) as Hex;
    const { contractAddress: token } = await reader.waitForTransactionReceipt({ hash: created });
    const data = encodeFunctionData({ abi: Token.abi, functionName: 'mint', args: [account.address, 11n] });
    const hash = (await ask('eth_sendTransaction', { from: stranger, to: token, data })) as Hex;
    expect(await reader.waitForTransactionReceipt({ hash })).toMatchObject({
      status: 'success',
      from: stranger,
    });
    expect(await reader.getTransaction({ hash })).toMatchObject({ from: stranger, nonce: 1, input: data });
    const tooMuch = {
      from: stranger,
      to: token,
      data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [account.address, 1n] }),
    };
    await expect(ask('eth_sendTransaction', tooMuch)).rejects.toThrow('execution reverted');
    await tester.stopImpersonatingAccount({ address: stranger });
    await expect(ask('eth_sendTransaction', { from: stranger, to: stranger })).rejects.toThrow(
      'unknown account',
    );
  });

  test('the first call of each chain is answered', async () => {
    // Without a client, which would send it again.
    for (const id of [91_001, 91_002]) {
      const call = { jsonrpc: '2.0', id: 1, method: 'anvil_setNonce', params: [stranger, '0x1'] };
      const response = await fetch(`${sandbox.rpcUrl}/${id}`, { method: 'POST', body: JSON.stringify(call) });
      expect(await response.json()).toEqual({ jsonrpc: '2.0', id: 1, result: null });
    }
  });

  test('a transaction has its value, nonce and access list, also when they are zero or empty', async () => {
    const { ask, writer } = await onNewChain();
    const hash = await writer.sendTransaction({ to: stranger });
    const fields = { value: '0x0', nonce: '0x0', accessList: [] };
    expect(await ask('eth_getTransactionByHash', hash)).toMatchObject(fields);
  });

  test('a pending transaction can be dropped', async () => {
    const { writer, reader, ask } = await onNewChain();
    const hash = await writer.sendTransaction({ to: stranger, value: 1n, nonce: 5, gas: 21_000n });
    expect(await reader.getTransaction({ hash })).toMatchObject({ blockNumber: null });
    expect(await ask('anvil_dropTransaction', hash)).toBe(hash);
    await expect(reader.getTransaction({ hash })).rejects.toThrow('could not be found');
    expect(await ask('anvil_dropTransaction', hash)).toBeNull();
  });

  test('while automine is off, transactions wait for a block, also where each is included at once', async () => {
    const { writer, reader, ask } = await onNewChain();
    expect(await ask('evm_setAutomine', false)).toBeNull();
    const hashes = [0, 1].map((nonce) =>
      writer.sendTransaction({ to: stranger, value: 1n, nonce, gas: 21_000n }),
    );
    const [first, second] = await Promise.all(hashes);
    await ask('evm_increaseTime', 60);
    expect(await reader.getTransaction({ hash: first! })).toMatchObject({ blockNumber: null });
    await ask('evm_mine');
    const { blockNumber } = await reader.getTransactionReceipt({ hash: first! });
    expect(await reader.getTransactionReceipt({ hash: second! })).toMatchObject({ blockNumber });
    await ask('anvil_setAutomine', true);
    const third = await writer.sendTransaction({ to: stranger, value: 1n });
    expect((await reader.getTransactionReceipt({ hash: third })).status).toBe('success');
  });

  test('a missing nonce holds back at most 64 transactions of an account', async () => {
    const { account, writer, reader, ask, chain } = await onNewChain();
    const fields = {
      to: stranger,
      value: 1n,
      gas: 21_000n,
      maxFeePerGas: 10n ** 9n,
      maxPriorityFeePerGas: 0n,
    };
    const send = async (nonce: number) =>
      ask(
        'eth_sendRawTransaction',
        await account.signTransaction({ type: 'eip1559', chainId: chain.id, nonce, ...fields }),
      );
    for (let nonce = 1; nonce <= 64; nonce += 1) await send(nonce);
    await expect(send(65)).rejects.toThrow('account limit exceeded');
    expect(await reader.getTransactionCount({ address: account.address })).toBe(0);
    // The missing transaction is accepted, and all are included.
    await writer.sendTransaction({ to: stranger, value: 1n, nonce: 0, gas: 21_000n });
    expect(await reader.getTransactionCount({ address: account.address })).toBe(65);
    await send(65);
    expect(await reader.getBalance({ address: stranger })).toBe(66n);
  });

  test('a transaction of type 4 needs a recipient and an authorization', async () => {
    const { account, ask, chain } = await onNewChain();
    const authorization = await account.signAuthorization({ address: stranger, chainId: chain.id, nonce: 1 });
    const send = async (changed: object) =>
      ask(
        'eth_sendRawTransaction',
        await account.signTransaction({
          ...{ type: 'eip7702', chainId: chain.id, nonce: 0, to: stranger, gas: 200_000n },
          ...{ maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 0n, authorizationList: [authorization] },
          ...changed,
        } as never),
      );
    await expect(send({ authorizationList: [] })).rejects.toThrow('empty auth list');
    await expect(send({ to: undefined, data: '0x00' })).rejects.toThrow('cannot be used to create contract');
    await expect(send({ maxFeePerGas: 1n })).rejects.toThrow('max fee per gas less than block base fee');
    await expect(ask('eth_sendRawTransaction', '0x03c0')).rejects.toThrow('without blobs');
    expect(await send({})).toMatch(/^0x/);
  });

  test('blocks and transactions are found by hash as they are by number', async () => {
    const { ask, reader, deploy } = await onNewChain();
    await deploy();
    const { hash, number, transactions } = await reader.getBlock();
    const at = `0x${number.toString(16)}`;
    const [byHash, byNumber] = await Promise.all([
      ask('eth_getTransactionByBlockHashAndIndex', hash, '0x0'),
      ask('eth_getTransactionByBlockNumberAndIndex', at, '0x0'),
    ]);
    expect(byHash).toEqual(byNumber);
    expect(byHash).toMatchObject({ hash: transactions[0] });
    expect(await ask('eth_getBlockTransactionCountByHash', hash)).toBe('0x1');
    expect(await ask('eth_getTransactionByBlockHashAndIndex', hash, '0x1')).toBeNull();
    const raw = (await ask('eth_getRawTransactionByHash', transactions[0])) as Hex;
    expect(keccak256(raw)).toBe(transactions[0]);
    const everywhere = await ask('eth_getLogs', { address: [], fromBlock: '0x0' });
    expect(everywhere).toEqual(await ask('eth_getLogs', { fromBlock: '0x0' }));
  });
});
