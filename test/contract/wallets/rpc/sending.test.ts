import { createHash } from 'node:crypto';
import {
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import {
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
} from 'viem';
import { recoverAuthorizationAddress } from 'viem/utils';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { aliceKey } from '../../../../mocks/authorization-keys.ts';
import type {
  Transaction as SentTransaction,
  Wallet,
  WalletRpcRequest,
} from '../../../../src/generated/schemas.ts';
import type { AnyChain } from '../../../../src/ports/chains.ts';
import { type CallOptions, call, refusal } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { waitSeconds } from '../../../support/wait-seconds.ts';

// Every sending method, on the simulated chains; viem and web3.js decode the received transactions.

const base = 'eip155:8453';
const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const tron = 'tron:0x2b6653dc';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const executor = '0x00000000bebedb7c30ee418158e26e31a5a8f3e2';
const ether = 10n ** 18n;

let sandbox: TestSandbox;
let taken: Uint8Array[];

beforeAll(async () => {
  sandbox = await startSandbox();
  // Records the broadcast bytes.
  const chains = sandbox.services.chains;
  const find = chains.find.bind(chains);
  const known = new Set<AnyChain>();
  Object.assign(chains, {
    find: (caip2: string) => {
      const chain = find(caip2);
      if (chain === undefined || known.has(chain)) return chain;
      known.add(chain);
      const broadcast = chain.broadcast.bind(chain);
      Object.assign(chain, {
        broadcast: (bytes: Uint8Array) => {
          taken.push(bytes);
          return broadcast(bytes);
        },
      });
      return chain;
    },
  });
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => {
  await sandbox.reset();
  taken = [];
});

async function createWallet(chainType: 'ethereum' | 'solana' | 'tron', extra: object = {}): Promise<Wallet> {
  const { body } = await call(sandbox, 'createWallet', { body: { chain_type: chainType, ...extra } });
  return body;
}

async function fund(caip2: string, address: string, rawAmount: bigint, tokenAddress: string | null = null) {
  await sandbox.chains.fund(caip2, { address, tokenAddress, rawAmount });
}

async function send(wallet: Wallet, body: WalletRpcRequest, options?: CallOptions) {
  const { body: answer } = await call(
    sandbox,
    'walletRpc',
    { path: { wallet_id: wallet.id }, body },
    options,
  );
  expect(answer.method).toBe(body.method);
  return answer.data as { hash: string; transaction_id: string; [name: string]: unknown };
}

async function refused(wallet: Wallet, body: object, options?: CallOptions) {
  const answer = await refusal(sandbox, 'walletRpc', { path: { wallet_id: wallet.id }, body }, options);
  return { status: answer.status, code: answer.body.code, error: answer.body.error };
}

async function transactionOf(id: string): Promise<SentTransaction> {
  return (await call(sandbox, 'getTransaction', { path: { transaction_id: id } })).body;
}

const wait = (seconds: number): Promise<void> => waitSeconds(sandbox, seconds);

const hexOf = (bytes: Uint8Array | undefined): Hex => `0x${Buffer.from(bytes ?? []).toString('hex')}`;
const ethSend = (transaction: object, extra: object = {}) =>
  ({ method: 'eth_sendTransaction', caip2: base, params: { transaction }, ...extra }) as WalletRpcRequest;
const sendCalls = (calls: readonly object[], extra: object = {}) =>
  ({ method: 'wallet_sendCalls', caip2: base, params: { calls }, ...extra }) as WalletRpcRequest;
const transferData = (to: string, amount: bigint) =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to as Hex, amount] });

