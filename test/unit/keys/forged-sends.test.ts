import { Keypair, PublicKey, SystemProgram, Transaction, VersionedTransaction } from '@solana/web3.js';
import { TronWeb } from 'tronweb';
import { encodeFunctionData, parseAbi } from 'viem';
import { beforeEach, expect, test } from 'vitest';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The owner has signed a request that sends something. The server has it signed with other content.

const owner = newOwner();
const [friend, thief] = [`0x${'11'.repeat(20)}`, `0x${'22'.repeat(20)}`];
const somethingElse = 'asks for something else';

let server: CompromisedServer;
beforeEach(async () => {
  server = await compromisedServer(1_900_000_000_000);
  return server.close;
});

const walletOn = (chainType: string): Promise<SealedWallet> =>
  server.walletOf({ owner: ofKey(owner), chainType });

async function signs(wallet: SealedWallet, body: object, task: object) {
  return server.signs(
    wallet,
    task,
    useOf(wallet, signedBy([owner], { path: '/v1/wallets/wallet/rpc', body })),
  );
}

const calls: readonly [Call, Call] = [
  { to: friend, value: '0x1' },
  { to: friend, data: '0x1234' },
];
const batch = { method: 'wallet_sendCalls', caip2: 'eip155:1', params: { calls } };

interface Call {
  readonly to: string;
  readonly value?: string;
  readonly data?: string;
}

const word = (value: bigint | number): string => BigInt(value).toString(16).padStart(64, '0');
const item = ({ to, value = '0x0', data = '0x' }: Call) => {
  const bytes = data.slice(2);
  const padded = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, '0');
  return [word(BigInt(to)), word(BigInt(value)), word(96), word(bytes.length / 2), padded].join('');
};

/** Calldata of ERC-7821, written by hand: execute(mode, abi.encode(Call[])). */
function batchOf(list: readonly Call[]): string {
  const items = list.map(item);
  let at = 32 * items.length;
  const offsets = items.map((each) => {
    const offset = word(at);
    at += each.length / 2;
    return offset;
  });
  const data = `0x${word(32)}${word(items.length)}${offsets.join('')}${items.join('')}` as const;
  const abi = parseAbi(['function execute(bytes32 mode, bytes executionData)']);
  return encodeFunctionData({ abi, functionName: 'execute', args: [`0x01${'00'.repeat(31)}`, data] });
}

test('a batch runs the calls that its owner has signed, on that chain, for the wallet itself', async () => {
  const wallet = await walletOn('ethereum');
  const task = (change: object = {}) => ({
    method: 'eth_signTransaction',
    params: {
      transaction: {
        ...{ type: 2, to: wallet.address, data: batchOf(calls), chain_id: 1, nonce: 7, gas_limit: '0x5300' },
        ...{ max_fee_per_gas: '0x2', max_priority_fee_per_gas: '0x1', ...change },
      },
    },
  });
  await expect(signs(wallet, batch, task())).resolves.toHaveProperty('signed_transaction');
  const [first, second] = calls;
  const forged = {
    'another recipient': { data: batchOf([first, { ...second, to: thief }]) },
    'another amount': { data: batchOf([{ ...first, value: '0x2' }, second]) },
    'other calldata': { data: batchOf([first, { ...second, data: '0x1235' }]) },
    'one call more': { data: batchOf([first, second, { to: thief, value: '0x1' }]) },
    'one call less': { data: batchOf([first]) },
    'another order': { data: batchOf([second, first]) },
    'no batch': { data: '0x' },
    'bytes after it': { data: `${batchOf(calls)}00` },
    'a value': { value: '0x1' },
    'another chain': { chain_id: 10 },
    'an access list': { access_list: [] },
    'calls of another kind of transaction': { type: 118, calls: [{ to: thief, value: '0x1' }] },
  };
  for (const [what, change] of Object.entries(forged)) {
    await expect(signs(wallet, batch, task(change)), what).rejects.toThrow(somethingElse);
  }
  await expect(signs(wallet, batch, task({ to: thief }))).rejects.toThrow('the address of the wallet');
  const suffixed = { ...batch, experimental_data_suffix: '0xbeef' };
  await expect(signs(wallet, suffixed, task({ data: `${batchOf(calls)}beef` }))).resolves.toBeDefined();
  await expect(signs(wallet, suffixed, task())).rejects.toThrow(somethingElse);
});

