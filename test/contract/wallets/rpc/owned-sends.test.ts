import { Keypair, PublicKey, SystemProgram, Transaction } from '@solana/web3.js';
import { TronWeb } from 'tronweb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { aliceKey } from '../../../../mocks/authorization-keys.ts';
import type { Wallet } from '../../../../src/generated/schemas.ts';
import { call } from '../../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../../support/sandbox.ts';
import { waitSeconds } from '../../../support/wait-seconds.ts';

// The vault makes again what a request of the owner asks for, and compares: each form of sending, for a wallet whose
// owner holds the key.

const base = 'eip155:8453';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

async function ownedWallet(chainType: string, caip2: string): Promise<Wallet> {
  const body = { chain_type: chainType, owner: { public_key: aliceKey.publicKey } };
  const wallet = (await call(sandbox, 'createWallet', { body: body as never })).body;
  await sandbox.chains.fund(caip2, { address: wallet.address, tokenAddress: null, rawAmount: 10n ** 18n });
  return wallet;
}

async function sends(wallet: Wallet, body: object): Promise<void> {
  const { body: answer } = await call(
    sandbox,
    'walletRpc',
    { path: { wallet_id: wallet.id }, body: body as never },
    { signWith: [aliceKey.privateKey] },
  );
  expect(answer.data).toHaveProperty('transaction_id');
  await waitSeconds(sandbox, 5);
}

test('calls and transactions of an EVM wallet, with and without a sponsor', async () => {
  const wallet = await ownedWallet('ethereum', base);
  const calls = [
    { to: receiver, value: 7, data: '0xABcd' },
    { to: receiver.toLowerCase(), value: '0x0a' },
  ];
  const batch = { method: 'wallet_sendCalls', caip2: base, params: { calls } };
  const transaction = { to: receiver, value: '0x01', data: '0x12', chain_id: 8453 };
  const plain = { method: 'eth_sendTransaction', caip2: base, params: { transaction } };
  const suffix = { experimental_data_suffix: '0xBEef' };
  // The first of each kind delegates the account.
  for (const body of [batch, { ...batch, ...suffix }, plain, { ...plain, ...suffix }]) {
    await sends(wallet, body);
    await sends(wallet, { ...body, sponsor: true });
    await sends(wallet, { ...body, sponsor: false });
  }
});

test('transactions of a Solana wallet, with and without a sponsor', async () => {
  const caip2 = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
  const wallet = await ownedWallet('solana', caip2);
  const from = new PublicKey(wallet.address);
  const to = Keypair.fromSeed(Buffer.alloc(32, 9)).publicKey;
  for (const [lamports, sponsor] of [[1_000_000, false] as const, [2_000_000, true] as const]) {
    const transfer = new Transaction({
      ...{ feePayer: from, recentBlockhash: '11111111111111111111111111111111' },
    } as never).add(SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports }));
    const wire = transfer.serialize({ requireAllSignatures: false }).toString('base64');
    const params = { transaction: wire, encoding: 'base64' };
    await sends(wallet, { method: 'signAndSendTransaction', caip2, sponsor, params });
  }
});

test('transactions of a Tron wallet', async () => {
  const wallet = await ownedWallet('tron', 'tron:0x2b6653dc');
  const contract = {
    ...{ type: 'TransferContract', owner_address: TronWeb.address.toHex(wallet.address) },
    ...{ to_address: `41${'00'.repeat(19)}01`, amount: 1000 },
  };
  await sends(wallet, { method: 'tron_sendTransaction', params: { raw_data: { contract: [contract] } } });
});