test('eth_sendTransaction: a token transfer is signed, reaches the chain and moves the token', async () => {
  const wallet = await createWallet('ethereum');
  await fund(base, wallet.address, ether);
  await fund(base, wallet.address, 2_000_000n, usdc);
  const data = await send(wallet, ethSend({ to: usdc, data: transferData(receiver, 1_500_000n) }));
  const [bytes] = taken.map(hexOf);
  expect(keccak256(bytes!)).toBe(data.hash);
  expect(await recoverTransactionAddress({ serializedTransaction: bytes as never })).toBe(wallet.address);
  expect(parseTransaction(bytes!)).toMatchObject({ type: 'eip1559', chainId: 8453, to: usdc.toLowerCase() });
  expect(await transactionOf(data.transaction_id)).toMatchObject({ status: 'broadcasted' });
  await wait(10);
  expect(await transactionOf(data.transaction_id)).toMatchObject({
    status: 'confirmed',
    transaction_hash: data.hash,
  });
  expect(await sandbox.chains.find(base)!.balances(receiver, [usdc])).toEqual([1_500_000n]);
  await wait(600);
  expect(await transactionOf(data.transaction_id)).toMatchObject({ status: 'finalized' });
});

test('eth_sendTransaction: several in sequence without waiting for blocks all arrive', async () => {
  const wallet = await createWallet('ethereum');
  await fund(base, wallet.address, ether);
  const sent = await Promise.all(
    [1, 2, 3, 4, 5].map((value) => send(wallet, ethSend({ to: receiver, value }))),
  );
  await wait(600);
  for (const { transaction_id: id } of sent) {
    expect(await transactionOf(id)).toMatchObject({ status: 'finalized' });
  }
  expect(await sandbox.chains.find(base)!.balances(receiver, [null])).toEqual([15n]);
});

test('eth_sendTransaction: unaffordable and reverting transactions are refused before anything is signed', async () => {
  const wallet = await createWallet('ethereum');
  expect(await refused(wallet, ethSend({ to: receiver, value: 1 }))).toMatchObject({
    status: 400,
    code: 'insufficient_funds',
  });
  await fund(base, wallet.address, ether);
  expect(await refused(wallet, ethSend({ to: usdc, data: transferData(receiver, 1n) }))).toMatchObject({
    status: 400,
    code: 'transaction_execution_failure',
  });
  expect(taken).toEqual([]);
});

test('eth_sendTransaction: an unauthorized caller is refused for missing signatures, before any chain error', async () => {
  const wallet = await createWallet('ethereum', { owner: { public_key: aliceKey.publicKey } });
  expect(await refused(wallet, ethSend({ to: receiver, value: 1 }))).toMatchObject({ status: 401 });
  const signed = { signWith: [aliceKey.privateKey] };
  expect(await refused(wallet, ethSend({ to: receiver, value: 1 }), signed)).toMatchObject({
    code: 'insufficient_funds',
  });
});

test.each([
  ['dead0002', 'replaced'],
  ['dead0003', 'execution_reverted'],
  ['dead0001', 'broadcasted'],
])('eth_sendTransaction to …%s becomes %s', async (suffix, status) => {
  const wallet = await createWallet('ethereum');
  await fund(base, wallet.address, ether);
  const { transaction_id: id } = await send(
    wallet,
    ethSend({ to: `0x${'11'.repeat(16)}${suffix}`, value: 1 }),
  );
  await wait(30);
  expect(await transactionOf(id)).toMatchObject({ status });
});

test('eth_sendTransaction through an unresponsive node stays pending, with its hash', async () => {
  const wallet = await createWallet('ethereum');
  await fund(base, wallet.address, ether);
  const data = await send(wallet, ethSend({ to: `0x${'11'.repeat(16)}dead0004`, value: 1 }));
  expect(data.hash).toBe(keccak256(hexOf(taken[0])));
  await wait(30);
  expect(await transactionOf(data.transaction_id)).toMatchObject({
    status: 'pending',
    transaction_hash: data.hash,
  });
  // The same bytes, every time.
  expect(new Set(taken.map(hexOf)).size).toBe(1);
  expect(taken.length).toBeGreaterThan(1);
});

