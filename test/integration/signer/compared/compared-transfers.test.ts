import { Keypair } from '@solana/web3.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Wallet } from '../../../../src/generated/schemas.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { fixedPrices } from '../../../../src/sandbox/simulated/prices.ts';
import { databaseKinds } from '../../../support/databases.ts';
import { openOperations, type TestOperations } from '../../../support/run-operations.ts';
import { behindProtocol, type Task } from '../../../support/signer/behind-protocol.ts';
import { newOwner } from '../../../support/signer/owner.ts';

/** What the server changes in what it has signed; it is honest by default. */
let tamper: (task: Task) => Task = (task) => task;

const solanaAddress = (byte: number) => Keypair.fromSeed(Buffer.alloc(32, byte)).publicKey.toBase58();
const [base, solana, tron] = ['eip155:8453', 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp', 'tron:0x2b6653dc'];
const receivers = {
  ethereum: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0',
  solana: solanaAddress(1),
  tron: 'TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC',
};
type ChainType = keyof typeof receivers;

const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const mint = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const unnamed = { evm: '0x1111111111111111111111111111111111111111', solana: solanaAddress(7) };
const usdt = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';

interface Case {
  readonly chainType: ChainType;
  readonly caip2: string;
  readonly source: { readonly asset?: string; readonly asset_address?: string; readonly chain: string };
  readonly token: string | null;
  readonly decimals: number;
}

const cases: Record<string, Case> = {
  'ether on Base': {
    ...{ chainType: 'ethereum', caip2: base!, token: null, decimals: 18 },
    source: { asset: 'eth', chain: 'base' },
  },
  'USDC on Base': {
    ...{ chainType: 'ethereum', caip2: base!, token: usdc, decimals: 6 },
    source: { asset: 'usdc', chain: 'base' },
  },
  'a token without a name on Base': {
    ...{ chainType: 'ethereum', caip2: base!, token: unnamed.evm, decimals: 8 },
    source: { asset_address: unnamed.evm, chain: 'base' },
  },
  SOL: {
    ...{ chainType: 'solana', caip2: solana!, token: null, decimals: 9 },
    source: { asset: 'sol', chain: 'solana' },
  },
  'USDC on Solana': {
    ...{ chainType: 'solana', caip2: solana!, token: mint, decimals: 6 },
    source: { asset: 'usdc', chain: 'solana' },
  },
  'a token without a name on Solana': {
    ...{ chainType: 'solana', caip2: solana!, token: unnamed.solana, decimals: 4 },
    source: { asset_address: unnamed.solana, chain: 'solana' },
  },
  TRX: {
    ...{ chainType: 'tron', caip2: tron!, token: null, decimals: 6 },
    source: { asset: 'trx', chain: 'tron' },
  },
  'USDT on Tron': {
    ...{ chainType: 'tron', caip2: tron!, token: usdt, decimals: 6 },
    source: { asset: 'usdt', chain: 'tron' },
  },
};

describe.each(databaseKinds)('on %s, with a signer that compares', (kind) => {
  const owner = newOwner();
  const key = owner.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  let chains: SimulatedChains;
  let server: TestOperations;
  beforeAll(async () => {
    const clock = { now: () => server?.clock.nowMs ?? 0 };
    chains = openSimulatedChains({ file: ':memory:', clock, confirmAfterMs: undefined });
    server = await openOperations(kind, { chains, replaceKeyStore: behindProtocol((task) => tamper(task)) });
    const exchange = chains.exchange({
      ...{ ids: server.services.ids, prices: fixedPrices, supports: chains.has },
    });
    Object.assign(server.services, { exchange });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await chains.close();
  });

  async function walletWith({ chainType, caip2, token, decimals }: Case): Promise<Wallet> {
    const { body } = await server.run('createWallet', {
      body: { chain_type: chainType, owner: { public_key: owner.publicKey } },
    });
    const { address } = body as Wallet;
    const native = { ethereum: 18, solana: 9, tron: 6 }[chainType];
    await chains.fund(caip2, { address, tokenAddress: null, rawAmount: 1_000n * 10n ** BigInt(native) });
    if (token !== null) {
      const rawAmount = 1_000n * 10n ** BigInt(decimals);
      await chains.fund(caip2, { address, tokenAddress: token, rawAmount, decimals });
    }
    return body as Wallet;
  }

  const transfer = (wallet: Wallet, body: object) =>
    server.run('transferFromWallet', { path: { wallet_id: wallet.id }, body, signWith: [key] });

  async function held({ caip2, token }: Case, address: string): Promise<bigint> {
    // The next block.
    server.clock.nowMs += 60_000;
    return (await chains.find(caip2)!.balances(address, [token]))[0] ?? 0n;
  }

  test.each(Object.entries(cases))('a transfer of %s arrives', async (_, asked) => {
    const wallet = await walletWith(asked);
    const to = receivers[asked.chainType];
    for (const [amount, digits] of [
      ['1', 10n],
      ['0.5', 5n],
      ['12.30', 123n],
    ] as const) {
      const before = await held(asked, to);
      const body = { source: { ...asked.source, amount }, destination: { address: to } };
      expect(await transfer(wallet, body)).toMatchObject({ status: 200, body: { status: 'pending' } });
      expect((await held(asked, to)) - before).toBe(digits * 10n ** BigInt(asked.decimals - 1));
    }
  });

  test('the deposit to an exchange is not signed, whichever side of it is fixed', async () => {
    const wallet = await walletWith(cases['USDC on Base']!);
    const destination = { address: receivers.solana, chain: 'solana', asset: 'usdc' };
    for (const amountType of ['exact_input', 'exact_output']) {
      const source = { asset: 'usdc', chain: 'base' };
      const body = { source, destination, amount: '10', amount_type: amountType };
      const refusal = { status: 400, body: { code: 'not_supported' } };
      expect(await transfer(wallet, body)).toMatchObject(refusal);
    }
  });

  test('a server that pays another address gets no signature, and nothing is sent', async () => {
    const asked = cases['ether on Base']!;
    const wallet = await walletWith(asked);
    const thief = '0x2222222222222222222222222222222222222222';
    const before = await held(asked, wallet.address);
    const body = {
      source: { ...asked.source, amount: '1' },
      destination: { address: receivers.ethereum },
    };
    tamper = ({ method, params }) => {
      const { transaction } = params as { transaction: object };
      return { method, params: { transaction: { ...transaction, to: thief } } } as Task;
    };
    try {
      await expect(transfer(wallet, body)).rejects.toThrow('asks for something else');
    } finally {
      tamper = (task) => task;
    }
    expect([await held(asked, wallet.address), await held(asked, thief)]).toEqual([before, 0n]);
    const path = { wallet_id: wallet.id };
    expect((await server.run('listWalletActions', { path })).body).toMatchObject({ data: [] });
    expect(await transfer(wallet, body)).toMatchObject({ status: 200 });
  });

  test('a server that moves the funds of another account on Tron gets no signature', async () => {
    const asked = cases.TRX!;
    const wallet = await walletWith(asked);
    const body = { source: { ...asked.source, amount: '1' }, destination: { address: receivers.tron } };
    tamper = ({ method, params }) => {
      const { raw_data: rawData } = params as unknown as { raw_data: { contract: object[] } };
      const contract = rawData.contract.map((each) => ({ ...each, owner_address: `41${'22'.repeat(20)}` }));
      return { method, params: { raw_data: { ...rawData, contract } } } as unknown as Task;
    };
    try {
      await expect(transfer(wallet, body)).rejects.toThrow('expected the address of the wallet');
    } finally {
      tamper = (task) => task;
    }
    expect(await transfer(wallet, body)).toMatchObject({ status: 200 });
  });
});
