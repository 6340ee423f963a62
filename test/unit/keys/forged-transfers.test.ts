import { Keypair, Transaction } from '@solana/web3.js';
import { TronWeb } from 'tronweb';
import { encodeFunctionData, erc20Abi, parseTransaction } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { beforeEach, expect, test } from 'vitest';
import {
  associatedTokenAddress,
  TOKEN_2022_PROGRAM,
} from '../../../src/engine/signing/solana/associated-token.ts';
import {
  encodeSolanaInstructions,
  encodeSolanaTransfer,
  type Instruction,
} from '../../../src/engine/signing/solana/encode-transfer.ts';
import {
  type CompromisedServer,
  compromisedServer,
  ofKey,
  type SealedWallet,
  useOf,
} from '../../support/signer/compromised-server.ts';
import { newOwner, signedBy } from '../../support/signer/owner.ts';

// The owner has signed a transfer. The server, which builds its transaction, has another one signed.

const owner = newOwner();
const somethingElse = 'asks for something else';

let server: CompromisedServer;
beforeEach(async () => {
  server = await compromisedServer(1_900_000_000_000);
  return server.close;
});

const walletOn = (chainType: string): Promise<SealedWallet> =>
  server.walletOf({ owner: ofKey(owner), chainType });

function transferring(wallet: SealedWallet, body: object) {
  const use = useOf(wallet, signedBy([owner], { path: '/v1/wallets/wallet/transfer', body }));
  return (task: object) => server.signs(wallet, task, use);
}

async function expectRefused(
  signs: (task: object) => Promise<unknown>,
  forged: Readonly<Record<string, object>>,
): Promise<void> {
  for (const [what, task] of Object.entries(forged)) {
    await expect(signs(task), what).rejects.toThrow(somethingElse);
  }
}

const evmAddress = (byte: number) => privateKeyToAddress(`0x${Buffer.alloc(32, byte).toString('hex')}`);
const [friend, thief] = [evmAddress(1), evmAddress(2)];
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const filled = {
  ...{ type: 2, chain_id: 8453, nonce: 7, gas_limit: '0x5208' },
  ...{ max_fee_per_gas: '0x2', max_priority_fee_per_gas: '0x1' },
};
const onBase = (transaction: object) => ({
  method: 'eth_signTransaction',
  params: { transaction: { ...filled, ...transaction } },
});
const tokens = (to: `0x${string}`, amount: bigint) =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] });
const ether = 10n ** 18n;

test('a transfer of ether pays that much to that address, on that chain', async () => {
  const wallet = await walletOn('ethereum');
  const body = { source: { asset: 'eth', chain: 'base', amount: '1.50' }, destination: { address: friend } };
  const signs = transferring(wallet, body);
  const value = `0x${((ether * 3n) / 2n).toString(16)}`;
  const { signed_transaction: signed } = (await signs(onBase({ to: friend, value }))) as Signed;
  expect(parseTransaction(signed)).toMatchObject({
    ...{ to: friend.toLowerCase(), value: (ether * 3n) / 2n, chainId: 8453, nonce: 7 },
  });
  for (const more of [{ nonce: 8 }, { from: wallet.address }, { max_fee_per_gas: '0x3' }]) {
    await expect(signs(onBase({ to: friend, value, ...more }))).resolves.toBeDefined();
  }
  const contract = '0xe6cae83bde06e4c305530e199d7217f42808555b';
  await expectRefused(signs, {
    'another recipient': onBase({ to: thief, value }),
    'no recipient': onBase({ value, data: '0x' }),
    'another amount': onBase({ to: friend, value: `0x${(ether * 2n).toString(16)}` }),
    'no amount': onBase({ to: friend }),
    calldata: onBase({ to: friend, value, data: '0x12' }),
    tokens: onBase({ to: usdc, data: tokens(friend, (ether * 3n) / 2n) }),
    'another chain': onBase({ to: friend, value, chain_id: 1 }),
    'an access list': onBase({ to: friend, value, access_list: [] }),
    'a delegation beside it': onBase({ to: friend, value, type: 4, authorization_list: [] }),
    'calls of another kind of transaction': onBase({
      ...{ to: friend, value, type: 118, calls: [{ to: thief, value: '0x1' }] },
    }),
    'a delegation to our account contract': {
      method: 'eth_sign7702Authorization',
      params: { contract, chain_id: 8453, nonce: 7 },
    },
    'a message': { method: 'personal_sign', params: { message: 'all my money', encoding: 'utf-8' } },
  });
});