test('wallet_sendCalls: the account delegates once, and the calls run atomically', async () => {
  const wallet = await createWallet('ethereum');
  await fund(base, wallet.address, ether);
  await fund(base, wallet.address, 10n, usdc);
  const calls = [
    { to: usdc, data: transferData(receiver, 4n) },
    { to: receiver, value: 7 },
  ];
  const data = await send(wallet, sendCalls(calls, { experimental_data_suffix: '0xbeef' }));
  expect(data).toEqual({ caip2: base, transaction_id: expect.any(String) });
  const [bytes] = taken.map(hexOf);
  expect(await recoverTransactionAddress({ serializedTransaction: bytes as never })).toBe(wallet.address);
  const parsed = parseTransaction(bytes!) as never as {
    type: string;
    to: string;
    data: string;
    authorizationList: readonly [{ address: string; chainId: number; nonce: number }];
  };
  expect(parsed).toMatchObject({ type: 'eip7702', to: wallet.address.toLowerCase() });
  expect(parsed.data.endsWith('beef')).toBe(true);
  const [authorization] = parsed.authorizationList;
  expect(authorization).toMatchObject({ address: executor, chainId: 8453, nonce: 1 });
  expect(await recoverAuthorizationAddress({ authorization } as never)).toBe(wallet.address);
  await wait(10);
  expect(await transactionOf(data.transaction_id)).toMatchObject({ status: 'confirmed' });
  expect(await sandbox.chains.find(base)!.balances(receiver, [usdc, null])).toEqual([4n, 7n]);

  // Already delegated, so a plain transaction is enough.
  const second = await send(wallet, sendCalls(calls));
  expect(parseTransaction(hexOf(taken[1]))).toMatchObject({ type: 'eip1559', nonce: 2 });
  await wait(10);
  expect(await transactionOf(second.transaction_id)).toMatchObject({ status: 'confirmed' });
  expect(await sandbox.chains.find(base)!.balances(receiver, [usdc, null])).toEqual([8n, 14n]);

  expect(
    await refused(wallet, sendCalls([...calls, { to: usdc, data: transferData(receiver, 9n) }])),
  ).toMatchObject({
    code: 'transaction_execution_failure',
  });
});

test('wallet_sendCalls: the policy evaluates each call, including those inside a batch that the account runs on itself', async () => {
  const { body: policy } = await call(sandbox, 'createPolicy', {
    body: {
      version: '1.0',
      name: 'Small payments',
      chain_type: 'ethereum',
      rules: ['wallet_sendCalls', 'eth_sendTransaction', 'eth_signTransaction'].map((method) => ({
        name: method,
        method,
        action: 'ALLOW',
        conditions: [{ field_source: 'ethereum_transaction', field: 'value', operator: 'lte', value: '10' }],
      })) as never,
    },
  });
  const wallet = await createWallet('ethereum', { policy_ids: [policy.id] });
  await fund(base, wallet.address, ether);
  const small = { to: receiver, value: 10 };
  await send(wallet, sendCalls([small, small]));
  const denied = { status: 400, code: 'policy_violation' };
  expect(await refused(wallet, sendCalls([small, { to: receiver, value: 11 }]))).toMatchObject(denied);
  await wait(10);
  const smuggled = encodeFunctionData({
    abi: [
      {
        type: 'function',
        name: 'execute',
        inputs: [
          { name: 'mode', type: 'bytes32' },
          { name: 'executionData', type: 'bytes' },
        ],
        outputs: [],
        stateMutability: 'payable',
      },
    ],
    args: [`0x01${'00'.repeat(31)}`, batchOf([{ to: receiver as Hex, value: 11n, data: '0x' }])],
  });
  const self = { to: wallet.address, data: smuggled };
  expect(await refused(wallet, sendCalls([self]))).toMatchObject(denied);
  expect(await refused(wallet, ethSend(self))).toMatchObject(denied);
  expect(
    await refused(wallet, {
      method: 'eth_signTransaction',
      params: { transaction: { ...self, chain_id: 8453, nonce: 9 } },
    }),
  ).toMatchObject(denied);
});

