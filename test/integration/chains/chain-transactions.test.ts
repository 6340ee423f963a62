import { readFileSync } from 'node:fs';
import {
  ComputeBudgetProgram,
  Connection,
  Keypair,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from '@solana/web3.js';
import { type Abi, createPublicClient, createWalletClient, type Hex, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// What the control plane says of contracts that it has the interface of.

const { Token } = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as { Token: { abi: Abi; bytecode: Hex } };
const account = privateKeyToAccount(`0x${'c3'.repeat(32)}`);
const usdc: Hex = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const stranger: Hex = `0x${'5a'.repeat(20)}`;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen' });
  await sandbox.faucet(account.address, { chain: 'base', amount: '1' });
});
afterAll(() => sandbox.close());

const transport = () => http(`${sandbox.baseUrl}/_sandbox/rpc/base`, { fetchFn: sandbox.fetch });
const writer = () => createWalletClient({ account, chain: base, transport: transport() });
const reader = () => createPublicClient({ chain: base, transport: transport(), pollingInterval: 20 });

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what they expect of it.
  readonly body: any;
}

async function control(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await sandbox.fetch(`${sandbox.baseUrl}/_sandbox${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const transactions = async (query = '') => (await control('GET', `/chains/base/transactions${query}`)).body;

async function included(hash: Hex) {
  await sandbox.mine(1, 'base');
  return reader().waitForTransactionReceipt({ hash });
}

test('calls, events and errors are told in the words of an uploaded interface', async () => {
  const deployment = await included(await writer().deployContract({ ...Token, args: [6] }));
  const token = deployment.contractAddress!;
  const call = { address: token, abi: Token.abi, functionName: 'mint', args: [stranger, 5n] } as const;
  const { transactionHash: hash } = await included(await writer().writeContract(call));
  const [before, creation, funding] = (await transactions()).data;
  expect(before).toMatchObject({ hash, to: token, contract_address: null, call: null, reason: null });
  // Every token has the event, so the interface of the sandbox's own tokens explains it.
  expect(before.logs).toMatchObject([{ address: token, event: { name: 'Transfer' } }]);
  expect(creation).toMatchObject({ to: null, contract_address: token, is_deposit: false });
  expect(funding).toMatchObject({ is_deposit: true, value: '1000000000000000000' });

  expect(await control('PUT', '/abis/Token', { abi: Token.abi })).toMatchObject({ status: 200 });
  const [after] = (await transactions('?limit=1')).data;
  expect(after.call).toEqual({
    name: 'mint',
    arguments: [
      { name: 'to', type: 'address', value: stranger },
      { name: 'amount', type: 'uint256', value: '5' },
    ],
  });
  const tooMuch = await writer().sendTransaction({
    ...{ to: token, gas: 100_000n },
    data: `0xa9059cbb${stranger.slice(2).padStart(64, '0')}${'9'.padStart(64, '0')}`,
  });
  await included(tooMuch);
  const [reverted] = (await transactions('?limit=1')).data;
  expect(reverted.call.name).toBe('transfer');
  expect(reverted.reason).toBe(
    `execution reverted: ERC20InsufficientBalance(${account.address.toLowerCase()}, 0, 9)`,
  );
});

test('amounts have the symbols and decimals of tokens, also of those that a user deployed', async () => {
  const deployment = await included(await writer().deployContract({ ...Token, args: [6] }));
  const token = deployment.contractAddress!;
  const call = {
    address: token,
    abi: Token.abi,
    functionName: 'mint',
    args: [stranger, 2_500_000n],
  } as const;
  await included(await writer().writeContract(call));
  const [minted] = (await transactions('?limit=1')).data;
  const symbol = await reader().readContract({ address: token, abi: Token.abi, functionName: 'symbol' });
  expect(minted.movements).toMatchObject([
    { asset: symbol, amount: '2.5', raw_amount: '2500000', from: `0x${'0'.repeat(40)}` },
  ]);
  expect(minted.movements[0].token_address.toLowerCase()).toBe(token);
  await sandbox.faucet(account.address, { chain: 'base', asset: 'usdc', amount: '3' });
  const [given] = (await transactions('?limit=1')).data;
  expect(given).toMatchObject({ is_deposit: true, movements: [{ asset: 'USDC', amount: '3' }] });
  expect(given.movements[0].token_address.toLowerCase()).toBe(usdc);
});

test('transactions of Solana are listed with their instruction, amounts, logs and failures', async () => {
  const list = async (query = '') => (await control('GET', `/chains/solana/transactions${query}`)).body;
  const solana = new Connection(`${sandbox.baseUrl}/_sandbox/rpc/solana`, {
    ...{ commitment: 'confirmed', fetch: sandbox.fetch as never, disableRetryOnRateLimit: true },
  });
  const [alice, bob] = [Keypair.generate(), Keypair.generate().publicKey];
  const address = alice.publicKey.toBase58();
  await sandbox.faucet(address, { chain: 'solana', amount: '2' });
  await sandbox.faucet(address, { chain: 'solana', asset: 'usdc', amount: '7' });
  const send = async (...instructions: TransactionInstruction[]) => {
    const { blockhash: recentBlockhash } = await solana.getLatestBlockhash();
    const transaction = new Transaction({ recentBlockhash, feePayer: alice.publicKey }).add(...instructions);
    transaction.sign(alice);
    const signature = await solana.sendRawTransaction(transaction.serialize(), { skipPreflight: true });
    await sandbox.mine(1, 'solana');
    return signature;
  };
  const pay = SystemProgram.transfer({ fromPubkey: alice.publicKey, toPubkey: bob, lamports: 10 ** 9 });
  const limit = ComputeBudgetProgram.setComputeUnitLimit({ units: 10_000 });
  const paid = await send(limit, pay);
  const failed = await send(
    SystemProgram.transfer({ fromPubkey: alice.publicKey, toPubkey: bob, lamports: 10 ** 12 }),
  );
  const { data } = await list();
  expect(data.slice(0, 4)).toMatchObject([
    { hash: failed, reason: 'Error processing Instruction 0: custom program error: 0x1', movements: [] },
    {
      ...{
        hash: paid,
        from: address,
        to: SystemProgram.programId.toBase58(),
        is_deposit: false,
        reason: null,
      },
      call: {
        name: 'transfer',
        arguments: [
          { name: 'source', value: address },
          { name: 'destination', value: bob.toBase58() },
          { name: 'lamports', value: '1000000000' },
        ],
      },
      movements: [{ from: address, to: bob.toBase58(), asset: 'SOL', amount: '1', token_address: null }],
      logs: [],
    },
    { is_deposit: true, movements: [{ to: address, asset: 'USDC', amount: '7' }] },
    { is_deposit: true, movements: [{ to: address, asset: 'SOL', amount: '2' }] },
  ]);
  expect(data[1].log_messages).toContain('Program 11111111111111111111111111111111 success');
  const first = await list('?limit=2');
  const second = await list(`?limit=1000&cursor=${first.next_cursor}`);
  expect([...first.data, ...second.data]).toEqual(data);
  expect((await control('GET', '/chains/tron/transactions')).status).toBe(400);
});

test('the list continues where a page ended', async () => {
  const all = (await transactions()).data.map(({ hash }: { hash: string }) => hash);
  const found: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { data: { hash: string }[]; next_cursor: string | null } = await transactions(
      `?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`,
    );
    found.push(...page.data.map(({ hash }) => hash));
    cursor = page.next_cursor;
  }
  expect(found).toEqual(all);
  expect(all.length).toBeGreaterThan(2);
});

test('an interface with an address explains that contract first', async () => {
  const item = (name: string) => ({
    ...{ type: 'function', name: 'transfer', stateMutability: 'nonpayable', outputs: [] },
    inputs: [
      { name, type: 'address' },
      { name: 'units', type: 'uint256' },
    ],
  });
  await control('PUT', '/abis/Dollar', { abi: [item('payee')], address: usdc });
  await sandbox.faucet(account.address, { chain: 'base', asset: 'usdc', amount: '1' });
  const data: Hex = `0xa9059cbb${stranger.slice(2).padStart(64, '0')}${'1'.padStart(64, '0')}`;
  await included(await writer().sendTransaction({ to: usdc, data }));
  const [first] = (await transactions('?limit=1')).data;
  expect(first.call.arguments[0]).toMatchObject({ name: 'payee', value: stranger });
  expect((await control('GET', '/abis')).body.data.map(({ name }: { name: string }) => name)).toEqual([
    ...['Dollar', 'Token'],
  ]);
  expect((await control('DELETE', '/abis/Dollar')).status).toBe(200);
  expect((await control('DELETE', '/abis/Dollar')).status).toBe(404);
  const [without] = (await transactions('?limit=1')).data;
  expect(without.call.arguments[0]).toMatchObject({ name: 'to' });
});

test('the chains in use are listed with their latest blocks', async () => {
  const { body } = await control('GET', '/chains');
  const [chain] = body.data.filter(({ caip2 }: { caip2: string }) => caip2 === 'eip155:8453');
  expect(chain).toMatchObject({ name: 'base', block_ms: 2000, finality_blocks: 60, is_evm: true });
  expect(BigInt(chain.block_number)).toBe(await reader().getBlockNumber());
});

test.each([
  ['not a list', { abi: 'x' }],
  ['an unknown type', { abi: [{ type: 'function', name: 'f', inputs: [{ name: 'a', type: 'uint257x' }] }] }],
  ['a function without a name', { abi: [{ type: 'function', inputs: [] }] }],
  ['no object', { abi: [7] }],
])('%s is refused as an interface', async (_, body) => {
  const answer = await control('PUT', '/abis/Wrong', body);
  expect(answer.status).toBe(400);
  expect(answer.body.error).toContain('/abi');
});

test('interfaces are forgotten with a reset, and together have at most 20,000 items', async () => {
  const functions = (prefix: string) =>
    Array.from({ length: 2_000 }, (_, at) => ({ type: 'function', name: `${prefix}${at}`, inputs: [] }));
  const statuses: number[] = [];
  for (let at = 0; at < 11; at += 1) {
    statuses.push((await control('PUT', `/abis/Large${at}`, { abi: functions(`f${at}_`) })).status);
  }
  expect(statuses.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => 200));
  expect(statuses.at(-1)).toBe(400);
  await sandbox.reset();
  expect((await control('GET', '/abis')).body.data).toEqual([]);
});

test('an interface of structs within structs without an end is refused', async () => {
  let input = '{"name":"a","type":"uint8"}';
  for (let depth = 0; depth < 5_000; depth += 1)
    input = `{"name":"a","type":"tuple","components":[${input}]}`;
  const body = `{"abi":[{"type":"function","name":"f","inputs":[${input}]}]}`;
  const response = await sandbox.fetch(`${sandbox.baseUrl}/_sandbox/abis/Deep`, {
    ...{ method: 'PUT', headers: { 'content-type': 'application/json' }, body },
  });
  expect(response.status).toBe(400);
});