interface Signed {
  readonly signed_transaction: `0x${string}`;
}

test('a transfer of tokens calls the contract of the token with the amount in its units', async () => {
  const wallet = await walletOn('ethereum');
  const destination = { address: friend.toLowerCase() };
  const bodies = [
    { source: { asset: 'usdc', chain: 'base' }, amount: '1.5', destination },
    { source: { asset_address: usdc.toLowerCase(), chain: 'base', amount: '1.5' }, destination },
    {
      source: { asset: 'usdc', chain: 'base', amount: '1.5' },
      destination: { ...destination, chain: 'base' },
    },
  ];
  for (const body of bodies) {
    const signs = transferring(wallet, body);
    await expect(signs(onBase({ to: usdc, data: tokens(friend, 1_500_000n) }))).resolves.toBeDefined();
    await expectRefused(signs, {
      'another recipient': onBase({ to: usdc, data: tokens(thief, 1_500_000n) }),
      'another amount': onBase({ to: usdc, data: tokens(friend, 15_000_000n) }),
      'another token': onBase({ to: thief, data: tokens(friend, 1_500_000n) }),
      'an approval': onBase({
        to: usdc,
        data: encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [friend, 1_500_000n] }),
      }),
      'bytes after it': onBase({ to: usdc, data: `${tokens(friend, 1_500_000n)}00` }),
      'a value beside it': onBase({ to: usdc, data: tokens(friend, 1_500_000n), value: '0x1' }),
      'another chain': onBase({ to: usdc, data: tokens(friend, 1_500_000n), chain_id: 1 }),
      ether: onBase({ to: friend, value: '0x16e360' }),
    });
  }
  // 18 decimals on this chain.
  const onBsc = { source: { asset: 'usdc', chain: 'bsc', amount: '2' }, destination };
  const bridged = '0x8AC76a51cc950d9822D68b83fE1Ad97B32Cd580d';
  const signs = transferring(wallet, onBsc);
  const task = (amount: bigint) => onBase({ to: bridged, data: tokens(friend, amount), chain_id: 56 });
  await expect(signs(task(2n * ether))).resolves.toBeDefined();
  await expectRefused(signs, { 'the decimals of other chains': task(2_000_000n) });
});

test('of a token without a name, the amount is compared as far as its decimals are unknown', async () => {
  const wallet = await walletOn('ethereum');
  const token = evmAddress(3);
  const source = { asset_address: token, chain: 'base', amount: '1.5' };
  const signs = transferring(wallet, { source, destination: { address: friend } });
  const task = (amount: bigint, to = friend) => onBase({ to: token, data: tokens(to, amount) });
  for (const amount of [15n, 1_500_000n, (ether * 3n) / 2n]) {
    await expect(signs(task(amount))).resolves.toBeDefined();
  }
  await expectRefused(signs, {
    'another amount': task(1_600_000n),
    'no amount': task(0n),
    'less than it could be': task(1n),
    'another recipient': task(1_500_000n, thief),
    'another token': onBase({ to: usdc, data: tokens(friend, 1_500_000n) }),
  });
});

test('an amount of half a million digits is refused before it is compared', { timeout: 2_500 }, async () => {
  const token = evmAddress(7);
  const amount = `1.${'0'.repeat(500_000)}`;
  const body = { source: { asset_address: token, chain: 'base', amount }, destination: { address: friend } };
  const task = onBase({ to: token, data: tokens(friend, 7n) });
  await expectRefused(transferring(await walletOn('ethereum'), body), { 'a transfer': task });
});