test('a sponsored operation runs the calls that its owner has signed', async () => {
  const wallet = await walletOn('ethereum');
  const abi = parseAbi([
    'function execute(address target, uint256 value, bytes data)',
    'struct Call { address target; uint256 value; bytes data; }',
    'function executeBatch(Call[] calls)',
  ]);
  const single = (to: string, value: bigint) =>
    encodeFunctionData({ abi, functionName: 'execute', args: [to as never, value, '0x'] });
  const several = (to: string) => {
    const list = calls.map(({ value = '0x0', data = '0x' }) => ({
      ...{ target: to as `0x${string}`, value: BigInt(value), data: data as `0x${string}` },
    }));
    return encodeFunctionData({ abi, functionName: 'executeBatch', args: [list] });
  };
  const task = (callData: string, change: object = {}, sender = wallet.address) => ({
    method: 'eth_signUserOperation',
    params: {
      ...{ contract: '0x4337084d9e255ff0702461cf8895ce9e3b5ff108', chain_id: 1, ...change },
      user_operation: {
        ...{ sender, nonce: '0x1', call_data: callData, call_gas_limit: '0x1' },
        ...{ verification_gas_limit: '0x1', pre_verification_gas: '0x1' },
        ...{ max_fee_per_gas: '0x1', max_priority_fee_per_gas: '0x1' },
      },
    },
  });
  const transaction = { to: friend, value: 3 };
  const one = { method: 'eth_sendTransaction', caip2: 'eip155:1', sponsor: true, params: { transaction } };
  await expect(signs(wallet, one, task(single(friend, 3n)))).resolves.toHaveProperty('signature');
  const many = { ...batch, sponsor: true };
  await expect(signs(wallet, many, task(several(friend)))).resolves.toHaveProperty('signature');
  for (const [body, data] of [
    [one, single(thief, 3n)],
    [one, single(friend, 4n)],
    [one, several(friend)],
    [one, '0x'],
    [many, several(thief)],
    [many, single(friend, 1n)],
  ] as const) {
    await expect(signs(wallet, body, task(data))).rejects.toThrow(somethingElse);
  }
  await expect(signs(wallet, one, task(single(friend, 3n), { chain_id: 10 }))).rejects.toThrow(somethingElse);
  await expect(signs(wallet, one, task(single(friend, 3n), {}, thief))).rejects.toThrow('the address of');
});

/** Of a sponsored operation, written by hand. */
const operation = {
  ...{ nonce: '0x0', call_gas_limit: '0x1', verification_gas_limit: '0x1', pre_verification_gas: '0x1' },
  ...{ max_fee_per_gas: '0x1', max_priority_fee_per_gas: '0x1' },
};

test('an operation creates no account: nothing runs besides the calls', async () => {
  const wallet = await walletOn('ethereum');
  const abi = parseAbi(['function execute(address target, uint256 value, bytes data)']);
  const callData = encodeFunctionData({
    abi,
    functionName: 'execute',
    args: [`0x${'11'.repeat(20)}`, 1n, '0x'],
  });
  const body = {
    ...{ method: 'eth_sendTransaction', caip2: 'eip155:1', sponsor: true },
    params: { transaction: { to: friend, value: '0x1' } },
  };
  const task = (change: object) => ({
    method: 'eth_signUserOperation',
    params: {
      ...{ contract: '0x4337084d9e255ff0702461cf8895ce9e3b5ff108', chain_id: 1 },
      user_operation: { ...operation, sender: wallet.address, call_data: callData, ...change },
    },
  });
  await expect(signs(wallet, body, task({}))).resolves.toHaveProperty('signature');
  const paid = { paymaster: thief, paymaster_data: '0x12', paymaster_verification_gas_limit: '0x1' };
  await expect(signs(wallet, body, task(paid))).resolves.toHaveProperty('signature');
  const marker = `0x7702${'00'.repeat(18)}`;
  for (const change of [
    { factory: thief },
    { factory: thief, factory_data: '0x1234' },
    { factory: marker, factory_data: '0x1234' },
  ]) {
    await expect(signs(wallet, body, task(change)), JSON.stringify(change)).rejects.toThrow(somethingElse);
  }
  // What the owner sends to be signed as it is may create one.
  const whole = task({ factory: thief, factory_data: '0x1234' });
  await expect(signs(wallet, whole, whole)).resolves.toHaveProperty('signature');
});

