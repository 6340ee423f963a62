import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionInstruction,
} from '@solana/web3.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';

// Bad and large input to the JSON-RPC of a Solana chain. Codes and messages are those of agave's nodes.

let sandbox: TestSandbox;
const key = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const payer = Keypair.fromSeed(new Uint8Array(32).fill(5));

beforeAll(async () => {
  sandbox = await startSandbox({ clock: 'frozen', rpcPort: 0, confirmAfterMs: 0 });
});
afterAll(() => sandbox.close());

interface Answer {
  readonly result?: never;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

async function ask(method: string, ...params: unknown[]): Promise<Answer> {
  const response = await fetch(`${sandbox.rpcUrl}/solana`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

test.each<[string, string, unknown[], number, string]>([
  ['an unknown method', 'getNothing', [], -32_601, 'Method not found'],
  ['a method of Ethereum', 'eth_chainId', [], -32_601, 'Method not found'],
  ['a subscription over HTTP', 'slotSubscribe', [], -32_601, 'Method not found'],
  ['no address', 'getBalance', [], -32_602, 'Invalid params'],
  ['an address of 31 bytes', 'getBalance', ['1'.repeat(31)], -32_602, 'Invalid param: WrongSize'],
  ['an address that is not base58', 'getBalance', ['0'.repeat(40)], -32_602, 'Invalid param: Invalid'],
  ['a long address', 'getBalance', ['1'.repeat(1_000_000)], -32_602, 'Invalid param: WrongSize'],
  ['an unknown commitment', 'getBalance', [key, { commitment: 'sure' }], -32_602, 'unknown variant `sure`'],
  ['options that are a list', 'getBalance', [key, []], -32_602, 'expected an object'],
  ['an unknown encoding', 'getAccountInfo', [key, { encoding: 'hex' }], -32_602, 'unknown variant `hex`'],
  ['a negative slice', 'getAccountInfo', [key, { dataSlice: { offset: -1, length: 1 } }], -32_602, 'offset'],
  [
    'a slot that has not come',
    'getBalance',
    [key, { minContextSlot: 9e15 }],
    -32_016,
    'Minimum context slot',
  ],
  [
    '101 accounts',
    'getMultipleAccounts',
    [Array(101).fill(key)],
    -32_602,
    'Too many inputs provided; max 100',
  ],
  ['1,000 accounts', 'getMultipleAccounts', [Array(1_000).fill(key)], -32_602, 'max 100'],
  ['257 signatures', 'getSignatureStatuses', [Array(257).fill('1')], -32_602, 'max 256'],
  ['a short signature', 'getTransaction', [key], -32_602, 'WrongSize'],
  [
    'processed transactions',
    'getTransaction',
    ['1'.repeat(64), { commitment: 'processed' }],
    -32_602,
    'below',
  ],
  [
    'a limit of 1,001',
    'getSignaturesForAddress',
    [key, { limit: 1_001 }],
    -32_602,
    'Invalid limit; max 1000',
  ],
  ['a block that has not come', 'getBlock', [9e15], -32_004, 'Block not available for slot'],
  ['a negative slot', 'getBlock', [-1], -32_602, '`slot`'],
  ['all slots', 'getBlocks', [0], -32_602, 'Slot range too large'],
  ['5 filters', 'getProgramAccounts', [key, { filters: Array(5).fill({ dataSize: 1 }) }], -32_602, 'max 4'],
  [
    'a comparison of 129 bytes',
    'getProgramAccounts',
    [key, { filters: [{ memcmp: { offset: 0, bytes: Array(129).fill(1) } }] }],
    ...([-32_602, 'DataTooLarge'] as const),
  ],
  ['a mint that is none', 'getTokenAccountsByOwner', [key, { mint: '1'.repeat(32) }], -32_602, 'find mint'],
  ['a program that is none', 'getTokenAccountsByOwner', [key, { programId: key }], -32_602, 'unrecognized'],
  ['a balance of a mint', 'getTokenAccountBalance', [key], -32_602, 'not a Token account'],
  ['the supply of nothing', 'getTokenSupply', ['1'.repeat(32)], -32_602, 'could not find account'],
  ['rent of 1 GB', 'getMinimumBalanceForRentExemption', [1e9], -32_602, 'at most'],
  ['an airdrop of a fraction', 'requestAirdrop', [key, 0.5], -32_602, '`lamports`'],
  ['no transaction', 'sendTransaction', [], -32_602, 'expected a string'],
  ['no bytes', 'sendTransaction', ['', { encoding: 'base64' }], -32_602, 'failed to deserialize'],
  ['no base64', 'sendTransaction', ['!', { encoding: 'base64' }], -32_602, 'invalid base64 encoding'],
  [
    'a transaction of 1,233 bytes',
    'sendTransaction',
    [Buffer.alloc(1_233).toString('base64'), { encoding: 'base64' }],
    ...([-32_602, 'too large: 1233 bytes (max: 1232 bytes)'] as const),
  ],
  [
    'a transaction of a megabyte',
    'sendTransaction',
    ['A'.repeat(1_000_000), { encoding: 'base64' }],
    ...([-32_602, 'too large: 1000000 bytes (max: encoded/raw 1644/1232)'] as const),
  ],
])('%s', async (_, method, params, code, message) => {
  const { error } = await ask(method, ...params);
  expect(error).toMatchObject({ code, message: expect.stringContaining(message) });
});

describe('transactions', () => {
  async function wireOf(instructions: TransactionInstruction[], change?: (bytes: Buffer) => void) {
    await ask('requestAirdrop', payer.publicKey.toBase58(), 10 ** 9);
    const { value } = (await ask('getLatestBlockhash')).result! as { value: { blockhash: string } };
    const transaction = new Transaction({ feePayer: payer.publicKey, recentBlockhash: value.blockhash });
    transaction.add(...instructions).sign(payer);
    const bytes = transaction.serialize();
    change?.(bytes);
    return bytes.toString('base64');
  }
  const transfer = SystemProgram.transfer({
    ...{ fromPubkey: payer.publicKey, toPubkey: new PublicKey(key), lamports: 1_000_000 },
  });

  test('a forged signature is refused, and without a preflight it is not included', async () => {
    const wire = await wireOf([transfer], (bytes) => {
      bytes[10]! ^= 1;
    });
    expect((await ask('sendTransaction', wire, { encoding: 'base64' })).error).toEqual({
      ...{ code: -32_003, message: 'Transaction signature verification failure' },
    });
    const { result } = await ask('sendTransaction', wire, { encoding: 'base64', skipPreflight: true });
    expect((await ask('getSignatureStatuses', [result])).result).toMatchObject({ value: [null] });
  });

  test('a simulation returns accounts, checks signatures on request, and changes nothing', async () => {
    const wire = await wireOf([transfer]);
    const before = (await ask('getBalance', key)).result! as { value: number };
    const { result } = await ask('simulateTransaction', wire, {
      ...{ encoding: 'base64', sigVerify: true, accounts: { addresses: [key], encoding: 'base64' } },
    });
    expect(result).toMatchObject({
      value: { err: null, unitsConsumed: 150, accounts: [{ lamports: before.value + 1_000_000 }] },
    });
    expect((await ask('getBalance', key)).result).toMatchObject({ value: before.value });
    const both = { encoding: 'base64', sigVerify: true, replaceRecentBlockhash: true };
    expect((await ask('simulateTransaction', wire, both)).error).toMatchObject({ code: -32_602 });
  });

  test('a fee that no account can pay does not make the sponsor ask the faucet for it', async () => {
    const sponsor = Keypair.fromSeed(new Uint8Array(32).fill(0xfa));
    const { value } = (await ask('getLatestBlockhash')).result! as { value: { blockhash: string } };
    const transaction = new Transaction({ feePayer: sponsor.publicKey, recentBlockhash: value.blockhash });
    transaction.add(
      ComputeBudgetProgram.setComputeUnitLimit({ units: 1_400_000 }),
      ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 10n ** 15n }),
      SystemProgram.transfer({
        ...{ fromPubkey: sponsor.publicKey, toPubkey: new PublicKey(key), lamports: 1 },
      }),
    );
    const wire = transaction.serialize({ requireAllSignatures: false }).toString('base64');
    const before = (await ask('getBalance', sponsor.publicKey.toBase58())).result;
    const { result } = await ask('simulateTransaction', wire, { encoding: 'base64' });
    expect(result).toMatchObject({
      value: { err: expect.stringMatching(/^(AccountNotFound|InsufficientFundsForFee)$/) },
    });
    const after = (await ask('getBalance', sponsor.publicKey.toBase58())).result;
    expect(after).toMatchObject({ value: (before! as { value: number }).value });
  });

  test('an unsupported program fails as one that is not deployed, and the fee is taken without a preflight', async () => {
    const program = Keypair.generate().publicKey;
    const wire = await wireOf([new TransactionInstruction({ programId: program, keys: [] })]);
    expect((await ask('sendTransaction', wire, { encoding: 'base64' })).error).toMatchObject({
      ...{
        code: -32_002,
        data: {
          err: 'ProgramAccountNotFound',
          logs: [expect.stringMatching(/npm install litesvm$/)],
          unitsConsumed: 0,
        },
      },
      message: 'Transaction simulation failed: Attempt to load a program that does not exist',
    });
    const { result } = await ask('sendTransaction', wire, { encoding: 'base64', skipPreflight: true });
    expect((await ask('getSignatureStatuses', [result])).result).toMatchObject({
      value: [{ err: 'ProgramAccountNotFound' }],
    });
    const shown = { commitment: 'confirmed' };
    expect((await ask('getTransaction', result, shown)).result).toMatchObject({
      meta: { err: 'ProgramAccountNotFound', fee: 5_000, status: { Err: 'ProgramAccountNotFound' } },
    });
  });
});

test('a connection has at most 100 subscriptions; unknown ones cannot be ended', async () => {
  const socket = new WebSocket(`${sandbox.rpcUrl.replace('http', 'ws')}/solana`);
  const received: Answer[] = [];
  socket.on('message', (data: Buffer) => received.push(JSON.parse(data.toString()) as Answer));
  await new Promise((resolve) => socket.once('open', resolve));
  const say = (id: number, method: string, ...params: unknown[]) =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
  for (let id = 1; id <= 101; id += 1) say(id, 'accountSubscribe', key);
  say(102, 'accountUnsubscribe', 10_000);
  say(103, 'logsSubscribe', { mentions: [key, key] });
  await expect.poll(() => received.length).toBe(103);
  expect(received.slice(0, 100).every(({ result }) => typeof result === 'number')).toBe(true);
  expect(received[100]).toMatchObject({ error: { code: -32_005 } });
  expect(received[101]).toMatchObject({ error: { code: -32_602, message: 'Invalid subscription id.' } });
  expect(received[102]).toMatchObject({ error: { code: -32_602 } });
  socket.terminate();
});

test('the faucet makes no mint of an account that holds a token', async () => {
  const owner = Keypair.generate().publicKey.toBase58();
  const token = Keypair.generate().publicKey.toBase58();
  const give = (tokenAddress: string) =>
    sandbox.faucet(owner, { chain: 'solana', token_address: tokenAddress, amount: '5' });
  await give(token);
  const { value } = (await ask('getTokenAccountsByOwner', owner, { mint: token }, { encoding: 'base64' }))
    .result! as { value: { pubkey: string }[] };
  const { pubkey } = value[0]!;
  await expect(give(pubkey)).rejects.toThrow(/unused address/);
  expect((await ask('getTokenAccountBalance', pubkey)).result).toMatchObject({
    value: { uiAmountString: '5' },
  });
});

test('an account whose data is too long for base58 is notified, and so are the subscribers after it', async () => {
  const owner = Keypair.generate().publicKey.toBase58();
  const token = Keypair.generate().publicKey.toBase58();
  const give = () => sandbox.faucet(owner, { chain: 'solana', token_address: token, amount: '5' });
  await give();
  const socket = new WebSocket(`${sandbox.rpcUrl.replace('http', 'ws')}/solana`);
  const received: { readonly id?: number; readonly method?: string; readonly params?: unknown }[] = [];
  socket.on('message', (data: Buffer) => received.push(JSON.parse(data.toString())));
  await new Promise((resolve) => socket.once('open', resolve));
  const { value } = (await ask('getTokenAccountsByOwner', owner, { mint: token }, { encoding: 'base64' }))
    .result! as { value: { pubkey: string }[] };
  for (const [id, encoding] of ['base58', 'base64'].entries()) {
    const params = [value[0]!.pubkey, { encoding, commitment: 'processed' }];
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'accountSubscribe', params }));
  }
  await expect.poll(() => received.length).toBe(2);
  await give();
  await expect.poll(() => received.length).toBe(4);
  // Source: account-decoder, encode_bs58.
  expect(received[2]).toMatchObject({
    params: { result: { value: { data: ['error: data too large for bs58 encoding', 'base58'] } } },
  });
  expect(received[3]).toMatchObject({
    params: { result: { value: { data: [expect.any(String), 'base64'], space: 165 } } },
  });
  socket.terminate();
});