test('wallet_sendCalls: address 0, which would mean the account itself, is refused', async () => {
  const wallet = await createWallet('ethereum');
  const request = sendCalls([{ to: receiver }, { to: `0x${'00'.repeat(20)}` }]);
  expect(await refused(wallet, request)).toMatchObject({
    code: 'invalid_data',
    error: expect.stringContaining('/params/calls/1/to'),
  });
});

test('eth_sign7702Authorization without a nonce uses the next one, or the one after it for its own transaction', async () => {
  const wallet = await createWallet('ethereum');
  await fund(base, wallet.address, ether);
  await send(wallet, ethSend({ to: receiver, value: 1 }));
  const sign = async (params: object) =>
    (
      (await send(wallet, {
        method: 'eth_sign7702Authorization',
        params: { contract: executor, chain_id: 8453, ...params },
      } as WalletRpcRequest)) as never as { authorization: { nonce: number } }
    ).authorization.nonce;
  expect(await sign({})).toBe(1);
  expect(await sign({ executor: 'self' })).toBe(2);
  expect(await sign({ nonce: 5, executor: 'self' })).toBe(5);
  const without = (chain_id: number) => ({
    method: 'eth_sign7702Authorization',
    params: { contract: executor, chain_id },
  });
  expect(await refused(wallet, without(0))).toMatchObject({ code: 'invalid_data' });
});

const placeholder = '11111111111111111111111111111111';

function solanaTransfer(from: string, to: PublicKey, { lamports = 1_000_000, blockhash = placeholder } = {}) {
  const transaction = new Transaction({ recentBlockhash: blockhash, feePayer: new PublicKey(from) } as never);
  transaction.add(SystemProgram.transfer({ fromPubkey: new PublicKey(from), toPubkey: to, lamports }));
  return transaction.serialize({ requireAllSignatures: false }).toString('base64');
}

const signAndSend = (transaction: string, extra: object = {}) =>
  ({
    method: 'signAndSendTransaction',
    caip2: solana,
    params: { transaction, encoding: 'base64' },
    ...extra,
  }) as WalletRpcRequest;
const someone = Keypair.fromSeed(Buffer.alloc(32, 9));

test('signAndSendTransaction: the placeholder is replaced by a recent blockhash, and web3.js verifies the sent bytes', async () => {
  const wallet = await createWallet('solana');
  await fund(solana, wallet.address, 10_000_000n);
  const request = signAndSend(solanaTransfer(wallet.address, someone.publicKey), { reference_id: 'r1' });
  const data = await send(wallet, request);
  const transaction = Transaction.from(Buffer.from(taken[0]!));
  expect(transaction.verifySignatures()).toBe(true);
  expect(transaction.recentBlockhash).not.toBe(placeholder);
  expect(data).toEqual({
    hash: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{86,88}$/),
    caip2: solana,
    reference_id: 'r1',
    transaction_id: expect.any(String),
    signed_transaction: Buffer.from(taken[0]!).toString('base64'),
  });
  await wait(60);
  expect(await transactionOf(data.transaction_id)).toMatchObject({
    status: 'finalized',
    transaction_hash: data.hash,
  });
  expect(await sandbox.chains.find(solana)!.balances(someone.publicKey.toBase58(), [null])).toEqual([
    1_000_000n,
  ]);
});

test('signAndSendTransaction: optimistic_broadcast leaves the broadcast to the job', async () => {
  const wallet = await createWallet('solana');
  await fund(solana, wallet.address, 10_000_000n);
  const { transaction_id: id } = await send(
    wallet,
    signAndSend(solanaTransfer(wallet.address, someone.publicKey), { optimistic_broadcast: true }),
  );
  expect(taken).toEqual([]);
  expect(await transactionOf(id)).toMatchObject({ status: 'pending' });
  await wait(1);
  expect(taken).toHaveLength(1);
  await wait(60);
  expect(await transactionOf(id)).toMatchObject({ status: 'finalized' });
});