test.each([
  ['wallet_sendCalls', batch],
  [
    'a sponsored transaction',
    {
      ...{ method: 'eth_sendTransaction', caip2: 'eip155:1', sponsor: true },
      params: { transaction: calls[0] },
    },
  ],
])('%s delegates the account on the chain of the request only', async (_, body) => {
  const wallet = await walletOn('ethereum');
  const delegation = (contract: string, chainId: unknown) => ({
    method: 'eth_sign7702Authorization',
    params: { contract, chain_id: chainId, nonce: 1 },
  });
  for (const contract of [
    '0xe6Cae83BdE06E4c305530e199D7217f42808555B',
    '0x00000000bebedb7c30ee418158e26e31a5a8f3e2',
  ]) {
    for (const same of [1, '0x1']) {
      await expect(signs(wallet, body, delegation(contract, same))).resolves.toHaveProperty('authorization');
    }
    // 0 delegates it on every chain.
    for (const other of [0, '0x0', 10, '0xa']) {
      await expect(signs(wallet, body, delegation(contract, other)), String(other)).rejects.toThrow(
        somethingElse,
      );
    }
  }
});

test('a Solana transaction is the one that its owner has signed, with a blockhash and a fee payer', async () => {
  const wallet = await walletOn('solana');
  const from = new PublicKey(wallet.address);
  const [to, robber, payer] = [1, 2, 3].map((byte) => Keypair.fromSeed(Buffer.alloc(32, byte)).publicKey) as [
    PublicKey,
    PublicKey,
    PublicKey,
  ];
  const placeholder = '1'.repeat(32);
  const wire = (asked: {
    to?: PublicKey;
    lamports?: number;
    recentBlockhash?: string;
    feePayer?: PublicKey;
  }) => {
    const { recentBlockhash = placeholder, feePayer = from, lamports = 5, to: toPubkey = to } = asked;
    const made = new Transaction({ recentBlockhash, feePayer } as never);
    made.add(SystemProgram.transfer({ fromPubkey: from, toPubkey, lamports }));
    return made.serialize({ requireAllSignatures: false }).toString('base64');
  };
  const task = (transaction: string) => ({
    method: 'signTransaction',
    params: { transaction, encoding: 'base64' },
  });
  const sends = (transaction: string, sponsor = false) => ({
    ...{ method: 'signAndSendTransaction', caip2: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', sponsor },
    params: { transaction, encoding: 'base64' },
  });
  const recent = robber.toBase58();
  const made = await signs(wallet, sends(wire({})), task(wire({ recentBlockhash: recent })));
  const { signed_transaction: signed } = made as { signed_transaction: string };
  expect(VersionedTransaction.deserialize(Buffer.from(signed, 'base64')).message.recentBlockhash).toBe(
    recent,
  );
  const sponsored = task(wire({ recentBlockhash: recent, feePayer: payer }));
  await expect(signs(wallet, sends(wire({}), true), sponsored)).resolves.toBeDefined();
  await expect(signs(wallet, sends(wire({})), sponsored)).rejects.toThrow(somethingElse);
  for (const change of [{ to: robber }, { lamports: 6 }]) {
    const forged = task(wire({ recentBlockhash: recent, ...change }));
    await expect(signs(wallet, sends(wire({})), forged)).rejects.toThrow(somethingElse);
  }
  // A blockhash that the owner has chosen is kept.
  const fixed = sends(wire({ recentBlockhash: to.toBase58() }));
  await expect(signs(wallet, fixed, task(wire({ recentBlockhash: recent })))).rejects.toThrow(somethingElse);
});

test('a Tron transaction is the one that its owner has signed, with its block and its times', async () => {
  const wallet = await walletOn('tron');
  const contract = {
    ...{ type: 'TransferContract', owner_address: TronWeb.address.toHex(wallet.address) },
    ...{ to_address: `41${'11'.repeat(20)}`, amount: 5 },
  };
  const block = { ref_block_bytes: '0000', ref_block_hash: '00'.repeat(8), expiration: 2, timestamp: 1 };
  const body = { method: 'tron_sendTransaction', params: { raw_data: { contract: [contract] } } };
  const task = (change: object, more: object = {}) => ({
    method: 'tron_signTransaction',
    params: { raw_data: { ...block, contract: [{ ...contract, ...change }], ...more } },
  });
  await expect(signs(wallet, body, task({}))).resolves.toHaveProperty('signed_transaction');
  const thieves = { to_address: `41${'22'.repeat(20)}` };
  for (const forged of [task(thieves), task({ amount: 6 }), task({}, { fee_limit: 1_000_000 })]) {
    await expect(signs(wallet, body, forged)).rejects.toThrow(somethingElse);
  }
});