test('a transfer to another asset or chain is not signed: no server with a signer has an exchange', async () => {
  const wallet = await walletOn('ethereum');
  const source = { asset: 'usdc', chain: 'base', amount: '100' };
  const destination = { address: friend, asset: 'usdc', chain: 'arbitrum' };
  const deposit = onBase({ to: usdc, data: tokens(friend, 100_000_000n) });
  for (const body of [
    { source, destination },
    { source, destination, amount_type: 'exact_output' },
    { source, destination: { address: friend, asset: 'eth' } },
  ]) {
    await expect(transferring(wallet, body)(deposit)).rejects.toThrow('need an exchange');
  }
});

test('a body that is no transfer of such a wallet authorizes nothing', async () => {
  const wallet = await walletOn('ethereum');
  const source = { asset: 'eth', chain: 'base', amount: '1' };
  const destination = { address: friend };
  const bodies = {
    'no source': { destination },
    'no destination': { source },
    'no amount': { source: { ...source, amount: undefined }, destination },
    'two amounts': { source, amount: '1', destination },
    'a number for an amount': { source: { ...source, amount: 1 }, destination },
    'no number': { source: { ...source, amount: '1e0' }, destination },
    'more decimals than it has': { source: { ...source, amount: `1.${'0'.repeat(18)}1` }, destination },
    'an unknown chain': { source: { ...source, chain: 'mars' }, destination },
    'a chain of other wallets': { source: { ...source, asset: 'sol', chain: 'solana' }, destination },
    'an unknown asset': { source: { ...source, asset: 'gold' }, destination },
    'an address of another chain': { source, destination: { address: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC' } },
    'another asset for one without a name': {
      source: { asset_address: thief, chain: 'base', amount: '1' },
      destination: { ...destination, asset: 'usdc' },
    },
  };
  const tasks = {
    ether: onBase({ to: friend, value: `0x${ether.toString(16)}` }),
    tokens: onBase({ to: thief, data: tokens(friend, 1n) }),
  };
  for (const [what, body] of Object.entries(bodies)) {
    await expectRefused(transferring(wallet, body), {
      [`${what}: ether`]: tasks.ether,
      [`${what}: tokens`]: tasks.tokens,
    });
  }
});

const [payee, robber] = [1, 2].map((byte) =>
  Keypair.fromSeed(Buffer.alloc(32, byte)).publicKey.toBase58(),
) as [string, string];
const mintOf = { usdc: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', other: robber };
const tokenProgram = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const recent = Keypair.fromSeed(Buffer.alloc(32, 9)).publicKey;

/** The task of signing these bytes, with a recent blockhash. */
function onSolana(wire: Uint8Array) {
  const bytes = Buffer.from(wire);
  // One signature, the header, and the number of keys come before the keys and the blockhash.
  const keysAt = 1 + 64 + 3;
  bytes.set(recent.toBytes(), keysAt + 1 + 32 * bytes[keysAt]!);
  const encoded = bytes.toString('base64');
  return { method: 'signTransaction', params: { transaction: encoded, encoding: 'base64' } };
}

const lamportsTo = (from: string, to: string, amount: bigint): Instruction => {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(2);
  data.writeBigUInt64LE(amount, 4);
  const accounts = [
    { address: from, isWritable: true },
    { address: to, isWritable: true },
  ];
  return { program: '1'.repeat(32), accounts, data };
};

test('a transfer of lamports is one instruction of the system program', async () => {
  const wallet = await walletOn('solana');
  const from = wallet.address;
  const body = { source: { asset: 'sol', chain: 'solana', amount: '0.5' }, destination: { address: payee } };
  const signs = transferring(wallet, body);
  const amount = 500_000_000n;
  const built = (instructions: Instruction[]) => onSolana(encodeSolanaInstructions(from, instructions));
  const { signed_transaction: signed } = (await signs(built([lamportsTo(from, payee, amount)]))) as Signed;
  const read = Transaction.from(Buffer.from(signed, 'base64'));
  expect(read.instructions.map(({ keys }) => keys.map(({ pubkey }) => pubkey.toBase58()))).toEqual([
    [from, payee],
  ]);
  expect(read.recentBlockhash).toBe(recent.toBase58());
  const budget = 'ComputeBudget111111111111111111111111111111';
  await expectRefused(signs, {
    'another recipient': built([lamportsTo(from, robber, amount)]),
    'another amount': built([lamportsTo(from, payee, amount + 1n)]),
    'one instruction more': built([lamportsTo(from, robber, 1n), lamportsTo(from, payee, amount)]),
    'one instruction after it': built([lamportsTo(from, payee, amount), lamportsTo(from, robber, 1n)]),
    'a price for its priority': built([
      { program: budget, accounts: [], data: Uint8Array.of(3, 255, 255, 255, 255, 0, 0, 0, 0) },
      lamportsTo(from, payee, amount),
    ]),
    'no instruction': built([]),
    'tokens of the same number': onSolana(
      encodeSolanaTransfer({
        ...{ from, to: payee, rawAmount: amount },
        mint: { address: mintOf.usdc, decimals: 9, tokenProgram },
      }),
    ),
  });
});

test('a transfer of tokens goes to the account of the recipient, which it creates', async () => {
  const wallet = await walletOn('solana');
  const from = wallet.address;
  const destination = { address: payee };
  const built = (change: object = {}, ofMint: object = {}, rawAmount = 1_500_000n) =>
    onSolana(
      encodeSolanaTransfer({
        ...{ from, to: payee, rawAmount },
        mint: { address: mintOf.usdc, decimals: 6, tokenProgram, ...ofMint },
        ...change,
      }),
    );
  const forged = {
    'another recipient': built({ to: robber }),
    'another amount': built({}, {}, 1_500_001n),
    'another token': built({}, { address: mintOf.other }),
    'another program': built({}, { tokenProgram: robber }),
    lamports: built({ mint: undefined }),
  };
  const named = { source: { asset: 'usdc', chain: 'solana', amount: '1.5' }, destination };
  const byAddress = { source: { asset_address: mintOf.usdc, chain: 'solana', amount: '1.5' }, destination };
  for (const body of [named, byAddress]) {
    const signs = transferring(wallet, body);
    await expect(signs(built())).resolves.toBeDefined();
    await expectRefused(signs, forged);
  }
  // The chain compares the decimals in the instruction with those of the token, so that they need not be known.
  const mint = Keypair.fromSeed(Buffer.alloc(32, 5)).publicKey.toBase58();
  const signs = transferring(wallet, {
    ...named,
    source: { asset_address: mint, chain: 'solana', amount: '1.5' },
  });
  const ofMint = (decimals: number, rawAmount: bigint) =>
    built({}, { address: mint, decimals, tokenProgram: TOKEN_2022_PROGRAM }, rawAmount);
  await expect(signs(ofMint(6, 1_500_000n))).resolves.toBeDefined();
  await expect(signs(ofMint(2, 150n))).resolves.toBeDefined();
  await expectRefused(signs, { 'an amount of other decimals': ofMint(6, 15_000_000n) });
});

test('tokens that go to an account of another owner than the one that is created are refused', async () => {
  const wallet = await walletOn('solana');
  const from = wallet.address;
  const { usdc: mint } = mintOf;
  const ata = (of: string) => ({ address: associatedTokenAddress(of, mint), isWritable: true });
  const creates = (of: string): Instruction => ({
    program: 'ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL',
    accounts: [
      ...[{ address: from, isWritable: true }, ata(of), { address: of }, { address: mint }],
      ...[{ address: '1'.repeat(32) }, { address: tokenProgram }],
    ],
    data: Uint8Array.of(1),
  });
  const amount = Buffer.alloc(8);
  amount.writeBigUInt64LE(1_500_000n);
  const moves = (to: string): Instruction => ({
    program: tokenProgram,
    accounts: [ata(from), { address: mint }, ata(to), { address: from }],
    data: Buffer.concat([Buffer.of(12), amount, Buffer.of(6)]),
  });
  const source = { asset: 'usdc', chain: 'solana', amount: '1.5' };
  const signs = transferring(wallet, { source, destination: { address: payee } });
  const built = (list: Instruction[]) => onSolana(encodeSolanaInstructions(from, list));
  await expect(signs(built([creates(payee), moves(payee)]))).resolves.toBeDefined();
  await expectRefused(signs, {
    'another account': built([creates(payee), moves(robber)]),
    'the account of another owner': built([creates(robber), moves(payee)]),
    'no new account': built([moves(payee)]),
    'lamports between them': built([creates(payee), lamportsTo(from, robber, 1n), moves(payee)]),
    'tokens twice': built([creates(payee), moves(payee), moves(payee)]),
  });
});

const block = { ref_block_bytes: '0001', ref_block_hash: '00'.repeat(8), expiration: 2, timestamp: 1 };
const tronAddress = (byte: number) => TronWeb.address.fromHex(`41${evmAddress(byte).slice(2)}`);
const hexOf = (address: string) => TronWeb.address.toHex(address).toLowerCase();
const onTron = (contract: object, more: object = {}) => ({
  method: 'tron_signTransaction',
  params: { raw_data: { ...block, fee_limit: 100_000_000, contract: [contract], ...more } },
});

test('a transfer on Tron is one contract, of TRX or of the token', async () => {
  const wallet = await walletOn('tron');
  const [to, other] = [tronAddress(1), tronAddress(2)];
  const owned = { owner_address: hexOf(wallet.address) };
  const pays = (change: object = {}) => ({
    ...{ type: 'TransferContract', ...owned, to_address: hexOf(to), amount: 1_500_000 },
    ...change,
  });
  const source = { asset: 'trx', chain: 'tron', amount: '1.5' };
  const signs = transferring(wallet, { source, destination: { address: to } });
  await expect(signs(onTron(pays()))).resolves.toHaveProperty('signed_transaction');
  const usdt = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
  const moves = (recipient: string, change: object = {}) => ({
    ...{ type: 'TriggerSmartContract', ...owned, contract_address: hexOf(usdt) },
    data: tokens(`0x${hexOf(recipient).slice(2)}`, 1_500_000n).slice(2),
    ...change,
  });
  const shared = {
    'a memo': onTron(pays(), { data: '00' }),
    'another limit of the fee': onTron(pays(), { fee_limit: 1_000_000_000 }),
    'no contract': onTron({}, { contract: [] }),
    'two contracts': onTron({}, { contract: [pays(), pays()] }),
  };
  await expectRefused(signs, {
    ...shared,
    'another recipient': onTron(pays({ to_address: hexOf(other) })),
    'another amount': onTron(pays({ amount: 1_500_001 })),
    tokens: onTron(moves(to)),
  });
  const ofToken = transferring(wallet, {
    source: { asset: 'usdt', chain: 'tron', amount: '1.5' },
    destination: { address: to },
  });
  await expect(ofToken(onTron(moves(to)))).resolves.toHaveProperty('signed_transaction');
  const more = tokens(`0x${hexOf(to).slice(2)}`, 1_500_001n).slice(2);
  await expectRefused(ofToken, {
    ...shared,
    'another recipient': onTron(moves(other)),
    'another amount': onTron(moves(to, { data: more })),
    'another token': onTron(moves(to, { contract_address: hexOf(other) })),
    'TRX beside it': onTron(moves(to, { call_value: 1 })),
    TRX: onTron(pays()),
  });
});