test('signAndSendTransaction: refusals', async () => {
  const wallet = await createWallet('solana');
  const to = someone.publicKey;
  expect(await refused(wallet, signAndSend(solanaTransfer(wallet.address, to)))).toMatchObject({
    code: 'insufficient_funds',
  });
  await fund(solana, wallet.address, 10_000_000n);
  const invalid = { status: 400, code: 'invalid_solana_transaction' };
  expect(await refused(wallet, signAndSend(solanaTransfer(someone.publicKey.toBase58(), to)))).toMatchObject(
    invalid,
  );
  expect(await refused(wallet, signAndSend('AAAA'))).toMatchObject(invalid);

  // Two signers: the other signature is missing, or covers a message that would change.
  const message = new TransactionMessage({
    payerKey: someone.publicKey,
    recentBlockhash: placeholder,
    instructions: [
      SystemProgram.transfer({ fromPubkey: new PublicKey(wallet.address), toPubkey: to, lamports: 1 }),
    ],
  }).compileToV0Message();
  const shared = new VersionedTransaction(message);
  const base64 = () => Buffer.from(shared.serialize()).toString('base64');
  const payer = someone.publicKey.toBase58();
  expect(await refused(wallet, signAndSend(base64()))).toMatchObject({
    ...invalid,
    error: expect.stringContaining(`expected the signature of \`${payer}\``),
  });
  shared.sign([someone]);
  expect(await refused(wallet, signAndSend(base64()))).toMatchObject({
    ...invalid,
    error: expect.stringContaining('has signed the placeholder'),
  });
  expect(taken).toEqual([]);
});

test('tron_sendTransaction: the block fields are filled in, the id is the hash of the raw data', async () => {
  const wallet = await createWallet('tron');
  await fund(tron, wallet.address, 10_000_000n);
  const owner = tronHex(wallet.address);
  const contract = {
    type: 'TransferContract',
    owner_address: owner,
    to_address: `41${'00'.repeat(19)}01`,
    amount: 1000,
  };
  const body = {
    method: 'tron_sendTransaction',
    params: { raw_data: { contract: [contract] }, reference_id: 'r1' },
  } as WalletRpcRequest;
  const data = await send(wallet, body);
  // Raw data || 65-byte signature.
  const rawData = Buffer.from(taken[0]!).subarray(0, -65);
  const hash = createHash('sha256').update(rawData).digest('hex');
  expect(data).toEqual({ hash, caip2: tron, transaction_id: expect.any(String), reference_id: 'r1' });
  await wait(120);
  expect(await transactionOf(data.transaction_id)).toMatchObject({
    status: 'finalized',
    transaction_hash: hash,
  });

  const foreign = { ...contract, owner_address: `41${'22'.repeat(20)}` };
  expect(
    await refused(wallet, { ...body, params: { raw_data: { contract: [foreign] } } } as object),
  ).toMatchObject({
    code: 'invalid_data',
    error: expect.stringContaining('/params/raw_data/contract/0/owner_address'),
  });
  const half = { contract: [contract], ref_block_bytes: '1234' };
  expect(await refused(wallet, { ...body, params: { raw_data: half } } as object)).toMatchObject({
    error: expect.stringContaining('/params/raw_data/ref_block_hash'),
  });
  const dear = { ...contract, amount: 99_000_000 };
  expect(
    await refused(wallet, { ...body, params: { raw_data: { contract: [dear] } } } as object),
  ).toMatchObject({
    code: 'insufficient_funds',
  });
});

/** Base58check: the payload without its checksum. */
function tronHex(address: string): string {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  const number = [...address].reduce((sum, letter) => sum * 58n + BigInt(alphabet.indexOf(letter)), 0n);
  return number.toString(16).padStart(50, '0').slice(0, 42);
}

function batchOf(calls: readonly { to: Hex; value: bigint; data: Hex }[]): Hex {
  return encodeAbiParameters(
    [
      {
        type: 'tuple[]',
        components: [
          { name: 'to', type: 'address' },
          { name: 'value', type: 'uint256' },
          { name: 'data', type: 'bytes' },
        ],
      },
    ],
    [calls],
  );
}
